"""Setting of option values in the messages of descriptors.

A value that does not fit the type of its option is omitted: the reference stores such schemas, so they need a
descriptor as well.
"""

from typing import Final, cast

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message as Proto

from strata.compat.protobuf.model import Kind, ListValue, MapValue, Scalar, Value, in_maps

__all__ = ["set_extension", "set_option", "storable"]

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
    _fill(holder, MapValue(((first, in_maps(path, value)),)))


def set_extension(holder: Proto, extension: FieldDescriptor, value: MapValue) -> None:
    """Set an option that is a message.

    Args:
        holder: The message of options.
        extension: The option.
        value: Its value.
    """
    message: Proto = holder.Extensions[extension]  # type: ignore[index]
    message.SetInParent()
    _fill(message, value)


def storable(text: str) -> str:
    """Return the text with question marks for lone surrogates, which UTF-8 cannot encode."""
    return text.encode("utf-8", "replace").decode("utf-8")


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
