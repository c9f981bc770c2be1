"""Pasted text to bytes, and the frame in front of a payload, which `strata.frames` reads as for the clients."""

import base64
import binascii
import re
from typing import NamedTuple
from uuid import UUID

from strata import frames
from strata.frames import BadFrame, GlueVersion, SchemaName
from strata.registry.features.decoding.parts import Broken, Cursor

__all__ = ["Frame", "bytes_of", "check_header", "message_indexes", "open_frame", "open_header", "unpacked"]

_SPACES = re.compile(r"[\s,]+")
_HEX = re.compile(r"(?:[0-9a-fA-F]{2})*")
_PREFIX = re.compile(r"(?:\\x|0x)", re.IGNORECASE)
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")
_BASE64_FRAME = "AAAA"  # magic byte 0 and the first bytes of a small id; no frame begins with 0xAA


class Frame(NamedTuple):
    """The header of a record.

    Attributes:
        kind: its kind for people.
        schema: the id or GUID that it names; None if it names none.
        start: where the payload starts.
        glue: the UUID of the schema version in AWS Glue, in a frame of its.
        is_packed: whether the payload is compressed.
        path: what follows the name of the schema in a record header: the path to a Protobuf message; None without one.
    """

    kind: str
    schema: int | UUID | None
    start: int
    glue: UUID | None = None
    is_packed: bool = False
    path: bytes | None = None


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
    if frames.is_packed(data):
        version = UUID(bytes=data[2 : frames.GLUE_HEADER_SIZE])
        return Frame(
            f"AWS Glue, compressed, schema version {version}", None, frames.GLUE_HEADER_SIZE, version, is_packed=True
        )
    try:
        return _named(*frames.split_name(data), len(data))
    except BadFrame:
        return Frame("none", None, 0)


def open_header(header: bytes) -> Frame | None:
    """Return the frame of a record whose header names its schema by the GUID; None if it does not."""
    try:
        schema, path = frames.split_name(b"", header)
    except BadFrame:
        return None
    if not isinstance(schema, UUID):
        return None
    return Frame("Confluent, schema GUID in a record header", schema, 0, path=path)


def _named(schema: SchemaName, payload: bytes, size: int) -> Frame:
    start = size - len(payload)
    if isinstance(schema, GlueVersion):
        return Frame(f"AWS Glue, schema version {schema}", None, start, schema.uuid)
    return Frame(f"Confluent, schema {'GUID' if isinstance(schema, UUID) else 'id'}", schema, start)


def unpacked(data: bytes, frame: Frame, most: int) -> bytes:
    """Return a record with its payload as it was before it was compressed; offsets in it count from there.

    Raises:
        Broken: the payload is not compressed by zlib, or is longer than `most` bytes.
    """
    if not frame.is_packed:
        return data
    try:
        return frames.inflated(data, most)
    except BadFrame as fault:
        raise Broken(frame.start, "", fault.reason) from None


def message_indexes(cursor: Cursor, frame: Frame) -> tuple[int, ...]:
    """Return the path to a Protobuf message, outermost first; a bare payload is the first message.

    Raises:
        Broken: there is none, or something follows it in a record header.
    """
    if not frame.start and frame.path is None:
        return (0,)
    start = cursor.offset
    try:
        indexes, size = frames.read_indexes(cursor.data[start : cursor.end] if frame.path is None else frame.path)
    except BadFrame as fault:
        raise Broken(start, "", f"expected the message indexes: {fault.reason}") from None
    if frame.path is None:
        cursor.offset += size
        cursor.note(start, "", "message indexes", list(indexes))
    else:
        check_header(frame.path[size:])
    return indexes


def check_header(rest: bytes | None) -> None:
    """Check that a record header holds nothing more.

    Raises:
        Broken: it does.
    """
    if rest:
        raise Broken(0, "", "expected the end of the record header, but bytes are left")
