"""Protobuf payloads read into the columns of one message.

The indexes in a frame lead to a message of the writer schema, which must have the full name of the message to read. Its
bytes are parsed as the reader's message, by a class that is made once for each writer schema.

Rules of this file: `strata.serdes.protobuf.files` handles descriptors, `protobuf_types` handles columns.
"""

from collections.abc import Container

from google.protobuf.descriptor import Descriptor, FileDescriptor
from google.protobuf.message import DecodeError as ParseError
from google.protobuf.message import Message

from strata.serdes.client import RegistryClient, Schema
from strata.serdes.errors import DecodeError, DecodeReason
from strata.serdes.model import PROTOBUF
from strata.serdes.protobuf.files import find_message, link, message_named
from strata.serdes.protobuf.wire_types import parsed_strictly
from strata.serdes.references import resolve
from strata.spark_udfs.decoding.payload_reader import Parse, Undecodable, Writer
from strata.spark_udfs.decoding.payload_schema import PayloadSchema
from strata.spark_udfs.decoding.protobuf_evolution import FieldMismatch, class_to_read
from strata.spark_udfs.decoding.protobuf_types import shape_of

__all__ = ["ProtobufReader", "message_of"]


class ProtobufReader:
    """A reader of messages into columns."""

    format = PROTOBUF
    indexed = True

    def __init__(self, schema: PayloadSchema) -> None:
        self._message = message_of(link(schema.schema, dict(schema.references)), schema.message)
        self._columns = schema.columns or [field.name for field in self._message.fields]
        self.shape = shape_of(self._message, schema.columns)

    def writer(self, client: RegistryClient, schema: Schema) -> Writer:
        """Return the parsers for payloads of a writer schema; see `PayloadReader`."""
        file = link(schema, resolve(client, schema))
        return lambda indexes: self._parse(find_message(file, indexes))

    def _parse(self, written: Descriptor) -> Parse:
        if written.full_name != self._message.full_name:
            raise Undecodable(
                f"message is {written.full_name}", f"expected a {self._message.full_name}, got a {written.full_name}"
            )
        try:
            return _parser(class_to_read(self._message, written, self._columns), self._columns)
        except FieldMismatch as error:
            raise Undecodable(str(error)) from None


def message_of(file: FileDescriptor, name: str | None) -> Descriptor:
    """Return a message of the file or its imports, nested or not; without a name the first.

    Raises:
        ValueError: If there is no such message.
    """
    if name is None:
        return find_message(file, (0,))
    message = message_named(file, name)
    if message is None:
        known = ", ".join(message.full_name for message in file.message_types_by_name.values())
        raise ValueError(f"no message {name}; the reader schema has {known}")
    return message


def _parser(message_class: type[Message], columns: Container[str]) -> Parse:
    parse = message_class.FromString
    unread = {field.number for field in message_class.DESCRIPTOR.fields if field.name not in columns}

    def parsed(payload: bytes) -> object:
        try:
            return parsed_strictly(parse, payload, unread)
        except (ParseError, ValueError) as error:
            reason = DecodeReason.INVALID_UTF8 if "UTF-8" in str(error) else DecodeReason.MALFORMED
            raise DecodeError(reason, f"not a {message_class.DESCRIPTOR.full_name}") from None

    return parsed
