"""Jobs run the rules of data contracts: encryption, conditions, migrations."""

import json
from collections.abc import Callable
from itertools import count
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession, functions

from harness.registry import RegistryNode
from strata.serdes import AvroDeserializer, AvroSerializer
from strata.serdes.client import ClientSettings, RegistryClient, Schema
from strata.serdes.errors import RuleError
from strata.serdes.json_schema import JsonSerializer
from strata.serdes.model import AVRO, JSON, PROTOBUF, Metadata, Rule, RuleSet
from strata.spark_udfs import decode, encode, encoder
from strata.spark_udfs.arguments import Mode
from strata.spark_udfs.decoding.plan import ReaderSource, plan_decode
from strata.spark_udfs.decoding.refusals import FrameRefused
from strata.spark_udfs.decoding.ruled_decoder import RuledDecoder, ruled_decoder
from strata.spark_udfs.decoding.writer_schemas import RegistryNotUsable
from strata.spark_udfs.encoding.row_encoder import RowEncoder, RowRefused

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves them to the collector
]

SECRET = {"rule.executors._default_.param.secret": "known to writers and readers"}
OTHER = {"rule.executors._default_.param.secret": "another one"}
_numbers = count()

AVRO_TEXT = json.dumps(
    {
        "type": "record",
        "name": "Customer",
        "fields": [
            {"name": "name", "type": "string", "confluent:tags": ["PII"]},
            {"name": "age", "type": "int"},
            {"name": "since", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}], "default": None},
            {"name": "owes", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        ],
    }
)
JSON_TEXT = json.dumps(
    {
        "type": "object",
        "properties": {"name": {"type": "string", "confluent:tags": ["PII"]}, "age": {"type": "integer"}},
        "additionalProperties": False,
    }
)
PROTOBUF_TEXT = """syntax = "proto3"; package shop; import "confluent/meta.proto";
message Other { string x = 1; }
message Customer { string name = 1 [(confluent.field_meta).tags = "PII"]; int32 age = 2; }"""
TEXTS = {AVRO: AVRO_TEXT, JSON: JSON_TEXT, PROTOBUF: PROTOBUF_TEXT}
MESSAGE: dict[str, dict[str, Any]] = {AVRO: {}, JSON: {}, PROTOBUF: {"message": "shop.Customer"}}


def _encryption(**more: Any) -> Rule:
    params = {"encrypt.kek.name": f"kek{next(_numbers)}", "encrypt.kms.type": "local-kms", "encrypt.kms.key.id": "main"}
    return Rule(
        name="hide",
        type="ENCRYPT",
        mode="WRITEREAD",
        tags=frozenset({"PII"}),
        params=params | more.pop("params", {}),
        **more,
    )


def _condition(mode: str, expr: str, name: str = "adult") -> Rule:
    return Rule(name=name, type="CEL", kind="CONDITION", mode=mode, expr=expr)


@pytest.fixture
def subject() -> str:
    """Return a new subject."""
    return f"ruled{next(_numbers)}-value"


Register = Callable[..., int]


@pytest.fixture
def register(registry: RegistryClient, subject: str) -> Register:
    """Return a function that registers a version with rules."""

    def register(text: str, *rules: Rule, kind: str = AVRO, migrations: Any = (), major: str | None = None) -> int:
        metadata = None if major is None else Metadata(properties={"major": major})
        rule_set = RuleSet(domain_rules=rules, migration_rules=tuple(migrations))
        return registry.register(subject, Schema(text, kind, metadata=metadata, rule_set=rule_set)).schema_id

    return register


def _customers(kind: str) -> pa.Array:
    from datetime import UTC, datetime
    from decimal import Decimal

    rows = [{"name": "Ann Ünï", "age": 41}, None, {"name": "", "age": 7}]
    if kind != AVRO:
        return pa.array(rows, pa.struct([("name", pa.string()), ("age", pa.int32())]))
    more = {"since": datetime(2026, 3, 1, 12, 0, 0, 5, UTC), "owes": Decimal("-12.30")}
    types = [("name", pa.string()), ("age", pa.int32()), ("since", pa.timestamp("us", "UTC"))]
    made = [None if one is None else one | more for one in rows]
    return pa.array(made, pa.struct([*types, ("owes", pa.decimal128(9, 2))]))


