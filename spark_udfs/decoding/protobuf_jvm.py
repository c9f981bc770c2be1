"""The reader's message of a Protobuf decode, written out for the executors in the JVM.

Presence, defaults and oneofs are settled here, so that executors need to know neither syntax nor editions.

Rules of this file: descriptors in, JSON out; no registry and no bytes of payloads.
"""

import json
import struct
from collections.abc import Sequence
from typing import Any, Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from strata.serdes.protobuf.files import entry_of, link
from strata.spark_udfs.decoding.payload_reader import OnlyInPython
from strata.spark_udfs.decoding.payload_schema import PayloadSchema
from strata.spark_udfs.decoding.protobuf_reader import message_of
from strata.spark_udfs.decoding.protobuf_types import WRAPPERS

__all__ = ["KINDS", "head_of", "syntax_of", "write_message"]

_T = FieldDescriptor
KINDS: Final = {
    "google.protobuf.Timestamp": "timestamp",
    "google.protobuf.Duration": "duration",
    **dict.fromkeys(WRAPPERS, "wrapper"),
}
_JSON_TEXTS: Final = frozenset(f"google.protobuf.{name}" for name in ("Struct", "Value", "ListValue"))
_FIXED: Final = {
    _T.TYPE_DOUBLE: "<d",
    _T.TYPE_FLOAT: "<f",
    _T.TYPE_FIXED32: "<I",
    _T.TYPE_SFIXED32: "<i",
    _T.TYPE_FIXED64: "<Q",
    _T.TYPE_SFIXED64: "<q",
}


def write_message(payload: PayloadSchema) -> str:
    """Return the message to read, with its columns, as JSON for `strata.spark.proto.ProtoReader`.

    Raises:
        OnlyInPython: If the message has a part that the JVM does not decode.
    """
    message = message_of(link(payload.schema, dict(payload.references)), payload.message)
    writer = _MessageWriter()
    chosen = list(dict.fromkeys(payload.columns or ()))
    columns = chosen or [one.name for one in sorted(message.fields, key=lambda one: one.number)]
    names = columns if chosen else [one.name for one in message.fields]
    writer.add(message, names, {name: slot for slot, name in enumerate(columns)})
    return json.dumps({"message": message.full_name, "messages": writer.messages})


class _MessageWriter:
    """Collects a message and those inside it, by full name."""

    def __init__(self) -> None:
        self.messages: dict[str, list[dict[str, Any]]] = {}

    def add(self, message: Descriptor, names: Sequence[str], slots: dict[str, int]) -> None:
        syntax_of(message)  # reject an edition
        chosen = [message.fields_by_name[name] for name in names]
        self.messages[message.full_name] = [self._field(one, slots[one.name], chosen) for one in chosen]

    def _inside(self, message: Descriptor) -> None:
        if message.full_name not in self.messages:
            ordered = sorted(message.fields, key=lambda one: one.number)
            slots = {one.name: slot for slot, one in enumerate(ordered)}
            self.add(message, [one.name for one in message.fields], slots)

    def _field(self, field: FieldDescriptor, slot: int, chosen: Sequence[FieldDescriptor]) -> dict[str, Any]:
        written: dict[str, Any] = {
            **head_of(field),
            "presence": bool(field.has_presence) and not field.has_default_value,
            "zero": _zero(field).hex(),
            "slot": slot,
        }
        if field.type == _T.TYPE_STRING:
            written["text"] = syntax_of(field.containing_type) == "proto3"
        if field.enum_type is not None:
            written["names"] = _names(field.enum_type)
        if field.message_type is not None:
            if field.message_type.full_name in _JSON_TEXTS:
                raise OnlyInPython(f"the {field.message_type.full_name} {field.full_name}")
            written["message"] = field.message_type.full_name
            written["kind"] = KINDS.get(field.message_type.full_name, "")
            self._inside(field.message_type)
        oneof = field.containing_oneof
        if oneof is not None and sum(one in chosen for one in oneof.fields) > 1:
            written["oneof"] = oneof.index
        return written


def _names(enum: Any) -> dict[str, str]:
    if enum.is_closed:  # unknown numbers of it are unknown fields
        raise OnlyInPython(f"the closed enum {enum.full_name}")
    names: dict[str, str] = {}
    for one in enum.values:
        names.setdefault(str(one.number), one.name)
    return names


def syntax_of(message: Any) -> str:
    """Return the syntax of a message's file: `proto3`, or an empty text for proto2.

    Raises:
        OnlyInPython: If it is an edition.
    """
    file = FileDescriptorProto()
    message.file.CopyToProto(file)
    if file.syntax == "editions":
        raise OnlyInPython(f"an edition of Protobuf ({message.full_name})")
    return file.syntax


def head_of(field: FieldDescriptor) -> dict[str, Any]:
    """Return what the JVM needs of a field to decode or encode it.

    Raises:
        OnlyInPython: If the field is a group.
    """
    if field.type == _T.TYPE_GROUP:
        raise OnlyInPython(f"the group {field.full_name}")
    label = "map" if entry_of(field) is not None else "many" if field.is_repeated else "one"
    return {"name": field.name, "number": field.number, "type": field.type, "label": label}


def _zero(field: FieldDescriptor) -> bytes:
    """Return the value of a field that is absent, in the wire format without its tag."""
    value = 0 if field.is_repeated or field.message_type is not None else field.default_value
    if field.type in _FIXED:
        return struct.pack(_FIXED[field.type], value)
    if field.type in (_T.TYPE_STRING, _T.TYPE_BYTES):
        content = b"" if value == 0 else value.encode() if isinstance(value, str) else bytes(value)
        return _varint(len(content)) + content
    if field.type in (_T.TYPE_SINT32, _T.TYPE_SINT64):
        value = value << 1 if value >= 0 else ~(value << 1)
    return _varint(int(value) & 0xFFFF_FFFF_FFFF_FFFF)


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
