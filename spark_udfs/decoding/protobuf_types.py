"""Protobuf messages in Spark: their types, and how messages become columns.

The mapping is that of Spark's own `from_protobuf` (4.0 and later), except where noted:

    int32, sint32, sfixed32        int              bool                     boolean
    int64, sint64, sfixed64        bigint           string                   string
    uint32, fixed32                bigint    [1]    bytes                    binary
    uint64, fixed64                decimal(20,0) [1]  enum                   string; an unknown number as its digits
    float, double                  float, double    message, group           struct
    repeated                       array            map                      map
    google.protobuf.Timestamp      timestamp        google.protobuf.Duration interval day to second
    google.protobuf.Int32Value …   the scalar, null where the wrapper is absent [2]
    google.protobuf.Struct, Value, ListValue    string: the JSON text; from_protobuf rejects them as recursive
    google.protobuf.Any            struct<type_url, value>: no schema of the registry describes its content

Columns are in the order of field numbers, because the order of the text does not survive all its forms in the registry.
A field with presence (messages, `optional`, members of a oneof, fields of proto2) is null when absent, except for an
explicit proto2 default. Any other scalar is never null: absent is zero [3].

    [1] from_protobuf: int and bigint that overflow into negatives, unless `upcast.unsigned.ints` is set
    [2] from_protobuf: struct<value>, unless `unwrap.primitive.wrapper.types` is set
    [3] from_protobuf: null for a zero, unless `emit.default.values` is set; and every column is nullable there

Rules of this file: descriptors in, shapes out; no registry and no bytes.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any, Final, Protocol

import pyarrow as pa
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.json_format import MessageToDict, SerializeToJsonError
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from strata.serdes.avro.projection import chosen
from strata.serdes.errors import DecodeError, DecodeReason
from strata.serdes.protobuf.files import entry_of
from strata.spark_udfs.decoding import arrow_columns
from strata.spark_udfs.decoding.arrow_columns import Build, Shape
from strata.spark_udfs.decoding.type_limits import Nesting

__all__ = ["WRAPPERS", "shape_of"]

Get = Callable[[Sequence[Any]], Sequence[object]]
"""Takes a field from every message; None where it is absent."""

_UINT64 = pa.decimal128(20, 0)
_INSTANT = pa.timestamp("us", "UTC")
_SPAN = pa.duration("us")


def _unsigned(values: Sequence[int | None]) -> pa.Array:
    return arrow_columns.built(values, pa.uint64()).cast(_UINT64)  # converting through integers is faster


_INT = arrow_columns.scalar(pa.int32())
_LONG = arrow_columns.scalar(pa.int64())
_ULONG = Shape(_UINT64, _unsigned)
_STRING = arrow_columns.scalar(pa.string())

_SCALARS: Final[dict[int, Shape]] = {
    FieldDescriptor.TYPE_INT32: _INT,
    FieldDescriptor.TYPE_SINT32: _INT,
    FieldDescriptor.TYPE_SFIXED32: _INT,
    FieldDescriptor.TYPE_INT64: _LONG,
    FieldDescriptor.TYPE_SINT64: _LONG,
    FieldDescriptor.TYPE_SFIXED64: _LONG,
    FieldDescriptor.TYPE_UINT32: _LONG,
    FieldDescriptor.TYPE_FIXED32: _LONG,
    FieldDescriptor.TYPE_UINT64: _ULONG,
    FieldDescriptor.TYPE_FIXED64: _ULONG,
    FieldDescriptor.TYPE_FLOAT: arrow_columns.scalar(pa.float32()),
    FieldDescriptor.TYPE_DOUBLE: arrow_columns.scalar(pa.float64()),
    FieldDescriptor.TYPE_BOOL: arrow_columns.scalar(pa.bool_()),
    FieldDescriptor.TYPE_STRING: _STRING,
    FieldDescriptor.TYPE_BYTES: arrow_columns.scalar(pa.binary()),
}
WRAPPERS: Final = frozenset(
    f"google.protobuf.{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)
"""Messages that hold one scalar."""


class _Seconds(Protocol):
    """A timestamp or a duration, of any class."""

    @property
    def seconds(self) -> int: ...
    @property
    def nanos(self) -> int: ...


def _instants(messages: Sequence[_Seconds | None]) -> pa.Array:
    micros = [None if message is None else message.seconds * 1_000_000 + message.nanos // 1000 for message in messages]
    return arrow_columns.built(micros, pa.int64()).cast(_INSTANT)


def _spans(messages: Sequence[_Seconds | None]) -> pa.Array:
    # Nanoseconds have the sign of the seconds; the part below a microsecond is cut off, towards zero.
    micros = [
        None if message is None else message.seconds * 1_000_000 + int(message.nanos / 1000) for message in messages
    ]
    return arrow_columns.built(micros, pa.int64()).cast(_SPAN)


def _json_texts(messages: Sequence[Message | None]) -> pa.Array:
    return arrow_columns.built([None if message is None else _json_text(message) for message in messages], pa.string())


def _json_text(message: Message) -> str:
    try:
        return json.dumps(MessageToDict(message), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (SerializeToJsonError, ValueError):  # JSON has no infinities
        raise DecodeError(DecodeReason.OUT_OF_RANGE) from None


_WELL_KNOWN: Final[dict[str, Shape]] = {
    **dict.fromkeys(
        (f"google.protobuf.{name}" for name in ("Struct", "Value", "ListValue")),
        Shape(pa.string(), _json_texts),
    ),
    "google.protobuf.Timestamp": Shape(_INSTANT, _instants),
    "google.protobuf.Duration": Shape(_SPAN, _spans),
}


def shape_of(message: Descriptor, columns: Sequence[str] | None = None) -> Shape:
    """Return the shape of a message; its builder takes messages with these fields, of any class.

    Args:
        message: the reader schema's message.
        columns: the fields to make columns of, in this order; None means all.

    Raises:
        UnsupportedSchema: If a part of the message has no Spark type.
        ValueError: If `columns` are not fields of the message.
    """
    names = _field_names(message)
    if columns is not None:
        names = chosen(names, columns, f"the reader schema {message.full_name}")
    return _ShapeBuilder().struct(message, "", names)


class _ShapeBuilder:
    """Builds the shape of one message."""

    def __init__(self) -> None:
        self._nesting = Nesting("message")

    def struct(self, message: Descriptor, path: str, names: Sequence[str]) -> Shape:
        fields = [message.fields_by_name[name] for name in names]
        with self._nesting.inside(message.full_name, path, f" {message.full_name}"):
            shapes = [self._field(field, f"{path}.{field.name}".lstrip(".")) for field in fields]
        arrow = arrow_columns.struct_type(zip(names, shapes, strict=True))
        getters = [_getter(field) for field in fields]
        absent = GetMessageClass(message)()
        build = _structs(list(zip(names, getters, [shape.build for shape in shapes], strict=True)), arrow, absent)
        return Shape(arrow, build)

    def _field(self, field: FieldDescriptor, path: str) -> Shape:
        self._nesting.count(path)
        entry = entry_of(field)
        if entry is not None:
            key, value = entry.fields_by_name["key"], entry.fields_by_name["value"]
            return _maps(self._single(key, path), self._single(value, f"{path}{{}}"))
        if field.is_repeated:
            return _lists(self._single(field, f"{path}[]"))
        shape = self._single(field, path)
        return arrow_columns.as_nullable(shape) if _has_presence(field) else shape

    def _single(self, field: FieldDescriptor, path: str) -> Shape:
        """Return the shape of one value of a field."""
        message = field.message_type
        if field.enum_type is not None:
            return Shape(_STRING.arrow, _names(field.enum_type))
        if message is None:
            return _SCALARS[field.type]
        if message.full_name in _WELL_KNOWN:
            return _WELL_KNOWN[message.full_name]
        if message.full_name in WRAPPERS:
            inner = _SCALARS[message.fields_by_name["value"].type]
            return Shape(inner.arrow, _unwrapped(inner.build))
        return self.struct(message, path, _field_names(message))


def _field_names(message: Descriptor) -> list[str]:
    return [field.name for field in sorted(message.fields, key=lambda field: field.number)]


def _has_presence(field: FieldDescriptor) -> bool:
    return bool(field.has_presence) and not field.has_default_value


def _getter(field: FieldDescriptor) -> Get:
    get = attrgetter(field.name)
    if field.is_repeated or not _has_presence(field):
        return lambda messages: list(map(get, messages))
    name = field.name
    return lambda messages: [get(message) if type(message).HasField(message, name) else None for message in messages]


def _structs(columns: Sequence[tuple[str, Get, Build]], arrow_type: pa.StructType, absent: Message) -> Build:
    """Return a builder of structs; under a null struct, non-nullable columns get the values of an empty message."""

    def build(messages: Sequence[Message | None]) -> pa.Array:
        missing = [message is None for message in messages]
        present = [absent if message is None else message for message in messages] if True in missing else messages
        return arrow_columns.struct_array(
            [arrow_columns.under(name, column, get(present)) for name, get, column in columns], arrow_type, missing
        )

    return build


def _lists(item: Shape) -> Shape:
    arrow = arrow_columns.list_type(item)

    def build(values: Sequence[Sequence[object]]) -> pa.Array:
        items = arrow_columns.under("[]", item.build, list(chain.from_iterable(values)))
        return arrow_columns.list_array(items, arrow, list(map(len, values)))

    return Shape(arrow, build)


def _maps(key: Shape, value: Shape) -> Shape:
    arrow = arrow_columns.map_type(key, value)

    def build(values: Sequence[Mapping[object, object]]) -> pa.Array:
        keys = arrow_columns.under("{}", key.build, list(chain.from_iterable(values)))
        items = arrow_columns.under("{}", value.build, [value[name] for value in values for name in value])
        return arrow_columns.map_array(keys, items, arrow, list(map(len, values)))

    return Shape(arrow, build)


class _Names(dict[int | None, str | None]):
    """Names by enum number; for aliases the first name counts."""

    def __missing__(self, number: int | None) -> str:
        return str(number)  # not cached: payloads can contain any number


def _names(enum: EnumDescriptor) -> Build:
    names = _Names({None: None})
    for value in enum.values:
        names.setdefault(value.number, value.name)
    return lambda numbers: arrow_columns.built(list(map(names.__getitem__, numbers)), pa.string())


def _unwrapped(inner: Build) -> Build:
    return lambda wrappers: inner([None if wrapper is None else wrapper.value for wrapper in wrappers])
