"""Python values to values of the underlying Avro type: the reverse of `strata.serdes.avro.logical_types`.

One rule for dates, times, timestamps, decimals and UUIDs: a value must say exactly what is stored. It is the Python
type, its text (ISO 8601, or the digits of a decimal), or the stored number or bytes. A timestamp needs a time zone and
a local timestamp must have none. Nothing is rounded, except by `round_times`: down to the unit of the schema, as
Avro's Java library does, so that no time of day becomes the next day's and no timestamp moves into the future.

Rules of this file: each function handles the right type quickly and words the error for all others.
"""

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, NoReturn, TypeVar
from uuid import UUID

from strata.serdes import errors
from strata.serdes.avro.schema import MISSING, Logical
from strata.serdes.avro.source_lines import names_of
from strata.serdes.decimals import unscaled

__all__ = ["NAMES", "PYTHON_TYPES", "TYPE_MARK", "lack", "lowering"]

TYPE_MARK = "-type"
"""The key of a mapping for the name of its record; it is not a field."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_MICRO = timedelta(microseconds=1)
_MILLI = timedelta(milliseconds=1)
_DATE = r"\d{4}-\d\d-\d\d"
_CLOCK = r"\d\d:\d\d:\d\d(\.\d{1,6})?"
_DATE_TEXT = re.compile(_DATE, re.ASCII)
_TIME_TEXT = re.compile(_CLOCK, re.ASCII)
_DATETIME_TEXT = re.compile(rf"{_DATE}[Tt ]{_CLOCK}([Zz]|[+-]\d\d:\d\d)?", re.ASCII)
_DECIMAL_TEXT = re.compile(r"[+-]?\d{1,4096}(\.\d{1,4096})?", re.ASCII)


def _wrong(what: str, value: object) -> NoReturn:
    raise errors.expected(what, value)


def _integer(value: object) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        _wrong("an integer", value)
    return operator.index(value)


def _real(value: object) -> float:
    if isinstance(value, bool | str | bytes) or not hasattr(value, "__float__"):
        _wrong("a number", value)
    return float(value)


def _boolean(value: object) -> bool:
    """Return a boolean; NumPy's class counts."""
    if type(value).__name__ not in ("bool", "bool_"):
        _wrong("a boolean", value)
    return bool(value)


def _text(value: object) -> str:
    if not isinstance(value, str):
        _wrong("a string", value)
    return str.__str__(value)


def _raw(value: object) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        _wrong("bytes", value)
    return bytes(value)


def _sequence(value: Any) -> Sequence[object]:
    if isinstance(value, str | bytes | bytearray | memoryview | Mapping) or not hasattr(value, "__len__"):
        _wrong("an array", value)
    return value if isinstance(value, Sequence) else list(value)


def _mapping(value: object) -> Mapping[object, object]:
    if not isinstance(value, Mapping):
        _wrong("a mapping", value)
    return value


def _not_null(value: object) -> NoReturn:
    _wrong("null", value)


def _out_of_range(number: int, bits: int) -> NoReturn:
    raise errors.EncodeError(f"expected an integer of at most {bits} bits, got one of {number.bit_length() + 1} bits")


def _symbol(value: object, indexes: Mapping[str, int]) -> int:
    """Return the index of a symbol in a subclass of str, such as a member of a StrEnum."""
    index = indexes.get(str.__str__(value)) if isinstance(value, str) else None
    if index is None:
        raise errors.unknown_symbol(value, indexes)
    return index


def _bad_size(value: bytes, size: int) -> NoReturn:
    raise errors.EncodeError(f"expected {size} bytes, got {len(value)}")


def _unknown(value: Mapping[str, object], names: Mapping[str, str], records: tuple[str, ...]) -> None:
    """Raise EncodeError for keys that are not fields, and for the name of another record.

    `names` maps fields and aliases to fields; `records` has the names that mean this record.
    """
    for key in value:
        if key in names and names[key] != key:
            raise errors.EncodeError(f"the schema has no such field; did you mean {names[key]!r}?", path=key)
        if key not in names and key != TYPE_MARK:
            raise errors.unknown_field(key, names.values())
    if TYPE_MARK not in names and value.get(TYPE_MARK, records[0]) not in records:
        raise errors.EncodeError(f"expected the record {records[0]}, got the name {str(value[TYPE_MARK])[:40]!r}")


def lack(value: Mapping[str, object], name: str, names: Mapping[str, str]) -> errors.EncodeError:
    """Return the error for a field without a value; a key that is not a field may be its misspelling."""
    for key in value:
        if names.get(key, name) == name and key != name and (key in names or errors.did_you_mean(key, [name])):
            return errors.unknown_field(key, [name])
    return errors.missing_field(name)


def _number(out: bytearray, number: int) -> None:
    """Append a varint of more than one byte."""
    append = out.append
    while number > 127:
        append(number & 127 | 128)
        number >>= 7
    append(number)


NAMES = names_of(_integer, _real, _boolean, _text, _raw, _sequence, _mapping, _not_null, _out_of_range, _symbol)
NAMES |= names_of(_bad_size, _unknown, _number) | {"MISSING": MISSING}
"""The names that generated source uses."""


def lowering(
    logical: Logical | None, size: int | None = None, *, round_times: bool = False
) -> Callable[[object], object] | None:
    """Return the conversion from a logical type to its underlying value; None if there is nothing to convert.

    Args:
        logical: the logical type.
        size: bytes of a fixed; None for other types.
        round_times: round times and timestamps that are finer than the unit down, instead of raising an error.

    Raises:
        EncodeError: From the returned function, if the value cannot be stored exactly.
    """
    if logical is None:
        return None
    if logical.name == "decimal":
        return _decimal(logical, size)
    if logical.name == "uuid":
        return _uuid_text if size is None else _uuid_bytes
    if round_times and logical.name in _ROUNDED_TIMES:
        return _ROUNDED_TIMES[logical.name]
    return _TIMES[logical.name][1] if logical.name in _TIMES else None


