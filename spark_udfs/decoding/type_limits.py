"""What a reader schema must not be: without a Spark type, recursive, nested too deeply, or too large.

Rules of this file: limits and their errors, for every format; no schema language.
"""

from collections.abc import Hashable, Iterator
from contextlib import contextmanager

__all__ = ["MAX_DEPTH", "Nesting", "RecursiveSchema", "UnsupportedSchema"]

MAX_TYPES = 10_000
"""Types nested in types multiply; no table has this many columns."""
MAX_DEPTH = 100
"""The nesting that protobuf parses; no table is this deep."""

_REMEDY = "leave the field out by `columns`, or give a reader schema without it"


class UnsupportedSchema(ValueError):
    """A reader schema without a Spark type; the message names the field, the reason and the remedy."""

    def __init__(self, path: str, why: str, remedy: str = _REMEDY) -> None:
        super().__init__(
            f"no Spark type for the reader schema {f'at {path}' if path else 'as a whole'}: {why}; {remedy}"
        )
        self.path = path


class RecursiveSchema(UnsupportedSchema):
    """A reader schema with a type that contains itself."""


class Nesting:
    """The state of a walk over a reader schema: the types around it, and how many types it has met.

    Args:
        what: the schema language's word for a type that can contain itself.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._inside: set[Hashable] = set()
        self._left = MAX_TYPES

    def count(self, path: str) -> None:
        """Count one more type.

        Raises:
            UnsupportedSchema: If the schema has too many types.
        """
        self._left -= 1
        if self._left < 0:
            raise UnsupportedSchema(path, f"it has more than {MAX_TYPES} types", "choose `columns`")

    @contextmanager
    def inside(self, key: Hashable, path: str, name: str = "") -> Iterator[None]:
        """Enter a type that has parts, for the length of a `with` block.

        Args:
            key: identifies the type.
            path: its path in the schema, for the error.
            name: its name with a space before it, for the error.

        Raises:
            RecursiveSchema: If the type contains itself.
            UnsupportedSchema: If it is nested too deeply.
        """
        if key in self._inside:
            raise RecursiveSchema(path, f"the {self._what}{name} contains itself")
        if len(self._inside) >= MAX_DEPTH:
            raise UnsupportedSchema(path, f"it is more than {MAX_DEPTH} levels deep")
        self._inside.add(key)
        yield
        self._inside.discard(key)
