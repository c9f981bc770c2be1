"""Topics of each format with the same fields, and records damaged in ways that only reading a field notices.

Rules of this file: frames are written by libraries that are not ours (fastavro, protobuf, json), and the same libraries
judge what can be read.
"""

import io
import json
from collections.abc import Callable
from typing import Any, NamedTuple

import fastavro
import jsonschema_rs
from google.protobuf.message import DecodeError

from harness.payload_columns import kind_of, proto
from strata.serdes.client import RegistryClient, Schema
from strata.serdes.framing import join, write_indexes

__all__ = ["TOPICS", "Topic"]

_FIELDS: list[dict[str, Any]] = [
    {"name": "id", "type": "long"},
    {"name": "name", "type": "string"},
    {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B", "C"]}},
    {"name": "tags", "type": {"type": "array", "items": "string"}},
    {"name": "places", "type": {"type": "map", "values": "string"}},
    {
        "name": "inner",
        "type": {
            "type": "record",
            "name": "Inner",
            "fields": [{"name": "note", "type": ["null", "string"]}, {"name": "size", "type": "int"}],
        },
    },
    {"name": "ok", "type": "boolean"},
    {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    {"name": "code", "type": ["null", "int", "string"]},
]
_SHORT_KIND = {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}


def _record(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": "Item", "fields": list(fields)}


_AVRO = _record(*(field | ({"type": _SHORT_KIND} if field["name"] == "kind" else {}) for field in _FIELDS))
_AVRO_WRITERS = (
    _record(*_FIELDS),
    _record(*_FIELDS[:1], {"name": "extra", "type": "string"}, *_FIELDS[1:]),
    _record(*(field for field in _FIELDS if field["name"] != "name")),
)
_PROTOBUF = proto(
    'syntax = "proto3"; message Item { int64 id = 1; string name = 2; Kind kind = 3; repeated string tags = 4; '
    "map<string, string> places = 5; Inner inner = 6; bool ok = 7; oneof code { int32 number = 8; string text = 9; } } "
    "message Inner { optional string note = 1; int32 size = 2; } enum Kind { A = 0; B = 1; C = 2; }"
)
_TEXT = {"type": "string"}
_JSON = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "name": _TEXT,
        "kind": _TEXT,
        "tags": {"type": "array", "items": _TEXT},
        "places": {"type": "object", "additionalProperties": _TEXT},
        "inner": {"type": "object", "properties": {"note": _TEXT, "size": {"type": "integer"}}},
        "ok": {"type": "boolean"},
        "price": {"type": "number"},
    },
}


def _item(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "name": ("", "zürich", "a longer text, of more than eight bytes")[number % 3],
        "kind": "AB"[number % 2],
        "tags": ["new", "épais", "of more than eight bytes"][: number % 4],
        "places": {"here": "there", "é": "n"} if number % 2 else {},
        "inner": {"note": None if number % 3 == 0 else "noté", "size": number},
        "ok": number % 2 == 0,
    }


_TEXTS: dict[str, Any] = {
    "name": "NAME",
    "tags": ["TAGS"],
    "places": {"KEYS": "VALUES"},
    "inner": {"note": "NOTE", "size": 1},
}


def _not_utf8(frame: bytes) -> dict[str, bytes]:
    """Return the frame with each of its texts in turn made of bytes that are not UTF-8."""
    return {
        name: frame.replace(name.encode(), b"\xff" * len(name)) for name in ("NAME", "TAGS", "KEYS", "VALUES", "NOTE")
    }


class Topic(NamedTuple):
    """Frames of one format, and who says whether they can be read.

    Attributes:
        subject: the subject of the reader schema.
        good: frames of whole records.
        damaged: frames that cannot be read, by the field that is damaged; `id` is whole in each.
        judge: whether the format's own library reads the frame with the reader schema.
    """

    subject: str
    good: list[bytes]
    damaged: dict[str, bytes]
    judge: Callable[[bytes], bool]


def _plain(schema: Any) -> Any:
    """Return the parsed schema without logical types, with which values out of their range can be written."""
    fields = [
        {**field, "type": {"type": field["type"]["type"]}} if field["name"] in ("price", "at") else field
        for field in schema["fields"]
    ]
    return fastavro.parse_schema({**schema, "fields": fields})


def _avro(client: RegistryClient) -> Topic:
    ids = [client.register("items-of-avro", Schema(json.dumps(writer))).schema_id for writer in _AVRO_WRITERS]
    reader = client.register("items-of-avro", Schema(json.dumps(_AVRO))).schema_id
    writers = dict(zip([*ids, reader], map(fastavro.parse_schema, (*_AVRO_WRITERS, _AVRO)), strict=True))
    parsed = writers[reader]

    def frame(which: int, **changed: Any) -> bytes:
        out = io.BytesIO()
        item = _item(changed.get("id", 7)) | {"extra": "é", "price": b"\1\2", "at": 10**12, "code": None} | changed
        fastavro.schemaless_writer(out, _plain(_AVRO_WRITERS[which]), item)
        return join(ids[which], out.getvalue())

    def judge(data: bytes) -> bool:
        source = io.BytesIO(data[5:])
        try:
            fastavro.schemaless_reader(source, writers[int.from_bytes(data[1:5], "big")], parsed)
        except (ValueError, EOFError, IndexError, OverflowError, fastavro.read.SchemaResolutionError):
            return False
        return True

    good = [frame(n % 2, id=n, code=(None, n, "é")[n % 3]) for n in range(8)]
    damaged = _not_utf8(frame(0, **_TEXTS))
    damaged |= {
        "kind": frame(0, kind="C"),
        "at": frame(0, at=2**62),
        "no name": frame(2),
    }
    return Topic("items-of-avro", good, damaged, judge)


def _protobuf(client: RegistryClient) -> Topic:
    schema_id = client.register("items-of-protobuf", _PROTOBUF).schema_id
    kind = kind_of(_PROTOBUF)

    def frame(**changed: Any) -> bytes:
        item = _item(changed.get("id", 7)) | changed
        item["inner"] = {name: value for name, value in item["inner"].items() if value is not None}
        return join(schema_id, write_indexes((0,)) + kind(**item).SerializeToString(deterministic=True))

    def judge(data: bytes) -> bool:
        try:
            kind.FromString(data[6:])
        except DecodeError:
            return False
        return True

    damaged = _not_utf8(frame(**_TEXTS))
    return Topic(
        "items-of-protobuf", [frame(id=n, **({"text": "é"} if n % 2 else {})) for n in range(8)], damaged, judge
    )


def _json(client: RegistryClient) -> Topic:
    schema_id = client.register("items-of-json", Schema(json.dumps(_JSON), "JSON")).schema_id

    def frame(**changed: Any) -> bytes:
        item = _item(changed.get("id", 7)) | {"price": 1.5} | changed
        item["inner"] = {name: value for name, value in item["inner"].items() if value is not None}
        return join(schema_id, json.dumps(item, ensure_ascii=False).encode())

    def judge(data: bytes) -> bool:
        try:
            return jsonschema_rs.is_valid(_JSON, json.loads(data[5:]))
        except ValueError:
            return False

    damaged = _not_utf8(frame(**_TEXTS))
    damaged |= {"kind": frame(kind=1), "ok": frame(ok="yes"), "size": frame(inner={"size": 1.5})}
    return Topic("items-of-json", [frame(id=n) for n in range(8)], damaged, judge)


TOPICS: dict[str, Callable[[RegistryClient], Topic]] = {"AVRO": _avro, "PROTOBUF": _protobuf, "JSON": _json}
"""By format: a function that registers the schemas and makes the topic."""
