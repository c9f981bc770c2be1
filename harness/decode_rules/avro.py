"""The rules of decoding Avro."""

import io
import json
import struct
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import fastavro

from harness.decode_rules import Rule, raw_frames, schema_of
from strata.serdes.client import Schema

__all__ = ["LIMITED", "RESOLUTION", "RULES"]


def _payload(schema: Any, value: Any) -> bytes:
    payload = io.BytesIO()
    fastavro.schemaless_writer(payload, fastavro.parse_schema(schema), value)
    return payload.getvalue()


def _r(*fields: dict[str, Any], name: str = "R", **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields), **more}


def _f(name: str, kind: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **more}


def _bits(number: float) -> int:
    """Return a double as `Plain.java` prints it."""
    return int(struct.unpack("<q", struct.pack("<d", number))[0])


def _logical(type_: Any, name: str, **more: Any) -> dict[str, Any]:
    return {"type": type_, "logicalType": name, **more}


def _fixed(size: int, **more: Any) -> dict[str, Any]:
    return {"type": "fixed", "name": "F", "size": size, **more}


A, B = _f("a", "int"), _f("b", "int")
ENUM = {"type": "enum", "name": "E", "symbols": ["X", "Y"]}
SHORT_ENUM = {**ENUM, "symbols": ["X"]}
INTS = {"type": "array", "items": "int"}
INT_MAP = {"type": "map", "values": "int"}
MONEY = {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 2}
WIDE = {"type": "fixed", "name": "W", "size": 16, "logicalType": "decimal", "precision": 38, "scale": 0}
MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
DEFAULTS = _r(
    _f("i", "int", default=1),
    _f("d", "double", default=0.5),
    _f("t", "boolean", default=True),
    _f("s", "string", default="é"),
    _f("y", "bytes", default="\u00ff"),
    _f("e", ENUM, default="Y"),
    _f("x", {"type": "fixed", "name": "X", "size": 1}, default="\u0001"),
    _f("n", ["null", "int"], default=None),
    _f("u", ["string", "int"], default="first"),
    _f("l", INTS, default=[1, 2]),
    _f("m", INT_MAP, default={"k": 3}),
    _f("r", _r(_f("in", _r(_f("z", "int"), name="Z")), name="In"), default={"in": {"z": 4}}),
    _f("c", MONEY, default="\u0064"),
    _f("at", MILLIS, default=5),
)
DEFAULTED = [1, _bits(0.5), True, "é", "ff", "Y", "01", None, ["first", None], [1, 2], {"k": 3}, [[4]], "1.00", 5000]
MISSING = "resolution: the reader's field b of R is not in the writer schema and has no default"
NO_SYMBOL = "resolution: the reader's enum has no symbol Y and no default"
OTHER = "resolution: the reader schema has int where the writer schema has"
# writer, reader, payload, value or, as a text, the reason; name
_RESOLVED: list[tuple[Any, Any, bytes, Any, str]] = [
    (_r(A, B), _r(B, A), b"\2\4", [2, 1], "fields that changed places"),
    (_r(A), _r(_f("b", "int", aliases=["a"])), b"\2", [1], "alias of a field"),
    (_r(A), _r(A, name="Other", aliases=["R"]), b"\2", [1], "alias of a record"),
    (_r(A), _r(A, name="Other"), b"\2", [1], "another name of the record"),
    (_r(), DEFAULTS, b"", DEFAULTED, "defaults"),
    (_r(A), _r(A, B), b"\2", MISSING, "no default"),
    (_r(_f("e", ENUM)), _r(_f("e", {**SHORT_ENUM, "default": "X"})), b"\2", ["X"], "enum with default"),
    (_r(_f("e", ENUM)), _r(_f("e", SHORT_ENUM)), b"\2", NO_SYMBOL, "enum without default"),
    (_r(_f("e", ENUM)), _r(_f("e", SHORT_ENUM)), b"\0", ["X"], "enum, the symbol that both have"),
    (INTS, INTS, b"\3\4\2\4\2\6\0", [1, 2, 3], "array in blocks, one with its size"),
    (INT_MAP, INT_MAP, b"\1\6\2j\2\2\2k\4\0", {"j": 1, "k": 2}, "map in blocks, one with its size"),
    (_r(A), _r(_f("a", "long")), b"\2", [1], "int to long"),
    (_r(A), _r(_f("a", "double")), b"\2", [_bits(1)], "int to double"),
    (_r(_f("a", "long")), _r(_f("a", "double")), b"\2", [_bits(1)], "long to double"),
    (_r(_f("a", "float")), _r(_f("a", "double")), b"\0\0\0?", [_bits(0.5)], "float to double"),
    (_r(_f("a", "string")), _r(_f("a", "bytes")), b"\2a", ["61"], "string to bytes"),
    (_r(_f("a", "bytes")), _r(_f("a", "string")), b"\2a", ["a"], "bytes to string"),
    (_r(_f("a", "long")), _r(A), b"\2", f"{OTHER} long", "long to int"),
    (["null", _r(A)], ["null", _r(A)], b"\0", None, "nullable record as a whole, null"),
    (["null", _r(A)], ["null", _r(A)], b"\2\2", [1], "nullable record as a whole"),
    (_r(_f("a", ["int", "string"])), _r(A), b"\0\2", [1], "branch that fits"),
    (_r(_f("a", ["int", "string"])), _r(A), b"\2\2x", f"{OTHER} string", "branch that does not fit"),
    (_r(A), _r(_f("a", ["string", "int"])), b"\2", [[None, 1]], "into a union"),
    (_r(_f("a", ["int", "long"])), _r(_f("a", ["int", "long"])), b"\0\2", [1], "int or long"),
    (_r(_f("a", MONEY)), _r(_f("a", MONEY)), b"\4\xff\x38", ["-2.00"], "decimal in bytes"),
    (_r(_f("a", MONEY)), _r(_f("a", MONEY)), b"\x14\x7f" + b"\xff" * 9, "out of range", "decimal too wide"),
    (_r(_f("a", WIDE)), _r(_f("a", WIDE)), b"\xff" * 16, ["-1"], "decimal in a fixed"),
    (_r(_f("a", MILLIS)), _r(_f("a", MILLIS)), b"\3", [-2000], "milliseconds to Spark's microseconds"),
]


