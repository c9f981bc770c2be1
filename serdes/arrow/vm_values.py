"""The operations of the decoding VM that read one value into a column, or skip one; see `decoding_vm.py`.

Rules of this file: compiled code only. An operation returns the address after what it read, or a failure.
"""

import numpy as np

from strata.serdes.arrow import operations as op
from strata.serdes.arrow import vm_state as vm
from strata.serdes.arrow.memory import (
    compiled,
    copy,
    get,
    inlined,
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
from strata.serdes.arrow.numbers import extent, fail, is_text, signed, sized, varint_at
from strata.serdes.arrow.output import COLUMN, STOP, VALUES, WIDTH, append_bytes, append_null

__all__ = ["boolean", "copied", "passed", "rare", "span", "string", "symbol", "whole"]


@inlined
def string(c: int, n: int, i: int, end: int, state: int) -> int:
    """Read a string."""
    size, i = extent(state, i, end)
    if i < 0:
        return i
    written = append_bytes(state, c, n, i, size, get(state, vm.READABLE))
    if written == 0:
        return -op.FULL
    if written == 2 and not is_text(i, i + size):
        return fail(state, i, op.INVALID_UTF8)
    return i + size


@inlined
def whole(bits: int, width: int, c: int, n: int, i: int, end: int, state: int) -> int:
    """Read an int (32 bits) or long (64) into a column of 4 or 8 bytes."""
    number, i = varint_at(state, i, end, bits)
    if i > 0 and width == 8:
        store_64(get(c, VALUES) + 8 * n, signed(number))
    elif i > 0:
        store_i32(get(c, VALUES) + 4 * n, signed(number))
    return i


@inlined
def copied(size: int, c: int, n: int, i: int, end: int, state: int) -> int:
    """Copy a float or double."""
    if size > end - i:
        return fail(state, i, op.TRUNCATED)
    if size == 8:
        store_64(get(c, VALUES) + 8 * n, load_64(i))
    else:
        store_i32(get(c, VALUES) + 4 * n, load_i32(i))
    return i + size


@inlined
def boolean(c: int, n: int, i: int, end: int, state: int) -> int:
    """Read a byte that is 0 or 1."""
    if i >= end:
        return fail(state, i, op.TRUNCATED)
    byte = load_8(i)
    if byte > 1:
        return fail(state, i + 1, op.INVALID_BOOLEAN)
    store_8(get(c, VALUES) + n, byte)
    return i + 1


@inlined
def span(pc: int, c: int, n: int, i: int, end: int, state: int) -> int:
    """Read a date or time: check its bounds, then divide and multiply it into the column's unit."""
    number, i = varint_at(state, i, end, get(pc, 2))
    if i < 0:
        return i
    number = signed(number)
    if number < get(pc, 3) or number > get(pc, 4):
        return fail(state, i, op.OUT_OF_RANGE)
    if get(pc, 5) != 1:
        number //= get(pc, 5)
    number *= get(pc, 6)
    if get(c, WIDTH) == 4:
        store_i32(get(c, VALUES) + 4 * n, number)
    else:
        store_64(get(c, VALUES) + 8 * n, number)
    return i


@inlined
def symbol(pc: int, c: int, n: int, i: int, end: int, state: int) -> int:
    """Read an enum index; append the reader's symbol."""
    index, i = varint_at(state, i, end, 32)
    if i < 0:
        return i
    if index & 1 or index >= get(pc, 2):
        return fail(state, i, op.INVALID_INDEX)
    table = get(state, vm.TABLE) + 8 * (get(pc, 3) + index)
    at, size = get(table, 0), get(table, 1)
    if at < 0:
        put(state, vm.DETAIL, size)
        return fail(state, i, op.RESOLUTION)
    return i if pooled(state, c, n, at, size) else -op.FULL


@inlined
def passed(i: int, end: int, state: int) -> int:
    """Skip a length and that many bytes."""
    size, i = extent(state, i, end)
    return i if i < 0 else i + size


@inlined
def pooled(state: int, c: int, n: int, at: int, size: int) -> int:
    """Append bytes of the pool, which is padded so that short copies stay inside it."""
    source = get(state, vm.POOL) + at
    return append_bytes(state, c, n, source, size, source + size + 16)


@compiled
def rare(code: int, pc: int, c: int, n: int, i: int, end: int, state: int) -> int:
    """Run an operation that few schemas need."""
    if code == op.SKIP_INDEX:
        index, i = varint_at(state, i, end, 32)
        return fail(state, i, op.INVALID_INDEX) if i > 0 and (index & 1 or index >= get(pc, 2)) else i
    if code == op.BINARY:
        return binary(pc, c, n, i, end, state)
    if code == op.CONST:
        width = get(c, WIDTH)
        copy(get(state, vm.POOL) + get(pc, 2), get(c, VALUES) + n * width, width)
        return i
    if code == op.TEXT:
        return i if pooled(state, c, n, get(pc, 2), get(pc, 3)) else -op.FULL
    if code == op.MEMBER:
        j, stop = c + COLUMN, c + get(c, STOP)
        while j < stop:
            if j != c + COLUMN * get(pc, 2):
                append_null(j, n)
            j += get(j, STOP)
        return i
    if code in (op.REAL, op.WIDEN):
        return real(code, pc, c, n, i, end, state)
    put(state, vm.DETAIL, get(pc, 2))
    return fail(state, i, op.RESOLUTION)


@compiled
def binary(pc: int, c: int, n: int, i: int, end: int, state: int) -> int:
    """Read bytes: after a length (-1), all that are left (-2), or a fixed number; check UTF-8 for a text."""
    size, i = sized(get(pc, 2), i, end, state)
    if i < 0:
        return i
    written = append_bytes(state, c, n, i, size, get(state, vm.READABLE))
    if written == 0:
        return -op.FULL
    if get(pc, 3) == 1 and written == 2 and not is_text(i, i + size):
        return fail(state, i + size, op.INVALID_UTF8)
    return i + size


@compiled
def real(code: int, pc: int, c: int, n: int, i: int, end: int, state: int) -> int:
    """Read an int or long as a float (operand 1) or double, or a float as a double; the column may be wider."""
    number = 0.0
    if code == op.WIDEN:
        if end - i < 4:
            return fail(state, i, op.TRUNCATED)
        number = load_f32(i)
        i += 4
    else:
        bits, i = varint_at(state, i, end, get(pc, 2))
        if i < 0:
            return i
        number = float(signed(bits))
        if get(pc, 3) == 1:
            number = float(np.float32(number))
    if get(c, WIDTH) == 4:
        store_f32(get(c, VALUES) + 4 * n, number)
    else:
        store_f64(get(c, VALUES) + 8 * n, number)
    return i
