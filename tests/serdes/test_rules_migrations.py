"""Records are read as the latest schema, or as one with certain metadata, by migration rules where there are any."""

import json
from datetime import UTC, datetime

import pytest
from google.protobuf.message_factory import GetMessageClass

from strata.serdes.aio import AsyncDeserializer
from strata.serdes.avro import AvroDeserializer, AvroSerializer
from strata.serdes.client import Metadata, Rule, RuleSet, Schema
from strata.serdes.errors import DecodeError, NoSubject, RegistryError, RuleError, SchemaError
from strata.serdes.framing import join
from strata.serdes.json_schema import JsonDeserializer, JsonSerializer
from strata.serdes.protobuf import ProtobufDeserializer, ProtobufSerializer
from strata.serdes.protobuf.files import link
from strata.serdes.subject_name_strategies import Context

LATEST = {"use.latest.version": True}


def avro(*fields, name="shop.Address"):
    """Return a record schema of fields, each a name or a name with a type and a default."""
    given = [one if isinstance(one, dict) else {"name": one, "type": "string"} for one in fields]
    return json.dumps({"type": "record", "name": name, "fields": given})


def versions(client, topic, *schemas):
    """Register schemas without regard to compatibility, each with its own rules and not those of the one before."""
    client.set_config("NONE", f"{topic}-value")
    return [
        client.register(f"{topic}-value", Schema(text, form, rule_set=RuleSet(**(rules or {}))))
        for text, form, rules in schemas
    ]


def up(expr, name="up", kind="JSONATA", **more):
    """Return a migration rule."""
    return {"migration_rules": (Rule(name=name, type=kind, mode="UPGRADE", expr=expr, **more),)}


def test_the_latest_without_rules(client):
    """A record of an older schema is resolved to the latest as in Avro, and this is decided once."""
    old, new = avro("a"), avro("a", {"name": "b", "type": "int", "default": 5})
    frame = AvroSerializer(client, old)({"a": "x"}, topic="newest")
    client.register("newest-value", new)
    read, context = AvroDeserializer(client, conf=LATEST), Context("newest")

    assert {"a": "x", "b": 5} == read(frame, context)
    assert {"a": "x"} == AvroDeserializer(client)(frame, context)
    assert read.known(read.open(frame, context), context).rules is None


@pytest.mark.parametrize(("ttl", "expected"), [(-1, {"a": "x"}), (0, {"a": "x", "b": 5})])
def test_when_the_latest_is_asked_for_again(client, ttl, expected):
    """The latest version is requested again after the time in the settings; by default never."""
    topic = f"ttl-{ttl}"
    frame = AvroSerializer(client, avro("a"))({"a": "x"}, topic=topic)
    read = AvroDeserializer(client, conf=LATEST | {"latest.cache.ttl.sec": ttl})

    assert {"a": "x"} == read(frame, topic=topic)
    client.register(f"{topic}-value", avro("a", {"name": "b", "type": "int", "default": 5}))
    assert expected == read(frame, topic=topic)


def test_the_latest_of_json(client):
    """A JSON value does not change, and must be valid under the latest schema."""
    old, new = (json.dumps({"type": "object", "properties": {"a": {"maximum": most}}}) for most in (9, 5))
    serialize = JsonSerializer(client, old)
    frames = [serialize({"a": number}, topic="latest-json") for number in (4, 8)]
    versions(client, "latest-json", (new, "JSON", None))
    read = JsonDeserializer(client, conf=LATEST)

    assert {"a": 4} == read(frames[0], topic="latest-json")
    with pytest.raises(DecodeError, match="expected a number of at most 5"):
        read(frames[1], topic="latest-json")


def test_the_latest_of_protobuf(client):
    """A message has the type of its name in the latest schema, even if another message comes first there."""
    old = 'syntax = "proto3"; package shop; message Order { int32 id = 1; }'
    new = 'syntax = "proto3"; package shop; message First { } message Order { int64 number = 1; string note = 2; }'
    kind = GetMessageClass(link(Schema(old, "PROTOBUF"), {}).message_types_by_name["Order"])
    versions(client, "latest-proto", (old, "PROTOBUF", None))
    frame = ProtobufSerializer(client, kind, {"auto.register.schemas": False, **LATEST})(
        kind(id=7), topic="latest-proto"
    )
    versions(client, "latest-proto", (new, "PROTOBUF", None))

    assert {"number": "7"} == ProtobufDeserializer(client, conf=LATEST, as_dict=True)(frame, topic="latest-proto")


