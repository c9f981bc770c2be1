"""Protobuf frames are decoded to columns: types, values, damage; no Spark session is needed."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.examples import examples
from harness.payload_columns import PayloadColumn, kind_of, proto, proto_frame
from strata.serdes.client import RegistryClient
from strata.serdes.framing import split
from strata.spark_udfs.decoding.type_limits import UnsupportedSchema

PROTO3 = 'syntax = "proto3"; package shop; '
IMPORTS = "".join(
    f'import "google/protobuf/{name}.proto"; ' for name in ("timestamp", "duration", "wrappers", "any", "struct")
)


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
    """Each Protobuf type becomes a Spark type, and its values arrive."""
    schema = proto(f"{PROTO3} {KIND} message M {{ {declaration} = 1; }}")
    message = kind_of(schema)
    frames = [proto_frame(client, schema, message(f=one).SerializeToString()) for one in given]
    column = PayloadColumn(client, schema)

    assert f"struct<f:{kind}>" == column.type.simpleString()
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
    pytest.param(
        "google.protobuf.Struct f",
        "string",
        "0a2b0a290a0161122432220a0911000000000000f03f0a041a02c3bc0a0208000a0b2a090a070a016212022001",
        '{"a":[1.0,"ü",null,{"b":true}]}',
        id="struct",
    ),
    pytest.param("google.protobuf.Value f", "string", "0a020800", "null", id="null as a value"),
    pytest.param("google.protobuf.Value f", "string", "", None, id="no value"),
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
    """A field has its value in every wire encoding, and when it is absent."""
    others = "message Inner { int32 n = 1; optional string s = 2; } message Empty {}"
    schema = proto(f"{PROTO3} {IMPORTS} {KIND} message M {{ {declaration} = 1; }} {others}")
    column = PayloadColumn(client, schema)

    assert f"struct<f:{kind}>" == column.type.simpleString()
    assert [{"f": expected}] == column.read(proto_frame(client, schema, bytes.fromhex(payload)))


def test_fields_called_as_methods(client: RegistryClient) -> None:
    """Fields may have any name, even one of a message method."""
    schema = proto(f"{PROTO3} message M {{ optional int32 HasField = 1; int32 DESCRIPTOR = 2; }}")
    column = PayloadColumn(client, schema)
    frames = [proto_frame(client, schema, bytes.fromhex(one)) for one in ("08051007", "1007")]

    assert [{"HasField": 5, "DESCRIPTOR": 7}, {"HasField": None, "DESCRIPTOR": 7}] == column.read(*frames)


def test_nullable(client: RegistryClient) -> None:
    """A field without presence is not nullable, one with presence is; columns are in the order of the numbers."""
    schema = proto(
        PROTO3 + "message M { int32 a = 1; optional int32 b = 2; oneof c { int32 d = 3; string e = 4; } M2 f = 5; "
        "repeated int32 g = 6; map<string, M2> h = 7; } message M2 { bool x = 1; }"
    )
    fields = PayloadColumn(client, schema).type.fields

    assert list("abdefgh") == [one.name for one in fields]
    assert {"b", "d", "e", "f"} == {one.name for one in fields if one.nullable}
    assert not fields[5].dataType.containsNull
    assert not fields[6].dataType.valueContainsNull
    assert [{"a": 0, "b": None, "d": None, "e": "x", "f": {"x": False}, "g": [], "h": []}] == [
        {**one, "h": list(one["h"])}
        for one in PayloadColumn(client, schema).read(proto_frame(client, schema, b"\x22\x01x\x2a\x00"))
    ]


def test_proto2(client: RegistryClient) -> None:
    """Absent fields are null unless a default is declared; groups are messages; strings are validated."""
    schema = proto(
        'syntax = "proto2"; message M { required int32 a = 1; optional int32 b = 2 [default = 7]; '
        "optional group G = 3 { optional string s = 4; } optional E e = 5; enum E { ONE = 1; TWO = 2; } }"
    )
    column = PayloadColumn(client, schema)
    rows = column.read(
        proto_frame(client, schema, b""),
        proto_frame(client, schema, b"\x08\x01\x10\x02\x1b\x22\x01x\x1c\x28\x02"),
        proto_frame(client, schema, b"\x28\x09"),
        proto_frame(client, schema, b"\x1b\x22\x01\xff\x1c"),
    )

    assert "struct<a:int,b:int,g:struct<s:string>,e:string>" == column.type.simpleString()
    assert {"a": None, "b": 7, "g": None, "e": None} == rows[0]
    assert {"a": 1, "b": 2, "g": {"s": "x"}, "e": "TWO"} == rows[1]
    assert {"a": None, "b": 7, "g": None, "e": None} == rows[2]
    assert "invalid utf-8" == rows[3][0]


# declarations, requested message, columns, error, its message
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
        None, None, UnsupportedSchema, "more than 10000 types", id="messages that multiply",
    ),
    pytest.param(
        "".join(f"message M{i} {{ M{i + 1} f = 1; }} " for i in range(500)) + "message M500 {}",
        None, None, UnsupportedSchema, "more than 100 levels deep", id="a long chain",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message", "columns", "error", "says"), REFUSED)
def test_refused(
    client: RegistryClient, text: str, message: str | None, columns: Any, error: type[Exception], says: str
) -> None:
    """A schema that cannot be a column is refused before any task runs, with the place."""
    with pytest.raises(error, match=says):
        _ = PayloadColumn(client, proto(PROTO3 + text), message=message, columns=columns).type


def test_columns_leave_out(client: RegistryClient) -> None:
    """Only the requested fields are decoded, in that order; the others may be recursive."""
    schema = proto(PROTO3 + "message A { int32 n = 1; repeated A children = 2; string s = 3; }")
    column = PayloadColumn(client, schema, columns=["s", "n"])

    assert "struct<s:string,n:int>" == column.type.simpleString()
    assert [{"s": "x", "n": 5}] == column.read(proto_frame(client, schema, b"\x08\x05\x12\x00\x1a\x01x"))


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
    """Return the column's value of the data that a message was made from."""

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


