"""confluent-kafka's DEK registry client, unmodified against a node, as its field encryption uses it."""

import base64

import pytest
from confluent_kafka.schema_registry import SchemaRegistryError
from confluent_kafka.schema_registry.rules.encryption.dek_registry.dek_registry_client import (
    DekAlgorithm,
    DekRegistryClient,
)

MATERIAL = base64.b64encode(bytes(range(61))).decode()


@pytest.fixture
def writer(conf):
    """Yield the client of a producer."""
    with DekRegistryClient(conf) as client:
        yield client


@pytest.fixture
def reader(conf):
    """Yield the client of a consumer, with an empty cache."""
    with DekRegistryClient(conf) as client:
        yield client


def test_producer_makes_keys_that_a_consumer_finds(writer, reader, name):
    """A second client reads the KEK and DEK of the first, with `latest` and with deleted ones included."""
    subject = f"{name}/a b-value"
    made = writer.register_kek(name, "aws-kms", "arn:aws:kms:1", kms_props={"KeyState": "Enabled"}, doc="é")
    first = writer.register_dek(name, subject, MATERIAL)
    second = writer.register_dek(name, subject, MATERIAL, version=2)
    found = reader.get_kek(name)

    assert (made, "aws-kms", {"KeyState": "Enabled"}, False) == (
        found, found.kms_type, found.kms_props.properties, found.shared
    )  # fmt: skip
    assert [first, second, second] == [
        reader.get_dek(name, subject, version=version, deleted=deleted)
        for version, deleted in ((1, False), (2, True), (-1, False))
    ]
    assert (bytes(range(61)), DekAlgorithm.AES256_GCM) == (first.get_encrypted_key_material_bytes(), first.algorithm)
    assert 0 < first.ts <= second.ts


@pytest.mark.parametrize("algorithm", list(DekAlgorithm))
def test_algorithms_are_apart(writer, reader, name, algorithm):
    """Each algorithm has separate versions."""
    writer.register_kek(name, "gcp-kms", "projects/p")
    writer.register_dek(name, "s", MATERIAL, algorithm)
    others = [other for other in DekAlgorithm if other != algorithm]

    assert algorithm == reader.get_dek(name, "s", algorithm).algorithm
    for other in others:
        with pytest.raises(SchemaRegistryError) as refused:
            reader.get_dek(name, "s", other)
        assert (404, 40470) == (refused.value.http_status_code, refused.value.error_code)


def test_conflicts_and_absences_are_those_that_the_client_expects(writer, reader, name):
    """The client creates a key after 404, and reads the existing one after 409."""
    context = {"context": ".c"}
    with pytest.raises(SchemaRegistryError) as absent:
        reader.get_kek(name, **context)
    writer.register_kek(name, "hcvault", "http://vault/k", **context)
    writer.register_dek(name, ":.c:s", MATERIAL)
    with pytest.raises(SchemaRegistryError) as kek_stands:
        reader.register_kek(name, "hcvault", "http://vault/k", **context)
    with pytest.raises(SchemaRegistryError) as dek_stands:
        reader.register_dek(name, ":.c:s", base64.b64encode(b"another").decode())

    assert [(404, 40470), (409, 40971), (409, 40971)] == [
        (error.value.http_status_code, error.value.error_code) for error in (absent, kek_stands, dek_stands)
    ]
    assert MATERIAL == reader.get_dek(name, ":.c:s", version=-1).encrypted_key_material


def test_shared_key_is_refused_at_once(writer, name):
    """The registry refuses a shared KEK, because it cannot use the KMS, before it writes anything."""
    with pytest.raises(SchemaRegistryError) as refused:
        writer.register_kek(name, "aws-kms", "arn:aws:kms:1", shared=True)
    with pytest.raises(SchemaRegistryError) as absent:
        writer.get_kek(name)

    assert (403, 40370, 40470) == (
        refused.value.http_status_code, refused.value.error_code, absent.value.error_code
    )  # fmt: skip
