"""Type promotion: which primitive types a reader may read as which others, in a natural order for messages.

The compatibility rules and the decoders of `serdes` share this table. The JVM decoder has its own, in `Compiler.java`.
"""

from collections.abc import Mapping
from typing import Final

__all__ = ["PROMOTED_FROM", "PROMOTED_TO"]

PROMOTED_TO: Final[Mapping[str, tuple[str, ...]]] = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "bytes": ("string",),
    "string": ("bytes",),
}
"""The reader types that read a writer type in addition to its own."""

PROMOTED_FROM: Final[Mapping[str, tuple[str, ...]]] = {
    reader: tuple(writer for writer, readers in PROMOTED_TO.items() if reader in readers)
    for reader in ("long", "float", "double", "bytes", "string")
}
"""The writer types that a reader type reads in addition to its own."""
