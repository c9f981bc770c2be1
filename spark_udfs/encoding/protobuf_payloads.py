"""Rows as Protobuf messages.

A column has the type that `decode` gives the field: an unsigned number is bigint or decimal(20,0), an enum is its name
(or the digits of its number), a Timestamp is a timestamp, a Duration an interval, a wrapper its scalar. Values are
never changed to fit: a number out of range is an error, and so is a null in a field that cannot tell null from zero.

Rules of this file: values come from Arrow and have its types; the protobuf library handles descriptors and bytes.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Protocol

import pyarrow as pa
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.message import EncodeError as WriteError
from google.protobuf.message_factory import GetMessageClass

from strata.serdes.errors import EncodeError
from strata.serdes.functions import Convert, Encode
from strata.serdes.protobuf.files import entry_of, find_message, link
from strata.spark_udfs.decoding.protobuf_types import WRAPPERS
from strata.spark_udfs.encoding.arrow_values import check_fields, field_path, instant_of
from strata.spark_udfs.encoding.plan import EncodePlan

__all__ = ["protobuf_writer"]

Set = Callable[[Any, Any], None]
"""Puts a non-null value into a message."""

_MICROS: Final = 1_000_000
_INTEGERS: Final = frozenset(
    getattr(FieldDescriptor, f"TYPE_{name}")
    for name in ("INT32", "SINT32", "SFIXED32", "INT64", "SINT64", "SFIXED64", "UINT32", "FIXED32", "UINT64", "FIXED64")
)
_FITS: Final[Mapping[int, Callable[[pa.DataType], bool]]] = {
    **dict.fromkeys(_INTEGERS, lambda arrow_type: pa.types.is_integer(arrow_type) or _is_whole(arrow_type)),
    FieldDescriptor.TYPE_FLOAT: pa.types.is_float32,
    FieldDescriptor.TYPE_DOUBLE: lambda arrow_type: pa.types.is_float32(arrow_type) or pa.types.is_float64(arrow_type),
    FieldDescriptor.TYPE_BOOL: pa.types.is_boolean,
    FieldDescriptor.TYPE_STRING: pa.types.is_string,
    FieldDescriptor.TYPE_BYTES: lambda arrow_type: (
        pa.types.is_binary(arrow_type) or pa.types.is_large_binary(arrow_type)
    ),
    FieldDescriptor.TYPE_ENUM: lambda arrow_type: pa.types.is_string(arrow_type) or pa.types.is_integer(arrow_type),
}


def protobuf_writer(plan: EncodePlan, arrow_type: pa.DataType) -> Encode:
    """Return a function that writes values of an Arrow type as the plan's message.

    Args:
        plan: the plan of the encode.
        arrow_type: the type of the column, a struct.

    Raises:
        EncodeError: If the type does not fit the message.
    """
    make: Any
    if not pa.types.is_struct(arrow_type):
        raise EncodeError(f"expected a struct, got {arrow_type}")
    file = link(plan.target.schema, dict(plan.target.references))
    descriptor = find_message(file, plan.target.identity.message_indexes)
    fill, make = _filler(descriptor, arrow_type, ""), GetMessageClass(descriptor)

    def write(value: object) -> bytes:
        message = make()
        fill(message, value)
        try:
            payload: bytes = make.SerializeToString(message, deterministic=True)  # orders maps
        except (WriteError, ValueError):
            missing = make.FindInitializationErrors(message)
            raise EncodeError("expected a value, got null", path=missing[0] if missing else "") from None
        return payload

    return write


def _filler(message: Descriptor, arrow_type: pa.StructType, path: str) -> Set:
    check_fields(arrow_type, message.fields_by_name, path)
    fields = [message.fields_by_name[field.name] for field in arrow_type]
    setters = [
        (
            field.name,
            _setter(field, part.type, field_path(path, field.name)),
            _can_be_absent(field),
            field_path(path, field.name),
        )
        for field, part in zip(fields, arrow_type, strict=True)
    ]
    names = {field.name for field in fields}
    choices = [[field.name for field in oneof.fields if field.name in names] for oneof in message.oneofs]
    choices = [choice for choice in choices if len(choice) > 1]

    def fill(target: object, value: Mapping[str, object]) -> None:
        for name, put, can_be_absent, place in setters:
            part = value[name]
            if part is not None:
                put(target, part)
            elif not can_be_absent:
                raise EncodeError("expected a value, got null: the field has no presence", path=place)
        for choice in choices:
            members = [name for name in choice if value[name] is not None]
            if len(members) > 1:
                raise EncodeError("expected one member of the oneof, got several", path=field_path(path, members[1]))

    return fill


def _can_be_absent(field: FieldDescriptor) -> bool:
    return bool(field.has_presence) and not field.is_repeated


def _setter(field: FieldDescriptor, arrow_type: pa.DataType, path: str) -> Set:
    name, message = field.name, field.message_type
    entry = entry_of(field)
    if entry is not None:
        return _map_setter(field.name, entry, arrow_type, path)
    if field.is_repeated:
        return _list_setter(field, arrow_type, path)
    if message is not None:
        fill = _message(message, arrow_type, path)

        def put_message(target: object, value: object) -> None:
            part = getattr(target, name)
            part.SetInParent()  # set the message even if nothing in it is set
            fill(part, value)

        return put_message
    convert = _scalar(field, arrow_type, path)

    def put(target: object, value: object) -> None:
        try:
            setattr(target, name, convert(value))
        except (ValueError, TypeError):
            raise EncodeError("out of range", path=path) from None

    return put


def _list_setter(field: FieldDescriptor, arrow_type: pa.DataType, path: str) -> Set:
    if not pa.types.is_list(arrow_type):
        raise EncodeError(f"expected an array, got {arrow_type}", path=path)
    name, place = field.name, f"{path}[]"
    if field.message_type is not None:
        fill = _message(field.message_type, arrow_type.value_type, place)

        def put_messages(target: object, values: Iterable[object]) -> None:
            parts = getattr(target, name)
            for value in values:
                fill(parts.add(), _not_null(value, place))

        return put_messages
    convert = _scalar(field, arrow_type.value_type, place)

    def put(target: object, values: Iterable[object]) -> None:
        try:
            getattr(target, name).extend([convert(_not_null(value, place)) for value in values])
        except (ValueError, TypeError):
            raise EncodeError("out of range", path=place) from None

    return put


def _map_setter(name: str, message: Descriptor, arrow_type: pa.DataType, path: str) -> Set:
    if not pa.types.is_map(arrow_type):
        raise EncodeError(f"expected a map, got {arrow_type}", path=path)
    place = f"{path}{{}}"
    entry = message.fields_by_name
    key = _scalar(entry["key"], arrow_type.key_type, place)
    inner = entry["value"].message_type
    fill = None if inner is None else _message(inner, arrow_type.item_type, place)
    convert = _scalar(entry["value"], arrow_type.item_type, place) if inner is None else None

    def put(target: object, pairs: Iterable[tuple[object, object]]) -> None:
        parts = getattr(target, name)
        for entry, value in pairs:
            part = _not_null(value, place)
            try:
                if convert is not None:
                    parts[key(entry)] = convert(part)
                elif fill is not None:
                    fill(parts[key(entry)], part)
            except (ValueError, TypeError):
                raise EncodeError("out of range", path=place) from None

    return put


def _message(message: Descriptor, arrow_type: pa.DataType, path: str) -> Set:
    """Return the function that fills a message inside another."""
    if message.full_name == "google.protobuf.Timestamp" and pa.types.is_timestamp(arrow_type):
        return lambda target, micros: _set_instant(target, micros, path)
    if message.full_name == "google.protobuf.Duration" and pa.types.is_duration(arrow_type):
        return _set_span
    if message.full_name in WRAPPERS and not pa.types.is_struct(arrow_type):
        return _setter(message.fields_by_name["value"], arrow_type, path)
    if not pa.types.is_struct(arrow_type):
        raise EncodeError(f"expected a struct for {message.full_name}, got {arrow_type}", path=path)
    return _filler(message, arrow_type, path)


class _Seconds(Protocol):
    """A timestamp or a duration, of any class."""

    seconds: int
    nanos: int


def _set_instant(target: _Seconds, micros: int, path: str) -> None:
    instant_of(micros, path)  # raises for years that a Timestamp cannot hold
    target.seconds, rest = divmod(micros, _MICROS)
    target.nanos = 1000 * rest


def _set_span(target: _Seconds, micros: int) -> None:
    seconds, rest = divmod(abs(micros), _MICROS)
    sign = -1 if micros < 0 else 1
    target.seconds, target.nanos = sign * seconds, sign * 1000 * rest


def _scalar(field: FieldDescriptor, arrow_type: pa.DataType, path: str) -> Convert:
    if not _FITS[field.type](arrow_type):
        raise EncodeError(f"expected a column of {_type_name(field)}, got {arrow_type}", path=path)
    if field.enum_type is not None and pa.types.is_string(arrow_type):
        return _enum(field.enum_type, path)
    return int if pa.types.is_decimal(arrow_type) else lambda value: value


def _type_name(field: FieldDescriptor) -> str:
    names = (name for name in dir(FieldDescriptor) if name.startswith("TYPE_"))
    return next(name for name in names if getattr(FieldDescriptor, name) == field.type).removeprefix("TYPE_").lower()


def _enum(enum: EnumDescriptor, path: str) -> Convert:
    numbers = {value.name: value.number for value in enum.values}

    def number(name: str) -> int:
        number_ = numbers.get(name)
        if number_ is not None:
            return number_
        if name.removeprefix("-").isdecimal():
            return int(name)
        raise EncodeError(f"expected a name of the enum {enum.name}", path=path)

    return number


def _not_null(value: object, path: str) -> object:
    if value is None:
        raise EncodeError("expected a value, got null", path=path)
    return value


def _is_whole(arrow_type: pa.DataType) -> bool:
    return bool(pa.types.is_decimal(arrow_type) and arrow_type.scale == 0)
