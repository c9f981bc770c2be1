"""Arrow arrays as input of the encoding VM: cast to the types of a layout, then put into a table of addresses.

Rules of this file: a cast never loses anything; a value that does not fit raises `EncodeError` with the row.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from strata.serdes.arrow import encoding_vm
from strata.serdes.arrow.layout import Column, Storage
from strata.serdes.errors import EncodeError, unknown_field

__all__ = ["Feed"]

_TEXTS = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_string_view,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_binary_view,
    pa.types.is_fixed_size_binary,
)
_DIGITS = {"int8": 3, "int16": 5, "int32": 10, "int64": 19}
"""The digits of the largest integer of a signed type; of the unsigned ones, only uint64 has one more."""


@dataclass(frozen=True, slots=True)
class _Location:
    """The location of an array in the batch: its path, and the offsets of the lists around it."""

    path: str = ""
    lists: tuple[pa.Array, ...] = ()

    def row(self, index: int) -> int:
        """Return the row of a value."""
        for offsets in reversed(self.lists):
            index = int(np.searchsorted(offsets, index, side="right")) - 1
        return index

    def inside(self, part: str, *offsets: object) -> "_Location":
        """Return the place of a part of the array."""
        return _Location(f"{self.path}{part}".lstrip("."), (*self.lists, *offsets))


class Feed:
    """The columns of a layout, filled from an array; `encoding_vm.py` reads `table`."""

    def __init__(self, root: Column, array: pa.Array, *, drop_unknown: bool = False) -> None:
        self._drop_unknown = drop_unknown
        self.table = np.zeros((len(root.subtree()), encoding_vm.ENTRIES_OF_COLUMN), np.int64)
        self._keep: list[object] = []
        self._fill(root, array, _Location())

    def _fill(self, column: Column, array: pa.Array, location: _Location) -> None:
        match column.storage:
            case Storage.STRUCT:
                self._struct(column, array, location)
            case Storage.LIST:
                self._list(column, array, location)
            case Storage.NULLS:
                self.table[column.number, encoding_vm.WIDTH] = 0 if pa.types.is_null(array.type) else 1
                self._validity(column, array)
            case _:
                self._values(column, _cast(array, column, location))

    def _validity(self, column: Column, array: pa.Array) -> None:
        if array.null_count:
            valid = np.asarray(array.is_valid()).view(np.uint8)
            self._keep.append(valid)
            self.table[column.number, encoding_vm.VALID] = valid.ctypes.data

    def _values(self, column: Column, array: pa.Array) -> None:
        self._validity(column, array)
        if column.symbols is not None:  # a text that is not a symbol must not become a null
            array = pc.index_in(array, pa.array(column.symbols, array.type)).fill_null(-1)
        row = self.table[column.number]
        if pa.types.is_boolean(array.type):
            array = array.cast(pa.uint8())
        buffers = array.buffers()
        self._keep.append(buffers)
        binary = column.storage == Storage.BINARY and column.symbols is None
        row[encoding_vm.WIDTH] = width = 4 if binary else array.type.bit_width // 8
        if buffers[1] is not None:
            row[encoding_vm.VALUES] = buffers[1].address + array.offset * width
        if binary and buffers[2] is not None:
            row[encoding_vm.DATA] = buffers[2].address

    def _struct(self, column: Column, array: pa.Array, location: _Location) -> None:
        if not pa.types.is_struct(array.type):
            if not pa.types.is_null(array.type):
                raise EncodeError(f"expected a struct, got {array.type}", path=location.path)
            array = array.cast(column.arrow)
        self._validity(column, array)
        names = {array.type.field(index).name: index for index in range(array.type.num_fields)}
        known = [child.name for child in column.children]
        extra = next((name for name in names if name not in known), None)
        if extra is not None and not self._drop_unknown:
            raise unknown_field(extra, known, location.path)
        for child in column.children:
            inner = location.inside(f".{child.name}")
            if child.name in names:
                self._fill(child, array.field(names[child.name]), inner)
            elif child.nullable:
                self._fill(child, pa.nulls(len(array), child.arrow), inner)
            else:
                raise EncodeError("no such column, and null is not allowed", path=inner.path)

    def _list(self, column: Column, array: pa.Array, location: _Location) -> None:
        if pa.types.is_null(array.type):
            array = array.cast(column.arrow)
        is_map = pa.types.is_map(column.arrow)
        if not is_map and (pa.types.is_large_list(array.type) or pa.types.is_fixed_size_list(array.type)):
            array = array.cast(pa.list_(array.type.value_field))
        if not (pa.types.is_map(array.type) if is_map else pa.types.is_list(array.type)):
            raise EncodeError(f"expected {'a map' if is_map else 'a list'}, got {array.type}", path=location.path)
        self._validity(column, array)
        buffer = array.buffers()[1]
        offsets = np.zeros(1, np.int32)
        if buffer is not None and len(array):
            offsets = np.frombuffer(buffer, np.int32, len(array) + 1, 4 * array.offset)
        self._keep.append(offsets)
        self.table[column.number, encoding_vm.VALUES] = offsets.ctypes.data
        if is_map:
            inner = location.inside("{}", offsets)
            for child, items in zip(column.children, (array.keys, array.items), strict=True):
                self._fill(child, items, inner)
        else:
            self._fill(column.children[0], array.values, location.inside("[]", offsets))


def _cast(array: pa.Array, column: Column, location: _Location) -> pa.Array:
    """Return the array in the column's type; on failure, bisect to find the first row that does not fit."""
    if array.type == column.arrow:
        return array
    other = EncodeError(f"expected a column of {column.arrow}, got {array.type}", path=location.path)
    if _bends(array.type, column.arrow):
        raise other
    try:
        return array.cast(column.arrow)
    except pa.ArrowNotImplementedError:
        raise other from None
    except pa.ArrowInvalid:
        first, last = 0, len(array)
    while last - first > 1:
        middle = (first + last) // 2
        try:
            array.slice(first, middle - first).cast(column.arrow)
        except pa.ArrowInvalid:
            last = middle
        else:
            first = middle
    # Arrow's message contains the value, which must not get into logs and makes errors hard to count.
    raise EncodeError(f"a value does not fit {column.arrow}", path=location.path, row=location.row(first))


def _bends(source: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether Arrow's cast would silently change values: texts and numbers, 5 to true, 0.1 to a float.

    A conversion that no value survives is one as well: an int32 in a decimal of five digits.
    """
    arrow_type = source.value_type if pa.types.is_dictionary(source) else source
    if pa.types.is_null(arrow_type):
        return False
    if _is_text(arrow_type) is not _is_text(wanted) or pa.types.is_boolean(arrow_type) is not pa.types.is_boolean(
        wanted
    ):
        return True
    if pa.types.is_decimal(wanted) and pa.types.is_integer(arrow_type):  # Arrow wants room for every number of the type
        return bool(
            wanted.precision - wanted.scale < _DIGITS[str(arrow_type).lstrip("u")] + (arrow_type == pa.uint64())
        )
    if pa.types.is_floating(wanted):
        return bool(
            pa.types.is_decimal(arrow_type)
            or (pa.types.is_floating(arrow_type) and arrow_type.bit_width > wanted.bit_width)
        )
    return bool(pa.types.is_decimal(wanted) and pa.types.is_floating(arrow_type))


def _is_text(arrow_type: pa.DataType) -> bool:
    return any(test(arrow_type) for test in _TEXTS)
