"""The result of every format's parser, and the error that it raises.

`SchemaFormat` contains only formats that are implemented.
"""

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["ParsedSchema", "ResolvedReference", "SchemaFormat", "SchemaParseError"]


class SchemaFormat(StrEnum):
    """A schema language, spelled as `schemaType` on the wire."""

    AVRO = "AVRO"
    JSON = "JSON"
    PROTOBUF = "PROTOBUF"


class SchemaParseError(ValueError):
    """The text is not a schema of its format; the message says what is wrong, and where."""


@dataclass(frozen=True, slots=True)
class ResolvedReference:
    """A schema that another one refers to by a name.

    In a sequence of references, each occurs once, and after the references that it needs itself.
    """

    name: str  # the name in the referring schema: an Avro type, a JSON Schema URI, a Protobuf import
    text: str  # the schema text as stored
    identity: str = ""  # equal for two references if, and only if, they lead to the same registered version


@dataclass(frozen=True)
class ParsedSchema:
    """A parsed schema; each format's subclass adds its model."""

    format: SchemaFormat
    canonical: str  # the text that is stored, and from which the identity of the schema is computed

    @property
    def is_read_alike(self) -> bool:
        """Whether the stored text, read leniently and without references, is known to give this very model."""
        return False

    @property
    def outline(self) -> int:
        """A number that schemas share if they are equivalent, and most others do not."""
        return 0
