"""Protobuf columns: schema evolution, references, messages named by a frame; no Spark session is needed."""

from typing import Any

import pyarrow as pa
import pytest

from harness.payload_columns import FrameRefused, PayloadColumn, kind_of, proto, proto_frame
from strata.serdes.client import Reference, RegistryClient, Schema
from strata.serdes.framing import join, split
from strata.serdes.protobuf import ProtobufSerializer
from strata.serdes.subject_name_strategies import Context
from strata.spark_udfs.arguments import Mode

PROTO3 = 'syntax = "proto3"; package shop; '


def _mismatch(reader: str, writer: str, field: str) -> str:
    return f"resolution: the reader schema has {reader} where the writer schema has {writer} (at field {field})"


# writer's fields, reader's fields, payload, the value or the reason
EVOLVED: list[Any] = [
    pytest.param("int32 a = 1;", "int32 a = 1; string b = 2;", "0805", {"a": 5, "b": ""}, id="field added"),
    pytest.param("int32 a = 1; string b = 2;", "int32 a = 1;", "0805120178", {"a": 5}, id="field removed"),
    pytest.param("int32 old = 1;", "int32 renamed = 1;", "0805", {"renamed": 5}, id="field renamed"),
    pytest.param("int32 a = 1;", "optional int32 a = 1;", "", {"a": None}, id="made optional"),
    pytest.param("int32 a = 1;", "int64 a = 1;", "08ffffffffffffffffff01", {"a": -1}, id="int32 to int64"),
    pytest.param("int64 a = 1;", "int32 a = 1;", "0805", {"a": 5}, id="int64 to int32, small"),
    pytest.param("int64 a = 1;", "int32 a = 1;", "088080808010", "out of range", id="int64 to int32, not cut"),
    pytest.param("uint64 a = 1;", "int64 a = 1;", "08ffffffffffffffffff01", "out of range", id="uint64 to int64"),
    pytest.param("int32 a = 1;", "uint32 a = 1;", "08ffffffffffffffffff01", {"a": -1}, id="int32 to uint32"),
    pytest.param("int32 a = 1;", "uint64 a = 1;", "08ffffffffffffffffff01", "out of range", id="int32 to uint64"),
    pytest.param("sint64 a = 1;", "sint32 a = 1;", "0803", {"a": -2}, id="sint64 to sint32"),
    pytest.param("bool a = 1;", "int32 a = 1;", "0801", {"a": 1}, id="bool to int32"),
    pytest.param("int32 a = 1;", "K a = 1;", "0801", {"a": "ONE"}, id="int32 to enum"),
    pytest.param("string a = 1;", "bytes a = 1;", "0a0178", {"a": b"x"}, id="string to bytes"),
    pytest.param("bytes a = 1;", "string a = 1;", "0a01ff", "invalid utf-8", id="bytes that are not text"),
    pytest.param("repeated string a = 1;", "string a = 1;", "0a01780a0179", {"a": "y"}, id="many to one: the last"),
    pytest.param("oneof x { int32 a = 1; }", "int32 a = 1;", "0805", {"a": 5}, id="out of a oneof"),
    pytest.param("repeated int64 a = 1;", "repeated int32 a = 1;", "0a0105", {"a": [5]}, id="packed and narrower"),
    pytest.param(
        "map<int32, int64> a = 1;", "map<int32, int32> a = 1;", "0a0408011005", {"a": {1: 5}}, id="map, narrower"
    ),
    pytest.param(
        "int32 a = 1;", "string a = 1;", "0805",
        _mismatch("string", "int32", "a"), id="number to string",
    ),
    pytest.param(
        "int32 a = 1;", "sint32 a = 1;", "0805",
        _mismatch("sint32", "int32", "a"), id="other encoding",
    ),
    pytest.param(
        "repeated int32 a = 1;", "int32 a = 1;", "0a0105",
        _mismatch("int32", "repeated int32", "a"), id="many numbers to one",
    ),
    pytest.param(
        "I a = 1;", "J a = 1;", "0a020805",
        _mismatch("string", "int32", "a.n"), id="inside a message",
    ),
    pytest.param(
        "I a = 1; int32 b = 2;", "W a = 1; int64 b = 2;", "0a0208051005", {"a": {"n": 5}, "b": 5}, id="wider inside"
    ),
    pytest.param(
        "W a = 1; V b = 2;", "I a = 1; I b = 2;", "0a020805",
        _mismatch("int32", "several types", "b.n"),
        id="one message for two",
    ),
]  # fmt: skip
OTHERS = (
    "enum K { ZERO = 0; ONE = 1; } message I { int32 n = 1; } message J { string n = 1; } message W { int64 n = 1; } "
    "message V { uint32 n = 1; }"
)


