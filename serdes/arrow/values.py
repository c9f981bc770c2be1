"""The operations that append one value to a column, or skip one, see `machine.py`.

Rules of this file: compiled code only. An operation answers the address behind what it read, or a failure.
"""

import numpy as np

from serdes.arrow.decimals import append_decimal
from serdes.arrow.memory import (
    compiled,
    copy,
    get,
    load_8,
    load_64,
    load_f32,
    load_i32,
    put,
    store_8,
    store_64,
    store_f32,
    store_f64,
    store_i32,
)
from serdes.arrow.numbers import (
    INVALID_BOOLEAN,
    INVALID_INDEX,
    INVALID_UTF8,
    OUT_OF_RANGE,
    RESOLUTION,
    TRUNCATED,
    extent,
    fail,
    int_at,
    is_text,
    long_at,
    signed,
)
from serdes.arrow.operations import (
    BINARY,
    BOOL,
    CLOSE,
    CONST,
    COPY,
    DECIMAL,
    ENUM,
    FULL,
    INT32,
    INT64,
    INT_LONG,
    MEMBER,
    NULL,
    REAL,
    SKIP_BYTES,
    SKIP_INDEX,
    SKIP_INT,
    SKIP_LONG,
    SKIP_SIZE,
    SPAN,
    STRING,
    STRUCT,
    TEXT,
    WIDEN,
)
from serdes.arrow.output import COLUMN, STOP, WIDTH, append, append_bytes, append_list, append_null, append_struct
from serdes.arrow.state import DETAIL, POOL, TABLE

__all__ = ["value"]


@compiled
def value(op: int, pc: int, c: int, i: int, end: int, state: int) -> int:  # noqa: C901 - the table of operations
    """Read one value into its column, or skip one; the address behind it, or a failure."""
    if op == STRING:
        return string(c, i, end, state)
    if op == NULL:
        return i if append_null(state, c) else -FULL
    if op in (INT32, INT_LONG):
        return integer(c, op == INT32, i, end, state)
    if op == INT64:
        return long(c, i, end, state)
    if op == COPY:
        return copied(pc, c, i, end, state)
    if op == BOOL:
        return boolean(c, i, end, state)
    if op == SPAN:
        return span(pc, c, i, end, state)
    if op == STRUCT:
        return i if append_struct(state, c) else -FULL
    if op == ENUM:
        return symbol(pc, c, i, end, state)
    if op == SKIP_INT:
        _, i = int_at(state, i, end)
        return i
    if op == SKIP_LONG:
        _, i = long_at(state, i, end)
        return i
    if op == SKIP_BYTES:
        size, i = extent(state, i, end)
        return i if i < 0 else i + size
    if op == SKIP_SIZE:
        return i + get(pc, 2)
    if op == DECIMAL:
        return append_decimal(pc, c, i, end, state)
    if op == BINARY:
        return binary(pc, c, i, end, state)
    return rare(op, pc, c, i, end, state)


@compiled
def copied(pc: int, c: int, i: int, end: int, state: int) -> int:
    """A float or double as it stands."""
    size = get(pc, 2)
    if size > end - i:
        return fail(state, i, TRUNCATED)
    address = append(state, c)
    if address == 0:
        return -FULL
    if size == 8:
        store_64(address, load_64(i))
    else:
        store_i32(address, load_i32(i))
    return i + size


@compiled
def rare(op: int, pc: int, c: int, i: int, end: int, state: int) -> int:
    """The values that few schemas have."""
    if op == CONST:
        address = append(state, c)
        if address == 0:
            return -FULL
        copy(get(state, POOL) + get(pc, 2), address, get(c, WIDTH))
        return i
    if op == TEXT:
        return i if append_bytes(state, c, get(state, POOL) + get(pc, 2), get(pc, 3)) else -FULL
    if op == CLOSE:
        return i if append_list(state, c) else -FULL
    if op == MEMBER:
        if not append_struct(state, c):
            return -FULL
        j, stop = c + COLUMN, c + get(c, STOP)
        while j < stop:
            if j != c + COLUMN * get(pc, 2) and not append_null(state, j):
                return -FULL
            j += get(j, STOP)
        return i
    if op in (REAL, WIDEN):
        return real(op, pc, c, i, end, state)
    if op == SKIP_INDEX:
        index, i = int_at(state, i, end)
        return fail(state, i, INVALID_INDEX) if i > 0 and (index & 1 or index >= get(pc, 2)) else i
    put(state, DETAIL, get(pc, 2))
    return fail(state, i, RESOLUTION)


