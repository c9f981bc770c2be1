"""The logical type of an Avro schema.

Logical types and the attributes of Kafka Connect and Flink are read as plain attributes: Avro's own checks of them do
not apply. Source: the policy LOGICAL of the Confluent Schema Registry 8.5, from its answers.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeGuard
from weakref import WeakKeyDictionary

from strata.compat.avro.model import (
    MISSING,
    ArrayType,
    AvroSchema,
    EnumType,
    Field,
    FixedType,
    MapType,
    Node,
    PrimitiveType,
    Properties,
    RecordType,
    Reference,
    UnionType,
    resolve,
)
from strata.compat.limits import Limits
from strata.compat.logical import types
from strata.compat.logical.types import Column, Default, Kind, LogicalSchema, LogicalType, TranslationError, map_key

__all__ = ["translate"]

_Names = Sequence[str]  # the names of the branches of a union, from `confluent:union`
_TOO_DEEP: Final = f"Schema type nesting depth exceeds the maximum of {types.DEEPEST}"
_INTEGERS: Final = {"int8": Kind.TINYINT, "int16": Kind.SMALLINT}
_PRIMITIVES: Final = {
    "boolean": Kind.BOOLEAN, "float": Kind.FLOAT, "double": Kind.DOUBLE, "int": Kind.INT, "long": Kind.BIGINT,
}  # fmt: skip
# type and logical type -> kind, precision, whether `flink.precision` may only narrow it
_TEMPORAL: Final[Mapping[tuple[str, str], tuple[Kind, int, bool]]] = {
    ("int", "time-millis"): (Kind.TIME, 3, True),
    ("long", "time-micros"): (Kind.TIME, 6, False),
    ("long", "timestamp-millis"): (Kind.TIMESTAMP_LTZ, 3, True),
    ("long", "timestamp-micros"): (Kind.TIMESTAMP_LTZ, 6, True),
    ("long", "timestamp-nanos"): (Kind.TIMESTAMP_LTZ, 9, False),
    ("long", "local-timestamp-millis"): (Kind.TIMESTAMP, 3, True),
    ("long", "local-timestamp-micros"): (Kind.TIMESTAMP, 6, True),
    ("long", "local-timestamp-nanos"): (Kind.TIMESTAMP, 9, False),
}
_NOT_ENTRIES: Final = (
    "Found map encoded as array of key-value pairs, but array elements do not match the expected format."
)
_NO_INTEGER: Final = (
    "class java.lang.String cannot be cast to class java.lang.Integer "
    "(java.lang.String and java.lang.Integer are in module java.base of loader 'bootstrap')"
)
_VARIANT: Final = "confluent.type.Variant"
_MAP_ENTRY: Final = "io.confluent.connect.avro.MapEntry"

_PLAIN_COLUMNS: Final[WeakKeyDictionary[Field, Column]] = WeakKeyDictionary()
"""The columns of fields without named types: versions of a schema share most of their fields."""


def translate(schema: AvroSchema, union: str, limits: Limits) -> LogicalSchema:
    """Return the logical type of a schema.

    Args:
        schema: the schema with its references.
        union: the metadata property `confluent:union` of its version: JSON that names the branches of a root union.
        limits: bounds on time.

    Raises:
        TranslationError: no table can hold the schema.
    """
    translation = _Translation(schema, limits)
    root = translation.type(schema.root, _union_names(union), ())
    return LogicalSchema(root, translation.named)


class _Translation:
    """One translation: the bodies of the named types, and the unions that are being translated."""

    def __init__(self, schema: AvroSchema, limits: Limits) -> None:
        self._schema, self._limits = schema, limits
        self.named: dict[str, LogicalType] = {}
        self._begun: set[str] = set()
        self._open: set[str] = set()  # unions, as `_same_unions` writes them

    def type(self, written: Node, names: _Names, path: tuple[str, ...]) -> LogicalType:
        """Return the logical type of a node; `names` are those of the branches of the unions in it."""
        self._limits.look_at_clock()
        if len(path) > types.DEEPEST:
            raise TranslationError(_TOO_DEEP)
        node = resolve(written, self._schema.names) if isinstance(written, Reference) else written
        match node:
            case UnionType():
                return self._union(node, names, path)
            case RecordType():
                return self._record(node, path)
            case EnumType():
                return self._named(node.name.full, node.properties, lambda: types.enum(iter(node.symbols)))
            case ArrayType():
                return self._array(node, names, path)
            case MapType():
                return self._map(node, names, path)
            case FixedType():
                return self._fixed(node)
            case PrimitiveType():
                return _primitive(node)
        raise AssertionError(node)

    def _named(self, name: str, properties: Properties, body: Callable[[], LogicalType]) -> LogicalType:
        if properties.get("logical.anonymous") == "true" and name not in self._begun:
            self._begun.add(name)
            inline: LogicalType = body()
            self._begun.discard(name)
            return inline
        if name not in self._begun:
            self._begun.add(name)
            self.named[name] = body()
        return types.reference(name)

    def _record(self, node: RecordType, path: tuple[str, ...]) -> LogicalType:
        if _is_variant(node):
            return LogicalType(Kind.VARIANT)
        return self._named(node.name.full, node.properties, lambda: self._struct(node, path))

    def _struct(self, node: RecordType, path: tuple[str, ...]) -> LogicalType:
        return types.struct([self._column(field, path) for field in node.fields])

    def _column(self, field: Field, path: tuple[str, ...]) -> Column:
        if not _is_plain(field.type):
            return self._new_column(field, path)
        column = _PLAIN_COLUMNS.get(field)
        if column is None:
            column = _PLAIN_COLUMNS[field] = self._new_column(field, path)
        return column

    def _new_column(self, field: Field, path: tuple[str, ...]) -> Column:
        names = _union_names(field.properties.get("confluent:union"))
        node = self.type(field.type, names, (*path, field.name))
        return Column(field.name, node, _default(field), field.doc or "")

    def _union(self, node: UnionType, names: _Names, path: tuple[str, ...]) -> LogicalType:
        same = "" if _is_plain(node) else _same_unions(node)  # which contains nothing, so it needs no name
        if same in self._open:
            raise TranslationError(f"Cyclic schemas are not supported.\nFound a cycle in the field: {'.'.join(path)}")
        if same:
            self._open.add(same)
        branches = [branch for branch in node.branches if not _is_null(branch)]
        nullable = len(branches) < len(node.branches)
        translated = [self.type(branch, names, path) for branch in branches]
        self._open.discard(same)
        if len(branches) == 1:
            return translated[0].or_null(nullable or translated[0].nullable)
        return types.union(list(zip(self._branch_names(branches, names), translated, strict=True)), nullable=nullable)

    def _branch_names(self, branches: Sequence[Node], names: _Names) -> list[str]:
        if len(names) == len(branches):
            return list(names)
        resolved = [resolve(branch, self._schema.names) for branch in branches]
        simple = [_simple_name(node) for node in resolved]
        return [
            _full_name(node).replace(".", "_") if simple.count(name) > 1 else name
            for node, name in zip(resolved, simple, strict=True)
        ]

    def _array(self, node: ArrayType, names: _Names, path: tuple[str, ...]) -> LogicalType:
        items = resolve(node.items, self._schema.names)
        if _is_array_of_entries(node, items):
            entry = {field.name: field for field in items.fields} if isinstance(items, RecordType) else {}
            if set(entry) != {"key", "value"}:
                raise TranslationError(_NOT_ENTRIES)
            key, value = (self._column(entry[name], path).type for name in ("key", "value"))
            return types.map_of(key, value, node.properties.get("flink.type"))
        return types.array(self.type(node.items, names, path))

    def _map(self, node: MapType, names: _Names, path: tuple[str, ...]) -> LogicalType:
        return types.map_of(
            map_key(node.properties), self.type(node.values, names, path), node.properties.get("flink.type")
        )

    def _fixed(self, node: FixedType) -> LogicalType:
        if _logical_type(node.properties) == "decimal":
            return _decimal(node.properties)
        return types.sized(Kind.BINARY, node.size)


def _is_plain(node: Node) -> bool:
    branches = node.branches if isinstance(node, UnionType) else (node,)
    return all(isinstance(branch, PrimitiveType) for branch in branches)


def _primitive(node: PrimitiveType) -> LogicalType:
    logical = _logical_type(node.properties)
    if temporal := _TEMPORAL.get((node.kind, logical)):
        return _temporal(*temporal, node.properties, str(node.properties["logicalType"]))
    match node.kind:
        case "null":
            raise TranslationError("Standalone NULL type is not supported")
        case "string":
            return _string(node.properties)
        case "bytes":
            if logical == "decimal":
                return _decimal(node.properties)
            return types.sized(Kind.VARBINARY, _length(node.properties))
        case "int" if logical == "date":
            return LogicalType(Kind.DATE)
        case "int" if "logicalType" not in node.properties and "connect.type" in node.properties:
            integer = _INTEGERS.get(str(node.properties["connect.type"]).lower())
            if integer is None:
                raise TranslationError("Connect type annotation for Avro int field is null")
            return LogicalType(integer)
    return LogicalType(_PRIMITIVES[node.kind])


def _temporal(kind: Kind, precision: int, narrows: bool, properties: Properties, name: str) -> LogicalType:
    wanted = properties.get("flink.precision")
    if not _is_number(wanted):
        return types.temporal(kind, precision)
    if narrows and int(wanted) > precision:
        raise TranslationError(
            f"flink.precision {int(wanted)} exceeds the precision carried by Avro logical type '{name}' ({precision})"
        )
    return types.temporal(kind, int(wanted))


def _string(properties: Properties) -> LogicalType:
    length = _length(properties)
    if length != types.UNBOUNDED and properties.get("flink.minLength") == length:
        return types.sized(Kind.CHAR, length)
    return types.sized(Kind.VARCHAR, length)


def _length(properties: Properties) -> int:
    length = properties.get("flink.maxLength", types.UNBOUNDED)
    if not isinstance(length, int) or isinstance(length, bool):
        raise TranslationError(_NO_INTEGER)
    return 1 if length == -1 else length


def _decimal(properties: Properties) -> LogicalType:
    precision, scale = properties.get("precision", 10), properties.get("scale", 0)
    if not _is_number(precision):
        raise TranslationError("precision property must be a JSON Integer.")
    return types.decimal(int(precision), int(scale) if _is_number(scale) else 0)


def _is_array_of_entries(node: ArrayType, items: Node) -> bool:
    if _logical_type(node.properties) == "map":
        return True
    if not isinstance(items, RecordType):
        return False
    return items.name.full == _MAP_ENTRY or items.properties.get("connect.internal.type") == "MapEntry"


def _is_variant(node: RecordType) -> bool:
    named = node.name.full == _VARIANT or _logical_type(node.properties) == "variant"
    if not named or {field.name for field in node.fields} != {"metadata", "value"}:
        return False
    return all(isinstance(field.type, PrimitiveType) and field.type.kind == "bytes" for field in node.fields)


def _default(field: Field) -> Default:
    if field.default is MISSING:
        return Default.ABSENT
    return Default.NULL if field.default is None else Default.VALUE


def _union_names(written: object) -> _Names:
    """Return the names in an attribute `confluent:union`, a list or its JSON text, if it is well formed."""
    if isinstance(written, str):
        try:
            written = json.loads(written)
        except ValueError:
            return ()
    if not isinstance(written, list):
        return ()
    return [str(branch["name"]) for branch in written if isinstance(branch, dict) and "name" in branch]


def _same_unions(node: Node) -> str:
    """Return a text that equal unions of a schema share, wherever they are written out."""
    match node:
        case UnionType():
            return f"[{','.join(map(_same_unions, node.branches))}]"
        case Reference():
            return node.full
        case RecordType() | EnumType() | FixedType():
            return node.name.full
        case ArrayType():
            return f"array<{_same_unions(node.items)}>{sorted(node.properties.items())}"
        case MapType():
            return f"map<{_same_unions(node.values)}>{sorted(node.properties.items())}"
        case PrimitiveType():
            return f"{node.kind}{sorted(node.properties.items())}"


def _simple_name(node: Node) -> str:
    return node.name.simple if isinstance(node, RecordType | EnumType | FixedType) else node.kind


def _full_name(node: Node) -> str:
    return node.name.full if isinstance(node, RecordType | EnumType | FixedType) else node.kind


def _is_null(node: Node) -> bool:
    return isinstance(node, PrimitiveType) and node.kind == "null"


def _logical_type(properties: Properties) -> str:
    logical = properties.get("logicalType")
    return logical.lower() if isinstance(logical, str) else ""


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
