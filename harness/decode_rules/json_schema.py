"""The rules of decoding JSON."""

import json
from collections.abc import Iterator
from typing import Any

from harness.decode_rules import Rule, raw_frames, schema_of
from harness.payload_columns import json_schema, proto

__all__ = ["GOOD", "RICH", "RULES"]

_DRAFT_4 = "http://json-schema.org/draft-04/schema#"
_DRAFT_2020 = "https://json-schema.org/draft/2020-12/schema"
_INT, _NUM, _STR = {"type": "integer"}, {"type": "number"}, {"type": "string"}
_POINT = {"type": "object", "properties": {"x": _NUM, "y": _NUM}}
_A_POINT = "struct<x:double,y:double>"
_PLACE = {"type": "object", "properties": {"x": _NUM, "y": _STR}}
RICH = {
    "type": "object",
    "properties": {
        "id": _INT,
        "name": _STR,
        "price": _NUM,
        "ok": {"type": "boolean"},
        "gone": {"type": "null"},
        "any": {},
        "point": _PLACE,
        "points": {"type": "array", "items": _PLACE},
        "many": {"type": "array", "items": _INT},
        "texts": {"type": "array", "items": _STR},
        "flags": {"type": "array", "items": {"type": "boolean"}},
        "by": {"type": "object", "additionalProperties": _INT},
        "places": {"type": "object", "additionalProperties": _PLACE},
    },
}
GOOD: dict[str, Any] = {
    "id": 7,
    "name": "zürich",
    "price": 1.5,
    "ok": True,
    "gone": None,
    "any": {"a": [1, 2.5]},
    "point": {"x": 1, "y": "a"},
    "points": [{"x": 0.1}, None, {"y": ""}],
    "many": [1, None, 3],
    "texts": ["a", "", None],
    "flags": [True, False],
    "by": {"a": 1, "b": None},
    "places": {"here": {"x": 2}, "": None},
}
_ORDER = {
    "properties": {
        "id": _INT,
        "ok": {"type": "boolean"},
        "lines": {"type": "array", "items": {"properties": {"price": _NUM, "sku": _STR}}},
        "by": {"type": "object", "additionalProperties": _INT},
    }
}


def _from(low: int) -> dict[str, Any]:
    """Return the schema of integers from a number on."""
    return {"type": "integer", "minimum": low}


def _deep(depth: int) -> str:
    return "[" * depth + "1e-7" + "]" * depth


