"""Look-up by content: which version of a subject holds a schema."""

from itertools import chain

from compat.levels import Level
from registry import errors
from registry.decide.register import contracts_to_find, find
from registry.effective import config_in_force, flag_in_force
from registry.lookup import namesakes, versions_of
from registry.schemas import SchemaRequest, parse_request
from storage.records import Subject
from storage.state import SchemaVersion, State

__all__ = ["version_with"]

_NOT_FOUND = 404


def version_with(
    state: State, subject: Subject, request: SchemaRequest, default: Level, normalize: bool, include_deleted: bool
) -> tuple[SchemaVersion, bool]:
    """Return the version of a subject that holds a schema, and whether by identity.

    A plain subject that does not hold it is looked for by the same name in every other context. What is found nowhere
    is looked for once more as normalizing has it, since it may have been registered so
    (confluentinc/schema-registry#3841).

    Raises:
        RegistryError: 40401, 40403, 42201, as the subject itself has it.
    """
    faults: list[errors.RegistryError] = []
    for form in (True,) if normalize else (False, True):
        for owner in chain((subject,), namesakes(state, subject)):
            try:
                return _version_with(state, owner, request, default, form, include_deleted)
            except errors.RegistryError as fault:
                faults.append(fault)
        if faults[0].status != _NOT_FOUND:
            break
    raise faults[0]


def _version_with(
    state: State, subject: Subject, request: SchemaRequest, default: Level, normalize: bool, include_deleted: bool
) -> tuple[SchemaVersion, bool]:
    if not request.text.strip():
        versions_of(state, subject, include_deleted=include_deleted)
        raise errors.schema_not_found()
    normalize = normalize or flag_in_force(state, subject, "normalize", default=False)
    candidate = parse_request(state, subject, request.started(), strict=False, normalize=normalize)
    versions = state.versions(subject, include_deleted=include_deleted)
    config = config_in_force(state, subject, default)
    for contract in contracts_to_find(request, state.latest(subject), config):
        sought = candidate.under(contract)
        if found := find(state, sought, versions):
            return found, found.schema.fingerprint == sought.digest
    versions_of(state, subject, include_deleted=include_deleted)
    raise errors.schema_not_found()
