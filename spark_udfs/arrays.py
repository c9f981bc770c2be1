"""Lists of decoded values as Arrow arrays, column by column.

A builder is made once for a type of the reader schema and called once per batch and column, so that nothing looks at a
type while records pass. Every builder takes None for any value: under a null struct, whatever the struct holds is None.

Rules of this file: Python values in, Arrow out; no Avro and no Spark. A value that Arrow cannot hold makes the whole
call raise one of `UNFIT`.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate, chain
from typing import Any

import pyarrow as pa

__all__ = ["UNFIT", "Build", "instants", "lists", "maps", "members", "scalars", "structs", "untagged"]

Build = Callable[[Sequence[Any]], pa.Array]

UNFIT = (pa.ArrowInvalid, OverflowError)
"""What a builder raises for a value that its type cannot hold."""


def scalars(kind: pa.DataType) -> Build:
    """Values that Arrow takes as they are."""
    return partial(pa.array, type=kind)


def instants(unit: str, kind: pa.DataType) -> Build:
    """Counts of `unit` since the epoch; made by way of integers, which is twice as fast as asking for timestamps."""
    counted = pa.timestamp(unit, kind.tz)

    def build(counts: Sequence[int | None]) -> pa.Array:
        return pa.array(counts, pa.int64()).cast(counted).cast(kind)

    return build


def structs(fields: Sequence[tuple[str, Build]], kind: pa.StructType) -> Build:
    """Dictionaries with all the fields."""
    arrow_fields = list(kind)
    empty: dict[str, None] = {name: None for name, _ in fields}

    def build(rows: Sequence[dict[str, Any] | None]) -> pa.Array:
        missing = [row is None for row in rows]
        present = [empty if row is None else row for row in rows] if True in missing else rows
        columns = [column([row[name] for row in present]) for name, column in fields]  # type: ignore[index]
        return pa.StructArray.from_arrays(columns, fields=arrow_fields, mask=_mask(missing))

    return build if fields else scalars(kind)


def lists(items: Build, kind: pa.ListType) -> Build:
    """Lists, whose items are built in one go."""

    def build(values: Sequence[list[Any] | None]) -> pa.Array:
        missing, offsets = _extents(values)
        flat = list(chain.from_iterable(filter(None, values)))
        return pa.ListArray.from_arrays(offsets, items(flat), type=kind, mask=_mask(missing))

    return build


def maps(entries: Build, kind: pa.MapType) -> Build:
    """Dictionaries by string, whose values are built in one go."""

    def build(values: Sequence[dict[str, Any] | None]) -> pa.Array:
        missing, offsets = _extents(values)
        filled = list(filter(None, values))
        keys = pa.array(list(chain.from_iterable(filled)), kind.key_type)
        items = entries(list(chain.from_iterable(value.values() for value in filled)))
        return pa.MapArray.from_arrays(offsets, keys, items, type=kind, mask=_mask(missing))

    return build


def members(slots: Sequence[tuple[int, Build]], kind: pa.StructType) -> Build:
    """Tagged values of a union, each in the struct's member for its position in the union; the others are null."""
    arrow_fields = list(kind)

    def build(values: Sequence[tuple[int, Any] | None]) -> pa.Array:
        missing = [value is None for value in values]
        columns = [
            column([value[1] if value is not None and value[0] == position else None for value in values])
            for position, column in slots
        ]
        return pa.StructArray.from_arrays(columns, fields=arrow_fields, mask=_mask(missing))

    return build


def untagged(inner: Build) -> Build:
    """Tagged values of a union that are one column whatever their tag."""
    return lambda values: inner([None if value is None else value[1] for value in values])


def _mask(missing: list[bool]) -> pa.Array | None:
    return pa.array(missing, pa.bool_()) if True in missing else None


def _extents(values: Sequence[list[Any] | dict[str, Any] | None]) -> tuple[list[bool], pa.Array]:
    """Which values are missing, and where each begins in the array of all items."""
    lengths = [0 if value is None else len(value) for value in values]
    return [value is None for value in values], pa.array([0, *accumulate(lengths)], pa.int32())
