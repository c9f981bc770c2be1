"""Decide changes of the mode: which operations a scope allows."""

from collections.abc import Iterator

from strata.registry.core import errors
from strata.registry.core.decide.decision import Decision
from strata.registry.core.decide.delete import check_unreferenced, hard_delete
from strata.registry.core.effective_settings import Mode, mode_in_force
from strata.registry.core.subject_names import GLOBAL_SCOPE, is_scope_name
from strata.storage.log import Record
from strata.storage.record_json import encode
from strata.storage.records import DEFAULT_CONTEXT, ClearSubjectKey, ModeKey, Subject, context_of
from strata.storage.state import State

__all__ = ["delete_mode", "set_mode"]


def set_mode(state: State, scope: Subject | None, mode: str | None, *, force: bool) -> Decision[str | None]:
    """Return the requested mode, and the records that set it.

    Entering IMPORT needs a scope without live schemas (or `force`), and hard-deletes its soft-deleted versions.

    Args:
        state: the State to decide on.
        scope: a subject or context; None for the registry as a whole.
        mode: the mode; None removes the scope's own mode.
        force: whether to enter IMPORT despite live schemas.

    Raises:
        RegistryError: 42204 for an unknown mode, or FORWARD outside the global scope; 42205 if live schemas forbid
            IMPORT; 42206 if another subject refers to a version that entering IMPORT hard-deletes.
    """
    if mode is None:
        return Decision(None, [encode(ModeKey(scope))] if scope in state.modes else [])
    mode = mode.upper()
    if mode not in Mode.__members__:
        raise errors.invalid_mode()
    if mode == Mode.FORWARD and scope != GLOBAL_SCOPE:
        raise errors.forward_mode_is_global()
    records: list[Record] = []
    if mode == Mode.IMPORT and not mode_in_force(state, scope).is_import:
        if not force and any(state.latest(subject) for subject in _subjects(state, scope)):
            raise errors.import_with_subjects()
        records = list(_purged(state, scope))
    return Decision(mode, [*records, encode(ModeKey(scope), mode)])


def delete_mode(state: State, scope: Subject | None, *, recursive: bool) -> Decision[str | None]:
    """Return the scope's own mode, and the tombstones that delete it.

    Args:
        state: the State to decide on.
        scope: a subject or context; None for the registry as a whole.
        recursive: whether to delete all modes within the scope too.

    Raises:
        RegistryError: 40401 if a subject has no mode and the deletion is not recursive.
    """
    own = state.modes.get(scope)
    if own is None and scope is not None and not recursive:
        raise errors.subject_not_found(scope)
    going = [scope] if own is not None else []
    if recursive:
        names = sorted(name for name in state.modes if name and name not in (scope, GLOBAL_SCOPE))
        going += [name for name in names if _is_within(name, scope)]
    return Decision(own, [encode(ModeKey(subject)) for subject in going])


def _subjects(state: State, scope: Subject | None) -> Iterator[Subject]:
    """Yield the subjects in a scope: itself, those of its context, or for None those of the default context."""
    if scope is not None and scope != GLOBAL_SCOPE and not is_scope_name(scope):
        yield from [scope] if scope in state.subjects else []
        return
    yield from sorted(subject for subject in state.subject_names() if _is_within(subject, scope))


def _is_within(name: Subject, scope: Subject | None) -> bool:
    context = context_of(name)
    inside = context == DEFAULT_CONTEXT if scope is None else scope in (name, f":{context}:")
    return inside or scope == GLOBAL_SCOPE


def _purged(state: State, scope: Subject | None) -> Iterator[Record]:
    for subject in _subjects(state, scope):
        gone = [entry for entry in state.versions(subject, include_deleted=True) if entry.deleted]
        check_unreferenced(state, gone, permanent=True, within=subject)
        if gone:
            yield from hard_delete(state, subject, gone)
            yield encode(ClearSubjectKey(subject))
