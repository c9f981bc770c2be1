"""Serdes of confluent-kafka and ours agree in all formats, framings and subject name strategies, in both directions."""

import json
import tempfile
from pathlib import Path
from uuid import uuid4

import pytest
from confluent_kafka import DeserializingConsumer, SerializingProducer
from confluent_kafka.schema_registry import (
    AssociationCreateOrUpdateInfo,
    AssociationCreateOrUpdateRequest,
    SchemaReference,
    SchemaRegistryClient,
    header_schema_id_serializer,
    prefix_schema_id_serializer,
    record_subject_name_strategy,
    topic_record_subject_name_strategy,
)
from confluent_kafka.schema_registry import Schema as TheirSchema
from confluent_kafka.schema_registry.avro import AvroDeserializer as TheirAvroDeserializer
from confluent_kafka.schema_registry.avro import AvroSerializer as TheirAvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer as TheirProtobufDeserializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer as TheirProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.message_factory import GetMessageClass, GetMessages
from grpc_tools import protoc

from strata.serdes.avro import AvroDeserializer, AvroSerializer
from strata.serdes.client import Reference, Schema
from strata.serdes.json_schema import JsonDeserializer, JsonSerializer
from strata.serdes.protobuf import ProtobufDeserializer, ProtobufSerializer
from strata.serdes.subject_name_strategies import CLUSTER, FALLBACK

