"""Avro's logical types and defaults as Python values.

    date              datetime.date               decimal              decimal.Decimal, exact
    time-*            datetime.time               uuid                 uuid.UUID
    timestamp-*       datetime, aware, UTC        timestamp-nanos      int: Python has microseconds only
    local-timestamp-* datetime, naive             everything else      the value of the underlying type

If the reader schema has another unit or scale than the writer schema, the value keeps its meaning: a `timestamp-millis`
read as `timestamp-micros` is the same instant, and a decimal is rescaled to the reader's scale.

Rules of this file: values only, no bytes of the payload. A conversion raises ValueError or OverflowError for what
Python cannot represent, or DecodeError when there is more to say.
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Context, Decimal
from struct import Struct
from typing import Any
from uuid import UUID

from strata.serdes.avro import schema as nodes
from strata.serdes.branch import Branch
from strata.serdes.errors import DecodeError, DecodeReason
from strata.serdes.functions import Convert

__all__ = ["Branch", "Convert", "Shape", "converter", "default_value", "is_tagged", "promotion", "rescaling"]


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LOCAL_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - local timestamps have no time zone
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_DAY_MICROS = 86_400_000_000
_EXACT = Context(prec=100_000)
_MOST_DIGITS = 4096
_MOST_DEFAULTS = 10_000
_FLOAT = Struct("<f")
_MILLI, _MICRO = timedelta(milliseconds=1), timedelta(microseconds=1)  # to multiply them costs half of a new one
_PER_SECOND = {"millis": 10**3, "micros": 10**6, "nanos": 10**9}


@dataclass(frozen=True, slots=True)
class Shape:
    """The caller's choices about decoded values.

    Attributes:
        numeric_times: dates, times and timestamps stay numbers, in the unit of the reader schema.
        tagged_unions: a value of a union of several types besides null comes as a `Branch`.
        named_records: a record in a union comes as a pair of its full name and its value.
    """

    numeric_times: bool = False
    tagged_unions: bool = False
    named_records: bool = False


def is_tagged(union: nodes.Union, shape: Shape) -> bool:
    """Return whether values of this union come as a `Branch`."""
    types = [
        branch
        for branch in union.branches
        if not (isinstance(branch, nodes.Primitive) and branch.kind is nodes.Kind.NULL)
    ]
    return shape.tagged_unions and len(types) > 1


def promotion(writer: nodes.Kind, reader: nodes.Kind) -> Convert | None:
    """Return the conversion of a promoted number; None if Python's value is the same."""
    if writer in (nodes.Kind.INT, nodes.Kind.LONG) and reader in (nodes.Kind.FLOAT, nodes.Kind.DOUBLE):
        return _single if reader is nodes.Kind.FLOAT else float
    return None


def _single(number: int) -> float:
    value: float = _FLOAT.unpack(_FLOAT.pack(number))[0]
    return value


def converter(writer: nodes.Logical | None, reader: nodes.Logical | None, shape: Shape) -> Convert | None:
    """Return the conversion from the underlying value to the reader's value; None if they are the same.

    Args:
        writer: the writer's logical type.
        reader: the reader's logical type.
        shape: the caller's choices.

    Raises:
        ValueError: From the returned function, if Python cannot represent the value or a decimal loses digits.
        OverflowError: From the returned function, if a date or timestamp is out of Python's range.
        DecodeError: From the returned function, if a UUID is invalid.
    """
    if reader is None:
        return None
    if reader.name == "decimal":
        return _decimal(reader, writer if writer is not None and writer.name == "decimal" else reader)
    if reader.name == "uuid":
        return _uuid
    rescale = _rescale(writer, reader)
    convert = None if shape.numeric_times else _TIMES[reader.name]
    if rescale is None or convert is None:
        return rescale or convert
    return lambda number: convert(rescale(number))


