"""Arrow arrays as lists in which no bit is lost, in the form that `Plain.java` prints Spark's values."""

import math
import struct
from itertools import pairwise
from typing import Any

import pyarrow as pa

__all__ = ["plain"]


def plain(array: pa.Array) -> list[Any]:
    """Return the values: structs are lists, floats are their bits."""
    kind = array.type
    if pa.types.is_struct(kind):
        columns = [plain(array.field(index)) for index in range(kind.num_fields)]
        rows: list[Any] = [list(row) for row in zip(*columns, strict=True)] if columns else [[] for _ in array]
    elif pa.types.is_list(kind):
        rows = [items[a:b] for items in [plain(array.values)] for a, b in _extents(array)]
    elif pa.types.is_map(kind):
        pairs = list(zip(plain(array.keys), plain(array.items), strict=True))
        rows = [dict(pairs[a:b]) for a, b in _extents(array)]
    else:
        return [None if one is None else _scalar(one, kind) for one in _numbers(array).to_pylist()]
    return [row if valid else None for row, valid in zip(rows, array.is_valid().to_pylist(), strict=True)]


def _extents(array: pa.Array) -> list[tuple[int, int]]:
    offsets = array.offsets.to_pylist()
    return list(pairwise(offsets))


def _numbers(array: pa.Array) -> pa.Array:
    if pa.types.is_timestamp(array.type):
        return array.cast(pa.int64())
    return array.cast(pa.int32()) if pa.types.is_date(array.type) else array


def _scalar(one: Any, kind: pa.DataType) -> Any:
    if pa.types.is_floating(kind):
        bits, number = ("<q", "<d") if kind == pa.float64() else ("<i", "<f")
        return struct.unpack(bits, struct.pack(number, math.nan if math.isnan(one) else one))[0]
    if pa.types.is_decimal(kind):
        return f"{one:f}"
    return one.hex() if isinstance(one, bytes) else one
