"""Numbers as Java prints and reads them.

Python's `repr` finds the same shortest digits as `Double.toString` of JDK 19 and later (earlier JDKs sometimes print a
digit too many). Only the layout differs: Java always writes a point, and an exponent below 1e-3 and from 1e7 on.
"""

import math
import re
import struct
from decimal import Decimal
from typing import Final

__all__ = ["java_double", "java_float", "parse_java_double", "to_double", "to_float"]

_FLOAT: Final = struct.Struct("<f")
_DECIMAL: Final = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_HEXADECIMAL: Final = re.compile(r"[+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?\d+", re.ASCII)
_SPECIAL: Final = {"NaN": math.nan, "Infinity": math.inf}
_JAVA_BLANKS: Final = "".join(map(chr, range(0x21)))


def java_double(value: float) -> str:
    """Return a double as `Double.toString` prints it."""
    return _special(value) or _layout(value, _digits_of_double(value))


def java_float(value: float) -> str:
    """Return a number as `Float.toString` prints it, after rounding to single precision."""
    single = to_float(value)
    return _special(single) or _layout(single, _digits_of_float(single))


def to_double(value: int | float | Decimal) -> float:
    """Return the double nearest to a number, infinite if the number is out of range."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def to_float(value: float) -> float:
    """Round to single precision; a number that is too large becomes infinite, as in Java."""
    try:
        rounded: float = _FLOAT.unpack(_FLOAT.pack(value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return rounded


def parse_java_double(text: str) -> float | None:
    """Parse a number as `Double.parseDouble` does, or return None if the text is not a number.

    Java allows surrounding blanks, NaN, Infinity, hexadecimal digits and a trailing d or f.
    """
    text = text.strip(_JAVA_BLANKS)
    sign, name = (text[0], text[1:]) if text[:1] in ("+", "-") else ("", text)
    if name in _SPECIAL:
        return -_SPECIAL[name] if sign == "-" else _SPECIAL[name]
    if text[-1:] in ("d", "D", "f", "F") and (_DECIMAL.fullmatch(text[:-1]) or _HEXADECIMAL.fullmatch(text[:-1])):
        text = text[:-1]
    if _DECIMAL.fullmatch(text):
        return float(text)
    if _HEXADECIMAL.fullmatch(text):
        return _hexadecimal(text)
    return None


def _hexadecimal(text: str) -> float:
    try:
        return float.fromhex(text)
    except OverflowError:
        return -math.inf if text.startswith("-") else math.inf


def _special(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return "-0.0" if math.copysign(1.0, value) < 0 else "0.0"
    return ""


def _digits_of_double(value: float) -> str:
    shortest = repr(value)
    # Java never prints fewer than two digits, so where one digit is enough it takes the nearest two.
    nearest = f"{value:.1e}"
    return (
        nearest if len(Decimal(shortest).normalize().as_tuple().digits) == 1 and float(nearest) == value else shortest
    )


def _digits_of_float(value: float) -> str:
    for places in range(1, 9):
        digits = f"{value:.{places}e}"
        if to_float(float(digits)) == value:
            return digits
    return repr(value)


def _layout(value: float, text: str) -> str:
    sign, digits, exponent = Decimal(text).normalize().as_tuple()
    figures = "".join(map(str, digits))
    point = len(figures) + int(exponent)  # the position of the decimal point, counted from the first figure
    minus = "-" if sign else ""
    if not 1e-3 <= abs(value) < 1e7:
        return f"{minus}{figures[0]}.{figures[1:] or '0'}E{point - 1}"
    if point <= 0:
        return f"{minus}0.{'0' * -point}{figures}"
    if point >= len(figures):
        return f"{minus}{figures}{'0' * (point - len(figures))}.0"
    return f"{minus}{figures[:point]}.{figures[point:]}"
