"""Clients in other languages run one story against a node, and read each other's records."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import grpc_tools
import pytest
import schema_registry.client
from confluent_kafka.schema_registry import (
    Schema,
    SchemaRegistryClient,
    header_schema_id_serializer,
    prefix_schema_id_serializer,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from grpc_tools import protoc
from schema_registry.client.schema import AvroSchema, JsonSchema
from schema_registry.serializers import AvroMessageSerializer, JsonMessageSerializer

from harness.clients import CLIENTS
from harness.secured import PASSWORD, SecuredNode
from strata import serdes
from strata.serdes.client import RegistryClient

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

STORY_FILE = Path(__file__).with_name("story.json")
STORY = json.loads(STORY_FILE.read_text())
RUN_TIMEOUT_S = 120
HEADER_NAME = "__value_schema_id"

# Steps that a client has no call for, or reports in a different way.
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
        "incompatible": 409,  # the client's errors have only the HTTP status
        "unknown subject": 404,
        "unknown id": 404,
        "its own protobuf": STORY["value"],
        "through a reference": {"line": {"sku": "a"}},
    },
}
# Java 7.5 and Rust do not send every name unchanged; see their sources.
ODD_NAMES = {
    "java": [odd for odd in STORY["odd"] if odd.isascii()],
    "rust": ["a/b", "two words", "größe", "語"],
}
# Kinds of frames: a format, `nested` for a Protobuf message inside another one, and where the schema is named if not by
# its id before the payload: by its GUID there, or in a header of the record.
PLAIN = {"avro", "json", "protobuf", "nested"}
HEADER = {"avro-header", "json-header", "protobuf-header"}
GUID = {"avro-guid", "json-guid", "protobuf-guid"}
READS = {
    "go-franz": PLAIN,
    "go-confluent": PLAIN | HEADER | GUID,
    "node-confluent": PLAIN | HEADER | GUID,
    "node-kafkajs": {"avro", "json", "protobuf"},
    "rust": PLAIN | HEADER,
    "java": {"avro"},  # Flink's jar has the client without the other serdes
}
# kafkajs writes Protobuf frames without the message index, so no other client reads them. Only custom functions write
# GUIDs before the payload.
WRITES = {name: kinds - GUID for name, kinds in READS.items()} | {"node-kafkajs": {"avro", "json"}}


def message_classes():
    """Return the message classes of the story's .proto files, by kind."""
    built_in = Path(grpc_tools.__file__).parent / "_proto"
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "order.proto").write_text(STORY["protobuf"])
        (folder / "cart.proto").write_text(STORY["nested"])
        out = folder / "set"
        arguments = [f"-I{folder}", f"-I{built_in}", f"--descriptor_set_out={out}", "order.proto", "cart.proto"]
        assert protoc.main(["protoc", *arguments]) == 0
        files = descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes()).file
    pool = descriptor_pool.DescriptorPool()
    for file in files:
        pool.Add(file)
    names = {"protobuf": "acme.Order", "nested": "acme.Cart.Order"}
    return {kind: message_factory.GetMessageClass(pool.FindMessageTypeByName(one)) for kind, one in names.items()}


MESSAGES = message_classes()


@pytest.fixture(scope="session")
def stories(commands, node_url):
    """Return a function that runs a client's story once and returns the answer to each step."""
    told = {}

    def story(name):
        command = commands(name)
        if name not in told:
            told[name] = run([*command, "story", node_url, name, str(STORY_FILE)])
        return told[name]

    return story


def run(command, lines="", **variables):
    """Run a program, with some more variables, and return the steps that it prints, by name."""
    done = subprocess.run(
        command,
        input=lines,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=RUN_TIMEOUT_S,
        check=False,
        env=os.environ | variables,
    )
    assert 0 == done.returncode, done.stdout[-2000:] + done.stderr[-4000:]
    steps = [json.loads(line) for line in done.stdout.splitlines()]
    return {step["step"]: step["got"] for step in steps}


def registered_id(node_url, subject, version, **credentials):
    """Return the id that the node reports for a version."""
    with RegistryClient(node_url, **credentials) as client:
        return client.get_version(subject, version).schema_id


