"""Pure reads over State that answer the queries of the routes."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import TypeVar
from uuid import UUID

from strata.registry.core import errors
from strata.registry.core.subject_names import ALL_CONTEXTS, has_prefix, is_scope_name, subject_name
from strata.storage.listing import Listed, beyond
from strata.storage.records import DEFAULT_CONTEXT, MAX_VERSION, Subject, context_of
from strata.storage.state import IdEntry, SchemaVersion, State

__all__ = [
    "LATEST",
    "Visible",
    "count_subjects",
    "each_subject",
    "everything",
    "ids_of_guid",
    "namesakes",
    "page",
    "parse_version",
    "schema_by_id",
    "schemas",
    "schemas_of",
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
Visible = Callable[[Subject], bool]
"""Whether a request may see a subject."""

# By whether soft-deleted versions are included, and whether only the newest version of a subject counts.
_VERSIONS_LISTED = {
    (False, False): Listed.LIVE_VERSIONS,
    (True, False): Listed.VERSIONS,
    (False, True): Listed.LIVE_SUBJECTS,
    (True, True): Listed.SUBJECTS,
}
_FORMATS = ("AVRO", "JSON", "PROTOBUF")  # formats that a log may hold, even if this service does not parse them
LATEST = -1


def everything(_subject: Subject) -> bool:
    """Return that a request may see a subject: that of a request which may see all of them."""
    return True


def parse_version(text: str) -> int:
    """Return a version number from the path; `latest` (in any case) and -1 mean `LATEST`.

    Raises:
        RegistryError: 42202 if it is not a valid version.
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
    """Return a version of a subject; `LATEST` means the latest live one, even if `include_deleted` is set.

    Raises:
        RegistryError: 40401 if the subject does not exist; 40402 if the version does not exist.
    """
    entry = state.latest(subject) if version == LATEST else state.version(subject, version)
    if entry is None or (entry.deleted and not include_deleted):
        versions_of(state, subject, include_deleted=include_deleted)
        raise errors.version_not_found(version)
    return entry


def version_anywhere(
    state: State, subject: Subject, version: int, *, include_deleted: bool, visible: Visible = everything
) -> SchemaVersion:
    """Return a version of a subject or, if a plain subject lacks it, of the same name in another context.

    Args:
        state: the State to search.
        subject: the subject.
        version: the version; `LATEST` means the latest live one.
        include_deleted: whether to find soft-deleted versions.
        visible: which subjects of other contexts to search.

    Raises:
        RegistryError: 40401 if the subject itself does not exist; 40402 if the version does not exist.
    """
    try:
        return version_of(state, subject, version, include_deleted=include_deleted)
    except errors.RegistryError:
        for namesake in namesakes(state, subject, visible):
            with suppress(errors.RegistryError):
                return version_of(state, namesake, version, include_deleted=include_deleted)
        raise


def namesakes(state: State, subject: str, visible: Visible = everything) -> Iterator[Subject]:
    """Yield the subjects in other contexts that have the name of a plain subject, and are visible."""
    if subject and context_of(subject) == DEFAULT_CONTEXT:
        for context in state.context_names():
            if (name := Subject(f":{context}:{subject}")) in state.subjects and visible(name):
                yield name


def versions_of(state: State, subject: Subject, *, include_deleted: bool) -> list[SchemaVersion]:
    """Return the versions of a subject, oldest first.

    Raises:
        RegistryError: 40401 if there are none.
    """
    versions = state.versions(subject, include_deleted=include_deleted)
    if not versions:
        raise errors.subject_not_found(subject)
    return versions