NOT_VALID = "resolution: the default of the reader's field a of R is not valid: "
OUT_OF_RANGE = "resolution: a default of the reader schema is out of range"
SMALL_MONEY = {**MONEY, "precision": 3}
FIXED = {"type": "fixed", "name": "F", "size": 1}
MANY = {"k": ["é'", None, True, 1e16, 0.5, -7], "l": "x" * 60}
MANY_SHOWN = """{'k': ["é'", None, True, 1e+16, 0.5, -7], 'l': 'xxxxxxxxxxxx"""
NO_BYTE = "'latin-1' codec can't encode"
# type, default, value or, as a text, the reason
_DEFAULT_VALUES: list[tuple[Any, Any, Any]] = [
    ("int", 1.0, 1),
    ("int", 1.5, f"{NOT_VALID}expected int, got 1.5"),
    ("int", True, f"{NOT_VALID}expected int, got True"),
    ("int", "x", f"{NOT_VALID}expected int, got 'x'"),
    ("int", MANY, f"{NOT_VALID}expected int, got {MANY_SHOWN}"),
    ("int", 2**31, OUT_OF_RANGE),
    ("int", float("inf"), f"{NOT_VALID}cannot convert float infinity to integer"),
    ("long", -(2**63), -(2**63)),
    ("long", float("nan"), f"{NOT_VALID}cannot convert float NaN to integer"),
    ("double", 2**70, _bits(2**70)),
    ("double", float("-inf"), _bits(float("-inf"))),
    ("double", 10**400, f"{NOT_VALID}int too large to convert to float"),
    ("double", "1.5", f"{NOT_VALID}expected double, got '1.5'"),
    ("float", "one", f"{NOT_VALID}expected float, got 'one'"),
    ("null", 0, f"{NOT_VALID}expected null, got 0"),
    ("bytes", "\u0100", rf"{NOT_VALID}{NO_BYTE} character '\u0100' in position 0: ordinal not in range(256)"),
    ("bytes", "a\u0100🚋", f"{NOT_VALID}{NO_BYTE} characters in position 1-2: ordinal not in range(256)"),
    ({"type": "int", "logicalType": "date"}, "x", f"{NOT_VALID}expected int, got 'x'"),
    (SMALL_MONEY, "\u0003\u00e7", "9.99"),
    (SMALL_MONEY, "", "0.00"),
    (SMALL_MONEY, "\u0003\u00e8", f"{NOT_VALID}a decimal has more than 3 digits"),
    (FIXED, "ab", f"{NOT_VALID}expected fixed F, got 'ab'"),
    (ENUM, "Z", f"{NOT_VALID}expected enum E, got 'Z'"),
    (INTS, [1, "2"], f"{NOT_VALID}expected int, got '2'"),
    (INTS, {}, f"{NOT_VALID}expected array, got {{}}"),
    (INTS, [0] * 10_000, f"{NOT_VALID}the default holds too many values"),
    (INT_MAP, {"k": 2**40}, OUT_OF_RANGE),
    (_r(B, name="In"), {}, f"{NOT_VALID}the default has no value for b"),
    (_r(_f("b", "int", default=7), name="In"), {"c": 1}, [7]),
    (["null", "int"], 5, 5),
    (["int", "null"], None, None),
    (["string", INTS], [1], [None, [1]]),
    (["string", "int"], None, f"{NOT_VALID}expected union of string, int, got None"),
    (["string", _r(B, name="In")], {"b": "c"}, f"{NOT_VALID}expected union of string, record In, got {{'b': 'c'}}"),
    (["int", "string"], 2**31, OUT_OF_RANGE),
]

