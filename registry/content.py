"""Look-up by content: which version of a subject holds a schema."""

from collections.abc import Iterator
from contextlib import suppress

from registry import errors
from registry.decide.register import find
from registry.effective import flag_in_force
from registry.lookup import versions_of
from registry.schemas import SchemaRequest, parse_request
from storage.records import DEFAULT_CONTEXT, Subject, context_of
from storage.state import SchemaVersion, State

__all__ = ["version_with"]


def version_with(
    state: State, subject: Subject, request: SchemaRequest, normalize: bool, include_deleted: bool
) -> tuple[SchemaVersion, bool]:
    """Return the version of a subject that holds a schema, and whether by identity.

    A plain subject that does not hold it is looked for by the same name in every other context.

    Raises:
        RegistryError: 40401, 40403, 42201, as the subject itself has it.
    """
    try:
        return _version_with(state, subject, request, normalize, include_deleted)
    except errors.RegistryError:
        for namesake in _namesakes(state, subject):
            with suppress(errors.RegistryError):
                return _version_with(state, namesake, request, normalize, include_deleted)
        raise


def _version_with(
    state: State, subject: Subject, request: SchemaRequest, normalize: bool, include_deleted: bool
) -> tuple[SchemaVersion, bool]:
    normalize = normalize or flag_in_force(state, subject, "normalize", default=False)
    candidate = parse_request(state, subject, request, strict=False, normalize=normalize)
    found = find(state, subject, candidate, include_deleted=include_deleted)
    if found is None:
        versions_of(state, subject, include_deleted=include_deleted)
        raise errors.schema_not_found()
    return found, found.schema.fingerprint == candidate.digest


def _namesakes(state: State, subject: Subject) -> Iterator[Subject]:
    if subject and context_of(subject) == DEFAULT_CONTEXT:
        for context in state.context_names():
            if (name := Subject(f":{context}:{subject}")) in state.subjects:
                yield name
