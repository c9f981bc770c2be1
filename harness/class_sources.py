"""A Protobuf and a JSON schema of an order, and the source of their classes, for tests of `strata codegen`."""

from typing import Any, Final

from strata.serdes.classes.code import class_source
from strata.serdes.classes.json_shapes import json_shape
from strata.serdes.model import Schema
from strata.serdes.protobuf.class_shapes import message_shapes
from strata.serdes.protobuf.files import link

__all__ = ["ORDER_JSON", "ORDER_PROTO", "json_source", "proto_source"]

ORDER_PROTO: Final = """syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
message Order {
  int64 id = 1;
  string from = 2;
  optional int32 count = 4;
  State state = 5;
  repeated Line lines = 6;
  map<string, Line> by_sku = 7;
  google.protobuf.Timestamp at = 8;
  oneof paid { Card card = 9; int64 cents = 12; string note = 11; }
  fixed32 hash = 13;
  repeated State states = 14;
  Other other = 15;
  double ratio = 16;
  bytes raw = 17;
  enum State { STATE_UNSPECIFIED = 0; STATE_NEW = 1; STATE_OLD = 7; }
  message Line { string sku = 1; Order parent = 2; }
  message Card { string number = 1; }
}
enum Other { NONE = 0; SOME = 3; }
"""
ORDER_JSON: Final[dict[str, Any]] = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "title": "Order",
    "description": "An order",
    "properties": {
        "id": {"type": "integer"},
        "first-name": {"type": "string", "description": "Who"},
        "state": {"$ref": "#/definitions/State"},
        "lines": {"type": "array", "items": {"$ref": "#/definitions/Line"}},
        "note": {"oneOf": [{"type": "string"}, {"type": "null"}], "default": None},
        "count": {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1, "default": 3},
        "at": {"type": "string", "format": "date-time"},
        "tags": {"type": "object", "additionalProperties": {"type": "number"}},
        "gate": {"type": "string"},
        "uid": {"type": "string", "format": "uuid"},
        "_raw": {"type": "string", "contentEncoding": "base64"},
        "choice": {"oneOf": [{"type": "integer"}, {"$ref": "#/definitions/Line"}]},
    },
    "required": ["id", "first-name", "state", "lines", "at", "tags", "uid", "_raw", "choice"],
    "additionalProperties": False,
    "definitions": {
        "State": {"type": "string", "enum": ["NEW", "OLD"]},
        "Line": {"type": "object", "title": "Line", "properties": {"sku": {"type": "string"},
                 "parent": {"$ref": "#/definitions/Line"}}, "required": ["sku"]},
    },
}  # fmt: skip


def proto_source(text: str, style: str) -> str:
    """Return the source of the classes of a Protobuf schema."""
    return class_source(message_shapes(link(Schema(text, "PROTOBUF"), {})), style, "orders-value")


def json_source(document: Any, style: str) -> str:
    """Return the source of the classes of a JSON Schema."""
    return class_source([json_shape(document, "Order")], style, "orders-value")
