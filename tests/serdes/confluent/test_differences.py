"""What the porting guide says about both packages is what they do."""

import json
import warnings
from decimal import Decimal

import confluent_kafka.schema_registry as theirs
import pytest
from confluent_kafka.schema_registry.avro import AvroDeserializer as TheirDeserializer
from confluent_kafka.schema_registry.avro import AvroSerializer as TheirSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer as TheirJsonDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext, SerializationError

import strata.serdes.confluent as ours
from strata.serdes.confluent.avro import AvroDeserializer, AvroSerializer
from strata.serdes.confluent.json_schema import JSONDeserializer

SCHEMA = '{"type": "record", "name": "N", "fields": [{"name": "n", "type": "string"}]}'
WIDER = SCHEMA.replace("}]", '}, {"name": "m", "type": "int", "default": 1}]')
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 3}


@pytest.fixture
def clients(registry_url):
    """Yield a client of each package."""
    with theirs.SchemaRegistryClient({"url": registry_url}) as one, ours.SchemaRegistryClient(one.config()) as other:
        yield one, other


def test_trailing_bytes(clients):
    """Bytes behind a value are ignored there, and an error here."""
    context = SerializationContext("trailing", MessageField.VALUE)
    frame = AvroSerializer(clients[1], SCHEMA)({"n": "x"}, context) + b"more"

    assert {"n": "x"} == TheirDeserializer(clients[0])(frame, context)
    with pytest.raises(SerializationError, match="trailing bytes"):
        AvroDeserializer(clients[1])(frame, context)


def test_long_integers():
    """Integers over 64 bits become floats there, and keep their digits here."""
    payload = b'\0\0\0\0\1{"a":12345678901234567890123}'
    context = SerializationContext("long-integers", MessageField.VALUE)

    assert {"a": 12345678901234567890123.0} == TheirJsonDeserializer("{}")(payload, context)
    assert {"a": 12345678901234567890123} == JSONDeserializer("{}")(payload, context)


@pytest.mark.usefixtures("their_cel")
def test_callers_value(clients):
    """A rule changes the caller's value there, and not here."""
    from confluent_kafka.schema_registry.rules.cel.cel_field_executor import CelFieldExecutor  # takes long to import

    CelFieldExecutor.register()
    rule = {"name": "up", "kind": "TRANSFORM", "mode": "WRITE", "type": "CEL_FIELD", "expr": "value + '!'"}
    schema = ours.Schema.from_dict({"schema": SCHEMA, "ruleSet": {"domainRules": [rule]}})
    clients[1].register_schema("in-place-value", schema)
    context = SerializationContext("in-place", MessageField.VALUE)
    conf = {"auto.register.schemas": False, "use.latest.version": True}
    values = []
    for kind, client in zip((TheirSerializer, AvroSerializer), clients, strict=True):
        values.append({"n": "x"})
        assert b"\4x!" == kind(client, SCHEMA, conf=conf)(values[-1], context)[5:]

    assert [{"n": "x!"}, {"n": "x"}] == values


def test_short_payload_with_header(clients):
    """A payload below six bytes whose schema is in a header is refused there, and read here."""
    context = SerializationContext("short", MessageField.VALUE, [])
    conf = {"schema.id.serializer": ours.header_schema_id_serializer}
    payload = AvroSerializer(clients[1], SCHEMA, conf=conf)({"n": "x"}, context)

    with pytest.raises(SerializationError):
        TheirDeserializer(clients[0])(payload, context)
    assert {"n": "x"} == AvroDeserializer(clients[1])(payload, context)


def test_latest_version(clients):
    """The latest version is cached there, and asked for here."""
    versions = []
    for client, package in zip(clients, (theirs, ours), strict=True):
        subject = f"latest-of-{package.__name__}"
        client.register_schema(subject, package.Schema(SCHEMA))
        versions.append([client.get_latest_version(subject).version])
        client.register_schema(subject, package.Schema(WIDER))
        versions[-1].append(client.get_latest_version(subject).version)

    assert [[1, 1], [1, 2]] == versions


