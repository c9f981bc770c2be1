"""Lets builders make serializers, their client and what closes it."""

import asyncio

from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import (
    AsyncAvroSerializerBuilder,
    AvroDeserializerBuilder,
    AvroSerializerBuilder,
)
from confluent_kafka.schema_registry.json_schema import JSONDeserializerBuilder, JSONSerializerBuilder
from confluent_kafka.serialization import MessageField, SerializationContext

SCHEMA = '{"type": "record", "name": "Built", "fields": [{"name": "n", "type": "int"}]}'


async def run(conf):
    made = []

    async def init(serializer):
        made.append(type(serializer).__name__)

    builder = AsyncAvroSerializerBuilder(schema_registry_config=conf, schema=SCHEMA, serializer_init=init)
    serialize, rest = await builder.build({"a": 1}, False)
    print(await serialize({"n": 3}, SerializationContext("built", MessageField.VALUE)), rest, made)
    await serialize.aclose()


def main(url):
    conf, ctx, made = {"url": url}, SerializationContext("built", MessageField.VALUE), []
    builder = AvroSerializerBuilder(
        schema_registry_config=conf, schema=SCHEMA, serializer_init=lambda one: made.append(type(one).__name__)
    )
    serialize, rest = builder.build({"bootstrap.servers": "x"}, False)
    print(serialize({"n": 1}, ctx), rest, made)
    serialize.close()
    builder = (
        AvroSerializerBuilder().set_schema_registry_config(conf).set_schema(SCHEMA).set_to_dict(lambda n, ctx: {"n": n})
    )
    serialize, _ = builder.set_serializer_config({"auto.register.schemas": False}).build({}, True)
    frame = serialize(2, ctx)
    print(frame)
    serialize.close()
    with SchemaRegistryClient(conf) as client:
        deserialize, _ = AvroDeserializerBuilder(
            schema_registry_client=client, from_dict=lambda value, ctx: value["n"]
        ).build({}, False)
        print(deserialize(frame, ctx))
        deserialize.close()
        print(client.get_subjects("built"))
        write, _ = JSONSerializerBuilder(schema='{"title": "T"}').set_schema_registry_client(client).build({}, False)
        read, _ = JSONDeserializerBuilder().set_schema_registry_client(client).build({}, False)
        json_ctx = SerializationContext("built-json", MessageField.VALUE)
        print(read(write({"a": 1}, json_ctx), json_ctx))
    asyncio.run(run(conf))
