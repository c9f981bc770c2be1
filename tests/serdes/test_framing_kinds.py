"""Frames may name the schema by GUID or in headers, and the message by a path."""

from uuid import UUID

import pytest
from confluent_kafka.schema_registry.serde import SchemaId as TheirSchemaId
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.examples import examples
from strata.serdes.errors import FrameError
from strata.serdes.framing import FRAMINGS, MAX_INDEXES, Frame, SchemaId, open_frame, read_indexes, write_indexes
from strata.serdes.subject_name_strategies import Context

GUID = UUID("000102030405060708090a0b0c0d0e0f")
PATHS = st.lists(st.integers(0, 2**16 - 1), min_size=1, max_size=MAX_INDEXES).map(tuple)
FEW = settings(max_examples=examples(100), deadline=None)


@pytest.mark.parametrize(
    ("path", "data"),
    [
        pytest.param((0,), b"\x00", id="the first message is one byte"),
        pytest.param((1,), b"\x02\x02", id="the second"),
        pytest.param((0, 0), b"\x04\x00\x00", id="nested in the first"),
        pytest.param((64, 3), b"\x04\x80\x01\x06", id="an index of two bytes"),
    ],
)
def test_paths_as_bytes(path, data):
    """A path is a sequence of zigzag varints, the count first."""
    assert data == write_indexes(path)
    assert (path, len(data)) == read_indexes(data + b"rest")


@FEW
@given(PATHS)
def test_paths_make_the_round_trip(path):
    """Every path within bounds is read as it was written."""
    data = write_indexes(path)

    assert (path, len(data)) == read_indexes(data)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        pytest.param(b"", "too short", id="nothing"),
        pytest.param(b"\x04\x02", "too short", id="fewer than counted"),
        pytest.param(b"\x01", "out of range", id="a negative count"),
        pytest.param(b"\x02\x01", "out of range", id="a negative index"),
        pytest.param(b"\x82\x01" + bytes(100), "too many message indexes", id="more than any file nests"),
        pytest.param(b"\x02\x80\x80\x80\x00", "out of range", id="an overlong number"),
        pytest.param(b"\x02\x80\x80", "too short", id="a number cut off"),
        pytest.param(b"\xff\xff\xff\xff\xff\xff", "out of range", id="a count beyond all bounds"),
    ],
)
def test_paths_that_are_none(data, says):
    """An invalid path is refused before memory of its claimed length is allocated."""
    with pytest.raises(FrameError, match=says):
        read_indexes(data)


@pytest.mark.parametrize("path", [(), (-1,), (2**16,), (0,) * 65])
def test_paths_that_are_not_written(path):
    """A path that could not be read is not written."""
    with pytest.raises(FrameError, match="message indexes"):
        write_indexes(path)


@FEW
@given(st.sampled_from(sorted(FRAMINGS)), st.sampled_from(["key", "value"]), st.none() | PATHS, st.binary())
def test_frames_make_the_round_trip(framing, field, path, payload):
    """In every framing the record names its schema."""
    schema, context = SchemaId(5, GUID, path or ()), Context("t", field, [])
    data = FRAMINGS[framing](payload, context, schema)
    header = dict(context.headers).get(f"__{field}_schema_id")

    expected = Frame(5 if framing == "prefix" else GUID, path or (), payload)

    assert expected == open_frame(data, header, indexed=path is not None)


@FEW
@given(st.integers(0, 2**31 - 1), PATHS.filter(lambda path: len(path) < 50))
def test_both_clients_write_the_same(schema_id, path):
    """Confluent's own class makes the same bytes."""
    theirs, ours = TheirSchemaId("PROTOBUF", schema_id, str(GUID), list(path)), SchemaId(schema_id, GUID, path)

    assert (theirs.id_to_bytes(), theirs.guid_to_bytes()) == (ours.id_to_bytes(), ours.guid_to_bytes())


@FEW
@given(st.binary(), st.none() | st.binary(), st.booleans())
def test_any_bytes_are_a_frame_or_an_error(data, header, indexed):
    """Any bytes are a frame or a FrameError; only Glue's frames may be compressed."""
    try:
        frame = open_frame(data, header, indexed=indexed)
    except FrameError:
        return
    assert data.endswith(frame.payload) or data[:2] == b"\3\5"


def test_a_header_holds_nothing_else():
    """Bytes after the GUID are damage."""
    with pytest.raises(FrameError, match="trailing bytes"):
        open_frame(b"payload", b"\x01" + GUID.bytes + b"\x00")


def test_headers_must_be_there_to_be_written():
    """The error says what the framing needs."""
    with pytest.raises(FrameError, match="the context has no headers"):
        FRAMINGS["header"](b"", Context("t"), SchemaId(1, GUID))
    with pytest.raises(FrameError, match="has no GUID"):
        FRAMINGS["guid"](b"", Context("t"), SchemaId(1))


@pytest.mark.parametrize("kind", [list, dict])
def test_a_header_is_replaced(kind):
    """Headers that are reused or forwarded name the schema of this record only."""
    headers = kind({"trace": b"1", "__value_schema_id": b"old", "__key_schema_id": b"kept"}.items())
    context = Context("t", "value", headers)
    for number in (1, 2):
        FRAMINGS["header"](b"", context, SchemaId(5, UUID(int=number)))

    assert kind is type(headers)
    assert context.headers is headers
    assert [
        ("trace", b"1"),
        ("__key_schema_id", b"kept"),
        ("__value_schema_id", b"\x01" + UUID(int=2).bytes),
    ] == sorted(dict(headers).items(), key=lambda pair: (pair[0] != "trace", pair[0]))
    assert 3 == len(headers)