COLOURS = {"type": "enum", "name": "Colour", "symbols": ["RED", "GREEN"]}
POINT = _r(_f("x", "int"), _f("y", ["null", "int"]), name="Point")
INSTANT = datetime(2026, 3, 1, 12, 30, 0, 123000, UTC)
LOCAL = datetime(2026, 3, 1, 12, 30, 0, 123000)  # noqa: DTZ001 - a local timestamp has no zone
MICRO_INSTANT = INSTANT.replace(microsecond=123456)
OTHER_WHOLE = "resolution: the reader schema has record R where the writer schema has string"

# name, reader schema, Spark type, values as fastavro writes them, values as Arrow gives them back
_TYPES: list[tuple[str, Any, str, list[Any], list[Any]]] = [
    ("null", "null", "void", [None], [None]),
    ("boolean", "boolean", "boolean", [True, False], [True, False]),
    ("int", "int", "int", [0, -1, 2**31 - 1, -(2**31)], [0, -1, 2**31 - 1, -(2**31)]),
    ("long", "long", "bigint", [2**63 - 1, -(2**63)], [2**63 - 1, -(2**63)]),
    ("float", "float", "float", [0.5, float("inf")], [0.5, float("inf")]),
    ("double", "double", "double", [0.1, -1e300], [0.1, -1e300]),
    ("bytes", "bytes", "binary", [], []),
    ("string", "string", "string", ["", "zürich 🚋"], ["", "zürich 🚋"]),
    ("enum", COLOURS, "string", ["RED", "GREEN"], ["RED", "GREEN"]),
    ("fixed", _fixed(2), "binary", [b"\0\xff"], [b"\0\xff"]),
    ("date", _logical("int", "date"), "date", [date(1969, 12, 31)], [date(1969, 12, 31)]),
    ("time-millis", _logical("int", "time-millis"), "int", [86_399_999], [86_399_999]),
    ("time-micros", _logical("long", "time-micros"), "bigint", [1], [1]),
    ("timestamp-millis", _logical("long", "timestamp-millis"), "timestamp", [INSTANT], [INSTANT]),
    ("timestamp-micros", _logical("long", "timestamp-micros"), "timestamp", [MICRO_INSTANT], [MICRO_INSTANT]),
    ("timestamp-nanos", _logical("long", "timestamp-nanos"), "bigint", [17], [17]),
    ("local-timestamp-millis", _logical("long", "local-timestamp-millis"), "timestamp_ntz", [LOCAL], [LOCAL]),
    ("local-timestamp-micros", _logical("long", "local-timestamp-micros"), "timestamp_ntz", [LOCAL], [LOCAL]),
    ("local-timestamp-nanos", _logical("long", "local-timestamp-nanos"), "bigint", [17], [17]),
    ("uuid is not checked", _logical("string", "uuid"), "string", ["not-a-uuid"], ["not-a-uuid"]),
    ("uuid in a fixed", _fixed(16, logicalType="uuid"), "binary", [b"0123456789abcdef"], [b"0123456789abcdef"]),
    ("duration", _fixed(12, logicalType="duration"), "binary", [b"0123456789ab"], [b"0123456789ab"]),
    (
        "decimal in a fixed",
        _fixed(16, logicalType="decimal", precision=38, scale=10),
        "decimal(38,10)",
        [Decimal("-1234567890123456789012345678.0123456789")],
        [Decimal("-1234567890123456789012345678.0123456789")],
    ),
    (
        "decimal in bytes",
        _r(_f("d", _logical("bytes", "decimal", precision=9, scale=2))),
        "struct<d:decimal(9,2)>",
        [{"d": Decimal("-12.30")}, {"d": Decimal("9999999.99")}],
        [{"d": Decimal("-12.30")}, {"d": Decimal("9999999.99")}],
    ),
    (
        "decimal that Avro ignores",
        _r(_f("d", _logical("bytes", "decimal", precision=2, scale=9))),
        "struct<d:binary>",
        [],
        [],
    ),
    ("nullable", ["null", "int"], "int", [None, 7], [None, 7]),
    ("nullable, null last", ["string", "null"], "string", ["a", None], ["a", None]),
    ("union of one", ["int"], "int", [7], [7]),
    ("union of null alone", ["null"], "void", [None], [None]),
    ("int and long", ["int", "long"], "bigint", [1, 2**40], [1, 2**40]),
    ("nullable long and int", ["null", "long", "int"], "bigint", [1, None], [1, None]),
    ("float and double", ["float", "double"], "double", [0.5], [0.5]),
    (
        "union of two",
        ["int", "string"],
        "struct<member0:int,member1:string>",
        [1, "a"],
        [{"member0": 1, "member1": None}, {"member0": None, "member1": "a"}],
    ),
    (
        "nullable union of three, null in the middle",
        ["string", "null", POINT, COLOURS],
        "struct<member0:string,member1:struct<x:int,y:int>,member2:string>",
        ["s", None, ("Point", {"x": 1, "y": None}), ("Colour", "RED")],
        [
            {"member0": "s", "member1": None, "member2": None},
            None,
            {"member0": None, "member1": {"x": 1, "y": None}, "member2": None},
            {"member0": None, "member1": None, "member2": "RED"},
        ],
    ),
    ("array", {"type": "array", "items": "int"}, "array<int>", [[1, 2], [], [3]], [[1, 2], [], [3]]),
    (
        "array of nullable arrays",
        {"type": "array", "items": ["null", {"type": "array", "items": ["null", "int"]}]},
        "array<array<int>>",
        [[None, [1, None], []], []],
        [[None, [1, None], []], []],
    ),
    (
        "map",
        {"type": "map", "values": "double"},
        "map<string,double>",
        [{"a": 1.0, "b": 2.0}, {}],
        [[("a", 1.0), ("b", 2.0)], []],
    ),
    (
        "map of nullable maps",
        {"type": "map", "values": ["null", {"type": "map", "values": "int"}]},
        "map<string,map<string,int>>",
        [{"a": None, "b": {"c": 1}}],
        [[("a", None), ("b", [("c", 1)])]],
    ),
    (
        "nullable record of everything nested",
        [
            "null",
            _r(
                _f("points", {"type": "array", "items": POINT}),
                _f("by", {"type": "map", "values": POINT.get("name")}),
            ),
        ],
        "struct<points:array<struct<x:int,y:int>>,by:map<string,struct<x:int,y:int>>>",
        [None, {"points": [{"x": 1, "y": 2}], "by": {"k": {"x": 3, "y": None}}}],
        [None, {"points": [{"x": 1, "y": 2}], "by": [("k", {"x": 3, "y": None})]}],
    ),
    ("record without fields", _r(), "struct<>", [{}, {}], [{}, {}]),
]


