"""A record of Avro with a field for each type that a table has a column for."""

import json
from typing import Any

from strata.compat.formats import FORMATS
from strata.compat.limits import DEFAULT_LIMITS
from strata.compat.logical.ddl import table_statement
from strata.compat.logical.policy import translate
from strata.compat.schema import SchemaFormat

__all__ = ["COMMENT", "EVERYTHING", "statement_of"]

COMMENT = "it's \\ 'here'"
"""The documentation of the first field."""


def _field(name: str, type_: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": type_, **more}


def _logical(type_: str, name: str, **more: int) -> dict[str, Any]:
    return {"type": type_, "logicalType": name, **more}


_LINE = {
    "type": "record",
    "name": "Line",
    "fields": [_field("sku", "string", doc="in a line"), _field("price", ["null", "double"])],
}
EVERYTHING: dict[str, Any] = {
    "type": "record",
    "name": "Everything",
    "fields": [
        _field("b", "boolean", doc=COMMENT),
        _field("i", "int"),
        _field("l", "long"),
        _field("f", "float"),
        _field("d", "double"),
        _field("s", "string"),
        _field("y", "bytes"),
        _field("x", {"type": "fixed", "name": "X", "size": 2}),
        _field("dec", _logical("bytes", "decimal", precision=9, scale=2)),
        _field("day", _logical("int", "date")),
        _field("clock", _logical("int", "time-millis")),
        _field("micros", _logical("long", "time-micros")),
        _field("at", _logical("long", "timestamp-millis")),
        _field("nanos", _logical("long", "timestamp-nanos")),
        _field("local", _logical("long", "local-timestamp-micros")),
        _field("id", _logical("string", "uuid")),
        _field("e", {"type": "enum", "name": "E", "symbols": ["A"]}),
        _field("lines", {"type": "array", "items": _LINE}),
        _field("by", {"type": "map", "values": "long"}),
        _field("u", ["null", "int", "string"]),
    ],
}


def statement_of(schema: dict[str, Any], table: str, dialect: str) -> str:
    """Return the statement that makes the table of an Avro schema, without its semicolon.

    Args:
        schema: the schema.
        table: the name of the table.
        dialect: the engine.
    """
    parsed = FORMATS[SchemaFormat.AVRO].parse(json.dumps(schema), strict=False, references=())
    return table_statement(translate(parsed, "", DEFAULT_LIMITS), table, dialect).removesuffix(";\n")