@compiled
def string(c: int, i: int, end: int, state: int) -> int:
    """A text with its length before it."""
    size, i = extent(state, i, end)
    if i < 0:
        return i
    written = append_bytes(state, c, i, size)
    if written == 0:
        return -FULL
    if written == 2 and not is_text(i, i + size):
        return fail(state, i, INVALID_UTF8)
    return i + size


@compiled
def binary(pc: int, c: int, i: int, end: int, state: int) -> int:
    """Bytes: with their length before them (-1), all that are left (-2), or a fixed number; perhaps a text."""
    size = get(pc, 2)
    if size == -1:
        size, i = extent(state, i, end)
        if i < 0:
            return i
    elif size == -2:
        size = max(end - i, 0)
    elif size > end - i:
        return fail(state, i, TRUNCATED)
    written = append_bytes(state, c, i, size)
    if written == 0:
        return -FULL
    if get(pc, 3) == 1 and written == 2 and not is_text(i, i + size):
        return fail(state, i + size, INVALID_UTF8)
    return i + size


@compiled
def integer(c: int, narrow: bool, i: int, end: int, state: int) -> int:
    """An int, into 32 bits or 64."""
    number, i = int_at(state, i, end)
    if i < 0:
        return i
    address = append(state, c)
    if address == 0:
        return -FULL
    if narrow:
        store_i32(address, signed(number))
    else:
        store_64(address, signed(number))
    return i


@compiled
def long(c: int, i: int, end: int, state: int) -> int:
    """A long."""
    number, i = long_at(state, i, end)
    if i < 0:
        return i
    address = append(state, c)
    if address == 0:
        return -FULL
    store_64(address, signed(number))
    return i


@compiled
def boolean(c: int, i: int, end: int, state: int) -> int:
    """A byte that is 0 or 1."""
    if i >= end:
        return fail(state, i, TRUNCATED)
    byte = load_8(i)
    if byte > 1:
        return fail(state, i + 1, INVALID_BOOLEAN)
    address = append(state, c)
    if address == 0:
        return -FULL
    store_8(address, byte)
    return i + 1


@compiled
def span(pc: int, c: int, i: int, end: int, state: int) -> int:
    """A number that stands for something: between two bounds, divided and multiplied into the column's unit."""
    number, i = int_at(state, i, end) if get(pc, 2) == 32 else long_at(state, i, end)
    if i < 0:
        return i
    number = signed(number)
    if number < get(pc, 3) or number > get(pc, 4):
        return fail(state, i, OUT_OF_RANGE)
    if get(pc, 5) != 1:
        number //= get(pc, 5)
    number *= get(pc, 6)
    address = append(state, c)
    if address == 0:
        return -FULL
    if get(c, WIDTH) == 4:
        store_i32(address, number)
    else:
        store_64(address, number)
    return i


@compiled
def real(op: int, pc: int, c: int, i: int, end: int, state: int) -> int:
    """An int or long as a float (operand 1) or double, or a float as a double; the column may be wider."""
    number = 0.0
    if op == WIDEN:
        if end - i < 4:
            return fail(state, i, TRUNCATED)
        number = load_f32(i)
        i += 4
    else:
        bits, i = int_at(state, i, end) if get(pc, 2) == 32 else long_at(state, i, end)
        if i < 0:
            return i
        number = float(signed(bits))
        if get(pc, 3) == 1:
            number = float(np.float32(number))
    address = append(state, c)
    if address == 0:
        return -FULL
    if get(c, WIDTH) == 4:
        store_f32(address, number)
    else:
        store_f64(address, number)
    return i


@compiled
def symbol(pc: int, c: int, i: int, end: int, state: int) -> int:
    """A symbol of an enum as the text that the reader has for it."""
    index, i = int_at(state, i, end)
    if i < 0:
        return i
    if index & 1 or index >= get(pc, 2):
        return fail(state, i, INVALID_INDEX)
    table = get(state, TABLE) + 8 * (get(pc, 3) + index)
    at, size = get(table, 0), get(table, 1)
    if at < 0:
        put(state, DETAIL, size)
        return fail(state, i, RESOLUTION)
    return i if append_bytes(state, c, get(state, POOL) + at, size) else -FULL
