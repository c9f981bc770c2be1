"""Decoding registry frames outside Spark: records one by one, and batches into Arrow columns.

Every way reads the same frames of one writer schema with the same reader schema, in one thread; its CPU time counts.
"""

import io
import json
import random
import time
from collections.abc import Callable
from typing import Any

import fastavro
import pyarrow as pa
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer as ConfluentDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

from bench.orders import frames as orders
from bench.orders import schema_text
from bench.report import table
from harness.registry import RegistryNode
from strata.serdes.arrow import BatchDecoder, encode_batch
from strata.serdes.avro import AvroDeserializer, AvroSerializer
from strata.serdes.client import RegistryClient

__all__ = ["run"]

RECORDS = 20_000
ROUNDS = 7
_FLAT = json.dumps(
    {
        "type": "record",
        "name": "Flat",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "count", "type": "int"},
            {"name": "price", "type": "double"},
            {"name": "weight", "type": "float"},
            {"name": "name", "type": "string"},
            {"name": "city", "type": "string"},
            {"name": "paid", "type": "boolean"},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        ],
    }
)


def run() -> str:
    """Measure each way, and return the table."""
    with RegistryNode("memory:") as node, RegistryClient(node.url) as client:
        flat = _flat_frames(client)
        nested_id = client.register("nested-value", schema_text(2)).schema_id
        nested = list(orders({2: nested_id}, RECORDS))
        columns = [_measure(node.url, client, *one) for one in ((_FLAT, flat), (schema_text(2), nested))]
    rows = [[name, *(f"{times[name]:.2f}" for times in columns)] for name in columns[0]]
    head = ["way, µs a record", "flat, 8 fields", "order, 20 fields"]
    return f"{RECORDS:,} frames of one schema, one thread, best of {ROUNDS} runs.\n\n{table(head, rows)}"


def _flat_frames(client: RegistryClient) -> list[bytes]:
    write, source = AvroSerializer(client, _FLAT), random.Random(7)
    found = []
    for number in range(RECORDS):
        value = {
            "id": number,
            "count": source.randrange(100),
            "price": source.random() * 1000,
            "weight": source.random(),
            "name": f"customer {number % 977}",
            "city": source.choice(["Basel", "Bern", "Zürich"]),
            "paid": number % 3 == 0,
            "at": 1_767_225_600_000 + number,
        }
        found.append(write(value, topic="flat") or b"")
    return found


def _measure(url: str, client: RegistryClient, schema: str, frames: list[bytes]) -> dict[str, float]:
    """Return the microseconds per record of each way, without its first call."""
    parsed = fastavro.parse_schema(json.loads(schema))
    ours, batches = AvroDeserializer(client, schema), BatchDecoder(schema, client)
    theirs: Any = ConfluentDeserializer(SchemaRegistryClient({"url": url}), schema)
    context: Any = SerializationContext("bench", MessageField.VALUE)
    array = pa.array(frames, pa.binary())
    batch, schema_id = batches.decode(array), int.from_bytes(frames[0][1:5], "big")
    ways: dict[str, Callable[[], object]] = {
        "confluent-kafka's `AvroDeserializer`": lambda: [theirs(one, context) for one in frames],
        "fastavro, dicts": lambda: [fastavro.schemaless_reader(io.BytesIO(one[5:]), parsed, None) for one in frames],
        "`strata.serdes.avro.AvroDeserializer`": lambda: [ours(one) for one in frames],
        "`strata.serdes.arrow`, Arrow columns": lambda: batches.decode(array),
        "`strata.serdes.arrow`, two of the columns": _two_columns(schema, client, array),
        "`strata.serdes.arrow`, columns to frames": lambda: encode_batch(batch, schema, schema_id=schema_id),
    }
    best = dict.fromkeys(ways, float("inf"))
    for _ in range(ROUNDS):  # in turn, so that the machine is the same for all
        for name, way in ways.items():
            best[name] = min(best[name], _seconds(way))
    return {name: seconds * 1e6 / len(frames) for name, seconds in best.items()}


def _two_columns(schema: str, client: RegistryClient, array: pa.Array) -> Callable[[], object]:
    names = [one["name"] for one in json.loads(schema)["fields"]]
    decoder = BatchDecoder(schema, client, columns=[names[0], names[-1]])
    return lambda: decoder.decode(array)


def _seconds(way: Callable[[], object]) -> float:
    started = time.thread_time()
    way()
    return time.thread_time() - started
