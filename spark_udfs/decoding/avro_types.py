"""The Spark type of an Avro reader schema. Its Arrow types are those of `strata.serdes.arrow`, in the style of Spark.

The mapping is that of Spark's own `from_avro`, so that a job can migrate without a new table:

    date                     date                     time-millis / time-micros   int / bigint
    timestamp-millis, micros timestamp                timestamp-nanos             bigint
    local-timestamp-*        timestamp_ntz            decimal                     decimal(precision, scale)
    uuid, enum               string                   duration, fixed             binary
    union with null          the rest, nullable       int|long, float|double      bigint, double
    any other union          struct<member0, member1, …>, in which one member is set

Planning fails for a type that Spark cannot express; the error names the field and suggests what to do.

Rules of this file: schema nodes in, types out; no registry and no bytes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import types

from strata.serdes.avro.schema import (
    MAX_NESTING,
    Array,
    Enum,
    Fixed,
    Kind,
    Logical,
    Map,
    Node,
    Primitive,
    Record,
    Union,
)
from strata.spark_udfs.decoding.type_limits import Nesting, UnsupportedSchema

__all__ = ["Type", "type_of"]

MAX_PRECISION = 38
"""The maximum precision of Spark's decimals."""


@dataclass(frozen=True, slots=True)
class Type:
    """A Spark type, and whether the schema allows null."""

    spark: types.DataType
    nullable: bool = False


def type_of(schema: Node) -> Type:
    """Return the type of a reader schema.

    Raises:
        UnsupportedSchema: If a part of the schema has no Spark type.
        RecursiveSchema: If a record contains itself.
    """
    return _TypeBuilder().type_of(schema, "")


_KINDS: dict[Kind, Type] = {
    Kind.NULL: Type(types.NullType(), nullable=True),
    Kind.BOOLEAN: Type(types.BooleanType()),
    Kind.INT: Type(types.IntegerType()),
    Kind.LONG: Type(types.LongType()),
    Kind.FLOAT: Type(types.FloatType()),
    Kind.DOUBLE: Type(types.DoubleType()),
    Kind.BYTES: Type(types.BinaryType()),
    Kind.STRING: Type(types.StringType()),
}
_LOGICALS: dict[str, Type] = {
    "date": Type(types.DateType()),
    "timestamp-millis": Type(types.TimestampType()),
    "timestamp-micros": Type(types.TimestampType()),
    "local-timestamp-millis": Type(types.TimestampNTZType()),
    "local-timestamp-micros": Type(types.TimestampNTZType()),
}
"""A logical type that is not here is read as its underlying type."""
_WIDER: dict[frozenset[Kind], Kind] = {
    frozenset({Kind.INT, Kind.LONG}): Kind.LONG,
    frozenset({Kind.FLOAT, Kind.DOUBLE}): Kind.DOUBLE,
}
"""Unions of two number types that become one column."""


class _TypeBuilder:
    """Builds the types of one schema."""

    def __init__(self) -> None:
        self._nesting = Nesting("record", MAX_NESTING)

    def type_of(self, node: Node, path: str) -> Type:
        self._nesting.count(path)
        match node:
            case Primitive():
                return _of_logical(node.logical, _KINDS[node.kind], path)
            case Enum():
                return _KINDS[Kind.STRING]
            case Fixed():
                return _of_logical(node.logical, _KINDS[Kind.BYTES], path)
            case Array():
                return self._array(node, path)
            case Map():
                return self._map(node, path)
            case Record():
                return self._record(node, path)
            case Union():
                return self._union(node, path)

    def _array(self, node: Array, path: str) -> Type:
        item = self.type_of(node.items, f"{path}[]")
        return Type(types.ArrayType(item.spark, item.nullable))

    def _map(self, node: Map, path: str) -> Type:
        value = self.type_of(node.values, f"{path}{{}}")
        return Type(types.MapType(types.StringType(), value.spark, value.nullable))

    def _record(self, node: Record, path: str) -> Type:
        with self._nesting.inside(id(node), path, f" {node.name}"):
            named = [(one.name, self.type_of(one.type, f"{path}.{one.name}".lstrip("."))) for one in node.fields]
        return _struct(named)

    def _union(self, node: Union, path: str) -> Type:
        """Return a union's type without null: one type, the wider number type, or a struct with one member each."""
        others = [one for one in node.branches if not _is_null(one)]
        nullable = len(others) < len(node.branches)
        if not others:
            return _KINDS[Kind.NULL]
        if len(others) == 1:
            return _as_nullable(self.type_of(others[0], path), nullable)
        kinds = frozenset(one.kind for one in others if isinstance(one, Primitive))
        if len(others) == 2 and kinds in _WIDER:
            return Type(_KINDS[_WIDER[kinds]].spark, nullable)
        members = [self.type_of(one, f"{path}|{number}") for number, one in enumerate(others)]
        named = [(f"member{number}", _as_nullable(one, True)) for number, one in enumerate(members)]
        return _as_nullable(_struct(named), nullable)


def _struct(named: Sequence[tuple[str, Type]]) -> Type:
    return Type(types.StructType([types.StructField(name, one.spark, one.nullable) for name, one in named]))


def _of_logical(logical: Logical | None, underlying: Type, path: str) -> Type:
    if logical is None:
        return underlying
    if logical.name == "decimal":
        return _decimal(logical, path)
    return _LOGICALS.get(logical.name, underlying)


def _decimal(logical: Logical, path: str) -> Type:
    if logical.precision > MAX_PRECISION:
        raise UnsupportedSchema(
            path,
            f"a decimal of precision {logical.precision}, and Spark allows {MAX_PRECISION}",
            "give a reader schema with a smaller precision, or without the logical type to get the bytes",
        )
    return Type(types.DecimalType(logical.precision, logical.scale))


def _as_nullable(one: Type, nullable: bool) -> Type:
    return Type(one.spark, one.nullable or nullable)


def _is_null(node: Node) -> bool:
    return isinstance(node, Primitive) and node.kind is Kind.NULL