# name, schema, Spark type, values, the column where it differs
_TYPES: list[tuple[str, Any, str, list[Any], list[Any] | None]] = [
    ("string", _STR, "string", ["zürich", "", None], None),
    ("date-time", {"type": "string", "format": "date-time"}, "string", ["2026-01-01T00:00:00Z"], None),
    ("integer", _INT, "bigint", [-(2**63), 2**63 - 1, None], None),
    ("integer written as a number", _INT, "bigint", [1.0, -2e3], [1, -2000]),
    ("number", _NUM, "double", [0.1, -1e300], None),
    ("number without fraction", _NUM, "double", [1, 2**60 + 1, 10**30], [1.0, 2.0**60, 1e30]),
    ("boolean", {"type": "boolean"}, "boolean", [True, False], None),
    ("null", {"type": "null"}, "void", [None], None),
    ("array", {"type": "array", "items": _STR}, "array<string>", [["a", None], [], None], None),
    ("array of anything", {"type": "array"}, "array<string>", [["a", {"b": 1}]], [['"a"', '{"b":1}']]),
    ("tuple of one type", {"items": [_from(0), _INT], "additionalItems": False, "type": "array"}, "array<bigint>",
     [[1, 2]], None),
    ("open tuple", {"items": [_from(0)], "type": "array"}, "array<string>", [[1, "a"]], [["1", '"a"']]),
    ("tuple and rest", {"$schema": _DRAFT_2020, "prefixItems": [_from(0)], "items": _NUM}, "array<double>",
     [[1, 2.5]], None),
    ("object", _POINT, _A_POINT, [{"x": 1.5, "y": None}, None], None),
    ("absent and additional", _POINT, _A_POINT, [{"x": 1.5, "z": "not asked for"}], [{"x": 1.5, "y": None}]),
    ("properties alone", {"properties": {"a b": _STR}}, "struct<a b:string>", [{"a b": "x"}], None),
    ("map", {"type": "object", "additionalProperties": _INT}, "map<string,bigint>", [{"a": 1, "b": None}, {}], None),
    ("map by patterns",
     {"patternProperties": {"^a": _INT, "^b": _NUM}, "additionalProperties": False, "type": "object"},
     "map<string,double>", [{"a": 1.0, "b": 2.5}], None),
    ("object of anything", {"type": "object"}, "string", [{"a": [1, 2.0]}], ['{"a":[1,2.0]}']),
    ("open patterns", {"type": "object", "patternProperties": {"^a": _INT}}, "string", [{"b": "x"}], ['{"b":"x"}']),
    ("anything", True, "string", ["a", 1, {}, [None], None], ['"a"', "1", "{}", "[null]", None]),
    ("anything, long integers", True, "string", [10**30, [[2**64]]], [str(10**30), f"[[{2**64}]]"]),
    ("or null", {"type": ["string", "null"], "minLength": 1}, "string", ["a", None], None),
    ("oneOf with null", {"oneOf": [{"type": "null"}, _POINT]}, _A_POINT, [{"x": 1.0, "y": 2.0}, None], None),
    ("integer or number", {"type": ["integer", "number"]}, "double", [1.5], None),
    ("string or integer", {"type": ["string", "integer"]}, "string", ["1", 1], ['"1"', "1"]),
    ("alike", {"anyOf": [_from(0), {"type": "integer", "maximum": -9}]}, "bigint", [1, -9], None),
    ("object or string", {"oneOf": [_POINT, _STR]}, "string", [{"x": 1}, "a"], ['{"x":1}', '"a"']),
    ("allOf", {"allOf": [_POINT, {"properties": {"z": _INT, "x": _from(0)}}]}, "struct<x:bigint,y:double,z:bigint>",
     [{"x": 1, "y": 2.0, "z": 3}], None),
    ("allOf of an object and a map", {"allOf": [_POINT, {"type": "object", "additionalProperties": _NUM}]}, _A_POINT,
     [{"x": 1.0, "y": 2.0}], None),
    ("allOf of arrays", {"allOf": [{"type": "array", "items": _NUM}, {"type": "array", "items": _INT}]},
     "array<bigint>", [[1, 2]], None),
    ("oneOf that only requires", {**_POINT, "oneOf": [{"required": ["x"]}, {"required": ["y"]}]}, _A_POINT,
     [{"x": 1.0, "y": None}], None),
    ("conditions", {**_POINT, "if": {"required": ["x"]}, "then": {"required": ["y"]}, "not": {"required": ["z"]}},
     _A_POINT, [{"x": 1.0, "y": 2.0}], None),
    ("enum of strings", {"enum": ["a", "b", None]}, "string", ["a", None], None),
    ("enum of numbers", {"enum": [1, 2.5]}, "double", [2.5], None),
    ("enum of several", {"enum": ["a", 1]}, "string", ["a", 1], ['"a"', "1"]),
    ("enum of nothing", {"enum": []}, "string", ["a"], ['"a"']),
    ("type and enum", {"type": "string", "enum": ["a"]}, "string", ["a"], None),
    ("const", {"const": True}, "boolean", [True], None),
    ("ref", {"$ref": "#/definitions/p", "definitions": {"p": _POINT}}, _A_POINT, [{"x": 1.0, "y": 2.0}], None),
    ("draft 4",
     {"$schema": _DRAFT_4, "id": "http://x/y", "properties": {"a": {"$ref": "#/definitions/p"}},
      "definitions": {"p": _POINT}},
     f"struct<a:{_A_POINT}>", [{"a": None}], None),
    ("2020-12, beside a ref",
     {"$schema": _DRAFT_2020, "$defs": {"p": {"$anchor": "here", **_POINT}}, "$ref": "#here",
      "properties": {"z": _STR}},
     "struct<x:double,y:double,z:string>", [{"x": 1.0, "y": 2.0, "z": "a"}], None),
]  # fmt: skip