def _rescale(writer: nodes.Logical | None, reader: nodes.Logical) -> Convert | None:
    up, down = rescaling(writer, reader)
    if up > 1:
        return lambda number: number * up
    return (lambda number: number // down) if down > 1 else None


def rescaling(writer: nodes.Logical | None, reader: nodes.Logical | None) -> tuple[int, int]:
    """Return (factor, divisor) that turn a number in the writer's time unit into the reader's unit."""
    if writer is None or reader is None or "-" not in writer.name or "-" not in reader.name:
        return 1, 1
    (kind, _, unit), (read_kind, _, read_unit) = writer.name.rpartition("-"), reader.name.rpartition("-")
    if kind != read_kind:
        return 1, 1
    have, want = _PER_SECOND[unit], _PER_SECOND[read_unit]
    return max(want // have, 1), max(have // want, 1)


def _time_micros(micros: int) -> time:
    if not 0 <= micros < _DAY_MICROS:
        raise ValueError("a time of day is out of range")
    seconds, micros = divmod(micros, 1_000_000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return time(hours, minutes, seconds, micros)


_TIMES: dict[str, Convert | None] = {
    "date": lambda days: date.fromordinal(days + _EPOCH_ORDINAL),
    "time-millis": lambda millis: _time_micros(millis * 1000),
    "time-micros": _time_micros,
    "timestamp-millis": lambda millis: _EPOCH + _MILLI * millis,
    "timestamp-micros": lambda micros: _EPOCH + _MICRO * micros,
    "timestamp-nanos": None,
    "local-timestamp-millis": lambda millis: _LOCAL_EPOCH + _MILLI * millis,
    "local-timestamp-micros": lambda micros: _LOCAL_EPOCH + _MICRO * micros,
    "local-timestamp-nanos": None,
}


def _uuid(raw: str | bytes) -> UUID:
    try:
        return UUID(raw) if isinstance(raw, str) else UUID(bytes=raw)
    except ValueError:
        raise DecodeError(DecodeReason.INVALID_UUID) from None


def _decimal(reader: nodes.Logical, writer: nodes.Logical) -> Convert:
    bound = 10 ** min(reader.precision, _MOST_DIGITS)
    up = 10 ** max(reader.scale - writer.scale, 0)
    down = 10 ** max(writer.scale - reader.scale, 0)
    most_bits = (bound * down).bit_length()

    def convert(raw: bytes) -> Decimal:
        unscaled = int.from_bytes(raw, "big", signed=True)
        if unscaled.bit_length() <= most_bits:  # keeps numbers of hostile length out of the arithmetic
            unscaled, rest = divmod(unscaled * up, down)
            if rest:
                raise ValueError(f"a decimal has more than {reader.scale} digits after the point")
            if -bound < unscaled < bound:
                return Decimal(unscaled).scaleb(-reader.scale, _EXACT)
        raise ValueError(f"a decimal has more than {reader.precision} digits")

    return convert


def default_value(node: nodes.Node, written: object, shape: Shape) -> Any:
    """Return the Python value of a default in JSON form.

    Args:
        node: the type of the field.
        written: the default as the schema text has it.
        shape: the caller's choices.

    Raises:
        ValueError: If it is not a value of the type, or holds more than 10 000 values.
        OverflowError: If Python cannot represent it.
    """
    return _Defaults(shape).value(node, written)


class _Defaults:
    """The conversion of one default, with a budget: defaults inside defaults can multiply."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._left = _MOST_DEFAULTS

    def value(self, node: nodes.Node, written: object) -> object:
        self._left -= 1
        if self._left < 0:
            raise ValueError("the default holds too many values")
        match node:
            case nodes.Union():
                return self._union(node, written)
            case nodes.Record() if isinstance(written, dict):
                return {
                    field.name: self._field(field.name, field.type, written, field.default) for field in node.fields
                }
            case nodes.Array() if isinstance(written, list):
                return [self.value(node.items, item) for item in written]
            case nodes.Map() if isinstance(written, dict):
                return {key: self.value(node.values, item) for key, item in written.items()}
            case nodes.Enum() if written in node.symbols:
                return written
            case nodes.Fixed() if isinstance(written, str):
                raw = written.encode("latin-1")
                if len(raw) == node.size:
                    return self._logical(node.logical, raw)
            case nodes.Primitive():
                return self._logical(node.logical, _primitive(node.kind, written))
        raise ValueError(f"expected {nodes.describe(node)}, got {written!r:.60}")

    def _field(self, name: str, node: nodes.Node, written: dict[str, object], default: object) -> object:
        value = written.get(name, default)
        if value is nodes.MISSING:
            raise ValueError(f"the default has no value for {name}")
        return self.value(node, value)

    def _union(self, node: nodes.Union, written: object) -> object:
        for index, branch in enumerate(node.branches):
            try:
                value = self.value(branch, written)
            except ValueError:
                continue
            return Branch(index, value) if value is not None and is_tagged(node, self._shape) else value
        raise ValueError(f"expected {nodes.describe(node)}, got {written!r:.60}")

    def _logical(self, logical: nodes.Logical | None, raw: object) -> object:
        convert = converter(None, logical, self._shape)
        try:
            return raw if convert is None else convert(raw)
        except DecodeError as error:
            raise ValueError(str(error)) from None


def _primitive(kind: nodes.Kind, written: Any) -> object:
    number = isinstance(written, int | float) and not isinstance(written, bool)
    match kind:
        case nodes.Kind.NULL if written is None:
            return None
        case nodes.Kind.BOOLEAN if isinstance(written, bool):
            return written
        case nodes.Kind.INT | nodes.Kind.LONG if number and written == int(written):
            return int(written)
        case nodes.Kind.FLOAT | nodes.Kind.DOUBLE if number:
            return float(written)
        case nodes.Kind.STRING if isinstance(written, str):
            return written
        case nodes.Kind.BYTES if isinstance(written, str):
            return written.encode("latin-1")
    raise ValueError(f"expected {kind}, got {written!r:.60}")
