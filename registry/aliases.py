"""Aliases: if a subject's configuration names another subject, paths that name the first refer to the second.

An alias is followed once. A plain alias names a subject of its own context: that of `:.c:x` is in `.c`. `/config/x` and
`/mode/x` always mean the name itself.
"""

from collections.abc import Callable

from strata.registry.lookup import has_prefix
from strata.storage.records import Subject, context_of, qualified
from strata.storage.state import State

__all__ = ["PathSubject", "aliased", "aliased_for_deks", "aliases_of"]


class PathSubject(str):
    """A subject named by a request.

    Attributes:
        check: raises an error if the request may not do with the target of an alias what it wants to do.
        covers: returns whether the request has its right on a name; an alias that it has none on is not followed, so
            that it answers as any other name does.
    """

    check: Callable[[str], None] | None
    covers: Callable[[str], bool] | None

    def __new__(
        cls, name: str, check: Callable[[str], None] | None = None, covers: Callable[[str], bool] | None = None
    ) -> "PathSubject":
        """Return a subject with its checks."""
        subject = super().__new__(cls, name)
        subject.check, subject.covers = check, covers
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
    name = Subject(str(subject))
    config = state.configs.get(name) if name else None
    for field in fields if config else ():
        alias = config.get(field) if config else None
        if isinstance(alias, str) and alias:
            return _followed(name, Subject(qualified(alias, context_of(name))), subject)
    return name


def _followed(name: Subject, target: Subject, subject: str) -> Subject:
    """Return the target of an alias, or the name itself if the request has no right on that."""
    if isinstance(subject, PathSubject):
        if subject.covers is not None and not subject.covers(name):
            return name
        if subject.check is not None:
            subject.check(target)
    return target


def aliases_of(state: State, prefix: str) -> dict[Subject, list[Subject]]:
    """Return the aliases under a prefix, as sorted lists by target."""
    found: dict[Subject, list[Subject]] = {}
    for name in state.configs:
        if name and has_prefix(name, prefix) and (target := aliased(state, name)) != name:
            found.setdefault(target, []).append(name)
    return {target: sorted(names) for target, names in found.items()}