def _encoded(
    registry: RegistryClient | ClientSettings,
    rows: pa.Array,
    rules: Any = SECRET,
    mode: Any = "FAILFAST",
    **options: Any,
) -> Any:
    """Return the frames of rows, as a worker makes them."""
    settings = registry if isinstance(registry, ClientSettings) else registry.settings
    plan = encoder(registry=settings, rules=rules, mode=mode, **options).plan
    return RowEncoder(plan).encode(rows)


def _decoder(registry: RegistryClient, subject: str, rules: Any = SECRET, mode: str = "DEADLETTER", **more: Any) -> Any:
    """Return a worker's decoder."""
    source = ReaderSource(subject=subject, version=more.pop("version", "latest"))
    settings = more.pop("settings", registry.settings)
    decoder = ruled_decoder(plan_decode(settings, source, mode=Mode(mode), rules=rules, **more))
    assert isinstance(decoder, RuledDecoder)
    return decoder


@pytest.mark.parametrize("kind", TEXTS)
def test_encrypted_fields(registry: RegistryClient, subject: str, register: Register, kind: str) -> None:
    """What `encode` encrypts, `decode` decrypts: no plaintext is in the frames, and no other value changes."""
    schema_id = register(TEXTS[kind], _encryption(), kind=kind)
    rows = _customers(kind)

    frames = _encoded(registry, rows, subject=subject, schema_id=schema_id, **MESSAGE[kind])
    decoded = _decoder(registry, subject, **MESSAGE[kind]).decode(frames)

    assert not any("Ann Ünï".encode() in frame for frame in frames.to_pylist() if frame)
    assert [None] * 3 == decoded.field("error").to_pylist()
    assert rows.to_pylist() == decoded.field("value").to_pylist()


@pytest.mark.parametrize("kind", TEXTS)
def test_a_key_that_the_executor_lacks(registry: RegistryClient, subject: str, register: Register, kind: str) -> None:
    """A record that may not be read is a dead letter: the frame as it was sent, with the rule and the field."""
    schema_id = register(TEXTS[kind], _encryption(), kind=kind)
    frames = _encoded(registry, _customers(kind).slice(0, 2), subject=subject, schema_id=schema_id, **MESSAGE[kind])

    decoded = _decoder(registry, subject, OTHER, **MESSAGE[kind]).decode(frames)
    [error, nothing] = decoded.field("error").to_pylist()
    with pytest.raises(
        FrameRefused, match=rf"\(schema id {schema_id}, offset 7\): rule hide: .*name cannot be decrypted"
    ):
        _decoder(registry, subject, OTHER, "FAILFAST", origin=["offset"], **MESSAGE[kind]).decode(
            frames, [pa.array([7, 8])]
        )

    assert nothing is None
    assert [None, None] == decoded.field("value").to_pylist()
    assert (schema_id, frames[0].as_py()) == (error["schema_id"], error["frame"])
    assert error["reason"].startswith("rule hide: ")
    assert error["reason"].endswith(
        "name cannot be decrypted: the wrapped data key was changed, or wrapped with another secret"
    )


def test_the_frames_are_those_of_the_serializer(registry: RegistryClient, subject: str, register: Register) -> None:
    """The deserializer reads what `encode` encrypts, and `decode` what the serializer encrypts, by GUID or header."""
    schema_id = register(AVRO_TEXT, _encryption(params={"encrypt.dek.algorithm": "AES256_SIV"}))
    rows = _customers(AVRO).slice(0, 1)
    named: Any = {"subject.name.strategy": lambda *_: subject}
    conf = {**SECRET, **named, "auto.register.schemas": False, "use.schema.id": schema_id}
    theirs = AvroSerializer(registry, conf=conf)(rows.to_pylist()[0])

    ours = _encoded(registry, rows, subject=subject, schema_id=schema_id).to_pylist()
    [guid] = _encoded(registry, rows, subject=subject, version="latest", framing="guid").to_pylist()
    of_header = encoder(registry=registry.settings, subject=subject, version="latest", framing="header", rules=SECRET)
    [bare] = RowEncoder(of_header.plan).encode(rows).to_pylist()
    assert of_header.header is not None
    in_header = pa.array([{"value": bare, "header": of_header.header[1]}, {"value": theirs, "header": None}])

    assert [theirs] == ours
    assert rows.to_pylist()[0] == AvroDeserializer(registry, conf={**SECRET, **named})(theirs)
    decoder = _decoder(registry, subject)
    assert 2 * rows.to_pylist() == decoder.decode(pa.array([theirs, guid])).field("value").to_pylist()
    assert 2 * rows.to_pylist() == decoder.decode(in_header).field("value").to_pylist()


