"""Values as JSON text and back.

A datetime needs a time zone and becomes the text of an instant; dates and times of day become text too. NaN, integers
beyond 64 bits and decimals are refused, with their path.

Rules of this file: no schema; the depth of what is read is bounded by orjson.
"""

import dataclasses
import json
import math
from collections.abc import Iterable
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import orjson

from serdes.errors import (
    DecodeError,
    DecodeReason,
    EncodeError,
    expected,
    index_part,
    key_part,
    without_zone,
    zoned_time,
)

__all__ = ["dump", "load"]

_DIGITS = bytes(ord("0") if chr(byte).isdecimal() else ord(" ") for byte in range(128)).ljust(256)
_LONG_INTEGER = b"0" * 19
"""So many digits may be more than 64 bits hold; looked for this way, since a pattern takes thirty times as long."""
_TIMES = (date, time)
_INTEGERS = range(-(2**63), 2**64)


def load(payload: bytes) -> Any:
    """A payload as a value; DecodeError where it is none."""
    try:
        value = orjson.loads(payload)
        # orjson makes floats of integers beyond 64 bits; the depth is known to be harmless by now
        return json.loads(payload) if _LONG_INTEGER in payload.translate(_DIGITS) else value
    except (ValueError, RecursionError) as error:
        reason = DecodeReason.LIMIT if isinstance(error, RecursionError) else DecodeReason.MALFORMED
        offset = error.pos if isinstance(error, json.JSONDecodeError) else None
        raise DecodeError(reason, "the payload is no JSON that is read", offset=offset) from None


def dump(value: Any) -> bytes:
    """Return a value as JSON; EncodeError says what JSON cannot hold, and where."""
    try:
        payload = orjson.dumps(value, default=_plain, option=orjson.OPT_PASSTHROUGH_DATETIME)
        if b"null" in payload:  # which is what orjson makes of NaN
            _check(value, "")
    except (TypeError, ValueError, RecursionError) as error:
        raise _unwritable(value, error) from error.__cause__
    return payload


def _unwritable(value: Any, error: Exception) -> EncodeError:
    """The error for a value that JSON cannot hold, with the path of the part at fault."""
    try:
        _check(value, "")
    except EncodeError as found:
        return found
    except RecursionError:
        return EncodeError("the value is nested too deeply")
    return EncodeError(f"expected a value that JSON can hold: {error}")


def _check(value: Any, path: str) -> None:
    """Raise EncodeError for the first part of a value that JSON cannot hold."""
    if isinstance(value, float) and not math.isfinite(value):
        raise EncodeError("expected a finite number, got NaN or an infinity", path=path)
    if isinstance(value, int) and value not in _INTEGERS:
        raise EncodeError(f"expected an integer of at most 64 bits, got one of {value.bit_length()} bits", path=path)
    if isinstance(value, str) and not _is_unicode(value):
        raise EncodeError("expected a string that UTF-8 can hold, got one with a lone surrogate", path=path)
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                raise expected("a string as key", key, path=path)
    for part, inner in _inside(value, path):
        _check(inner, f"{path}{part}".lstrip("."))


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _inside(value: Any, path: str) -> Iterable[tuple[str, Any]]:
    """The parts of a value, with what each adds to the path."""
    if value is None or isinstance(value, str | int | float | UUID | Enum):
        return ()
    if isinstance(value, dict):
        return [(f".{name}" if str(name).isidentifier() else key_part(name), inner) for name, inner in value.items()]
    if isinstance(value, list | tuple):
        return [(index_part(index), inner) for index, inner in enumerate(value)]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [(f".{one.name}", getattr(value, one.name, None)) for one in dataclasses.fields(value)]
    try:
        return _inside(_plain(value), path)
    except EncodeError as error:
        raise EncodeError(error.detail, path=path) from None


def _plain(value: Any) -> Any:
    """Return what orjson knows for what it does not: times, and models of pydantic, msgspec and attrs."""
    kind = type(value)
    if isinstance(value, _TIMES):
        if isinstance(value, datetime):
            if value.tzinfo is None:
                raise without_zone()
        elif isinstance(value, time) and value.tzinfo is not None:
            raise zoned_time()
        return value.isoformat()
    if hasattr(kind, "model_dump"):
        return value.model_dump(mode="json", by_alias=True)
    if hasattr(kind, "__struct_fields__"):
        pairs = zip(kind.__struct_encode_fields__, kind.__struct_fields__, strict=True)
        fields = {name: getattr(value, attribute) for name, attribute in pairs}
        tag = kind.__struct_config__.tag
        fields = {name: one for name, one in fields.items() if type(one).__name__ != "UnsetType"}
        return fields if tag is None else {kind.__struct_config__.tag_field: tag, **fields}
    if hasattr(kind, "__attrs_attrs__"):
        return {field.name: getattr(value, field.name) for field in kind.__attrs_attrs__}
    advice = next((how for kinds, how in _ADVICE if isinstance(value, kinds)), "")
    raise expected("a value that JSON can hold", value, advice)


_ADVICE: tuple[tuple[Any, str], ...] = (
    (Decimal, "; give it as a string or a number, such as by str(value)"),
    ((set, frozenset), "; give a list"),
    ((bytes, bytearray, memoryview), "; give text, such as by base64"),
)
