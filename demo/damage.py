"""Twenty-five damaged records: five kinds, five of each, spread over the whole run.

Each is made from a row of the table as it is written at that moment, with only the defect of its kind, so that it looks
like real damage. This file also defines the reason that each kind must have in the dead-letter table.

Rules of this file: bytes and rows; other files send and find the records.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from demo.flights import ROWS, Row

__all__ = ["DAMAGES", "Damage", "Encode", "Kind"]

Encode = Callable[[Row], bytes]
"""A function that returns the undamaged frame of a row."""

_HEADER: Final = 5


class Kind(StrEnum):
    """The kinds of damage; each value is the beginning of its reason in the dead-letter table."""

    WRONG_MAGIC_BYTE = "wrong magic byte"
    UNKNOWN_ID = "unknown schema id"
    TRUNCATED = "truncated"
    TRAILING_BYTES = "trailing bytes"
    INVALID_UTF8 = "invalid utf-8"


@dataclass(frozen=True, slots=True)
class Damage:
    """One damaged record: its kind of damage, and the row of the table before which it is sent."""

    kind: Kind
    variant: Any
    row: int

    def frame(self, row: Row, encode: Encode) -> bytes:
        """Return the damaged frame of a row."""
        return _MAKERS[self.kind](self.variant, row, encode)

    def schema_id(self, written_with: int) -> int | None:
        """Return the schema id that can be read from the frame, None if the frame has no readable id."""
        match self.kind:
            case Kind.WRONG_MAGIC_BYTE:
                return None
            case Kind.UNKNOWN_ID:
                return int(self.variant)
        return written_with


def _wrong_magic_byte(magic: int, row: Row, encode: Encode) -> bytes:
    return bytes([magic]) + encode(row)[1:]


def _unknown_id(schema_id: int, row: Row, encode: Encode) -> bytes:
    return b"\0" + schema_id.to_bytes(4, "big") + encode(row)[_HEADER:]


def _truncated(kept: int, row: Row, encode: Encode) -> bytes:
    """Keep that many bytes of the payload; if negative, drop that many at its end."""
    frame = encode(row)
    return frame[:_HEADER] + frame[_HEADER:][:kept]


def _trailing_bytes(more: bytes, row: Row, encode: Encode) -> bytes:
    return encode(row) + more


def _invalid_utf8(text: bytes, row: Row, encode: Encode) -> bytes:
    """Encode a text of the same length first, so that the length prefix is right."""
    harmless = b"?" * len(text)
    frame = encode({**row, "tailnum": harmless.decode()})
    if frame.count(harmless) != 1:
        raise ValueError(f"{harmless!r} must occur exactly once in the frame of {row}")
    return frame.replace(harmless, text)


_MAKERS: Final[Mapping[Kind, Callable[[Any, Row, Encode], bytes]]] = {
    Kind.WRONG_MAGIC_BYTE: _wrong_magic_byte,
    Kind.UNKNOWN_ID: _unknown_id,
    Kind.TRUNCATED: _truncated,
    Kind.TRAILING_BYTES: _trailing_bytes,
    Kind.INVALID_UTF8: _invalid_utf8,
}

# Invalid UTF-8: a lone continuation byte, an overlong form, half a surrogate pair, a truncated character, a character
# beyond the last one.
_VARIANTS: Final[Mapping[Kind, Sequence[Any]]] = {
    Kind.WRONG_MAGIC_BYTE: (0x02, 0x04, 0x7B, 0x80, 0xFF),
    Kind.UNKNOWN_ID: (0, 4_711, 1_000_000, 2_000_000_000, 2**31 - 1),
    Kind.TRUNCATED: (0, 1, 20, -8, -1),
    Kind.TRAILING_BYTES: (b"\0", b"\n", b"\0\0\0\0\0", b"\xff" * 11, b"N14228"),
    Kind.INVALID_UTF8: (b"N1422\x80", b"N1\xc0\xaf28", b"N\xed\xa0\x8028", b"N142\xe2\x82", b"N\xf5\x80\x80\x808"),
}


def _spread(rows: int) -> tuple[Damage, ...]:
    """Return the damaged records: kinds in turn, at even distances, none at the very beginning or end."""
    turns = [(kind, variants[turn]) for turn in range(5) for kind, variants in _VARIANTS.items()]
    return tuple(
        Damage(kind, variant, row=(2 * i + 1) * rows // (2 * len(turns))) for i, (kind, variant) in enumerate(turns)
    )


DAMAGES: Final = _spread(ROWS)
