"""Avro's numbers and texts in compiled code.

A reader takes the address `i` of the next byte and the address `end` after the last one, and returns the address after
what it read, or a negative status from `fail`. All values are 64-bit patterns in an int64, because compiled code that
mixes signed and unsigned integers would convert them to floats.

Rules of this file: no columns and no programs.
"""

import numpy as np

from strata.serdes.arrow import operations as op
from strata.serdes.arrow import vm_state as vm
from strata.serdes.arrow.memory import HIGH_BITS, compiled, get, inlined, load_8, load_64, put, trailing_zeros

__all__ = [
    "extent",
    "fail",
    "is_text",
    "shifted",
    "signed",
    "sized",
    "varint_at",
]

_POSITIVE = 0x7FFFFFFFFFFFFFFF


@inlined
def fail(state: int, i: int, status: int) -> int:
    """Store where reading failed; return the failure."""
    put(state, vm.PLACE, i)
    return -status


@inlined
def varint_at(state: int, i: int, end: int, bits: int) -> tuple[int, int]:
    """Read a varint of at most 32 or 64 bits, still in zigzag form."""
    if i < end:
        first = load_8(i)
        if first < 128:
            return first, i + 1
        size, number = quick(i, get(state, vm.READABLE))
        if size <= end - i and (bits == 64 or size <= 4):
            return number, i + size
    return slow_varint(state, i, end, bits)


_NEVER = 1 << 62


@inlined
def quick(i: int, limit: int) -> tuple[int, int]:
    """Return size and value of a varint of up to eight bytes, by one load, if eight bytes can be read.

    If the varint is longer, or fewer bytes can be read, the size is larger than any payload, and the caller falls back
    to the slow function, which finds what is wrong.
    """
    if i + 8 > limit:
        return _NEVER, 0
    word = load_64(i)
    lasts = ~word & HIGH_BITS
    if lasts == 0:
        return _NEVER, 0
    word &= lasts ^ (lasts - 1)
    word = (word & 0x007F007F007F007F) | ((word & 0x7F007F007F007F00) >> 1)
    word = (word & 0x00003FFF00003FFF) | ((word & 0x3FFF00003FFF0000) >> 2)
    word = (word & 0x000000000FFFFFFF) | ((word & 0x0FFFFFFF00000000) >> 4)
    return (trailing_zeros(lasts) >> 3) + 1, word


@compiled
def slow_varint(state: int, i: int, end: int, bits: int) -> tuple[int, int]:
    """Read a varint of at most so many bits, byte by byte."""
    if i >= end:
        return 0, fail(state, i, op.TRUNCATED)
    number = load_8(i)
    i += 1
    if number < 128:
        return number, i
    number &= 127
    at, shift = i, 7
    while shift < bits:
        if at >= end:
            return 0, fail(state, i, op.TRUNCATED)
        byte = load_8(at)
        at += 1
        if bits - shift < 7 and byte >> (bits - shift) != 0:
            break
        number |= (byte & 127) << shift
        if byte < 128:
            return number, at
        shift += 7
    return 0, fail(state, i, op.OUT_OF_RANGE)


@inlined
def signed(number: int) -> int:
    """Decode zigzag."""
    return ((number >> 1) & _POSITIVE) ^ -(number & 1)


@inlined
def extent(state: int, i: int, end: int) -> tuple[int, int]:
    """Read a length; return it with the address of its bytes, all of which are there."""
    number, i = varint_at(state, i, end, 64)
    if i < 0:
        return 0, i
    if number & 1:
        return 0, fail(state, i, op.NEGATIVE_LENGTH)
    number = (number >> 1) & _POSITIVE
    if number > end - i:
        return 0, fail(state, i, op.TRUNCATED)
    return number, i


@inlined
def sized(size: int, i: int, end: int, state: int) -> tuple[int, int]:
    """Return the size of bytes and where they begin: after a length (-1), all that are left (-2), or a fixed size."""
    if size == -1:
        return extent(state, i, end)
    if size == -2:
        return max(end - i, 0), i
    if size > end - i:
        return 0, fail(state, i, op.TRUNCATED)
    return size, i


@compiled
def is_text(i: int, end: int) -> bool:
    """Return whether the bytes are UTF-8, as strictly as Python decodes it."""
    while i < end:
        first = load_8(i)
        i += 1
        if first < 128:
            while i + 8 <= end and load_64(i) & HIGH_BITS == 0:
                i += 8
            continue
        low, high = 0x80, 0xBF
        if 0xC2 <= first <= 0xDF:
            more = 1
        elif 0xE0 <= first <= 0xEF:
            more = 2
            low = 0xA0 if first == 0xE0 else low
            high = 0x9F if first == 0xED else high
        elif 0xF0 <= first <= 0xF4:
            more = 3
            low = 0x90 if first == 0xF0 else low
            high = 0x8F if first == 0xF4 else high
        else:
            return False
        if more > end - i or not low <= load_8(i) <= high:
            return False
        for at in range(i + 1, i + more):
            if load_8(at) & 0xC0 != 0x80:
                return False
        i += more
    return True


_BASE = 0xFFFFFFFF
_STEP = 9
_POWERS = np.array([10**power for power in range(_STEP + 1)], np.int64)


@compiled
def shifted(limbs: int, i: int, size: int, up: int, down: int) -> bool:
    """Set `limbs` to the magnitude of the big-endian number at `i` times 10^up / 10^down; return whether it divides.

    Limbs have 32 bits, the lowest first; there are enough for 64 bytes, and for Arrow's decimals.
    """
    for limb in range(vm.LIMB_COUNT):
        put(limbs, limb, 0)
    negative = load_8(i) > 127
    for at in range(size):
        byte = load_8(i + size - 1 - at)
        put(limbs, at >> 2, get(limbs, at >> 2) | (((byte ^ 255) if negative else byte) << ((at & 3) << 3)))
    if negative:
        add = 1
        for limb in range(vm.LIMB_COUNT):
            add += get(limbs, limb)
            put(limbs, limb, add & _BASE)
            add >>= 32
    while up > 0:
        step = min(up, _STEP)
        add = 0
        for limb in range(vm.LIMB_COUNT):
            add += get(limbs, limb) * _POWERS[step]
            put(limbs, limb, add & _BASE)
            add >>= 32
        up -= step
    while down > 0:
        step = min(down, _STEP)
        rest = 0
        for limb in range(vm.LIMB_COUNT - 1, -1, -1):
            rest = (rest << 32) | get(limbs, limb)
            put(limbs, limb, rest // _POWERS[step])
            rest %= _POWERS[step]
        if rest != 0:
            return False
        down -= step
    return True
