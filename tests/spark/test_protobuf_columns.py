"""Protobuf frames as columns: types, schemas that grow, damage; no Spark session is needed."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.message_factory import GetMessageClass
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from serdes.client import Reference, RegistryClient, Schema
from serdes.framing import join, split, write_indexes
from serdes.protobuf import ProtobufSerializer
from serdes.protobuf_files import find_message, link
from spark_udfs.payloads import FrameRefused, payload_decoder
from spark_udfs.plan import Mode, ReaderSource, plan, reader_type
from spark_udfs.types import UnsupportedSchema

PROTO3 = 'syntax = "proto3"; package shop; '
IMPORTS = "".join(f'import "google/protobuf/{name}.proto"; ' for name in ("timestamp", "duration", "wrappers", "any"))


def proto(text: str, *references: Reference) -> Schema:
    """A Protobuf schema."""
    return Schema(text, "PROTOBUF", references)


@cache
def kind_of(schema: Schema, *path: int) -> Any:
    """The class of a message in a text without references."""
    return GetMessageClass(find_message(link(schema, {}), path or (0,)))


class Column:
    """A column of frames, decoded with one reader schema."""

    def __init__(self, client: RegistryClient, reader: Schema, **options: Any) -> None:
        mode = options.pop("mode", Mode.DEADLETTER)
        self.plan = plan(client.settings, ReaderSource(reader), mode=mode, **options)
        self._client = client

    @property
    def type(self) -> str:
        """The column's Spark type."""
        return reader_type(self.plan).spark.simpleString()

    def read(self, *frames: bytes | None) -> list[Any]:
        """The values of frames; for a dead letter its reason and id, once its bytes are found to be those sent."""
        decoded = payload_decoder(self.plan).decode(pa.array(frames, pa.binary()))
        decoded.validate(full=True)
        if self.plan.mode is not Mode.DEADLETTER:
            return decoded.to_pylist(maps_as_pydicts="strict")
        rows = decoded.to_pylist(maps_as_pydicts="strict")
        assert all(row["error"]["frame"] == frame for row, frame in zip(rows, frames, strict=True) if row["error"])
        return [(row["error"]["reason"], row["error"]["schema_id"]) if row["error"] else row["value"] for row in rows]


@pytest.fixture
def client(registry: RegistryClient) -> Iterator[RegistryClient]:
    """The registry, which takes any version of a subject."""
    registry.set_config("NONE")
    yield registry
    registry.set_config("BACKWARD")


def frame_of(client: RegistryClient, schema: Schema, payload: bytes, *path: int) -> bytes:
    """A payload under a schema that is registered for it."""
    return join(client.register("proto-columns", schema).schema_id, write_indexes(path or (0,)) + payload)


# declaration, Spark type, values for the field, the column
TYPES: list[Any] = [
    pytest.param("int32 f", "int", [-1, 2**31 - 1], [-1, 2**31 - 1], id="int32"),
    pytest.param("sint32 f", "int", [-(2**31)], [-(2**31)], id="sint32"),
    pytest.param("sfixed32 f", "int", [-5], [-5], id="sfixed32"),
    pytest.param("int64 f", "bigint", [-(2**63)], [-(2**63)], id="int64"),
    pytest.param("sint64 f", "bigint", [2**63 - 1], [2**63 - 1], id="sint64"),
    pytest.param("sfixed64 f", "bigint", [-5], [-5], id="sfixed64"),
    pytest.param("uint32 f", "bigint", [2**32 - 1], [2**32 - 1], id="uint32"),
    pytest.param("fixed32 f", "bigint", [2**32 - 1], [2**32 - 1], id="fixed32"),
    pytest.param("uint64 f", "decimal(20,0)", [2**64 - 1, 0], [Decimal(2**64 - 1), Decimal(0)], id="uint64"),
    pytest.param("fixed64 f", "decimal(20,0)", [2**64 - 1], [Decimal(2**64 - 1)], id="fixed64"),
    pytest.param("float f", "float", [0.5, float("-inf")], [0.5, float("-inf")], id="float"),
    pytest.param("double f", "double", [0.1], [0.1], id="double"),
    pytest.param("bool f", "boolean", [True, False], [True, False], id="bool"),
    pytest.param("string f", "string", ["zürich", ""], ["zürich", ""], id="string"),
    pytest.param("bytes f", "binary", [b"\0\xff"], [b"\0\xff"], id="bytes"),
    pytest.param("optional int32 f", "int", [0], [0], id="optional, there"),
    pytest.param("repeated int32 f", "array<int>", [[1, 0], []], [[1, 0], []], id="repeated number"),
    pytest.param("repeated string f", "array<string>", [["a", ""]], [["a", ""]], id="repeated string"),
    pytest.param("map<string, int32> f", "map<string,int>", [{"a": 1}, {}], [{"a": 1}, {}], id="map"),
    pytest.param(
        "map<uint64, bool> f", "map<decimal(20,0),boolean>", [{3: True}], [{Decimal(3): True}], id="map of ids"
    ),
    pytest.param("Kind f", "string", [1, 2, 7, -1], ["B", "C", "7", "-1"], id="enum"),
    pytest.param("repeated Kind f", "array<string>", [[0, 9]], [["A", "9"]], id="repeated enum"),
    pytest.param("map<string, Kind> f", "map<string,string>", [{"k": 1}], [{"k": "B"}], id="map of enums"),
]
KIND = "enum Kind { option allow_alias = true; A = 0; B = 1; C = 2; CC = 2; }"


