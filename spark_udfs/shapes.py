"""Columns made of Python objects: what Protobuf and JSON share on the way from records to Arrow.

A shape is one type of the reader schema on both sides, with the function that makes an array of it. It is made once;
while records pass, nothing looks at a type of the schema, and a column of a part is made in one go.

Rules of this file: Python values in, Arrow out; no schema language. A value that its type cannot hold makes the whole
call raise `DecodeError`, whose path is that of the column.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import pyarrow as pa
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from serdes.errors import DecodeError, DecodeReason
from spark_udfs.types import UnsupportedSchema

__all__ = ["Build", "Nest", "Shape", "as_nullable", "built", "chosen", "list_array", "list_type", "map_array"]
__all__ += ["map_type", "scalar", "struct_array", "struct_type", "under"]

Build = Callable[[Sequence[Any]], pa.Array]
"""Values become an array; None is null, or stands under a null."""

MAX_TYPES = 10_000
"""Types inside types multiply: so many are more than any table has columns."""
MAX_DEPTH = 100
"""Levels of messages that protobuf parses, and far more than any table has."""

_WAY_OUT = "leave the field out by `columns`, or give a reader schema without it"


@dataclass(frozen=True, slots=True)
class Shape:
    """One type on both sides, and the builder of its arrays."""

    spark: DataType
    arrow: pa.DataType
    build: Build
    nullable: bool = False


class Nest:
    """How far a walk over a reader schema has gone: where it stands, how deep, and how many types it has met.

    Args:
        what: what a schema language calls the thing that cannot contain itself.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._inside: set[Hashable] = set()
        self._left = MAX_TYPES

    def count(self, path: str) -> None:
        """Take one more type."""
        self._left -= 1
        if self._left < 0:
            raise UnsupportedSchema(path, f"it has more than {MAX_TYPES} types", "choose `columns`")

    @contextmanager
    def inside(self, key: Hashable, path: str, name: str = "") -> Iterator[None]:
        """Go into something that has parts."""
        if key in self._inside:
            raise UnsupportedSchema(path, f"the {self._what}{name} contains itself", _WAY_OUT)
        if len(self._inside) >= MAX_DEPTH:
            raise UnsupportedSchema(path, f"it is more than {MAX_DEPTH} levels deep", _WAY_OUT)
        self._inside.add(key)
        yield
        self._inside.discard(key)


def scalar(spark: DataType, arrow: pa.DataType) -> Shape:
    """A type whose values Arrow takes as they are."""
    return Shape(spark, arrow, lambda values: built(values, arrow))


def built(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Values as Arrow takes them."""
    try:
        return pa.array(values, kind)
    except (pa.ArrowInvalid, OverflowError):
        is_text = pa.types.is_string(kind)
        raise DecodeError(DecodeReason.INVALID_UTF8 if is_text else DecodeReason.OUT_OF_RANGE) from None


def as_nullable(shape: Shape) -> Shape:
    """The same, of which there may be none."""
    return replace(shape, nullable=True)


def chosen(names: Iterable[str], columns: Sequence[str] | None, owner: str) -> list[str]:
    """The names of the columns asked for, in the order asked for, each once; all where none are."""
    there = list(names)
    if columns is None:
        return there
    unknown = [name for name in columns if name not in there]
    if unknown or not columns:
        problem = f"no column {', '.join(unknown)}" if unknown else "no column is chosen"
        raise ValueError(f"{problem}; {owner} has {', '.join(there)}")
    return list(dict.fromkeys(columns))


def struct_type(named: Sequence[tuple[str, Shape]]) -> tuple[StructType, pa.StructType]:
    """A struct on both sides."""
    spark = StructType([StructField(name, one.spark, one.nullable) for name, one in named])
    return spark, pa.struct([pa.field(name, one.arrow, one.nullable) for name, one in named])


def list_type(item: Shape) -> tuple[ArrayType, pa.ListType]:
    """An array on both sides."""
    return ArrayType(item.spark, item.nullable), pa.list_(pa.field("element", item.arrow, item.nullable))


def map_type(key: Shape, value: Shape) -> tuple[MapType, pa.MapType]:
    """A map on both sides."""
    arrow = pa.map_(pa.field("key", key.arrow, False), pa.field("value", value.arrow, value.nullable))
    return MapType(key.spark, value.spark, value.nullable), arrow


def struct_array(columns: Sequence[pa.Array], kind: pa.StructType, missing: Sequence[bool]) -> pa.Array:
    """Columns side by side."""
    if not columns:
        return pa.array([None if one else {} for one in missing], kind)
    return pa.StructArray.from_arrays(columns, fields=list(kind), mask=_mask(missing))


def list_array(items: pa.Array, kind: pa.ListType, lengths: Sequence[int], missing: Sequence[bool] = ()) -> pa.Array:
    """Items cut into lists."""
    return pa.ListArray.from_arrays(_offsets(lengths), items, type=kind, mask=_mask(missing))


def map_array(
    keys: pa.Array, items: pa.Array, kind: pa.MapType, lengths: Sequence[int], missing: Sequence[bool] = ()
) -> pa.Array:
    """Keys and values cut into maps."""
    return pa.MapArray.from_arrays(_offsets(lengths), keys, items, type=kind, mask=_mask(missing))


def under(step: str, build: Build, values: Sequence[Any]) -> pa.Array:
    """A column inside another; where a value does not fit, its path has one step more."""
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
