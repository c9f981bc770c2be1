"""Clients of other languages tell one story to a node, and read each other's records."""

import json
import subprocess
from pathlib import Path
from urllib.parse import quote
from urllib.request import urlopen

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from harness.clients import CLIENTS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

STORY_FILE = Path(__file__).with_name("story.json")
STORY = json.loads(STORY_FILE.read_text())
RUN_TIMEOUT_S = 120

# What a client has no call for, or says in its own way.
LEFT_OUT = {
    "go-franz": set(),
    "go-confluent": {"read-only"},
    "node-confluent": {"read-only"},
    "node-kafkajs": {
        *("by id", "versions", "references", "unknown version", "compatible", "config unset", "config", "read-only"),
        *("odd subjects", "soft delete", "after soft delete", "hard delete"),
    },
    "rust": {
        *("look up", "unknown version", "config unset", "config", "read-only"),
        *("soft delete", "after soft delete", "hard delete"),
    },
    "java": set(),
}
OWN_STEPS = {
    "node-kafkajs": {
        "incompatible": 409,  # the client's errors carry the HTTP status only
        "unknown subject": 404,
        "unknown id": 404,
        "through a reference": {"line": {"sku": "a"}},
    },
}
# Java 7.5 and Rust do not send every name as it is: see their sources.
ODD_NAMES = {
    "java": [odd for odd in STORY["odd"] if odd.isascii()],
    "rust": ["a/b", "two words", "größe", "語"],
}
READS = {
    "go-franz": {"avro", "json"},  # Protobuf is left to the caller
    "go-confluent": {"avro", "json", "protobuf"},
    "node-confluent": {"avro", "json", "protobuf"},
    "node-kafkajs": {"avro", "json", "protobuf"},
    "rust": {"avro", "json", "protobuf"},
    "java": {"avro"},  # Flink's jar holds the client without the serdes of the others
}
# kafkajs writes Protobuf frames without the message index, which no other client reads; Rust's encoder is not built.
WRITES = {**READS, "node-kafkajs": {"avro", "json"}, "rust": {"avro", "json"}}


@pytest.fixture(scope="session")
def commands():
    """The command of a client, built when first asked for; the test is skipped where its toolchain is not installed."""
    built = {}

    def command(name):
        client = CLIENTS[name]
        if client.missing:
            pytest.skip(f"{name} needs {' and '.join(client.missing)} on the PATH")
        if name not in built:
            built[name] = client.command()
        return built[name]

    return command


@pytest.fixture(scope="session")
def stories(commands, node_url):
    """What a client answered to each step of its story, told once."""
    told = {}

    def story(name):
        command = commands(name)
        if name not in told:
            told[name] = run([*command, "story", node_url, name, str(STORY_FILE)])
        return told[name]

    return story


def run(command, lines=""):
    """The steps that a program prints, by name."""
    done = subprocess.run(
        command, input=lines, capture_output=True, text=True, encoding="utf-8", timeout=RUN_TIMEOUT_S, check=False
    )
    assert 0 == done.returncode, done.stdout[-2000:] + done.stderr[-4000:]
    steps = [json.loads(line) for line in done.stdout.splitlines()]
    return {step["step"]: step["got"] for step in steps}


def registered_id(node_url, subject, version):
    """The id that the node itself gives for a version."""
    with urlopen(
        f"{node_url}/subjects/{quote(subject, safe='')}/versions/{version}?deleted=true", timeout=10
    ) as answer:
        return json.load(answer)["id"]


