"""A record is decoded as other libraries wrote it, or shown where it breaks, whatever its bytes are."""

import base64
import io
import json
import struct
from itertools import pairwise
from uuid import UUID

import fastavro
import pytest
from fastavro.utils import generate_many
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.examples import examples
from strata.compat.formats import FORMATS
from strata.compat.limits import DEFAULT_LIMITS
from strata.compat.protobuf.to_descriptor import file_to_descriptor
from strata.compat.schema import ResolvedReference, SchemaFormat
from strata.registry.features.decoding.frames import bytes_of, open_frame
from strata.registry.features.decoding.parts import Broken
from strata.registry.features.decoding.view import decoded

AVRO, JSON, PROTOBUF = SchemaFormat.AVRO, SchemaFormat.JSON, SchemaFormat.PROTOBUF
ORDER = {
    "type": "record", "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": ["null", "string"]},
        {"name": "paid", "type": "boolean"},
        {"name": "ratio", "type": "double"},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
        {"name": "raw", "type": "bytes"},
        {"name": "code", "type": {"type": "fixed", "name": "Code", "size": 2}},
        {"name": "lines", "type": {"type": "array", "items": {"type": "record", "name": "Line", "fields": [
            {"name": "count", "type": "int"}, {"name": "weight", "type": "float"}]}}},
        {"name": "tags", "type": {"type": "map", "values": "string"}},
        {"name": "next", "type": ["null", "Order"]},
    ],
}  # fmt: skip
PROTO = """syntax = "proto3";
package shop;
message Other { string name = 1; }
message Order {
  int64 id = 1; sint32 small = 2; repeated int32 counts = 3; repeated string names = 4; Kind kind = 5;
  map<string, int32> stock = 6; Line line = 7; repeated Line lines = 8; bytes raw = 9; double ratio = 10;
  oneof choice { bool yes = 11; fixed32 number = 12; }
  message Line { uint64 amount = 1; Line inner = 2; }
  enum Kind { NONE = 0; BIG = 1; }
}
"""
ID = struct.pack(">BI", 0, 7)


def read(schema_format, schema, data, references=()):
    """Return what a record with a frame holds."""
    text = schema if isinstance(schema, str) else json.dumps(schema)
    parsed = FORMATS[schema_format].parse(text, strict=True, references=references)
    return decoded(data, open_frame(data), parsed, text, references)


def avro(schema, value):
    """Return a record in Avro with a frame, written by fastavro."""
    out = io.BytesIO(ID)
    out.seek(0, io.SEEK_END)
    fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(json.dumps(schema))), value)
    return out.getvalue()


def plain(value):
    """Return a value of fastavro as the decoder shows it."""
    if isinstance(value, bytes):
        return f"0x{value.hex()}"
    if isinstance(value, list):
        return [plain(one) for one in value]
    return {name: plain(one) for name, one in value.items()} if isinstance(value, dict) else value


def orders(number):
    """Return random orders; the first one contains the second one."""
    schema = fastavro.parse_schema({**ORDER, "fields": ORDER["fields"][:-1]})
    made = [{**one, "next": None} for one in generate_many(schema, number)]
    return [{**made[0], "next": made[-1]}, *made[1:]]


def test_avro_as_fastavro_writes_it():
    """Every kind of value is read back."""
    for value in orders(20):
        found = read(AVRO, ORDER, avro(ORDER, value))
        assert found.broken is None
        again = json.loads(json.dumps(plain(value)), parse_float=lambda text: pytest.approx(float(text), rel=1e-6))
        assert again == found.value


def test_the_parts_cover_the_payload():
    """The parts are in the order of the bytes and end where the record does."""
    data = avro(ORDER, orders(1)[0])
    parts = read(AVRO, ORDER, data).parts

    assert 5 == parts[0].offset
    assert all(one.offset + one.length <= other.offset for one, other in pairwise(parts))
    assert {"id", "paid", "kind", "code", "next.id"} <= {part.path for part in parts}