@pytest.mark.parametrize(("writer", "reader", "payload", "expected"), EVOLVED)
def test_evolution(client: RegistryClient, writer: str, reader: str, payload: str, expected: Any) -> None:
    """Fields are matched by number; a value that would be silently lost or truncated makes a dead letter."""
    written = proto(f"{PROTO3} message M {{ {writer} }} {OTHERS}")
    frame = proto_frame(client, written, bytes.fromhex(payload))
    value = (expected, split(frame)[0]) if isinstance(expected, str) else expected

    assert [value] == PayloadColumn(client, proto(f"{PROTO3} message M {{ {reader} }} {OTHERS}")).read(frame)


def test_fields_not_asked_for_need_not_agree(client: RegistryClient) -> None:
    """A field that changed its type does not affect the other columns."""
    frame = proto_frame(client, proto(PROTO3 + "message M { int32 a = 1; int32 b = 2; }"), b"\x08\x05\x10\x06")
    reader = proto(PROTO3 + "message M { string a = 1; int32 b = 2; }")

    assert [{"b": 6}] == PayloadColumn(client, reader, columns=["b"]).read(frame)


def test_three_versions_in_one_column(client: RegistryClient) -> None:
    """Frames of several versions, written by the serializer, may be mixed with nulls."""
    versions = [
        proto(PROTO3 + "message M { int32 id = 1; string gone = 2; }"),
        proto(PROTO3 + "message M { int64 id = 1; }"),
        proto(PROTO3 + "message Before {} message M { int64 id = 1; repeated string tags = 3; }"),
    ]
    kinds = [kind_of(versions[0]), kind_of(versions[1]), kind_of(versions[2], 1)]
    values = [kinds[0](id=1, gone="x"), kinds[1](id=2**40), kinds[2](id=3, tags=["t"])]
    frames = [ProtobufSerializer(client, type(one))(one, topic="proto-growing") for one in values]
    column = PayloadColumn(client, client.get_version("proto-growing-value", "latest").schema, message="shop.M")

    assert 3 == len({split(one)[0] for one in frames})
    assert [
        {"id": 1, "tags": []},
        {"id": 2**40, "tags": []},
        None,
        {"id": 3, "tags": ["t"]},
    ] == column.read(frames[0], frames[1], None, frames[2])


def test_references(client: RegistryClient) -> None:
    """Files import each other, in writer and reader schema, each in its own versions."""
    texts = ["message Base { int32 n = 1; }", "message Base { int64 n = 1; string s = 2; }"]
    bases = [
        client.register("proto-columns-base", proto(f'syntax = "proto3"; package b; {one}')).version for one in texts
    ]
    tops = [
        proto(
            'syntax = "proto3"; import "b.proto"; message Top { b.Base base = 1; repeated b.Base more = 2; }',
            Reference("b.proto", "proto-columns-base", version or 0),
        )
        for version in bases
    ]
    frames = [proto_frame(client, one, b"\x0a\x02\x08\x05\x12\x02\x08\x06") for one in tops]
    column = PayloadColumn(client, tops[1])

    assert "struct<base:struct<n:bigint,s:string>,more:array<struct<n:bigint,s:string>>>" == column.type.simpleString()
    assert [{"base": {"n": 5, "s": ""}, "more": [{"n": 6, "s": ""}]}] * 2 == column.read(*frames)


NESTED = PROTO3 + "message A { message B { message C { int32 n = 1; } int32 m = 1; } } message D { string s = 1; }"


@pytest.mark.parametrize(
    ("path", "payload", "expected"),
    [
        pytest.param((0, 0, 0), b"\x08\x05", {"n": 5}, id="nested"),
        pytest.param((0, 0), b"\x08\x05", "message is shop.A.B", id="its owner"),
        pytest.param((1,), b"\x0a\x01x", "message is shop.D", id="another"),
        pytest.param((0,), b"", "message is shop.A", id="the first"),
        pytest.param((0, 0, 1), b"", "invalid index", id="no such message"),
        pytest.param((2,), b"", "invalid index", id="no such message at the top"),
    ],
)
def test_message_indexes(client: RegistryClient, path: tuple[int, ...], payload: bytes, expected: Any) -> None:
    """The requested message is read, wherever it is in the file; any other makes a dead letter."""
    frame = proto_frame(client, proto(NESTED), payload, *path)
    value = (expected, split(frame)[0]) if isinstance(expected, str) else expected

    assert [value] == PayloadColumn(client, proto(NESTED), message="shop.A.B.C").read(frame)


def test_message_behind_a_map(client: RegistryClient) -> None:
    """A path counts map entries in a descriptor that a client registers: there they are messages too."""
    text = "message A { map<string, int32> m = 1; B b = 2; message B { int32 n = 1; } }"
    outer = kind_of(proto(PROTO3 + text))
    inner = type(outer().b)
    frame = ProtobufSerializer(client, inner)(inner(n=5), topic="proto-behind")
    as_registered = client.get_version("proto-behind-value", "latest").schema

    for reader in (as_registered, proto(PROTO3 + text)):
        assert [{"n": 5}] == PayloadColumn(client, reader, message="shop.A.B").read(frame)