def _rule(name: str, writer: Any, reader: Any, payloads: list[bytes], *answers: dict[str, Any], **more: Any) -> Rule:
    return Rule(name, schema_of(writer), schema_of(reader), payloads, answers, **more)


def _answer(value: Any, *, is_reason: bool) -> dict[str, Any]:
    return {"reason" if is_reason else "value": value}


def _of_resolution() -> Iterator[Rule]:
    for writer, reader, payload, answer, name in _RESOLVED:
        yield _rule(name, writer, reader, [payload], _answer(answer, is_reason=isinstance(answer, str)))


def _of_defaults() -> Iterator[Rule]:
    for type_, default, answer in _DEFAULT_VALUES:
        is_reason = str(answer).startswith("resolution")
        reader = _r(_f("a", type_, default=default))
        name = f"default {str(default)[:40]} of {json.dumps(type_)}"
        answers = _answer(answer if is_reason else [answer], is_reason=is_reason)
        yield _rule(name, _r(), reader, [b""], answers, not_in_sql=True)


def _of_types() -> Iterator[Rule]:
    for name, schema, type_, written, read in _TYPES:
        payloads = [_payload(schema, value) for value in written]
        yield _rule(f"type: {name}", schema, schema, payloads, type=type_, values=read)
    # Registry clients write top-level bytes without a length.
    yield _rule("bytes as a whole", "bytes", "bytes", [b"\1\2"], {"value": "0102"}, type="binary")
    beyond = _payload("long", 2**62)
    event = _r(_f("at", MILLIS))
    late = _r(_f("at", _logical("long", "timestamp-micros")))
    yield _rule("an instant beyond microseconds", event, event, [beyond], {"reason": "out of range"})
    yield _rule("another schema as a whole", "string", event, [b"\2a"], {"reason": OTHER_WHOLE})
    yield _rule("the last instant", late, late, [_payload("long", 2**63 - 1)], {"value": [2**63 - 1]})