def test_each_truncation_breaks_within_the_bytes():
    """A record that is cut anywhere breaks at a byte that it has, or at its end."""
    data = avro(ORDER, orders(1)[0])
    for end in range(5, len(data)):
        broken = read(AVRO, ORDER, data[:end]).broken
        assert broken is not None
        assert 5 <= broken.offset <= end


LOGICAL = [
    ({"type": "int", "logicalType": "date"}, 19_000, "2022-01-08"),
    ({"type": "long", "logicalType": "timestamp-millis"}, 1_500, "1970-01-01T00:00:01.500000Z"),
    ({"type": "long", "logicalType": "local-timestamp-micros"}, 1, "1970-01-01T00:00:00.000001"),
    ({"type": "int", "logicalType": "time-millis"}, 61_000, "00:01:01"),
    ({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, b"\x04\xd2", "12.34"),
    ({"type": "string", "logicalType": "uuid"}, str(UUID(int=1)), str(UUID(int=1))),
]


@pytest.mark.parametrize(("schema", "value", "expected"), LOGICAL)
def test_logical_types_are_readable(schema, value, expected):
    """Dates, times and decimals are shown as people write them."""
    bare = {"type": schema["type"]}
    assert expected == read(AVRO, schema, avro(bare, value)).value


UNFIT = [({"type": "long", "logicalType": "timestamp-millis"}, 2**62), ({"type": "string", "logicalType": "uuid"}, "x")]


@pytest.mark.parametrize(("schema", "value"), UNFIT)
def test_a_value_that_does_not_fit_its_logical_type_is_broken(schema, value):
    """What the deserializer refuses is not shown as a value."""
    assert read(AVRO, schema, avro({"type": schema["type"]}, value)).broken


BROKEN = [
    # what is wrong, schema, payload in hex, offset, path, part of the reason
    ("end", ORDER, "", 5, "id", "bytes end"),
    ("branch", ORDER, "0208", 6, "note", "branch of the union from 0 to 1, got 4"),
    ("symbol", {"type": "enum", "name": "E", "symbols": ["A"]}, "02", 5, "", "from 0 to 0, got 1"),
    ("boolean", {"type": "boolean"}, "02", 5, "", "0 or 1, got 2"),
    ("left over", {"type": "int"}, "0200", 6, "", "1 byte is left"),
    ("too long a string", {"type": "string"}, "0a6162", 6, "", "of 5 bytes, but only 2"),
    ("negative length", {"type": "bytes"}, "01", 5, "", "got -1"),
    ("not UTF-8", {"type": "string"}, "0461ff", 7, "", "expected UTF-8"),
    ("beyond 32 bits", {"type": "int"}, "8080808020", 5, "", "an int of 32 bits, got"),
    ("endless number", {"type": "long"}, "ff" * 11, 5, "", "more than 10 bytes"),
    (
        "many nulls",
        {"type": "array", "items": "null"},
        "fe" + "ff" * 3 + "0f",
        10,
        "",
        "more than 10000 values of no bytes",
    ),
]


@pytest.mark.parametrize(
    ("schema", "payload", "offset", "path", "reason"), [row[1:] for row in BROKEN], ids=[row[0] for row in BROKEN]
)
def test_where_avro_breaks(schema, payload, offset, path, reason):
    """A broken record says at which byte, in which field and why."""
    broken = read(AVRO, schema, ID + bytes.fromhex(payload)).broken

    assert (offset, path) == (broken.offset, broken.path.partition("[")[0])
    assert reason in broken.reason


def test_a_recursive_value_is_bounded():
    """A value that nests without end is given up."""
    node = {"type": "record", "name": "N", "fields": [{"name": "n", "type": ["N", "null"]}]}

    assert "nested deeper" in read(AVRO, node, ID + b"\0" * 20_000).broken.reason


@given(st.binary(max_size=60))
@settings(max_examples=examples(150), deadline=None)
def test_any_bytes_are_a_value_or_break(data):
    """No bytes make a decoder fail in another way."""
    for schema_format, schema in ((AVRO, ORDER), (PROTOBUF, PROTO), (JSON, {"type": "object"})):
        found = read(schema_format, schema, ID + data)
        assert found.broken is None or 5 <= found.broken.offset <= 5 + len(data)
        json.dumps(found.value)


# --- Protobuf


@pytest.fixture(scope="module")
def order_class():
    """Return the class of Google's library for orders."""
    parsed = FORMATS[PROTOBUF].parse(PROTO, strict=True)
    descriptor = file_to_descriptor(parsed.file, parsed.names, DEFAULT_LIMITS)
    file = descriptor_pb2.FileDescriptorProto.FromString(descriptor.SerializeToString())
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))


