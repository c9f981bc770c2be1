"""The logical type of a Protobuf schema: that of its first message.

Parameters in `(confluent.field_meta)` refine the plain types. Source: the policy LOGICAL of the Confluent Schema
Registry 8.5, from its answers.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from strata.compat.limits import Limits
from strata.compat.logical import types
from strata.compat.logical.types import Column, Default, Kind, LogicalSchema, LogicalType, TranslationError
from strata.compat.protobuf.model import SCALARS, Enum, Field, ListValue, MapValue, Message, Scalar, in_maps, map_types
from strata.compat.protobuf.names import LOCAL, Known, inside
from strata.compat.protobuf.schema import ProtobufSchema

__all__ = ["translate"]

_Parameters = Mapping[str, str]
_NONE: Final[_Parameters] = {}
_META: Final = "confluent.field_meta"
_INTEGERS: Final = {"int8": Kind.TINYINT, "int16": Kind.SMALLINT}
_PLAIN: Final[Mapping[str, Kind]] = {
    **dict.fromkeys(("int32", "sint32", "sfixed32"), Kind.INT),
    **dict.fromkeys(("uint32", "fixed32", "int64", "uint64", "sint64", "fixed64", "sfixed64"), Kind.BIGINT),
    "float": Kind.FLOAT, "double": Kind.DOUBLE, "bool": Kind.BOOLEAN,
}  # fmt: skip
_SIZED: Final = {"string": (Kind.VARCHAR, Kind.CHAR), "bytes": (Kind.VARBINARY, Kind.BINARY)}
_WRAPPERS: Final = {
    f"google.protobuf.{name}Value": scalar
    for name, scalar in (
        ("Double", "double"), ("Float", "float"), ("Int64", "int64"), ("UInt64", "uint64"), ("Int32", "int32"),
        ("UInt32", "uint32"), ("Bool", "bool"), ("String", "string"), ("Bytes", "bytes"),
    )
}  # fmt: skip
_KNOWN: Final[Mapping[str, Callable[[_Parameters], LogicalType]]] = {
    "confluent.type.Decimal": lambda parameters: types.decimal(
        _number(parameters, "precision", 10), _number(parameters, "scale", 0)
    ),
    "confluent.type.Variant": lambda _: LogicalType(Kind.VARIANT),
    "google.type.Date": lambda _: LogicalType(Kind.DATE),
    "google.type.TimeOfDay": lambda parameters: _temporal(Kind.TIME, parameters),
    "google.protobuf.Timestamp": lambda parameters: _temporal(
        Kind.TIMESTAMP if parameters.get("flink.type") == "timestamp" else Kind.TIMESTAMP_LTZ, parameters
    ),
}
_MOST_PRECISE: Final = 9


def translate(schema: ProtobufSchema, _union: str, limits: Limits) -> LogicalSchema:
    """Return the logical type of a schema.

    Args:
        schema: the schema with its references.
        _union: not read.
        limits: bounds on time.

    Raises:
        TranslationError: no table can hold the schema.
    """
    first = next(schema.file.messages, None)
    if first is None:
        if schema.file.public_imports and not schema.file.types:
            return LogicalSchema(types.reference(schema.file.public_imports[0]))
        raise TranslationError("ProtobufSchema has no root descriptor")
    translation = _Translation(schema, limits)
    root = Known(inside(schema.file.package or "", first.name), first.name, first, LOCAL)
    return LogicalSchema(translation.message(root, _NONE, ()), translation.named)


class _Translation:
    """One translation: the bodies of the named types, and the messages that are being translated."""

    def __init__(self, schema: ProtobufSchema, limits: Limits) -> None:
        self._names, self._limits = schema.names, limits
        self.named: dict[str, LogicalType] = {}
        self._open: set[str] = set()
        self._recursive: set[str] = set()

    def message(self, known: Known, parameters: _Parameters, path: tuple[str, ...]) -> LogicalType:
        """Return the logical type of a use of a message; whether it may be null is the field's question."""
        if scalar := _WRAPPERS.get(known.full):
            return _scalar(scalar, parameters).or_null()
        if special := _KNOWN.get(known.full):
            return special(parameters)
        if known.full in self._open:
            self._recursive.add(known.full)
            return types.reference(known.full)
        if known.full in self.named:
            return types.reference(known.full)
        self._open.add(known.full)
        body = self._struct(known, path)
        self._open.discard(known.full)
        is_nested = "." in known.relative and parameters.get("logical.named") != "true"
        if is_nested and known.full not in self._recursive:
            return body
        self.named[known.full] = body
        return types.reference(known.full)

    def _struct(self, known: Known, path: tuple[str, ...]) -> LogicalType:
        message = known.definition
        if not isinstance(message, Message):
            return self._enum(known, message)
        columns = [self._column(field, known, path) for field in message.fields]
        for oneof in message.oneofs:
            members = [self._member(field, known, path) for field in oneof.fields]
            columns.append(Column(oneof.name, types.union(members, nullable=True)))
        return types.struct(columns)

    def _member(self, field: Field, known: Known, path: tuple[str, ...]) -> tuple[str, LogicalType]:
        target = self._names.type_of(field.type, known.full)
        if target is not None and target.full in self._open:
            where = ".".join((*path, field.name))
            raise TranslationError(f"Cyclic schemas are not supported.\nFound a cycle in the field: {where}")
        return field.name, self._singular(field, known, (*path, field.name))

    def _column(self, field: Field, known: Known, path: tuple[str, ...]) -> Column:
        parameters, here = self._parameters(field, known), (*path, field.name)
        if parts := map_types(field.type):
            column = self._map(parts, parameters, known, here)
        elif field.label == "repeated":
            column = self._repeated(field, known, here)
        else:
            column = self._singular(field, known, here)
        return Column(field.name, column, _default(field, parameters, column))

    def _singular(self, field: Field, known: Known, path: tuple[str, ...]) -> LogicalType:
        parameters = self._parameters(field, known)
        column = self._type(field.type, parameters, known, path)
        if column.nullable:  # a wrapper
            return column
        is_optional = field.label == "optional"
        wanted = parameters.get("flink.notNull")
        if wanted is not None:
            return column.or_null(is_optional or wanted.lower() != "true")
        return column.or_null(is_optional or self._is_message(field.type, known))

    def _is_message(self, name: str, known: Known) -> bool:
        return name not in SCALARS and not ((target := self._names.type_of(name, known.full)) and target.is_enum)

    def _type(self, name: str, parameters: _Parameters, known: Known, path: tuple[str, ...]) -> LogicalType:
        self._limits.look_at_clock()
        if len(path) > types.DEEPEST:
            raise TranslationError(f"Schema type nesting depth exceeds the maximum of {types.DEEPEST}")
        if name in SCALARS:
            return _scalar(name, parameters)
        target = self._names.type_of(name, known.full)
        if target is None:
            return types.reference(name)
        if isinstance(target.definition, Enum):
            return self._enum(target, target.definition)
        if parameters.get("flink.wrapped") == "true":
            return self._wrapped(target, path)
        return self.message(target, parameters, path)

    def _enum(self, target: Known, definition: Enum) -> LogicalType:
        if target.full in self.named:
            return types.reference(target.full)
        body = types.enum(constant.name for constant in definition.constants)
        if "." in target.relative:
            return body
        self.named[target.full] = body
        return types.reference(target.full)

    def _wrapped(self, target: Known, path: tuple[str, ...]) -> LogicalType:
        """Return the type of the field or oneof `value` of a message that stands for it."""
        if target.full in self._open:
            raise TranslationError(f"Cyclic schemas are not supported.\nFound a cycle in the field: {'.'.join(path)}")
        self._open.add(target.full)
        columns = {column.name: column for column in self._struct(target, path).columns}
        self._open.discard(target.full)
        if "value" not in columns:
            raise TranslationError(f"flink.wrapped wrapper missing 'value' payload: {target.full}")
        return columns["value"].type.or_null()

    def _repeated(self, field: Field, known: Known, path: tuple[str, ...]) -> LogicalType:
        parameters = self._parameters(field, known)
        target = self._names.type_of(field.type, known.full) if field.type not in SCALARS else None
        if target is not None and (entry := _entry(target)):
            key, value = (self._column(part, target, path).type for part in entry)
            return types.map_of(key, value, parameters.get("flink.type"))
        return types.array(self._type(field.type, parameters, known, path))

    def _map(self, parts: tuple[str, str], parameters: _Parameters, known: Known, path: tuple[str, ...]) -> LogicalType:
        optional = not self._names.is_proto3(known)
        key = _scalar(parts[0], _NONE).or_null(optional)
        value = self._type(parts[1], _NONE, known, (*path, "value"))
        may_be_null = optional or value.nullable or self._is_message(parts[1], known)
        return types.map_of(key, value.or_null(may_be_null), parameters.get("flink.type"))

    def _parameters(self, field: Field, known: Known) -> _Parameters:
        parameters: dict[str, str] = {}
        for option in field.options:
            if option.custom and self._names.extension_of(option.name, known.full) == _META:
                parameters.update(_pairs(in_maps(option.path, option.value)))
        return parameters


