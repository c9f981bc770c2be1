"""Known fields that were written with another wire type.

Protobuf treats such a field as unknown, so that it reads as its default: a value is lost silently.

Rules of this file: messages in; no registry.
"""

from collections.abc import Callable, Container, Iterable, Iterator
from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import EncodeError, Message
from google.protobuf.unknown_fields import UnknownFieldSet

from strata.serdes.protobuf.files import descriptor_of

__all__ = ["parsed_strictly"]

_T = FieldDescriptor
_BYTES = 2
_WIRE_TYPES: Final = {
    **dict.fromkeys((_T.TYPE_DOUBLE, _T.TYPE_FIXED64, _T.TYPE_SFIXED64), 1),
    **dict.fromkeys((_T.TYPE_FLOAT, _T.TYPE_FIXED32, _T.TYPE_SFIXED32), 5),
    **dict.fromkeys((_T.TYPE_STRING, _T.TYPE_BYTES, _T.TYPE_MESSAGE), _BYTES),
    _T.TYPE_GROUP: 3,
}
_VARINT = 0


def parsed_strictly(parse: Callable[[bytes], Message], payload: bytes, unread: Container[int] = ()) -> Message:
    """Return the message of a payload in which each known field has its own wire type.

    Args:
        parse: parses a payload into a message.
        payload: the bytes of the message.
        unread: the numbers of its fields that may have any wire type, because they are not read.

    Raises:
        ValueError: If a field has another wire type; also what `parse` raises.
    """
    message = parse(payload)
    if not _has_unknown(message):
        return message
    message = parse(payload)
    for part in _messages(message):
        unknown_fields: Any = UnknownFieldSet(part)
        for unknown in unknown_fields:
            field = descriptor_of(part).fields_by_number.get(unknown.field_number)
            if part is message and unknown.field_number in unread:
                continue
            if field is not None and unknown.wire_type not in _accepted(field):
                raise ValueError(f"the field {field.full_name} has the wire type {unknown.wire_type}")
    return message


def _has_unknown(message: Message) -> bool:
    """Drop unknown fields, and return whether there were any."""
    message_class = type(message)  # methods of the class, since fields may hide them
    try:
        size = message_class.ByteSize(message)
    except EncodeError:  # it lacks a required field
        return True
    message_class.DiscardUnknownFields(message)
    return bool(message_class.ByteSize(message) != size)


def _accepted(field: FieldDescriptor) -> tuple[int, ...]:
    """Return the wire types that an unknown value of a field may have: then it is not one that was misread.

    The library keeps a map entry as unknown if it holds anything but a key and a value of their types.
    """
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        value = field.message_type.fields_by_name["value"].enum_type
        return (_BYTES,) if value is not None and value.is_closed else ()
    wire = _WIRE_TYPES.get(field.type, _VARINT)
    return (wire, _BYTES) if field.is_repeated and field.message_type is None else (wire,)


def _messages(message: Message) -> Iterator[Message]:
    """Yield a message and all inside it."""
    pending: list[Message] = [message]
    while pending:
        part = pending.pop()
        yield part
        for field, value in type(part).ListFields(part):
            if field.message_type is not None:
                pending.extend(_held(field, value))


def _held(field: Any, value: Any) -> Iterable[Message]:
    if not field.is_repeated:
        return (value,)
    if not field.message_type.GetOptions().map_entry:
        return tuple(value)
    is_message = field.message_type.fields_by_name["value"].message_type is not None
    return tuple(value.values()) if is_message else ()