def version_numbers(
    state: State, subject: Subject, *, include_deleted: bool, deleted_only: bool, deleted_as_negative: bool
) -> list[int]:
    """Return the version numbers of a subject, oldest first.

    Args:
        state: the State to search.
        subject: the subject.
        include_deleted: whether to include soft-deleted versions.
        deleted_only: whether to return only soft-deleted versions.
        deleted_as_negative: whether to return all versions, with negative numbers for soft-deleted ones.

    Raises:
        RegistryError: 40401 if the subject does not exist, or is soft-deleted and neither `include_deleted` nor
            `deleted_only` is set.
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
    """Return the newest version of a subject whose metadata has all given properties.

    Args:
        state: the State to search.
        subject: the subject.
        wanted: names and values of the properties.
        include_deleted: whether to include soft-deleted versions.

    Raises:
        RegistryError: 40401 if the subject does not exist; 40403 if no version has all properties.
    """
    entry: SchemaVersion
    for entry in reversed(versions_of(state, subject, include_deleted=include_deleted)):
        properties = (entry.schema.value.metadata or {}).get("properties")
        if properties and all(properties.get(name) == value for name, value in wanted):
            return entry
    raise errors.schema_not_found()


def version_to_compare(state: State, subject: Subject, version: int) -> list[SchemaVersion]:
    """Return the live version to compare a schema with, as a list; empty if `LATEST` does not exist.

    Raises:
        RegistryError: 40402 if a numbered version does not exist.
    """
    if version == LATEST:
        latest = state.latest(subject)
        return [latest] if latest else []
    entry = state.version(subject, version)
    if entry is None or entry.deleted:
        raise errors.version_not_found(version)
    return [entry]


def subjects(
    state: State,
    prefix: str,
    *,
    include_deleted: bool,
    deleted_only: bool,
    offset: int = 0,
    limit: int = -1,
    visible: Visible = everything,
) -> list[Subject]:
    """Return the names of the subjects under a prefix, sorted, as a list; see `each_subject`."""
    names = each_subject(
        state, prefix, include_deleted=include_deleted, deleted_only=deleted_only, offset=offset, visible=visible
    )
    return list(islice(names, limit if limit > 0 else None))


def count_subjects(state: State, prefix: str) -> int:
    """Return the number of subjects under a prefix of one context, soft-deleted ones included."""
    return state.listing.count(Listed.SUBJECTS, _bounds(state, subject_name(prefix)))


def each_subject(
    state: State,
    prefix: str,
    *,
    include_deleted: bool,
    deleted_only: bool,
    offset: int = 0,
    visible: Visible = everything,
) -> Iterator[Subject]:
    """Yield the names of the subjects under a prefix, sorted.

    Args:
        state: the State to search.
        prefix: the prefix; `:*:` stands for every context.
        include_deleted: whether to include soft-deleted subjects.
        deleted_only: whether to return only soft-deleted subjects.
        offset: how many names to skip.
        visible: which subjects to return.
    """
    listed = Listed.SUBJECTS if include_deleted else Listed.LIVE_SUBJECTS
    names = _under(state, prefix, Listed.DELETED_SUBJECTS if deleted_only else listed, offset, visible)
    return (name for name, _ in names)


def schema_by_id(
    state: State, schema_id: int, subject: str, visible: Visible = everything
) -> tuple[IdEntry, SchemaVersion] | None:
    """Return the schema of an id, and the version to show with it: the subject's own if it uses the id.

    The id is looked up in the subject's context. A qualified subject must use the id. A plain subject need not:
    subjects of its name in other contexts that use the id come next, then any schema of that id in the default context.

    Args:
        state: the State to search.
        schema_id: the id.
        subject: a subject, a context (`:.ctx:`), or an empty string for the default context.
        visible: which subjects to search for the one that uses the id.
    """
    name = subject_name(subject)
    for owner in (name, *namesakes(state, name, visible)):
        entry = state.schema(context_of(owner), schema_id) if visible(owner) else None
        if entry and (use := use_of(state, owner, entry)):
            return entry, use
    if context_of(name) != DEFAULT_CONTEXT and not is_scope_name(name):
        return None
    entry = state.schema(context_of(name), schema_id)
    version = state.version(*entry.used_by[0]) if entry else None
    return (entry, version) if entry and version else None


def use_of(state: State, subject: Subject, entry: IdEntry) -> SchemaVersion | None:
    """Return the version of a subject that uses an id, the last written one if several do; None if none does.

    An id may have 100,000 users, so the subject's versions are searched first.
    """
    uses = [used for used in state.versions(subject, include_deleted=True) if used.schema is entry.schema]
    if len(uses) < 2:
        return uses[0] if uses else None
    return state.version(*[place for place in entry.used_by if place[0] == subject][-1])


def schemas(
    state: State,
    prefix: str,
    *,
    include_deleted: bool,
    latest_only: bool,
    offset: int,
    limit: int,
    visible: Visible = everything,
) -> list[SchemaVersion]:
    """Return a page of the versions of the subjects under a prefix, sorted by subject and version.

    Args:
        state: the State to search.
        prefix: the prefix; `:*:` stands for every context.
        include_deleted: whether to include soft-deleted versions.
        latest_only: whether to return only the newest version of each subject.
        offset: how many versions to skip.
        limit: the most versions to return.
        visible: whose versions to return.
    """
    versions: list[SchemaVersion] = []
    for name, skip in _under(state, prefix, _VERSIONS_LISTED[include_deleted, latest_only], offset, visible):
        versions += schemas_of(state, [name], include_deleted=include_deleted, latest_only=latest_only)[skip:]
        if len(versions) >= limit:
            break
    return versions[:limit]


def schemas_of(
    state: State, names: Iterable[Subject], *, include_deleted: bool, latest_only: bool
) -> list[SchemaVersion]:
    """Return the versions, or only the newest version, of each of some subjects."""
    entries: list[SchemaVersion] = []
    for name in names:
        versions = state.versions(name, include_deleted=include_deleted)
        entries += versions[-1:] if latest_only else versions
    return entries


def ids_of_guid(state: State, guid: str) -> list[tuple[str, int]]:
    """Return the contexts that hold a schema, with its id in each; empty for a malformed GUID."""
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


def versions_of_glue(state: State, uuid: str) -> list[SchemaVersion]:
    """Return the versions that had a UUID in AWS Glue, soft-deleted ones included, sorted by subject and version."""
    return [state.subjects[subject][version] for subject, version in sorted(state.of_glue.get(uuid, ()))]


def uses_of(state: State, entry: IdEntry, *, include_deleted: bool) -> list[SchemaVersion]:
    """Return the versions that use an id, sorted by subject and version."""
    entries = (state.version(*place) for place in entry.used_by)
    seen = [entry for entry in entries if entry and (include_deleted or not entry.deleted)]
    return sorted(seen, key=lambda entry: (entry.subject, entry.version))


def page(items: Sequence[_T], offset: int, limit: int) -> Sequence[_T]:
    """Return a page of a list; a limit below 1 means no limit."""
    start = max(offset, 0)
    return items[start : start + limit] if limit > 0 else items[start:]


def _under(state: State, prefix: str, listed: Listed, skip: int, visible: Visible) -> Iterator[tuple[Subject, int]]:
    """Yield the visible subjects under a prefix that add to a list; see `Listing.entries`."""
    wanted = None if visible is everything else visible
    if not prefix.startswith(ALL_CONTEXTS):
        return state.listing.entries(listed, _bounds(state, subject_name(prefix)), max(skip, 0), wanted)
    keep = wanted
    if prefix != ALL_CONTEXTS:
        under = partial(has_prefix, prefix=prefix)
        keep = under if wanted is None else lambda name: under(name) and visible(name)
    return state.listing.entries(listed, [("", None)], max(skip, 0), keep)


def _bounds(state: State, plain: str) -> Iterator[tuple[str, str | None]]:
    """Yield the ranges of names that begin with a text and belong to its context.

    The names of another context follow each other, so they interrupt those of the default context at one place.
    """
    low, high = plain, beyond(plain)
    if context_of(plain) == DEFAULT_CONTEXT:
        for block in sorted(f":{context}:" for context in state.contexts if context != DEFAULT_CONTEXT):
            if block.startswith(plain):
                yield low, block
                low = beyond(block) or block
    yield low, high