# name, payload, reason
_DAMAGED: list[tuple[str, Any, str]] = [
    ("string for an integer", {"id": "1"}, "invalid value: expected integer, got string at id"),
    ("fraction for an integer", {"id": 1.5}, "invalid value: expected integer, got number at id"),
    ("boolean for an integer", {"id": True}, "invalid value: expected integer, got boolean at id"),
    ("integer beyond 64 bits", {"id": 2**63}, "out of range"),
    ("integer far beyond", {"id": 10**40}, "out of range"),
    ("integer for a boolean", {"ok": 1}, "invalid value: expected boolean, got integer at ok"),
    ("object for an array", {"lines": {}}, "invalid value: expected array, got object at lines"),
    ("integer in an array", {"lines": [1]}, "invalid value: expected object, got integer at lines[]"),
    ("boolean for a number", {"lines": [{}, {"price": True}]},
     "invalid value: expected number, got boolean at lines[].price"),
    ("number beyond doubles", {"lines": [{"price": 10**400}]}, "out of range"),
    ("array for a string", {"lines": [{"sku": []}]}, "invalid value: expected string, got array at lines[].sku"),
    ("in a map, its key not told", {"by": {"secret": "x"}}, "invalid value: expected integer, got string at by{}"),
    ("of several, the first", {"by": {"a": "x", "b": True, "c": []}},
     "invalid value: expected integer, got string at by{}"),
    ("array for a map", {"by": []}, "invalid value: expected object, got array at by"),
    ("array for the whole", [], "invalid value: expected object, got array"),
    ("nothing", b"", "malformed"),
    ("cut", b'{"id": 1', "malformed"),
    ("trailing bytes", b'{"id": 1}}', "malformed"),
    ("NaN", b'{"id": NaN}', "malformed"),
    ("no UTF-8", b'{"ok": "\xff"}', "malformed"),
    ("deep, unfinished", b"[" * 100_000, "malformed"),
    ("deep", b"[" * 100_000 + b"]" * 100_000, "malformed"),
]  # fmt: skip


