"""What every format's parser returns, and the error it raises.

A format stands in `SchemaFormat` only together with its implementation, so the enum is the list of what works.
"""

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["ParsedSchema", "ResolvedReference", "SchemaFormat", "SchemaParseError"]


class SchemaFormat(StrEnum):
    """A schema language, spelled as `schemaType` spells it on the wire."""

    AVRO = "AVRO"
    JSON = "JSON"
    PROTOBUF = "PROTOBUF"


class SchemaParseError(ValueError):
    """The text is no schema of its format; the message says what is wrong, and where."""


@dataclass(frozen=True, slots=True)
class ResolvedReference:
    """A schema that another one refers to by a name.

    What a reference itself refers to comes before it in a sequence of these, and each stands there once.
    """

    name: str  # how the referring schema names it: an Avro type, a JSON Schema URI, a Protobuf import
    text: str  # its schema text as stored
    identity: str = ""  # equal for two references if, and only if, they lead to the same registered version


@dataclass(frozen=True)
class ParsedSchema:
    """A schema that has been read; each format's own class adds the model it was read into."""

    format: SchemaFormat
    canonical: str  # the text that is stored, and that the identity of the schema is computed from
