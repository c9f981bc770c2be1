"""The integer behind a decimal number, for all formats.

Rules of this file: numbers only.
"""

from decimal import Decimal

from strata.serdes.errors import EncodeError

__all__ = ["unscaled"]


def unscaled(value: Decimal, precision: int, scale: int) -> int:
    """Return the integer behind a decimal; it reads the digits, since the exponent may be huge.

    Args:
        value: the decimal.
        precision: the most digits that it may have.
        scale: how many of them come after the point.

    Raises:
        EncodeError: If it is not finite, or has more digits.
    """
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise EncodeError("expected a finite decimal, got NaN or an infinity")
    if not any(digits):
        return 0
    kept = len(digits)
    while digits[kept - 1] == 0:  # trailing zeros do not change the value
        kept -= 1
    exponent += len(digits) - kept
    if exponent < -scale:
        raise EncodeError(f"expected a decimal with at most {scale} digits after the point, got {-exponent}")
    if kept + exponent + scale > precision:
        raise EncodeError(f"expected a decimal of at most {precision} digits, {scale} after the point, got more")
    number = int("".join(map(str, digits[:kept])) + "0" * (exponent + scale))
    return -number if sign else number
