"""Serdes of confluent-kafka and ours run the rules of one schema with the same records, values and dead letters."""

import copy
import json
from dataclasses import replace

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer as TheirAvroDeserializer
from confluent_kafka.schema_registry.avro import AvroSerializer as TheirAvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer as TheirProtobufDeserializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer as TheirProtobufSerializer
from confluent_kafka.schema_registry.rule_registry import RuleRegistry
from confluent_kafka.schema_registry.rules.dlq.dlq_action import DlqAction
from confluent_kafka.serialization import MessageField, SerializationContext, SerializationError
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message_factory import GetMessageClass

from strata.serdes.avro import AvroDeserializer, AvroSerializer
from strata.serdes.client import Metadata, Rule, RuleSet, Schema
from strata.serdes.errors import RuleError
from strata.serdes.json_schema import JsonDeserializer, JsonSerializer
from strata.serdes.protobuf import ProtobufDeserializer, ProtobufSerializer
from strata.serdes.protobuf.files import link

TAGGED = {"confluent:tags": ["PII"]}
LINE = {"type": "record", "name": "Line", "fields": [{"name": "sku", "type": "string", **TAGGED}]}
AVRO = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "namespace": "shop",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "ssn", "type": ["null", "string"], **TAGGED},
            {"name": "note", "type": "string"},
            {"name": "lines", "type": {"type": "array", "items": LINE}},
        ],
    }
)
JSON = json.dumps(
    {
        "title": "shop.Order",
        "type": "object",
        "properties": {
            "id": {"type": "integer"},
            "ssn": {"oneOf": [{"type": "null"}, {"type": "string"}], **TAGGED},
            "note": {"type": "string"},
            "lines": {"type": "array", "items": {"$ref": "#/definitions/Line"}},
        },
        "definitions": {"Line": {"type": "object", "properties": {"sku": {"type": "string", **TAGGED}}}},
    }
)
PROTO = """syntax = "proto3"; package shop; import "confluent/meta.proto";
message Order {
  int64 id = 1;
  optional string ssn = 2 [(confluent.field_meta).tags = "PII"];
  string note = 3;
  repeated Line lines = 4;
  message Line { string sku = 1 [(confluent.field_meta).tags = "PII"]; }
}
"""
VALUE = {"id": 7, "ssn": "123", "note": "n", "lines": [{"sku": "a"}, {"sku": "b"}]}
LATEST = {"auto.register.schemas": False, "use.latest.version": True}


def order_type():
    """Return the class of the message, as generated code would have it."""
    return GetMessageClass(link(Schema(PROTO, "PROTOBUF"), {}).message_types_by_name["Order"])


ORDER = order_type()


def message(value):
    """Return a value as a message."""
    return ParseDict(value, ORDER())


def shown(value):
    """Return a message as a dict, with numbers as numbers."""
    found = MessageToDict(value, preserving_proto_field_name=True)
    return found | ({"id": int(found["id"])} if "id" in found else {})


def their_registry(**conf):
    """Return their executors and actions."""
    from confluent_kafka.schema_registry.rules.cel.cel_executor import CelExecutor  # here, for their import takes long
    from confluent_kafka.schema_registry.rules.cel.cel_field_executor import CelFieldExecutor
    from confluent_kafka.schema_registry.rules.jsonata.jsonata_executor import JsonataExecutor

    registry = RuleRegistry()
    for one in (CelExecutor(), CelFieldExecutor(), JsonataExecutor()):
        registry.register_executor(one)
    registry.register_action(DlqAction(conf))
    return registry


class Format:
    """Factories of both sides' serializers and deserializers for one format."""

    def __init__(self, text, schema_format, ours, theirs, we_read, they_read, make=copy.deepcopy, show=lambda one: one):
        self.schema = Schema(text, schema_format)
        self.ours, self.theirs, self.we_read, self.they_read = ours, theirs, we_read, they_read
        self.make, self.show = make, show


pytestmark = pytest.mark.usefixtures("their_cel")

