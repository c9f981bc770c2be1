"""Aliases: a subject whose configuration names another one stands for that one, wherever a path names it.

One hop only. A plain alias is one of the subject's own context. `/config/x` and `/mode/x` work on the name itself.
"""

from storage.records import Subject, context_of, qualified
from storage.state import State

__all__ = ["aliased", "aliases_of"]


def aliased(state: State, subject: str) -> Subject:
    """Return the subject that a name stands for: its alias's target, or itself."""
    config = state.configs.get(Subject(subject)) if subject else None
    alias = config.get("alias") if config else None
    return Subject(qualified(alias, context_of(subject)) if isinstance(alias, str) and alias else subject)


def aliases_of(state: State) -> dict[Subject, list[Subject]]:
    """Return the names that stand for each subject, sorted."""
    found: dict[Subject, list[Subject]] = {}
    for name in state.configs:
        if name and (target := aliased(state, name)) != name:
            found.setdefault(target, []).append(name)
    return {target: sorted(names) for target, names in found.items()}
