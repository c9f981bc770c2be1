"""The memory of columns while compiled code fills them, and the Arrow arrays made of it.

Rules of this file: bytes and counts; it does not interpret values.
"""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from strata.serdes.arrow import output
from strata.serdes.arrow.layout import Column, Storage
from strata.serdes.arrow.memory import PADDING

__all__ = ["ColumnTooLarge", "Columns"]

MAX_OFFSET = 2**31 - 1
"""Arrow's list, string and binary types have 32-bit offsets."""

_FIRST_BYTES = 16
_WITH_OFFSETS = (Storage.BINARY, Storage.LIST)


class ColumnTooLarge(OverflowError):
    """A column of one batch that exceeds 2 GiB or 2^31 items: decode fewer frames at once."""


class Columns:
    """The columns of one batch. Compiled code writes through `table`, see `output.py`.

    Args:
        root: the root of the columns.
        rows: the number of rows.
        expected: by column number, how many items or bytes to allocate at first; `grow` allocates more.
    """

    def __init__(self, root: Column, rows: int, expected: Mapping[int, int] | None = None) -> None:
        self.rows = rows
        self._root = root
        self._all = root.subtree()
        self._expected = expected or {}
        self._memory: dict[tuple[int, int], pa.Buffer] = {}
        self.table = np.zeros((len(self._all), output.ENTRIES), np.int64)
        for column in self._all:
            row = self.table[column.number]
            row[output.KIND], row[output.WIDTH], row[output.STOP] = (
                column.storage,
                column.width,
                output.COLUMN * column.size,
            )
        self._make_room(root, max(rows, 1))

    def grow(self, address: int, need: int, *, in_bytes: bool) -> None:
        """Make room for `need` items of a list, or bytes of values, and as many again.

        Args:
            address: the address of the column's row in `table`.
            need: the number of items or bytes.
            in_bytes: whether `need` counts bytes.

        Raises:
            ColumnTooLarge: If Arrow cannot count this many.
        """
        column = self._all[(address - self.table.ctypes.data) // output.COLUMN]
        if need > MAX_OFFSET:
            raise ColumnTooLarge(
                f"the column {column.name or 'value'} of this batch passes what Arrow counts in 32 bits; "
                "decode fewer frames at once"
            )
        make = self._make_bytes if in_bytes else self._make_items
        make(column, min(2 * need, MAX_OFFSET))

    def _make_room(self, column: Column, count: int) -> None:
        """Allocate memory for this many values of a column, and of all columns that share its index."""
        if column.nullable or column is self._root:
            self._make(column, output.VALID, count)
        if column.storage == Storage.STRUCT:
            for child in column.children:
                self._make_room(child, count)
        elif column.storage in _WITH_OFFSETS:
            self._make(column, output.VALUES, 4 * (count + 1))
        elif column.storage == Storage.FIXED:
            self._make(column, output.VALUES, column.width * count)
        if column.storage == Storage.BINARY and (column.number, output.DATA) not in self._memory:
            self._make_bytes(column, self._expected.get(column.number, _FIRST_BYTES * count))
        if column.storage == Storage.LIST and not self.table[column.number, output.CAP]:
            self._make_items(column, max(self._expected.get(column.number, count), 1))

    def _make_items(self, column: Column, count: int) -> None:
        for child in column.children:
            self._make_room(child, count)
        self.table[column.number, output.CAP] = count

    def _make_bytes(self, column: Column, size: int) -> None:
        self._make(column, output.DATA, size + PADDING)
        self.table[column.number, output.DATA_CAP] = size

    def _make(self, column: Column, entry: int, size: int) -> None:
        memory = self._memory.get((column.number, entry))
        if memory is None:
            memory = self._memory[column.number, entry] = pa.allocate_buffer(size, resizable=True)
            if entry == output.VALUES and column.storage in _WITH_OFFSETS:
                np.frombuffer(memory, np.int32, 1)[0] = 0
        else:
            memory.resize(size)
        self.table[column.number, entry] = memory.address

    def sizes(self) -> dict[int, int]:
        """Return by column number the number of items or bytes, for the columns that count their own."""
        counts: dict[int, int] = {}
        self._count(self._root, self.rows, counts)
        return counts

    def _count(self, column: Column, count: int, counts: dict[int, int]) -> None:
        if column.storage in _WITH_OFFSETS:
            count = counts[column.number] = self._end(column, count)
        for child in column.children:
            self._count(child, count, counts)

    def _end(self, column: Column, count: int) -> int:
        """Return the end offset of the last of `count` values."""
        return int(np.frombuffer(self._memory[column.number, output.VALUES], np.int32, 1, 4 * count)[0])

    def array(self, column: Column) -> pa.Array:
        """Return the array of the root, or of one of its children (null where the root is), without copying values.

        Deeper down, a column that is not nullable has no nulls: it holds zeros under a null struct.
        """
        nullable = column if column.nullable else self._root
        return self._array(column, self.rows, self._validity(nullable, self.rows))

    def _array(self, column: Column, count: int, validity: pa.Buffer | None) -> pa.Array:
        if column.storage == Storage.NULLS:
            return pa.nulls(count)
        if column.storage == Storage.STRUCT:
            return _array(column.arrow, count, [validity], children=self._children(column, count))
        values = self._memory[column.number, output.VALUES]
        if column.storage == Storage.FIXED:
            values = values.slice(0, column.width * count)
            if pa.types.is_boolean(column.arrow):
                values = pa.py_buffer(np.packbits(np.frombuffer(values, np.uint8), bitorder="little"))
            return _array(column.arrow, count, [validity, values])
        buffers, end = [validity, values.slice(0, 4 * (count + 1))], self._end(column, count)
        if column.storage == Storage.BINARY:
            return _array(column.arrow, count, [*buffers, self._memory[column.number, output.DATA].slice(0, end)])
        children = self._children(column, end)
        if pa.types.is_map(column.arrow):
            entries = pa.struct([child.field() for child in column.children])
            children = [_array(entries, end, [None], children=children)]
        return _array(column.arrow, count, buffers, children=children)

    def _children(self, column: Column, count: int) -> list[pa.Array]:
        return [
            self._array(child, count, self._validity(child, count) if child.nullable else None)
            for child in column.children
        ]

    def _validity(self, column: Column, count: int) -> pa.Buffer | None:
        valid = np.frombuffer(self._memory[column.number, output.VALID], np.uint8, count)
        return None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))


_array = pa.Array.from_buffers