def expected_steps(node_url, name, **credentials):
    """Return the answers that a client must get."""

    def registered(subject, version=1):
        return registered_id(node_url, f"{name}-{subject}", version, **credentials)

    first, second = (registered("avro", version) for version in (1, 2))
    odd = sorted(f"{name}-odd-{each}" for each in ODD_NAMES.get(name, STORY["odd"]))
    steps = {
        "register avro": first,
        "register json": registered("json"),
        "register protobuf": registered("protobuf"),
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
        kept["odd ids"] = [registered(f"odd-{each}") for each in STORY["odd"]]
    return kept | OWN_STEPS.get(name, {})


@pytest.mark.parametrize("name", CLIENTS)
def test_story(stories, node_url, name):
    """The client reports the expected registration, reads, errors, settings, names, deletion and contexts."""
    told = stories(name)

    steps = {step: got for step, got in told.items() if not step.startswith("frame ")}
    assert expected_steps(node_url, name) == steps
    assert {f"frame {kind}" for kind in WRITES[name]} == set(told) - set(steps)


# Clients that take a password from the URL, and a CA from a variable of their runtime.
TRUSTING = {"go-franz": "SSL_CERT_FILE", "go-confluent": "SSL_CERT_FILE", "node-confluent": "NODE_EXTRA_CA_CERTS"}


@pytest.mark.parametrize("name", TRUSTING)
def test_story_over_https_with_a_password(commands, tmp_path, name):
    """With access control on, a client reports the same, and none of it without the password."""
    command = commands(name)
    with SecuredNode(tmp_path) as node:
        trust = {TRUSTING[name]: node.ca_file}
        url = node.url.replace("://", f"://ada:{PASSWORD}@")
        told = run([*command, "story", url, name, str(STORY_FILE)], **trust)

        steps = {step: got for step, got in told.items() if not step.startswith("frame ")}
        assert expected_steps(node.url, name, **node.password("ada")) == steps

        stranger = subprocess.run(
            [*command, "story", node.url, "stranger", str(STORY_FILE)],
            capture_output=True,
            text=True,
            timeout=RUN_TIMEOUT_S,
            check=False,
            env=os.environ | trust,
        )
        assert 0 != stranger.returncode
        assert "Unauthorized" in stranger.stdout + stranger.stderr


@pytest.mark.parametrize("reader", CLIENTS)
def test_reads_what_the_others_wrote(commands, written, node_url, reader):
    """The client reads the story's value from the frames of every available client, including Python."""
    command = commands(reader)
    mine = [frame for frame in written if frame["kind"] in READS[reader]]

    values = run([*command, "read", node_url], "".join(json.dumps(frame) + "\n" for frame in mine))

    assert {frame["step"]: STORY["value"] for frame in mine} == values


@pytest.mark.parametrize("reader", ["confluent-kafka", "python-schema-registry-client", "serdes"])
def test_python_reads_what_the_others_wrote(written, python_serdes, reader):
    """The Python deserializers, including this project's, read the story's value from the frames of every client."""
    readers, kinds = python_serdes[reader].read, python_serdes[reader].kinds
    mine = [frame for frame in written if frame["kind"] in kinds]

    values = {frame["step"]: readers[frame["format"]](*record(frame)) for frame in mine}

    assert {frame["step"]: python_value(frame["kind"]) for frame in mine} == values


def record(frame):
    """Return the bytes of a frame, and their context."""
    headers = [(HEADER_NAME, bytes.fromhex(frame["header"]))] if "header" in frame else []
    return bytes.fromhex(frame["hex"]), value_of(frame["topic"], headers)


def value_of(topic, headers):
    """Return the context of a topic's values."""
    return SerializationContext(topic, MessageField.VALUE, headers)


@pytest.fixture(scope="session")
def written(stories, python_serdes):
    """Return every frame of every client with an installed toolchain, and of the serializers in Python."""
    here = [name for name in CLIENTS if not CLIENTS[name].missing]
    of_clients = [(name, kind, stories(name)[f"frame {kind}"]) for name in here for kind in sorted(WRITES[name])]
    return [frame_of(*one) for one in (*of_clients, *python_frames(python_serdes))]


def frame_of(name, kind, told):
    """Return a frame as readers get it, from its payload in hexadecimal after an optional header."""
    header, _, payload = told.rpartition(":")
    form = kind.partition("-")[0]
    frame = {"step": f"{name} {kind}", "kind": kind, "format": form, "topic": f"{name}-frame-{form}", "hex": payload}
    return frame | ({"header": header} if header else {})


def python_frames(python_serdes):
    """Return the frames of each serializer in Python."""
    frames = []
    for name, serdes_of in python_serdes.items():
        for kind, write in serdes_of.write.items():
            context = value_of(f"{name}-frame-{kind.partition('-')[0]}", [])
            payload = write(python_value(kind), context).hex()
            header = "".join(value.hex() + ":" for _, value in context.headers)
            frames.append((name, kind, header + payload))
    return frames


class PythonSerdes(NamedTuple):
    """Serializers `(value, context)` → frame by kind, and deserializers `(frame, context)` → value by format.

    `kinds` are those that the deserializers read.
    """

    write: dict[str, Callable[..., bytes]]
    read: dict[str, Callable[..., object]]
    kinds: set[str]


@pytest.fixture(scope="session")
def python_serdes(node_url):
    """Yield the serdes of the clients in Python, and of this project."""
    avro, text = json.dumps(STORY["avro"]["first"]), json.dumps(STORY["json"])
    with SchemaRegistryClient({"url": node_url}) as client, RegistryClient(node_url) as own:
        yield {
            "confluent-kafka": PythonSerdes(
                by_kind(
                    {"": prefix_schema_id_serializer, "-header": header_schema_id_serializer},
                    {
                        "avro": lambda conf: AvroSerializer(client, Schema(avro, "AVRO"), conf=conf),
                        "json": lambda conf: JSONSerializer(text, client, conf=conf),
                        "protobuf": lambda conf: ProtobufSerializer(MESSAGES["protobuf"], client, conf),
                        "nested": lambda conf: ProtobufSerializer(MESSAGES["nested"], client, conf),
                    },
                ),
                {
                    "avro": AvroDeserializer(client),
                    "json": JSONDeserializer(None, schema_registry_client=client),
                    "protobuf": ProtobufDeserializer(MESSAGES["protobuf"], {}, client),
                    "nested": ProtobufDeserializer(MESSAGES["nested"], {}, client),
                },
                PLAIN | HEADER | GUID,
            ),
            "python-schema-registry-client": marcosschroh_serdes(node_url, AvroSchema(avro), JsonSchema(text)),
            "serdes": PythonSerdes(
                by_kind(
                    {"": "prefix", "-header": "header", "-guid": "guid"},
                    {
                        "avro": lambda conf: serdes.AvroSerializer(own, avro, conf=conf),
                        "json": lambda conf: serdes.JsonSerializer(own, text, conf=conf),
                        "protobuf": lambda conf: serdes.ProtobufSerializer(own, MESSAGES["protobuf"], conf),
                        "nested": lambda conf: serdes.ProtobufSerializer(own, MESSAGES["nested"], conf),
                    },
                ),
                {
                    "avro": serdes.AvroDeserializer(own),
                    "json": serdes.JsonDeserializer(own),
                    "protobuf": serdes.ProtobufDeserializer(own, MESSAGES["protobuf"]),
                    "nested": serdes.ProtobufDeserializer(own, MESSAGES["nested"]),
                },
                PLAIN | HEADER | GUID,
            ),
        }


def by_kind(framings, serializers):
    """Return each serializer with each framing, except `nested`, which has only the prefix."""
    return {
        f"{name}{kind}": serializer({"schema.id.serializer": framing})
        for name, serializer in serializers.items()
        for kind, framing in framings.items()
        if not kind or name != "nested"
    }


def marcosschroh_serdes(node_url, avro_schema, json_schema):
    """Return the serdes of python-schema-registry-client, which take a subject instead of a topic."""
    client = schema_registry.client.SchemaRegistryClient(node_url)
    binary, text = AvroMessageSerializer(client), JsonMessageSerializer(client)
    return PythonSerdes(
        {
            "avro": lambda value, to: binary.encode_record_with_schema(f"{to.topic}-value", avro_schema, value),
            "json": lambda value, to: text.encode_record_with_schema(f"{to.topic}-value", json_schema, value),
        },
        {"avro": lambda frame, _: binary.decode_message(frame), "json": lambda frame, _: text.decode_message(frame)},
        {"avro", "json"},
    )


def python_value(kind):
    """Return the value of the story as the Python serdes of a format represent it."""
    form = kind.partition("-")[0]
    return MESSAGES[form](**STORY["value"]) if form in MESSAGES else STORY["value"]