# name, payload, the fields that are not null or the reason
_ODD: list[tuple[str, str, Any]] = [
    ("a value", json.dumps(GOOD),
     {**GOOD, "any": '{"a":[1,2.5]}', "point": {"x": 1.0, "y": "a"}, "points": [{"x": 0.1}, None, {"y": ""}],
      "places": {"here": {"x": 2.0}, "": None}}),
    ("nothing known", "{}", {}),
    ("null", "null", None),
    ("white space", '\t{ "id"\r:\n1 , "by" : { } , "many":[ ] } ', {"id": 1, "many": [], "by": {}}),
    ("another order", '{"places":{"a":{"y":"b","x":1}},"texts":["x"],"name":"n","id":3}',
     {"id": 3, "name": "n", "texts": ["x"], "places": {"a": {"x": 1.0, "y": "b"}}}),
    ("unknown properties", '{"z":[{"a":"\\u00e9"},[]],"id":1,"zz":{"id":2},"zzz":-1.5e-3,"z4":null,"z5":true}',
     {"id": 1}),
    ("a name twice", '{"id":1,"name":"a","id":2}', {"id": 2, "name": "a"}),
    ("a name twice, the first of another type", '{"id":"x","id":2}', {"id": 2}),
    ("a name twice, the last of another type", '{"id":2,"id":"x"}',
     "invalid value: expected integer, got string at id"),
    ("a name twice inside", '{"points":[{"x":1,"x":2,"y":"a"}],"any":{"b":1,"a":2,"b":3}}',
     {"any": '{"b":3,"a":2}', "points": [{"x": 2.0, "y": "a"}]}),
    ("a key of a map twice", '{"by":{"a":1,"b":2,"a":3},"places":{"k":{"x":1},"k":null}}',
     {"by": {"a": 3, "b": 2}, "places": {"k": None}}),
    ("an unknown name twice", '{"q":1,"q":{},"id":1}', {"id": 1}),
    ("escaped names", '{"\\u0069d":1,"na\\u006de":"a","by":{"\\u0061":1,"a\\n":2}}',
     {"id": 1, "name": "a", "by": {"a": 1, "a\n": 2}}),
    ("an escaped name twice", '{"id":1,"\\u0069d":2}', {"id": 2}),
    ("escapes", '{"name":"\\"\\\\\\/\\b\\f\\n\\r\\t\\u0000\\u00e9\\ud83d\\ude00\\u2028"}',
     {"name": '"\\/\x08\x0c\n\r\t\x00é😀\u2028'}),
    ("a lone high surrogate", '{"name":"\\ud800"}', "malformed"),
    ("a lone low surrogate", '{"name":"\\udc00"}', "malformed"),
    ("two high surrogates", '{"name":"\\ud800\\ud800"}', "malformed"),
    ("a lone surrogate in an unknown property", '{"z":"\\ud800"}', "malformed"),
    ("an unknown escape", '{"name":"\\x41"}', "malformed"),
    ("an escape cut short", '{"name":"\\u00e"}', "malformed"),
    ("an escape at the end", '{"name":"\\', "malformed"),
    ("control characters", '{"name":"a\tb"}', "malformed"),
    ("integers with a point", '{"id":1.0,"many":[2e3,-0.0,1E+2,10e-1]}', {"id": 1, "many": [2000, 0, 100, 1]}),
    ("the largest integers", '{"many":[9223372036854775807,-9223372036854775808,999999999999999999]}',
     {"many": [9223372036854775807, -9223372036854775808, 999999999999999999]}),
    ("an integer beyond 64 bits", '{"id":9223372036854775808}', "out of range"),
    ("an integer far beyond", '{"id":' + "9" * 300 + "}", "out of range"),
    ("a float beyond 64 bits", '{"id":1e19}', "out of range"),
    ("a fraction", '{"id":1.5}', "invalid value: expected integer, got number at id"),
    ("minus zero", '{"price":-0,"id":-0,"any":[-0,-0.0]}', {"id": 0, "price": 0.0, "any": "[0,-0.0]"}),
    ("minus zero with a point", '{"price":-0.0}', {"price": -0.0}),
    ("doubles", '{"points":[{"x":0.1},{"x":123456789.12345678},{"x":1e22},{"x":5e-324},{"x":1e-400},{"x":0e400}]}',
     {"points": [{"x": x, "y": None} for x in (0.1, 123456789.12345678, 1e22, 5e-324, 0.0, 0.0)]}),
    ("long digits", '{"price":0.1000000000000000055511151231257827021181583404541015625}', {"price": 0.1}),
    ("an integer as a double", '{"price":18014398509481985}', {"price": 1.8014398509481984e16}),
    ("a double beyond the largest", '{"price":1e400}', "out of range"),
    ("a double beyond the largest in an unknown property", '{"z":[-1e400]}', "out of range"),
    ("an integer beyond the largest double", '{"any":' + "9" * 400 + "}", "out of range"),
    ("a double beyond the largest, and then not JSON", '{"price":1e400,}', "out of range"),
    ("not JSON, and then a double beyond the largest", '{,"price":1e400}', "malformed"),
    ("a double beyond the largest, and not UTF-8", '{"price":1e400,"name":"ÿ"}', "malformed"),
    ("a leading zero", '{"id":01}', "malformed"),
    ("a plus", '{"id":+1}', "malformed"),
    ("no digits after the point", '{"price":1.}', "malformed"),
    ("no digits before the point", '{"price":.5}', "malformed"),
    ("no digits in the exponent", '{"price":1e}', "malformed"),
    ("a minus alone", '{"price":-}', "malformed"),
    ("not a number", '{"price":NaN}', "malformed"),
    ("half a literal", '{"ok":tru}', "malformed"),
    ("a comma too many", '{"id":1,}', "malformed"),
    ("a comma too many in an array", '{"many":[1,]}', "malformed"),
    ("no comma", '{"id":1 "ok":true}', "malformed"),
    ("no colon", '{"id" 1}', "malformed"),
    ("another bracket", '{"many":[1}', "malformed"),
    ("no end", '{"many":[1', "malformed"),
    ("two values", '{"id":1}{"id":2}', "malformed"),
    ("a comment", '{"id":1}/**/', "malformed"),
    ("a byte order mark", '\ufeff{"id":1}', "malformed"),
    ("nothing", "", "malformed"),
    ("white space alone", " ", "malformed"),
    ("anything", '{"any":[1e16,1e15,123456789012345680.0,0.00001,0.000001,-1.5e300,"\x7f\\u001f/",{"é":[]},[],{}]}',
     {"any": "[1e+16,1000000000000000.0,1.2345678901234568e+17,0.00001,1e-6,-1.5e+300,"
      '"\x7f\\u001f/",{"é":[]},[],{}]'}),
    ("anything with long integers", '{"any":[18446744073709551616,0.00001,1e-7,1e16,"\\u001f"]}',
     {"any": '[18446744073709551616,1e-05,1e-07,1e+16,"\\u001f"]'}),
    ("anything, and a long integer elsewhere", '{"any":[18446744073709551615,1e-7,-0],"id":1}',
     {"id": 1, "any": "[18446744073709551615,1e-7,0]"}),
    ("anything, deep", '{"any":' + _deep(254) + "}", {"any": _deep(254)}),
    ("anything, deeper", '{"any":' + _deep(255) + "}", {"any": _deep(255).replace("-7", "-07")}),
    ("too deep", '{"z":' + "[" * 1024 + "]" * 1024 + "}", "malformed"),
    ("of two faults the first column", '{"by":{"a":"x"},"id":"x"}',
     "invalid value: expected integer, got string at id"),
    ("of two faults in an array the first field", '{"points":[{"y":1},{"x":"a"}]}',
     "invalid value: expected number, got string at points[].x"),
    ("of three faults in an array the type", '{"many":[1e30,1.5,true,"x"]}',
     "invalid value: expected integer, got boolean at many[]"),
    ("of two faults in an array the fraction", '{"many":[1e30,1.5]}',
     "invalid value: expected integer, got number at many[]"),
    ("a null in place of all", '{"id":null,"name":null,"point":null,"points":null,"by":null,"ok":null,"many":[null]}',
     {"many": [None]}),
]  # fmt: skip