def _is_stored(value: object) -> bool:
    """Return whether a value is the stored number."""
    return hasattr(value, "__index__") and not isinstance(value, bool)


def _date(value: object) -> object:
    if isinstance(value, date) and not isinstance(value, datetime):
        return value.toordinal() - _EPOCH_ORDINAL
    if isinstance(value, str):
        return _parsed(value, _DATE_TEXT, date.fromisoformat, "an ISO 8601 date").toordinal() - _EPOCH_ORDINAL
    if not _is_stored(value):
        _wrong("a date", value)
    return value


def _time(unit: int, *, rounds: bool = False) -> Callable[[object], object]:
    finest = 1 if rounds else unit

    def lower(value: Any) -> object:
        if not isinstance(value, time):
            if not isinstance(value, str):
                return value if _is_stored(value) else _wrong("a time of day", value)
            value = _parsed(value, _TIME_TEXT, time.fromisoformat, "an ISO 8601 time of day")
        if value.tzinfo is not None:
            raise errors.zoned_time()
        seconds = (value.hour * 60 + value.minute) * 60 + value.second
        if value.microsecond % finest:
            raise _too_fine(unit)
        return (seconds * 1_000_000 + value.microsecond) // unit

    return lower


def _too_fine(step: int) -> errors.EncodeError:
    unit = "microseconds" if step == 1 else "milliseconds"
    return errors.EncodeError(f"expected a time in whole {unit}, got a finer one; round it first, or set round.times")


def _timestamp(unit: timedelta, *, local: bool, rounds: bool = False) -> Callable[[object], object]:
    """Return the conversion of a timestamp, which needs a time zone, or a local one, which must have none."""
    step = unit // _MICRO
    finest = 1 if rounds else step
    wanted = f"a datetime {'without' if local else 'with'} a time zone"
    epoch = _EPOCH.replace(tzinfo=None) if local else _EPOCH

    def lower(value: Any) -> object:
        if value.__class__ is not datetime:
            if isinstance(value, str):
                value = _parsed(value, _DATETIME_TEXT, datetime.fromisoformat, "an ISO 8601 date and time")
            elif not isinstance(value, datetime):
                return value if _is_stored(value) else _wrong(wanted, value)
            elif not rounds and getattr(value, "nanosecond", 0) != 0:
                raise _too_fine(step)
        if (value.tzinfo is None) is not local:
            raise errors.EncodeError(f"expected {wanted}, got one with a time zone") if local else errors.without_zone()
        if finest != 1 and value.microsecond % finest:
            raise _too_fine(step)
        return (value - epoch) // unit

    return lower


_T = TypeVar("_T")


def _parsed(text: str, pattern: re.Pattern[str], parse: Callable[[str], _T], what: str) -> _T:
    """Parse a text; the pattern rejects the short forms and extra digits that the library would take."""
    if pattern.fullmatch(text):
        try:
            return parse(text)
        except ValueError:
            pass
    raise errors.EncodeError(f"expected {what}, got a string that is not one")


_TIMES: dict[str, tuple[type, Callable[[object], object]]] = {
    "date": (date, _date),
    "time-millis": (time, _time(1000)),
    "time-micros": (time, _time(1)),
    "timestamp-millis": (datetime, _timestamp(_MILLI, local=False)),
    "timestamp-micros": (datetime, _timestamp(_MICRO, local=False)),
    "local-timestamp-millis": (datetime, _timestamp(_MILLI, local=True)),
    "local-timestamp-micros": (datetime, _timestamp(_MICRO, local=True)),
}
_ROUNDED_TIMES: dict[str, Callable[[object], object]] = {
    "time-millis": _time(1000, rounds=True),
    "timestamp-millis": _timestamp(_MILLI, local=False, rounds=True),
    "timestamp-micros": _timestamp(_MICRO, local=False, rounds=True),
    "local-timestamp-millis": _timestamp(_MILLI, local=True, rounds=True),
    "local-timestamp-micros": _timestamp(_MICRO, local=True, rounds=True),
}
"""The conversions that round; those to microseconds round the nanoseconds of pandas."""
PYTHON_TYPES = {"decimal": Decimal, "uuid": UUID, **{name: kind for name, (kind, _) in _TIMES.items()}}
"""The type of values by logical type; values of other logical types are the stored ones."""


def _uuid_text(value: object) -> str:
    """Return the text of a UUID; readers could not decode a text that is not one."""
    if isinstance(value, str):
        try:
            UUID(value)
        except ValueError:
            raise errors.EncodeError("expected a UUID, got a string that is not one") from None
        return value
    return str(value) if isinstance(value, UUID) else _wrong("a UUID", value)


def _uuid_bytes(value: object) -> object:
    if isinstance(value, str):
        return UUID(_uuid_text(value)).bytes
    return value.bytes if isinstance(value, UUID) else value


def _decimal(logical: Logical, size: int | None) -> Callable[[object], object]:
    precision, scale = logical.precision, logical.scale

    def lower(value: object) -> object:
        if isinstance(value, str):
            value = _parsed(value, _DECIMAL_TEXT, Decimal, "a decimal number")
        elif isinstance(value, int) and not isinstance(value, bool):
            value = Decimal(value)
        elif isinstance(value, bytes | bytearray | memoryview):
            return value
        if not isinstance(value, Decimal):
            _wrong("a decimal", value)
        number = unscaled(value, precision, scale)
        width = number.bit_length() // 8 + 1 if size is None else size
        return number.to_bytes(width, "big", signed=True)

    return lower