def expected_steps(node_url, name):
    """What a client must have answered."""
    first, second = (registered_id(node_url, f"{name}-avro", version) for version in (1, 2))
    odd = sorted(f"{name}-odd-{each}" for each in ODD_NAMES.get(name, STORY["odd"]))
    steps = {
        "register avro": first,
        "register json": registered_id(node_url, f"{name}-json", 1),
        "register protobuf": registered_id(node_url, f"{name}-protobuf", 1),
        "look up": first,
        "by id": STORY["avro"]["first"],
        "register second": second,
        "versions": [1, 2],
        "latest": [2, second],
        "references": [{"name": "acme.Line", "subject": f"{name}-dependency", "version": 1}],
        "incompatible": 40901,
        "unknown subject": 40401,
        "unknown version": 40402,
        "unknown id": 40403,
        "compatible": [True, False],
        "config unset": 40408,
        "config": "FULL",
        "read-only": ["READONLY", "READONLY", 42205],
        "odd subjects": odd,
        "soft delete": [1],
        "after soft delete": 40401,
        "hard delete": [1],
        "context": [1, 1],
    }
    kept = {step: got for step, got in steps.items() if step not in LEFT_OUT[name]}
    if name == "node-kafkajs":
        kept["odd ids"] = [registered_id(node_url, f"{name}-odd-{each}", 1) for each in STORY["odd"]]
    return kept | OWN_STEPS.get(name, {})


@pytest.mark.parametrize("name", CLIENTS)
def test_story(stories, node_url, name):
    """Registration, reads, errors, settings, names, deletion and contexts, as the client reports them."""
    told = stories(name)

    steps = {step: got for step, got in told.items() if not step.startswith("frame ")}
    assert expected_steps(node_url, name) == steps
    assert {f"frame {kind}" for kind in WRITES[name]} == set(told) - set(steps)


@pytest.mark.parametrize("reader", CLIENTS)
def test_reads_what_the_others_wrote(commands, stories, node_url, reader):
    """The frames of every client of this machine, Python's among them, give the value of the story."""
    command = commands(reader)
    written = frames(stories, node_url)
    mine = [frame for frame in written if frame["format"] in READS[reader]]

    values = run([*command, "read", node_url], "".join(json.dumps(frame) + "\n" for frame in mine))

    assert {frame["step"]: STORY["value"] for frame in mine} == values


def test_python_reads_what_the_others_wrote(stories, node_url):
    """The same for confluent-kafka's Python deserializers."""
    order = order_class()
    with SchemaRegistryClient({"url": node_url}) as client:
        readers = {
            "avro": AvroDeserializer(client),
            "json": JSONDeserializer(None, schema_registry_client=client),
            "protobuf": ProtobufDeserializer(order, {}, client),
        }
        for frame in frames(stories, node_url):
            context = SerializationContext(frame["topic"], MessageField.VALUE)
            value = readers[frame["format"]](bytes.fromhex(frame["hex"]), context)
            expected = order(**STORY["value"]) if frame["format"] == "protobuf" else STORY["value"]
            assert expected == value, frame


def frames(stories, node_url):
    """Every frame of every client whose toolchain is here, and of confluent-kafka's Python serializers."""
    found = [
        {
            "step": f"{name} {kind}",
            "format": kind,
            "topic": f"{name}-frame-{kind}",
            "hex": stories(name)[f"frame {kind}"],
        }
        for name in CLIENTS
        if not CLIENTS[name].missing
        for kind in sorted(WRITES[name])
    ]
    order = order_class()
    with SchemaRegistryClient({"url": node_url}) as client:
        writers = {
            "avro": (AvroSerializer(client, Schema(json.dumps(STORY["avro"]["first"]), "AVRO")), STORY["value"]),
            "json": (JSONSerializer(json.dumps(STORY["json"]), client), STORY["value"]),
            "protobuf": (ProtobufSerializer(order, client), order(**STORY["value"])),
        }
        for kind, (serializer, value) in writers.items():
            topic = f"python-frame-{kind}"
            frame = serializer(value, SerializationContext(topic, MessageField.VALUE))
            found.append({"step": f"python {kind}", "format": kind, "topic": topic, "hex": frame.hex()})
    return found


def order_class():
    """The message class of the story's .proto file."""
    file = descriptor_pb2.FileDescriptorProto(name="order.proto", package="acme", syntax="proto3")
    message = file.message_type.add(name="Order")
    kinds = descriptor_pb2.FieldDescriptorProto
    fields = [("id", kinds.TYPE_STRING), ("amount", kinds.TYPE_INT32), ("note", kinds.TYPE_STRING)]
    for number, (name, kind) in enumerate(fields, 1):
        message.field.add(name=name, number=number, type=kind, label=kinds.LABEL_OPTIONAL)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("acme.Order"))