_CHOSEN = ("name", "points", "by")
# what these columns have where it is not the same; nothing else is looked at
_CHOSEN_ODD: dict[str, Any] = {
    "an integer beyond 64 bits": {},
    "an integer far beyond": {},
    "a float beyond 64 bits": {},
    "of two faults the first column": "invalid value: expected integer, got string at by{}",
}
_EXPECTED = {
    "id": "integer",
    "name": "string",
    "price": "number",
    "ok": "boolean",
    "gone": "null",
    "point": "object",
    "points": "array",
    "by": "object",
    "texts": "array",
    "flags": "array",
}
_VALUES = {"integer": "1", "string": '"a"', "array": "[1]", "object": '{"x":[]}'}
# what there is inside of a value of the right type; a number takes an integer
_INSIDE: dict[tuple[str, str], Any] = {
    ("id", "integer"): {"id": 1},
    ("price", "integer"): {"price": 1.0},
    ("name", "string"): {"name": "a"},
    ("point", "object"): "invalid value: expected number, got array at point.x",
    ("points", "array"): "invalid value: expected object, got integer at points[]",
    ("by", "object"): "invalid value: expected integer, got array at by{}",
    ("texts", "array"): "invalid value: expected string, got integer at texts[]",
    ("flags", "array"): "invalid value: expected boolean, got integer at flags[]",
}


