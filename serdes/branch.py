"""A value of an Avro union with its branch; a module of its own, since rules handle it without importing Avro."""

from typing import Any, NamedTuple

__all__ = ["Branch"]


class Branch(NamedTuple):
    """A value of a union with the position of its type in the reader's union."""

    position: int
    value: Any
