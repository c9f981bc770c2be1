"""Subject names: their qualified form `:.context:subject`, their plain form, invalid names, and aliases.

If a subject's configuration names another subject, paths that name the first refer to the second. An alias is followed
once. A plain alias names a subject of its own context: that of `:.c:x` is in `.c`. `/config/x` and `/mode/x` always
mean the name itself.
"""

import unicodedata
from collections.abc import Callable

from strata.registry.core import errors
from strata.storage.records import DEFAULT_CONTEXT, Subject, context_of, qualified
from strata.storage.state import State

__all__ = [
    "ALL_CONTEXTS",
    "GLOBAL_SCOPE",
    "PathSubject",
    "aliased",
    "aliased_for_deks",
    "aliases_of",
    "context_name",
    "context_of",
    "has_prefix",
    "is_scope_name",
    "scope",
    "subject_name",
    "writable_scope",
    "writable_subject",
]

GLOBAL_SCOPE = ":.__GLOBAL:"
ALL_CONTEXTS = ":*:"
"""Stands for every context at the start of a prefix."""
_RESERVED = ("__GLOBAL", "__EMPTY")


def context_name(text: str) -> str:
    """Return the name of a context, which may be given as `.c`, `c` or `:.c:`."""
    name = text.strip().strip(":")
    return name if name.startswith(".") else f".{name}"


def subject_name(text: str) -> Subject:
    """Return a subject in its shortest form: `x` for `:.:x`; a context `:.c` gets its closing colon, `:.c:`."""
    return Subject(qualified(text, DEFAULT_CONTEXT))


def writable_subject(text: str) -> Subject:
    """Return a subject under which a schema may be stored, in its shortest form.

    Raises:
        RegistryError: 42208 for control characters, lone surrogates, reserved names and the global scope.
    """
    name = subject_name(text)
    if name.startswith(GLOBAL_SCOPE):
        raise errors.invalid_subject(text)
    return _checked(name, text)


def _checked(name: Subject, text: str) -> Subject:
    """Return a name that a record may have."""
    reserved = name.removeprefix(f":{context_of(name)}:") in _RESERVED
    # Control characters and lone surrogates are not printable, and few names hold what else is not.
    is_odd = not name.isprintable()
    if reserved or (is_odd and (any(unicodedata.category(c) == "Cc" for c in name) or not _is_text(name))):
        raise errors.invalid_subject(text)
    return name


def scope(text: str | None) -> Subject | None:
    """Return the scope of a configuration or mode; None means the default context as a whole."""
    name = subject_name(text or "")
    return name or None


def writable_scope(text: str) -> Subject | None:
    """Return a scope under which a configuration or mode may be stored.

    Raises:
        RegistryError: 42208 for control characters, lone surrogates and reserved names.
    """
    name = scope(text)
    return None if name is None else _checked(name, text)


def is_scope_name(name: str) -> bool:
    """Return whether a name means a whole context (`:.ctx:`) instead of a subject."""
    return name.startswith(":.") and name.endswith(":")


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def has_prefix(name: str, prefix: str) -> bool:
    """Return whether a subject is under a prefix, in which `:*:` stands for every context."""
    if prefix.startswith(ALL_CONTEXTS):
        return name.split(":", 2)[-1].startswith(prefix.removeprefix(ALL_CONTEXTS))
    plain = subject_name(prefix)
    return context_of(name) == context_of(plain) and name.startswith(plain)


# --- aliases


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
    aliases: dict[Subject, list[Subject]] = {}
    for name in state.configs:
        if name and has_prefix(name, prefix) and (target := aliased(state, name)) != name:
            aliases.setdefault(target, []).append(name)
    return {target: sorted(names) for target, names in aliases.items()}