AVRO_FIELDS = [{"name": "id", "type": "long"}, {"name": "note", "type": "string"}]
AVRO = json.dumps({"type": "record", "name": "Order", "namespace": "shop", "fields": AVRO_FIELDS})
VALUE = {"id": 7, "note": "by hand"}  # with a header, theirs refuses Avro payloads below six bytes
JSON = json.dumps(
    {"title": "shop.Order", "type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}
)
MONEY = 'syntax = "proto3"; package shop; message Money { int64 cents = 1; string currency = 2; }'
ORDER = """syntax = "proto3"; package shop;
import "shop/money.proto"; import "google/protobuf/timestamp.proto";
enum Kind { WEB = 0; STORE = 1; }
message Other { string note = 1; }
message Order {
  int64 id = 1; Money total = 2; google.protobuf.Timestamp at = 3;
  map<string, Kind> kinds = 4; optional string note = 5;
  message Line { string sku = 1; message Part { int32 n = 1; } }
  repeated Line lines = 6;
  oneof by { string mail = 7; int32 phone = 8; }
}
"""
NAMES = ("shop.Other", "shop.Order", "shop.Order.Line", "shop.Order.Line.Part")


def messages():
    """Return the generated classes of the two files, by name."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "shop").mkdir()
        (folder / "shop/money.proto").write_text(MONEY)
        (folder / "shop/order.proto").write_text(ORDER)
        include = Path(protoc.__file__).parent / "_proto"
        out = folder / "set"
        arguments = [f"-I{folder}", f"-I{include}", "--include_imports", f"--descriptor_set_out={out}"]
        assert protoc.main(["", *arguments, "shop/order.proto"]) == 0
        return GetMessages(FileDescriptorSet.FromString(out.read_bytes()).file)


TYPES = messages()
for _name in NAMES:
    TYPES[_name] = GetMessageClass(TYPES["shop.Order"].DESCRIPTOR.file.pool.FindMessageTypeByName(_name))


def order():
    """Return a message that uses every part of the file."""
    one = TYPES["shop.Order"](id=7, note="", mail="a@b")
    one.total.cents, one.at.seconds, one.kinds["k"] = 500, 1700000000, 1
    one.lines.add(sku="x")
    return one


FORMATS = {
    "avro": (
        lambda client, conf: AvroSerializer(client, AVRO, conf=conf),
        lambda client, conf: TheirAvroSerializer(client, AVRO, conf=conf),
        AvroDeserializer,
        TheirAvroDeserializer,
        VALUE,
    ),
    "json": (
        lambda client, conf: JsonSerializer(client, JSON, conf=conf),
        lambda client, conf: JSONSerializer(JSON, client, conf=conf),
        JsonDeserializer,
        lambda client: JSONDeserializer(None, schema_registry_client=client),
        VALUE,
    ),
    "protobuf": (
        lambda client, conf: ProtobufSerializer(client, TYPES["shop.Order"], conf),
        lambda client, conf: TheirProtobufSerializer(TYPES["shop.Order"], client, conf),
        lambda client: ProtobufDeserializer(client, TYPES["shop.Order"]),
        lambda client: TheirProtobufDeserializer(TYPES["shop.Order"], schema_registry_client=client),
        order(),
    ),
}
OWN = "its-own-{topic}"
STRATEGIES = {
    "default": ({}, "{topic}-value"),
    "TOPIC": ({"subject.name.strategy.type": "TOPIC"}, "{topic}-value"),
    "RECORD": ({"subject.name.strategy.type": "RECORD"}, "shop.Order"),
    "TOPIC_RECORD": ({"subject.name.strategy.type": "TOPIC_RECORD"}, "{topic}-shop.Order"),
    "record, their function": ({"subject.name.strategy": record_subject_name_strategy}, "shop.Order"),
    "topic and record, their function": (
        {"subject.name.strategy": topic_record_subject_name_strategy},
        "{topic}-shop.Order",
    ),
    "a function of one's own": ({"subject.name.strategy": lambda ctx, _: f"mine-{ctx.topic}"}, "mine-{topic}"),
    "associated": (
        {"subject.name.strategy.type": "ASSOCIATED", "subject.name.strategy.conf": {CLUSTER: "cluster"}},
        OWN,
    ),
    "associated, fallen back": (
        {"subject.name.strategy.type": "ASSOCIATED", "subject.name.strategy.conf": {FALLBACK: "TOPIC_RECORD"}},
        "{topic}-shop.Order",
    ),
}
FRAMINGS = {
    "prefix": (prefix_schema_id_serializer, "prefix"),
    "header": (header_schema_id_serializer, "header"),
    "guid": (lambda payload, _, schema_id: schema_id.guid_to_bytes() + payload, "guid"),
}


@pytest.fixture(scope="module")
def their_client(registry_url):
    """Yield confluent-kafka's client for the same registry."""
    with SchemaRegistryClient({"url": registry_url}) as one:
        yield one


def context(topic, field=MessageField.VALUE):
    """Return the context of a record, with its own headers."""
    return SerializationContext(topic, field, [])


@pytest.mark.parametrize(
    ("framing", "strategy"),
    [
        pytest.param(framing, name, marks=[pytest.mark.slow] if framing != "prefix" and name != "default" else [])
        for framing in FRAMINGS
        for name in STRATEGIES
    ],
)
@pytest.mark.parametrize("name", FORMATS)
def test_both_write_and_read_the_same(client, their_client, name, framing, strategy):
    """Both write the same bytes and headers under the same subject, and each reads the other's."""
    ours, theirs, we_read, they_read, value = FORMATS[name]
    their_framing, our_framing = FRAMINGS[framing]
    conf, pattern = STRATEGIES[strategy]
    topic = f"formats-{name}-{framing}-{strategy}"
    subject = pattern.format(topic=topic)
    client.set_config("NONE", subject)
    if pattern == OWN:
        ours(client, {"subject.name.strategy": lambda *_: subject})(value, context(topic))
        associate(their_client, topic, subject)
    mine, other = context(topic), context(topic)

    frame = ours(client, {**conf, "schema.id.serializer": our_framing})(value, mine)
    expected = theirs(their_client, {**conf, "schema.id.serializer": their_framing})(value, other)

    assert (expected, other.headers) == (frame, mine.headers)
    assert bool(mine.headers) == (framing == "header")
    assert subject in client.get_subjects()
    assert value == we_read(client)(expected, other) == they_read(their_client)(frame, mine)


def associate(their_client, topic, subject):
    """Associate the values of a topic with a subject, which must have a version."""
    own = AssociationCreateOrUpdateInfo(subject, "value", lifecycle="WEAK")
    their_client.create_association(AssociationCreateOrUpdateRequest(topic, "cluster", topic, "topic", [own]))


@pytest.mark.parametrize("field", [MessageField.KEY, MessageField.VALUE])
@pytest.mark.parametrize("name", FORMATS)
def test_our_serializer_takes_their_framing(client, their_client, name, field):
    """Our serializer accepts their framing function, which writes the header of a key or of a value."""
    ours, theirs, we_read, they_read, value = FORMATS[name]
    conf = {"schema.id.serializer": header_schema_id_serializer}
    mine, other = context(f"framing-{name}", field), context(f"framing-{name}", field)

    frame = ours(client, conf)(value, mine)

    assert (theirs(their_client, conf)(value, other), other.headers) == (frame, mine.headers)
    assert [f"__{field}_schema_id"] == [header for header, _ in mine.headers]
    assert value == we_read(client)(frame, mine) == they_read(their_client)(frame, mine)


@pytest.mark.kafka
@pytest.mark.parametrize("name", FORMATS)
def test_headers_through_a_broker(client, their_client, kafka_broker, name):
    """A GUID in a record's header arrives, from either producer at either consumer."""
    ours, theirs, we_read, they_read, value = FORMATS[name]
    topic, conf = f"headers-{name}", {"schema.id.serializer": header_schema_id_serializer}
    for serializer in (ours(client, conf), theirs(their_client, conf)):
        producer = SerializingProducer({"bootstrap.servers": kafka_broker.bootstrap, "value.serializer": serializer})
        producer.produce(topic, value=value, headers=[])
        assert producer.flush(90) == 0

    assert [value, value] == consumed(kafka_broker, topic, we_read(client))
    assert [value, value] == consumed(kafka_broker, topic, they_read(their_client))


def consumed(broker, topic, deserializer):
    """Return the first two values of a topic."""
    consumer = DeserializingConsumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": uuid4().hex,
            "auto.offset.reset": "earliest",
            "value.deserializer": deserializer,
        }
    )
    consumer.subscribe([topic])
    found = []
    try:
        while len(found) < 2:
            message = consumer.poll(90)
            assert message is not None, "no record came within 90 s"
            found.append(message.value())
    finally:
        consumer.close()
    return found