MESSAGES = [
    {"id": "-5", "small": -3, "counts": [1, -2, 300], "names": ["a", "é"], "kind": "BIG"},
    {"stock": {"a": 1, "b": -1}, "line": {"amount": "3", "inner": {"amount": "4"}}, "lines": [{"amount": "1"}, {}]},
    {"raw": base64.b64encode(b"\x01\xff").decode(), "ratio": 1.5, "yes": True},
    {"number": 4_000_000_000},
]
SHOWN = [
    {"id": -5, "small": -3, "counts": [1, -2, 300], "names": ["a", "é"], "kind": "BIG"},
    {"stock": {"a": 1, "b": -1}, "line": {"amount": 3, "inner": {"amount": 4}}, "lines": [{"amount": 1}, {}]},
    {"raw": "0x01ff", "ratio": 1.5, "yes": True},
    {"number": 4_000_000_000},
]


@pytest.mark.parametrize(("message", "expected"), [*zip(MESSAGES, SHOWN, strict=True)])
def test_protobuf_as_googles_library_writes_it(order_class, message, expected):
    """Every kind of field is read back, by the message index of the frame."""
    payload = json_format.ParseDict(message, order_class()).SerializeToString()
    found = read(PROTOBUF, PROTO, ID + b"\x02\x02" + payload)

    assert (None, expected) == (found.broken, found.value)


PROTOBUF_ROWS = [
    # what, indexes and payload in hex, value, broken at
    ("first message", "00" + "0a0161", {"name": "a"}, None),
    ("nested message", "040200" + "0805", {"amount": 5}, None),
    ("unknown field", "00" + "1005", {"unknown field 2": 5}, None),
    ("unknown bytes", "00" + "12020102", {"unknown field 2": "0x0102"}, None),
    ("unknown group", "00" + "13080114", {}, None),
    ("wrong wire type", "00" + "0805", None, 6),
    ("no such message", "0210", None, 7),
    ("cut", "00" + "0a0561", None, 8),
    ("field 0", "00" + "0005", None, 6),
    ("end of no group", "00" + "0c", None, 6),
    ("cut inside a message", "0202" + "3a020806" + "ff", None, 11),
    ("unknown symbol", "0202" + "2807", {"kind": 7}, None),
    ("not packed", "0202" + "18011802", {"counts": [1, 2]}, None),
]


@pytest.mark.parametrize(
    ("payload", "value", "offset"), [row[1:] for row in PROTOBUF_ROWS], ids=[row[0] for row in PROTOBUF_ROWS]
)
def test_protobuf_bytes(payload, value, offset):
    """Unknown fields are shown; what is not a message breaks at its byte."""
    found = read(PROTOBUF, PROTO, ID + bytes.fromhex(payload))

    assert (value, offset) == (found.value, found.broken and found.broken.offset)


# --- JSON

PERSON = {"type": "object", "properties": {"home": {"$ref": "home.json"}, "age": {"type": "integer"}}}
HOME = ResolvedReference("home.json", '{"type": "object", "required": ["street"]}', "h")


