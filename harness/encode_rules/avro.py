"""The rules of encoding Avro; the payloads are those of fastavro, unless a rule says one."""

import io
import json
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa

from harness.encode_rules import Rule, row
from strata.serdes.client import Schema

__all__ = ["COLUMNS", "NO_VALUE", "RULES", "in_record"]

_NAIVE = datetime(1969, 12, 31, 23, 59, 59, 999_000)  # noqa: DTZ001 - a local timestamp has no zone
_INSTANT = datetime(2026, 3, 1, 12, 30, 0, 5000, UTC)


def in_record(type_: Any) -> Any:
    """Return a record with the field f of a type."""
    return {"type": "record", "name": "R", "fields": [{"name": "f", "type": type_}]}


def _rule(name: str, type_: Any, arrow: pa.DataType, value: Any, written: Any = ...) -> Rule:
    """Return the rule of a value of the field f.

    Args:
        name: of the rule.
        type_: of the field in Avro.
        arrow: of the field in the column.
        value: the field of the only row.
        written: the value for fastavro, if it takes another one.
    """
    payload, schema = io.BytesIO(), in_record(type_)
    fastavro.schemaless_writer(payload, fastavro.parse_schema(schema), {"f": value if written is ... else written})
    return Rule(name, Schema(json.dumps(schema)), row({"f": (arrow, value)}), payload.getvalue())


def _refused(name: str, type_: Any, arrow: pa.DataType, value: Any, reason: str, path: str = "f") -> Rule:
    return Rule(f"refused: {name}", Schema(json.dumps(in_record(type_))), row({"f": (arrow, value)}), (reason, path))