FORMATS = {
    "avro": Format(
        AVRO,
        "AVRO",
        lambda client, conf: AvroSerializer(client, AVRO, conf=conf),
        lambda client, conf, rules: TheirAvroSerializer(client, AVRO, conf=conf, rule_registry=rules),
        lambda client, conf: AvroDeserializer(client, conf=conf),
        lambda client, conf, rules: TheirAvroDeserializer(client, conf=conf, rule_registry=rules),
    ),
    "json": Format(
        JSON,
        "JSON",
        lambda client, conf: JsonSerializer(client, JSON, conf=conf),
        lambda client, conf, rules: JSONSerializer(JSON, client, conf=conf, rule_registry=rules),
        lambda client, conf: JsonDeserializer(client, conf=conf),
        lambda client, conf, rules: JSONDeserializer(
            None, schema_registry_client=client, conf=conf, rule_registry=rules
        ),
    ),
    "protobuf": Format(
        PROTO,
        "PROTOBUF",
        lambda client, conf: ProtobufSerializer(client, ORDER, conf=conf),
        lambda client, conf, rules: TheirProtobufSerializer(ORDER, client, conf=conf, rule_registry=rules),
        lambda client, conf: ProtobufDeserializer(client, ORDER, conf=conf),
        lambda client, conf, rules: TheirProtobufDeserializer(
            ORDER, conf=conf, schema_registry_client=client, rule_registry=rules
        ),
        message,
        shown,
    ),
}


def cel(expr, mode="WRITE", **more):
    """Return a CEL transform over the whole value."""
    return Rule(name=more.pop("name", "one"), type="CEL", mode=mode, expr=expr, **more)


def field(expr, mode="WRITE", **more):
    """Return a CEL transform over fields."""
    return Rule(name=more.pop("name", "one"), type="CEL_FIELD", mode=mode, expr=expr, **more)


PII = {"tags": frozenset({"PII"})}
TEXTS = "typeName == 'STRING' ; "
MASKED = VALUE | {"ssn": "x123", "lines": [{"sku": "xa"}, {"sku": "xb"}]}
WHOLE = "{'id': message.id + 1, 'note': message.note + '!', 'ssn': message.ssn, 'lines': message.lines}"
RULES = {
    "a condition that holds": ([cel("message.id > 0", kind="CONDITION")], VALUE),
    "a condition that does not": ([cel("message.id > 7", kind="CONDITION")], None),
    "a condition whose guard is false": ([cel("message.id > 7 ; false", kind="CONDITION")], VALUE),
    "a condition on reading": ([cel("message.note != 'n'", "READ", kind="CONDITION")], None),
    "a transform of the whole": ([cel(WHOLE)], VALUE | {"id": 8, "note": "n!"}),
    "a transform whose guard is false": ([cel("message.id > 7 ; " + WHOLE)], VALUE),
    "a field by its tag": ([field(TEXTS + "'x' + value", **PII)], MASKED),
    "a field by its name": ([field("name == 'note' ; value + '!'")], VALUE | {"note": "n!"}),
    "a field by its type": ([field("typeName == 'LONG' || typeName == 'INT' ; value + 1")], VALUE | {"id": 8}),
    "a field by its tags": ([field("'PII' in tags ; 'x' + value")], MASKED),
    "a field by its record": ([field("name == 'note' && message.id == 7 ; value + '!'")], VALUE | {"note": "n!"}),
    "a condition on fields": ([field("size(value) > 0", kind="CONDITION", **PII)], VALUE),
    "a condition on fields that fails": ([field("value == 'b'", kind="CONDITION", **PII)], None),
    "of two for the same tags the first": (
        [field("'x' + value", **PII), field("'y' + value", name="two", **PII)],
        MASKED,
    ),
    "a condition and a transform for the same tags": (
        [field("size(value) > 0", kind="CONDITION", **PII), field("'x' + value", name="two", **PII)],
        MASKED,
    ),
    "in order": (
        [
            field("name == 'note' ; value + '1'", name="one"),
            field("name == 'note' ; value + '2'", name="two"),
        ],
        VALUE | {"note": "n12"},
    ),
    "backwards on reading": (
        [
            field("name == 'note' ; value + '1'", "READ", name="one"),
            field("name == 'note' ; value + '2'", "READ", name="two"),
        ],
        VALUE | {"note": "n21"},
    ),
    "on writing and on reading": ([field("name == 'note' ; value + '1'", "WRITEREAD")], VALUE | {"note": "n11"}),
    "a disabled one": ([cel("false", kind="CONDITION", disabled=True)], VALUE),
    "a failure that is nothing": ([cel("false", kind="CONDITION", on_failure="NONE")], VALUE),
    "a failure there, nothing back": (
        [cel("message.id == 8", "WRITEREAD", kind="CONDITION", on_failure="ERROR,NONE")],
        None,
    ),
    "nothing there, a failure back": (
        [cel("message.id == 8", "WRITEREAD", kind="CONDITION", on_failure="NONE,ERROR")],
        None,
    ),
    "a success that is an error": ([cel("true", kind="CONDITION", on_success="ERROR")], None),
    "an unknown type": ([replace(cel("true"), type="NO_SUCH")], None),
    "an unknown function": ([cel("nosuch(message)", kind="CONDITION")], None),
}


