"""Aliases: if a subject's configuration names another subject, paths that name the first refer to the second.

An alias is followed once. A plain alias names a subject of the default context or, below `/contexts/{ctx}/`, of that
context. `/config/x` and `/mode/x` always mean the name itself.
"""

from collections.abc import Callable

from strata.registry.lookup import has_prefix
from strata.storage.records import DEFAULT_CONTEXT, Subject, qualified
from strata.storage.state import State

__all__ = ["PathSubject", "aliased", "aliased_for_deks", "aliases_of"]


class PathSubject(str):
    """A subject named by a request.

    Attributes:
        home: the context of its prefix form, to which a plain alias belongs.
        check: raises an error if the request may not do with the target of an alias what it wants to do.
    """

    home: str
    check: Callable[[str], None] | None

    def __new__(
        cls, name: str, home: str = DEFAULT_CONTEXT, check: Callable[[str], None] | None = None
    ) -> "PathSubject":
        """Return a subject with its home context."""
        subject = super().__new__(cls, name)
        subject.home, subject.check = home, check
        return subject


def aliased(state: State, subject: str) -> Subject:
    """Return the subject that a name refers to: the target of its alias, or the subject itself.

    Raises:
        RegistryError: 40301 if the request names an alias and has no right on its target.
    """
    return _target(state, subject, "alias")


def aliased_for_deks(state: State, subject: str) -> Subject:
    """Return the subject whose data encryption keys a name refers to: `aliasForDeks` takes precedence over `alias`."""
    return _target(state, subject, "aliasForDeks", "alias")


def _target(state: State, subject: str, *fields: str) -> Subject:
    config = state.configs.get(Subject(subject)) if subject else None
    home = subject.home if isinstance(subject, PathSubject) else DEFAULT_CONTEXT
    for field in fields if config else ():
        alias = config.get(field) if config else None
        if isinstance(alias, str) and alias:
            target = Subject(qualified(alias, home))
            if isinstance(subject, PathSubject) and subject.check is not None:
                subject.check(target)
            return target
    return Subject(str(subject))


def aliases_of(state: State, prefix: str) -> dict[Subject, list[Subject]]:
    """Return the aliases under a prefix, as sorted lists by target."""
    found: dict[Subject, list[Subject]] = {}
    for name in state.configs:
        if name and has_prefix(name, prefix) and (target := aliased(state, name)) != name:
            found.setdefault(target, []).append(name)
    return {target: sorted(names) for target, names in found.items()}
