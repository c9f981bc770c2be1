"""Catches what the registry and the serializers raise."""

from confluent_kafka import KafkaException
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.serialization import MessageField, SerializationContext, SerializationError

NUMBERS = '{"type": "record", "name": "N", "fields": [{"name": "n", "type": "int"}]}'
TEXTS = NUMBERS.replace('"int"', '"string"')


def main(url):
    client = SchemaRegistryClient({"url": url})
    ctx = SerializationContext("errors", MessageField.VALUE)
    serialize = AvroSerializer(client, NUMBERS)
    frame = serialize({"n": 1}, ctx)
    for attempt in (
        lambda: client.get_schema(9999),
        lambda: client.get_latest_version("nothing"),
        lambda: client.get_version("errors-value", 7),
        lambda: client.lookup_schema("errors-value", Schema(TEXTS)),
        lambda: client.register_schema("errors-value", Schema("{bad")),
        lambda: AvroSerializer(client, TEXTS, conf={"auto.register.schemas": False})(
            {"n": "x"}, SerializationContext("errors", MessageField.VALUE)
        ),
    ):
        try:
            attempt()
        except SchemaRegistryError as error:
            print(error.http_status_code, error.error_code, type(error.error_message).__name__)
    try:
        AvroSerializer(client, TEXTS)({"n": "x"}, ctx)
    except SchemaRegistryError as error:
        print(error.http_status_code, error.error_code)
    print(
        client.test_compatibility("errors-value", Schema(TEXTS)),
        client.test_compatibility("errors-value", Schema(NUMBERS)),
    )
    for value in ({"n": "x"}, {}, 5):
        try:
            serialize(value, ctx)
        except (TypeError, ValueError):
            print("refused")
    for bad in (b"\x05" + frame[1:], frame[:4]):
        try:
            AvroDeserializer(client)(bad, ctx)
        except SerializationError as error:
            print("refused", isinstance(error, KafkaException))
    for conf in (
        {"unknown": 1},
        {"auto.register.schemas": 1},
        {"use.schema.id": "1"},
        {"use.latest.version": True},
        {"subject.name.strategy.type": "NOPE"},
    ):
        try:
            AvroSerializer(client, NUMBERS, conf=conf)
        except ValueError:
            print("refused")
    for conf in ({}, {"url": url, "unknown": 1}, {"url": "nope"}, {"url": url, "basic.auth.user.info": "nope"}):
        try:
            SchemaRegistryClient(conf)
        except ValueError:
            print("refused")
    client.close()