NAME = '{"type": "record", "name": "Person", "fields": [{"name": "name", "type": "string"}]}'
NAMES = """{"type": "record", "name": "Person", "fields": [
    {"name": "first", "type": "string"}, {"name": "last", "type": "string", "default": ""}]}"""
SPLIT = Rule(
    name="split",
    type="JSONATA",
    mode="UPGRADE",
    expr="$contains(name, '!') ? $error('no name') : ($p := $split(name, ' '); {'first': $p[0], 'last': $p[1]})",
)
JOIN = Rule(name="join", type="JSONATA", mode="DOWNGRADE", expr="{'name': first & ' ' & last}")


def test_migrations(registry: RegistryClient, subject: str, register: Register) -> None:
    """Records of older and newer versions are converted by the rules between them; what fails is a dead letter."""
    registry.set_config(subject=subject, compatibilityGroup="major")
    old_id = register(NAME, major="1")
    new_id = register(NAMES, migrations=[SPLIT, JOIN], major="2")
    settings = registry.settings
    old = _encoded(settings, pa.array([{"name": "Ada Lovelace"}, {"name": "!"}]), subject=subject, schema_id=old_id)
    new = _encoded(settings, pa.array([{"first": "Grace", "last": "Hopper"}]), subject=subject, schema_id=new_id)
    frames = pa.array([*old.to_pylist(), *new.to_pylist(), b"{oops", None, old[0].as_py() + b"x", b"\0\x7f\0\0\0"])

    decoded = _decoder(registry, subject).decode(frames)
    last = _decoder(registry, subject, mode="PERMISSIVE", columns=["last"]).decode(frames)
    backwards = _decoder(registry, subject, version=1).decode(frames)

    people = [{"first": "Ada", "last": "Lovelace"}, None, {"first": "Grace", "last": "Hopper"}, None, None, None, None]
    assert people == decoded.field("value").to_pylist()
    reasons = [
        "rule split: the expression cannot be evaluated: D3137",
        "wrong magic byte 0x7b",
        "trailing bytes",
        "unknown schema id",
    ]
    errors = decoded.field("error").to_pylist()
    assert reasons == [one["reason"] for one in errors if one]
    assert [(old_id, frames[1].as_py()), (None, b"{oops")] == [
        (one["schema_id"], one["frame"]) for one in errors if one
    ][:2]
    assert [one and {"last": one["last"]} for one in people] == last.to_pylist()
    assert ["Ada Lovelace", "!", "Grace Hopper"] == [one["name"] for one in backwards.field("value").to_pylist() if one]


def test_conditions(registry: RegistryClient, subject: str, register: Register) -> None:
    """A row that breaks a condition for writing is refused with the rule's name; for reading it is a dead letter."""
    strict = _condition("WRITE", "message.age >= 18")
    schema_id = register(JSON_TEXT, strict, _condition("READ", "message.age < 40", name="young"), kind=JSON)
    rows = _customers(JSON)

    frames = _encoded(registry, rows, mode="DEADLETTER", subject=subject, schema_id=schema_id)
    with pytest.raises(RowRefused, match=r"rule adult: the condition does not hold: message\.age >= 18"):
        _encoded(registry, rows, subject=subject, schema_id=schema_id)
    decoded = _decoder(registry, subject).decode(frames.field("frame"))

    broken = {"reason": "rule adult: the condition does not hold: message.age >= 18", "path": ""}
    assert [None, None, broken] == frames.field("error").to_pylist()
    assert ["rule young: the condition does not hold: message.age < 40"] == [
        one["reason"] for one in decoded.field("error").to_pylist() if one
    ]


