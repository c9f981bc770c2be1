"""The frame around a payload, which says with which schema the payload was written (the wire format).

    00 id(4, big-endian)  payload       magic byte 0, in front of the payload
    01 guid(16)           payload       magic byte 1, in front of the payload
    01 guid(16)                         in the record header `__key_schema_id` or `__value_schema_id`, the payload bare
    03 00 uuid(16)        payload       AWS Glue's frame: header version 3, no compression, schema version
    03 05 uuid(16)        payload       the same, with everything behind the UUID compressed by zlib

After id or GUID, Protobuf has the path to its message in the file (the message indexes): the count, then the indexes,
all zigzag varints; the path [0] is the single byte 0. Glue has one unsigned varint there, the place of the message
among all messages of the file, sorted by full name.

Source: the wire format of Confluent's clients, where GUIDs and headers are those of release 8.0; that of AWS Glue's
Java library 1.1.

Clients and service both read and write frames here; each turns `BadFrame` into its own error.

Rules of this file: bytes in, values out; no schema, no registry.
"""

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias
from uuid import UUID

__all__ = [
    "GLUE_HEADER_SIZE",
    "GUID_HEADER_SIZE",
    "HEADER_SIZE",
    "MAGIC_BYTE",
    "MAGIC_BYTE_GLUE",
    "MAGIC_BYTE_GUID",
    "MAX_INDEXES",
    "MAX_INFLATED",
    "MAX_SCHEMA_ID",
    "BadFrame",
    "Frame",
    "GlueVersion",
    "MessagePath",
    "SchemaName",
    "inflated",
    "is_packed",
    "join",
    "open_frame",
    "read_indexes",
    "read_path",
    "split",
    "split_name",
    "write_indexes",
]

MAGIC_BYTE = 0
"""The first byte of a frame with an id."""
MAGIC_BYTE_GUID = 1
MAGIC_BYTE_GLUE = 3
HEADER_SIZE = 5
GUID_HEADER_SIZE = 17
GLUE_HEADER_SIZE = 18
MAX_SCHEMA_ID = 2**31 - 1
"""Ids are signed 32-bit numbers on the wire of every client."""
MAX_INDEXES = 64
"""How deep Protobuf messages may nest."""
MAX_INDEX = 2**16
"""No Protobuf file declares so many messages at one level."""
MAX_INFLATED = 16 * 1024 * 1024
"""Bytes of the longest payload that a compressed frame may hold; a thousandth of them may be enough to write it."""

_HEADER, _ID = struct.Struct(">BI"), struct.Struct(">I")
_PLAIN, _ZLIB = 0, 5  # the second byte of Glue's frames
_BY_GUID, _GLUE = bytes([MAGIC_BYTE_GUID]), bytes([MAGIC_BYTE_GLUE])
_COMPRESSED = bytes([MAGIC_BYTE_GLUE, _ZLIB])
_VARINT_SIZE = 3  # bytes of MAX_INDEX


