"""Columns as compiled code appends to them: growable memory that a table of addresses and counts describes.

A column is the address of its row in a table, with the entries named here; rows are in the order of the
numbers. An append that finds no
room answers False after noting in `state` who needs how much; the row under way is then taken back, the memory made
larger, and the row run again. Nothing is kept to take a row back: how many values a column had follows from the counts
of the column around it.

Rules of this file: no bytes of Avro.
"""

import numpy as np

from serdes.arrow.memory import compiled, copy, get, load_8, load_i32, put, store_8, store_64, store_i32
from serdes.arrow.state import NEED, NEEDS_BYTES, WHO

__all__ = [
    "CAP",
    "COUNT",
    "DATA",
    "DATA_CAP",
    "DATA_COUNT",
    "ENTRIES",
    "STOP",
    "VALID",
    "VALUES",
]

KIND, COUNT, CAP, VALID, VALUES, DATA, DATA_COUNT, DATA_CAP, STOP, ABOVE, WIDTH = range(11)
ENTRIES = 11
COLUMN = 8 * ENTRIES
"""Bytes from one column to the next. STOP and ABOVE are distances too: to the end of the subtree, and back to the
column around, 0 at the root."""

NULLS, FIXED, BINARY, LIST, STRUCT = range(5)


@compiled
def room(state: int, c: int) -> bool:
    """Whether one more value fits."""
    if get(c, COUNT) < get(c, CAP):
        return True
    put(state, WHO, c)
    put(state, NEED, get(c, COUNT) + 1)
    put(state, NEEDS_BYTES, 0)
    return False


@compiled
def append(state: int, c: int) -> int:
    """The address of a new value of a FIXED column, marked valid; 0 when it is full."""
    if not room(state, c):
        return 0
    n = get(c, COUNT)
    store_8(get(c, VALID) + n, 1)
    put(c, COUNT, n + 1)
    return get(c, VALUES) + n * get(c, WIDTH)


@compiled
def append_bytes(state: int, c: int, source: int, size: int) -> int:
    """A value of a BINARY column: 0 when it was full, else 1, or more when a byte is above 127."""
    if not room(state, c):
        return 0
    n, used = get(c, COUNT), get(c, DATA_COUNT)
    if used + size > get(c, DATA_CAP):
        put(state, WHO, c)
        put(state, NEED, used + size)
        put(state, NEEDS_BYTES, 1)
        return 0
    above = copy(source, get(c, DATA) + used, size)
    store_8(get(c, VALID) + n, 1)
    store_i32(get(c, VALUES) + 4 * (n + 1), used + size)
    put(c, COUNT, n + 1)
    put(c, DATA_COUNT, used + size)
    return 1 if above == 0 else 2


@compiled
def append_struct(state: int, c: int) -> bool:
    """Say that a struct is there; its children follow."""
    if not room(state, c):
        return False
    n = get(c, COUNT)
    store_8(get(c, VALID) + n, 1)
    put(c, COUNT, n + 1)
    return True


@compiled
def append_list(state: int, c: int) -> bool:
    """Say that a list is complete: all items that its child has by now and no list before it had."""
    if not room(state, c):
        return False
    n = get(c, COUNT)
    store_8(get(c, VALID) + n, 1)
    store_i32(get(c, VALUES) + 4 * (n + 1), get(c + COLUMN, COUNT))
    put(c, COUNT, n + 1)
    return True


@compiled
def append_null(state: int, c: int) -> bool:
    """A null, and one in all that a struct holds."""
    j, stop = c, c + get(c, STOP)
    while j < stop:
        kind, n = get(j, KIND), get(j, COUNT)
        if not room(state, j):
            return False
        if kind != NULLS:
            store_8(get(j, VALID) + n, 0)
        if kind == FIXED:
            width = get(j, WIDTH)
            address = get(j, VALUES) + n * width
            if width == 8:
                store_64(address, 0)
            else:
                for at in range(width):
                    store_8(address + at, 0)
        elif kind == BINARY:
            store_i32(get(j, VALUES) + 4 * (n + 1), get(j, DATA_COUNT))
        elif kind == LIST:
            store_i32(get(j, VALUES) + 4 * (n + 1), get(j + COLUMN, COUNT))
        put(j, COUNT, n + 1)
        j += get(j, STOP) if kind == LIST else COLUMN
    return True


@compiled
def take_back(cols: int, rows: int) -> None:
    """Leave what the first rows have made."""
    c, stop = cols, cols + get(cols, STOP)
    while c < stop:
        parent = c - get(c, ABOVE)
        n = rows
        if parent != c:
            n = get(parent, COUNT)
            if get(parent, KIND) == LIST:
                n = load_i32(get(parent, VALUES) + 4 * n)
        put(c, COUNT, n)
        if get(c, KIND) == BINARY:
            put(c, DATA_COUNT, load_i32(get(c, VALUES) + 4 * n))
        c += COLUMN


@compiled
def repeats(c: int, first: int, seed: int) -> bool:
    """Whether two of the values of a BINARY column from `first` on are equal."""
    count = get(c, COUNT) - first
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
    """By a hash table; the seed keeps who writes the keys from choosing their places."""
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
    found = seed
    for at in range(load_i32(offsets + 4 * j), load_i32(offsets + 4 * (j + 1))):
        found = (found ^ load_8(data + at)) * 0x100000001B3
        found ^= (found >> 29) & 0x7FFFFFFFF
    return found ^ ((found >> 17) & 0x7FFFFFFFFFFF)
