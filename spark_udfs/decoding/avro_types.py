"""The Spark type of an Avro reader schema, made from its Arrow type (`strata.serdes.arrow.layout`, style of Spark).

The mapping is that of Spark's own `from_avro`, so that a job can migrate without a new table:

    date                     date                     time-millis / time-micros   int / bigint
    timestamp-millis, micros timestamp                timestamp-nanos             bigint
    local-timestamp-*        timestamp_ntz            decimal                     decimal(precision, scale)
    uuid, enum               string                   duration, fixed             binary
    union with null          the rest, nullable       int|long, float|double      bigint, double
    any other union          struct<member0, member1, …>, in which one member is set; with union_names="type" the
                             members have the names of their types

Planning fails for a type that Spark cannot express; the error names the field and suggests what to do.

Rules of this file: schema nodes in, types out; no registry and no bytes.
"""

from pyspark.sql.types import DataType

from strata.serdes.arrow import layout
from strata.serdes.avro.schema import Node
from strata.spark_udfs.decoding.arrow_columns import spark_type
from strata.spark_udfs.decoding.type_limits import RecursiveSchema, UnsupportedSchema

__all__ = ["type_of"]

_ERRORS = {layout.RecursiveSchema: RecursiveSchema, layout.UnsupportedSchema: UnsupportedSchema}


def type_of(schema: Node, *, members_by_type: bool = False) -> DataType:
    """Return the type of a reader schema.

    Args:
        schema: the reader schema.
        members_by_type: whether the members of a union are named by their types.

    Raises:
        UnsupportedSchema: If a part of the schema has no Spark type.
        RecursiveSchema: If a record contains itself.
    """
    try:
        return spark_type(layout.layout(schema, layout.Style.SPARK, members_by_type=members_by_type).arrow)
    except layout.UnsupportedSchema as error:
        raise _ERRORS[type(error)](error.path, error.why, error.way_out) from None
