"""Builds Arrow columns from Python objects, for Protobuf and JSON.

A shape is one type of the reader schema in Arrow, with the function that builds its arrays; `spark_type` gives the
same type in Spark. Shapes are made once. While records are decoded, no code inspects types of the schema, and each
column is built in one call.

Rules of this file: Python values in, Arrow out; no schema language. A value that its type cannot hold makes the whole
call raise `DecodeError` with the path of the column.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from strata.serdes.errors import DecodeError, DecodeReason

__all__ = ["Build", "Shape", "as_nullable", "built", "list_array", "list_type", "map_array"]
__all__ += ["map_type", "scalar", "spark_type", "struct_array", "struct_type", "under"]

Build = Callable[[Sequence[Any]], pa.Array]
"""Builds an array of values; None is null, or the place of a value under a null parent."""


@dataclass(frozen=True, slots=True)
class Shape:
    """One type in Arrow, and the builder of its arrays."""

    arrow: pa.DataType
    build: Build
    nullable: bool = False


def spark_type(arrow_type: pa.DataType) -> DataType:
    """Return the Spark type of an Arrow type, with its nullability at every level, which Spark 4.0 itself loses."""
    if pa.types.is_struct(arrow_type):
        return StructType([StructField(field.name, spark_type(field.type), field.nullable) for field in arrow_type])
    if pa.types.is_list(arrow_type):
        return ArrayType(spark_type(arrow_type.value_type), arrow_type.value_field.nullable)
    if pa.types.is_map(arrow_type):
        return MapType(
            spark_type(arrow_type.key_type), spark_type(arrow_type.item_type), arrow_type.item_field.nullable
        )
    return from_arrow_type(arrow_type, prefer_timestamp_ntz=True)


def scalar(arrow: pa.DataType) -> Shape:
    """Return the shape of a type whose values Arrow takes unchanged."""
    return Shape(arrow, lambda values: built(values, arrow))


def built(values: Sequence[object], arrow_type: pa.DataType) -> pa.Array:
    """Return an Arrow array of values.

    Raises:
        DecodeError: If a value does not fit the type.
    """
    try:
        return pa.array(values, arrow_type)
    except (pa.ArrowInvalid, OverflowError):
        is_text = pa.types.is_string(arrow_type)
        raise DecodeError(DecodeReason.INVALID_UTF8 if is_text else DecodeReason.OUT_OF_RANGE) from None


def as_nullable(shape: Shape) -> Shape:
    """Return the same shape, but nullable."""
    return replace(shape, nullable=True)


def struct_type(named: Iterable[tuple[str, Shape]]) -> pa.StructType:
    """Return the type of a struct."""
    return pa.struct([pa.field(name, column.arrow, column.nullable) for name, column in named])


def list_type(item: Shape) -> pa.ListType:
    """Return the type of an array."""
    return pa.list_(pa.field("element", item.arrow, item.nullable))


def map_type(key: Shape, value: Shape) -> pa.MapType:
    """Return the type of a map."""
    return pa.map_(pa.field("key", key.arrow, False), pa.field("value", value.arrow, value.nullable))


def struct_array(columns: Sequence[pa.Array], arrow_type: pa.StructType, missing: Sequence[bool]) -> pa.Array:
    """Return an array of structs from its columns.

    Args:
        columns: one array for each field, all of the same length.
        arrow_type: the type of the result.
        missing: for each struct, whether it is null.
    """
    if not columns:
        return pa.array([None if is_missing else {} for is_missing in missing], arrow_type)
    return pa.StructArray.from_arrays(columns, fields=list(arrow_type), mask=_mask(missing))


def list_array(
    items: pa.Array, arrow_type: pa.ListType, lengths: Sequence[int], missing: Sequence[bool] = ()
) -> pa.Array:
    """Return an array of lists from all their items.

    Args:
        items: the items of all lists, one list after the other.
        arrow_type: the type of the result.
        lengths: the number of items of each list; 0 for null.
        missing: for each list, whether it is null; empty if none is.
    """
    return pa.ListArray.from_arrays(_offsets(lengths), items, type=arrow_type, mask=_mask(missing))


def map_array(
    keys: pa.Array, items: pa.Array, arrow_type: pa.MapType, lengths: Sequence[int], missing: Sequence[bool] = ()
) -> pa.Array:
    """Return an array of maps from all their keys and values.

    Args:
        keys: the keys of all maps, one map after the other.
        items: the values, in the same order.
        arrow_type: the type of the result.
        lengths: the number of entries of each map; 0 for null.
        missing: for each map, whether it is null; empty if none is.
    """
    return pa.MapArray.from_arrays(_offsets(lengths), keys, items, type=arrow_type, mask=_mask(missing))


def under(step: str, build: Build, values: Sequence[object]) -> pa.Array:
    """Build a column inside another.

    Args:
        step: the step from the outer column to the inner one, such as a field name or `[]`.
        build: the builder of the inner column.
        values: the values of the inner column.

    Raises:
        DecodeError: If a value does not fit; its path begins with the step.
    """
    try:
        return build(values)
    except DecodeError as error:
        dot = "." if error.path and error.path[0] not in "[{" else ""
        error.path = f"{step}{dot}{error.path}"
        raise


def _offsets(lengths: Sequence[int]) -> pa.Array:
    return pa.array([0, *accumulate(lengths)], pa.int32())


def _mask(missing: Sequence[bool]) -> pa.Array | None:
    return pa.array(missing, pa.bool_()) if True in missing else None
