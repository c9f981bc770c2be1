"""Values of Python's types as well-known messages and as texts, and back.

Rules of this file: one value at a time; neither schemas nor classes of the caller.
"""

import datetime
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final, NoReturn, Protocol
from uuid import UUID

from strata.serdes.classes.shapes import MISSING
from strata.serdes.decimals import unscaled
from strata.serdes.errors import DecodeError, DecodeReason, EncodeError, expected, without_zone, zoned_time
from strata.serdes.functions import Convert

__all__ = ["CLASSES", "FROM_TEXT", "READING", "TO_TEXT", "Numbers", "Symbols", "filling", "refuse", "sized"]

_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_DAY: Final = 86_400
_MAX_FLOAT32: Final = 3.4028235677973366e38
_LONGEST_DECIMAL: Final = 1000


def refuse(what: str, value: object) -> NoReturn:
    """Raise EncodeError for a value of another type."""
    raise expected(what, value)


Fill = Callable[[object, Any], None]
"""Fills a message of one type from a value."""


class _Timestamp(Protocol):
    """The fields of `google.protobuf.Timestamp`."""

    seconds: int
    nanos: int


class _Date(Protocol):
    """The fields of `google.type.Date`."""

    year: int
    month: int
    day: int


class _Time(Protocol):
    """The fields of `google.type.TimeOfDay`."""

    hours: int
    minutes: int
    seconds: int
    nanos: int


class _Decimal(Protocol):
    """The fields of `confluent.type.Decimal`."""

    value: bytes
    precision: int
    scale: int


def _fill_timestamp(value: object, message: _Timestamp) -> None:
    if not isinstance(value, datetime.datetime):
        refuse("a datetime", value)
    if value.tzinfo is None:
        raise without_zone()
    since = value - _EPOCH
    message.seconds = since.days * _DAY + since.seconds
    message.nanos = since.microseconds * 1000


def _read_timestamp(message: _Timestamp) -> datetime.datetime:
    try:
        return _EPOCH + datetime.timedelta(0, message.seconds, message.nanos // 1000)
    except OverflowError:
        raise DecodeError(DecodeReason.OUT_OF_RANGE, "the timestamp is beyond the years 1 to 9999") from None


def _fill_date(value: object, message: _Date) -> None:
    if type(value) is not datetime.date:  # a datetime is a date too
        refuse("a date", value)
    message.year, message.month, message.day = value.year, value.month, value.day


def _read_date(message: _Date) -> datetime.date:
    try:
        return datetime.date(message.year, message.month, message.day)
    except (OverflowError, ValueError) as error:
        raise DecodeError(DecodeReason.INVALID_VALUE, f"not a full date: {error}") from None


def _fill_time(value: object, message: _Time) -> None:
    if not isinstance(value, datetime.time):
        refuse("a time", value)
    if value.tzinfo is not None:
        raise zoned_time()
    message.hours, message.minutes, message.seconds = value.hour, value.minute, value.second
    message.nanos = value.microsecond * 1000


def _read_time(message: _Time) -> datetime.time:
    try:
        return datetime.time(message.hours, message.minutes, message.seconds, message.nanos // 1000)
    except (OverflowError, ValueError) as error:
        raise DecodeError(DecodeReason.INVALID_VALUE, f"not a time of day: {error}") from None


def _decimal_filling(numbers: tuple[int, ...]) -> Fill:
    precision, scale = numbers

    def fill(value: object, message: _Decimal) -> None:
        if not isinstance(value, Decimal):
            refuse("a Decimal", value)
        number = unscaled(value, precision, scale)
        message.value = number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True)
        message.precision, message.scale = precision, scale

    return fill


def _read_decimal(message: _Decimal) -> Decimal:
    if len(message.value) > _LONGEST_DECIMAL:
        raise DecodeError(DecodeReason.LIMIT, f"the decimal has more than {_LONGEST_DECIMAL} bytes")
    number = int.from_bytes(message.value, "big", signed=True)
    return Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -message.scale))


def _float32(value: float) -> float:
    if _MAX_FLOAT32 <= abs(value) < float("inf"):
        raise EncodeError("expected a float of 32 bits, got a larger one")
    return value


def _uuid_text(value: object) -> str:
    if not isinstance(value, UUID):
        refuse("a UUID", value)
    return str(value)


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise DecodeError(DecodeReason.INVALID_UUID) from None


def _local_text(value: object) -> str:
    if not isinstance(value, datetime.datetime) or value.tzinfo is not None:
        refuse("a datetime without a time zone", value)
    return value.isoformat()


def _local(text: str) -> datetime.datetime:
    try:
        value = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise DecodeError(DecodeReason.INVALID_VALUE, "not a datetime in ISO 8601") from None
    if value.tzinfo is not None:
        raise DecodeError(DecodeReason.INVALID_VALUE, "expected a datetime without a time zone, got one with it")
    return value


def sized(size: int) -> Callable[[object], bytes]:
    """Return a check that a value is bytes of a size."""

    def check(value: object) -> bytes:
        if not isinstance(value, bytes) or len(value) != size:
            refuse(f"{size} bytes", value)
        return value

    return check


class Numbers(dict[object, int]):
    """The numbers of an enum's values; another value raises EncodeError."""

    def __missing__(self, value: object) -> NoReturn:
        refuse("a symbol of the enum", value)


class Symbols(dict[int, object]):
    """The members of an enum by number; for another number its default, without one DecodeError."""

    def __init__(self, members: Mapping[int, object], default: object, name: str) -> None:
        super().__init__(members)
        self._default, self._name = default, name

    def __missing__(self, number: int) -> object:
        if self._default is MISSING:
            raise DecodeError(DecodeReason.INVALID_VALUE, f"{number} is not a symbol of {self._name}")
        return self._default


CLASSES: Final[Mapping[str, type]] = {
    "bool": bool,
    "int": int,
    "int32": int,
    "float": float,
    "float32": float,
    "str": str,
    "bytes": bytes,
    "fixed": bytes,
    "datetime": datetime.datetime,
    "datetime-millis": datetime.datetime,
    "local": datetime.datetime,
    "local-millis": datetime.datetime,
    "date": datetime.date,
    "time": datetime.time,
    "time-millis": datetime.time,
    "uuid": UUID,
    "decimal": Decimal,
}
"""The Python types of the types without parts."""

_FILLING: Final[Mapping[str, Fill]] = {
    "google.protobuf.Timestamp": _fill_timestamp,
    "google.type.Date": _fill_date,
    "google.type.TimeOfDay": _fill_time,
}
READING: Final[Mapping[str, tuple[str, Convert]]] = {
    "google.protobuf.Timestamp": ("datetime", _read_timestamp),
    "google.type.Date": ("date", _read_date),
    "google.type.TimeOfDay": ("time", _read_time),
    "confluent.type.Decimal": ("decimal", _read_decimal),
}
"""How a value is read, and its type, by the name of the message."""

TO_TEXT: Final[Mapping[str, Convert]] = {
    "uuid": _uuid_text,
    "local": _local_text,
    "local-millis": _local_text,
    "float32": _float32,
}
FROM_TEXT: Final[Mapping[str, Callable[[str], object]]] = {"uuid": _uuid, "local": _local, "local-millis": _local}


def filling(name: str, numbers: tuple[int, ...]) -> Fill:
    """Return the function that fills a well-known message from a value; `numbers` are a decimal's digits."""
    return _FILLING[name] if name in _FILLING else _decimal_filling(numbers)
