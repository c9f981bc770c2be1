"""Protobuf messages whose tagged fields are all strings and bytes of their own are encrypted without a walk."""

import subprocess
import sys
from uuid import uuid4

import pytest
from google.protobuf.message_factory import GetMessageClass

from strata.serdes import RegistryClient, Rule, RuleSet, Schema
from strata.serdes.errors import EncodeError, RuleError
from strata.serdes.protobuf import ProtobufDeserializer, ProtobufSerializer
from strata.serdes.protobuf.files import find_message, link
from strata.serdes.subject_name_strategies import context_of_topic

CONF = {"rule.executors._default_.param.secret": "of the test"}
PROTO = """syntax = "proto3"; import "confluent/meta.proto";
message Customer {{ {fields} string note = 9; }}
message Inner {{ string text = 1 [(confluent.field_meta).tags = "PII"]; }}
"""
TAG = '[(confluent.field_meta).tags = "PII"]'

# fields of the message; the values of messages, of which the first takes the walk; whether there is a direct encoder
CASES = {
    "a string": (f"string name = 1 {TAG};", [{"name": "Ann"}, {"name": "Ünï" * 50}, {"name": ""}, {}], True),
    "bytes": (f"bytes photo = 1 {TAG};", [{"photo": b"\x00\xff"}, {"photo": b""}, {}], True),
    "optional": (f"optional string name = 1 {TAG};", [{"name": "Ann"}, {"name": ""}, {}], True),
    "a oneof": (
        f"oneof it {{ string name = 1 {TAG}; bytes photo = 2 {TAG}; int32 age = 3; }}",
        [{"name": "Ann"}, {"photo": b"p"}, {"age": 4}, {}],
        True,
    ),
    "two, and others": (
        f"string name = 2 {TAG}; int32 age = 1; bytes photo = 4 {TAG}; repeated string tags = 5;",
        [{"name": "Ann", "photo": b"p", "age": 7, "tags": ["Ann"]}, {"note": "Ann"}],
        True,
    ),
    "repeated": (f"repeated string names = 1 {TAG};", [{"names": ["Ann", "Bob"]}, {"names": []}], False),
    "inside": ("Inner inner = 1;", [{"inner": {"text": "Ann"}}, {}], False),
    "a string, and inside": (
        f"string name = 1 {TAG}; Inner inner = 2;",
        [{"name": "A", "inner": {"text": "B"}}],
        False,
    ),
}


@pytest.fixture
def client(registry_url):
    """Yield a client of the registry."""
    with RegistryClient(registry_url) as one:
        yield one


def serdes(client, fields, *, on_failure=None, kind=None, **params):
    """Return a serializer of a new topic with an encryption rule, the class of its messages, and the topic."""
    topic = f"direct-{uuid4().hex[:8]}"
    rule = Rule(
        name="hide",
        type="ENCRYPT",
        tags=frozenset({"PII"}),
        on_failure=on_failure,
        params={
            "encrypt.kek.name": topic,
            "encrypt.kms.type": "local-kms",
            "encrypt.kms.key.id": "main",
            "encrypt.dek.algorithm": "AES256_SIV",  # equal texts have equal ciphertexts
            **params,
        },
    )
    schema = Schema(PROTO.format(fields=fields), "PROTOBUF", rule_set=RuleSet(domain_rules=(rule,)))
    client.register(f"{topic}-value", schema)
    kind = kind or GetMessageClass(find_message(link(schema, {}), (0,)))
    conf = {**CONF, "auto.register.schemas": False, "use.latest.version": True}
    return ProtobufSerializer(client, kind, conf=conf), kind, topic


@pytest.mark.parametrize(("fields", "values", "direct"), CASES.values(), ids=CASES)
def test_the_direct_encoder_writes_what_the_walk_writes(client, fields, values, direct):
    """After the first record, frames are those of a serializer that walks, and the message is as before."""
    serialize, kind, topic = serdes(client, fields)
    other = ProtobufSerializer(client, kind, conf={**CONF, "auto.register.schemas": False, "use.latest.version": True})
    read = ProtobufDeserializer(client, kind, conf=CONF)
    context = context_of_topic(topic, "value")
    for value in values:
        message = kind(**value)

        frame = serialize(message, topic=topic)

        other.forget()  # so its next record is a first one, which walks
        assert other(message, topic=topic) == frame
        assert kind(**value) == message == read(frame, topic=topic)
        rules = serialize.target(context).rules
        assert direct == (rules.direct is not None)


@pytest.mark.parametrize("days", ["0", "1"])
def test_keys_with_and_without_rotation(client, days):
    """With rotation a ciphertext names the version of its key, directly as in the walk."""
    serialize, kind, topic = serdes(client, f"string name = 1 {TAG};", **{"encrypt.dek.expiry.days": days})
    read = ProtobufDeserializer(client, kind, conf=CONF)

    frames = [serialize(kind(name="Ann"), topic=topic) for _ in range(3)]

    assert frames[0] == frames[1] == frames[2]
    assert "Ann" == read(frames[2], topic=topic).name
    assert (days == "1") == (b"AAAAAA" in frames[2])  # a zero byte and version 1, in base64


def test_errors_are_those_of_the_walk(client):
    """A value that cannot be written is refused by the words of the walk, on the first record and later."""
    serialize, kind, topic = serdes(client, f"string name = 1 {TAG};")
    texts = []
    for _ in range(2):
        with pytest.raises((EncodeError, RuleError)) as refused:
            serialize({"name": "Ann"}, topic=topic)
        texts.append(str(refused.value))
        serialize(kind(name="Ann"), topic=topic)

    assert texts[0] == texts[1]


def test_a_class_with_fields_that_the_schema_lacks_takes_the_walk(client):
    """What the registry's schema does not know is refused, as without rules."""
    _, wide, _ = serdes(client, f"string name = 1 {TAG}; string more = 2;")
    serialize, _, topic = serdes(client, f"string name = 1 {TAG};", kind=wide)
    serialize(wide(name="Ann"), topic=topic)

    with pytest.raises(EncodeError, match="more"):
        serialize(wide(name="Ann", more="x"), topic=topic)
    assert serialize.target(context_of_topic(topic, "value")).rules.direct is None


NONCES = """
import os
from strata.serdes.encryption.ciphers import cipher_of, new_material
cipher = cipher_of("AES256_GCM", new_material("AES256_GCM"))
cipher.encrypt(b"fills the block")
read, write = os.pipe()
child = os.fork()
if child == 0:
    os.write(write, b"".join(cipher.encrypt(b"")[:12] for _ in range(200)))
    os._exit(0)
own = {cipher.encrypt(b"")[:12] for _ in range(600)}
os.waitpid(child, 0)
data = os.read(read, 2400)
theirs = {data[at:at + 12] for at in range(0, len(data), 12)}
print(len(own), len(theirs), len(own & theirs))
"""


def test_no_nonce_occurs_twice():
    """Each value has its own nonce, across blocks of them and across a fork."""
    done = subprocess.run([sys.executable, "-c", NONCES], capture_output=True, text=True, check=True, timeout=60)

    assert ["600", "200", "0"] == done.stdout.split()
