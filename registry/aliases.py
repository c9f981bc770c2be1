"""Aliases: a subject whose configuration names another one stands for that one, wherever a path names it.

One hop only. A plain alias is one of the subject's own context. `/config/x` and `/mode/x` work on the name itself.
"""

from registry.lookup import has_prefix
from storage.records import Subject, context_of, qualified
from storage.state import State

__all__ = ["aliased", "aliased_for_deks", "aliases_of"]


def aliased(state: State, subject: str) -> Subject:
    """Return the subject that a name stands for: its alias's target, or itself."""
    return _target(state, subject, "alias")


def aliased_for_deks(state: State, subject: str) -> Subject:
    """Return the subject whose data encryption keys a name stands for: `aliasForDeks` wins over `alias`."""
    return _target(state, subject, "aliasForDeks", "alias")


def _target(state: State, subject: str, *fields: str) -> Subject:
    config = state.configs.get(Subject(subject)) if subject else None
    for field in fields if config else ():
        alias = config.get(field) if config else None
        if isinstance(alias, str) and alias:
            return Subject(qualified(alias, context_of(subject)))
    return Subject(subject)


def aliases_of(state: State, prefix: str) -> dict[Subject, list[Subject]]:
    """Return the names under a prefix that stand for other subjects, sorted, by subject."""
    found: dict[Subject, list[Subject]] = {}
    for name in state.configs:
        if name and has_prefix(name, prefix) and (target := aliased(state, name)) != name:
            found.setdefault(target, []).append(name)
    return {target: sorted(names) for target, names in found.items()}