@pytest.mark.parametrize(("declaration", "kind", "given", "expected"), TYPES)
def test_types(client: RegistryClient, declaration: str, kind: str, given: list[Any], expected: list[Any]) -> None:
    """Each type of Protobuf is one of Spark, and its values arrive."""
    schema = proto(f"{PROTO3} {KIND} message M {{ {declaration} = 1; }}")
    message = kind_of(schema)
    frames = [frame_of(client, schema, message(f=one).SerializeToString()) for one in given]
    column = Column(client, schema)

    assert f"struct<f:{kind}>" == column.type
    assert [{"f": one} for one in expected] == column.read(*frames)


# declaration, Spark type, payload in hexadecimal, the value
MESSAGES: list[Any] = [
    pytest.param(
        "google.protobuf.Timestamp f", "timestamp", "0a0408011064", datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC),
        id="timestamp",
    ),
    pytest.param(
        "google.protobuf.Timestamp f",
        "timestamp",
        "0a0f08ffffffffffffffffff0110c0c407",
        datetime(1969, 12, 31, 23, 59, 59, 123, tzinfo=UTC),
        id="timestamp before 1970",
    ),
    pytest.param(
        "google.protobuf.Duration f",
        "interval day to second",
        "0a1608ffffffffffffffffff0110a1b7f8ffffffffffff01",
        -timedelta(seconds=1, microseconds=123),
        id="duration, cut towards zero",
    ),
    pytest.param("google.protobuf.Int32Value f", "int", "0a020807", 7, id="wrapper"),
    pytest.param("google.protobuf.Int32Value f", "int", "0a00", 0, id="wrapper of a zero"),
    pytest.param("google.protobuf.Int32Value f", "int", "", None, id="no wrapper"),
    pytest.param("google.protobuf.UInt64Value f", "decimal(20,0)", "0a020807", Decimal(7), id="unsigned wrapper"),
    pytest.param("google.protobuf.StringValue f", "string", "0a00", "", id="wrapped string"),
    pytest.param(
        "repeated google.protobuf.BoolValue f", "array<boolean>", "0a0208010a00", [True, False], id="repeated wrapper"
    ),
    pytest.param(
        "google.protobuf.Any f",
        "struct<type_url:string,value:binary>",
        "0a060a017512 01 08".replace(" ", ""),
        {"type_url": "u", "value": b"\x08"},
        id="any",
    ),
    pytest.param("Inner f", "struct<n:int,s:string>", "0a020805", {"n": 5, "s": None}, id="message"),
    pytest.param("Inner f", "struct<n:int,s:string>", "", None, id="no message"),
    pytest.param(
        "repeated Inner f", "array<struct<n:int,s:string>>", "0a020805 0a00".replace(" ", ""),
        [{"n": 5, "s": None}, {"n": 0, "s": None}], id="repeated message",
    ),
    pytest.param(
        "map<int32, Inner> f", "map<int,struct<n:int,s:string>>", "0a0608011202 0805".replace(" ", ""),
        {1: {"n": 5, "s": None}}, id="map of messages",
    ),
    pytest.param("Empty f", "struct<>", "0a00", {}, id="message without fields"),
    pytest.param("Empty f", "struct<>", "", None, id="no message without fields"),
    pytest.param("optional string f", "string", "", None, id="optional, absent"),
    pytest.param("string f", "string", "", "", id="absent string"),
    pytest.param("int64 f", "bigint", "", 0, id="absent number"),
    pytest.param("Kind f", "string", "", "A", id="absent enum"),
    pytest.param("int32 f", "int", "08010802", 2, id="twice: the last counts"),
    pytest.param("int32 f", "int", "08051a0161", 5, id="unknown fields are skipped"),
    pytest.param("repeated int32 f", "array<int>", "08010a020203", [1, 2, 3], id="packed and not"),
]  # fmt: skip


