"""In all three formats confluent-kafka's serdes and ours decrypt each other's encrypted PII fields (CSFLE)."""

import copy
import json
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer as TheirAvroDeserializer
from confluent_kafka.schema_registry.avro import AvroSerializer as TheirAvroSerializer
from confluent_kafka.schema_registry.confluent import meta_pb2
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer as TheirProtobufDeserializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer as TheirProtobufSerializer
from confluent_kafka.schema_registry.rule_registry import RuleRegistry
from confluent_kafka.schema_registry.rules.encryption.encrypt_executor import (
    EncryptionExecutor,
    FieldEncryptionExecutor,
)
from confluent_kafka.schema_registry.rules.encryption.localkms.local_driver import LocalKmsDriver
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pool
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.json_format import MessageToDict
from google.protobuf.message_factory import GetMessageClass

from strata.serdes.avro import AvroDeserializer, AvroSerializer
from strata.serdes.client import RegistryClient, Schema
from strata.serdes.errors import RuleError
from strata.serdes.json_schema import JsonDeserializer, JsonSerializer
from strata.serdes.model import Rule, RuleSet
from strata.serdes.protobuf import ProtobufDeserializer, ProtobufSerializer
from strata.serdes.subject_name_strategies import Context

SECRET = "of both sides; Tink keeps the first one that a process meets"
PII = {"confluent:tags": ["PII"]}
AVRO = {
    "type": "record",
    "name": "Customer",
    "namespace": "shop",
    "fields": [
        {"name": "name", "type": "string", **PII},
        {"name": "mail", "type": ["null", "string"], "default": None, **PII},
        {"name": "photo", "type": "bytes", **PII},
        {"name": "age", "type": "int"},
        {"name": "note", "type": "string"},
        {
            "name": "home",
            "type": {
                "type": "record",
                "name": "Address",
                "fields": [{"name": "street", "type": "string", **PII}, {"name": "city", "type": "string"}],
            },
        },
        {"name": "phones", "type": {"type": "array", "items": "string"}, **PII},
    ],
}
JSON = {
    "title": "shop.Customer",
    "type": "object",
    "properties": {
        "name": {"type": "string", **PII},
        "age": {"type": "integer"},
        "note": {"type": "string"},
        "home": {"type": "object", "properties": {"street": {"type": "string", **PII}, "city": {"type": "string"}}},
    },
}
PROTO = """syntax = "proto3"; package shop_pii;
import "confluent/meta.proto";
message Customer {
  string name = 1 [(.confluent.field_meta).tags = "PII"];
  bytes photo = 2 [(.confluent.field_meta).tags = "PII"];
  int32 age = 3;
  string note = 4;
}
"""
AVRO_VALUE = {
    "name": "Ann Ünï",
    "mail": "ann@example.org",
    "photo": b"\x00\xffpng",
    "age": 41,
    "note": "open",
    "home": {"street": "Elm 1", "city": "Ulm"},
    "phones": ["0731", "0732"],
}
JSON_VALUE = {"name": "Ann Ünï", "age": 41, "note": "open", "home": {"street": "Elm 1", "city": "Ulm"}}
HIDDEN = ("Ann Ü".encode(), b"ann@example", b"\xffpng", b"Elm 1", b"0731")


def customer_class():
    """Return the generated class of the .proto file above."""
    file = FileDescriptorProto(
        name=f"shop_pii_{uuid4().hex}.proto",
        package="shop_pii",
        syntax="proto3",
        dependency=[meta_pb2.DESCRIPTOR.name],
    )
    message = file.message_type.add(name="Customer")
    kinds = FieldDescriptorProto.TYPE_STRING, FieldDescriptorProto.TYPE_BYTES, FieldDescriptorProto.TYPE_INT32
    for number, (name, kind) in enumerate(
        [("name", kinds[0]), ("photo", kinds[1]), ("age", kinds[2]), ("note", kinds[0])]
    ):
        one = message.field.add(name=name, number=number + 1, type=kind, label=FieldDescriptorProto.LABEL_OPTIONAL)
        if name in ("name", "photo"):
            one.options.Extensions[meta_pb2.field_meta].tags.append("PII")
    pool = descriptor_pool.Default()
    pool.AddSerializedFile(file.SerializeToString())
    return GetMessageClass(pool.FindMessageTypeByName("shop_pii.Customer"))


CUSTOMER = customer_class()


