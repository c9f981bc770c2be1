"""Values that do not fit an Avro schema, written as confluent-kafka writes them.

    True                      for an int        1
    1.9, Decimal("1.9")       for a long        1
    2**40                     for an int        the varint of a long, which Java cannot read as an int
    1e300                     for a float       infinity
    anything                  for a boolean     its truth
    anything                  for null          null
    "ab", a dict, a generator for an array      its items
    a key that is not a field                      dropped
    a datetime without a zone for a timestamp   an instant in the time zone of this machine
    a datetime with a zone    for a local one   its date and time of day, without the zone
    a datetime                for a date        its date
    a time of day with a zone                   the same without it
    a finer time              for millis        rounded down
    another text              for a uuid        that text

Inside a union it bends only logical types, and drops keys: a union must find the branch of a value first.

Source: what confluent-kafka 2.16 with fastavro 1.13 writes, observed row by row in `tests/serdes/test_bending.py`.

Rules of this file: what the strict functions refuse and these do not list stays an error. Each change is reported.
"""

import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from types import CodeType
from uuid import UUID

from strata.serdes import errors
from strata.serdes.avro.raw_values import NAMES, TYPE_MARK
from strata.serdes.avro.schema import Logical
from strata.serdes.avro.source_lines import path_of

__all__ = ["Bending", "Report"]

Report = Callable[[str, str], None]
"""Learns what was changed, and the path of the value."""

_INT_BITS = 32
_MOST_REPORTED = 1000
_LONG = 2**63
_INFINITIES = {True: b"\x00\x00\x80\x7f", False: b"\x00\x00\x80\xff"}
_NUMBERS = (bool, float, Decimal)


class Bending:
    """The functions that compiled encoders call for values which do not fit.

    Args:
        report: learns of each change.
        drops: whether keys that are not fields are dropped; else they are an error.
    """

    def __init__(self, report: Report, *, drops: bool = True) -> None:
        self._report = report
        self._reported: set[tuple[CodeType, int, str, object]] = set()
        # What generated source calls, besides the strict functions.
        self.names: dict[str, object] = {
            f"bent_{name}": getattr(self, f"_{name}")
            for name in ("integer", "real", "boolean", "raw", "sequence", "not_null", "out_of_range")
        }
        if drops:
            self.names |= {"unknown": self._unknown}

    def _tell(self, wanted: str, value: object, then: str) -> None:
        """Report a change, once for a line of the compiled code, which is a field of the schema."""
        frame = sys._getframe(2)
        change = frame.f_code, frame.f_lineno, then, value.__class__
        if change in self._reported:
            return
        if len(self._reported) < _MOST_REPORTED:
            self._reported.add(change)
        self._report(f"expected {wanted}, got {errors.got(value)}: {then}", path_of(frame))

    def _integer(self, value: object) -> int:
        if not isinstance(value, _NUMBERS):
            strict: int = NAMES["integer"](value)
            return strict
        number = int(value)
        self._tell("an integer", value, "its whole part is written")
        return number

    def _out_of_range(self, number: int, bits: int) -> None:
        if bits != _INT_BITS or not -_LONG <= number < _LONG:
            NAMES["out_of_range"](number, bits)
        self._tell("an integer of at most 32 bits", number, "a larger one is written as a long")

    def _real(self, value: object) -> float:
        if isinstance(value, bool):
            self._tell("a number", value, "it is written as 0 or 1")
            return float(value)
        strict: float = NAMES["real"](value)
        return strict

    def _boolean(self, value: object) -> bool:
        if type(value).__name__ in ("bool", "bool_"):
            return bool(value)
        self._tell("a boolean", value, "its truth value is written")
        return bool(value)

    def _not_null(self, value: object) -> None:
        self._tell("null", value, "null is written")

    def _raw(self, value: object) -> bytes:
        """Return the bytes of a top-level value, which has no length in front."""
        if isinstance(value, str):
            self._tell("bytes", value, "its UTF-8 is written")
            return value.encode()
        strict: bytes = NAMES["raw"](value)
        return strict

    def _sequence(self, value: object) -> Sequence[object]:
        if isinstance(value, str | bytes | bytearray | memoryview | Mapping | Generator):
            self._tell("an array", value, "its items are written")
            return list(value)
        strict: Sequence[object] = NAMES["sequence"](value)
        return strict

    def _unknown(self, value: Mapping[str, object], names: Mapping[str, str], _records: tuple[str, ...]) -> None:
        for key in value:
            if names.get(key) != key and key != TYPE_MARK:
                self._tell("a field of the schema", key, f"the key {str(key)[:40]!r} is dropped")

    def pack_float(self, pack: Callable[[float], bytes]) -> Callable[[float], bytes]:
        """Return the function that packs a single float; one out of range becomes infinite."""

        def packed(value: float) -> bytes:
            try:
                return pack(value)
            except OverflowError:
                self._tell("a number in the range of float", value, "infinity is written")
                return _INFINITIES[value > 0]

        return packed

    def lowering(
        self, strict: Callable[[object], object] | None, logical: Logical | None
    ) -> Callable[[object], object] | None:
        """Return the conversion of a logical type to its underlying value.

        Args:
            strict: the conversion that refuses what does not fit; it rounds times.
            logical: the logical type.
        """
        bend = _BENDS.get(logical.name) if logical is not None else None
        if strict is None or bend is None:
            return strict

        def lower(value: object) -> object:
            bent, change = bend(value)
            if change is not None:
                self._tell(change[0], value, change[1])
            return strict(bent) if bent is not _AS_IS else value

        return lower