def test_the_action_of_a_dead_letter_topic(registry: RegistryClient, subject: str, register: Register) -> None:
    """A rule with the action DLQ refuses the row, which the job sends where it likes: no producer is needed."""
    rule = Rule(
        name="r", type="CEL", kind="CONDITION", mode="WRITE", expr="false", on_failure="DLQ", params={"dlq.topic": "d"}
    )
    schema_id = register(JSON_TEXT, rule, kind=JSON)

    frames = _encoded(registry, _customers(JSON).slice(0, 1), mode="DEADLETTER", subject=subject, schema_id=schema_id)

    assert "rule r: the condition does not hold: false" == frames.field("error")[0]["reason"].as_py()


def test_validation_after_the_rules(registry: RegistryClient, subject: str, register: Register) -> None:
    """JSON is validated as it will be written, after the rules have changed it."""
    text = json.dumps({"type": "object", "properties": {"name": {"type": "string", "minLength": 3}}})
    longer = Rule(name="longer", type="CEL_FIELD", mode="WRITE", expr="value + 'bc'")
    schema_id = register(text, longer, kind=JSON)
    rows = pa.array([{"name": "a"}, {"name": ""}])

    frames = _encoded(registry, rows, mode="DEADLETTER", subject=subject, schema_id=schema_id)

    assert [True, False] == frames.field("error").is_null().to_pylist()
    assert b'{"name":"abc"}' == frames.field("frame")[0].as_py()[5:].replace(b" ", b"")


