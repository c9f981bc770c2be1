"""Reads the JSON of records as the clients accept it: in UTF-8, by RFC 8259, without NaN, and of bounded depth.

Clients and service both read records here, so that the page which decodes a record judges as the deserializers do.

Rules of this file: no schema; orjson bounds the depth.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import orjson

__all__ = ["Json", "NotJson", "load"]

Json: TypeAlias = bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"] | None
"""A JSON value that is passed on or printed; who changes one, or keeps all digits, has a type of its own."""

_DIGITS = bytes(ord("0") if chr(byte).isdecimal() else ord(" ") for byte in range(128)).ljust(256)
_LONG_INTEGER = b"0" * 19
"""An integer of so many digits may exceed 64 bits; a pattern search would take thirty times as long."""
_INFINITY = "number is infinity"
"""What orjson says of `1e400`."""


class NotJson(ValueError):
    """The bytes are not JSON, or JSON that no client reads.

    Attributes:
        reason: why, without a part of the text.
        offset: the byte at fault; None if it is not known.
        is_too_deep: whether the value is nested too deeply.
        is_too_large: whether a number is beyond doubles.
    """

    def __init__(
        self, reason: str, offset: int | None, *, is_too_deep: bool = False, is_too_large: bool = False
    ) -> None:
        super().__init__(reason)
        self.reason, self.offset = reason, offset
        self.is_too_deep, self.is_too_large = is_too_deep, is_too_large


def load(payload: bytes) -> Any:
    """Return the value of a JSON text; integers keep all their digits.

    Raises:
        NotJson: If it is not JSON, or is nested too deeply.
    """
    try:
        value = orjson.loads(payload)
        # orjson turns integers beyond 64 bits into floats; it has bounded the depth for json.loads
        return json.loads(payload) if _LONG_INTEGER in payload.translate(_DIGITS) else value
    except RecursionError:
        raise NotJson("the value is nested too deeply", None, is_too_deep=True) from None
    except json.JSONDecodeError as error:
        raise _fault(payload, error) from None
    except ValueError:  # more digits than Python converts
        raise NotJson("a number has too many digits", None) from None


def _fault(payload: bytes, error: json.JSONDecodeError) -> NotJson:
    try:
        text = bytes(payload).decode()
    except UnicodeDecodeError as damage:
        return NotJson(f"not UTF-8: {damage.reason}", damage.start)
    return NotJson(error.msg, len(text[: error.pos].encode()), is_too_large=_INFINITY in error.msg)
