"""The Spark type of an Avro reader schema, made from its Arrow type (`strata.serdes.arrow.layout`, style of Spark).

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

from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import types
from pyspark.sql.pandas.types import from_arrow_type

from strata.serdes.arrow import layout
from strata.serdes.avro.schema import Node
from strata.spark_udfs.decoding.type_limits import RecursiveSchema, UnsupportedSchema

__all__ = ["Type", "type_of"]

_ERRORS = {layout.RecursiveSchema: RecursiveSchema, layout.UnsupportedSchema: UnsupportedSchema}


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
    try:
        root = layout.layout(schema, layout.Style.SPARK)
    except layout.UnsupportedSchema as error:
        raise _ERRORS[type(error)](error.path, error.why, error.way_out) from None
    return Type(_spark(root), root.nullable)


def _spark(column: layout.Column) -> types.DataType:
    inner = [_spark(child) for child in column.children]
    if pa.types.is_map(column.arrow):
        return types.MapType(inner[0], inner[1], column.children[1].nullable)
    if pa.types.is_list(column.arrow):
        return types.ArrayType(inner[0], column.children[0].nullable)
    if pa.types.is_struct(column.arrow):
        named = zip(column.children, inner, strict=True)
        return types.StructType([types.StructField(one.name, kind, one.nullable) for one, kind in named])
    return from_arrow_type(column.arrow, prefer_timestamp_ntz=True)