def _pairs(value: object) -> Iterator[tuple[str, str]]:
    """Yield the names and values of the parameters in a value of `confluent.field_meta`."""
    for name, items in value.entries if isinstance(value, MapValue) else ():
        if name != "params":
            continue
        for item in items.items if isinstance(items, ListValue) else (items,):
            parts = dict(item.entries) if isinstance(item, MapValue) else {}
            key, text = parts.get("key"), parts.get("value")
            if isinstance(key, Scalar):
                yield key.text, text.text if isinstance(text, Scalar) else ""


def _scalar(name: str, parameters: _Parameters) -> LogicalType:
    if sized := _SIZED.get(name):
        most = _number(parameters, "flink.maxLength", types.UNBOUNDED)
        least = _number(parameters, "flink.minLength", 0)
        return types.sized(sized[1] if least == most and least > 0 else sized[0], most)
    plain = _PLAIN[name]
    return LogicalType(_INTEGERS.get(parameters.get("connect.type", ""), plain) if plain is Kind.INT else plain)


def _temporal(kind: Kind, parameters: _Parameters) -> LogicalType:
    return types.temporal(kind, _number(parameters, "flink.precision", _MOST_PRECISE))


def _number(parameters: _Parameters, name: str, default: int) -> int:
    try:
        return int(parameters.get(name, default))
    except ValueError:
        return default


def _entry(target: Known) -> Sequence[Field] | None:
    """Return the fields key and value of a message that stands for an entry of a map."""
    message = target.definition
    if not isinstance(message, Message) or not message.name.endswith("Entry"):
        return None
    fields = {field.name: field for field in message.fields}
    has_more = message.oneofs or message.groups or set(fields) != {"key", "value"}
    return None if has_more else (fields["key"], fields["value"])


def _default(field: Field, parameters: _Parameters, column: LogicalType) -> Default:
    if "logical.default" in parameters:
        if column.kind in types.CONTAINERS:
            raise TranslationError(f"Default values are not supported for type: {column.kind}")
        _check_default(parameters["logical.default"], column.kind)
        return Default.VALUE
    if field.default is not None or (column.kind in types.CONTAINERS and not column.nullable):
        return Default.VALUE
    return Default.ABSENT


def _check_default(text: str, kind: Kind) -> None:
    read = {
        Kind.TINYINT: int,
        Kind.SMALLINT: int,
        Kind.INT: int,
        Kind.BIGINT: int,
        Kind.FLOAT: float,
        Kind.DOUBLE: float,
    }
    try:
        read.get(kind, str)(text)
    except ValueError:
        raise TranslationError(f'For input string: "{text}"') from None