@dataclass
class Case:
    """A format: its schema, a value, and how to make each side's serdes."""

    format: str
    text: str
    value: Any
    ours: Any
    theirs: Any


CASES = {
    "AVRO": Case(
        "AVRO",
        json.dumps(AVRO),
        AVRO_VALUE,
        lambda client, conf, out: (
            AvroSerializer(client, json.dumps(AVRO), conf=conf) if out else AvroDeserializer(client, conf=conf)
        ),
        lambda client, more, out: (
            TheirAvroSerializer(client, json.dumps(AVRO), **more) if out else TheirAvroDeserializer(client, **more)
        ),
    ),
    "JSON": Case(
        "JSON",
        json.dumps(JSON),
        JSON_VALUE,
        lambda client, conf, out: (
            JsonSerializer(client, json.dumps(JSON), conf=conf) if out else JsonDeserializer(client, conf=conf)
        ),
        lambda client, more, out: (
            JSONSerializer(json.dumps(JSON), client, **more)
            if out
            else JSONDeserializer(None, schema_registry_client=client, **more)
        ),
    ),
    "PROTOBUF": Case(
        "PROTOBUF",
        PROTO,
        CUSTOMER(name="Ann Ünï", photo=b"\x00\xffpng", age=41, note="open"),
        lambda client, conf, out: (ProtobufSerializer if out else ProtobufDeserializer)(client, CUSTOMER, conf=conf),
        lambda client, more, out: (
            TheirProtobufSerializer(CUSTOMER, client, **more)
            if out
            else TheirProtobufDeserializer(
                CUSTOMER,
                {"use.deprecated.format": False} | more.pop("conf"),
                schema_registry_client=client,
                **more,
            )
        ),
    ),
}


class Sides:
    """A topic whose value schema has rules, with serdes of both sides."""

    def __init__(
        self,
        stack: ExitStack,
        url: str,
        case: Case,
        *,
        phase="domain_rules",
        kind="ENCRYPT",
        on_failure=None,
        **params: str,
    ):
        self.stack, self.url, self.case = stack, url, case
        self.client = stack.enter_context(RegistryClient(url))
        self.topic, self.kind = uuid4().hex[:8], kind
        given = {"kek.name": f"kek-{self.topic}", "kms.type": "local-kms", "kms.key.id": "mykey"}
        given |= {name.replace("_", "."): value for name, value in params.items()}
        rule = Rule(
            name="hide",
            type=kind,
            on_failure=on_failure,
            tags=frozenset({"PII"}) if kind == "ENCRYPT" else frozenset(),
            params={f"encrypt.{name}": value for name, value in given.items()},
        )
        self.subject = f"{self.topic}-value"
        self.schema = Schema(case.text, case.format, rule_set=RuleSet(**{phase: (rule,)}))
        self.client.register(self.subject, self.schema)

    def ours(self, *, out: bool, secret: str = SECRET, headers=None):
        """Return `value -> value` of a new serializer or deserializer of ours."""
        conf: dict[str, Any] = {
            "subject.name.strategy.type": "TOPIC",
            "rule.executors._default_.param.secret": secret,
        }
        if out:
            conf |= {"auto.register.schemas": False, "use.latest.version": True}
        made = self.case.ours(self.client, conf, out)
        return lambda value: made(value, Context(self.topic, headers=headers))

    def theirs(self, *, out: bool):
        """Return the same of a new one of theirs."""
        conf = {"auto.register.schemas": False, "use.latest.version": True} if out else {}
        client, rules = self.their_side
        more = {"rule_conf": {"secret": SECRET}, "rule_registry": rules, "conf": conf}
        made = self.case.theirs(client, more, out)
        place = SerializationContext(self.topic, MessageField.VALUE)
        return lambda value: made(copy.deepcopy(value), place)  # theirs encrypts dicts and messages in place

    @cached_property
    def their_side(self):
        """Return a client and the executors, cached because they are slow to make."""
        rules = RuleRegistry()
        executor = FieldEncryptionExecutor() if self.kind == "ENCRYPT" else EncryptionExecutor()
        rules.register_executor(executor)
        self.stack.callback(executor.close)
        return self.stack.enter_context(SchemaRegistryClient({"url": self.url})), rules

    def unencrypted(self, frame: bytes) -> Any:
        """Return the value that a reader without the rules gets."""
        conf = {"rule.executors._default_.disabled": True, "subject.name.strategy.type": "TOPIC"}
        return self.case.ours(self.client, conf, False)(frame, topic=self.topic)


