"""An Avro schema as a shape, for the source of its classes.

Rules of this file: a parsed schema in, a shape out.
"""

from collections.abc import Mapping
from typing import Final

from strata.compat.avro.model import (
    ArrayType,
    AvroSchema,
    EnumType,
    Field,
    FixedType,
    MapType,
    Missing,
    Names,
    Node,
    PrimitiveType,
    RecordType,
    UnionType,
    resolve,
)
from strata.serdes.classes.shapes import MISSING, Choice, Items, Member, Object, Scalar, Shape, Symbols, Values
from strata.serdes.errors import SchemaError

__all__ = ["avro_shape"]

_PRIMITIVES: Final[Mapping[str, str]] = {
    "null": "null",
    "boolean": "bool",
    "int": "int32",
    "long": "int",
    "float": "float32",
    "double": "float",
    "bytes": "bytes",
    "string": "str",
}
_LOGICAL: Final[Mapping[tuple[str, str], str]] = {
    ("int", "date"): "date",
    ("int", "time-millis"): "time-millis",
    ("long", "time-micros"): "time",
    ("long", "timestamp-millis"): "datetime-millis",
    ("long", "timestamp-micros"): "datetime",
    ("long", "local-timestamp-millis"): "local-millis",
    ("long", "local-timestamp-micros"): "local",
    ("string", "uuid"): "uuid",
}
_WITHOUT_CLASS: Final = ("timestamp-nanos", "local-timestamp-nanos", "duration")


def avro_shape(schema: AvroSchema) -> Shape:
    """Return a schema with its references as a shape.

    Raises:
        SchemaError: If a type has no class; the error names the field.
    """
    return _Reader(schema.names).shape(schema.root, "")


class _Reader:
    def __init__(self, names: Names) -> None:
        self._names = names
        self._known: dict[str, Object | Symbols] = {}

    def shape(self, node: Node, where: str) -> Shape:
        node = resolve(node, self._names)
        match node:
            case PrimitiveType():
                return _primitive(node, where)
            case FixedType():
                if node.properties.get("logicalType") in ("decimal", "duration", "uuid"):
                    raise SchemaError(f"{where}: a fixed with a logical type has no class")
                return Scalar("fixed", (node.size,), node.name.full)
            case ArrayType():
                return Items(self.shape(node.items, f"{where}[]"))
            case MapType():
                return Values(self.shape(node.values, f"{where}{{}}"))
            case UnionType():
                return Choice(tuple(self.shape(branch, where) for branch in node.branches))
            case EnumType():
                return self._enum(node)
            case RecordType():
                return self._record(node)
        raise AssertionError(node)

    def _enum(self, node: EnumType) -> Shape:
        aliases = tuple(alias.full for alias in node.aliases)
        made = Symbols(node.name.full, tuple(node.symbols), None, True, node.doc or "", aliases, node.default)
        return self._known.setdefault(node.name.full, made)

    def _record(self, node: RecordType) -> Shape:
        known = self._known.get(node.name.full)
        if known is None:
            aliases = tuple(alias.full for alias in node.aliases)
            known = Object(None, node.name.full, [], node.doc or "", aliases)
            self._known[node.name.full] = known
            known.members += [self._member(field, node.name.full.rpartition(".")[2]) for field in node.fields]
        return known

    def _member(self, field: Field, record: str) -> Member:
        shape = self.shape(field.type, f"{record}.{field.name}")
        default = MISSING if isinstance(field.default, Missing) else field.default
        own = shape.branches[0] if isinstance(shape, Choice) else shape
        if isinstance(default, str) and isinstance(own, Scalar) and own.kind in ("bytes", "fixed"):
            default = default.encode("latin-1")
        return Member(field.name, field.name, shape, default, field.doc or "", tuple(field.aliases))


def _primitive(node: PrimitiveType, where: str) -> Scalar:
    logical = node.properties.get("logicalType")
    if logical == "decimal" and node.kind == "bytes":
        precision, scale = node.properties.get("precision"), node.properties.get("scale", 0)
        if isinstance(precision, int) and isinstance(scale, int):
            return Scalar("decimal", (precision, scale))
    if logical in _WITHOUT_CLASS:
        raise SchemaError(f"{where}: {logical} has no type in Python that keeps all its values")
    return Scalar(_LOGICAL.get((node.kind, str(logical)), _PRIMITIVES[node.kind]))