def _logical(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


def _decimal(precision: int, scale: int, **more: Any) -> dict[str, Any]:
    return _logical("bytes", "decimal", precision=precision, scale=scale) | more


INSTANTS, LOCALS = pa.timestamp("us", "UTC"), pa.timestamp("us")
ENUM = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
POINT = {"type": "record", "name": "P", "fields": [{"name": "x", "type": "int"}, {"name": "y", "type": "string"}]}
POINTS = pa.struct([("y", pa.string()), ("x", pa.int32())])
FIXED_3, FIXED_9 = {"type": "fixed", "name": "X", "size": 3}, {"type": "fixed", "name": "Y", "size": 9}
_VALUES: list[Rule] = [
    *(_rule(f"int {n}", "int", pa.int32(), n) for n in (0, -1, 63, 64, -(2**31), 2**31 - 1)),
    *(_rule(f"long {n}", "long", pa.int64(), n) for n in (2**62, -(2**63), 2**63 - 1)),
    _rule("int from a byte", "int", pa.int8(), -128),
    _rule("long from a short", "long", pa.int16(), 300),
    _rule("int from a long", "int", pa.int64(), 2**31 - 1),
    _rule("float", "float", pa.float32(), -0.5),
    _rule("double", "double", pa.float64(), 0.1),
    _rule("minus zero", "double", pa.float64(), -0.0),
    _rule("infinity", "float", pa.float32(), float("-inf")),
    _rule("double from a float", "double", pa.float32(), 0.5),
    _rule("double from an int", "double", pa.int32(), 3),
    _rule("boolean", "boolean", pa.bool_(), True),
    _rule("string", "string", pa.string(), "zürich \U0001f68b"),
    _rule("no string", "string", pa.string(), ""),
    _rule("long string", "string", pa.string(), "x" * 5000),
    _rule("bytes", "bytes", pa.binary(), b"\0\xff"),
    _rule("fixed", FIXED_3, pa.binary(), b"abc"),
    _rule("enum", ENUM, pa.string(), "B"),
    _rule("uuid", _logical("string", "uuid"), pa.string(), "00000000-0000-0000-0000-00000000000a"),
    *(
        _rule(f"decimal {text}", _decimal(18, 2), pa.decimal128(18, 2), Decimal(text))
        for text in ("0.00", "1.27", "1.28", "-1.29", "9999999999999999.99", "-9999999999999999.99")
    ),
    _rule("wide decimal", _decimal(38, 4), pa.decimal128(38, 4), Decimal("-1234567890123456789012345678901234.5678")),
    _rule("decimal of another scale", _decimal(10, 3), pa.decimal128(5, 1), Decimal("12.5")),
    _rule("fixed decimal", FIXED_9 | _decimal(9, 2, type="fixed"), pa.decimal128(9, 2), Decimal("-1.29")),
    _rule("wide fixed decimal", FIXED_9 | _decimal(20, 0, type="fixed"), pa.decimal128(20, 0), Decimal(-(10**19))),
    _rule("date", _logical("int", "date"), pa.date32(), date(1900, 1, 1)),
    _rule("timestamp-millis", _logical("long", "timestamp-millis"), INSTANTS, _INSTANT),
    _rule("timestamp-micros", _logical("long", "timestamp-micros"), INSTANTS, datetime(1, 1, 1, tzinfo=UTC)),
    _rule("local-timestamp-millis", _logical("long", "local-timestamp-millis"), LOCALS, _NAIVE),
    _rule("local-timestamp-micros", _logical("long", "local-timestamp-micros"), LOCALS, _NAIVE),
    _rule("null", ["null", "string"], pa.string(), None),
    _rule("not null", ["null", "string"], pa.string(), "a"),
    _rule("null last", ["string", "null"], pa.string(), None),
    _rule("only null", "null", pa.int32(), None),
    _rule("void", ["null", "int"], pa.null(), None),
    _rule("int or long", ["null", "int", "long"], pa.int64(), 2**40),
    _rule("array", {"type": "array", "items": ["null", "int"]}, pa.list_(pa.int32()), [1, None, -3]),
    _rule("no items", {"type": "array", "items": "int"}, pa.list_(pa.int32()), []),
    _rule("record", POINT, POINTS, {"x": 1, "y": "b"}),
    _rule("records", {"type": "array", "items": POINT}, pa.list_(POINTS), [{"x": 1, "y": "b"}, {"x": 2, "y": ""}]),
    _rule("optional record", ["null", POINT], POINTS, None),
]
MAPS = pa.map_(pa.string(), pa.int32())
UNION = ["null", "int", {"type": "array", "items": "string"}]
MEMBERS = pa.struct([("member1", pa.list_(pa.string())), ("member0", pa.int32())])
# columns of other types, and values that fastavro takes in another form
_CONVERTED: list[Rule] = [
    _rule("int from a double", "int", pa.float64(), 7.0, 7),
    _rule("long from a decimal", "long", pa.decimal128(20, 2), Decimal("7.00"), 7),
    _rule("decimal from an int", _decimal(12, 2), pa.int32(), 7, Decimal("7.00")),
    _rule("map", {"type": "map", "values": ["null", "int"]}, MAPS, [("b", 1), ("a", None)], {"b": 1, "a": None}),
    _rule("first member", UNION, MEMBERS, {"member0": 5, "member1": None}, 5),
    _rule("second member", UNION, MEMBERS, {"member0": None, "member1": ["a"]}, ["a"]),
    _rule("no member", UNION, MEMBERS, None),
    _rule("missing member", UNION, pa.struct([("member1", pa.list_(pa.string()))]), {"member1": []}, []),
    _rule("NaN", "double", pa.float64(), float("nan")),
    _rule("time-millis from a timestamp", _logical("int", "time-millis"), LOCALS, _NAIVE, _NAIVE.time()),
    _rule("time-micros from a timestamp", _logical("long", "time-micros"), LOCALS, _NAIVE, _NAIVE.time()),
    _rule("time-millis", _logical("int", "time-millis"), pa.int32(), 86_399_999, time(23, 59, 59, 999_000)),
    _rule("timestamp-nanos", _logical("long", "timestamp-nanos"), INSTANTS, _INSTANT, 1_772_368_200_005_000_000),
    _rule(
        "instant from a date", _logical("long", "timestamp-millis"), pa.date32(), date(1900, 1, 1),
        datetime(1900, 1, 1, tzinfo=UTC),
    ),
    _rule("date from a timestamp", _logical("int", "date"), LOCALS, _NAIVE, _NAIVE.date()),
    _rule("time-micros from an instant", _logical("long", "time-micros"), INSTANTS, _INSTANT, _INSTANT.time()),
    _rule("date from an instant", _logical("int", "date"), INSTANTS, _INSTANT, _INSTANT.date()),
    _rule("long from an interval", "long", pa.duration("us"), 1500),
    _rule("string from bytes", "string", pa.binary(), b"a", "a"),
    _rule("bytes from a string", "bytes", pa.string(), "zürich", "zürich".encode()),
]  # fmt: skip
# what is not in a record; bytes as a whole have no length
_WHOLE: list[Rule] = [
    Rule(name, Schema(json.dumps(type_)), pa.array([value], arrow), payload)
    for name, type_, arrow, value, payload in (
        ("a number alone", "int", pa.int32(), 5, b"\x0a"),
        ("an array alone", {"type": "array", "items": "string"}, pa.list_(pa.string()), ["a"], b"\x02\x02a\0"),
        ("bytes alone", "bytes", pa.binary(), b"\0\xff", b"\0\xff"),
        ("a decimal alone", _decimal(2, 1), pa.decimal128(2, 1), Decimal("1.5"), b"\x0f"),
        ("a null row", in_record("int"), pa.struct([("f", pa.int32())]), None, None),
    )
]
# fastavro writes a byte more
_SHORTER = Rule(
    "decimal -1.28",
    Schema(json.dumps(in_record(_decimal(18, 2)))),
    row({"f": (pa.decimal128(18, 2), Decimal("-1.28"))}),
    b"\x02\x80",
)
NO_VALUE, NOT_NULL, RANGE = "expected a value, got null", "expected null, got a value", "a value is out of range"
NO_SYMBOL, ONE_MEMBER = "expected a symbol of the enum", "expected one member of the union, got"
_MISFITS: list[Rule] = [
    _refused("null", "int", pa.int32(), None, NO_VALUE),
    _refused("void", "int", pa.null(), None, NO_VALUE),
    _refused("null item", {"type": "array", "items": "int"}, pa.list_(pa.int32()), [1, None], NO_VALUE, "f[]"),
    _refused("null in a map", {"type": "map", "values": "int"}, MAPS, [("a", None)], NO_VALUE, "f{}"),
    _refused("null in a record", POINT, POINTS, {"x": None, "y": "a"}, NO_VALUE, "f.x"),
    _refused("no null", "null", pa.int32(), 1, NOT_NULL),
    _refused("long", "int", pa.int64(), 2**31, "a value does not fit int32"),
    _refused("fraction", "int", pa.float64(), 1.5, "a value does not fit int32"),
    _refused("NaN", "long", pa.float64(), float("nan"), "a value does not fit int64"),
    _refused("2**63", "long", pa.float64(), 2.0**63, "a value does not fit int64"),
    _refused("cents", "long", pa.decimal128(9, 2), Decimal("1.50"), "a value does not fit int64"),
    _refused("2**53 + 1", "double", pa.int64(), 2**53 + 1, "a value does not fit double"),
    _refused("2**24 + 1", "float", pa.int32(), 2**24 + 1, "a value does not fit float"),
    _refused("symbol", ENUM, pa.string(), "C", NO_SYMBOL),
    _refused("optional symbol", ["null", ENUM], pa.string(), "C", NO_SYMBOL),
    _refused("no symbol", ENUM, pa.string(), None, NO_SYMBOL),
    _refused("short fixed", FIXED_3, pa.binary(), b"ab", "expected bytes of another size"),
    _refused("scale", _decimal(5, 1), pa.decimal128(5, 2), Decimal("1.25"), "a value does not fit decimal128(5, 1)"),
    _refused("digits", _decimal(4, 2), pa.decimal128(9, 2), Decimal(100), "a value does not fit decimal128(4, 2)"),
    _refused("not UTF-8", "string", pa.binary(), b"\xff", "a value does not fit string"),
    _refused(
        "micros",
        _logical("long", "timestamp-millis"),
        LOCALS,
        _NAIVE.replace(microsecond=1),
        "a value does not fit timestamp[ms, tz=UTC]",
    ),
    _refused("year 10000", _logical("int", "date"), pa.int32(), 2_932_897, RANGE),
    _refused("negative time", _logical("int", "time-millis"), pa.int32(), -1, RANGE),
    _refused("no members", UNION, MEMBERS, {"member0": None, "member1": None}, f"{ONE_MEMBER} none"),
    _refused("two members", UNION, MEMBERS, {"member0": 1, "member1": []}, f"{ONE_MEMBER} several"),
    _refused("in a member", UNION, MEMBERS, {"member0": None, "member1": [None]}, NO_VALUE, "f|1[]"),
    _refused(
        "what cannot be converted goes first",
        POINT,
        pa.struct([("x", pa.int32()), ("y", pa.binary())]),
        {"x": None, "y": b"\xff"},
        "a value does not fit string",
        "f.y",
    ),
]
RULES = [*_VALUES, *_CONVERTED, *_WHOLE, _SHORTER, *_MISFITS]
COLUMNS: list[tuple[Any, str, str]] = [
    ("int", "f string", r"expected a column of int32, got string \(at field f\)"),
    ("boolean", "f int", r"expected a column of bool, got int32 \(at field f\)"),
    ("float", "f double", r"expected a column of float, got double \(at field f\)"),
    ("string", "f array<int>", r"expected a column of string, got list<element: int32> \(at field f\)"),
    (_decimal(5, 2), "f int", r"expected a column of decimal128\(5, 2\), got int32 \(at field f\)"),
    (POINT, "f int", r"expected a struct, got int32 \(at field f\)"),
    (POINT, "f struct<x: int>", r"no such column, and null is not allowed \(at field f.y\)"),
    (POINT, "f struct<x: int, y: string, zebra: int>", r"the schema has no such field \(at field f.zebra\)"),
    (
        {"type": "array", "items": "int"},
        "f map<string, int>",
        r"expected a list, got map<string, int32> \(at field f\)",
    ),
    ({"type": "map", "values": "int"}, "f array<int>", r"expected a map, got list<element: int32> \(at field f\)"),
    ({"type": "map", "values": "int"}, "f map<int, int>", r"expected a column of string, got int32 \(at field f\{\}\)"),
    ("long", "f timestamp, g date", r"the schema has no such field \(at field g\)"),
]
"""Columns that do not fit a field f: its type, the types of the struct, and what the error says."""