@pytest.mark.parametrize(
    ("payload", "refused"),
    [
        ('{"age": 3, "home": {"street": "x"}}', None),
        ('{"age": "3"}', "age"),
        ('{"home": {}}', "home"),
        ("[]", ""),
    ],
)
def test_json_is_validated(payload, refused):
    """A value that the schema refuses is shown with the path of the refusal; references count."""
    found = read(JSON, PERSON, ID + payload.encode(), [HOME])

    assert json.loads(payload) == found.value
    assert refused == (found.refused and found.refused[0])
    assert "" == found.note


def test_references_are_relative_to_the_id():
    """A name of a reference is relative to the `$id` of the schema, as it is to the serializers."""
    for own in ("https://example.com/person.json", "person.json"):
        found = read(JSON, PERSON | {"$id": own}, ID + b'{"home": {}}', [HOME])
        assert ("", "home") == (found.note, found.refused[0])


@pytest.mark.parametrize(
    ("payload", "offset"),
    [
        (b'{"\xc3\xa9": ]', 12),
        (b"\xff", 5),
        (b"", 5),
        (b'{"a": NaN}', 11),
        pytest.param(b"[" * 100_000, 1030, id="deeper than any Python reads"),
    ],
)
def test_where_json_breaks(payload, offset):
    """Offsets count bytes, not characters."""
    assert offset == read(JSON, PERSON, ID + payload, [HOME]).broken.offset


def test_a_schema_that_takes_too_long_is_not_tried():
    """A recursive schema of many branches is not tried on a deep value."""
    schema = {"anyOf": [{"properties": {"x": {"$ref": "#"}}, "required": ["y"]}] * 8}
    value = json.loads('{"x":' * 20 + "1" + "}" * 20)

    assert "too many branches" in read(JSON, schema, ID + json.dumps(value).encode()).note


# --- frames

GUID = "e1dd9a1e-f98b-451b-5369-0370b393966b"
FRAMES = [
    ("000000000102", "Confluent, schema id", 1, 5),
    ("01" + UUID(GUID).hex + "02", "Confluent, schema GUID", UUID(GUID), 17),
    ("0300" + UUID(GUID).hex + "02", f"AWS Glue, schema version {GUID}", None, 18),
    ("0305" + UUID(GUID).hex + "02", f"AWS Glue, compressed, schema version {GUID}", None, 18),
    ("7b7d", "none", None, 0),
    ("0001", "none", None, 0),
    ("", "none", None, 0),
]


@pytest.mark.parametrize(("data", "kind", "schema", "start"), FRAMES)
def test_frames(data, kind, schema, start):
    """Each frame is known by its first bytes."""
    frame = open_frame(bytes.fromhex(data))
    assert (kind, schema, start) == frame[:3]
    assert (UUID(GUID) if "Glue" in kind else None, "compressed" in kind, None) == frame[3:]


TEXTS = [
    ("00 00 0A", "", b"\0\0\n"),
    ("0x00, 0x0a", "", b"\0\n"),
    (r"\x00\x0a", "", b"\0\n"),
    ("AAAAAAEC", "", b"\0\0\0\0\1\2"),
    ("AAAAAAEC", "hex", b"\xaa\xaa\xaa\xec"),
    ("abcd", "base64", b"i\xb7\x1d"),
    ("AAAAAAE", "", b"\0\0\0\0\1"),
    ("_-8=", "", b"\xff\xef"),
]


@pytest.mark.parametrize(("text", "encoding", "expected"), TEXTS)
def test_pasted_texts(text, encoding, expected):
    """Hex and base64 are read in the spellings of tools; a frame in base64 is not taken for hex."""
    assert expected == bytes_of(text, encoding)


@pytest.mark.parametrize(
    ("text", "encoding", "offset"), [("0g", "hex", 1), ("000", "hex", 3), ("a!", "", 1), ("A", "base64", 0)]
)
def test_texts_that_are_neither(text, encoding, offset):
    """The first wrong character is named."""
    with pytest.raises(Broken) as caught:
        bytes_of(text, encoding)

    assert offset == caught.value.offset
