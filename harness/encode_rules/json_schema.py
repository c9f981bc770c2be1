"""The rules of encoding JSON: texts, with the numbers of orjson."""

import json
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import orjson
import pyarrow as pa

from harness.encode_rules import Answer, Rule, row
from strata.serdes.client import Schema
from strata.serdes.model import JSON

__all__ = ["RULES"]

NAIVE = datetime(1969, 12, 31, 23, 59, 59, 5)  # noqa: DTZ001 - UTC without saying so
FLOATS = [
    0.0, -0.0, 1.0, -1.5, 0.1, 1e15, 123456789012345.0, 9007199254740993.0, 1e16, 1.2345678901234568e17, 1e-4, 1e-5,
    0.00001234, 1e-6, 1.5e-7, 5e-324, 1e-323, 1.7976931348623157e308, 1e22, 123456.789, 2.0**63, 1 / 3,
]  # fmt: skip
PLAIN = "a/b zürich \U0001f68b \x7f\u2028"
ESCAPED = '"\\ \b\f\n\r\t \x00\x1f é'
XY = pa.struct([("x", pa.int32()), ("y", pa.int32())])
POINT = {"type": "object", "required": ["y"]}
# name -> type, value, text
_VALUES: dict[str, tuple[pa.DataType, Any, str]] = {
    "text": (pa.string(), PLAIN, f'"{PLAIN}"'),
    "escapes": (pa.string(), ESCAPED, r'"\"\\ \b\f\n\r\t \u0000\u001f é"'),
    "no text": (pa.string(), "", '""'),
    "least": (pa.int64(), -(2**63), str(-(2**63))),
    "greatest": (pa.int64(), 2**63 - 1, str(2**63 - 1)),
    "byte": (pa.int8(), -128, "-128"),
    "ten": (pa.int32(), 10, "10"),
    "truth": (pa.bool_(), True, "true"),
    "void": (pa.null(), None, "null"),
    "float": (pa.float32(), 0.1, "0.10000000149011612"),
    "money": (pa.decimal128(20, 2), Decimal("-123456789012345678.10"), "-123456789012345678.10"),
    "small": (pa.decimal128(38, 10), Decimal("1E-10"), "0.0000000001"),
    "data": (pa.binary(), b"\0\xff\x10", '"AP8Q"'),
    "day": (pa.date32(), datetime(1, 1, 1, tzinfo=UTC).date(), '"0001-01-01"'),
    "instant": (pa.timestamp("us", "UTC"), datetime(2026, 3, 1, 12, tzinfo=UTC), '"2026-03-01T12:00:00Z"'),
    "micros": (pa.timestamp("us", "UTC"), NAIVE.replace(tzinfo=UTC), '"1969-12-31T23:59:59.000005Z"'),
    "local": (pa.timestamp("us"), NAIVE, '"1969-12-31T23:59:59.000005"'),
    "list": (pa.list_(pa.int32()), [1, None], "[1,null]"),
    "nothing": (pa.list_(pa.int32()), [], "[]"),
    "map": (pa.map_(pa.string(), pa.int32()), [("b\n", 1), ("a", None)], '{"b\\n":1,"a":null}'),
    "struct": (XY, {"x": None, "y": None}, '{"y":null}'),
    "maybe": (XY, {"x": 1, "y": None}, '{"x":1,"y":null}'),
    **{f"double {number}": (pa.float64(), number, orjson.dumps(number).decode()) for number in FLOATS},
}
_SCHEMA = Schema(
    json.dumps(
        {
            "properties": {
                "f": {"type": "string"},
                "struct": {"$ref": "#/definitions/a~1b"},
                "maybe": {"oneOf": [{"type": "null"}, {"$ref": "#/definitions/a~1b"}]},
            },
            "required": ["void"],
            "definitions": {"a/b": POINT},
        }
    ),
    JSON,
)
# fields, reason, path
_MISFITS: list[tuple[dict[str, tuple[pa.DataType, Any]], str, str]] = [
    ({"f": (pa.float64(), float("nan"))}, "expected a finite number, got NaN or infinity", "f"),
    ({"f": (pa.list_(pa.float32()), [float("-inf")])}, "expected a finite number, got NaN or infinity", "f[]"),
    (
        {"f": (pa.struct([("g", pa.timestamp("us"))]), {"g": 2**62})},
        "expected a year from 1 to 9999",
        "f.g",
    ),
    ({"f": (pa.map_(pa.string(), pa.date32()), [("a", 2_932_897)])}, "expected a year from 1 to 9999", "f{}"),
]
# parts of a schema by which a row is validated: type, value, part, text
_VALID: dict[str, tuple[pa.DataType, Any, Any, str]] = {
    "text": (pa.string(), "zürich", {"type": "string"}, '"zürich"'),
    "integer": (pa.int64(), 2**62, {"type": "integer"}, str(2**62)),
    "number": (pa.float64(), 1.5, {"type": "number"}, "1.5"),
    "truth": (pa.bool_(), True, {"type": "boolean"}, "true"),
    "bytes": (pa.binary(), b"\0\xff", {"type": "string"}, '"AP8="'),
    "day": (pa.date32(), date(2026, 3, 1), {"type": "string", "format": "date"}, '"2026-03-01"'),
    "instant": (
        pa.timestamp("us", "Europe/Zurich"), datetime(2026, 3, 1, 12, tzinfo=UTC),
        {"type": "string", "format": "date-time"}, '"2026-03-01T12:00:00Z"',
    ),
    "local": (pa.timestamp("us"), NAIVE.replace(year=1), {"type": "string"}, '"0001-12-31T23:59:59.000005"'),
    "money": (pa.decimal128(19, 2), Decimal("12345678901234567.10"), {"type": "number"}, "12345678901234567.10"),
    "list": (pa.list_(pa.int64()), [1, None], {"type": "array"}, "[1,null]"),
    "map": (pa.map_(pa.string(), pa.int32()), [("a", 1)], {"type": "object"}, '{"a":1}'),
    "struct": (XY, {"x": 1, "y": None}, {"$ref": "#/definitions/point"}, '{"x":1,"y":null}'),
    "maybe": (XY, {"x": None, "y": None}, {"oneOf": [{"type": "null"}, {"$ref": "#/definitions/point"}]}, '{"y":null}'),
}  # fmt: skip
_VALIDATING = Schema(
    json.dumps(
        {
            "type": "object",
            "properties": {name: part for name, (*_, part, _) in _VALID.items()} | {"absent": {"type": "string"}},
            "definitions": {"point": POINT},
            "additionalProperties": False,
        }
    ),
    JSON,
)


def _rule(name: str, fields: Mapping[str, tuple[pa.DataType, Any]], answer: Answer) -> Rule:
    return Rule(name, _SCHEMA, row(fields), answer, {"validate": False})


RULES = [
    *(
        _rule(name, {name: (arrow, value)}, f'{{"{name}":{text}}}'.encode())
        for name, (arrow, value, text) in _VALUES.items()
    ),
    *(_rule(f"refused: {path}: {reason}", fields, (reason, path)) for fields, reason, path in _MISFITS),
    Rule(
        "every type, validated",
        _VALIDATING,
        row({name: (arrow, value) for name, (arrow, value, *_) in _VALID.items()} | {"absent": (pa.string(), None)}),
        ("{" + ",".join(f'"{name}":{text}' for name, (*_, text) in _VALID.items()) + "}").encode(),
    ),
    Rule("a null row", _SCHEMA, pa.nulls(1, pa.struct([("f", pa.string())])), None),
]