@pytest.mark.parametrize("name", NAMES)
def test_paths_to_messages(client, their_client, name):
    """A nested message, and one after others, has the same path on both sides; reading needs no classes."""
    kind, ctx = TYPES[name], context(f"paths-{name}")
    frame = ProtobufSerializer(client, kind)(kind(), ctx)

    assert frame == TheirProtobufSerializer(kind, their_client)(kind(), ctx)
    assert name == ProtobufDeserializer(client)(frame).DESCRIPTOR.full_name


def test_without_generated_classes(client, their_client):
    """Their records can be read with the registry's schema alone, imports and well-known types included."""
    frame = TheirProtobufSerializer(TYPES["shop.Order"], their_client)(order(), context("dynamic"))
    expected = {
        "id": "7",
        "total": {"cents": "500"},
        "at": "2023-11-14T22:13:20Z",
        "kinds": {"k": "STORE"},
        "note": "",
        "lines": [{"sku": "x"}],
        "mail": "a@b",
    }

    assert expected == ProtobufDeserializer(client, as_dict=True)(frame)
    assert 500 == ProtobufDeserializer(client)(frame).total.cents


def test_avro_references(client, their_client):
    """A schema that uses another subject's type is written and read by both."""
    version = client.register("refs-line", '{"type":"enum","name":"a.Suit","symbols":["A","B"]}').version
    text = '{"type":"record","name":"a.Card","fields":[{"name":"suit","type":"a.Suit"}]}'
    mine = Schema(text, references=(Reference("a.Suit", "refs-line", version),))
    other = TheirSchema(text, "AVRO", [SchemaReference("a.Suit", "refs-line", version)])
    ctx, value = context("refs-avro"), {"suit": "B"}

    frame = AvroSerializer(client, mine)(value, ctx)

    assert frame == TheirAvroSerializer(their_client, other)(value, ctx)
    assert value == AvroDeserializer(client)(frame) == TheirAvroDeserializer(their_client)(frame, ctx)
    assert value == AvroDeserializer(client, mine)(frame)


def test_json_references(client, their_client):
    """A schema that uses another subject's schema is written and read by both."""
    version = client.register("refs-money", Schema('{"type":"integer"}', "JSON")).version
    text = '{"type":"object","properties":{"sum":{"$ref":"money.json"}}}'
    mine = Schema(text, "JSON", (Reference("money.json", "refs-money", version),))
    other = TheirSchema(text, "JSON", [SchemaReference("money.json", "refs-money", version)])
    ctx, value = context("refs-json"), {"sum": 5}

    frame = JsonSerializer(client, mine)(value, ctx)

    assert frame == JSONSerializer(other, their_client)(value, ctx)
    assert value == JsonDeserializer(client)(frame) == JSONDeserializer(None, None, their_client)(frame, ctx)
