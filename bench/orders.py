"""The records of the Spark benchmarks: orders of twenty fields in many writer versions, as frames of 200 bytes."""

import io
import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache
from typing import Any

import fastavro

__all__ = ["VERSIONS", "frames", "schema_text"]

_STATUS = {"type": "enum", "name": "Status", "symbols": ["NEW", "PAID", "SENT", "RETURNED"], "default": "NEW"}
_ADDRESS = {
    "type": "record",
    "name": "Address",
    "fields": [
        {"name": "street", "type": "string"},
        {"name": "city", "type": "string"},
        {"name": "zip", "type": ["null", "string"], "default": None},
    ],
}
_MONEY = {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}
_TIME = {"type": "long", "logicalType": "timestamp-millis"}
_FIELDS: list[dict[str, Any]] = [
    {"name": "id", "type": "long"},
    {"name": "customer", "type": "long"},
    {"name": "quantity", "type": "int"},
    {"name": "items", "type": "int"},
    {"name": "priority", "type": "int"},
    {"name": "price", "type": "double"},
    {"name": "discount", "type": "double"},
    {"name": "weight", "type": "float"},
    {"name": "currency", "type": "string"},
    {"name": "channel", "type": "string"},
    {"name": "comment", "type": ["null", "string"], "default": None},
    {"name": "coupon", "type": ["null", "string"], "default": None},
    {"name": "rating", "type": ["null", "int"], "default": None},
    {"name": "gift", "type": "boolean"},
    {"name": "status", "type": _STATUS},
    {"name": "shipping", "type": _ADDRESS},
    {"name": "tags", "type": {"type": "array", "items": "string"}},
    {"name": "attributes", "type": {"type": "map", "values": "string"}},
    {"name": "created", "type": _TIME},
    {"name": "total", "type": _MONEY},
]


def _without(*names: str) -> list[dict[str, Any]]:
    return [field for field in _FIELDS if field["name"] not in names]


# Version 1 lacks a field and has an int that became a long; version 2 is the reader's; version 3 lacks a field.
# Versions from 4 on have one field each that the reader does not know.
VERSIONS: dict[int, list[dict[str, Any]]] = {
    1: [{**field, "type": "int"} if field["name"] == "customer" else field for field in _without("coupon")],
    2: _FIELDS,
    3: _without("comment"),
    **{version: [*_FIELDS, {"name": f"extra_{version}", "type": "string", "default": ""}] for version in range(4, 51)},
}
_SAMPLES = 1000
"""The number of different records of each version; after that they repeat."""


def schema_text(version: int) -> str:
    """Return the schema of a writer version."""
    return json.dumps({"type": "record", "name": "Order", "namespace": "shop", "fields": VERSIONS[version]})


def frames(ids: dict[int, int], count: int) -> Iterator[bytes]:
    """Yield frames, with the given versions (version -> schema id) in turn."""
    source = random.Random(7)
    each = min(_SAMPLES, count // len(ids) + 1)
    samples = {
        version: [_frame(version, schema_id, source, n) for n in range(each)] for version, schema_id in ids.items()
    }
    versions = list(ids)
    for number in range(count):
        yield samples[versions[number % len(ids)]][number // len(ids) % each]


def _frame(version: int, schema_id: int, source: random.Random, number: int) -> bytes:
    payload = io.BytesIO()
    order = {**_order(source, number), f"extra_{version}": "of no interest"}
    fastavro.schemaless_writer(payload, _parsed(version), order)
    return b"\0" + schema_id.to_bytes(4, "big") + payload.getvalue()


@cache
def _parsed(version: int) -> Any:
    return fastavro.parse_schema(json.loads(schema_text(version)))


def _order(source: random.Random, number: int) -> dict[str, Any]:
    return {
        "id": number,
        "customer": source.randrange(1_000_000),
        "quantity": source.randrange(20),
        "items": source.randrange(9),
        "priority": source.randrange(3),
        "price": source.random() * 1000,
        "discount": source.random(),
        "weight": source.random() * 10,
        "currency": source.choice(["EUR", "USD", "CHF"]),
        "channel": source.choice(["web", "shop", "telephone"]),
        "comment": "please ring twice, or leave it at the door" if number % 3 else None,
        "coupon": "SPRING" if number % 5 == 0 else None,
        "rating": source.randrange(6) if number % 2 else None,
        "gift": number % 7 == 0,
        "status": source.choice(_STATUS["symbols"]),
        "shipping": {
            "street": f"Long Street {number % 500}, second floor on the left",
            "city": "Springfield",
            "zip": "12345",
        },
        "tags": ["new arrival", "fragile", "express"][: number % 4],
        "attributes": {"colour": "blue", "size": str(number % 12), "material": "cotton", "origin": "Portugal"},
        "created": datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=number),
        "total": Decimal(number % 1_000_000) / 100,
    }