def test_the_driver_needs_no_key(
    registry: RegistryClient, subject: str, register: Register, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only workers need the secret, which may come from their environment, once there is a data key."""
    schema_id = register(AVRO_TEXT, _encryption())
    rows = _customers(AVRO)
    with pytest.raises(RuleError, match="there is no data key to encrypt with: local-kms needs the setting"):
        encoder(registry=registry.settings, subject=subject, schema_id=schema_id, rules=True)
    _encoded(registry, rows, subject=subject, schema_id=schema_id)

    plan = encoder(registry=registry.settings, subject=subject, schema_id=schema_id, rules=True).plan
    monkeypatch.setenv("LOCAL_SECRET", SECRET["rule.executors._default_.param.secret"])
    frames = RowEncoder(plan).encode(rows)

    assert rows.to_pylist() == _decoder(registry, subject, {}, columns=None).decode(frames).field("value").to_pylist()


def test_a_registry_that_is_gone() -> None:
    """Encoding asks no registry; a decode that must ask fails the task, even if the rule has no action on failure."""
    with RegistryNode("memory:") as node, RegistryClient(node.url) as client:
        settings = ClientSettings.of(node.url, retries=0, missing_ttl=0)
        known = []
        for on_failure in ("ERROR", "NONE"):
            rule = _encryption(on_failure=on_failure, params={"encrypt.dek.expiry.days": "1"})
            client.register(on_failure, Schema(AVRO_TEXT, rule_set=RuleSet(domain_rules=(rule,))))
            to_value = encoder(registry=settings, subject=on_failure, version="latest", rules=SECRET)
            decoder = _decoder(client, on_failure, settings=settings)
            head = b"\0" + to_value.schema_id.to_bytes(4, "big")
            decoder.decode(pa.array([head]))  # damaged: the worker now knows the schema, and not yet the key
            known.append((to_value, decoder))

    for to_value, decoder in known:
        frames = RowEncoder(to_value.plan).encode(_customers(AVRO))
        assert b"Ann" not in frames[0].as_py()
        with pytest.raises(
            RegistryNotUsable, match=rf"schema id {to_value.schema_id} could not run: .* does not answer"
        ):
            decoder.decode(frames)


def test_records_without_rules_pass(registry: RegistryClient, subject: str, register: Register) -> None:
    """Versions without rules, of any subject, are decoded beside those with rules."""
    plain_id = register(AVRO_TEXT)
    rows = _customers(AVRO)
    plain = _encoded(registry, rows, subject=subject, schema_id=plain_id)
    ruled_id = register(AVRO_TEXT, _encryption())
    ruled = _encoded(registry, rows, subject=subject, schema_id=ruled_id)
    [other] = [JsonSerializer(registry, JSON_TEXT)({"name": "x"}, topic="of another format")]

    decoded = _decoder(registry, subject, version=1).decode(pa.array([*plain.to_pylist(), other]))

    assert [*rows.to_pylist(), None] == decoded.field("value").to_pylist()
    assert "writer schema is JSON" == decoded.field("error")[3]["reason"].as_py()
    assert rows.to_pylist() == _decoder(registry, subject).decode(ruled).field("value").to_pylist()


@pytest.mark.usefixtures("spark")
def test_wrong_uses(registry: RegistryClient, subject: str, register: Register) -> None:
    """Options that rules do not go with are refused, and what has no rules to run needs no Python workers."""
    schema_id = register(AVRO_TEXT, _encryption())
    common: Any = {"registry": registry.settings, "rules": True}
    with pytest.raises(ValueError, match="path='jvm' does not decode with rules"):
        decode("value", subject=subject, path="jvm", **common)
    with pytest.raises(ValueError, match="rules needs subject"):
        decode("value", schema_id=schema_id, **common)
    with pytest.raises(ValueError, match="path='jvm' does not encode with rules"):
        encode("value", subject=subject, version="latest", path="jvm", **common)
    with pytest.raises(ValueError, match="rules needs subject"):
        encode("value", schema_id=schema_id, **common)
    with pytest.raises(ValueError, match=r"rules: expected settings of rules, such as .*, got use\.latest\.version"):
        decode("value", subject=subject, **common | {"rules": {"use.latest.version": True}})
    with pytest.raises(TypeError, match="rules is True, False or a dict of settings, not int"):
        decode("value", subject=subject, **common | {"rules": 1})
    registry.register(f"{subject}-plain", AVRO_TEXT)
    assert encoder(subject=f"{subject}-plain", version="latest", **common).plan.rules is None


def test_no_secret_is_shown(registry: RegistryClient, subject: str, register: Register) -> None:
    """Plans do not show the settings of rules."""
    register(AVRO_TEXT, _encryption())
    to_value = encoder(registry=registry.settings, subject=subject, version="latest", rules=SECRET)
    plan = plan_decode(registry.settings, ReaderSource(subject=subject), mode=Mode.DEADLETTER, rules=SECRET)

    assert "known to" not in repr(to_value) + repr(plan)
    assert plan.rules is not None
    assert plan.rules.token not in repr(plan)


@pytest.mark.skipif(not hasattr(functions, "arrow_udf"), reason="this Spark has no arrow_udf")
def test_in_spark(
    spark: SparkSession, registry: RegistryClient, subject: str, register: Register, capsys: pytest.CaptureFixture[str]
) -> None:
    """A query encrypts and decrypts; without the key there are dead letters, and no plan shows the secret."""
    register(JSON_TEXT, _encryption(), kind=JSON)
    common: Any = {"registry": registry.settings, "subject": subject}
    df = spark.createDataFrame([("Ann", 41), ("Bob", 7)], "name string, age long").coalesce(1)
    framed = df.select(encode(functions.struct("name", "age"), version="latest", rules=SECRET, **common).alias("value"))
    read = decode("value", rules=SECRET, mode="FAILFAST", **common).alias("v")
    decoded = framed.select("value", read, decode("value", rules=OTHER, **common)["error"]["reason"].alias("reason"))
    decoded.explain()

    reason = "rule hide: $.name cannot be decrypted: the wrapped data key was changed, or wrapped with another secret"
    rows = decoded.collect()
    assert [("Ann", 41, reason), ("Bob", 7, reason)] == [(*row["v"], row["reason"]) for row in rows]
    assert not any(b"Ann" in row["value"] for row in rows)
    assert "known to" not in capsys.readouterr().out
