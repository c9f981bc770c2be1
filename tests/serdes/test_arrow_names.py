"""Batches whose frames name their schemas by id, by GUID, in headers and as AWS Glue does, in any order."""

import zlib
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.examples import examples
from harness.glue_frames import SCHEMAS, VECTORS
from strata.serdes.arrow import BatchDecoder, decode_batch, names
from strata.serdes.avro import compile_decoder, compile_encoder
from strata.serdes.errors import DecodeError, FrameError
from strata.serdes.framing import GlueVersion, open_frame

TEXT = SCHEMAS["orders-avro"].schema.text
READER = TEXT.replace('"Order"', '"Wanted"').replace('"record"', '"record", "aliases": ["Order"]')
VERSION = GlueVersion(SCHEMAS["orders-avro"].version)
GUID = UUID("000102030405060708090a0b0c0d0e0f")
WRITERS = {7: TEXT, GUID: TEXT, VERSION: TEXT}
PLAIN, PACKED = (one.frame for one in VECTORS[:2])
GLUE = PLAIN[:18]
UNKNOWN = UUID(int=1)
COLUMNS = ["id"]


def payload(number):
    """Return a payload."""
    return compile_encoder(TEXT)({"id": number, "name": "n" * 50, "tags": []})


def packed(data):
    """Return a compressed frame."""
    return b"\3\5" + VERSION.uuid.bytes + zlib.compress(data)


def found(batch):
    """Return the numbers, or the reasons."""
    return [row["error"]["reason"] if row["error"] else row["id"] for row in batch.to_pylist()]


def decoded(frames, headers=None):
    """Return the numbers in some frames, or the reasons."""
    return found(decode_batch(frames, TEXT, writer_schemas=WRITERS, columns=COLUMNS, headers=headers))


# frame, header, number or reason
ROWS = [
    (b"\0\0\0\0\7" + payload(1), None, 1),
    (PLAIN, None, 7),
    (b"\1" + GUID.bytes + payload(2), None, 2),
    (PACKED, None, 7),
    (None, None, None),
    (payload(3), b"\1" + GUID.bytes, 3),
    (payload(4), b"\0\0\0\0\7", 4),
    (payload(5), GLUE, "wrong magic byte 0x03"),
    (PACKED, b"\1" + GUID.bytes, "negative length"),
    (None, b"\1" + GUID.bytes, None),
    (b"\0\0\0\0\x09", None, "unknown schema id"),
    (b"\1" + UNKNOWN.bytes, None, "unknown schema guid"),
    (b"\3\0" + UNKNOWN.bytes, None, "unknown Glue schema version"),
    (b"\3\5" + UNKNOWN.bytes + zlib.compress(b""), None, "unknown Glue schema version"),
    (PACKED[:-1], None, "the compressed payload is damaged"),
    (b"\3\1" + VERSION.uuid.bytes, None, "unknown compression 0x01 in a frame of AWS Glue"),
    (b"\3", None, "frame too short"),
    (b"\1", None, "frame too short"),
    (b"", None, "frame too short"),
    (b"\4\0" + VERSION.uuid.bytes, None, "wrong magic byte 0x04"),
    (PLAIN[:-1], None, "truncated"),
    (packed(payload(6)), None, 6),
]


def test_one_batch_has_frames_of_all_kinds():
    """Each row has its number or its reason, whatever its neighbours are."""
    frames, headers, expected = (list(column) for column in zip(*ROWS, strict=True))

    assert expected == decoded(frames, headers)
    without = [row for row in ROWS if row[1] is None]
    assert [row[2] for row in without] == decoded([row[0] for row in without])


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()], ids=str)
def test_slices_of_arrays(kind):
    """Both Arrow types of frames are read, and slices of them."""
    frames, headers, expected = (list(column) for column in zip(*ROWS, strict=True))
    whole, headed = pa.array(frames, kind), pa.array(headers, pa.binary())
    decoder = BatchDecoder(TEXT, WRITERS, columns=COLUMNS)

    for start, end in [(0, 2), (1, 22), (3, 9), (4, 5), (21, 22), (22, 22)]:
        batch = decoder.decode(whole.slice(start, end - start), headed.slice(start, end - start))
        assert expected[start:end] == found(batch)


def test_a_batch_is_inflated_in_parts(monkeypatch):
    """However much a batch holds when it is inflated, a bounded part of it is in memory at once; rows keep order."""
    monkeypatch.setattr(names, "_PART_BYTES", 1000)
    rows = [packed(payload(number)) if number % 3 else b"\0\0\0\0\7" + payload(number) for number in range(200)]
    rows[50] = rows[199] = PACKED[:-1]
    expected = list(range(200))
    expected[50] = expected[199] = "the compressed payload is damaged"

    parts = list(names.Names().rename(pa.array(rows, pa.binary()), None))

    assert len(parts) > 5
    assert sum(map(len, (part.frames for part in parts))) == 200
    assert expected == decoded(rows)


def test_the_names_of_refused_rows():
    """A refusal has the GUID or the version in Glue; the full error names the field."""
    decoder = BatchDecoder(TEXT, WRITERS)
    frame = GLUE + b"\2\6ab"

    refusals = decoder.rows([frame, b"\3\0" + UNKNOWN.bytes, b"\1" + GUID.bytes]).refusals

    assert [VERSION, GlueVersion(UNKNOWN), GUID] == [refusals[row].schema for row in range(3)]
    assert refusals[0].schema_id is None
    assert "truncated (at field name, near byte" in str(decoder.explain(frame))


def test_a_map_with_a_key_twice():
    """Rows that the deserializer rewrites keep the name of their schema."""
    text = '{"type": "record", "name": "R", "fields": [{"name": "m", "type": {"type": "map", "values": "int"}}]}'
    twice = GLUE + b"\4\2a\2\2a\4\0"
    decoder = BatchDecoder(text, {VERSION: text})

    assert [[("a", 2)], None] == decoder.decode([twice, twice[:-1]]).column("m").to_pylist()
    assert VERSION == decoder.rows([twice[:-1]]).refusals[0].schema


@settings(max_examples=examples(120), deadline=None)
@given(st.sampled_from([PLAIN, PACKED, b"\1" + GUID.bytes + payload(2)]), st.data())
def test_damage_is_what_the_deserializer_says(frame, data):
    """A damaged frame has the reason of the deserializer, or its value."""
    at = data.draw(st.integers(0, len(frame) - 1))
    frame = frame[:at] + data.draw(st.binary(max_size=2)) + frame[at + 1 :]
    try:
        opened = open_frame(frame)
        expected = compile_decoder(WRITERS[opened.schema], READER)(opened.payload)["id"]
    except KeyError:
        expected = None
    except (FrameError, DecodeError) as error:
        expected = error.reason

    (got,) = found(decode_batch([frame, PLAIN], READER, writer_schemas=WRITERS).slice(0, 1))

    assert expected == got or (expected is None and got.startswith("unknown "))