@pytest.fixture(scope="module")
def their_client(registry_url):
    """Yield confluent-kafka's client for the same registry."""
    with SchemaRegistryClient({"url": registry_url}) as one:
        yield one


def context(topic, headers=()):
    """Return the context of a record."""
    return SerializationContext(topic, MessageField.VALUE, list(headers))


def outcome(call, *arguments):
    """Return the result of a call, or None for a failure."""
    try:
        return call(*arguments)
    except (RuleError, SerializationError):
        return None


def registered(client, form, topic, rules, **more):
    """Register the schema of a format with rules."""
    rule_set = RuleSet(domain_rules=tuple(rules), **more)
    client.register(f"{topic}-value", replace(form.schema, rule_set=rule_set))


def both_ways(client, their_client, form, topic):
    """Return what each side writes, and what the other reads from it; None for a failure."""
    ctx, theirs = context(topic), their_registry()
    written = [
        outcome(form.ours(client, LATEST), form.make(VALUE), ctx),
        outcome(form.theirs(their_client, LATEST, theirs), form.make(VALUE), ctx),
    ]
    if written[0] is None:
        return written, []
    read = [
        outcome(form.we_read(client, {}), written[1], ctx),
        outcome(form.they_read(their_client, {}, theirs), written[0], ctx),
    ]
    return written, [None if one is None else form.show(one) for one in read]


# Cases that depend on the format of the values; the others run the same code for all formats.
OF_FORMATS = [case for case in RULES if "field" in case or "transform" in case or case == "a condition that holds"]
CASES = [("avro", case) for case in RULES] + [(name, case) for name in ("json", "protobuf") for case in OF_FORMATS]


@pytest.mark.parametrize(("name", "case"), CASES, ids=lambda one: one)
def test_rules_do_the_same(client, their_client, name, case):
    """The same rules make the same record, or refuse it, and each side reads the other's record alike."""
    rules, expected = RULES[case]
    form, topic = FORMATS[name], f"rules-{name}-{case.replace(' ', '-')}"
    registered(client, form, topic, rules)

    written, read = both_ways(client, their_client, form, topic)

    if written == [None, None]:
        assert expected is None
        return
    stored = form.we_read(client, {"rule.executors._default_.disabled": True})
    assert form.show(stored(written[1], context(topic))) == form.show(stored(written[0], context(topic)))
    assert [expected, expected] == read


@pytest.mark.parametrize("where", ["CLIENT", "GATEWAY", "SERVER", "NONE"])
def test_where_rules_are_enabled(client, their_client, where):
    """Rules for another environment do not run here."""
    form, topic = FORMATS["avro"], f"enabled-{where}"
    registered(client, form, topic, [cel("false", kind="CONDITION")], enable_at=where)

    written, _ = both_ways(client, their_client, form, topic)

    assert [where == "CLIENT"] * 2 == [one is None for one in written]


# Migrations

VERSIONS = {
    "avro": [
        json.dumps(
            {"type": "record", "name": "shop.Address", "fields": [{"name": one, "type": "string"} for one in names]}
        )
        for names in (["state", "city"], ["province", "city"], ["region", "city"])
    ],
    "json": [
        json.dumps({"type": "object", "properties": {one: {"type": "string"} for one in names}, "required": names})
        for names in (["state", "city"], ["province", "city"], ["region", "city"])
    ],
    "protobuf": [
        f'syntax = "proto3"; package shop; message Address {{ string {one} = {number}; string city = 9; }}'
        for number, one in enumerate(["state", "province", "region"], 1)
    ],
}


def renaming(name, old, new, mode):
    """Return a JSONata migration that renames a field."""
    return Rule(
        name=name,
        type="JSONATA",
        mode=mode,
        expr=f"$merge([$sift($, function($v, $k) {{$k != '{old}'}}), {{'{new}': {old}}}])",
    )


def renamings(old, new):
    """Return the rules of the newer of two versions."""
    return (renaming("up", old, new, "UPGRADE"), renaming("down", new, old, "DOWNGRADE"))


