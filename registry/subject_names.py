"""Subject names: their qualified form `:.context:subject`, their plain form, and invalid names."""

import unicodedata

from strata.registry import errors
from strata.storage.records import DEFAULT_CONTEXT, Subject, context_of, qualified

__all__ = [
    "GLOBAL_SCOPE",
    "context_name",
    "context_of",
    "is_scope_name",
    "scope",
    "subject_name",
    "writable_scope",
    "writable_subject",
]

GLOBAL_SCOPE = ":.__GLOBAL:"
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
