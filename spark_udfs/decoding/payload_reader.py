"""What a format gives to the decode of Protobuf and JSON: parsers of payloads, and the builder of columns.

Rules of this file: types only; the formats implement them, and `payload_decoder` uses them.
"""

from collections.abc import Callable
from typing import Protocol

from strata.serdes.client import RegistryClient, Schema
from strata.serdes.framing import MessagePath
from strata.serdes.functions import Decode
from strata.spark_udfs.decoding.arrow_columns import Shape

__all__ = ["OnlyInPython", "Parse", "PayloadReader", "Undecodable", "Writer"]

Parse = Decode
"""Parses a payload into an object; raises DecodeError if the payload is damaged."""
Writer = Callable[[MessagePath], Parse]
"""Returns the parser of the message at some indexes.

Raises SchemaError for invalid indexes, and `Undecodable` for a message that is not read.
"""


class PayloadReader(Protocol):
    """A format's reader of payloads into the columns of one reader schema."""

    format: str
    indexed: bool
    shape: Shape

    def writer(self, client: RegistryClient, schema: Schema) -> Writer:
        """Return the parsers for payloads of a writer schema.

        Args:
            client: the client to read references with.
            schema: the writer schema.

        Raises:
            SchemaError: If the schema or a reference cannot be used.
            SerdeError: If the registry did not return the references of the schema.
        """


class Undecodable(Exception):
    """A writer schema, or one message of it, of which no frame can be decoded; `reason` is the short reason."""

    def __init__(self, reason: str, message: str = "") -> None:
        super().__init__(message or reason)
        self.reason = reason


class OnlyInPython(Exception):
    """A part of a schema that only Python workers decode or encode; the text names it."""
