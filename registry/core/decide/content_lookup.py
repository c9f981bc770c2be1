"""Look-up by content: find the version of a subject that holds a schema.

A version holds a schema by identity (same text, references, metadata and rules), or by a weaker equality: the same
schema spelled differently, references written out, or metadata that differs only in `confluent:version`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from strata.registry.core import errors
from strata.registry.core.decide.contracts import agrees, merged_contract
from strata.registry.core.effective_settings import config_in_force
from strata.registry.core.lookup import Visible, everything, namesakes, use_of, versions_of
from strata.registry.core.parsing import Candidate, alike, equivalent, parse_request
from strata.registry.core.schema_request import SchemaRequest
from strata.storage.records import Subject, context_of
from strata.storage.state import SchemaVersion, State

__all__ = ["Found", "equal_version", "find", "version_with"]


@dataclass(frozen=True, slots=True)
class Found:
    """A version that holds a schema; if `identical`, by identity, so the answer repeats the request."""

    entry: SchemaVersion
    identical: bool


def version_with(
    state: State,
    subject: Subject,
    request: SchemaRequest,
    *,
    normalize: bool,
    include_deleted: bool,
    visible: Visible = everything,
) -> Found:
    """Return the version of a subject that holds a schema.

    If a plain subject does not hold it, the subjects of the same name in other contexts are searched.

    Args:
        state: the State to search.
        subject: the subject.
        request: the schema.
        normalize: whether to compare normalized texts, even if the subject's configuration does not ask for it.
        include_deleted: whether to find soft-deleted versions.
        visible: which subjects of other contexts to search.

    Raises:
        RegistryError: 40401 if the subject does not exist; 40403 if no version holds the schema; 42201 if it is
            invalid.
        TooExpensive: if this takes too long.
    """
    request = request.started()
    if found := _version_with(state, subject, request, normalize, include_deleted):
        return found
    for namesake in namesakes(state, subject, visible):
        try:
            found = _version_with(state, namesake, request, normalize, include_deleted)
        except errors.TooExpensive:
            raise
        except errors.RegistryError:
            continue
        if found:
            return found
    versions_of(state, subject, include_deleted=include_deleted)
    raise errors.schema_not_found()


def _version_with(
    state: State, subject: Subject, request: SchemaRequest, normalize: bool, include_deleted: bool
) -> Found | None:
    """Look a schema up under the request's contract, then under the contract that its registration would have.

    The rules for new schemas do not apply: it may have been stored under looser ones. As in the reference, there is no
    second look-up if no version is live.
    """
    if not request.text.strip():
        return None
    config = config_in_force(state, subject)
    normalize = normalize or config.normalize
    candidate = parse_request(state, subject, request, strict=False, normalize=normalize, new=False)
    found, latest = find(state, subject, candidate, include_deleted=include_deleted), state.latest(subject)
    if found or latest is None:
        return found
    merged = merged_contract(request, latest, config)
    if merged == candidate.contract:
        return None
    return find(state, subject, candidate.under(merged), include_deleted=include_deleted)


def find(state: State, subject: Subject, candidate: Candidate, *, include_deleted: bool) -> Found | None:
    """Return the version of a subject that holds a schema: by identity, else the newest equal one; else None.

    Args:
        state: the State to search.
        subject: the subject.
        candidate: the parsed schema.
        include_deleted: whether to find soft-deleted versions.

    Raises:
        TooExpensive: if this takes too long.
    """
    known = state.id_of(context_of(subject), candidate.schema_type, candidate.digest)
    held = state.schema(context_of(subject), known) if known is not None else None
    if held and (entry := use_of(state, subject, held)) and (include_deleted or not entry.deleted):
        return Found(entry, identical=True)
    equal = equal_version(state, candidate, state.versions(subject, include_deleted=include_deleted))
    return Found(equal, identical=False) if equal else None


def equal_version(state: State, candidate: Candidate, versions: Sequence[SchemaVersion]) -> SchemaVersion | None:
    """Return the newest version that holds a schema by the weaker equality; None without a match.

    Args:
        state: the State that references are resolved in.
        candidate: the parsed schema.
        versions: the versions to search, oldest first.

    Raises:
        TooExpensive: if this takes too long.
    """
    equal = (
        entry
        for entry in alike(candidate, reversed(versions))
        if agrees(candidate.contract, entry) and equivalent(state, candidate, entry)
    )
    return next(equal, None)
