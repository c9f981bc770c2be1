"""Names subjects by functions and types, and puts the schema into headers."""

from confluent_kafka.schema_registry import (
    SchemaRegistryClient,
    dual_schema_id_deserializer,
    header_schema_id_serializer,
    prefix_schema_id_deserializer,
    prefix_schema_id_serializer,
    record_subject_name_strategy,
    topic_record_subject_name_strategy,
    topic_subject_name_strategy,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.serde import SubjectNameStrategyType
from confluent_kafka.serialization import MessageField, SerializationContext

SCHEMA = '{"type": "record", "name": "ns.Reading", "fields": [{"name": "n", "type": "int"}, {"name": "unit", "type": "string", "default": "kelvin"}]}'


def by_region(ctx, record_name):
    return f"eu-{ctx.topic}-{ctx.field}-{record_name}"


def main(url):
    client = SchemaRegistryClient({"url": url})
    ctx = SerializationContext("readings", MessageField.VALUE)
    for strategy in (
        topic_subject_name_strategy,
        record_subject_name_strategy,
        topic_record_subject_name_strategy,
        by_region,
    ):
        print(AvroSerializer(client, SCHEMA, conf={"subject.name.strategy": strategy})({"n": 1}, ctx))
        print(strategy(ctx, "ns.Reading"))
    for kind in ("TOPIC", "RECORD", "TOPIC_RECORD", SubjectNameStrategyType.TOPIC):
        print(AvroSerializer(client, SCHEMA, conf={"subject.name.strategy.type": kind})({"n": 1}, ctx))
    print(sorted(client.get_subjects()))
    headers = []
    with_headers = SerializationContext("readings", MessageField.VALUE, headers)
    serialize = AvroSerializer(client, SCHEMA, conf={"schema.id.serializer": header_schema_id_serializer})
    payload = serialize({"n": 2}, with_headers)
    print(payload, headers)
    for reads in (dual_schema_id_deserializer, None):
        print(
            AvroDeserializer(client, conf={"schema.id.deserializer": reads} if reads else None)(payload, with_headers)
        )
    frame = AvroSerializer(client, SCHEMA, conf={"schema.id.serializer": prefix_schema_id_serializer})({"n": 3}, ctx)
    print(frame, AvroDeserializer(client, conf={"schema.id.deserializer": prefix_schema_id_deserializer})(frame, ctx))

    def reversed_id(payload, ctx, schema_id):
        return schema_id.id_to_bytes()[::-1] + payload

    def read_reversed(payload, ctx, schema_id):
        return prefix_schema_id_deserializer(payload[:5][::-1] + payload[5:], ctx, schema_id)

    frame = AvroSerializer(client, SCHEMA, conf={"schema.id.serializer": reversed_id})({"n": 4}, ctx)
    print(frame, AvroDeserializer(client, conf={"schema.id.deserializer": read_reversed})(frame, ctx))
    for strategy in (topic_subject_name_strategy, topic_record_subject_name_strategy):
        try:
            strategy(None, "x")
        except ValueError:
            print("needs a context")
    client.close()
