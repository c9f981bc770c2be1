"""The rules of encoding Protobuf; the payloads are those of Google's library, in its deterministic order."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from harness.encode_rules import Answer, Rule, row
from harness.payload_columns import kind_of, proto

__all__ = ["COLUMNS", "RULES", "SHOP"]

NAIVE = datetime(1969, 12, 31, 23, 59, 59, 5)  # noqa: DTZ001 - UTC without saying so
SHOP = proto(
    'syntax = "proto3"; package shop; import "google/protobuf/timestamp.proto"; '
    'import "google/protobuf/duration.proto"; import "google/protobuf/wrappers.proto"; message M { int32 a = 1; '
    "int64 b = 2; uint32 c = 3; uint64 d = 4; sint32 e = 5; sint64 f = 6; fixed32 g = 7; fixed64 h = 8; "
    "sfixed32 i = 9; sfixed64 j = 10; float k = 11; double l = 12; bool m = 13; string n = 14; bytes o = 15; E p = 16; "
    "I q = 17; optional int32 r = 18; repeated int32 s = 19; repeated string t = 20; repeated I u = 21; "
    "map<string, int32> v = 22; map<int64, I> w = 23; repeated int32 x = 24 [packed = false]; "
    "google.protobuf.Timestamp at = 25; google.protobuf.Duration span = 26; google.protobuf.Int32Value y = 27; "
    "repeated google.protobuf.StringValue z = 28; oneof one { int32 aa = 2000; string ab = 30; I ac = 31; } "
    "map<bool, bytes> ad = 32; map<uint64, E> ae = 33; repeated E af = 34; repeated bool ag = 35; } "
    "message I { optional int32 n = 1; string s = 2; } enum E { ZERO = 0; ONE = 1; ALSO_ONE = 1; option "
    "allow_alias = true; FAR = 100000; LOW = -1; }"
)
INNER = pa.struct([("s", pa.string()), ("n", pa.int64())])
# name -> message, in the form of protobuf's constructor; field -> type and value of the column
_MESSAGES: dict[str, tuple[dict[str, Any], dict[str, tuple[pa.DataType, Any]]]] = {
    "zeros": (
        {},
        {
            **{name: (pa.int32(), 0) for name in "abcefghij"},
            "d": (pa.decimal128(20, 0), Decimal(0)),
            "k": (pa.float32(), 0.0),
            "l": (pa.float64(), 0.0),
            "m": (pa.bool_(), False),
            "n": (pa.string(), ""),
            "o": (pa.binary(), b""),
            "p": (pa.string(), "ZERO"),
            "r": (pa.int32(), None),
            "s": (pa.list_(pa.int32()), []),
            "v": (pa.map_(pa.string(), pa.int32()), []),
        },
    ),
    "least": (
        {"a": -(2**31), "b": -(2**63), "e": -(2**31), "f": -(2**63), "i": -(2**31), "j": -(2**63), "l": -0.0},
        {
            **{name: (pa.int64(), -(2**31)) for name in "aei"},
            **{name: (pa.int64(), -(2**63)) for name in "bfj"},
            "l": (pa.float64(), -0.0),
        },
    ),
    "greatest": (
        {"a": 2**31 - 1, "c": 2**32 - 1, "d": 2**64 - 1, "f": 2**63 - 1, "g": 2**32 - 1, "h": 2**64 - 1, "k": 0.5},
        {
            "a": (pa.int32(), 2**31 - 1),
            "c": (pa.int64(), 2**32 - 1),
            "d": (pa.decimal128(20, 0), Decimal(2**64 - 1)),
            "f": (pa.int64(), 2**63 - 1),
            "g": (pa.int64(), 2**32 - 1),
            "h": (pa.decimal128(38, 0), Decimal(2**64 - 1)),
            "k": (pa.float32(), 0.5),
        },
    ),
    "columns in another order": (
        {"aa": 0, "q": {"n": 0, "s": "zürich"}, "n": "x" * 300, "m": True, "o": b"\0\xff", "l": 0.1, "r": 0},
        {
            "aa": (pa.int32(), 0),
            "ab": (pa.string(), None),
            "r": (pa.int32(), 0),
            "q": (INNER, {"s": "zürich", "n": 0}),
            "n": (pa.string(), "x" * 300),
            "m": (pa.bool_(), True),
            "o": (pa.binary(), b"\0\xff"),
            "l": (pa.float64(), 0.1),
        },
    ),
    "containers": (
        {
            "s": [1, -1, 300], "t": ["a", ""], "u": [{}, {"n": 5}], "v": {"zebra": 0, "a": 1, "mm": 2, "é": 3},
            "w": {-1: {"s": "a"}, 2: {}, 300: {}}, "x": [1, 300], "ad": {True: b"a", False: b""},
            "ae": {2**64 - 1: 1, 7: 0}, "af": [0, 1, 7], "ag": [True, False],
        },
        {
            "s": (pa.list_(pa.int64()), [1, -1, 300]),
            "t": (pa.list_(pa.string()), ["a", ""]),
            "u": (pa.list_(INNER), [{"s": "", "n": None}, {"s": "", "n": 5}]),
            "v": (pa.map_(pa.string(), pa.int32()), [("zebra", 0), ("é", 3), ("a", 1), ("mm", 2)]),
            "w": (
                pa.map_(pa.int64(), INNER),
                [(300, {"s": "", "n": None}), (2, {"s": "", "n": None}), (-1, {"s": "a", "n": None})],
            ),
            "x": (pa.list_(pa.int32()), [1, 300]),
            "ad": (pa.map_(pa.bool_(), pa.binary()), [(True, b"a"), (False, b"")]),
            "ae": (pa.map_(pa.decimal128(20, 0), pa.string()), [(Decimal(2**64 - 1), "ALSO_ONE"), (Decimal(7), "0")]),
            "af": (pa.list_(pa.string()), ["ZERO", "ONE", "7"]),
            "ag": (pa.list_(pa.bool_()), [True, False]),
        },
    ),
    "well-known": (
        {
            "at": datetime(1969, 12, 31, 23, 59, 59, 5, UTC), "span": timedelta(seconds=-1.5), "y": {},
            "z": [{"value": "a"}, {}], "ac": {}, "p": -1,
        },
        {
            "at": (pa.timestamp("us"), NAIVE),
            "span": (pa.duration("us"), timedelta(seconds=-1.5)),
            "y": (pa.int32(), 0),
            "z": (pa.list_(pa.string()), ["a", ""]),
            "ac": (INNER, {"s": "", "n": None}),
            "p": (pa.string(), "LOW"),
        },
    ),
}  # fmt: skip
RANGE, NO_VALUE = "out of range", "expected a value, got null"
# fields of the column, reason, path
_MISFITS: list[tuple[dict[str, tuple[pa.DataType, Any]], str, str]] = [
    ({"a": (pa.int32(), None)}, f"{NO_VALUE}: the field has no presence", "a"),
    ({"a": (pa.int64(), 2**31)}, RANGE, "a"),
    ({"c": (pa.int64(), -1)}, RANGE, "c"),
    ({"d": (pa.decimal128(20, 0), Decimal(2**64))}, RANGE, "d"),
    ({"p": (pa.string(), "TWO")}, "expected a name of the enum E", "p"),
    ({"p": (pa.string(), "9999999999")}, RANGE, "p"),
    ({"s": (pa.list_(pa.int64()), [2**40, None])}, NO_VALUE, "s[]"),
    ({"s": (pa.list_(pa.int64()), [1, 2**40])}, RANGE, "s[]"),
    ({"af": (pa.list_(pa.string()), ["ONE", "TWO"])}, "expected a name of the enum E", "af[]"),
    ({"u": (pa.list_(INNER), [{"s": None, "n": 1}])}, f"{NO_VALUE}: the field has no presence", "u[].s"),
    ({"v": (pa.map_(pa.string(), pa.int32()), [("a", None)])}, NO_VALUE, "v{}"),
    ({"w": (pa.map_(pa.int64(), INNER), [(1, {"s": "", "n": 2**40})])}, RANGE, "w{}.n"),
    ({"y": (pa.int64(), 2**40)}, RANGE, "y"),
    ({"aa": (pa.int32(), 1), "ab": (pa.string(), "a")}, "expected one member of the oneof, got several", "ab"),
    ({"at": (pa.timestamp("us"), 2**62)}, "expected a year from 1 to 9999", "at"),
    ({"c": (pa.int64(), -1), "a": (pa.int64(), 2**31)}, RANGE, "c"),
]


def _rule(name: str, fields: Mapping[str, tuple[pa.DataType, Any]], answer: Answer) -> Rule:
    return Rule(name, SHOP, row(fields), answer)


RULES = [
    *(
        _rule(name, fields, b"\0" + kind_of(SHOP)(**message).SerializeToString(deterministic=True))
        for name, (message, fields) in _MESSAGES.items()
    ),
    *(_rule(f"refused: {path}: {reason} of {fields}", fields, (reason, path)) for fields, reason, path in _MISFITS),
    Rule("a null row", SHOP, pa.nulls(1, pa.struct([("a", pa.int32())])), None),
]
# column, message
COLUMNS = [
    ("a string", r"expected a column of int32, got string \(at field a\)"),
    ("k double", r"expected a column of float, got double \(at field k\)"),
    ("a array<int>", r"expected a column of int32, got list<element: int32> \(at field a\)"),
    ("q int", r"expected a struct for shop.I, got int32 \(at field q\)"),
    ("s int", r"expected an array, got int32 \(at field s\)"),
    ("v array<int>", r"expected a map, got list<element: int32> \(at field v\)"),
    ("at date", r"expected a struct for google.protobuf.Timestamp, got date32\[day\] \(at field at\)"),
    ("q struct<nn: int>", r"the schema has no such field.* \(at field q.nn\)"),
]