def test_another_package(client: RegistryClient) -> None:
    """A message is identified by its full name: one of another package is another message."""
    frame = proto_frame(client, proto('syntax = "proto3"; package mall; message M { int32 n = 1; }'), b"\x08\x05")
    reader = proto(PROTO3 + "message M { int32 n = 1; }")

    assert [("message is mall.M", split(frame)[0])] == PayloadColumn(client, reader).read(frame)


def test_guids(client: RegistryClient) -> None:
    """A frame may name its schema by GUID, followed by a path."""
    schema = proto(PROTO3 + "message A {} message M { int32 n = 1; }")
    serializer = ProtobufSerializer(client, kind_of(schema, 1), {"schema.id.serializer": "guid"})
    frames = [serializer(kind_of(schema, 1)(n=one), topic="proto-guids") for one in (5, 0)]
    column = PayloadColumn(client, schema, message="shop.M")

    assert [{"n": 5}, {"n": 0}, ("malformed", None)] == column.read(*frames, frames[0] + b"\0")


def test_headers(client: RegistryClient) -> None:
    """A record's header may name schema and message; then the payload is bare, and other records may be frames."""
    schema = proto(PROTO3 + "message A {} message M { int32 n = 1; }")
    kind = kind_of(schema, 1)
    headers: list[tuple[str, bytes]] = []
    serializer = ProtobufSerializer(client, kind, {"schema.id.serializer": "header"})
    payload = serializer(kind(n=5), Context("proto-headers", "value", headers))
    (name,) = (value for _, value in headers)
    column = PayloadColumn(client, schema, message="shop.M")

    def records(*given: tuple[bytes | None, bytes | None]) -> pa.Array:
        values, names = (pa.array(one, pa.binary()) for one in zip(*given, strict=True))
        return pa.StructArray.from_arrays([values, names], names=["value", "header"])

    framed = proto_frame(client, schema, b"\x08\x06", 1)
    decoded = column.decode(
        records(
            (payload, name), (framed, None), (None, name), (payload, b"\0"), (payload, name + b"\0"), (b"\x08", name)
        )
    )

    assert b"\x08\x05" == payload
    assert [{"n": 5}, {"n": 6}, None, None, None, None] == decoded.field("value").to_pylist()
    errors = [(one["reason"], one["frame"]) if one else None for one in decoded.field("error").to_pylist()]
    assert [
        None,
        None,
        None,
        ("frame too short", payload),
        ("trailing bytes in the header of the schema", payload),
        ("malformed", b"\x08"),
    ] == errors


def test_other_frames(client: RegistryClient) -> None:
    """Frames of other formats, of unknown schemas and without schema are dead letters that say so."""
    schema = proto(PROTO3 + "message M { int32 n = 1; string s = 2; }")
    known = split(proto_frame(client, schema, b""))[0]
    avro = client.register("proto-columns-avro", '"string"').schema_id
    text = client.register("proto-columns-json", Schema("{}", "JSON")).schema_id

    assert [
        ("writer schema is AVRO", avro),
        ("writer schema is JSON", text),
        ("unknown schema id", 99999),
        ("frame too short", None),
        ("wrong magic byte 0x09", None),
        ("unknown Glue schema version", None),
        ("frame too short", known),
        ("too many message indexes", known),
        ("malformed", known),
        ("malformed", known),
        ("invalid utf-8", known),
        {"n": 0, "s": ""},
    ] == PayloadColumn(client, schema).read(
        join(avro, b"\xff\xff\xff\xff"),
        join(text, b""),
        join(99999, b"\0"),
        b"\0\0",
        b"\x09" * 9,
        b"\3\0" + bytes(16),
        join(known, b""),
        join(known, b"\xc8\x01"),
        join(known, b"\0\x08"),
        join(known, b"\0\x00\x00"),
        join(known, b"\0\x12\x01\xff"),
        join(known, b"\0"),
    )


def test_modes(client: RegistryClient) -> None:
    """PERMISSIVE gives null; FAILFAST names record, message and reason, and never the payload."""
    schema = proto(
        PROTO3
        + "message M { google.protobuf.Timestamp at = 1; }".replace(
            "message", 'import "google/protobuf/timestamp.proto"; message', 1
        )
    )
    good, bad = (
        proto_frame(client, schema, b""),
        proto_frame(client, schema, b"\x0a\x0c\x08" + b"\xff" * 8 + b"\x7f\x10\x01"),
    )
    failing = PayloadColumn(client, schema, mode=Mode.FAILFAST, origin=["offset"])
    frames = pa.array([good, bad], pa.binary())

    assert [{"at": None}, None, None] == PayloadColumn(client, schema, mode=Mode.PERMISSIVE).read(good, bad, b"\1")
    with pytest.raises(FrameRefused) as caught:
        failing.decode(frames, pa.array([41, 42]))
    number = split(bad)[0]
    assert f"a frame cannot be decoded (schema id {number}, offset 42): out of range (at field at)" == str(caught.value)
