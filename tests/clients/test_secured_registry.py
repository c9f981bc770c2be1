"""confluent-kafka's clients use a node with TLS and access control, and show refusals as what they are."""

import asyncio

import pytest
from confluent_kafka.schema_registry import (
    AsyncSchemaRegistryClient,
    Schema,
    SchemaRegistryClient,
    SchemaRegistryError,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from harness.secured import PASSWORD, SecuredNode

SCHEMA = Schema('{"type":"record","name":"Order","fields":[{"name":"id","type":"string"}]}', "AVRO")


@pytest.fixture(scope="module")
def secured(tmp_path_factory):
    """Yield a node with access control."""
    with SecuredNode(tmp_path_factory.mktemp("node")) as started:
        yield started


@pytest.fixture(params=["password", "certificate"])
def conf(request, secured):
    """Return the settings of a client that may write under `orders-`."""
    shared = {"url": secured.url, "ssl.ca.location": secured.ca_file}
    if request.param == "password":
        return {**shared, "basic.auth.user.info": f"ann:{PASSWORD}"}
    own = secured.certificate("etl")
    return {**shared, "ssl.certificate.location": own["cert_file"], "ssl.key.location": own["key_file"]}


def refused(error):
    """Return what a refusal says."""
    return error.http_status_code, error.error_code, error.error_message


def test_round_trip(conf):
    """Serializer and deserializer register and read over https."""
    with SchemaRegistryClient(conf) as client:
        context = SerializationContext("orders", MessageField.VALUE)
        frame = AvroSerializer(client, SCHEMA.schema_str)({"id": "a"}, context)

        assert {"id": "a"} == AvroDeserializer(client)(frame, context)
        assert {"orders-value"} == set(client.get_subjects()) - {"orders-async"}  # of the test below


def test_refusals(conf, secured):
    """A missing right is a 403 that names operation and subject; missing and wrong credentials are a 401."""
    with SchemaRegistryClient(conf) as client, pytest.raises(SchemaRegistryError) as denied:
        client.register_schema("pay-value", SCHEMA)
    assert (403, 40301, "User is denied operation Write on Subject: pay-value") == refused(denied.value)

    anonymous = {"url": secured.url, "ssl.ca.location": secured.ca_file}
    for other in (anonymous, {**anonymous, "basic.auth.user.info": "ann:wrong"}):
        with SchemaRegistryClient(other) as client, pytest.raises(SchemaRegistryError) as rejected:
            client.get_subjects()
        assert (401, 401, "Unauthorized") == refused(rejected.value)


def test_asynchronous_client(conf):
    """The asynchronous client has the same rights and refusals."""

    async def use():
        async with AsyncSchemaRegistryClient(conf) as client:
            await client.register_schema("orders-async", SCHEMA)
            try:
                await client.get_latest_version("pay-value")
            except SchemaRegistryError as error:
                return refused(error)

    assert (403, 40301, "User is denied operation Read on Subject: pay-value") == asyncio.run(use())
