"""Pasted text to bytes, and the frame in front of a payload.

    00 id(4, big-endian)              Confluent's frame with a schema id
    01 guid(16)                       with the GUID instead, in front of the payload or in a record header
    03 00|05 uuid(16)                 a frame of AWS Glue; after 05 the payload is compressed by zlib

Source: the wire formats of Confluent's clients (GUIDs since release 8.0) and of AWS Glue's.
"""

import base64
import binascii
import re
import zlib
from typing import NamedTuple
from uuid import UUID

from strata.registry.decoding.parts import Broken, Cursor

__all__ = ["Frame", "bytes_of", "message_indexes", "open_frame", "unpacked"]

_SPACES = re.compile(r"[\s,]+")
_HEX = re.compile(r"(?:[0-9a-fA-F]{2})*")
_PREFIX = re.compile(r"(?:\\x|0x)", re.IGNORECASE)
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")
_BASE64_FRAME = "AAAA"  # magic byte 0 and the first bytes of a small id; no frame begins with 0xAA
_GUID_SIZE = 16
_MOST_INDEXES = 64


class Frame(NamedTuple):
    """The header of a record.

    Attributes:
        kind: its kind for people.
        schema: the id or GUID that it names; None if it names none.
        start: where the payload starts.
        glue: the UUID of the schema version in AWS Glue, in a frame of its.
        is_packed: whether the payload is compressed.
    """

    kind: str
    schema: int | UUID | None
    start: int
    glue: UUID | None = None
    is_packed: bool = False


def bytes_of(text: str, encoding: str = "") -> bytes:
    """Return the bytes that a text writes in hex or base64.

    Args:
        text: the text; blanks, commas, and prefixes of hex digits do not count.
        encoding: `hex` or `base64`; empty means hex if the text can be hex, unless it begins as a frame in base64 does.

    Raises:
        Broken: the text is neither; the offset is that of the first wrong character.
    """
    plain = _SPACES.sub("", text)
    digits = _PREFIX.sub("", plain)
    is_frame = not encoding and plain.startswith(_BASE64_FRAME)
    if encoding != "base64" and not is_frame and _HEX.fullmatch(digits):
        return bytes.fromhex(digits)
    if encoding == "hex":
        wrong = re.search(r"[^0-9a-fA-F]", digits)
        if wrong is None:
            raise Broken(len(digits), "", "expected two hex digits for each byte, got an odd number of digits")
        raise Broken(wrong.start(), "", f"expected hex digits, got {wrong[0]!r}")
    if not _BASE64.fullmatch(plain):
        wrong = re.search(r"[^A-Za-z0-9+/=_-]", plain)
        raise Broken(wrong.start() if wrong else 0, "", "expected bytes in hex or base64")
    stripped = plain.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(stripped + "=" * (-len(stripped) % 4))
    except binascii.Error as error:
        raise Broken(0, "", f"expected bytes in base64: {error}") from None


def open_frame(data: bytes) -> Frame:
    """Return the frame of a record; bytes without a known one are a bare payload."""
    if len(data) >= 5 and data[0] == 0 and data[1] < 0x80:
        return Frame("Confluent, schema id", int.from_bytes(data[1:5], "big"), 5)
    if len(data) > _GUID_SIZE and data[0] == 1:
        return Frame("Confluent, schema GUID", UUID(bytes=data[1:17]), 17)
    if len(data) > _GUID_SIZE + 1 and data[0] == 3 and data[1] in (0, 5):
        packed, version = "compressed, " if data[1] else "", UUID(bytes=data[2:18])
        return Frame(f"AWS Glue, {packed}schema version {version}", None, 18, version, bool(data[1]))
    return Frame("none", None, 0)


def unpacked(data: bytes, frame: Frame, most: int) -> bytes:
    """Return a record with its payload as it was before it was compressed; offsets in it count from there.

    Raises:
        Broken: the payload is not compressed by zlib, or is longer than `most` bytes.
    """
    if not frame.is_packed:
        return data
    packed = zlib.decompressobj()
    try:
        payload = packed.decompress(data[frame.start :], most)
    except zlib.error as error:
        raise Broken(frame.start, "", f"expected a payload compressed by zlib: {error}") from None
    if not packed.eof:
        raise Broken(frame.start, "", f"expected a whole compressed payload of at most {most} bytes")
    return data[: frame.start] + payload


def message_indexes(cursor: Cursor) -> tuple[int, ...]:
    """Read the path to a Protobuf message, outermost first.

    Raises:
        Broken: there is none.
    """
    start = cursor.offset
    count = cursor.zigzag("", "the number of message indexes")
    if not 0 <= count <= _MOST_INDEXES:
        raise Broken(start, "", f"expected at most {_MOST_INDEXES} message indexes, got {count}")
    indexes = tuple(cursor.zigzag("", "a message index") for _ in range(count)) or (0,)
    cursor.note(start, "", "message indexes", list(indexes))
    return indexes
