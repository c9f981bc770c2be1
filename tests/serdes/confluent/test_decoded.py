"""Decoded Avro values are those of confluent-kafka, in value and type, also with the names of records in unions."""

import json
import uuid
from decimal import Decimal

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer as TheirDeserializer
from confluent_kafka.schema_registry.avro import AvroSerializer as TheirSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from strata.serdes.confluent.avro import AvroDeserializer

CONTEXT = SerializationContext("decoded", MessageField.VALUE)


def _logical(kind, logical, **more):
    return {"type": kind, "logicalType": logical, **more}


ONE, TWO = (
    {"type": "record", "name": name, "namespace": "ns", "fields": [{"name": field, "type": "int"}]}
    for name, field in (("One", "q"), ("Two", "z"))
)
DECIMAL = {"precision": 6, "scale": 3}
VALUES = [
    ("date", _logical("int", "date"), 5),
    ("time-millis", _logical("int", "time-millis"), 5000),
    ("time-micros", _logical("long", "time-micros"), 5000),
    ("timestamp-millis", _logical("long", "timestamp-millis"), 1_700_000_000_123),
    ("before 1970", _logical("long", "timestamp-millis"), -5),
    ("timestamp-micros", _logical("long", "timestamp-micros"), 1_700_000_000_123_456),
    ("timestamp-nanos", _logical("long", "timestamp-nanos"), 1_700_000_000_123_456_789),
    ("local-timestamp-millis", _logical("long", "local-timestamp-millis"), 1_700_000_000_123),
    ("local-timestamp-micros", _logical("long", "local-timestamp-micros"), 1_700_000_000_123_456),
    ("decimal", _logical("bytes", "decimal", **DECIMAL), Decimal("1.500")),
    ("fixed decimal", _logical("fixed", "decimal", name="F", size=4, **DECIMAL), Decimal("-1.500")),
    ("uuid", _logical("string", "uuid"), str(uuid.UUID(int=5))),
    ("duration", _logical("fixed", "duration", name="D", size=12), b"123456789012"),
    ("enum", {"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B"),
    ("bytes", "bytes", b"\0\1"),
    ("float", "float", 0.1),
    ("map", {"type": "map", "values": "float"}, {"a": 1.5}),
    ("null", ["null", "int"], None),
    ("nullable record", ["null", ONE], {"q": 1}),
    ("union of records", [ONE, TWO], {"z": 1}),
    ("array of unions", {"type": "array", "items": [ONE, "string"]}, [{"q": 1}, "s"]),
    ("map of unions", {"type": "map", "values": ["null", ONE]}, {"k": {"q": 1}, "n": None}),
    ("nullable timestamp", ["null", _logical("long", "timestamp-millis")], 1_700_000_000_123),
]


def _typed(value):
    """Return a value with the types of its parts."""
    match value:
        case dict():
            return "dict", {key: _typed(inner) for key, inner in value.items()}
        case list() | tuple():
            return type(value).__name__, [_typed(inner) for inner in value]
    return type(value).__name__, repr(value)


@pytest.mark.parametrize("named", [False, True], ids=["plain", "named"])
@pytest.mark.parametrize(("kind", "value"), [row[1:] for row in VALUES], ids=[row[0] for row in VALUES])
def test_decoded(kind, value, named):
    """A value of confluent-kafka's serializer is read as its deserializer reads it."""
    client = SchemaRegistryClient.new_client({"url": "mock://"})
    schema = json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": kind}]})
    frame = TheirSerializer(client, schema)({"a": value}, CONTEXT)

    theirs = TheirDeserializer(client, return_record_name=named)(frame, CONTEXT)

    assert _typed(theirs) == _typed(AvroDeserializer(client, return_record_name=named)(frame, CONTEXT))
