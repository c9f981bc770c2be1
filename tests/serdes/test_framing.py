"""Frames are joined and split by one table, and every other byte sequence is refused."""

import pytest

from strata.serdes.errors import FrameError
from strata.serdes.framing import join, split

FRAMES = [
    ("empty payload", 1, b"", b"\x00\x00\x00\x00\x01"),
    ("id over four bytes", 0x01020304, b"ab", b"\x00\x01\x02\x03\x04ab"),
    ("id zero", 0, b"x", b"\x00\x00\x00\x00\x00x"),
    ("largest id", 2**31 - 1, b"\x00", b"\x00\x7f\xff\xff\xff\x00"),
    ("payload that looks like a frame", 7, b"\x00\x00\x00\x00\x01", b"\x00\x00\x00\x00\x07\x00\x00\x00\x00\x01"),
]


@pytest.mark.parametrize(("schema_id", "payload", "frame"), [row[1:] for row in FRAMES], ids=[row[0] for row in FRAMES])
def test_join_and_split_are_inverse(schema_id, payload, frame):
    """Joining and splitting header and payload are inverse, byte for byte."""
    assert frame == join(schema_id, payload)
    assert (schema_id, payload) == split(frame)


@pytest.mark.parametrize("length", range(5))
def test_fewer_bytes_than_a_header_are_no_frame(length):
    """Every truncation of the header is refused with the same reason."""
    with pytest.raises(FrameError) as caught:
        split(b"\x00\x00\x00\x00\x01"[:length])

    assert caught.value.reason == "frame too short"


@pytest.mark.parametrize("magic", [1, 0x7B, 0x80, 0xFF])
def test_another_magic_byte_is_named(magic):
    """The reason shows the byte, since it often reveals the real format: 0x7b is JSON."""
    with pytest.raises(FrameError) as caught:
        split(bytes([magic]) + b"\x00\x00\x00\x01payload")

    assert caught.value.reason == f"wrong magic byte 0x{magic:02x}"


def test_an_id_beyond_the_wire_is_refused_both_ways():
    """Ids are signed 32-bit numbers for every client; larger ones are refused as damage."""
    with pytest.raises(FrameError, match="4294967295 is outside"):
        split(b"\x00\xff\xff\xff\xff")
    with pytest.raises(FrameError, match="-1 is outside"):
        join(-1, b"")
    with pytest.raises(FrameError, match="2147483648 is outside"):
        join(2**31, b"")
