"""Fields of the auth file: entries of its lists, and what each may hold."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

__all__ = ["AuthFileError", "at", "check_keys", "entries", "text_of"]

_MOST_SHOWN = 40


class AuthFileError(ValueError):
    """An auth file that cannot be used; the message says which field, why and what is expected, without secrets."""


@contextmanager
def at(where: str, *invalid: type[ValueError]) -> Iterator[None]:
    """Turn errors of these types into an `AuthFileError` that begins with the field."""
    try:
        yield
    except invalid as error:
        raise AuthFileError(f"{where}: {error}") from None


def entries(content: Mapping[str, object], section: str) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Yield the entries of a list, each with its path, such as `users[3]`.

    Raises:
        AuthFileError: if it is not a list of mappings.
    """
    listed = content.get(section) or []
    if not isinstance(listed, list):
        raise AuthFileError(f"{section}: expected a list, got a {_kind(listed)}")
    for number, entry in enumerate(listed):
        where = f"{section}[{number}]"
        if not isinstance(entry, dict):
            raise AuthFileError(f"{where}: expected a mapping, got a {_kind(entry)}")
        yield where, entry


def check_keys(where: str, content: Mapping[str, object], allowed: Sequence[str]) -> None:
    """Raise an error if a mapping has a key that is not allowed.

    Raises:
        AuthFileError: naming the key and those that are allowed.
    """
    if unknown := sorted(set(content) - set(allowed)):
        # What stands in the place of a name may be a part of a hash that is not quoted.
        name = unknown[0] if unknown[0].isidentifier() and len(unknown[0]) < _MOST_SHOWN else "…"
        raise AuthFileError(f"{where}{'.' if where else ''}{name}: unknown field; expected {', '.join(allowed)}")


def text_of(where: str, entry: Mapping[str, object], name: str) -> str:
    """Return a field that is a text.

    Raises:
        AuthFileError: if it is missing or something else.
    """
    if name not in entry:
        raise AuthFileError(f"{where}.{name}: missing")
    value = entry[name]
    if not isinstance(value, str):
        raise AuthFileError(f"{where}.{name}: expected text, got a {_kind(value)}")
    return value


def _kind(value: object) -> str:
    kinds = {dict: "mapping", list: "list", str: "text", bool: "boolean", type(None): "null"}
    return kinds.get(type(value), type(value).__name__)
