"""Setting of option values in the messages of descriptors.

A value that does not fit the type of its option is omitted: the reference stores such schemas, so they need a
descriptor as well.
"""

from functools import cache
from typing import Final, cast

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message as Proto
from google.protobuf.message_factory import GetMessageClass

from strata.compat.protobuf.model import Kind, ListValue, MapValue, Scalar, Value

__all__ = ["set_metadata", "set_option", "storable"]

_METADATA: Final = frozenset(f"confluent.{name}_meta" for name in ("file", "message", "field", "enum", "enum_value"))
_METADATA_TAG: Final = 1088
_INTEGERS: Final = frozenset(
    {
        FieldDescriptor.CPPTYPE_INT32,
        FieldDescriptor.CPPTYPE_INT64,
        FieldDescriptor.CPPTYPE_UINT32,
        FieldDescriptor.CPPTYPE_UINT64,
    }
)
_FLOATS: Final = frozenset({FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE})


def set_option(holder: Proto, name: str, value: Value) -> None:
    """Set one of Google's own options; ignore an unknown one.

    Args:
        holder: The message of options.
        name: The name of the option, which may have dots.
        value: Its value.
    """
    first, *path = name.split(".")
    for part in reversed(path):
        value = MapValue(((part, value),))
    field = _field_of(holder, first)
    if field is not None:
        _set(holder, field, value)


def set_metadata(holder: Proto, name: str | None, value: Value) -> None:
    """Set Confluent's metadata; ignore other options.

    Args:
        holder: The message of options, which keeps the metadata as an unknown field.
        name: The full name of the option, or None if it is unknown.
        value: Its value.
    """
    if name not in _METADATA or not isinstance(value, MapValue):
        return
    metadata = _metadata_class()()
    _fill(metadata, value)
    content = metadata.SerializeToString(deterministic=True)
    holder.MergeFromString(_varint(_METADATA_TAG << 3 | 2) + _varint(len(content)) + content)


def storable(text: str) -> str:
    """Return the text with question marks for lone surrogates, which UTF-8 cannot encode."""
    return text.encode("utf-8", "replace").decode("utf-8")


@cache
def _metadata_class() -> type[Proto]:
    """Return the class of Confluent's metadata, from a descriptor that is written out here.

    Making a descriptor from the file itself would need this module. The map is a list of entries here, which keep their
    order.
    """
    file = FileDescriptorProto(name="meta", package="confluent", syntax="proto3")
    string, message = FieldDescriptorProto.TYPE_STRING, FieldDescriptorProto.TYPE_MESSAGE
    one, many = FieldDescriptorProto.LABEL_OPTIONAL, FieldDescriptorProto.LABEL_REPEATED
    meta = file.message_type.add(name="Meta")
    meta.field.add(name="doc", number=1, type=string, label=one)
    meta.field.add(name="params", number=2, type=message, label=many, type_name="ParamsEntry")
    meta.field.add(name="tags", number=3, type=string, label=many)
    meta.field.add(name="rules", number=4, type=message, label=many, type_name="Rule")
    entry = meta.nested_type.add(name="ParamsEntry")
    for number, name in enumerate(("key", "value"), start=1):
        entry.field.add(name=name, number=number, type=string, label=one)
    rule = file.message_type.add(name="Rule")
    for number, name in enumerate(("name", "doc", "expr", "sql"), start=1):
        rule.field.add(name=name, number=number, type=string, label=one)
    pool = DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return GetMessageClass(pool.FindMessageTypeByName("confluent.Meta"))


def _varint(number: int) -> bytes:
    written = bytearray()
    while number > 0x7F:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    written.append(number)
    return bytes(written)


def _field_of(target: Proto, name: str) -> FieldDescriptor | None:
    return cast("FieldDescriptor | None", target.DESCRIPTOR.fields_by_name.get(name))


def _fill(target: Proto, value: MapValue) -> None:
    for key, inner in value.entries:
        field = _field_of(target, key)
        if field is not None:
            _set(target, field, inner)


def _set(target: Proto, field: FieldDescriptor, value: Value) -> None:
    if not field.is_repeated:
        if field.message_type is None:
            _assign(target, field, value)
        elif isinstance(value, MapValue):
            inner = getattr(target, field.name)
            inner.SetInParent()
            _fill(inner, value)
        return
    for item in value.items if isinstance(value, ListValue) else (value,):
        _append(target, field, item)


def _append(target: Proto, field: FieldDescriptor, value: Value) -> None:
    repeated = getattr(target, field.name)
    if field.message_type is None:
        converted = _converted(field, value)
        if converted is not None:
            repeated.append(converted)
    elif isinstance(value, MapValue):
        _fill(repeated.add(), value)


def _assign(target: Proto, field: FieldDescriptor, value: Value) -> None:
    converted = _converted(field, value)
    if converted is None:
        return
    try:
        setattr(target, field.name, converted)
    except (ValueError, TypeError):  # out of the field's range
        return


def _converted(field: FieldDescriptor, value: Value) -> object | None:
    """Return the value converted to the type of the field, or None if it does not fit."""
    if not isinstance(value, Scalar):
        return None
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return value.text == "true" if value.kind is Kind.BOOLEAN else None
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        text = storable(value.text)
        return text.encode() if field.type == FieldDescriptor.TYPE_BYTES else text
    if field.enum_type is not None:
        constant = field.enum_type.values_by_name.get(value.text)
        return None if constant is None else constant.number
    try:
        if field.cpp_type in _INTEGERS:
            return int(value.text, 0 if value.text[:2].lower() == "0x" else 10)
        return float(value.text) if field.cpp_type in _FLOATS else None
    except ValueError:
        return None
