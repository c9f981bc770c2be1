"""What every format's parser returns, and the error it raises.

A format stands in `SchemaFormat` only together with its implementation, so the enum is the list of what works.
"""

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["ParsedSchema", "SchemaFormat", "SchemaParseError"]


class SchemaFormat(StrEnum):
    """A schema language, spelled as `schemaType` spells it on the wire."""

    AVRO = "AVRO"


class SchemaParseError(ValueError):
    """The text is no schema of its format; the message says what is wrong, and where."""


@dataclass(frozen=True)
class ParsedSchema:
    """A schema that has been read; each format's own class adds the model it was read into."""

    format: SchemaFormat
    canonical: str  # the text that is stored, and that the identity of the schema is computed from
