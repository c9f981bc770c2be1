"""Messages to and from protobuf's JSON mapping, with field names as in the schema.

The library calls methods that fields of the same name hide (`message.ListFields()`, `message.DESCRIPTOR`). A message
with such a field, at any depth, is copied into a stand-in class, whose fields are named by their numbers and whose JSON
names are those of the schema.

Rules of this file: errors of the library pass through, except from `dict_of`.
"""

import functools
from typing import Any

from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import Default, DescriptorPool
from google.protobuf.empty_pb2 import Empty
from google.protobuf.json_format import Error as JsonError
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message import DecodeError as ParseError
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from strata.serdes.errors import DecodeError, DecodeReason
from strata.serdes.protobuf.files import copied, descriptor_of

__all__ = ["dict_of", "from_json", "to_json"]

_TAKEN = frozenset(dir(Empty))


class _Types:
    """A lookup of the message type inside an Any: in the message's own pool, then in the program's."""

    def __init__(self, own: DescriptorPool) -> None:
        self._own = own

    def FindMessageTypeByName(self, name: str) -> object:  # noqa: N802 - the name of a pool's method
        try:
            return self._own.FindMessageTypeByName(name)
        except KeyError:
            return Default().FindMessageTypeByName(name)


def to_json(message: Message) -> dict[str, object]:
    """Return a message as a JSON value.

    Raises:
        json_format.Error: If JSON has no value for a part of the message; also built-in errors of the library.
    """
    message_class = type(message)
    types, stand_in = _about(descriptor_of(message_class))
    if stand_in is None:
        return MessageToDict(message, preserving_proto_field_name=True, descriptor_pool=types)
    return MessageToDict(stand_in.FromString(message_class.SerializePartialToString(message)), descriptor_pool=types)


def dict_of(message: Message) -> dict[str, object]:
    """Return a message as a dict in protobuf's JSON mapping, with field names as in the schema.

    Raises:
        DecodeError: If JSON has no value for a part of the message, such as a timestamp out of range.
    """
    try:
        return to_json(message)
    except (JsonError, ParseError, ValueError, TypeError, RecursionError, AttributeError):  # they quote the value
        name = type(message).DESCRIPTOR.full_name
        detail = f"cannot convert the {name} to JSON: a part has no JSON value, such as a time out of range"
        raise DecodeError(DecodeReason.INVALID_VALUE, detail) from None


def from_json(message_class: type[Message], value: Any) -> Message:
    """Return a message of a class from a JSON value.

    Raises:
        json_format.ParseError: If the value does not fit the message; also built-in errors of the library.
    """
    types, stand_in = _about(descriptor_of(message_class))
    made = ParseDict(value, (stand_in or message_class)(), descriptor_pool=types)
    return made if stand_in is None else message_class.FromString(stand_in.SerializePartialToString(made))


@functools.lru_cache(maxsize=1000)
def _about(message: Descriptor) -> tuple[Any, type[Message] | None]:
    """Return the types that an Any in the message may hold, and the stand-in class if one is needed."""
    types = _Types(message.file.pool)
    if not any(field.name in _TAKEN for inner in _reachable(message) for field in inner.fields):
        return types, None
    return types, GetMessageClass(copied(message, _rename_all))


def _reachable(message: Descriptor) -> list[Descriptor]:
    messages = {message.full_name: message}
    rest = [message]
    while rest:
        for field in rest.pop().fields:
            inner = field.message_type
            if inner is not None and inner.full_name not in messages:
                messages[inner.full_name] = inner
                rest.append(inner)
    return list(messages.values())


def _rename_all(file: FileDescriptorProto) -> None:
    if not file.name.startswith("google/protobuf/"):  # the library uses their field names
        for message in file.message_type:
            _rename(message)


def _rename(message: DescriptorProto) -> None:
    for nested in message.nested_type:
        _rename(nested)
    for field in () if message.options.map_entry else message.field:
        field.json_name, field.name = field.name, f"f{field.number}"
