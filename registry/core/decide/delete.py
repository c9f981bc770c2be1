"""Decide deletions: a soft one marks versions, a hard one (`permanent`) removes soft-deleted versions from the log."""

from collections.abc import Iterable, Iterator

from strata.registry.core import errors
from strata.registry.core.decide.decision import Decision
from strata.registry.core.decide.highest_id import mark_highest
from strata.registry.core.effective_settings import check_writable
from strata.registry.core.lookup import LATEST
from strata.storage.log import Record
from strata.storage.record_json import encode
from strata.storage.records import ConfigKey, DeleteSubjectKey, ModeKey, SchemaKey, Subject, Version
from strata.storage.state import SchemaVersion, State

__all__ = ["check_unreferenced", "delete_subject", "delete_version", "delete_with_association", "hard_delete"]


def delete_subject(state: State, subject: Subject, *, permanent: bool) -> Decision[list[Version]]:
    """Return the versions deleted with a subject, and the records that delete them.

    Args:
        state: the State to decide on.
        subject: the subject.
        permanent: whether to hard-delete.

    Raises:
        RegistryError: 40401 if the subject does not exist; 40404 if it is already soft-deleted; 40405 if it must be
            soft-deleted first; 40904 if it has associations; 42205 if it is read-only; 42206 if another schema refers
            to it.
    """
    versions = state.versions(subject, include_deleted=True)
    if not versions:
        raise errors.subject_not_found(subject)
    if state.associations.of_subject(subject):
        raise errors.association_for_subject_exists(subject)
    return _deletion(state, subject, versions, permanent=permanent)


def delete_with_association(state: State, subject: Subject, now: int) -> list[Record]:
    """Return the records that hard-delete a subject together with the resource that owns it.

    Args:
        state: the State to decide on.
        subject: the subject, live or soft-deleted.
        now: the time of the deletion, in milliseconds since the epoch.

    Raises:
        RegistryError: 42205 if the subject is read-only; 42206 if another subject refers to it.
    """
    records: list[Record] = []
    if state.latest(subject):
        versions = state.versions(subject, include_deleted=True)
        records += _deletion(state, subject, versions, permanent=False).records
        state = state.drafted(records, now)
    if versions := state.versions(subject, include_deleted=True):
        records += _deletion(state, subject, versions, permanent=True).records
    return records


def _deletion(
    state: State, subject: Subject, versions: list[SchemaVersion], *, permanent: bool
) -> Decision[list[Version]]:
    live = [entry for entry in versions if not entry.deleted]
    if not permanent and not live:
        raise errors.subject_soft_deleted(subject)
    check_writable(state, subject)
    for entry in versions if permanent else live:
        check_unreferenced(state, [entry], permanent=permanent, within=subject)
        if permanent and not entry.deleted:
            raise errors.subject_not_soft_deleted(subject)
    if permanent:
        return Decision([entry.version for entry in versions], list(hard_delete(state, subject, versions)))
    return Decision([entry.version for entry in live], [encode(DeleteSubjectKey(subject), versions[-1].version)])


def delete_version(state: State, subject: Subject, version: int, *, permanent: bool) -> Decision[Version]:
    """Return the deleted version, and the records that delete it.

    Args:
        state: the State to decide on.
        subject: the subject.
        version: the version; `LATEST` means the latest live one.
        permanent: whether to hard-delete.

    Raises:
        RegistryError: 40401 if the subject does not exist; 40402 if the version does not exist; 40406 if it is already
            soft-deleted; 40407 if it must be soft-deleted first; 40904 if the subject has associations and no other
            live version; 42205 if the subject is read-only; 42206 if another schema refers to the version.
    """
    if not state.versions(subject, include_deleted=True):
        raise errors.subject_not_found(subject)
    entry = state.latest(subject) if version == LATEST else state.version(subject, version)
    if entry is None:
        raise errors.version_not_found(version)
    if entry.deleted and not permanent:
        raise errors.version_soft_deleted(subject, entry.version)
    if state.associations.of_subject(subject) and _is_last(state, entry):
        raise errors.association_for_subject_exists(subject)
    check_writable(state, subject)
    check_unreferenced(state, [entry], permanent=permanent)
    if not permanent:
        deleted = entry.schema.value._replace(subject=subject, version=entry.version, deleted=True)
        return Decision(entry.version, [encode(SchemaKey(subject, entry.version), deleted)])
    if not entry.deleted:
        raise errors.version_not_soft_deleted(subject, entry.version)
    return Decision(entry.version, list(hard_delete(state, subject, [entry])))


def _is_last(state: State, entry: SchemaVersion) -> bool:
    return all(other.version == entry.version for other in state.versions(entry.subject, include_deleted=False))


def hard_delete(state: State, subject: Subject, entries: Iterable[SchemaVersion]) -> Iterator[Record]:
    """Yield the tombstones of versions, and of the subject's settings if no version is left."""
    going = {entry.version: entry for entry in entries}
    yield from mark_highest(state, going.values())
    for version in sorted(going, reverse=True):
        yield encode(SchemaKey(subject, version))
    if len(going) == len(state.subjects[subject]):
        if subject in state.configs:
            yield encode(ConfigKey(subject))
        if subject in state.modes:
            yield encode(ModeKey(subject))


def check_unreferenced(
    state: State, entries: Iterable[SchemaVersion], *, permanent: bool, within: Subject | None = None
) -> None:
    """Reject the deletion of referenced versions.

    Args:
        state: the State that holds the referrers.
        entries: the versions to delete.
        permanent: whether soft-deleted referrers count too.
        within: a subject that is deleted as a whole and so may refer to itself.

    Raises:
        RegistryError: 42206 if another schema refers to a version.
    """
    for entry in entries:
        for referrer in state.referred_by(entry.subject, entry.version):
            if referrer.subject != within and (permanent or not referrer.deleted):
                raise errors.referenced(entry.subject, entry.version)
