"""The memory behind columns while they are written, and the Arrow arrays that it becomes.

Rules of this file: bytes and counts; what the values mean is not looked at.
"""

from typing import Any

import numpy as np
import pyarrow as pa

from serdes.arrow import output
from serdes.arrow.layout import Column, Storage

__all__ = ["ColumnTooLarge", "Columns"]

MAX_OFFSET = 2**31 - 1
"""Arrow's lists, strings and binaries count in 32 bits."""

_FIRST_BYTES = 16
_WITH_OFFSETS = (Storage.BINARY, Storage.LIST)


class ColumnTooLarge(OverflowError):
    """A column of one batch passes 2 GiB or 2^31 items: decode fewer frames at once."""


class Columns:
    """One batch under way. `table` is what compiled code appends by, see `output.py`."""

    def __init__(self, root: Column, rows: int) -> None:
        self._root = root
        self._all = root.subtree()
        self._valid: list[Any] = [None] * len(self._all)
        self._values: list[Any] = [None] * len(self._all)
        self._data: list[Any] = [None] * len(self._all)
        self.table = np.zeros((len(self._all), output.ENTRIES), np.int64)
        self._describe(root, None)
        for one in self._all:
            self._make_room(one, max(rows, 1))
            if one.storage == Storage.BINARY:
                self._make_bytes(one, _FIRST_BYTES * max(rows, 1))

    def _describe(self, column: Column, parent: Column | None) -> None:
        row = self.table[column.number]
        row[output.KIND] = column.storage
        row[output.ABOVE] = 0 if parent is None else output.COLUMN * (column.number - parent.number)
        row[output.WIDTH] = column.width
        row[output.STOP] = output.COLUMN * len(column.subtree())
        for child in column.children:
            self._describe(child, column)

    def grow(self, address: int, need: int, *, in_bytes: bool) -> None:
        """Make room for so many values, or bytes of values, and as many again.

        Raises:
            ColumnTooLarge: Arrow cannot count so many.
        """
        column = self._all[(address - self.table.ctypes.data) // output.COLUMN]
        if need > MAX_OFFSET:
            raise ColumnTooLarge(
                f"the column {column.name or 'value'} of this batch passes what Arrow counts in 32 bits; "
                "decode fewer frames at once"
            )
        make = self._make_bytes if in_bytes else self._make_room
        make(column, min(2 * need, MAX_OFFSET))

    def _make_room(self, column: Column, count: int) -> None:
        row = self.table[column.number]
        row[output.CAP] = count
        if column.storage == Storage.NULLS:
            return
        self._valid[column.number] = valid = _larger(self._valid[column.number], count)
        row[output.VALID] = valid.ctypes.data
        if column.storage != Storage.STRUCT:
            size = 4 * (count + 1) if column.storage in _WITH_OFFSETS else column.width * count
            self._values[column.number] = values = _larger(self._values[column.number], size)
            row[output.VALUES] = values.ctypes.data

    def _make_bytes(self, column: Column, size: int) -> None:
        row = self.table[column.number]
        self._data[column.number] = data = _larger(self._data[column.number], size)
        row[output.DATA], row[output.DATA_CAP] = data.ctypes.data, size

    def array(self, column: Column | None = None, *, nullable: bool = True) -> pa.Array:
        """The array of a column, of the root when none is named; its values are not copied.

        A column that is not nullable has no nulls: what stands under a null struct there are zeros.
        """
        column = self._root if column is None else column
        count = int(self.table[column.number, output.COUNT])
        if column.storage == Storage.NULLS:
            return pa.nulls(count)
        validity = self._validity(column, count) if nullable else None
        children = [self.array(child, nullable=child.nullable) for child in column.children]
        values = self._values[column.number]
        match column.storage:
            case Storage.STRUCT:
                return _array(column.arrow, count, [validity], children)
            case Storage.LIST:
                return self._list(column, count, [validity, pa.py_buffer(values[: 4 * (count + 1)])], children)
            case Storage.BINARY:
                data = self._data[column.number][: int(self.table[column.number, output.DATA_COUNT])]
                return _array(
                    column.arrow, count, [validity, pa.py_buffer(values[: 4 * (count + 1)]), pa.py_buffer(data)]
                )
        raw = values[: column.width * count]
        if pa.types.is_boolean(column.arrow):
            raw = np.packbits(raw, bitorder="little")
        return _array(column.arrow, count, [validity, pa.py_buffer(raw)])

    def _validity(self, column: Column, count: int) -> pa.Buffer | None:
        valid = self._valid[column.number][:count]
        return None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))

    def _list(self, column: Column, count: int, buffers: list[pa.Buffer | None], children: list[pa.Array]) -> pa.Array:
        if pa.types.is_map(column.arrow):
            entries = pa.struct([child.field() for child in column.children])
            children = [_array(entries, len(children[0]), [None], children)]
        return _array(column.arrow, count, buffers, children)


def _array(
    kind: pa.DataType, count: int, buffers: list[pa.Buffer | None], children: list[pa.Array] | None = None
) -> pa.Array:
    return pa.Array.from_buffers(kind, count, buffers, children=children)


def _larger(old: Any, size: int) -> Any:
    new = np.empty(size, np.uint8)
    if old is None:
        new[:4] = 0  # the first offset
    else:
        new[: len(old)] = old
    return new
