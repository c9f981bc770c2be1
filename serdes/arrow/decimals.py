"""Decimals: from big-endian bytes to Arrow's 16 or 32 little-endian bytes, at the reader's scale.

Rules of this file: compiled code only. A value is never rounded: if it does not fit, the row fails.
"""

import numpy as np

from strata.serdes.arrow import operations as op
from strata.serdes.arrow import vm_state as vm
from strata.serdes.arrow.memory import compiled, get, inlined, load_8, load_64, store_8, store_64, swapped
from strata.serdes.arrow.numbers import fail, shifted, sized
from strata.serdes.arrow.output import VALUES, WIDTH

__all__ = ["decimal"]

_QUICK = 18
_BOUNDS = np.array([10**digits for digits in range(_QUICK + 1)], np.int64)


@inlined
def decimal(pc: int, c: int, n: int, i: int, end: int, state: int) -> int:
    """Read a decimal into a column. Operands: size, precision, maximum bits, up, down, bound.

    Size is -1 if a length comes first, and -2 for all bytes left. A number of up to eight bytes that keeps its scale is
    read by one load, if eight bytes may be read.
    """
    size, i = sized(get(pc, 2), i, end, state)
    if i < 0:
        return i
    precision = get(pc, 3)
    if size == 0 or size > 8 or i + 8 > get(state, vm.READABLE) or precision > _QUICK or get(pc, 5) | get(pc, 6) != 0:
        return _any(pc, c, n, i, size, state)
    number = swapped(load_64(i)) >> (64 - (size << 3))
    if not -_BOUNDS[precision] < number < _BOUNDS[precision]:
        return fail(state, i + size, op.OUT_OF_RANGE)
    address = get(c, VALUES) + n * 16
    store_64(address, number)
    store_64(address + 8, number >> 63)
    return i + size


@compiled
def _any(pc: int, c: int, n: int, i: int, size: int, state: int) -> int:
    """Read a number of any size and scale."""
    after = i + size
    sign = 255 if size > 0 and load_8(i) > 127 else 0
    while size > 1 and load_8(i) == sign and load_8(i + 1) >> 7 == sign & 1:
        i, size = i + 1, size - 1
    if size * 8 > get(pc, 4) + 8:
        return fail(state, after, op.OUT_OF_RANGE)
    width = get(c, WIDTH)
    address = get(c, VALUES) + n * width
    if size == 0 or (size <= 8 and get(pc, 5) == 0 and get(pc, 6) == 0):
        fits = _short(address, width, i, size, sign, get(pc, 3))
    else:
        limbs = get(state, vm.LIMBS)
        fits = shifted(limbs, i, size, get(pc, 5), get(pc, 6))
        fits = fits and _long(address, width, limbs, sign, get(state, vm.POOL) + get(pc, 7))
    return after if fits else fail(state, after, op.OUT_OF_RANGE)


@compiled
def _short(address: int, width: int, i: int, size: int, sign: int, precision: int) -> bool:
    """Store a number of at most eight bytes; return whether it fits."""
    number = -1 if sign else 0
    for at in range(size):
        number = (number << 8) | load_8(i + at)
    if precision <= _QUICK and not -_BOUNDS[precision] < number < _BOUNDS[precision]:
        return False
    store_64(address, number)
    rest = -1 if sign else 0
    for at in range(8, width, 8):
        store_64(address + at, rest)
    return True


@compiled
def _long(address: int, width: int, limbs: int, sign: int, bound: int) -> bool:
    """Store the amount in `limbs` with its sign; return whether it is below the bound."""
    for limb in range(8, vm.LIMB_COUNT):
        if get(limbs, limb) != 0:
            return False
    below = False
    for at in range(31, -1, -1):
        byte = (get(limbs, at >> 2) >> ((at & 3) << 3)) & 255
        if byte != load_8(bound + at):
            below = byte < load_8(bound + at)
            break
    if not below:
        return False
    add = 1
    for at in range(width):
        byte = (get(limbs, at >> 2) >> ((at & 3) << 3)) & 255
        if sign:
            add += byte ^ 255
            byte = add & 255
            add >>= 8
        store_8(address + at, byte)
    return True
