"""The rules of decoding Protobuf."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from harness.decode_rules import Rule, raw_frames, schema_of
from harness.payload_columns import kind_of, proto
from strata.serdes.client import Schema
from strata.serdes.framing import write_indexes

__all__ = ["RICH", "RULES"]

_PROTO3 = 'syntax = "proto3"; package shop; '
_IMPORTS = "".join(
    f'import "google/protobuf/{name}.proto"; ' for name in ("timestamp", "duration", "wrappers", "any", "struct")
)
_KIND = "enum Kind { option allow_alias = true; A = 0; B = 1; C = 2; CC = 2; }"
_INNER = "message Inner { int32 n = 1; optional string s = 2; } message Empty {}"
_OTHERS = (
    "enum K { ZERO = 0; ONE = 1; } message I { int32 n = 1; } message J { string n = 1; } message W { int64 n = 1; } "
    "message V { uint32 n = 1; }"
)
RICH = proto(
    'syntax = "proto3"; package shop; import "google/protobuf/wrappers.proto"; '
    'import "google/protobuf/timestamp.proto"; message M { int32 n = 1; string s = 2; repeated int32 many = 3; '
    "map<string, int64> map = 4; I inner = 5; oneof one { int32 a = 6; string b = 7; I c = 8; } optional int64 o = 9; "
    "google.protobuf.Int32Value w = 10; google.protobuf.Timestamp t = 11; uint64 u = 12; repeated I items = 13; "
    "E e = 14; map<int32, I> places = 15; fixed32 x = 16; bytes y = 17; repeated E kinds = 18; "
    "repeated google.protobuf.UInt64Value z = 19; } "
    "message I { int32 n = 1; string s = 2; repeated string more = 3; } enum E { ZERO = 0; ONE = 1; }"
)
_EMPTY: dict[str, Any] = {
    "n": 0,
    "s": "",
    "many": [],
    "map": {},
    "inner": None,
    "a": None,
    "b": None,
    "c": None,
    "o": None,
    "w": None,
    "t": None,
    "u": Decimal(0),
    "items": [],
    "e": "ZERO",
    "places": {},
    "x": 0,
    "y": b"",
    "kinds": [],
    "z": [],
}


def _mismatch(reader: str, writer: str, place: str) -> str:
    return f"resolution: the reader schema has {reader} where the writer schema has {writer} (at field {place})"


# name, declaration, Spark type, values for the field, the column
_TYPES: list[tuple[str, str, str, list[Any], list[Any]]] = [
    ("int32", "int32 f", "int", [-1, 2**31 - 1], [-1, 2**31 - 1]),
    ("sint32", "sint32 f", "int", [-(2**31)], [-(2**31)]),
    ("sfixed32", "sfixed32 f", "int", [-5], [-5]),
    ("int64", "int64 f", "bigint", [-(2**63)], [-(2**63)]),
    ("sint64", "sint64 f", "bigint", [2**63 - 1], [2**63 - 1]),
    ("sfixed64", "sfixed64 f", "bigint", [-5], [-5]),
    ("uint32", "uint32 f", "bigint", [2**32 - 1], [2**32 - 1]),
    ("fixed32", "fixed32 f", "bigint", [2**32 - 1], [2**32 - 1]),
    ("uint64", "uint64 f", "decimal(20,0)", [2**64 - 1, 0], [Decimal(2**64 - 1), Decimal(0)]),
    ("fixed64", "fixed64 f", "decimal(20,0)", [2**64 - 1], [Decimal(2**64 - 1)]),
    ("float", "float f", "float", [0.5, float("-inf")], [0.5, float("-inf")]),
    ("double", "double f", "double", [0.1], [0.1]),
    ("bool", "bool f", "boolean", [True, False], [True, False]),
    ("string", "string f", "string", ["zürich", ""], ["zürich", ""]),
    ("bytes", "bytes f", "binary", [b"\0\xff"], [b"\0\xff"]),
    ("optional, there", "optional int32 f", "int", [0], [0]),
    ("repeated number", "repeated int32 f", "array<int>", [[1, 0], []], [[1, 0], []]),
    ("repeated string", "repeated string f", "array<string>", [["a", ""]], [["a", ""]]),
    ("map", "map<string, int32> f", "map<string,int>", [{"a": 1}, {}], [{"a": 1}, {}]),
    ("map of ids", "map<uint64, bool> f", "map<decimal(20,0),boolean>", [{3: True}], [{Decimal(3): True}]),
    ("enum", "Kind f", "string", [1, 2, 7, -1], ["B", "C", "7", "-1"]),
    ("repeated enum", "repeated Kind f", "array<string>", [[0, 9]], [["A", "9"]]),
    ("map of enums", "map<string, Kind> f", "map<string,string>", [{"k": 1}], [{"k": "B"}]),
]  # fmt: skip
# name, declaration, Spark type, payload in hexadecimal, the value
_MESSAGES: list[tuple[str, str, str, str, Any]] = [
    ("timestamp", "google.protobuf.Timestamp f", "timestamp", "0a0408011064",
     datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)),
    ("timestamp before 1970", "google.protobuf.Timestamp f", "timestamp", "0a0f08ffffffffffffffffff0110c0c407",
     datetime(1969, 12, 31, 23, 59, 59, 123, tzinfo=UTC)),
    ("duration, cut towards zero", "google.protobuf.Duration f", "interval day to second",
     "0a1608ffffffffffffffffff0110a1b7f8ffffffffffff01", -timedelta(seconds=1, microseconds=123)),
    ("wrapper", "google.protobuf.Int32Value f", "int", "0a020807", 7),
    ("wrapper of a zero", "google.protobuf.Int32Value f", "int", "0a00", 0),
    ("no wrapper", "google.protobuf.Int32Value f", "int", "", None),
    ("unsigned wrapper", "google.protobuf.UInt64Value f", "decimal(20,0)", "0a020807", Decimal(7)),
    ("wrapped string", "google.protobuf.StringValue f", "string", "0a00", ""),
    ("repeated wrapper", "repeated google.protobuf.BoolValue f", "array<boolean>", "0a0208010a00", [True, False]),
    ("any", "google.protobuf.Any f", "struct<type_url:string,value:binary>", "0a060a017512 01 08",
     {"type_url": "u", "value": b"\x08"}),
    ("struct", "google.protobuf.Struct f", "string",
     "0a2b0a290a0161122432220a0911000000000000f03f0a041a02c3bc0a0208000a0b2a090a070a016212022001",
     '{"a":[1.0,"ü",null,{"b":true}]}'),
    ("null as a value", "google.protobuf.Value f", "string", "0a020800", "null"),
    ("no value", "google.protobuf.Value f", "string", "", None),
    ("message", "Inner f", "struct<n:int,s:string>", "0a020805", {"n": 5, "s": None}),
    ("no message", "Inner f", "struct<n:int,s:string>", "", None),
    ("repeated message", "repeated Inner f", "array<struct<n:int,s:string>>", "0a020805 0a00",
     [{"n": 5, "s": None}, {"n": 0, "s": None}]),
    ("map of messages", "map<int32, Inner> f", "map<int,struct<n:int,s:string>>", "0a0608011202 0805",
     {1: {"n": 5, "s": None}}),
    ("message without fields", "Empty f", "struct<>", "0a00", {}),
    ("no message without fields", "Empty f", "struct<>", "", None),
    ("optional, absent", "optional string f", "string", "", None),
    ("absent string", "string f", "string", "", ""),
    ("absent number", "int64 f", "bigint", "", 0),
    ("absent enum", "Kind f", "string", "", "A"),
    ("twice: the last counts", "int32 f", "int", "08010802", 2),
    ("unknown fields are skipped", "int32 f", "int", "08051a0161", 5),
    ("packed and not", "repeated int32 f", "array<int>", "08010a020203", [1, 2, 3]),
]  # fmt: skip
# name, writer's fields, reader's fields, payload, the value or the reason
_EVOLVED: list[tuple[str, str, str, str, Any]] = [
    ("field added", "int32 a = 1;", "int32 a = 1; string b = 2;", "0805", {"a": 5, "b": ""}),
    ("field removed", "int32 a = 1; string b = 2;", "int32 a = 1;", "0805120178", {"a": 5}),
    ("field renamed", "int32 old = 1;", "int32 renamed = 1;", "0805", {"renamed": 5}),
    ("made optional", "int32 a = 1;", "optional int32 a = 1;", "", {"a": None}),
    ("int32 to int64", "int32 a = 1;", "int64 a = 1;", "08ffffffffffffffffff01", {"a": -1}),
    ("int64 to int32, small", "int64 a = 1;", "int32 a = 1;", "0805", {"a": 5}),
    ("int64 to int32, not cut", "int64 a = 1;", "int32 a = 1;", "088080808010", "out of range"),
    ("uint64 to int64", "uint64 a = 1;", "int64 a = 1;", "08ffffffffffffffffff01", "out of range"),
    ("int32 to uint32", "int32 a = 1;", "uint32 a = 1;", "08ffffffffffffffffff01", {"a": -1}),
    ("int32 to uint64", "int32 a = 1;", "uint64 a = 1;", "08ffffffffffffffffff01", "out of range"),
    ("sint64 to sint32", "sint64 a = 1;", "sint32 a = 1;", "0803", {"a": -2}),
    ("bool to int32", "bool a = 1;", "int32 a = 1;", "0801", {"a": 1}),
    ("int32 to enum", "int32 a = 1;", "K a = 1;", "0801", {"a": "ONE"}),
    ("string to bytes", "string a = 1;", "bytes a = 1;", "0a0178", {"a": b"x"}),
    ("bytes that are not text", "bytes a = 1;", "string a = 1;", "0a01ff", "invalid utf-8"),
    ("many to one: the last", "repeated string a = 1;", "string a = 1;", "0a01780a0179", {"a": "y"}),
    ("out of a oneof", "oneof x { int32 a = 1; }", "int32 a = 1;", "0805", {"a": 5}),
    ("packed and narrower", "repeated int64 a = 1;", "repeated int32 a = 1;", "0a0105", {"a": [5]}),
    ("map, narrower", "map<int32, int64> a = 1;", "map<int32, int32> a = 1;", "0a0408011005", {"a": {1: 5}}),
    ("number to string", "int32 a = 1;", "string a = 1;", "0805", _mismatch("string", "int32", "a")),
    ("other encoding", "int32 a = 1;", "sint32 a = 1;", "0805", _mismatch("sint32", "int32", "a")),
    ("many numbers to one", "repeated int32 a = 1;", "int32 a = 1;", "0a0105",
     _mismatch("int32", "repeated int32", "a")),
    ("inside a message", "I a = 1;", "J a = 1;", "0a020805", _mismatch("string", "int32", "a.n")),
    ("wider inside", "I a = 1; int32 b = 2;", "W a = 1; int64 b = 2;", "0a0208051005", {"a": {"n": 5}, "b": 5}),
    ("one message for two", "W a = 1; V b = 2;", "I a = 1; I b = 2;", "0a020805",
     _mismatch("int32", "several types", "b.n")),
]  # fmt: skip

# name, payload in hexadecimal, the fields that differ from those of an empty message, or the reason
_ODD: list[tuple[str, str, Any]] = [
    ("empty", "", {}),
    ("a number twice", "08010802", {"n": 2}),
    ("a text twice", "1201611201620801", {"n": 1, "s": "b"}),
    ("packed, alone and packed again, with others between", "1a020102 1803 0805 1a0104 1200 1a00",
     {"n": 5, "many": [1, 2, 3, 4]}),
    ("a map with a key twice", "22050a01611001 22050a01621001 22050a01611002", {"map": {"a": 2, "b": 1}}),
    ("a map entry without key", "22021005", {"map": {"": 5}}),
    ("a map entry without value", "22030a0161", {"map": {"a": 0}}),
    ("an empty map entry", "2200", {"map": {"": 0}}),
    ("a map entry whose key has another wire type", "220408011005", "malformed"),
    ("a message twice is merged", "2a0208012a0312017a2a031a01782a031a0179",
     {"inner": {"n": 1, "s": "z", "more": ["x", "y"]}}),
    ("one of two: the last", "30053a0161", {"b": "a"}),
    ("one of two: the number last", "3a01613005", {"a": 5}),
    ("one of two: a message set again is not merged with what was before", "4202080130054203120178",
     {"c": {"n": 0, "s": "x", "more": []}}),
    ("a wrapper of nothing", "5200", {"w": 0}),
    ("a wrapper twice", "5202080152020802", {"w": 2}),
    ("a time with an unknown part", "5a0408011801", {"t": datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)}),
    ("a time of another wire type", "5a020d0100000000", "malformed"),
    ("a time out of range", "5a0a08ffffffffffffffff7f", "out of range"),
    ("an unknown group", "9b06080112009c06", {}),
    ("an unknown group that does not end", "9b060801", "malformed"),
    ("a group that ends with another number", "9b06a406", "malformed"),
    ("an unknown wire type", "0e", "malformed"),
    ("the number zero", "0001", "malformed"),
    ("a tag of more than 32 bits", "888080808001 01", "malformed"),
    ("a number cut short", "08", "malformed"),
    ("a number that does not end", "08ffffffffffffffffffff01", "malformed"),
    ("a number of ten bytes", "08ffffffffffffffffff01", {"n": -1}),
    ("a text beyond the end", "120561", "malformed"),
    ("a text that is not UTF-8", "1201ff", "invalid utf-8"),
    ("a text that is not UTF-8, before a later one that is", "1201ff120161", "invalid utf-8"),
    ("not UTF-8 and then truncated", "1201ff1205", "invalid utf-8"),
    ("truncated inside, and not UTF-8 later", "2a02120512 01ff", "malformed"),
    ("a number as a text", "0a0131", "malformed"),
    ("a text as a number", "1001", "malformed"),
    ("a message as a number", "2801", "malformed"),
    ("a packed number cut short", "1a0180", "malformed"),
    ("fixed as packed", "82010401000000", "malformed"),
    ("an enum that is unknown", "7007", {"e": "7"}),
    ("an enum of ten bytes", "70ffffffffffffffffff01", {"e": "-1"}),
    ("enums packed and not", "92010201079001 01", {"kinds": ["ONE", "7", "ONE"]}),
    ("items", "6a0008056a0208016a051a01611a00",
     {"n": 5, "items": [{"n": n, "s": "", "more": more} for n, more in ((0, []), (1, []), (0, ["a", ""]))]}),
    ("wrappers", "9a010208059a01009a010b08ffffffffffffffffff01", {"z": [Decimal(5), Decimal(0), Decimal(2**64 - 1)]}),
    ("the largest", "60ffffffffffffffffff01", {"u": Decimal(2**64 - 1)}),
    ("places", "7a0208017a060801120208057a020801", {"places": {1: {"n": 0, "s": "", "more": []}}}),
    ("not UTF-8 in a key", "22050a01ff1001", "invalid utf-8"),
]  # fmt: skip
_CHOSEN = ("s", "map", "inner", "a")
# what these columns have where it is not the same
_CHOSEN_ODD: dict[str, Any] = {
    "a time out of range": {},
    "a number as a text": {},
    "a packed number cut short": {},
    "fixed as packed": {},
}

_NESTED = (
    f"{_PROTO3} message A {{ message B {{ message C {{ int32 n = 1; }} int32 m = 1; }} }} message D {{ string s = 1; }}"
)
# indexes, payload, value or reason
_INDEXES: list[tuple[str, tuple[int, ...], bytes, Any]] = [
    ("nested", (0, 0, 0), b"\x08\x05", {"n": 5}),
    ("its owner", (0, 0), b"\x08\x05", "message is shop.A.B"),
    ("another", (1,), b"\x0a\x01x", "message is shop.D"),
    ("the first", (0,), b"", "message is shop.A"),
    ("no such message", (0, 0, 1), b"", "invalid index"),
    ("no such message at the top", (2,), b"", "invalid index"),
]
# bytes in the place of indexes and payload, reason
_WRONG_INDEXES = [
    ("no indexes", "", "frame too short"),
    ("a negative number of indexes", "01", "a message index is out of range"),
    ("an index is missing", "04 00", "frame too short"),
    ("the only index is missing", "02", "frame too short"),
    ("an index cut short", "0480", "frame too short"),
    ("too many indexes", "c801", "too many message indexes"),
    ("more indexes than bytes", "8002", "too many message indexes"),
    ("a number of indexes that does not end", "ffffffffff", "a message index is out of range"),
]


def _outcome(outcome: Any) -> dict[str, Any]:
    return {"answers": ({"reason": outcome},)} if isinstance(outcome, str) else {"values": [outcome]}


def _with(changes: dict[str, Any] | str, columns: Sequence[str]) -> dict[str, Any] | str:
    """Return some columns of an empty message with changes; a reason as it is."""
    if isinstance(changes, str):
        return changes
    return {column: value for column, value in (_EMPTY | changes).items() if column in columns}


def _of_types() -> Iterator[Rule]:
    for name, declaration, type_, written, read in _TYPES:
        schema = proto(f"{_PROTO3} {_KIND} message M {{ {declaration} = 1; }}")
        payloads = [b"\0" + kind_of(schema)(f=value).SerializeToString() for value in written]
        values = [{"f": value} for value in read]
        yield Rule(f"type: {name}", schema, schema, payloads, type=f"struct<f:{type_}>", values=values)
    for name, declaration, type_, payload, value in _MESSAGES:
        schema = proto(f"{_PROTO3} {_IMPORTS} {_KIND} message M {{ {declaration} = 1; }} {_INNER}")
        payloads = [b"\0" + bytes.fromhex(payload)]
        yield Rule(
            f"value: {name}",
            schema,
            schema,
            payloads,
            type=f"struct<f:{type_}>",
            values=[{"f": value}],
            only_python=declaration in ("google.protobuf.Struct f", "google.protobuf.Value f"),
        )


def _of_evolution() -> Iterator[Rule]:
    for name, writer, reader, payload, outcome in _EVOLVED:
        written, read = (proto(f"{_PROTO3} message M {{ {fields} }} {_OTHERS}") for fields in (writer, reader))
        yield Rule(f"evolution: {name}", written, read, [b"\0" + bytes.fromhex(payload)], **_outcome(outcome))
    mall = proto('syntax = "proto3"; package mall; message M { int32 n = 1; }')
    shop = proto(f"{_PROTO3} message M {{ int32 n = 1; }}")
    yield Rule("another package", mall, shop, [b"\0\x08\x05"], **_outcome("message is mall.M"))
    numbers = proto(f"{_PROTO3} message M {{ int32 a = 1; int32 b = 2; }}")
    other = proto(f"{_PROTO3} message M {{ string a = 1; int32 b = 2; }}")
    yield Rule(
        "a field that is not chosen need not agree",
        numbers,
        other,
        [b"\0\x08\x05\x10\x06"],
        values=[{"b": 6}],
        options={"columns": ["b"]},
    )


def _of_messages() -> Iterator[Rule]:
    nested = proto(_NESTED)
    inner = {"message": "shop.A.B.C"}
    for name, path, message, outcome in _INDEXES:
        payloads = [write_indexes(path) + message]
        yield Rule(f"message: {name}", nested, nested, payloads, options=inner, **_outcome(outcome))
    for name, payload, reason in _WRONG_INDEXES:
        yield Rule(f"message: {name}", nested, nested, [bytes.fromhex(payload)], ({"reason": reason},), options=inner)


def _of_proto2() -> Iterator[Rule]:
    """Yield rules of messages that only Python decodes: absent fields are null unless they have a default."""
    schema = proto(
        'syntax = "proto2"; message M { required int32 a = 1; optional int32 b = 2 [default = 7]; '
        "optional group G = 3 { optional string s = 4; } optional E e = 5; enum E { ONE = 1; TWO = 2; } }"
    )
    type_ = "struct<a:int,b:int,g:struct<s:string>,e:string>"
    absent = {"a": None, "b": 7, "g": None, "e": None}
    rows: list[tuple[str, bytes, Any]] = [
        ("nothing", b"", absent),
        ("everything", b"\x08\x01\x10\x02\x1b\x22\x01x\x1c\x28\x02", {"a": 1, "b": 2, "g": {"s": "x"}, "e": "TWO"}),
        ("an unknown label", b"\x28\x09", absent),
        ("not UTF-8", b"\x1b\x22\x01\xff\x1c", "invalid utf-8"),
    ]
    for name, payload, outcome in rows:
        yield Rule(
            f"proto2: {name}", schema, schema, [b"\0" + payload], type=type_, only_python=True, **_outcome(outcome)
        )
    open_ = proto(f'{_PROTO3} import "google/protobuf/struct.proto"; message M {{ google.protobuf.Value v = 1; }}')
    infinity = [b"\0" + bytes.fromhex("0a0911000000000000f07f")]
    yield Rule("infinity in a Value", open_, open_, infinity, ({"reason": "out of range"},), only_python=True)


def _of_names() -> Iterator[Rule]:
    methods = proto(f"{_PROTO3} message M {{ optional int32 HasField = 1; int32 DESCRIPTOR = 2; }}")
    values = [{"HasField": 5, "DESCRIPTOR": 7}, {"HasField": None, "DESCRIPTOR": 7}]
    payloads = [b"\0\x08\x05\x10\x07", b"\0\x10\x07"]
    yield Rule("fields that are called as methods", methods, methods, payloads, values=values)
    children = proto(f"{_PROTO3} message A {{ int32 n = 1; repeated A children = 2; string s = 3; }}")
    yield Rule(
        "a recursive field that is not chosen",
        children,
        children,
        [b"\0\x08\x05\x12\x00\x1a\x01x"],
        ({"value": ["x", 5]},),
        type="struct<s:string,n:int>",
        options={"columns": ["s", "n"]},
    )


def _of_odd_payloads() -> Iterator[Rule]:
    for name, payload, changes in _ODD:
        payloads = [b"\0" + bytes.fromhex(payload)]
        yield Rule(f"odd: {name}", RICH, RICH, payloads, **_outcome(_with(changes, tuple(_EMPTY))))
        chosen = _outcome(_with(_CHOSEN_ODD.get(name, changes), _CHOSEN))
        yield Rule(f"some columns of odd: {name}", RICH, RICH, payloads, options={"columns": _CHOSEN}, **chosen)
    twice = [b"\0" + bytes.fromhex("1201613005")]
    yield Rule(
        "a column that is chosen twice",
        RICH,
        RICH,
        twice,
        ({"value": ["a", 5]},),
        options={"columns": ["s", "a", "s"]},
    )


RULES = (
    *_of_types(),
    *_of_evolution(),
    *_of_messages(),
    *_of_proto2(),
    *_of_names(),
    *_of_odd_payloads(),
    *raw_frames(RICH, b"\0", (schema_of("string"), Schema("{}", "JSON"))),
)
"""All rules of Protobuf."""