@pytest.mark.parametrize("rules", [None, up("$")], ids=["as the latest", "by a migration"])
def test_what_a_dict_of_protobuf_cannot_hold(client, request, rules):
    """A time out of range is an error of the record, with and without a migration."""
    topic = f"late-{request.node.callspec.id}"
    old = 'syntax = "proto3"; import "google/protobuf/timestamp.proto"; message A { google.protobuf.Timestamp at = 1; }'
    found, _ = versions(
        client, topic, (old, "PROTOBUF", None), (old.replace("at = 1;", "at = 1; int32 n = 2;"), "PROTOBUF", rules)
    )
    frame = join(found.schema_id, b"\x00\x0a\x09\x08" + b"\xff" * 7 + b"\x7f")

    with pytest.raises(DecodeError, match="has no JSON value") as caught:
        ProtobufDeserializer(client, conf=LATEST, as_dict=True)(frame, topic=topic)

    assert ("invalid value", found.schema_id) == (caught.value.reason, caught.value.schema_id)


MARK = "$merge([$, {'log': log & '%s'}])"


def logged(client, topic, count=5):
    """Register versions whose migrations each append a letter to the record."""
    text = [avro("log", {"name": f"v{number}", "type": "int", "default": 0}) for number in range(1, count + 1)]
    return versions(
        client,
        topic,
        *(
            (one, "AVRO", None if number == 1 else {
                "migration_rules": (
                    Rule(name="up", type="JSONATA", mode="UPGRADE", expr=MARK % number),
                    Rule(name="down", type="JSONATA", mode="DOWNGRADE", expr=MARK % chr(ord("a") + number - 1)),
                    Rule(name="both", type="JSONATA", mode="UPDOWN", expr=MARK % "."),
                )
            })
            for number, one in enumerate(text, 1)
        ),
    )  # fmt: skip


def test_the_chain_of_migrations(client):
    """Rules run from version to version, upwards in order and downwards in reverse; soft-deleted ones count."""
    first, *_, last = logged(client, "chain-of-versions")
    frames = [AvroSerializer(client, one.schema)({"log": ""}, topic="chain-of-versions") for one in (first, last)]
    client.delete_version("chain-of-versions-value", 3)
    upgraded = AvroDeserializer(client, conf=LATEST)(frames[0], topic="chain-of-versions")

    client.delete_version("chain-of-versions-value", 5)
    client.delete_version("chain-of-versions-value", 4)
    downgraded = AvroDeserializer(client, conf=LATEST)(frames[1], topic="chain-of-versions")

    assert {"log": "2.3.4.5.", "v5": 0} == upgraded
    assert {"log": ".e.d.c", "v2": 0} == downgraded


def test_a_version_that_is_gone(client):
    """Hard-deleted versions are skipped."""
    found = logged(client, "version-gone", 3)
    frame = AvroSerializer(client, found[0].schema)({"log": ""}, topic="version-gone")
    for permanent in (False, True):
        client.delete_version("version-gone-value", 2, permanent=permanent)

    assert {"log": "3.", "v3": 0} == AvroDeserializer(client, conf=LATEST)(frame, topic="version-gone")


def test_resolution_between_migrations(client):
    """A step without rules resolves the value as in Avro, also between two steps that have rules."""
    number = {"name": "n", "type": "int"}
    versions(
        client,
        "between",
        (avro("a", number), "AVRO", None),
        (avro("b", number), "AVRO", up("{'b': a, 'n': n + 1}")),
        (avro({"name": "c", "type": "string", "aliases": ["b"]}, {"name": "n", "type": "long"}), "AVRO", None),
        (avro("d", {"name": "n", "type": "long"}), "AVRO", up("{'d': c & '!', 'n': n + 1}")),
        (avro("d", {"name": "n", "type": "double"}, {"name": "e", "type": "int", "default": 3}), "AVRO", None),
    )
    frame = AvroSerializer(client, avro("a", number))({"a": "x", "n": 1}, topic="between")

    found = AvroDeserializer(client, conf=LATEST)(frame, topic="between")

    assert {"d": "x!", "n": 3.0, "e": 3} == found
    assert isinstance(found["n"], float)


def test_types_through_migrations(client):
    """Bytes, timestamps and numbers have the types of the new schema, whatever JSON made of them."""
    at = {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}}
    raw, number = {"name": "raw", "type": ["null", "bytes"]}, {"name": "n", "type": "long"}
    versions(
        client,
        "types",
        (avro(at, raw, number), "AVRO", None),
        (avro(at, raw, number, "more"), "AVRO", up("$merge([$, {'at': at + 1000, 'n': n / 2, 'more': 'x'}])")),
    )
    now = datetime(2026, 3, 1, tzinfo=UTC)
    frame = AvroSerializer(client, avro(at, raw, number))({"at": now, "raw": b"\x00\xff", "n": 8}, topic="types")

    expected = {"at": now.replace(second=1), "raw": b"\x00\xff", "n": 4, "more": "x"}
    assert expected == AvroDeserializer(client, conf=LATEST)(frame, topic="types")


