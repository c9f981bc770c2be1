"""The frame around a payload: one magic byte, the schema id as four bytes big-endian, the payload.

Rules of this file: bytes in, values out; no schema, no registry.
"""

import struct

from serdes.errors import FrameError

__all__ = ["HEADER_SIZE", "MAGIC_BYTE", "MAX_SCHEMA_ID", "join", "split"]

MAGIC_BYTE = 0
HEADER_SIZE = 5
MAX_SCHEMA_ID = 2**31 - 1
"""Ids are signed 32-bit numbers on the wire of every client."""

_HEADER = struct.Struct(">BI")
_GLUE_HEADER_SIZE = 18


def join(schema_id: int, payload: bytes) -> bytes:
    """Put the header in front of a payload."""
    if not 0 <= schema_id <= MAX_SCHEMA_ID:
        raise FrameError(f"schema id {schema_id} is outside 0 to {MAX_SCHEMA_ID}")
    return _HEADER.pack(MAGIC_BYTE, schema_id) + payload


def split(frame: bytes) -> tuple[int, bytes]:
    """Take a frame apart into schema id and payload."""
    if len(frame) < HEADER_SIZE:
        raise FrameError("frame too short")
    magic, schema_id = _HEADER.unpack_from(frame)
    if magic != MAGIC_BYTE:
        hint = " (frame of AWS Glue's registry)" if _is_of_glue(frame) else ""
        raise FrameError(f"wrong magic byte 0x{magic:02x}{hint}")
    if schema_id > MAX_SCHEMA_ID:
        raise FrameError(f"schema id {schema_id} is outside 0 to {MAX_SCHEMA_ID}")
    return schema_id, frame[HEADER_SIZE:]


def _is_of_glue(frame: bytes) -> bool:
    """Version 3, then 0 or 5 for the compression, then a UUID of 16 bytes."""
    return len(frame) >= _GLUE_HEADER_SIZE and frame[0] == 3 and frame[1] in (0, 5)
