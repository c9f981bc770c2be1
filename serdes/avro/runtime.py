"""The functions that a decoder's source calls, and the mapping of its exceptions to `DecodeError`.

The generated code lets Python find common damage: an index past the end of the payload means truncation. Checks that
Python would not make call the functions here, which raise; the good case calls only the one for numbers of several
bytes.

Rules of this file: no schema, no plan; short functions, since the callers are hot.
"""

import struct
from collections.abc import Callable, Mapping
from typing import NoReturn

from strata.serdes.avro.source_lines import Part, names_of, place
from strata.serdes.errors import DecodeError, DecodeReason

__all__ = ["NAMES", "locate"]


def _varint_rest(bits: int, what: str) -> Callable[[bytes, int, int], tuple[int, int]]:
    """Return a function that reads the rest of a varint; two bytes are by far the most common."""
    shifts = range(14, bits, 7)

    def more(buf: bytes, i: int, number: int) -> tuple[int, int]:
        byte = buf[i]
        if byte < 128:
            return number & 0x7F | byte << 7, i + 1
        number = number & 0x7F | (byte & 0x7F) << 7
        for shift in shifts:
            i += 1
            byte = buf[i]
            number |= (byte & 0x7F) << shift
            if byte < 128:
                if number >> bits:
                    break
                return number, i + 1
        raise DecodeError(DecodeReason.OUT_OF_RANGE, f"{what} of more than {bits} bits")

    return more


_int_more = _varint_rest(32, "an int")
_LAST_SHIFTS = range(42, 64, 7)


def _long_more(buf: bytes, i: int, number: int) -> tuple[int, int]:
    """Read the rest of a long; without a loop for the six bytes that a time in milliseconds has."""
    byte = buf[i]
    if byte < 128:
        return number & 0x7F | byte << 7, i + 1
    number = number & 0x7F | (byte & 0x7F) << 7
    byte = buf[i + 1]
    if byte < 128:
        return number | byte << 14, i + 2
    number |= (byte & 0x7F) << 14
    byte = buf[i + 2]
    if byte < 128:
        return number | byte << 21, i + 3
    number |= (byte & 0x7F) << 21
    byte = buf[i + 3]
    if byte < 128:
        return number | byte << 28, i + 4
    number |= (byte & 0x7F) << 28
    byte = buf[i + 4]
    number |= (byte & 0x7F) << 35
    if byte < 128:
        return number, i + 5
    i += 5
    for shift in _LAST_SHIFTS:
        byte = buf[i]
        number |= (byte & 0x7F) << shift
        if byte < 128:
            if number >> 64:
                break
            return number, i + 1
        i += 1
    raise DecodeError(DecodeReason.OUT_OF_RANGE, "a number of more than 64 bits")


def _sized_block(buf: bytes, i: int, count: int) -> tuple[int, int]:
    """Return the count of a block that states its length, and the offset after that length."""
    byte = buf[i]
    i += 1
    if byte > 127:
        byte, i = _long_more(buf, i, byte)
    if byte & 1:
        raise DecodeError(DecodeReason.NEGATIVE_LENGTH, "a block of negative length")
    return -count, i


def _signed(number: int) -> int:
    return (number >> 1) ^ -(number & 1)


def _truncated() -> NoReturn:
    raise DecodeError(DecodeReason.TRUNCATED)


def _trailing(position: int, end: int) -> NoReturn:
    if position > end:
        _truncated()
    raise DecodeError(DecodeReason.TRAILING_BYTES, f"the value ends after {position} of {end} bytes")


def _bad_length(number: int) -> NoReturn:
    if number & 1:
        raise DecodeError(DecodeReason.NEGATIVE_LENGTH, f"a length of {_signed(number)}")
    _truncated()


def _bad_index(number: int) -> NoReturn:
    raise DecodeError(DecodeReason.INVALID_INDEX, f"no index {_signed(number)}")


def _bad_boolean(byte: int) -> NoReturn:
    raise DecodeError(DecodeReason.INVALID_BOOLEAN, f"expected the byte 0 or 1, got 0x{byte:02x}")


def _too_deep() -> NoReturn:
    raise DecodeError(DecodeReason.LIMIT, "records are nested too deeply")


def _spend(idle: list[int], count: int) -> None:
    """Subtract from the budget of values that take no bytes."""
    idle[0] -= count
    if idle[0] < 0:
        raise DecodeError(DecodeReason.LIMIT, "too many items of zero bytes")


def _unresolved(message: str) -> NoReturn:
    raise DecodeError(DecodeReason.RESOLUTION, message)


def _no_symbol(symbol: str) -> NoReturn:
    raise DecodeError(DecodeReason.RESOLUTION, f"the reader's enum has no symbol {symbol} and no default")


NAMES: Mapping[str, object] = {
    "long_more": _long_more,
    "int_more": _int_more,
    "float_at": struct.Struct("<f").unpack_from,
    "double_at": struct.Struct("<d").unpack_from,
    **names_of(_sized_block, _truncated, _trailing, _bad_length, _bad_index, _bad_boolean, _too_deep, _spend),
    **names_of(_unresolved, _no_symbol),
}
"""The names that generated source uses."""

_REASONS: tuple[tuple[type[Exception], DecodeReason], ...] = (
    (IndexError, DecodeReason.TRUNCATED),
    (struct.error, DecodeReason.TRUNCATED),
    (UnicodeDecodeError, DecodeReason.INVALID_UTF8),
    (RecursionError, DecodeReason.LIMIT),
    (MemoryError, DecodeReason.LIMIT),
    (ValueError, DecodeReason.OUT_OF_RANGE),
    (ArithmeticError, DecodeReason.OUT_OF_RANGE),
)
"""What Python's own exceptions mean in a decoder, the most specific first."""

_SELF_EXPLAINING = frozenset({DecodeReason.TRUNCATED, DecodeReason.INVALID_UTF8})


def locate(
    error: Exception, namespace: Mapping[str, object], paths: Mapping[int, tuple[Part, ...]]
) -> DecodeError | None:
    """Return the DecodeError for an exception, with path and offset from its traceback; None for a bug."""
    if isinstance(error, DecodeError):
        located = DecodeError(error.reason, error.detail)
    else:
        reason = next((reason for error_type, reason in _REASONS if isinstance(error, error_type)), None)
        if reason is None:
            return None
        located = DecodeError(reason, "" if reason in _SELF_EXPLAINING else str(error))
    located.path, frame = place(error.__traceback__, namespace, paths)
    if frame is not None and "i" in frame.f_locals:
        located.offset = min(frame.f_locals["i"], frame.f_locals["end"])
    return located
