"""JSON Schemas become types of columns, and their values arrive; no Spark session is needed."""

from typing import Any

import pytest

from harness.payload_columns import json_column
from strata.serdes.client import RegistryClient
from strata.serdes.errors import SchemaError
from strata.spark_udfs.decoding.type_limits import UnsupportedSchema

INT, NUM, STR = {"type": "integer"}, {"type": "number"}, {"type": "string"}
POINT = {"type": "object", "properties": {"x": NUM, "y": NUM}}


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
