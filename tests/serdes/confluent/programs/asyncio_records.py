"""Writes and reads records in an event loop."""

import asyncio

from confluent_kafka.schema_registry import AsyncSchemaRegistryClient, Schema
from confluent_kafka.schema_registry.avro import AsyncAvroDeserializer, AsyncAvroSerializer
from confluent_kafka.schema_registry.json_schema import AsyncJSONDeserializer, AsyncJSONSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

SCHEMA = '{"type": "record", "name": "Reading", "fields": [{"name": "n", "type": "int"}]}'


async def run(url):
    client = AsyncSchemaRegistryClient({"url": url})
    serialize = await AsyncAvroSerializer(client, SCHEMA)
    deserialize = await AsyncAvroDeserializer(
        client, schema_str=SCHEMA, from_dict=lambda values, ctx: (ctx.topic, values)
    )
    ctx = SerializationContext("async", MessageField.VALUE)
    frames = await asyncio.gather(*(serialize({"n": n}, ctx) for n in range(5)))
    print(frames)
    print([await deserialize(frame, ctx) for frame in frames])
    print(await serialize(None, ctx))
    to_json = await AsyncJSONSerializer('{"title": "T", "type": "object"}', client)
    from_json = await AsyncJSONDeserializer(None, schema_registry_client=client)
    frame = await to_json({"a": 1}, SerializationContext("async-json", MessageField.VALUE))
    print(frame, await from_json(frame, ctx))
    print(await client.get_subjects(), (await client.get_latest_version("async-value")).version)
    print(await client.register_schema("more", Schema(SCHEMA)))
    await client.aclose()


def main(url):
    asyncio.run(run(url))