def test_value_that_json_does_not_have(client: RegistryClient) -> None:
    """An infinity in a Struct makes a dead letter."""
    schema = proto(PROTO3 + 'import "google/protobuf/struct.proto"; message M { google.protobuf.Value v = 1; }')
    frame = proto_frame(client, schema, bytes.fromhex("0a0911000000000000f07f"))

    assert [("out of range", split(frame)[0])] == PayloadColumn(client, schema).read(frame)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(values=st.lists(RICHES, max_size=5))
def test_any_values(client: RegistryClient, values: list[dict[str, Any]]) -> None:
    """Columns hold any value that messages hold."""
    kind = kind_of(RICH)
    frames = [proto_frame(client, RICH, kind(**one).SerializeToString()) for one in values]

    assert [_plain(one) for one in values] == PayloadColumn(client, RICH).read(*frames)


@settings(max_examples=examples(120), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    value=RICHES,
    changes=st.lists(st.tuples(st.integers(0, 400), st.sampled_from([0, 1, 0x7F, 0x80, 0xFF])), max_size=4),
    end=st.integers(0, 400),
    tail=st.binary(max_size=3),
)
def test_any_bytes(
    client: RegistryClient, value: dict[str, Any], changes: list[tuple[int, int]], end: int, tail: bytes
) -> None:
    """A damaged frame is a value or a dead letter with its bytes, and its neighbours are not affected."""
    good = proto_frame(client, RICH, kind_of(RICH)(**value).SerializeToString())
    damaged = bytearray(good)
    for at, byte in changes:
        damaged[at % len(damaged)] = byte

    first, _, last = PayloadColumn(client, RICH).read(good, bytes(damaged[: max(1, end)]) + tail, good)

    assert _plain(value) == first == last
