"""Which primitive type a reader may make of which other, in the order in which a person would list them."""

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
"""What a reader type reads besides its own."""

PROMOTED_TO: Final[Mapping[str, tuple[str, ...]]] = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "bytes": ("string",),
    "string": ("bytes",),
}
"""The same from the writer's side."""