_FLIGHT = [_f("carrier", "string"), _f("delay", "long"), _f("gate", ["null", "string"], default=None)]
FLIGHT = _r(*_FLIGHT, name="Flight")
# writers of the versions before
FLIGHT_1 = _r(_FLIGHT[0], _f("delay", "int"), _f("old", "string"), name="Flight")
FLIGHT_2 = _r(*_FLIGHT[:2], _f("old", "string"), _FLIGHT[2], name="Flight")
# name, payload, reason
_DAMAGED: list[tuple[str, bytes, str]] = [
    ("nothing", b"", "truncated"),
    ("the last byte is missing", b"\4UA\2\2\4B", "truncated"),
    ("trailing bytes", b"\4UA\2\0\0", "trailing bytes"),
    ("invalid UTF-8", b"\4\xc3\x28\2\0", "invalid utf-8"),
    ("a negative length", b"\3UA\2\0", "negative length"),
    ("a branch that there is not", b"\4UA\2\x08\4B7", "invalid index"),
]


def _of_flights() -> Iterator[Rule]:
    """Yield rules of one column: frames of several writers, good ones and damaged ones."""
    good = {"value": ["UA", 1, None]}
    yield _rule("a flight", FLIGHT, FLIGHT, [b"\4UA\2\0", b"\4UA\2\2\4B7"], good, {"value": ["UA", 1, "B7"]})
    yield _rule("a flight of the first version", FLIGHT_1, FLIGHT, [b"\4UA\2\2x"], good)
    for name, payload, reason in _DAMAGED:
        yield _rule(f"damage: {name}", FLIGHT, FLIGHT, [payload], {"reason": reason})
    yield _rule("a flight of the second version", FLIGHT_2, FLIGHT, [b"\4UA\2\2x\0"], good)
    yield from raw_frames(schema_of(FLIGHT), b"\4UA\2\0", (Schema("{}", "JSON"),))
    broken = b"\4\xc3\x28\2\2x"
    chosen = {"columns": ["old", "delay"]}
    yield _rule(
        "a field that is not chosen may be damaged",
        FLIGHT_1,
        FLIGHT_1,
        [broken],
        {"value": ["x", 1]},
        options=chosen,
        not_in_sql=True,
    )


