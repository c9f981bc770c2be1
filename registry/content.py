"""Look-up by content: which version of a subject holds a schema.

A version holds it by identity (text, references, metadata and rules are the same), or by a weaker equality: the same
schema in another spelling, references written out, or metadata that differs in `confluent:version` alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from compat.levels import Level
from registry import errors
from registry.decide.contracts import agrees, merged_contract
from registry.effective import config_in_force, flag_in_force
from registry.lookup import namesakes, use_of, versions_of
from registry.schemas import Candidate, SchemaRequest, equivalent, parse_request
from storage.records import Subject, context_of
from storage.state import SchemaVersion, State

__all__ = ["Found", "equal_version", "find", "parsed", "version_with"]


@dataclass(frozen=True, slots=True)
class Found:
    """A version that holds a schema; `identical`: by identity, so the answer repeats the request."""

    entry: SchemaVersion
    identical: bool


def version_with(
    state: State, subject: Subject, request: SchemaRequest, default: Level, normalize: bool, include_deleted: bool
) -> Found:
    """Return the version of a subject that holds a schema.

    If a plain subject does not hold it, the subjects of the same name in other contexts are tried.

    Raises:
        RegistryError: 40401, 40403, 42201, for the subject itself.
    """
    if found := _version_with(state, subject, request, default, normalize, include_deleted):
        return found
    for namesake in namesakes(state, subject):
        try:
            found = _version_with(state, namesake, request, default, normalize, include_deleted)
        except errors.TooExpensive:
            raise
        except errors.RegistryError:
            continue
        if found:
            return found
    versions_of(state, subject, include_deleted=include_deleted)
    raise errors.schema_not_found()


def _version_with(
    state: State, subject: Subject, request: SchemaRequest, default: Level, normalize: bool, include_deleted: bool
) -> Found | None:
    """Look a schema up under the contract of the request, and then under the one that it would be registered with.

    There is no second look-up where no version is live, as in the reference.
    """
    if not request.text.strip():
        return None
    candidate = parsed(state, subject, request, normalize=normalize)
    found, latest = find(state, subject, candidate, include_deleted=include_deleted), state.latest(subject)
    if found or latest is None:
        return found
    merged = merged_contract(request, latest, config_in_force(state, subject, default))
    if merged == candidate.contract:
        return None
    return find(state, subject, candidate.under(merged), include_deleted=include_deleted)


def parsed(state: State, subject: Subject, request: SchemaRequest, *, normalize: bool) -> Candidate:
    """Parse a schema to be looked up, which may be invalid as a new one: validation may have been less strict once.

    Raises:
        RegistryError: 42201.
    """
    normalize = normalize or flag_in_force(state, subject, "normalize", default=False)
    return parse_request(state, subject, request.started(), strict=False, normalize=normalize, new=False)


def find(state: State, subject: Subject, candidate: Candidate, *, include_deleted: bool) -> Found | None:
    """Return the version of a subject that holds a schema: by identity, or else the newest equal one."""
    known = state.id_of(context_of(subject), candidate.schema_type, candidate.digest)
    held = state.schema(context_of(subject), known) if known is not None else None
    if held and (entry := use_of(state, subject, held)) and (include_deleted or not entry.deleted):
        return Found(entry, identical=True)
    equal = equal_version(state, candidate, state.versions(subject, include_deleted=include_deleted))
    return Found(equal, identical=False) if equal else None


def equal_version(state: State, candidate: Candidate, versions: Sequence[SchemaVersion]) -> SchemaVersion | None:
    """Return the newest of some versions that holds a schema by the weaker equality."""
    equal = (
        entry
        for entry in reversed(versions)
        if agrees(candidate.contract, entry) and equivalent(state, candidate, entry)
    )
    return next(equal, None)
