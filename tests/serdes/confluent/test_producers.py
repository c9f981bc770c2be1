"""The serializers work inside confluent-kafka's producers and consumers."""

from uuid import uuid4

import pytest
from confluent_kafka import DeserializingConsumer, SerializingProducer
from confluent_kafka.admin import AdminClient, NewTopic
from confluent_kafka.error import ValueSerializationError

from strata.serdes.confluent import SchemaRegistryClient
from strata.serdes.confluent.avro import AvroDeserializer, AvroSerializer
from strata.serdes.confluent.json_schema import JSONDeserializer, JSONSerializer

SCHEMA = '{"type": "record", "name": "N", "fields": [{"name": "n", "type": "int"}]}'


@pytest.mark.kafka
def test_through_a_broker(registry_url, kafka_broker):
    """Keys and values go through a topic; a value that does not fit is confluent-kafka's ValueSerializationError."""
    topic = f"producers-{uuid4().hex}"
    admin = AdminClient({"bootstrap.servers": kafka_broker.bootstrap})
    admin.create_topics([NewTopic(topic, num_partitions=1, replication_factor=1)])[topic].result(90)
    with SchemaRegistryClient({"url": registry_url}) as client:
        conf = {"bootstrap.servers": kafka_broker.bootstrap}
        key, value = JSONSerializer('{"title": "K", "type": "string"}', client), AvroSerializer(client, SCHEMA)
        producer = SerializingProducer({**conf, "key.serializer": key, "value.serializer": value})
        for number in range(3):
            producer.produce(topic, key=f"k{number}", value={"n": number}, headers=[])
        with pytest.raises(ValueSerializationError, match="at field n"):
            producer.produce(topic, key="k", value={"n": "x"})
        producer.flush(30)
        consumer = DeserializingConsumer(
            {
                **conf,
                "group.id": topic,
                "auto.offset.reset": "earliest",
                "key.deserializer": JSONDeserializer(None, schema_registry_client=client),
                "value.deserializer": AvroDeserializer(client, SCHEMA),
            }
        )
        consumer.subscribe([topic])
        records = [consumer.poll(30) for _ in range(3)]
        consumer.close()

    assert [(f"k{number}", {"n": number}) for number in range(3)] == [(one.key(), one.value()) for one in records]
