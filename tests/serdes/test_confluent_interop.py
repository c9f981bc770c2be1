"""Serdes of confluent-kafka and ours read each other's records, against our registry, alone and through a broker."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from uuid import uuid4

import pytest
from confluent_kafka import DeserializingConsumer, SerializingProducer
from confluent_kafka.admin import AdminClient, NewTopic
from confluent_kafka.error import ValueDeserializationError, ValueSerializationError
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer as TheirDeserializer
from confluent_kafka.schema_registry.avro import AvroSerializer as TheirSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from strata.serdes.avro import AvroDeserializer, AvroSerializer
from strata.serdes.errors import EncodeError, FrameError

LINE = {"type": "record", "name": "Line", "fields": [{"name": "sku", "type": "string"}]}
RECORD = {
    "type": "record",
    "name": "Everything",
    "namespace": "interop",
    "fields": [
        {"name": "b", "type": "boolean"},
        {"name": "i", "type": "int"},
        {"name": "l", "type": "long"},
        {"name": "f", "type": "float"},
        {"name": "d", "type": "double"},
        {"name": "s", "type": "string"},
        {"name": "raw", "type": "bytes"},
        {"name": "opt", "type": ["null", "string"], "default": None},
        {"name": "many", "type": ["null", "long", "string", {"type": "array", "items": "int"}]},
        {"name": "suit", "type": {"type": "enum", "name": "Suit", "symbols": ["CLUBS", "HEARTS"]}},
        {"name": "fix", "type": {"type": "fixed", "name": "Two", "size": 2}},
        {"name": "list", "type": {"type": "array", "items": LINE}},
        {"name": "map", "type": {"type": "map", "values": "double"}},
        {"name": "on", "type": {"type": "int", "logicalType": "date"}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "sum", "type": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}},
        {"name": "next", "type": ["null", "Everything"], "default": None},
    ],
}  # fmt: skip
VALUE = {
    "b": True,
    "i": -5,
    "l": 2**40,
    "f": 0.5,
    "d": 0.1,
    "s": "héllo",
    "raw": b"\x00\xff",
    "opt": "x",
    "many": [1, 2],
    "suit": "HEARTS",
    "fix": b"ab",
    "list": [{"sku": "a"}, {"sku": "b"}],
    "map": {"k": 1.5},
    "on": date(2024, 2, 29),
    "at": datetime(2024, 2, 29, 1, 2, 3, 4, UTC),
    "sum": Decimal("-12.34"),
    "next": None,
}
ROWS = [
    ("record", RECORD, {**VALUE, "next": VALUE}),
    ("string", "string", "héllo"),
    ("long", "long", -(2**40)),
    ("bytes", "bytes", b"\x00\x01raw"),
    ("nullable", ["null", "string"], "x"),
    ("array", {"type": "array", "items": "string"}, ["a", "b"]),
    ("enum", {"type": "enum", "name": "interop.E", "symbols": ["A", "B"]}, "B"),
]


@pytest.fixture
def their_client(registry_url):
    """Yield confluent-kafka's client for the same registry."""
    with SchemaRegistryClient({"url": registry_url}) as one:
        yield one


@pytest.mark.parametrize(("name", "schema", "value"), ROWS, ids=[row[0] for row in ROWS])
@pytest.mark.parametrize("side", ["key", "value"])
def test_each_writes_what_the_other_reads(client, their_client, name, schema, value, side):
    """Both make the same frame, byte for byte, under the same subject, and both read it back."""
    text = json.dumps(schema)
    context = SerializationContext(f"interop-{name}", MessageField.KEY if side == "key" else MessageField.VALUE)

    theirs = TheirSerializer(their_client, text)(value, context)
    ours = AvroSerializer(client, text)(value, context)

    assert theirs == ours
    assert f"interop-{name}-{side}" in client.get_subjects()
    assert value == TheirDeserializer(their_client)(ours, context)
    assert value == AvroDeserializer(client)(theirs, context)