class BadFrame(Exception):
    """The bytes are not a registry frame.

    Attributes:
        reason: why.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class GlueVersion:
    """The UUID of a schema version in AWS Glue, which is not the GUID of a schema."""

    uuid: UUID

    def __str__(self) -> str:
        return str(self.uuid)


SchemaName: TypeAlias = int | UUID | GlueVersion
"""What a frame names its schema by: the id, the GUID, or the version in AWS Glue."""
MessagePath: TypeAlias = tuple[int, ...] | int
"""Where a Protobuf message is in its file: the index at each level, outermost first; or its place as Glue counts."""


class Frame(NamedTuple):
    """A record split into its parts.

    Attributes:
        schema: the schema's id, its GUID, or its version in Glue.
        indexes: where the Protobuf message is in its file; empty for other formats.
        payload: the bytes of the format.
    """

    schema: SchemaName
    indexes: MessagePath
    payload: bytes


def join(schema_id: int, payload: bytes) -> bytes:
    """Return the payload with magic byte 0 and the id in front.

    Raises:
        BadFrame: If the id is outside 0 to 2^31 - 1.
    """
    if not 0 <= schema_id <= MAX_SCHEMA_ID:
        raise BadFrame(f"schema id {schema_id} is outside 0 to {MAX_SCHEMA_ID}")
    return _HEADER.pack(MAGIC_BYTE, schema_id) + payload


def split(frame: bytes) -> tuple[int, bytes]:
    """Split a frame with magic byte 0 into schema id and payload.

    Raises:
        BadFrame: If the frame is shorter than 5 bytes, or has another magic byte or a negative id.
    """
    if len(frame) < HEADER_SIZE:
        raise BadFrame("frame too short")
    magic, schema_id = _HEADER.unpack_from(frame)
    if magic != MAGIC_BYTE:
        raise BadFrame(f"wrong magic byte 0x{magic:02x}")
    if schema_id > MAX_SCHEMA_ID:
        raise BadFrame(f"schema id {schema_id} is outside 0 to {MAX_SCHEMA_ID}")
    return schema_id, frame[HEADER_SIZE:]


def open_frame(data: bytes, header: bytes | None = None, *, indexed: bool = False) -> Frame:
    """Split a record into the name of its schema, message path and payload, which is inflated.

    Args:
        data: the key or value of the record.
        header: the schema header of the record, which then replaces the prefix.
        indexed: whether a Protobuf message path follows the name.

    Raises:
        BadFrame: If the bytes are not a registry frame.
    """
    if header is None and not indexed and len(data) >= HEADER_SIZE and data[0] == MAGIC_BYTE:
        (schema_id,) = _ID.unpack_from(data, 1)
        if schema_id <= MAX_SCHEMA_ID:
            return tuple.__new__(Frame, (schema_id, (), data[HEADER_SIZE:]))  # the common case, without calls
    schema, rest = split_name(data, header)
    indexes: MessagePath = ()
    if indexed:
        indexes, end = read_path(schema, rest)
        rest = rest[end:]
    if header is None:
        return Frame(schema, indexes, rest)
    if rest:
        raise BadFrame("trailing bytes in the header of the schema")
    return Frame(schema, indexes, data)


def split_name(data: bytes, header: bytes | None = None) -> tuple[SchemaName, bytes]:
    """Return the name of a record's schema, and the bytes behind it, inflated.

    Args:
        data: the key or value of the record.
        header: the schema header of the record, which then replaces the prefix.

    Raises:
        BadFrame: If the bytes do not name a schema.
    """
    named = data if header is None else header
    magic = named[:1]
    if magic == b"\0":  # nearly all frames
        return split(named)
    if magic == _BY_GUID:
        if len(named) < GUID_HEADER_SIZE:
            raise BadFrame("frame too short")
        return UUID(bytes=named[1:GUID_HEADER_SIZE]), named[GUID_HEADER_SIZE:]
    if magic == _GLUE and header is None:
        return _split_glue(inflated(data))
    return split(named)  # which says what is wrong


def read_path(schema: SchemaName, data: bytes) -> tuple[MessagePath, int]:
    """Parse what says where a Protobuf message is, behind the name of its schema.

    Returns:
        The path, and the offset behind it.

    Raises:
        BadFrame: If the path is truncated or out of bounds.
    """
    return _read_varint(data, 0) if isinstance(schema, GlueVersion) else read_indexes(data)


def _split_glue(data: bytes) -> tuple[GlueVersion, bytes]:
    if len(data) < GLUE_HEADER_SIZE:
        raise BadFrame("frame too short")
    if data[1] != _PLAIN:
        raise BadFrame(f"unknown compression 0x{data[1]:02x} in a frame of AWS Glue")
    return GlueVersion(UUID(bytes=data[2:GLUE_HEADER_SIZE])), data[GLUE_HEADER_SIZE:]


def is_packed(frame: bytes) -> bool:
    """Return whether a frame is one of AWS Glue with a compressed payload."""
    return frame[:2] == _COMPRESSED and len(frame) >= GLUE_HEADER_SIZE


def inflated(frame: bytes, most: int = MAX_INFLATED) -> bytes:
    """Return a frame of AWS Glue without compression; any other frame as it is.

    Args:
        frame: the frame.
        most: bytes of the longest payload, inflated.

    Raises:
        BadFrame: If the compressed bytes are damaged, or the payload is longer.
    """
    if not is_packed(frame):
        return frame
    inflater = zlib.decompressobj()
    try:
        payload = inflater.decompress(frame[GLUE_HEADER_SIZE:], most + 1)
    except zlib.error:
        raise BadFrame("the compressed payload is damaged") from None
    if len(payload) > most:
        raise BadFrame(f"the payload has more than {most} bytes when it is inflated")
    if not inflater.eof or inflater.unused_data:
        raise BadFrame("the compressed payload is damaged")
    return bytes((MAGIC_BYTE_GLUE, _PLAIN)) + frame[2:GLUE_HEADER_SIZE] + payload


def write_indexes(indexes: Sequence[int]) -> bytes:
    """Return the message path as bytes.

    Args:
        indexes: the index of the message at each level, outermost first.

    Raises:
        BadFrame: If the path is empty, longer than 64, or has an index outside 0 to 2^16 - 1.
    """
    if tuple(indexes) == (0,):
        return b"\x00"
    if not 0 < len(indexes) <= MAX_INDEXES or not all(0 <= one < MAX_INDEX for one in indexes):
        raise BadFrame(f"expected 1 to {MAX_INDEXES} message indexes below {MAX_INDEX}, got {list(indexes)[:5]}")
    return b"".join(_varint(number << 1) for number in (len(indexes), *indexes))


def read_indexes(data: bytes) -> tuple[tuple[int, ...], int]:
    """Parse the message path at the beginning of some bytes.

    Returns:
        The path, and the offset behind it; a count of 0 means [0].

    Raises:
        BadFrame: If the path is truncated or out of bounds.
    """
    if data[:1] == b"\0":  # nearly all frames
        return (0,), 1
    count, at = _read_index(data, 0)
    if count == 0:
        return (0,), at
    if count > MAX_INDEXES:
        raise BadFrame("too many message indexes")
    indexes = []
    for _ in range(count):
        index, at = _read_index(data, at)
        indexes.append(index)
    return tuple(indexes), at


def _read_index(data: bytes, at: int) -> tuple[int, int]:
    number, end = _read_varint(data, at)
    if number & 1 or number >> 1 >= MAX_INDEX:
        raise BadFrame("a message index is out of range")
    return number >> 1, end


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    number = 0
    for place, byte in enumerate(data[at : at + _VARINT_SIZE]):
        number |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return number, at + place + 1
    raise BadFrame("frame too short" if at + _VARINT_SIZE > len(data) else "a message index is out of range")


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
