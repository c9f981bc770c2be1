"""python-schema-registry-client (by marcosschroh), unmodified against a node."""

import json
from pathlib import Path

import pytest
from schema_registry.client import SchemaRegistryClient
from schema_registry.client.errors import ClientError
from schema_registry.client.schema import AvroSchema, JsonSchema
from schema_registry.serializers import AvroMessageSerializer, JsonMessageSerializer

STORY = json.loads(Path(__file__).with_name("story.json").read_text())
FIRST, SECOND, INCOMPATIBLE = (AvroSchema(STORY["avro"][each]) for each in ("first", "second", "incompatible"))


@pytest.fixture
def client(conf, certificate, monkeypatch):
    """Return the client, with a single certificate to trust, because it reads all of them for each request.

    Of itself it gives up after five seconds, which a busy machine may need.
    """
    monkeypatch.setenv("SSL_CERT_FILE", certificate)
    source = {"basic.auth.credentials.source": "USER_INFO"} if "basic.auth.user.info" in conf else {}
    return SchemaRegistryClient(conf | source, timeout=60)


def test_registration_and_reads(client, name):
    """The client registers a schema, reads it by id and by version, checks and deletes it."""
    schema_id = client.register(name, FIRST)

    assert schema_id == client.check_version(name, FIRST).schema_id
    assert FIRST == client.get_by_id(schema_id)
    assert (schema_id, 1) == (lambda found: (found.schema_id, found.version))(client.get_schema(name))
    assert [True, False] == [client.test_compatibility(name, schema) for schema in (SECOND, INCOMPATIBLE)]
    second = client.register(name, SECOND)
    assert second != schema_id
    assert [1, 2] == client.get_versions(name)
    assert name in client.get_subjects()
    assert name in [each.subject for each in client.get_schema_subject_versions(schema_id)]
    assert 2 == client.delete_version(name, 2)
    assert [1] == client.delete_subject(name)
    assert [] == client.delete_subject(name)
    assert client.get_schema(name) is None


def test_incompatible(client, name):
    """An incompatible schema raises the client's own error."""
    client.register(name, FIRST)

    with pytest.raises(ClientError) as refused:
        client.register(name, INCOMPATIBLE)

    assert ("Incompatible schema", 409) == (refused.value.message, refused.value.http_code)


def test_configuration(client, name):
    """The client sets and reads levels; the global one is at `/config/`, without a redirect."""
    assert client.update_compatibility("FULL", name)
    assert "FULL" == client.get_compatibility(name)
    assert "BACKWARD" == client.get_compatibility()
    assert client.update_compatibility("BACKWARD")


@pytest.mark.parametrize(
    ("serializer", "schema"),
    [
        pytest.param(AvroMessageSerializer, FIRST, id="Avro"),
        pytest.param(JsonMessageSerializer, JsonSchema(STORY["json"]), id="JSON Schema"),
    ],
)
def test_serializers(client, name, serializer, schema):
    """The serializer's output survives a round trip."""
    one = serializer(client)

    frame = one.encode_record_with_schema(name, schema, STORY["value"])

    assert STORY["value"] == one.decode_message(frame)