def migrating(client, name):
    """Return a topic with three versions of a schema, which are compatible by migration only."""
    topic = f"migrate-{name}"
    client.set_config(subject=f"{topic}-value", compatibilityGroup="major")
    rules = [(), renamings("state", "province"), renamings("province", "region")]
    schemas = [
        Schema(
            text,
            name.upper(),
            metadata=Metadata(properties={"major": str(number)}),
            rule_set=RuleSet(migration_rules=rules[number - 1]) if number > 1 else None,
        )
        for number, text in enumerate(VERSIONS[name], 1)
    ]
    for one in schemas:
        client.register(f"{topic}-value", one)
    return topic, schemas


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("name", ["avro", "json", "protobuf"])
def test_migrations_do_the_same(client, their_client, registry_url, name, number):
    """Both sides read a record of any version as each of the others, up and down, alike."""
    topic, schemas = migrating(client, name)
    names = ["state", "province", "region"]
    value, ctx = {names[number - 1]: "QC", "city": "Laval"}, context(topic)
    if name == "protobuf":
        kinds = [GetMessageClass(link(one, {}).message_types_by_name["Address"]) for one in schemas]
        frame = ProtobufSerializer(client, kinds[number - 1], {"use.latest.with.metadata": {"major": str(number)}})(
            kinds[number - 1](**value), ctx
        )
    else:
        ours = {"avro": AvroSerializer, "json": JsonSerializer}[name]
        frame = ours(client, schemas[number - 1])(value, ctx)

    for wanted in (1, 2, 3):
        conf = {"use.latest.with.metadata": {"major": str(wanted)}} if wanted < 3 else {"use.latest.version": True}
        expected = {names[wanted - 1]: "QC", "city": "Laval"}
        if name == "protobuf":
            kind = kinds[wanted - 1]
            with SchemaRegistryClient({"url": registry_url}) as fresh:  # theirs keeps texts, and reads them as base64
                read = TheirProtobufDeserializer(
                    kind, conf=conf, schema_registry_client=fresh, rule_registry=their_registry()
                )(frame, ctx)
            assert expected == ProtobufDeserializer(client, conf=conf, as_dict=True)(frame, ctx)
            assert expected == MessageToDict(ProtobufDeserializer(client, kind, conf=conf)(frame, ctx))
            assert expected == MessageToDict(read)
        else:
            form = FORMATS[name]
            assert expected == form.we_read(client, conf)(frame, ctx)
            assert expected == form.they_read(their_client, conf, their_registry())(frame, ctx)


# Dead letters


@pytest.mark.kafka
@pytest.mark.parametrize("name", ["avro", "json"])
def test_dead_letters_are_the_same(client, their_client, kafka_broker, name):
    """A record that fails its rule, in writing or reading, goes to the same topic with the same headers from each."""
    form, topic = FORMATS[name], f"dead-{name}"
    dead = f"{topic}-letters"
    rules = [
        cel("message.id == 7", kind="CONDITION", on_failure="DLQ", params={"dlq.topic": dead}),
        cel("message.id == 8", "READ", name="two", kind="CONDITION", on_failure="DLQ", params={"dlq.topic": dead}),
    ]
    registered(client, form, topic, rules)
    producer = Producer({"bootstrap.servers": kafka_broker.bootstrap, "enable.idempotence": True})  # in order
    conf, theirs = {"dlq.producer": producer}, their_registry(producer=producer)
    ctx = context(topic, [("trace", b"1")])

    frame = form.ours(client, LATEST)(form.make(VALUE), ctx)
    with pytest.raises(RuleError, match="does not hold"):
        form.ours(client, LATEST | conf)(VALUE | {"id": 1}, ctx)
    with pytest.raises(RuleError, match="does not hold"):
        form.we_read(client, conf)(frame, ctx)
    with pytest.raises(SerializationError):
        form.theirs(their_client, LATEST, theirs)(VALUE | {"id": 1}, ctx)
    with pytest.raises(SerializationError):
        form.they_read(their_client, {}, theirs)(frame, ctx)
    assert producer.flush(90) == 0

    (our_write, our_read), (their_write, their_read) = pairs(letters(kafka_broker, dead))
    assert our_write == their_write == (json.dumps(VALUE | {"id": 1}).encode(), headers(topic, "one", "WRITE"))
    assert our_read == their_read == (frame, headers(topic, "two", "READ"))


def headers(topic, rule, mode):
    """Return the headers of a dead letter without the error sentence."""
    return {
        "trace": b"1",
        "__rule.name": rule.encode(),
        "__rule.mode": mode.encode(),
        "__rule.subject": f"{topic}-value".encode(),
        "__rule.topic": topic.encode(),
    }


def pairs(found):
    """Return the records two by two, each as its value and its headers except the exception, which differs."""
    shown = [(value, {key: one for key, one in of.items() if key != "__rule.exception"}) for value, of in found]
    assert all(of["__rule.exception"] for _, of in found)
    return shown[:2], shown[2:]


def letters(broker, topic):
    """Return four records of a topic."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    found = []
    try:
        while len(found) < 4:
            record = consumer.poll(90)
            assert record is not None, "no record came within 90 s"
            if record.error() is None:
                found.append((record.value(), dict(record.headers())))
    finally:
        consumer.close()
    return found
