"""Type promotion: which primitive types a reader may read as which others, in a natural order for messages."""

from collections.abc import Mapping
from typing import Final

__all__ = ["PROMOTED_FROM", "PROMOTED_TO"]

PROMOTED_FROM: Final[Mapping[str, tuple[str, ...]]] = {
    "long": ("int",),
    "float": ("int", "long"),
    "double": ("int", "long", "float"),
    "bytes": ("string",),
    "string": ("bytes",),
}
"""The writer types that a reader type reads in addition to its own."""

PROMOTED_TO: Final[Mapping[str, tuple[str, ...]]] = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "bytes": ("string",),
    "string": ("bytes",),
}
"""The reader types that read a writer type in addition to its own."""