@pytest.fixture
def sides(registry_url):
    """Yield a factory of topics, and close everything that both sides opened."""
    LocalKmsDriver.register()
    with ExitStack() as stack:
        yield lambda *args, **more: Sides(stack, registry_url, *args, **more)


def plain(value: Any) -> Any:
    """Return messages of any class as dicts."""
    return value if isinstance(value, dict) else MessageToDict(value)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
@pytest.mark.parametrize(
    "params",
    [
        pytest.param({}, id="default"),
        pytest.param({"dek_algorithm": "AES256_SIV", "dek_expiry_days": "30"}, id="deterministic, rotated"),
    ],
)
def test_tagged_fields(sides, case, params):
    """Each side reads the other's records; on the wire the tagged fields are encrypted and the others are not."""
    one = sides(case, **params)

    frames = [one.theirs(out=True)(case.value), one.ours(out=True)(case.value)]

    for frame in frames:
        assert not [text for text in HIDDEN if text in frame]
        assert b"open" in frame
        for read in (one.ours(out=False), one.theirs(out=False)):
            assert plain(case.value) == plain(read(frame))
    assert ("dek_algorithm" in params) == (frames[0] == frames[1])


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_payloads(sides, case):
    """A whole payload is encrypted and decrypted, in both directions."""
    one = sides(case, phase="encoding_rules", kind="ENCRYPT_PAYLOAD")

    frames = [one.theirs(out=True)(case.value), one.ours(out=True)(case.value)]

    for frame in frames:
        assert not [text for text in (*HIDDEN, b"open") if text in frame]
        for read in (one.ours(out=False), one.theirs(out=False)):
            assert plain(case.value) == plain(read(frame))


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_reader_without_the_secret(sides, case):
    """A reader without the secret gets an error with rule and field, not value; skipping the rule shows ciphertext."""
    one = sides(case)
    frame = one.ours(out=True)(case.value)

    with pytest.raises(RuleError, match=r"cannot be decrypted: .* another secret") as refused:
        one.ours(out=False, secret="another")(frame)

    assert ("hide", one.subject, one.topic) == (refused.value.rule, refused.value.subject, refused.value.topic)
    assert "Ann Ü" not in repr(refused.value)
    seen = plain(one.unencrypted(frame))
    assert ("open", 41) == (seen["note"], seen["age"])
    assert "Ann Ü" not in seen["name"]


def test_the_value_of_the_caller_stays(sides):
    """Encryption makes a new record and does not change the producer's own."""
    one = sides(CASES["AVRO"])
    value = json.loads(json.dumps(AVRO_VALUE | {"photo": ""})) | {"photo": b"\x01"}
    before = repr(value)

    one.ours(out=True)(value)

    assert before == repr(value)


def test_without_the_extra(sides, monkeypatch):
    """Without the extra the error says what to install; a schema without such rules does not need it."""
    one = sides(CASES["AVRO"])
    for name in [name for name in sys.modules if name.startswith("strata.serdes.encryption")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "cryptography", None)

    with pytest.raises(RuleError, match=r"needs cryptography: install strata-registry\[encryption\]"):
        one.ours(out=True)(AVRO_VALUE)


def test_a_failure_that_the_rule_passes_over(sides):
    """With NONE a reader gets the ciphertext; for writers the rule says ERROR, or they would write plaintext."""
    one = sides(CASES["AVRO"], on_failure="ERROR,NONE")
    frame = one.ours(out=True)(AVRO_VALUE)

    seen = one.ours(out=False, secret="another")(frame)

    assert "open" == seen["note"]
    assert not [text for text in HIDDEN if text in repr(seen).encode()]
    with pytest.raises(RuleError, match="cannot be encrypted"):
        one.ours(out=True, secret="another")(AVRO_VALUE)


def test_a_header_does_not_ask_for_plaintext(sides):
    """The header of a dead letter may skip other rules, but never encryption."""
    one = sides(CASES["AVRO"])

    frame = one.ours(out=True, headers=[("__rule.name", b"hide")])(AVRO_VALUE)

    assert not [text for text in HIDDEN if text in frame]
    assert AVRO_VALUE == one.ours(out=False)(frame)
    assert AVRO_VALUE != one.ours(out=False, headers=[("__rule.name", b"hide")])(frame)
