"""Payloads of writers' schemas, each parsed by the writer's file and by a candidate's.

Rules of this file: it parses; what the two messages show is compared in `differences`.
"""

from typing import NamedTuple

from google.protobuf.message import DecodeError as ParseError
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from strata.serdes.client import RegistryClient, Schema
from strata.serdes.errors import DecodeError, DecodeReason, SchemaError
from strata.serdes.framing import MessagePath, SchemaName
from strata.serdes.model import PROTOBUF
from strata.serdes.protobuf.differences import Difference, differences, first_missing
from strata.serdes.protobuf.files import find_message, link, message_named
from strata.serdes.references import resolve

__all__ = ["Reading", "Readings"]

_MOST_KEPT = 1000


class Reading(NamedTuple):
    """A payload as it was written, as the candidate reads it, and where the two differ."""

    written: Message
    read: Message
    differences: list[Difference]


class Readings:
    """Reads the payloads of any writer's schema with a candidate.

    Args:
        candidate: the schema, whose references are versions of the registry.
        client: the registry.

    Raises:
        SchemaError: If the candidate cannot be used.
        SerdeError: If the registry does not know a reference, or does not answer.
    """

    def __init__(self, candidate: Schema, client: RegistryClient) -> None:
        self._client = client
        self._file = link(candidate, resolve(client, candidate))
        self._classes: dict[tuple[SchemaName, MessagePath], tuple[type[Message], type[Message]]] = {}

    def read(self, schema: Schema, name: SchemaName, path: MessagePath, payload: bytes) -> Reading:
        """Return what a payload holds.

        Args:
            schema: the writer's schema.
            name: the name of the schema in frames.
            path: the message indexes of the frame.
            payload: the bytes of the message.

        Raises:
            DecodeError: If a parser refuses the bytes, or the message lacks a field that the candidate requires.
            SchemaError: If the writer's schema cannot be used, or the candidate does not have its message.
        """
        classes = self._classes.get((name, path))
        if classes is None:
            if len(self._classes) >= _MOST_KEPT:
                self._classes.clear()
            classes = self._classes[name, path] = self._found(schema, path)
        written, read = (_parsed(message_class, payload) for message_class in classes)
        try:
            missing = first_missing(read)
            changes = list(differences(written, read))
        except UnicodeDecodeError as error:  # a text of proto2, which the parser does not check
            raise _malformed(classes[1], error) from None
        if missing is not None and written.IsInitialized():
            raise DecodeError(DecodeReason.MALFORMED, "the message lacks a required field", path=missing)
        return Reading(written, read, changes)

    def _found(self, schema: Schema, path: MessagePath) -> tuple[type[Message], type[Message]]:
        if schema.format != PROTOBUF:
            raise SchemaError(f"the frame holds {schema.format}, the candidate is {PROTOBUF}")
        written = find_message(link(schema, resolve(self._client, schema)), path)
        read = message_named(self._file, written.full_name)
        if read is None:
            raise SchemaError(f"the candidate has no message {written.full_name}")
        return GetMessageClass(written), GetMessageClass(read)


def _parsed(message_class: type[Message], payload: bytes) -> Message:
    try:
        return message_class.FromString(payload)
    except (ParseError, ValueError, RecursionError) as error:
        raise _malformed(message_class, error) from None


def _malformed(message_class: type[Message], error: Exception) -> DecodeError:
    return DecodeError(DecodeReason.MALFORMED, f"not a {message_class.DESCRIPTOR.full_name}: {error}")