def test_both_resolve_alike(client, their_client):
    """A reader schema gives the same value on both sides."""
    context = SerializationContext("interop-resolve", MessageField.VALUE)
    kept = [field for field in RECORD["fields"] if field["name"] in ("s", "i", "list", "opt")]
    kept[1] = {"name": "i", "type": "double"} if kept[1]["name"] == "i" else kept[1]
    added = {"name": "new", "type": ["null", "int"], "default": None}
    reader = json.dumps({**RECORD, "fields": [*kept[::-1], added]})
    frame = TheirSerializer(their_client, json.dumps(RECORD))(VALUE, context)

    assert TheirDeserializer(their_client, reader)(frame, context) == AvroDeserializer(client, reader)(frame, context)


@pytest.mark.kafka
def test_through_a_broker(client, their_client, kafka_broker):
    """Our serdes work inside confluent-kafka's producer and consumer, mixed with its own."""
    topic, text = f"interop-{uuid4().hex}", json.dumps(RECORD)
    admin = AdminClient({"bootstrap.servers": kafka_broker.bootstrap})
    admin.create_topics([NewTopic(topic, num_partitions=1, replication_factor=1)])[topic].result(90)
    serializers = {
        "ours": (AvroSerializer(client, '"string"'), AvroSerializer(client, text)),
        "theirs": (TheirSerializer(their_client, '"string"'), TheirSerializer(their_client, text)),
    }
    for name, (key, value) in serializers.items():
        producer = SerializingProducer(
            {
                "bootstrap.servers": kafka_broker.bootstrap,
                "enable.idempotence": True,  # in order
                "key.serializer": key,
                "value.serializer": value,
            }
        )
        producer.produce(topic, key=name, value=VALUE)
        producer.produce(topic, key=name, value=None)
        assert producer.flush(90) == 0

    expected = [("ours", VALUE), ("ours", None), ("theirs", VALUE), ("theirs", None)]
    assert expected == consumed(kafka_broker, topic, AvroDeserializer(client), 4)
    assert expected == consumed(kafka_broker, topic, TheirDeserializer(their_client), 4)


@pytest.mark.kafka
def test_errors_inside_producer_and_consumer(client, kafka_broker):
    """Our errors arrive as confluent-kafka's own errors, with ours inside."""
    topic = f"interop-{uuid4().hex}"
    admin = AdminClient({"bootstrap.servers": kafka_broker.bootstrap})
    admin.create_topics([NewTopic(topic, num_partitions=1, replication_factor=1)])[topic].result(90)
    strict = SerializingProducer(
        {"bootstrap.servers": kafka_broker.bootstrap, "value.serializer": AvroSerializer(client, json.dumps(RECORD))}
    )
    plain = SerializingProducer({"bootstrap.servers": kafka_broker.bootstrap})
    plain.produce(topic, value=b"{}")
    assert plain.flush(90) == 0

    with pytest.raises(ValueSerializationError) as unsent:
        strict.produce(topic, value={**VALUE, "list": [{"sku": 5}]})
    with pytest.raises(ValueDeserializationError) as unread:
        consumed(kafka_broker, topic, AvroDeserializer(client), 1)

    assert isinstance(unsent.value.exception, EncodeError)
    assert isinstance(unread.value.exception, FrameError)


def consumed(broker, topic, deserializer, count):
    """Return the keys and values of the first records of a topic."""
    consumer = DeserializingConsumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": uuid4().hex,
            "auto.offset.reset": "earliest",
            "key.deserializer": deserializer,
            "value.deserializer": deserializer,
        }
    )
    consumer.subscribe([topic])
    found = []
    try:
        while len(found) < count:
            message = consumer.poll(90)
            assert message is not None, "no record came within 90 s"
            found.append((message.key(), message.value()))
    finally:
        consumer.close()
    return found
