"""JSON Schemas become types of columns, and their values arrive; no Spark session is needed."""

import json
from typing import Any

import pytest

from harness.payload_columns import json_column, json_frame
from strata.serdes.client import RegistryClient
from strata.serdes.errors import SchemaError
from strata.spark_udfs.decoding.type_limits import UnsupportedSchema

DRAFT_4 = "http://json-schema.org/draft-04/schema#"
DRAFT_2020 = "https://json-schema.org/draft/2020-12/schema"


def integers(low: int) -> dict[str, Any]:
    """Return integers from a number on."""
    return {"type": "integer", "minimum": low}


INT, NUM, STR = {"type": "integer"}, {"type": "number"}, {"type": "string"}
POINT = {"type": "object", "properties": {"x": NUM, "y": NUM}}
A_POINT = "struct<x:double,y:double>"
# schema, Spark type, values, the column where it differs
TYPES: list[Any] = [
    pytest.param(STR, "string", ["zürich", "", None], None, id="string"),
    pytest.param({"type": "string", "format": "date-time"}, "string", ["2026-01-01T00:00:00Z"], None, id="date-time"),
    pytest.param(INT, "bigint", [-(2**63), 2**63 - 1, None], None, id="integer"),
    pytest.param(INT, "bigint", [1.0, -2e3], [1, -2000], id="integer written as a number"),
    pytest.param(NUM, "double", [0.1, -1e300], None, id="number"),
    pytest.param(NUM, "double", [1, 2**60 + 1, 10**30], [1.0, 2.0**60, 1e30], id="number without fraction"),
    pytest.param({"type": "boolean"}, "boolean", [True, False], None, id="boolean"),
    pytest.param({"type": "null"}, "void", [None], None, id="null"),
    pytest.param({"type": "array", "items": STR}, "array<string>", [["a", None], [], None], None, id="array"),
    pytest.param({"type": "array"}, "array<string>", [["a", {"b": 1}]], [['"a"', '{"b":1}']], id="array of anything"),
    pytest.param(
        {"items": [integers(0), INT], "additionalItems": False, "type": "array"},
        "array<bigint>", [[1, 2]], None, id="tuple of one type",
    ),
    pytest.param(
        {"items": [integers(0)], "type": "array"},
        "array<string>", [[1, "a"]], [["1", '"a"']], id="open tuple",
    ),
    pytest.param(
        {"$schema": DRAFT_2020, "prefixItems": [integers(0)], "items": NUM},
        "array<double>", [[1, 2.5]], None, id="tuple and rest",
    ),
    pytest.param(POINT, A_POINT, [{"x": 1.5, "y": None}, None], None, id="object"),
    pytest.param(
        POINT,
        A_POINT, [{"x": 1.5, "z": "not asked for"}], [{"x": 1.5, "y": None}], id="absent and additional",
    ),
    pytest.param({"properties": {"a b": STR}}, "struct<a b:string>", [{"a b": "x"}], None, id="properties alone"),
    pytest.param(
        {"type": "object", "additionalProperties": INT},
        "map<string,bigint>", [{"a": 1, "b": None}, {}], None, id="map",
    ),
    pytest.param(
        {"patternProperties": {"^a": INT, "^b": NUM}, "additionalProperties": False, "type": "object"},
        "map<string,double>", [{"a": 1.0, "b": 2.5}], None, id="map by patterns",
    ),
    pytest.param({"type": "object"}, "string", [{"a": [1, 2.0]}], ['{"a":[1,2.0]}'], id="object of anything"),
    pytest.param(
        {"type": "object", "patternProperties": {"^a": INT}},
        "string", [{"b": "x"}], ['{"b":"x"}'], id="open patterns",
    ),
    pytest.param(True, "string", ["a", 1, {}, [None], None], ['"a"', "1", "{}", "[null]", None], id="anything"),
    pytest.param(True, "string", [10**30, [[2**64]]], [str(10**30), f"[[{2**64}]]"], id="anything, long integers"),
    pytest.param({"type": ["string", "null"], "minLength": 1}, "string", ["a", None], None, id="or null"),
    pytest.param(
        {"oneOf": [{"type": "null"}, POINT]},
        A_POINT, [{"x": 1.0, "y": 2.0}, None], None, id="oneOf with null",
    ),
    pytest.param({"type": ["integer", "number"]}, "double", [1.5], None, id="integer or number"),
    pytest.param({"type": ["string", "integer"]}, "string", ["1", 1], ['"1"', "1"], id="string or integer"),
    pytest.param({"anyOf": [integers(0), {"type": "integer", "maximum": -9}]}, "bigint", [1, -9], None, id="alike"),
    pytest.param({"oneOf": [POINT, STR]}, "string", [{"x": 1}, "a"], ['{"x":1}', '"a"'], id="object or string"),
    pytest.param(
        {"allOf": [POINT, {"properties": {"z": INT, "x": integers(0)}}]},
        "struct<x:bigint,y:double,z:bigint>", [{"x": 1, "y": 2.0, "z": 3}], None, id="allOf",
    ),
    pytest.param(
        {**POINT, "oneOf": [{"required": ["x"]}, {"required": ["y"]}]},
        A_POINT, [{"x": 1.0, "y": None}], None, id="oneOf that only requires",
    ),
    pytest.param(
        {**POINT, "if": {"required": ["x"]}, "then": {"required": ["y"]}, "not": {"required": ["z"]}},
        A_POINT, [{"x": 1.0, "y": 2.0}], None, id="conditions",
    ),
    pytest.param({"enum": ["a", "b", None]}, "string", ["a", None], None, id="enum of strings"),
    pytest.param({"enum": [1, 2.5]}, "double", [2.5], None, id="enum of numbers"),
    pytest.param({"enum": ["a", 1]}, "string", ["a", 1], ['"a"', "1"], id="enum of several"),
    pytest.param({"enum": []}, "string", ["a"], ['"a"'], id="enum of nothing"),
    pytest.param({"type": "string", "enum": ["a"]}, "string", ["a"], None, id="type and enum"),
    pytest.param({"const": True}, "boolean", [True], None, id="const"),
    pytest.param(
        {"$ref": "#/definitions/p", "definitions": {"p": POINT}},
        A_POINT, [{"x": 1.0, "y": 2.0}], None, id="ref",
    ),
    pytest.param(
        {"$schema": DRAFT_4, "id": "http://x/y", "properties": {"a": {"$ref": "#/definitions/p"}},
         "definitions": {"p": POINT}},
        f"struct<a:{A_POINT}>", [{"a": None}], None, id="draft 4",
    ),
    pytest.param(
        {"$schema": DRAFT_2020, "$defs": {"p": {"$anchor": "here", **POINT}},
         "$ref": "#here", "properties": {"z": STR}},
        "struct<x:double,y:double,z:string>", [{"x": 1.0, "y": 2.0, "z": "a"}], None, id="2020-12, beside a ref",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("document", "kind", "values", "expected"), TYPES)
def test_types(client: RegistryClient, document: Any, kind: str, values: list[Any], expected: list[Any] | None) -> None:
    """Each schema becomes a Spark type, at the top and inside, and its values arrive."""
    frames = [json_frame(client, one) for one in values]
    inside = [json_frame(client, {"f": one}) for one in values]
    nested = {"properties": {"f": document}}
    if isinstance(document, dict) and "$schema" in document:
        nested["$schema"] = document["$schema"]
    column = json_column(client, document)

    assert kind == column.type.simpleString()
    assert (values if expected is None else expected) == column.read(*frames)
    if "$ref" not in json.dumps(document):
        column = json_column(client, nested)
        assert f"struct<f:{kind}>" == column.type.simpleString()
        assert [{"f": one} for one in (values if expected is None else expected)] == column.read(*inside)


LOOP = {"definitions": {"n": {"properties": {"v": STR, "next": {"$ref": "#/definitions/n"}}}}}
NINE = {f"d{n}": {"properties": {f"p{i}": {"$ref": f"#/definitions/d{n + 1}"} for i in range(9)}} for n in range(9)}
MULTIPLYING = {"definitions": {**NINE, "d9": {}}, "$ref": "#/definitions/d0"}
LINKS = {f"d{n}": {"properties": {"p": {"$ref": f"#/definitions/d{n + 1}"}}} for n in range(500)}
CHAIN = {"definitions": {**LINKS, "d500": {}}, "$ref": "#/definitions/d0"}
# document, columns, error, its message
REFUSED: list[Any] = [
    pytest.param(
        {**LOOP, "properties": {"a": {"items": {"$ref": "#/definitions/n"}}}},
        None, UnsupportedSchema, r"at a\[\]\.next: the schema contains itself", id="recursive",
    ),
    pytest.param(
        {"properties": {"a": {"$ref": "#"}}},
        None, UnsupportedSchema, r"at a\.a: the schema contains itself", id="the whole",
    ),
    pytest.param(
        {"properties": {"a": {"additionalProperties": {"$ref": "#/properties/a"}}}},
        None, UnsupportedSchema, r"at a\{\}\{\}: the schema", id="map of itself",
    ),
    pytest.param(CHAIN, None, UnsupportedSchema, "more than 100 levels deep", id="a long chain"),
    pytest.param(MULTIPLYING, None, UnsupportedSchema, "more than 10000 types", id="types that multiply"),
    pytest.param(POINT, ["x", "z"], ValueError, "no column z; the reader schema has x, y", id="no such column"),
    pytest.param(
        {**POINT, "oneOf": [{"properties": {"z": INT}}, STR]},
        ["x", "z"], ValueError, "no column z; the reader schema has x, y", id="a column of some values",
    ),
    pytest.param(POINT, [], ValueError, "no column is chosen", id="no columns"),
    pytest.param(STR, ["x"], ValueError, "needs an object with properties", id="columns of a string"),
    pytest.param({"type": "what"}, None, SchemaError, "not a valid JSON Schema", id="no schema"),
    pytest.param(
        {"$ref": "http://elsewhere/x.json"},
        None, SchemaError, "not found|not a valid JSON Schema", id="nothing is fetched",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("document", "columns", "error", "says"), REFUSED)
def test_refused(client: RegistryClient, document: Any, columns: Any, error: type[Exception], says: str) -> None:
    """A schema that cannot be a column is refused before any task runs, with the place."""
    with pytest.raises(error, match=says):
        _ = json_column(client, document, columns=columns).type


def test_columns_leave_out(client: RegistryClient) -> None:
    """Only the requested properties are decoded, in that order; the others may be recursive or damaged."""
    document = {"properties": {"a": INT, "b": {"$ref": "#"}, "c": STR}}
    column = json_column(client, document, columns=["c", "a"])

    assert "struct<c:string,a:bigint>" == column.type.simpleString()
    assert [{"c": "x", "a": 1}] == column.read(json_frame(client, {"a": 1, "b": "no object", "c": "x"}))