def _outcome(outcome: Any) -> dict[str, Any]:
    return {"answers": ({"reason": outcome},)} if isinstance(outcome, str) else {"values": [outcome]}


def _bytes(payload: Any) -> bytes:
    return payload if isinstance(payload, bytes) else json.dumps(payload).encode()


def _of_types() -> Iterator[Rule]:
    for name, document, type_, written, read in _TYPES:
        schema = json_schema(document)
        values = written if read is None else read
        yield Rule(f"type: {name}", schema, schema, [*map(_bytes, written)], type=type_, values=values)
        if "$ref" in json.dumps(document):
            continue
        dialect = {"$schema": document["$schema"]} if isinstance(document, dict) and "$schema" in document else {}
        inside = json_schema({"properties": {"f": document}} | dialect)
        payloads = [_bytes({"f": value}) for value in written]
        values = [{"f": value} for value in values]
        yield Rule(f"type in a property: {name}", inside, inside, payloads, type=f"struct<f:{type_}>", values=values)


def _of_damage() -> Iterator[Rule]:
    order = json_schema(_ORDER)
    for name, payload, reason in _DAMAGED:
        yield Rule(f"damage: {name}", order, order, [_bytes(payload)], ({"reason": reason},))
    anything = json_schema(True)
    loop = json_schema({"properties": {"a": _INT, "b": {"$ref": "#"}, "c": _STR}})
    yield Rule(
        "a recursive property that is not chosen",
        loop,
        loop,
        [_bytes({"a": 1, "b": "no object", "c": "x"})],
        ({"value": ["x", 1]},),
        type="struct<c:string,a:bigint>",
        options={"columns": ["c", "a"]},
    )
    deep = "[" * 900 + "]" * 900
    yield Rule("a deep text", anything, anything, [deep.encode()], values=[deep])


def _of_odd_payloads() -> Iterator[Rule]:
    rich = json_schema(RICH)
    misfits = [
        (f"{name} for {column}", f'{{"{column}":{value}}}', _misfit(column, name))
        for column in _EXPECTED
        for name, value in _VALUES.items()
    ]
    for name, text, outcome in [*_ODD, *misfits]:
        payloads = [text.encode("latin-1" if "\xff" in text else "utf-8")]
        yield Rule(f"odd: {name}", rich, rich, payloads, **_outcome(outcome))
        chosen = _outcome(_CHOSEN_ODD.get(name, _of_chosen(outcome)))
        yield Rule(f"some columns of odd: {name}", rich, rich, payloads, options={"columns": _CHOSEN}, **chosen)


def _misfit(column: str, name: str) -> Any:
    reason = f"invalid value: expected {_EXPECTED[column]}, got {name} at {column}"
    return _INSIDE.get((column, name), reason)


def _of_chosen(outcome: Any) -> Any:
    """Return what the chosen columns have: nothing of the others is looked at, though they must be JSON."""
    if isinstance(outcome, dict):
        return {column: value for column, value in outcome.items() if column in _CHOSEN}
    place = outcome.partition(" at ")[2] if isinstance(outcome, str) else ""
    return {} if place and not place.startswith(_CHOSEN) else outcome


RULES = (
    *_of_types(),
    *_of_damage(),
    *_of_odd_payloads(),
    *raw_frames(json_schema(RICH), b"{}", (schema_of("string"), proto('syntax = "proto3"; message M {}'))),
)
"""All rules of JSON."""
