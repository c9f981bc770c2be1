"""What libraries that are not ours read from the payloads of the rules of decoding."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError

from harness.payload_columns import kind_of
from strata.serdes.client import Schema

__all__ = ["has_columns", "read_by_json", "read_by_protobuf"]


def read_by_protobuf(reader: Schema, payload: bytes, columns: Sequence[str] | None) -> Any:
    """Return what Google's library reads from a payload of the first message, or a text: it is malformed.

    Args:
        reader: the schema.
        payload: message indexes and message.
        columns: the fields to return; None for all.
    """
    try:
        return _message(kind_of(reader).FromString(payload[1:]), columns)
    except (DecodeError, UnicodeDecodeError):
        return "malformed"


def _message(message: Any, columns: Sequence[str] | None = None) -> dict[str, Any]:
    type_ = type(message)  # a field may be called as a method
    return {
        field.name: None if field.has_presence and not type_.HasField(message, field.name) else _field(message, field)
        for field in type_.DESCRIPTOR.fields
        if columns is None or field.name in columns
    }


def _field(message: Any, field: FieldDescriptor) -> Any:
    value = getattr(message, field.name)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        key, item = field.message_type.fields
        return {_value(key, name): _value(item, value[name]) for name in value}
    return [_value(field, item) for item in value] if field.is_repeated else _value(field, value)


def _value(field: FieldDescriptor, value: Any) -> Any:
    if field.message_type is not None:
        return _known(field.message_type.full_name, value)
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return str(value) if known is None else known.name
    is_unsigned = field.type in (FieldDescriptor.TYPE_UINT64, FieldDescriptor.TYPE_FIXED64)
    return Decimal(value) if is_unsigned else value


def _known(name: str, value: Any) -> Any:
    if name == "google.protobuf.Timestamp":
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=value.seconds, microseconds=value.nanos // 1000)
    if name == "google.protobuf.Duration":
        return timedelta(seconds=value.seconds, microseconds=int(value.nanos / 1000))
    if name.startswith("google.protobuf.") and name.endswith("Value"):
        return _value(value.DESCRIPTOR.fields_by_name["value"], value.value)
    return _message(value)


def read_by_json(payload: bytes) -> Any:
    """Return what Python's parser reads from a payload, or a text: it is malformed."""
    try:
        return json.loads(payload)
    except (ValueError, RecursionError):
        return "malformed"


def has_columns(document: Any, value: Any) -> bool:
    """Return whether a document has the values of some columns, which may be texts of its parts."""
    if isinstance(value, dict):
        return isinstance(document, dict) and all(has_columns(document.get(name), value[name]) for name in value)
    if isinstance(value, list):
        return isinstance(document, list) and len(document) == len(value) and all(map(has_columns, document, value))
    if isinstance(value, str) and document != value:
        return bool(read_by_json(value.encode()) == document)
    return bool(document == value or (isinstance(value, float) and float(document) == value))
