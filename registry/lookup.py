"""Pure reads over State: what the routes ask, in the terms of the wire."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TypeVar
from uuid import UUID

from registry import errors
from registry.names import is_scope_name, subject_name
from storage.records import DEFAULT_CONTEXT, MAX_VERSION, Subject, context_of
from storage.state import IdEntry, SchemaVersion, State

__all__ = [
    "LATEST",
    "has_prefix",
    "ids_of_guid",
    "namesakes",
    "page",
    "parse_version",
    "schema_by_id",
    "schemas",
    "subjects",
    "use_of",
    "uses_of",
    "version_anywhere",
    "version_numbers",
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
    """Return one version of a subject; the latest is one that is not deleted, whatever is to be seen.

    Raises:
        RegistryError: 40401, 40402.
    """
    versions_of(state, subject, include_deleted=include_deleted)
    found = state.latest(subject) if version == LATEST else state.version(subject, version)
    if found is None or (found.deleted and not include_deleted):
        raise errors.version_not_found(version)
    return found


def version_anywhere(state: State, subject: Subject, version: int, *, include_deleted: bool) -> SchemaVersion:
    """Return one version of a subject, or for a plain subject that lacks it, of a namesake in another context.

    Raises:
        RegistryError: 40401, 40402, as the subject itself has it.
    """
    try:
        return version_of(state, subject, version, include_deleted=include_deleted)
    except errors.RegistryError:
        for namesake in namesakes(state, subject):
            with suppress(errors.RegistryError):
                return version_of(state, namesake, version, include_deleted=include_deleted)
        raise


def namesakes(state: State, subject: str) -> Iterator[Subject]:
    """Yield the subjects of a plain subject's name in other contexts."""
    if subject and context_of(subject) == DEFAULT_CONTEXT:
        for context in state.context_names():
            if (name := Subject(f":{context}:{subject}")) in state.subjects:
                yield name


def versions_of(state: State, subject: Subject, *, include_deleted: bool) -> list[SchemaVersion]:
    """Return the versions of a subject, oldest first.

    Raises:
        RegistryError: 40401 when there are none.
    """
    versions = state.versions(subject, include_deleted=include_deleted)
    if not versions:
        raise errors.subject_not_found(subject)
    return versions


def version_numbers(
    state: State, subject: Subject, *, include_deleted: bool, deleted_only: bool, deleted_as_negative: bool
) -> list[int]:
    """Return the version numbers of a subject, oldest first; `deleted_as_negative` lists every version.

    Raises:
        RegistryError: 40401 when there are none, `deleted_as_negative` left aside.
    """
    versions_of(state, subject, include_deleted=include_deleted or deleted_only)
    every = state.versions(subject, include_deleted=True)
    if deleted_as_negative:
        return [-entry.version if entry.deleted else entry.version for entry in every]
    if deleted_only:
        return [entry.version for entry in every if entry.deleted]
    return [entry.version for entry in every if include_deleted or not entry.deleted]


def version_with_properties(
    state: State, subject: Subject, wanted: Sequence[tuple[str, str]], *, include_deleted: bool
) -> SchemaVersion:
    """Return the newest version of a subject whose metadata has every one of some properties.

    Raises:
        RegistryError: 40401 when there is no version to see, 40403 when none has them all.
    """
    entry: SchemaVersion
    for entry in reversed(versions_of(state, subject, include_deleted=include_deleted)):
        properties = (entry.schema.value.metadata or {}).get("properties")
        if properties and all(properties.get(name) == value for name, value in wanted):
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
        if has_prefix(name, prefix) and _is_seen(state, name, include_deleted, deleted_only)
    )


def schema_by_id(state: State, schema_id: int, subject: str) -> tuple[IdEntry, SchemaVersion] | None:
    """Return the schema of an id, and the version to show with it: the subject's own if it uses the id.

    The id is looked up in the subject's context. A qualified subject must use it. A plain one need not: its namesakes
    in other contexts that use the id come next, then any schema of that id in the default context.
    """
    name = subject_name(subject)
    for owner in (name, *namesakes(state, name)):
        entry = state.schema(context_of(owner), schema_id)
        if entry and (use := use_of(state, owner, entry)):
            return entry, use
    if context_of(name) != DEFAULT_CONTEXT and not is_scope_name(name):
        return None
    entry = state.schema(context_of(name), schema_id)
    found = state.version(*entry.used_by[0]) if entry else None
    return (entry, found) if entry and found else None


def use_of(state: State, subject: Subject, entry: IdEntry) -> SchemaVersion | None:
    """Return the version of a subject that uses an id, the one written last if several do.

    An id may have 100,000 users, so the subject's versions are searched first.
    """
    uses = [used for used in state.versions(subject, include_deleted=True) if used.schema is entry.schema]
    if len(uses) < 2:
        return uses[0] if uses else None
    return state.version(*[place for place in entry.used_by if place[0] == subject][-1])


def schemas(
    state: State, prefix: str, more: Iterable[Subject] = (), *, include_deleted: bool, latest_only: bool
) -> list[SchemaVersion]:
    """Return the versions of the subjects under a prefix, and of some more, by subject and version."""
    found: list[SchemaVersion] = []
    for name in sorted({*subjects(state, prefix, include_deleted=include_deleted, deleted_only=False), *more}):
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
    """Return a part of a list; a limit below 1 is none."""
    start = max(offset, 0)
    return items[start : start + limit] if limit > 0 else items[start:]


def has_prefix(name: str, prefix: str) -> bool:
    """Tell whether a subject is under a prefix; `:*:` stands for every context."""
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
