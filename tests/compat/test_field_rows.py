"""The rows of a field table, in all formats."""

import json

import pytest

from strata.compat.field_rows import FieldRow, field_rows
from strata.compat.formats import FORMATS
from strata.compat.schema import SchemaFormat

AVRO = {
    "type": "record", "name": "Order", "namespace": "shop", "doc": "An order.",
    "fields": [
        {"name": "id", "type": "long", "doc": "The key.", "confluent:tags": ["KEY"]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}, "default": 0},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "lines", "type": {"type": "array", "items": {"type": "record", "name": "Line", "fields": [
            {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}, "default": "A"},
            {"name": "hash", "type": {"type": "map", "values": {"type": "fixed", "name": "Hash", "size": 16}}},
            {"name": "next", "type": ["null", "Line"]},
        ]}}},
        {"name": "paid", "type": "boolean"},
    ],
}  # fmt: skip
AVRO_ROWS = [
    FieldRow("shop.Order", "shop.Order", True, doc="An order."),
    FieldRow("shop.Order.id", "id", False, "long", None, "The key.", ("KEY",)),
    FieldRow("shop.Order.at", "at", False, "long (timestamp-millis)", "0"),
    FieldRow("shop.Order.price", "price", False, "bytes (decimal 9, 2)"),
    FieldRow("shop.Order.note", "note", False, "null | string", "null"),
    FieldRow("shop.Order.lines", "lines", False, "array<record Line>"),
    FieldRow("shop.Order.paid", "paid", False, "boolean"),
    FieldRow("shop.Line", "shop.Line", True),
    FieldRow("shop.Line.kind", "kind", False, "enum Kind (A, B)", '"A"'),
    FieldRow("shop.Line.hash", "hash", False, "map<fixed Hash of 16 bytes>"),
    FieldRow("shop.Line.next", "next", False, "null | Line"),
]
JSON = {
    "type": "object", "description": "An order.", "required": ["id", "a.b"],
    "properties": {
        "id": {"type": "integer", "description": "The key.", "confluent:tags": ["KEY"]},
        "at": {"type": ["string", "null"], "format": "date-time", "default": 1.5},
        "a.b": {"enum": [1, "x"]},
        "to": {"$ref": "#/definitions/To"},
        "lines": {"type": "array", "items": {"type": "object", "properties": {"kind": {"const": 1}}}},
        "any": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    },
    "definitions": {"To": {"type": "object", "title": "Where to", "properties": {"back": {"$ref": "#"}}}},
}  # fmt: skip
JSON_ROWS = [
    FieldRow("object", "object", True, doc="An order."),
    FieldRow("object.id", "id", False, "integer", None, "The key.", ("KEY",), True),
    FieldRow("object.at", "at", False, "string | null (date-time)", "1.5"),
    FieldRow("object.a.b", "a.b", False, 'enum (1, "x")', required=True),
    FieldRow("object.to", "to", False, "→ #/definitions/To"),
    FieldRow("object.lines", "lines", False, "array<object>"),
    FieldRow("object.any", "any", False, "string | null"),
    FieldRow("object.to.object", "object.to.object", True, doc="Where to"),
    FieldRow("object.to.object.back", "back", False, "→ #"),
    FieldRow("object.lines.array.object", "object.lines.array.object", True),
    FieldRow("object.lines.array.object.kind", "kind", False, "const 1"),
]
PROTO = """
syntax = "proto2";
package shop;
message Order {
  option (confluent.message_meta).doc = "An order.";
  required int64 id = 1 [(confluent.field_meta) = {doc: "The key.", tags: ["KEY"]}];
  optional string note = 2 [default = "none"];
  repeated Line lines = 3;
  map<string, int32> counts = 4;
  oneof paid { string card = 5; }
  message Line { optional Order order = 1; }
}
message Second {}
"""
PROTO_ROWS = [
    FieldRow("Order", "Order", True, doc="An order."),
    FieldRow("Order.id", "id", False, "required int64", None, "The key.", ("KEY",), True, 1),
    FieldRow("Order.note", "note", False, "optional string", "none", number=2),
    FieldRow("Order.lines", "lines", False, "repeated Line", number=3),
    FieldRow("Order.counts", "counts", False, "map<string, int32>", number=4),
    FieldRow("Order.card", "card", False, "string", number=5),
    FieldRow("Order.Line", "Order.Line", True),
    FieldRow("Order.Line.order", "order", False, "optional Order", number=1),
    FieldRow("Second", "Second", True),
]


def rows(schema_format, text, most=1000):
    """Return the rows of a text."""
    return field_rows(FORMATS[schema_format].parse(text, strict=False), most)


@pytest.mark.parametrize(
    ("schema_format", "text", "expected"),
    [
        (SchemaFormat.AVRO, json.dumps(AVRO), AVRO_ROWS),
        (SchemaFormat.JSON, json.dumps(JSON), JSON_ROWS),
        (SchemaFormat.PROTOBUF, PROTO, PROTO_ROWS),
        (SchemaFormat.AVRO, '"int"', []),
        (SchemaFormat.JSON, "true", []),
    ],
)
def test_rows(schema_format, text, expected):
    """A row shows what a schema says of a field; the fields of a record follow it, before the records inside it."""
    assert expected == rows(schema_format, text)


def test_rows_are_bounded():
    """Of a long schema only the first rows are made, and long texts in them are cut."""
    fields = [{"name": f"f{number}", "type": "string", "default": "x" * 1000} for number in range(1_000)]
    found = rows(SchemaFormat.AVRO, json.dumps({"type": "record", "name": "R", "fields": fields}), 100)
    assert 100 == len(found)
    assert 301 == len(found[1].default)


@pytest.mark.parametrize("schema_format", [SchemaFormat.AVRO, SchemaFormat.JSON])
def test_rows_of_a_deep_schema(schema_format):
    """A schema as deep as the limit allows has its rows too."""
    deep = '"int"' if schema_format is SchemaFormat.AVRO else '{"type": "integer"}'
    for level in range(60):
        deep = (
            f'{{"type": "record", "name": "R{level}", "fields": [{{"name": "f", "type": {deep}}}]}}'
            if schema_format is SchemaFormat.AVRO
            else f'{{"type": "object", "properties": {{"f": {deep}}}}}'
        )
    assert 120 == len(rows(schema_format, deep))
