"""Values to JSON text and back.

A datetime needs a time zone and is written as ISO 8601 text, as dates and times of day are. NaN, integers of more than
64 bits and decimals are errors with a path.

Rules of this file: no schema; `strata.strict_json` reads text.
"""

import dataclasses
import math
import re
from collections.abc import Callable, Iterable
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import orjson

from strata import strict_json
from strata.serdes import errors

__all__ = ["dump", "load"]

_TIMES = (date, time)
_INTEGERS = range(-(2**63), 2**64)
_SURROGATE = re.compile("[\ud800-\udfff]")


def load(payload: bytes) -> Any:
    """Parse a payload.

    Raises:
        DecodeError: If the payload is not JSON or is nested too deeply.
    """
    try:
        return strict_json.load(payload)
    except strict_json.NotJson as fault:
        if fault.is_too_large:
            raise errors.DecodeError(
                errors.DecodeReason.OUT_OF_RANGE, "a number beyond doubles", offset=fault.offset
            ) from None
        reason = errors.DecodeReason.LIMIT if fault.is_too_deep else errors.DecodeReason.MALFORMED
        raise errors.DecodeError(reason, "invalid JSON", offset=fault.offset) from None


Report = Callable[[str, str], None]
"""Learns what was changed, and the path of the value."""


def dump(value: object, bends: Report | None = None) -> bytes:
    """Return a value as UTF-8 JSON text.

    Args:
        value: the value.
        bends: write what confluent-kafka writes with orjson, and report each change here: null for NaN and infinities,
            and a datetime without a time zone as it is.

    Raises:
        EncodeError: If JSON cannot represent a part of the value; the path says which.
    """
    try:
        return _dumped(value)
    except errors.EncodeError:
        if bends is None:
            raise
        return _dumped(_bent(value, "", bends))


def _bent(value: object, path: str, report: Report) -> object:
    """Return a value in which what strict JSON refuses is replaced, as plain values."""
    if isinstance(value, float) and not math.isfinite(value):
        report("expected a finite number, got NaN or an infinity: null is written", path)
        return None
    if isinstance(value, datetime) and value.tzinfo is None:
        report("expected a datetime with a time zone, got one without: it is written without", path)
        return value.isoformat()
    if isinstance(value, dict):
        parts = zip(value, _inside(value, path), strict=True)
        return {key: _bent(inner, f"{path}{part}".lstrip("."), report) for key, (part, inner) in parts}
    if isinstance(value, list | tuple):
        return [_bent(inner, f"{path}{part}".lstrip("."), report) for part, inner in _inside(value, path)]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _bent({field.name: getattr(value, field.name) for field in dataclasses.fields(value)}, path, report)
    return value


def _dumped(value: object) -> bytes:
    try:
        payload = orjson.dumps(value, default=_plain, option=orjson.OPT_PASSTHROUGH_DATETIME)
        if b"null" in payload:  # orjson writes NaN as null
            _check(value, "")
    except (TypeError, ValueError, RecursionError) as error:
        raise _unwritable(value, error) from error.__cause__
    return payload


def _unwritable(value: object, error: Exception) -> errors.EncodeError:
    """Return the error for a value that JSON cannot represent, with the path of the part at fault."""
    try:
        _check(value, "")
    except errors.EncodeError as refusal:
        return refusal
    except RecursionError:
        return errors.EncodeError("the value is nested too deeply")
    return errors.EncodeError(f"expected a value that JSON can hold: {error}")


def _check(value: object, path: str) -> None:
    """Raise EncodeError for the first part of a value that JSON cannot represent."""
    if isinstance(value, float) and not math.isfinite(value):
        raise errors.EncodeError("expected a finite number, got NaN or an infinity", path=path)
    if isinstance(value, int) and value not in _INTEGERS:
        raise errors.EncodeError(
            f"expected an integer of at most 64 bits, got one of {value.bit_length()} bits", path=path
        )
    if isinstance(value, str) and _SURROGATE.search(value):
        raise errors.EncodeError("expected a string that UTF-8 can hold, got one with a lone surrogate", path=path)
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                raise errors.expected("a string as key", key, path=path)
    for part, inner in _inside(value, path):
        _check(inner, f"{path}{part}".lstrip("."))


def _inside(value: object, path: str) -> Iterable[tuple[str, object]]:
    """Return the parts of a value, with the path part of each."""
    if value is None or isinstance(value, str | int | float | UUID | Enum):
        return ()
    if isinstance(value, dict):
        return [
            (f".{name}" if str(name).isidentifier() else errors.key_part(name), inner) for name, inner in value.items()
        ]
    if isinstance(value, list | tuple):
        return [(errors.index_part(index), inner) for index, inner in enumerate(value)]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [(f".{field.name}", getattr(value, field.name, None)) for field in dataclasses.fields(value)]
    try:
        return _inside(_plain(value), path)
    except errors.EncodeError as error:
        raise errors.EncodeError(error.detail, path=path) from None


def _plain(value: Any) -> object:
    """Convert a value that orjson does not know: times, and models of pydantic, msgspec and attrs."""
    cls = type(value)
    if isinstance(value, _TIMES):
        if isinstance(value, datetime):
            if value.tzinfo is None:
                raise errors.without_zone()
        elif isinstance(value, time) and value.tzinfo is not None:
            raise errors.zoned_time()
        return value.isoformat()
    if hasattr(cls, "model_dump"):
        return value.model_dump(mode="json", by_alias=True)
    if hasattr(cls, "__struct_fields__"):
        pairs = zip(cls.__struct_encode_fields__, cls.__struct_fields__, strict=True)
        fields = {name: getattr(value, attribute) for name, attribute in pairs}
        tag = cls.__struct_config__.tag
        fields = {name: field for name, field in fields.items() if type(field).__name__ != "UnsetType"}
        return fields if tag is None else {cls.__struct_config__.tag_field: tag, **fields}
    if hasattr(cls, "__attrs_attrs__"):
        return {field.name: getattr(value, field.name) for field in cls.__attrs_attrs__}
    advice = next((how for kinds, how in _ADVICE if isinstance(value, kinds)), "")
    raise errors.expected("a value that JSON can hold", value, advice)


_ADVICE: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (Decimal, "; give it as a string or a number, such as by str(value)"),
    ((set, frozenset), "; give a list"),
    ((bytes, bytearray, memoryview), "; give text, such as by base64"),
)