async def test_rules_after_migrations(client):
    """The latest schema's domain rules for reading run; `from_dict` runs last; the async serdes do the same."""
    rules = up("{'b': a}") | {"domain_rules": (Rule(name="r", type="CEL_FIELD", mode="READ", expr="value + '!'"),)}
    versions(client, "after", (avro("a"), "AVRO", None), (avro("b"), "AVRO", rules))
    frame = AvroSerializer(client, avro("a"))({"a": "x"}, topic="after")
    read = AvroDeserializer(client, from_dict=lambda value, _: list(value.items()), conf=LATEST)

    assert [("b", "x!")] == read(frame, topic="after") == await AsyncDeserializer(read)(frame, topic="after")
    wanted = '{"type":"record","name":"Address","fields":[{"name":"z","type":"string","aliases":["b"]}]}'
    assert {"z": "x!"} == AvroDeserializer(client, wanted, conf=LATEST)(frame, topic="after")


@pytest.mark.parametrize(
    ("rule", "error", "detail"),
    [
        pytest.param(
            up("{'b': 1}"), DecodeError, r"does not fit the schema: expected a string.* \(at field b", id="type"
        ),
        pytest.param(up("{'c': 'x'}"), DecodeError, "expected a value, got none", id="missing"),
        pytest.param(
            up("nosuch"), RuleError, r"expected a value from the rule, got none \(rule up, subject", id="nothing"
        ),
        pytest.param(up("$error('x')"), RuleError, "cannot be evaluated", id="failure"),
        pytest.param(up("a = 'y'", kind="CEL"), RuleError, "invalid CEL", id="no CEL"),
        pytest.param(
            up("value", kind="CEL_FIELD"), RuleError, "runs over fields, so it cannot run over a migration", id="fields"
        ),
        pytest.param(up("{'b': message.a}", kind="CEL"), None, None, id="CEL"),
        pytest.param(
            up("$error('x')", on_failure="NONE"), DecodeError, "expected a value, got none", id="failure let pass"
        ),
    ],
)
def test_migrations_that_fail(client, request, rule, error, detail):
    """A migration that fails, or whose result the schema refuses, is an error that says so."""
    topic = f"fails-{request.node.callspec.id.replace(' ', '-')}"
    versions(client, topic, (avro("a"), "AVRO", None), (avro("b"), "AVRO", rule))
    frame = AvroSerializer(client, avro("a"))({"a": "x"}, topic=topic)
    read = AvroDeserializer(client, conf=LATEST)
    if error is None:
        assert {"b": "x"} == read(frame, topic=topic)
    else:
        with pytest.raises(error, match=detail):
            read(frame, topic=topic)


def test_protobuf_migrations_that_fail(client):
    """The result of a migration must be a message of the new schema."""
    old, new = (f'syntax = "proto3"; package p; message A {{ string {one} = 1; }}' for one in "ab")
    kind = GetMessageClass(link(Schema(old, "PROTOBUF"), {}).message_types_by_name["A"])
    versions(client, "fails-proto", (old, "PROTOBUF", None))
    conf = {"auto.register.schemas": False, **LATEST}
    frame = ProtobufSerializer(client, kind, conf)(kind(a="x"), topic="fails-proto")
    versions(client, "fails-proto", (new, "PROTOBUF", up("{'a': a}")))

    with pytest.raises(DecodeError, match=r"expected a p\.A"):
        ProtobufDeserializer(client, conf=LATEST)(frame, topic="fails-proto")


def test_there_must_be_a_latest(client):
    """Without a subject there is no latest version; a schema outside the subject has no migration to it."""
    frame = AvroSerializer(client, avro("a"))({"a": "x"}, topic="some")
    client.register("of-others-value", avro("b"))
    client.register("others-value", Schema('{"type": "object"}', "JSON"))
    read = AvroDeserializer(client, conf=LATEST)

    with pytest.raises(NoSubject):
        read(frame)
    with pytest.raises(RegistryError) as missing:
        read(frame, topic="no-such-topic")
    with pytest.raises(RegistryError) as foreign:
        read(frame, topic="of-others")
    with pytest.raises(SchemaError, match="expected the format AVRO, got JSON"):
        read(frame, topic="others")
    assert [40401, 40403] == [missing.value.error_code, foreign.value.error_code]


@pytest.mark.parametrize("strategy", ["RECORD", "TOPIC_RECORD"])
def test_subjects_named_by_record(client, strategy):
    """Rules and latest versions are found under the record's own subject too."""
    conf = {"subject.name.strategy.type": strategy}
    metadata = Metadata(properties={"major": strategy})
    text = avro("a", name=f"by.{strategy}")
    rule = Rule(name="r", type="CEL", kind="CONDITION", mode="READ", expr="message.a != 'x'")
    schema = Schema(text, metadata=metadata, rule_set=RuleSet(domain_rules=(rule,)))
    frame = AvroSerializer(client, schema, conf=conf)({"a": "x"}, topic="t")
    subject = {"RECORD": f"by.{strategy}", "TOPIC_RECORD": f"t-by.{strategy}"}[strategy]

    for more in ({}, {"use.latest.with.metadata": {"major": strategy}}):
        with pytest.raises(RuleError, match=rf"\(rule r, subject {subject}, topic t\)"):
            AvroDeserializer(client, conf=conf | more)(frame, topic="t")
