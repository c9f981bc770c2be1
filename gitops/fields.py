"""Typed access to the mappings of a manifest; every error names the place, and no key goes unread."""

from collections.abc import Mapping
from typing import Any

from strata.gitops.errors import GitopsError

__all__ = ["Fields"]

_FLAGS = {"true": True, "false": False}


class Fields:
    """A mapping of a manifest.

    Args:
        where: the place of the mapping, for errors.
        value: the mapping; an absent one is empty.

    Raises:
        GitopsError: If the value is not a mapping.
    """

    def __init__(self, where: str, value: object) -> None:
        if value in (None, ""):
            value = {}
        if not isinstance(value, dict):
            raise GitopsError(f"{where}: expected a mapping")
        self.where, self._value = where, value

    def only(self, allowed: Mapping[str, object]) -> "Fields":
        """Return the mapping itself, whose keys must all be allowed ones.

        Raises:
            GitopsError: If there is another key.
        """
        for name in self._value:
            if name not in allowed:
                raise GitopsError(f"{self.where}: unknown key {name!r}; expected {', '.join(sorted(allowed))}")
        return self

    def __contains__(self, name: str) -> bool:
        return name in self._value

    def raw(self, name: str) -> object:
        """Return a value as it is; None if it is absent."""
        return self._value.get(name)

    def text(self, name: str) -> str | None:
        """Return a text; None if it is absent.

        Raises:
            GitopsError: If it is not text.
        """
        value = self._value.get(name)
        if value is not None and not isinstance(value, str):
            raise GitopsError(f"{self.where}.{name}: expected text")
        return value

    def choice(self, name: str, allowed: tuple[str, ...]) -> str | None:
        """Return one of some words in upper case; None if it is absent.

        Raises:
            GitopsError: If it is another word.
        """
        value = self.text(name)
        if value is not None and value.upper() not in allowed:
            raise GitopsError(f"{self.where}.{name}: expected {', '.join(allowed)}, got {value!r}")
        return None if value is None else value.upper()

    def flag(self, name: str) -> bool | None:
        """Return true or false; None if it is absent.

        Raises:
            GitopsError: If it is something else.
        """
        value = self.text(name)
        if value is not None and value.lower() not in _FLAGS:
            raise GitopsError(f"{self.where}.{name}: expected true or false, got {value!r}")
        return None if value is None else _FLAGS[value.lower()]

    def number(self, name: str) -> int | None:
        """Return a positive number; None if it is absent.

        Raises:
            GitopsError: If it is something else.
        """
        value = self.text(name)
        if value is not None and not (value.isascii() and value.isdigit() and 0 < int(value) < 1 << 31):
            raise GitopsError(f"{self.where}.{name}: expected a number from 1, got {value!r}")
        return None if value is None else int(value)

    def inner(self, name: str) -> "Fields":
        """Return a mapping, which is empty if it is absent.

        Raises:
            GitopsError: If it is not a mapping.
        """
        return Fields(f"{self.where}.{name}", self._value.get(name))

    def items(self, name: str) -> list[tuple[str, Any]]:
        """Return the items of a list with the place of each; empty if the list is absent.

        Raises:
            GitopsError: If it is not a list.
        """
        value = self._value.get(name)
        if value in (None, ""):
            return []
        if not isinstance(value, list):
            raise GitopsError(f"{self.where}.{name}: expected a list")
        return [(f"{self.where}.{name}[{index}]", item) for index, item in enumerate(value)]

    def texts(self, name: str) -> list[str]:
        """Return a list of texts; empty if it is absent.

        Raises:
            GitopsError: If it is something else.
        """
        items = self.items(name)
        for where, item in items:
            if not isinstance(item, str):
                raise GitopsError(f"{where}: expected text")
        return [item for _, item in items]

    def names(self) -> list[str]:
        """Return the keys."""
        return list(self._value)

    def raw_all(self) -> dict[str, Any]:
        """Return the mapping as it is."""
        return dict(self._value)
