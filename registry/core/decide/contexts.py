"""Decide the deletion of a context, which must be empty; its ids are never reused."""

from collections.abc import Iterable, Iterator

from strata.registry.core import errors
from strata.registry.core.decide.decision import Decision
from strata.registry.core.effective_settings import check_writable
from strata.registry.core.subject_names import GLOBAL_SCOPE
from strata.storage.record_json import encode
from strata.storage.records import DEFAULT_CONTEXT, ConfigKey, ContextKey, ModeKey, Subject, context_of
from strata.storage.state import State

__all__ = ["delete_context"]


def delete_context(state: State, context: str) -> Decision[None]:
    """Return the tombstones of a context and its settings, none if the context does not exist.

    Its highest id stays on record: hard-deleting the schema that had it left a mark (docs/decisions/0003).

    Raises:
        RegistryError: 42205 if it is read-only; 42211 if it still has subjects (soft-deleted ones count) or
            associations.
    """
    subjects = [*state.subject_names(), *(key.subject for key in state.associations.by_key)]
    if any(context_of(subject) == context for subject in subjects):
        raise errors.context_not_empty(context)
    if context == DEFAULT_CONTEXT or context == context_of(GLOBAL_SCOPE):
        return Decision(None)
    scope = Subject(f":{context}:")
    check_writable(state, scope)
    records = [encode(ConfigKey(name)) for name in sorted(_within(context, state.configs))]
    records += [encode(ModeKey(name)) for name in sorted(_within(context, state.modes))]
    if state.context(context).recorded:
        records.append(encode(ContextKey(context)))
    return Decision(None, records)


def _within(context: str, scopes: Iterable[Subject | None]) -> Iterator[Subject]:
    return (scope for scope in scopes if scope and context_of(scope) == context)