def test_deleted_only(clients):
    """`deleted_only` also returns live versions there."""
    for text in (SCHEMA, WIDER):
        clients[1].register_schema("deleted-only", ours.Schema(text))
    clients[1].delete_version("deleted-only", 1)

    assert [[1, 2][1:], [1]] == [client.get_versions("deleted-only", deleted_only=True) for client in clients]


def test_no_answer():
    """No answer is an error of httpx there, and a SchemaRegistryError here."""
    conf = {"url": "http://127.0.0.1:9", "max.retries": 0}
    with theirs.SchemaRegistryClient(conf) as client, pytest.raises(Exception, match="refused") as caught:
        client.get_subjects()
    assert not isinstance(caught.value, theirs.SchemaRegistryError)

    with ours.SchemaRegistryClient(conf) as other, pytest.raises(ours.SchemaRegistryUnavailable) as found:
        other.get_subjects()
    assert -1 == found.value.http_status_code


def test_decimal_of_another_exponent(clients):
    """A decimal with fewer digits than the scale is refused there, and written here."""
    schema = json.dumps({"type": "record", "name": "D", "fields": [{"name": "d", "type": DECIMAL}]})
    context = SerializationContext("decimals", MessageField.VALUE)
    value = {"d": Decimal("1.5000")}

    with pytest.raises(ValueError, match="Scale provided"):
        TheirSerializer(clients[0], schema)(value, context)
    frame = AvroSerializer(clients[1], schema)(value, context)
    assert {"d": Decimal("1.500")} == TheirDeserializer(clients[0])(frame, context)


def test_text_of_a_time(clients):
    """The text of a timestamp is refused there, and written here."""
    schema = '{"type": "long", "logicalType": "timestamp-millis"}'
    context = SerializationContext("texts-of-times", MessageField.VALUE)

    with pytest.raises(TypeError):
        TheirSerializer(clients[0], schema)("2024-01-02T03:04:05Z", context)
    assert b"\x90\xe2\x86\x82\x99c" == AvroSerializer(clients[1], schema)("2024-01-02T03:04:05Z", context)[5:]


def test_unusable_schema(clients):
    """A schema that cannot be used is an error at the first record there, and of the constructor here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(Exception):  # noqa: B017, PT011 - of any class
            TheirSerializer(clients[0], '{"type": "nothing"}')(1, SerializationContext("unusable", MessageField.VALUE))
    with pytest.raises(ours.SerializationError, match="nothing"):
        AvroSerializer(clients[1], '{"type": "nothing"}')


def test_closed_client(registry_url):
    """A closed client is unusable there, and opens connections again here."""
    client, other = theirs.SchemaRegistryClient({"url": registry_url}), ours.SchemaRegistryClient({"url": registry_url})
    client.close()
    other.close()

    with pytest.raises(RuntimeError):
        client.get_subjects()
    assert isinstance(other.get_subjects(), list)
    other.close()


def test_rules_without_registration(clients):
    """A rule of type CEL fails there until its executor is registered, and runs here."""
    rule = {"name": "ok", "kind": "CONDITION", "mode": "WRITE", "type": "CEL", "expr": "true"}
    schema = ours.Schema.from_dict({"schema": SCHEMA, "ruleSet": {"domainRules": [rule]}})
    clients[1].register_schema("unregistered-value", schema)
    context = SerializationContext("unregistered", MessageField.VALUE)
    conf = {"auto.register.schemas": False, "use.latest.version": True}

    with pytest.raises(SerializationError):
        TheirSerializer(clients[0], SCHEMA, conf=conf)({"n": "x"}, context)
    assert b"\2x" == AvroSerializer(clients[1], SCHEMA, conf=conf)({"n": "x"}, context)[5:]
