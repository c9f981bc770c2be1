"""Python values as what the underlying Avro type takes: the way back from `serdes.avro_values`.

Rules of this file: each function takes the right thing quickly and says plainly what is wrong with anything else. What
already is the underlying value (days, milliseconds, unscaled bytes) passes.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, NoReturn
from uuid import UUID

from serdes.avro_schema import Logical
from serdes.errors import EncodeError

__all__ = ["NAMES", "lowering"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_MICRO = timedelta(microseconds=1)
_MILLI = timedelta(milliseconds=1)


def _wrong(expected: str, value: Any) -> NoReturn:
    raise EncodeError(f"{expected} expected, found {type(value).__name__}")


def _integer(value: Any) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        _wrong("an integer", value)
    return operator.index(value)


def _real(value: Any) -> float:
    if isinstance(value, bool | str | bytes) or not hasattr(value, "__float__"):
        _wrong("a number", value)
    return float(value)


def _boolean(value: Any) -> bool:
    """NumPy has a class of its own for truth."""
    if type(value).__name__ not in ("bool", "bool_"):
        _wrong("a boolean", value)
    return bool(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        _wrong("a string", value)
    return str.__str__(value)


def _raw(value: Any) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        _wrong("bytes", value)
    return bytes(value)


def _sequence(value: Any) -> Sequence[Any]:
    if isinstance(value, str | bytes | bytearray | memoryview | Mapping) or not hasattr(value, "__len__"):
        _wrong("an array", value)
    return value if isinstance(value, Sequence) else list(value)


def _mapping(value: Any) -> Mapping[Any, Any]:
    if not isinstance(value, Mapping):
        _wrong("a mapping", value)
    return value


def _not_null(value: Any) -> NoReturn:
    _wrong("null", value)


def _out_of_range(number: int, bits: int) -> NoReturn:
    raise EncodeError(f"an integer of at most {bits} bits expected, found one of {number.bit_length() + 1}")


def _no_symbol(symbol: Any) -> NoReturn:
    if not isinstance(symbol, str):
        _wrong("a symbol of the enum", symbol)
    raise EncodeError(f"the enum has no symbol {symbol[:40]!r}")


def _bad_size(value: bytes, size: int) -> NoReturn:
    raise EncodeError(f"{size} bytes expected, found {len(value)}")


def _number(out: bytearray, number: int) -> None:
    """A number that takes more than one byte."""
    append = out.append
    while number > 127:
        append(number & 127 | 128)
        number >>= 7
    append(number)


NAMES: dict[str, Any] = {
    "integer": _integer,
    "real": _real,
    "boolean": _boolean,
    "text": _text,
    "raw": _raw,
    "sequence": _sequence,
    "mapping": _mapping,
    "not_null": _not_null,
    "out_of_range": _out_of_range,
    "no_symbol": _no_symbol,
    "bad_size": _bad_size,
    "number": _number,
}
"""What generated source refers to by these names."""


def lowering(logical: Logical | None, size: int | None = None) -> Callable[[Any], Any] | None:
    """What turns a value of a logical type into its underlying value; `size` is that of a fixed."""
    if logical is None:
        return None
    if logical.name == "decimal":
        return _decimal(logical, size)
    if logical.name == "uuid":
        return _uuid_text if size is None else _uuid_bytes
    return _TIMES.get(logical.name)


def _date(value: Any) -> Any:
    if isinstance(value, str):
        try:
            value = date.fromisoformat(value)
        except ValueError:
            raise EncodeError("a date expected, found a text that is none") from None
    return value.toordinal() - _EPOCH_ORDINAL if isinstance(value, date) else value


def _time(unit: int) -> Callable[[Any], Any]:
    def lower(value: Any) -> Any:
        if not isinstance(value, time):
            return value
        seconds = (value.hour * 60 + value.minute) * 60 + value.second
        return (seconds * 1_000_000 + value.microsecond) // unit

    return lower


def _timestamp(unit: timedelta) -> Callable[[Any], Any]:
    """A datetime without a zone is local time, as everywhere in Python."""

    def lower(value: Any) -> Any:
        if not isinstance(value, datetime):
            return value
        return ((value if value.tzinfo is not None else value.astimezone(UTC)) - _EPOCH) // unit

    return lower


def _local_timestamp(unit: timedelta) -> Callable[[Any], Any]:
    def lower(value: Any) -> Any:
        return (value.replace(tzinfo=UTC) - _EPOCH) // unit if isinstance(value, datetime) else value

    return lower


_TIMES: dict[str, Callable[[Any], Any]] = {
    "date": _date,
    "time-millis": _time(1000),
    "time-micros": _time(1),
    "timestamp-millis": _timestamp(_MILLI),
    "timestamp-micros": _timestamp(_MICRO),
    "local-timestamp-millis": _local_timestamp(_MILLI),
    "local-timestamp-micros": _local_timestamp(_MICRO),
}


def _uuid_text(value: Any) -> Any:
    """A text is looked at, for nobody could read the record if it were no UUID."""
    if isinstance(value, str):
        try:
            UUID(value)
        except ValueError:
            raise EncodeError("a uuid expected, found a text that is none") from None
    return str(value) if isinstance(value, UUID) else value


def _uuid_bytes(value: Any) -> Any:
    return value.bytes if isinstance(value, UUID) else value


def _decimal(logical: Logical, size: int | None) -> Callable[[Any], Any]:
    precision, scale = logical.precision, logical.scale

    def lower(value: Any) -> Any:
        if isinstance(value, int) and not isinstance(value, bool):
            value = Decimal(value)
        if not isinstance(value, Decimal):
            return value
        unscaled = _unscaled(value, precision, scale)
        width = unscaled.bit_length() // 8 + 1 if size is None else size
        return unscaled.to_bytes(width, "big", signed=True)

    return lower


def _unscaled(value: Decimal, precision: int, scale: int) -> int:
    """The value as a whole number of its last digit; looked at digit by digit, as an exponent may be anything."""
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise EncodeError("a decimal must be a finite number")
    if not any(digits):
        return 0
    kept = len(digits)
    while digits[kept - 1] == 0:  # zeros at the end say nothing about the value
        kept -= 1
    exponent += len(digits) - kept
    if exponent < -scale:
        raise EncodeError(f"at most {scale} digits after the point expected, found {-exponent}")
    if kept + exponent + scale > precision:
        raise EncodeError(f"at most {precision} digits with {scale} after the point expected, found more")
    number = int("".join(map(str, digits[:kept])) + "0" * (exponent + scale))
    return -number if sign else number