@pytest.mark.parametrize(("declaration", "kind", "payload", "expected"), MESSAGES)
def test_payloads(client: RegistryClient, declaration: str, kind: str, payload: str, expected: Any) -> None:
    """What is on the wire, and what is not, has its value."""
    others = "message Inner { int32 n = 1; optional string s = 2; } message Empty {}"
    schema = proto(f"{PROTO3} {IMPORTS} {KIND} message M {{ {declaration} = 1; }} {others}")
    column = Column(client, schema)

    assert f"struct<f:{kind}>" == column.type
    assert [{"f": expected}] == column.read(frame_of(client, schema, bytes.fromhex(payload)))


def test_nullable(client: RegistryClient) -> None:
    """What is always there cannot be null; what may be absent can. Columns are in the order of the numbers."""
    schema = proto(
        PROTO3 + "message M { int32 a = 1; optional int32 b = 2; oneof c { int32 d = 3; string e = 4; } M2 f = 5; "
        "repeated int32 g = 6; map<string, M2> h = 7; } message M2 { bool x = 1; }"
    )
    fields = reader_type(Column(client, schema).plan).spark.fields

    assert list("abdefgh") == [one.name for one in fields]
    assert {"b", "d", "e", "f"} == {one.name for one in fields if one.nullable}
    assert not fields[5].dataType.containsNull
    assert not fields[6].dataType.valueContainsNull
    assert [{"a": 0, "b": None, "d": None, "e": "x", "f": {"x": False}, "g": [], "h": []}] == [
        {**one, "h": list(one["h"])}
        for one in Column(client, schema).read(frame_of(client, schema, b"\x22\x01x\x2a\x00"))
    ]


def test_proto2(client: RegistryClient) -> None:
    """Absent is null but for a default that is spelled out; groups are messages; strings are checked."""
    schema = proto(
        'syntax = "proto2"; message M { required int32 a = 1; optional int32 b = 2 [default = 7]; '
        "optional group G = 3 { optional string s = 4; } optional E e = 5; enum E { ONE = 1; TWO = 2; } }"
    )
    column = Column(client, schema)
    rows = column.read(
        frame_of(client, schema, b""),
        frame_of(client, schema, b"\x08\x01\x10\x02\x1b\x22\x01x\x1c\x28\x02"),
        frame_of(client, schema, b"\x28\x09"),
        frame_of(client, schema, b"\x1b\x22\x01\xff\x1c"),
    )

    assert "struct<a:int,b:int,g:struct<s:string>,e:string>" == column.type
    assert {"a": None, "b": 7, "g": None, "e": None} == rows[0]
    assert {"a": 1, "b": 2, "g": {"s": "x"}, "e": "TWO"} == rows[1]
    assert {"a": None, "b": 7, "g": None, "e": None} == rows[2]
    assert "invalid utf-8" == rows[3][0]