def _of_aliases() -> Iterator[Rule]:
    """Yield a rule of records that are long enough for shortcuts."""
    others = [_f(f"z{number}", "long") for number in range(9)]
    shared = {"type": ["null", "long"], "aliases": ["a"]}
    writer = _r(others[0], _f("a", ["null", "long"]), *others[1:])
    reader = _r(others[0], {"name": "x", **shared}, {"name": "y", **shared}, *others[1:])
    yield _rule(
        "two fields that share an alias",
        writer,
        reader,
        [b"\x0a\x00" + b"\x0a" * 8, b"\x0a\x02\x06" + b"\x0a" * 8],
        {"value": [5, None, None, *[5] * 8]},
        {"value": [5, 3, 3, *[5] * 8]},
    )


def _of_unions() -> Iterator[Rule]:
    spaces = [_r(_f("x", "int"), name=f"{space}.Same") for space in "ab"]
    unions = _r(_f("u", ["null", "int", "string", INTS, *spaces]))
    payloads = [_payload(unions, {"u": value}) for value in (5, "a", [1], None)]
    answers = [
        {"value": [value]}
        for value in ([5, *[None] * 4], [None, "a", *[None] * 3], [None, None, [1], None, None], None)
    ]
    type_ = "struct<u:struct<int:int,string:string,array:array<int>,a_Same:struct<x:int>,b_Same:struct<x:int>>>"
    yield _rule(
        "union names", unions, unions, payloads, *answers, type=type_, options={"union_names": "type"}, not_in_sql=True
    )


RESOLUTION = tuple(_of_resolution())
"""The rules of resolution, which Avro's own library follows too."""
RULES = (*RESOLUTION, *_of_defaults(), *_of_types(), *_of_flights(), *_of_aliases(), *_of_unions())
"""All rules of Avro."""


def _of_limits() -> Iterator[Rule]:
    item = _r(_f("n", "int"), name="Item")
    large = _r(_f("n", "int"), _f("large", "string", default="x" * 200_000), name="Item")
    writer, reader = (_r(_f("items", {"type": "array", "items": each}), _f("after", "int")) for each in (item, large))
    few, many = b"\4\2\2\0\2", b"\x80\x19" + b"\2" * 1600 + b"\0\2"
    yield _rule("a few large defaults", writer, reader, [few], {"value": [[[1, "x" * 200_000]] * 2, 1]})
    yield _rule("defaults beyond the limit of a row", writer, reader, [many], {"reason": "limit"})


LIMITED = tuple(_of_limits())
"""Rules of limits that only the JVM has."""
