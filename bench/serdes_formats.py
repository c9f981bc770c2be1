"""Writing and reading one record in each format: our serdes, our serdes under asyncio, and confluent-kafka's.

All schemas are cached beforehand; one thread, one core.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any

from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry import avro as their_avro
from confluent_kafka.schema_registry import json_schema as their_json
from confluent_kafka.schema_registry import protobuf as their_protobuf
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.message_factory import GetMessageClass

from bench.report import table
from harness.registry import RegistryNode
from strata.serdes.aio import AsyncDeserializer, AsyncSerializer
from strata.serdes.avro import AvroDeserializer, AvroSerializer
from strata.serdes.client import RegistryClient, Schema
from strata.serdes.deserializer import Deserializer
from strata.serdes.json_schema import JsonDeserializer, JsonSerializer
from strata.serdes.protobuf import ProtobufDeserializer, ProtobufSerializer
from strata.serdes.protobuf.files import find_message, link
from strata.serdes.serializer import Serializer

__all__ = ["run"]

RECORDS = 5_000
ROUNDS = 7
_VALUE = {"id": 7, "price": 9.75, "name": "customer 12", "city": "Zürich", "paid": True, "counts": [1, 2, 3]}
_AVRO = {"id": "long", "price": "double", "name": "string", "city": "string", "paid": "boolean"}
_JSON = {"id": "integer", "price": "number", "name": "string", "city": "string", "paid": "boolean"}
_PROTO = """syntax = "proto3"; message Flat {
  int64 id = 1; double price = 2; string name = 3; string city = 4; bool paid = 5; repeated int64 counts = 6; }"""


def run() -> str:
    """Measure each way, and return the table."""
    with RegistryNode("memory:") as node, RegistryClient(node.url) as client:
        ways = _formats(client, SchemaRegistryClient({"url": node.url}))
        rows = [[name, *(f"{one:.2f}" for one in _measure(*way))] for name, way in ways.items()]
    head = ["µs a record", "write", "async", "confluent-kafka", "read", "async", "confluent-kafka"]
    return f"{RECORDS:,} records of 6 fields, one thread, best of {ROUNDS} runs.\n\n{table(head, rows)}"


def _formats(client: RegistryClient, theirs: Any) -> dict[str, tuple[Serializer, Any, Deserializer, Any, Any]]:
    fields = [{"name": name, "type": kind} for name, kind in _AVRO.items()]
    fields.append({"name": "counts", "type": {"type": "array", "items": "long"}})  # type: ignore[dict-item]
    avro = json.dumps({"type": "record", "name": "Flat", "fields": fields})
    properties: dict[str, Any] = {name: {"type": kind} for name, kind in _JSON.items()}
    properties["counts"] = {"type": "array", "items": {"type": "integer"}}
    schema = json.dumps({"title": "Flat", "type": "object", "properties": properties, "required": list(_JSON)})
    kind = GetMessageClass(find_message(link(Schema(_PROTO, "PROTOBUF"), {}), (0,)))
    return {
        "Avro": (
            AvroSerializer(client, avro),
            their_avro.AvroSerializer(theirs, avro),
            AvroDeserializer(client),
            their_avro.AvroDeserializer(theirs),
            _VALUE,
        ),
        "JSON": (
            JsonSerializer(client, schema),
            their_json.JSONSerializer(schema, theirs),
            JsonDeserializer(client),
            their_json.JSONDeserializer(schema, schema_registry_client=theirs),
            _VALUE,
        ),
        "Protobuf": (
            ProtobufSerializer(client, kind),
            their_protobuf.ProtobufSerializer(kind, theirs),
            ProtobufDeserializer(client, kind),
            their_protobuf.ProtobufDeserializer(kind, schema_registry_client=theirs),
            kind(**_VALUE),
        ),
    }


def _measure(write: Serializer, they_write: Any, read: Deserializer, they_read: Any, value: Any) -> list[float]:
    context: Any = SerializationContext(f"bench-{write.format}", MessageField.VALUE)
    frame = write(value, context)
    ways: list[Callable[[], float]] = [
        lambda: _seconds(write, value, context),
        lambda: asyncio.run(_awaited(AsyncSerializer(write), value, context)),
        lambda: _seconds(they_write, value, context),
        lambda: _seconds(read, frame, context),
        lambda: asyncio.run(_awaited(AsyncDeserializer(read), frame, context)),
        lambda: _seconds(they_read, frame, context),
    ]
    rounds = [[way() for way in ways] for _ in range(ROUNDS)]  # in turn: the machine is shared
    return [min(times) * 1e6 / RECORDS for times in zip(*rounds, strict=True)]


def _seconds(way: Callable[[Any, Any], Any], given: Any, context: Any) -> float:
    way(given, context)
    started = time.perf_counter()
    for _ in range(RECORDS):
        way(given, context)
    return time.perf_counter() - started


async def _awaited(way: Callable[[Any, Any], Awaitable[Any]], given: Any, context: Any) -> float:
    await way(given, context)
    started = time.perf_counter()
    for _ in range(RECORDS):
        await way(given, context)
    return time.perf_counter() - started