# declarations, message asked for, columns, error, what it says
REFUSED: list[Any] = [
    pytest.param(
        "message A { B b = 1; } message B { repeated A a = 1; }", None, None, UnsupportedSchema,
        r"at b\.a\[\]: the message shop\.A contains itself", id="a message inside itself",
    ),
    pytest.param(
        "message A { map<string, A> a = 1; }", None, None, UnsupportedSchema, r"at a\{\}: the message", id="in a map"
    ),
    pytest.param(
        "message A {}", "shop.B", None, ValueError, r"no message shop\.B; the reader schema has shop\.A",
        id="no such message",
    ),
    pytest.param(
        "message A { int32 n = 1; }", None, ["x"], ValueError, r"no column x; the reader schema shop\.A has n",
        id="no such column",
    ),
    pytest.param("message A { int32 n = 1; }", None, [], ValueError, "no column is chosen", id="no columns"),
    pytest.param("message A { int32 n = 1; }", None, "n", TypeError, "list of field names", id="columns as a text"),
    pytest.param(
        "".join(f"message M{i} {{ {' '.join(f'M{i + 1} f{n} = {n};' for n in range(1, 9))} }} " for i in range(6))
        + "message M6 { int32 n = 1; }",
        None, None, UnsupportedSchema, "too many types", id="messages that multiply",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message", "columns", "error", "says"), REFUSED)
def test_refused(
    client: RegistryClient, text: str, message: str | None, columns: Any, error: type[Exception], says: str
) -> None:
    """What cannot be a column is refused before any task runs, with the place."""
    with pytest.raises(error, match=says):
        _ = Column(client, proto(PROTO3 + text), message=message, columns=columns).type


def test_columns_leave_out(client: RegistryClient) -> None:
    """Only the fields asked for, in that order; what is left out may contain itself."""
    schema = proto(PROTO3 + "message A { int32 n = 1; repeated A children = 2; string s = 3; }")
    column = Column(client, schema, columns=["s", "n"])

    assert "struct<s:string,n:int>" == column.type
    assert [{"s": "x", "n": 5}] == column.read(frame_of(client, schema, b"\x08\x05\x12\x00\x1a\x01x"))


def _told(reader: str, writer: str, field: str) -> str:
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
    pytest.param("bytes a = 1;", "string a = 1;", "0a01ff", "invalid utf-8", id="bytes that are no string"),
    pytest.param("repeated string a = 1;", "string a = 1;", "0a01780a0179", {"a": "y"}, id="many to one: the last"),
    pytest.param("oneof x { int32 a = 1; }", "int32 a = 1;", "0805", {"a": 5}, id="out of a oneof"),
    pytest.param("repeated int64 a = 1;", "repeated int32 a = 1;", "0a0105", {"a": [5]}, id="packed and narrower"),
    pytest.param(
        "map<int32, int64> a = 1;", "map<int32, int32> a = 1;", "0a0408011005", {"a": {1: 5}}, id="map, narrower"
    ),
    pytest.param(
        "int32 a = 1;", "string a = 1;", "0805",
        _told("string", "int32", "a"), id="number to string",
    ),
    pytest.param(
        "int32 a = 1;", "sint32 a = 1;", "0805",
        _told("sint32", "int32", "a"), id="other encoding",
    ),
    pytest.param(
        "repeated int32 a = 1;", "int32 a = 1;", "0a0105",
        _told("int32", "repeated int32", "a"), id="many numbers to one",
    ),
    pytest.param(
        "I a = 1;", "J a = 1;", "0a020805",
        _told("string", "int32", "a.n"), id="inside a message",
    ),
    pytest.param(
        "I a = 1; int32 b = 2;", "W a = 1; int64 b = 2;", "0a0208051005", {"a": {"n": 5}, "b": 5}, id="wider inside"
    ),
    pytest.param(
        "W a = 1; V b = 2;", "I a = 1; I b = 2;", "0a020805",
        _told("int32", "two types, in two messages that it stands for", "b.n"),
        id="one message for two",
    ),
]  # fmt: skip
OTHERS = (
    "enum K { ZERO = 0; ONE = 1; } message I { int32 n = 1; } message J { string n = 1; } message W { int64 n = 1; } "
    "message V { uint32 n = 1; }"
)


@pytest.mark.parametrize(("writer", "reader", "payload", "expected"), EVOLVED)
def test_evolution(client: RegistryClient, writer: str, reader: str, payload: str, expected: Any) -> None:
    """Fields meet by number; what would be lost or cut in silence is a dead letter."""
    written = proto(f"{PROTO3} message M {{ {writer} }} {OTHERS}")
    frame = frame_of(client, written, bytes.fromhex(payload))
    value = (expected, split(frame)[0]) if isinstance(expected, str) else expected

    assert [value] == Column(client, proto(f"{PROTO3} message M {{ {reader} }} {OTHERS}")).read(frame)


def test_fields_not_asked_for_need_not_agree(client: RegistryClient) -> None:
    """A field that changed its type does no harm to the other columns."""
    frame = frame_of(client, proto(PROTO3 + "message M { int32 a = 1; int32 b = 2; }"), b"\x08\x05\x10\x06")
    reader = proto(PROTO3 + "message M { string a = 1; int32 b = 2; }")

    assert [{"b": 6}] == Column(client, reader, columns=["b"]).read(frame)


def test_three_versions_in_one_column(client: RegistryClient) -> None:
    """Frames of several versions, written by the serializer, mixed with nulls."""
    versions = [
        proto(PROTO3 + "message M { int32 id = 1; string gone = 2; }"),
        proto(PROTO3 + "message M { int64 id = 1; }"),
        proto(PROTO3 + "message Before {} message M { int64 id = 1; repeated string tags = 3; }"),
    ]
    kinds = [kind_of(versions[0]), kind_of(versions[1]), kind_of(versions[2], 1)]
    values = [kinds[0](id=1, gone="x"), kinds[1](id=2**40), kinds[2](id=3, tags=["t"])]
    frames = [ProtobufSerializer(client, type(one))(one, topic="proto-growing") for one in values]
    column = Column(client, client.get_version("proto-growing-value", "latest").schema, message="shop.M")

    assert 3 == len({split(one)[0] for one in frames})
    assert [
        {"id": 1, "tags": []},
        {"id": 2**40, "tags": []},
        None,
        {"id": 3, "tags": ["t"]},
    ] == column.read(frames[0], frames[1], None, frames[2])


def test_references(client: RegistryClient) -> None:
    """Files import each other, in the writer schema and in the reader schema, in versions of their own."""
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
    frames = [frame_of(client, one, b"\x0a\x02\x08\x05\x12\x02\x08\x06") for one in tops]
    column = Column(client, tops[1])

    assert "struct<base:struct<n:bigint,s:string>,more:array<struct<n:bigint,s:string>>>" == column.type
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
    """The message that is named is read, wherever it stands; any other is a dead letter."""
    frame = frame_of(client, proto(NESTED), payload, *path)
    value = (expected, split(frame)[0]) if isinstance(expected, str) else expected

    assert [value] == Column(client, proto(NESTED), message="shop.A.B.C").read(frame)


def test_guids(client: RegistryClient) -> None:
    """A frame may name its schema by GUID, with a path behind it."""
    schema = proto(PROTO3 + "message A {} message M { int32 n = 1; }")
    serializer = ProtobufSerializer(client, kind_of(schema, 1), {"schema.id.serializer": "guid"})
    frames = [serializer(kind_of(schema, 1)(n=one), topic="proto-guids") for one in (5, 0)]
    column = Column(client, schema, message="shop.M")

    assert [{"n": 5}, {"n": 0}, ("malformed", None)] == column.read(*frames, frames[0] + b"\0")


def test_other_frames(client: RegistryClient) -> None:
    """Frames of other formats, of no schema and of none at all are dead letters that say so."""
    schema = proto(PROTO3 + "message M { int32 n = 1; string s = 2; }")
    known = split(frame_of(client, schema, b""))[0]
    avro = client.register("proto-columns-avro", '"string"').schema_id
    text = client.register("proto-columns-json", Schema("{}", "JSON")).schema_id

    assert [
        ("writer schema is AVRO", avro),
        ("writer schema is JSON", text),
        ("unknown schema id", 99999),
        ("frame too short", None),
        ("wrong magic byte 0x09", None),
        ("frame too short", known),
        ("too many message indexes", known),
        ("malformed", known),
        ("malformed", known),
        ("invalid utf-8", known),
        {"n": 0, "s": ""},
    ] == Column(client, schema).read(
        join(avro, b"\xff\xff\xff\xff"),
        join(text, b""),
        join(99999, b"\0"),
        b"\0\0",
        b"\x09" * 9,
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
        PROTO3 + "message M { google.protobuf.Timestamp at = 1; }".replace("message", IMPORTS + "message", 1)
    )
    good, bad = frame_of(client, schema, b""), frame_of(client, schema, b"\x0a\x0c\x08" + b"\xff" * 8 + b"\x7f\x10\x01")
    failing = Column(client, schema, mode=Mode.FAILFAST, origin=["offset"])
    frames = pa.array([good, bad], pa.binary())

    assert [{"at": None}, None, None] == Column(client, schema, mode=Mode.PERMISSIVE).read(good, bad, b"\1")
    with pytest.raises(FrameRefused) as caught:
        payload_decoder(failing.plan).decode(frames, [pa.array([41, 42])])
    number = split(bad)[0]
    assert f"a frame cannot be decoded (schema id {number}, offset 42): out of range (at field at)" == str(caught.value)


RICH = proto(
    PROTO3
    + IMPORTS
    + KIND
    + """
message Rich {
  int32 i = 1; uint64 u = 2; sint64 z = 3; double d = 4; string s = 5; bytes b = 6; Kind k = 7;
  optional string o = 8; oneof one { int32 p = 9; Inner q = 10; } repeated Inner many = 11;
  map<string, Inner> by = 12; google.protobuf.Timestamp at = 13; google.protobuf.Int64Value w = 14;
  repeated fixed32 packed = 15;
  message Inner { int64 n = 1; repeated string tags = 2; Deep deep = 3; message Deep { bool t = 1; } }
}
"""
)
ANY_STRING = st.text(max_size=5)
INNERS = st.fixed_dictionaries(
    {"n": st.integers(-(2**63), 2**63 - 1), "tags": st.lists(ANY_STRING, max_size=3)},
    optional={"deep": st.fixed_dictionaries({"t": st.booleans()})},
)
RICHES = st.fixed_dictionaries(
    {
        "i": st.integers(-(2**31), 2**31 - 1),
        "u": st.integers(0, 2**64 - 1),
        "z": st.integers(-(2**63), 2**63 - 1),
        "d": st.floats(allow_nan=False),
        "s": ANY_STRING,
        "b": st.binary(max_size=5),
        "k": st.integers(-3, 3),
        "many": st.lists(INNERS, max_size=3),
        "by": st.dictionaries(ANY_STRING, INNERS, max_size=3),
        "packed": st.lists(st.integers(0, 2**32 - 1), max_size=3),
    },
    optional={"o": ANY_STRING, "p": st.integers(-9, 9), "w": st.builds(dict, value=st.integers(-9, 9))},
)


def _plain(value: dict[str, Any]) -> dict[str, Any]:
    """The column's value for what a message was made of."""

    def inner(one: dict[str, Any]) -> dict[str, Any]:
        return {"deep": None, **one}

    return {
        **dict.fromkeys(("o", "p", "q", "at")),
        **value,
        "u": Decimal(value["u"]),
        "k": {0: "A", 1: "B", 2: "C"}.get(value["k"], str(value["k"])),
        "many": [inner(one) for one in value["many"]],
        "by": {name: inner(one) for name, one in value["by"].items()},
        "w": value["w"]["value"] if "w" in value else None,
    }


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=st.lists(RICHES, max_size=5))
def test_any_values(client: RegistryClient, values: list[dict[str, Any]]) -> None:
    """Whatever messages hold, columns hold."""
    kind = kind_of(RICH)
    frames = [frame_of(client, RICH, kind(**one).SerializeToString()) for one in values]

    assert [_plain(one) for one in values] == Column(client, RICH).read(*frames)


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    value=RICHES,
    changes=st.lists(st.tuples(st.integers(0, 400), st.sampled_from([0, 1, 0x7F, 0x80, 0xFF])), max_size=4),
    end=st.integers(0, 400),
    tail=st.binary(max_size=3),
)
def test_any_bytes(
    client: RegistryClient, value: dict[str, Any], changes: list[tuple[int, int]], end: int, tail: bytes
) -> None:
    """A damaged frame is a value or a dead letter with its bytes, and the frames beside it are not touched."""
    good = frame_of(client, RICH, kind_of(RICH)(**value).SerializeToString())
    damaged = bytearray(good)
    for at, byte in changes:
        damaged[at % len(damaged)] = byte

    first, _, last = Column(client, RICH).read(good, bytes(damaged[: max(1, end)]) + tail, good)

    assert _plain(value) == first == last
