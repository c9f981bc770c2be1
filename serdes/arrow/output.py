"""Columns as compiled code fills them: memory described by a table of addresses.

A column is the address of its row in the table, whose entries are named here; rows are in the order of column numbers.
A value is addressed by its column and its index `n`: a struct's children share its index, the items of a list have
their own. Only the offsets count values, so a row that is undone, or run again in larger memory, is simply overwritten.

There is room for all rows. For items of lists, and for bytes, there may not be enough: then `state` holds the column
and its need, Python enlarges the memory, and the VM runs the row again.

Rules of this file: no Avro bytes.
"""

import numpy as np

from strata.serdes.arrow import vm_state as vm
from strata.serdes.arrow.memory import (
    compiled,
    copy,
    copy_short,
    get,
    inlined,
    load_8,
    load_i32,
    put,
    store_8,
    store_64,
    store_i32,
)

__all__ = [
    "CAP",
    "COLUMN",
    "DATA",
    "DATA_CAP",
    "ENTRIES",
    "KIND",
    "STOP",
    "VALID",
    "VALUES",
    "WIDTH",
    "append_bytes",
    "append_null",
    "begin_list",
    "end_list",
    "mark",
    "repeats",
    "room_for_item",
]

VALUES, VALID, DATA, DATA_CAP, CAP, KIND, WIDTH, STOP = range(8)
ENTRIES = 8
COLUMN = 8 * ENTRIES
"""Bytes from one column to the next.

VALID is 0 if no value can be null. DATA has `memory.PADDING` bytes more than DATA_CAP. CAP is how many items of a list
there is room for. STOP is the distance to the end of the subtree, in bytes.
"""

NULLS, FIXED, BINARY, LIST, STRUCT = range(5)


@inlined
def mark(c: int, n: int) -> None:
    """Mark a value of a nullable column as not null."""
    store_8(get(c, VALID) + n, 1)


@inlined
def append_bytes(state: int, c: int, n: int, source: int, size: int, limit: int) -> int:
    """Append a value to a BINARY column: return 0 if the column is full, 2 if a byte is above 127, else 1.

    Bytes up to `limit` may be read, even after the value's end.
    """
    offset = get(c, VALUES) + 4 * n
    used = load_i32(offset)
    if used + size > get(c, DATA_CAP):
        return full(state, c, used + size, 1)
    store_i32(offset + 4, used + size)
    target = get(c, DATA) + used
    is_short = size <= 16 and source + 16 <= limit
    above = copy_short(source, target, size) if is_short else copy(source, target, size)
    return 1 if above == 0 else 2


@compiled
def full(state: int, c: int, need: int, in_bytes: int) -> int:
    """Store which column needs how much."""
    put(state, vm.WHO, c)
    put(state, vm.NEED, need)
    put(state, vm.NEEDS_BYTES, in_bytes)
    return 0


@inlined
def begin_list(c: int, n: int) -> int:
    """Return the index of the item before the first one of a list."""
    return load_i32(get(c, VALUES) + 4 * n) - 1


@inlined
def room_for_item(state: int, c: int, n: int) -> bool:
    """Return whether there is room for the list item with index n."""
    if n < get(c, CAP):
        return True
    full(state, c, n + 1, 0)
    return False


@inlined
def end_list(c: int, n: int, last: int) -> None:
    """Complete a list, given the index of its last item."""
    store_i32(get(c, VALUES) + 4 * (n + 1), last + 1)


@compiled
def append_null(c: int, n: int) -> None:
    """Append a null, and one to all columns of a struct."""
    j, stop = c, c + get(c, STOP)
    while j < stop:
        kind = get(j, KIND)
        if get(j, VALID) != 0:
            store_8(get(j, VALID) + n, 0)
        if kind == FIXED:
            width = get(j, WIDTH)
            address = get(j, VALUES) + n * width
            if width == 8:
                store_64(address, 0)
            else:
                for at in range(width):
                    store_8(address + at, 0)
        elif kind in (BINARY, LIST):
            offset = get(j, VALUES) + 4 * n
            store_i32(offset + 4, load_i32(offset))
        j += get(j, STOP) if kind == LIST else COLUMN


@compiled
def repeats(c: int, first: int, count: int, seed: int) -> bool:
    """Return whether `count` values of a BINARY column, from `first` on, contain duplicates."""
    if count < 2:
        return False
    if count <= 8:
        for j in range(first + 1, first + count):
            for k in range(first, j):
                if _equal(c, j, k):
                    return True
        return False
    return _repeats_many(c, first, count, seed)


@compiled
def _equal(c: int, j: int, k: int) -> bool:
    offsets, data = get(c, VALUES), get(c, DATA)
    a, b = load_i32(offsets + 4 * j), load_i32(offsets + 4 * k)
    size = load_i32(offsets + 4 * (j + 1)) - a
    if size != load_i32(offsets + 4 * (k + 1)) - b:
        return False
    for at in range(size):  # noqa: SIM110 - compiled code has no generators
        if load_8(data + a + at) != load_8(data + b + at):
            return False
    return True


@compiled
def _repeats_many(c: int, first: int, count: int, seed: int) -> bool:
    """Find duplicates by a hash table; the seed prevents the writer of the keys from forcing collisions."""
    slots = 16
    while slots < 2 * count:
        slots *= 2
    table = np.full(slots, -1, np.int32)
    for j in range(first, first + count):
        slot = _hash(c, j, seed) & (slots - 1)
        while table[slot] >= 0:
            if _equal(c, j, table[slot]):
                return True
            slot = (slot + 1) & (slots - 1)
        table[slot] = j
    return False


@compiled
def _hash(c: int, j: int, seed: int) -> int:
    offsets, data = get(c, VALUES), get(c, DATA)
    digest = seed
    for at in range(load_i32(offsets + 4 * j), load_i32(offsets + 4 * (j + 1))):
        digest = (digest ^ load_8(data + at)) * 0x100000001B3
        digest ^= (digest >> 29) & 0x7FFFFFFFF
    return digest ^ ((digest >> 17) & 0x7FFFFFFFFFFF)
