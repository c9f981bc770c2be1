"""Pure reads over State: what the routes ask, in the terms of the wire."""

from collections.abc import Iterator, Sequence
from typing import TypeVar
from uuid import UUID

from registry import errors
from registry.names import subject_name
from storage.records import DEFAULT_CONTEXT, MAX_VERSION, Subject, context_of
from storage.state import IdEntry, SchemaVersion, State

__all__ = [
    "LATEST",
    "ids_of_guid",
    "page",
    "parse_version",
    "schema_by_id",
    "schemas",
    "subjects",
    "uses_of",
    "version_of",
    "version_to_compare",
    "version_with_properties",
    "versions_of",
]

_T = TypeVar("_T")
_ALL_CONTEXTS = ":*:"
_FORMATS = ("AVRO", "JSON", "PROTOBUF")  # what a log may hold, whether this service parses it or not
LATEST = -1


def parse_version(text: str) -> int:
    """Return a version from the path; `latest` (any case) and -1 are `LATEST`.

    Raises:
        RegistryError: 42202.
    """
    if text.strip().lower() == "latest":
        return LATEST
    try:
        version = int(text, 10) if text.isascii() and "_" not in text else 0
    except ValueError:
        version = 0
    if version != LATEST and not 1 <= version <= MAX_VERSION:
        raise errors.invalid_version(text)
    return version


def version_of(state: State, subject: Subject, version: int, *, include_deleted: bool) -> SchemaVersion:
    """Return one version of a subject, or its latest that is not deleted.

    Raises:
        RegistryError: 40401, 40402.
    """
    versions = versions_of(state, subject, include_deleted=include_deleted)
    found = versions[-1] if version == LATEST else state.version(subject, version)
    if found is None or (found.deleted and not include_deleted):
        raise errors.version_not_found(version)
    return found


def versions_of(
    state: State, subject: Subject, *, include_deleted: bool, deleted_only: bool = False
) -> list[SchemaVersion]:
    """Return the versions of a subject, oldest first.

    Raises:
        RegistryError: 40401 when there is none to see.
    """
    versions = state.versions(subject, include_deleted=include_deleted or deleted_only)
    seen = [entry for entry in versions if entry.deleted or not deleted_only]
    if not seen:
        raise errors.subject_not_found(subject)
    return seen


def version_with_properties(
    state: State, subject: Subject, wanted: Sequence[tuple[str, str]], *, include_deleted: bool
) -> SchemaVersion:
    """Return the newest version of a subject whose metadata has every one of some properties.

    Raises:
        RegistryError: 40401 when there is no version to see, 40403 when none has them all.
    """
    entry: SchemaVersion
    for entry in reversed(versions_of(state, subject, include_deleted=include_deleted)):
        properties = (entry.schema.value.metadata or {}).get("properties") or {}
        if all(properties.get(name) == value for name, value in wanted):
            return entry
    raise errors.schema_not_found()


def version_to_compare(state: State, subject: Subject, version: int) -> list[SchemaVersion]:
    """Return the one version that a request wants to be compared with; none when there is no latest.

    Raises:
        RegistryError: 40402 for a number that is not there.
    """
    if version == LATEST:
        latest = state.latest(subject)
        return [latest] if latest else []
    entry = state.version(subject, version)
    if entry is None or entry.deleted:
        raise errors.version_not_found(version)
    return [entry]


def subjects(state: State, prefix: str, *, include_deleted: bool, deleted_only: bool) -> list[Subject]:
    """Return the names of the subjects under a prefix, sorted; `:*:` stands for every context."""
    return sorted(
        name
        for name in state.subject_names()
        if _has_prefix(name, prefix) and _is_seen(state, name, include_deleted, deleted_only)
    )


def schema_by_id(state: State, schema_id: int, subject: str) -> tuple[IdEntry, SchemaVersion] | None:
    """Return what an id names, and the version to show with it: the subject's own when it uses the id.

    An id is looked up in the subject's context, and for an unqualified subject in every other context after that.
    """
    name = subject_name(subject)
    own = context_of(name)
    others = [c for c in state.context_names() if c != own] if own == DEFAULT_CONTEXT and name else []
    for context in (own, *others):
        if entry := state.schema(context, schema_id):
            own_use = _use_of(state, name, entry)
            found = own_use or state.version(*entry.used_by[0])
            if found:
                return entry, found
    return None


def _use_of(state: State, subject: Subject, entry: IdEntry) -> SchemaVersion | None:
    """The version of a subject that uses an id, the one written last if several do; an id may have 100,000 users."""
    uses = [used for used in state.versions(subject, include_deleted=True) if used.schema is entry.schema]
    if len(uses) < 2:
        return uses[0] if uses else None
    return state.version(*[place for place in entry.used_by if place[0] == subject][-1])


def schemas(state: State, prefix: str, *, include_deleted: bool, latest_only: bool) -> list[SchemaVersion]:
    """Return the versions of the subjects under a prefix, by subject and version."""
    found: list[SchemaVersion] = []
    for name in subjects(state, prefix, include_deleted=include_deleted, deleted_only=False):
        versions = state.versions(name, include_deleted=include_deleted)
        found += versions[-1:] if latest_only else versions
    return found


def ids_of_guid(state: State, guid: str) -> list[tuple[str, int]]:
    """Return the contexts that hold a schema, with its id in each; a malformed GUID is one that nobody has."""
    try:
        digest = UUID(guid).bytes
    except ValueError:
        return []
    return sorted(
        (name, schema_id)
        for name, context in state.contexts.items()
        for schema_format in _FORMATS
        if (schema_id := context.ids.get((schema_format, digest))) is not None
    )


def uses_of(state: State, schema_id: int, subject: str, *, include_deleted: bool) -> list[SchemaVersion]:
    """Return the versions that use an id, by subject and version.

    Raises:
        RegistryError: 40403 when the id is unknown.
    """
    found = schema_by_id(state, schema_id, subject)
    if found is None:
        raise errors.schema_not_found(schema_id)
    entries = (state.version(*place) for place in found[0].used_by)
    seen = [entry for entry in entries if entry and (include_deleted or not entry.deleted)]
    return sorted(seen, key=lambda entry: (entry.subject, entry.version))


def page(items: Sequence[_T], offset: int, limit: int) -> Sequence[_T]:
    """Return a part of a list; a limit below zero is none."""
    start = max(offset, 0)
    return items[start:] if limit < 0 else items[start : start + limit]


def _has_prefix(name: str, prefix: str) -> bool:
    if prefix.startswith(_ALL_CONTEXTS):
        return name.split(":", 2)[-1].startswith(prefix.removeprefix(_ALL_CONTEXTS))
    plain = subject_name(prefix)
    return context_of(name) == context_of(plain) and name.startswith(plain)


def _is_seen(state: State, name: Subject, include_deleted: bool, deleted_only: bool) -> bool:
    flags = {entry.deleted for entry in _entries(state, name)}
    if deleted_only:
        return flags == {True}
    return include_deleted or False in flags


def _entries(state: State, name: Subject) -> Iterator[SchemaVersion]:
    versions = state.subjects.get(name)
    return iter(versions.values() if versions else ())