_AS_IS: object = object()
"""In the place of a value: it is not converted."""

_Change = tuple[str, str] | None
"""What was expected, and what is written instead; None if nothing is changed."""
_WHOLE = "its whole part is written"
_FINER = "a time in whole milliseconds", "it is rounded down"


def _date(value: object) -> tuple[object, _Change]:
    if isinstance(value, datetime):
        return date(value.year, value.month, value.day), ("a date", "its date is written")
    return _number(value, "a date")


def _number(value: object, wanted: str) -> tuple[object, _Change]:
    if isinstance(value, bool | float):
        return int(value), (wanted, _WHOLE)
    return value, None


def _time(value: object, *, millis: bool) -> tuple[object, _Change]:
    if not isinstance(value, time):
        return _number(value, "a time of day")
    if value.tzinfo is not None:
        return value.replace(tzinfo=None), ("a time of day without a time zone", "the zone is dropped")
    return value, _FINER if millis and value.microsecond % 1000 else None


def _timestamp(value: object, *, local: bool, millis: bool) -> tuple[object, _Change]:
    if not isinstance(value, datetime):
        return _number(value, "a datetime")
    if (value.tzinfo is None) is local:
        return value, _FINER if millis and value.microsecond % 1000 else None
    if local:
        return value.replace(tzinfo=None), ("a datetime without a time zone", "the zone is dropped")
    return value.astimezone(), ("a datetime with a time zone", "it is taken in the time zone of this machine")


def _uuid(value: object) -> tuple[object, _Change]:
    if isinstance(value, str):
        try:
            UUID(value)
        except ValueError:
            return _AS_IS, ("a UUID", "the text is written")
    return value, None


_BENDS: Mapping[str, Callable[[object], tuple[object, _Change]]] = {
    "date": _date,
    "time-millis": lambda value: _time(value, millis=True),
    "time-micros": lambda value: _time(value, millis=False),
    "timestamp-millis": lambda value: _timestamp(value, local=False, millis=True),
    "timestamp-micros": lambda value: _timestamp(value, local=False, millis=False),
    "local-timestamp-millis": lambda value: _timestamp(value, local=True, millis=True),
    "local-timestamp-micros": lambda value: _timestamp(value, local=True, millis=False),
    "uuid": _uuid,
}
