"""Records framed by AWS's own serializer for Kafka, schema-registry-serde 1.1.27, with the schemas that they need.

`tests/neighbours/test_glue_frames.py` makes them again with `GlueFrames.java` and compares. A migrated version is one
whose metadata has the UUID, so `register` stands for a migration where that is not the subject of a test.
"""

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.json_format import ParseDict
from google.protobuf.message_factory import GetMessageClass

from harness import spark_jar
from harness.aws_sessions import fake_aws
from harness.jars import glue_jars
from strata.serdes.client import RegistryClient
from strata.serdes.model import PROTOBUF, Metadata, Schema
from strata.serdes.protobuf.files import find_message, link

__all__ = ["SCHEMAS", "VECTORS", "GlueSchema", "Vector", "framed_by_aws", "glue_with", "register"]

_JAVA = Path(__file__).with_name("jvm") / "GlueFrames.java"
_COMPRESSIONS = {0: "NONE", 5: "ZLIB"}
_TIMEOUT_S = 120


@dataclass(frozen=True, slots=True)
class GlueSchema:
    """A schema version in Glue."""

    name: str
    version: UUID
    schema: Schema


@dataclass(frozen=True, slots=True)
class Vector:
    """A frame and the value in it; of Protobuf also the path to the message, and its place as Glue counts."""

    name: str
    schema: GlueSchema
    value: Mapping[str, Any]
    frame: bytes
    message: tuple[int, ...] = ()


AVRO_TEXT = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "name", "type": "string"},
            {"name": "tags", "type": {"type": "array", "items": "string"}},
        ],
    }
)
JSON_TEXT = json.dumps(
    {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Order",
        "type": "object",
        "properties": {"id": {"type": "integer"}, "name": {"type": "string"}},
    }
)
PROTO_TEXT = """syntax = "proto3"; package shop;
message Order {
  int64 id = 1;
  map<string, int32> by_sku = 2;
  repeated Line lines = 3;
  message Line { string sku = 1; }
}
message Cancel { int64 id = 1; }
"""
"""Glue counts Cancel, Order, the entry of by_sku, Line."""

SCHEMAS = {
    one.name: one
    for one in (
        GlueSchema("orders-avro", UUID("11111111-2222-3333-4444-555566667777"), Schema(AVRO_TEXT)),
        GlueSchema("orders-json", UUID("aaaaaaaa-bbbb-cccc-dddd-eeeeffff0000"), Schema(JSON_TEXT, "JSON")),
        GlueSchema("orders-proto", UUID("01234567-89ab-cdef-0123-456789abcdef"), Schema(PROTO_TEXT, PROTOBUF)),
    )
}


_SEVEN = {"id": 7, "name": "seven", "tags": ["a", "b"]}
_ORDER = {"id": "7", "by_sku": {"x": 2}, "lines": [{"sku": "x"}]}
# name, schema, path to the message, value, what follows the UUID, the same compressed
_ROWS: list[tuple[str, str, tuple[int, ...], dict[str, Any], str, str]] = [
    ("Avro", "orders-avro", (), _SEVEN, "0e0a736576656e040261026200", "789ce3e32a4e2d4bcd63614a644a62000016de0305"),
    (
        "JSON", "orders-json", (), {"id": 7, "name": "sieben ü"},
        "7b226964223a372c226e616d65223a2273696562656e20c3bc227d",
        "789cab56ca4c51b232d751ca4bcc4d55b2522ace4c4d4acd5338bc47a91600739a091f",
    ),
    ("a message", "orders-proto", (1,), {"id": "9"}, "000809", "789c63e0e00400001c0012"),
    (
        "a message with a map", "orders-proto", (0,), _ORDER, "01080712050a017810021a030a0178",
        "789c63e4601762e562ac1060926206520007c7015d",
    ),
    ("a nested message", "orders-proto", (0, 0), {"sku": "x"}, "030a0178", "789c63e662ac000000a80087"),
]  # fmt: skip
VECTORS = [
    Vector(
        f"{name} {_COMPRESSIONS[compression]}",
        SCHEMAS[schema],
        value,
        bytes((3, compression)) + SCHEMAS[schema].version.bytes + bytes.fromhex(data),
        path,
    )
    for name, schema, path, value, plain, packed in _ROWS
    for compression, data in ((0, plain), (5, packed))
]


def register(client: RegistryClient) -> None:
    """Register the schemas as `strata migrate` leaves them."""
    for one in SCHEMAS.values():
        marked = Metadata(properties={"glue.schema.version.id": str(one.version)})
        client.register(f":.glue:{one.name}", Schema(one.schema.text, one.schema.format, metadata=marked))


@contextmanager
def glue_with(schema: GlueSchema) -> Iterator[UUID]:
    """Run a Glue service in this process, in eu-west-1, and yield the UUID that it gives to a schema."""
    from botocore.session import get_session  # here, for its import takes long

    with fake_aws():
        service = get_session().create_client("glue", region_name="eu-west-1")
        service.create_registry(RegistryName="r")
        made = service.create_schema(
            RegistryId={"RegistryName": "r"},
            SchemaName=schema.name,
            DataFormat=schema.schema.format,
            Compatibility="NONE",
            SchemaDefinition=schema.schema.text,
        )
        yield UUID(made["SchemaVersionId"])


def framed_by_aws(vectors: Sequence[Vector]) -> list[bytes]:
    """Return the frames that AWS's serializer makes of the values of vectors, compressed as theirs."""
    jars = glue_jars()
    class_path = os.pathsep.join(map(str, [spark_jar.compiled([_JAVA], *jars), *jars]))
    command = [shutil.which("java") or "java", "-XX:TieredStopAtLevel=1", "-cp", class_path, "GlueFrames"]
    lines = "".join(json.dumps(_task(vector)) + "\n" for vector in vectors)
    done = subprocess.run(command, input=lines, capture_output=True, check=False, text=True, timeout=_TIMEOUT_S)
    assert done.returncode == 0, done.stderr[-3000:]
    return [base64.b64decode(line) for line in done.stdout.splitlines()]


def _task(vector: Vector) -> dict[str, str]:
    schema = vector.schema.schema
    task = {
        "format": schema.format,
        "compression": _COMPRESSIONS[vector.frame[1]],
        "version": str(vector.schema.version),
        "schema": schema.text,
        "value": json.dumps(vector.value),
    }
    return task if schema.format != PROTOBUF else task | _protobuf(vector)


def _protobuf(vector: Vector) -> dict[str, str]:
    """Return the schema as a descriptor, the name of the message and its bytes."""
    file = link(vector.schema.schema, {})
    message = find_message(file, vector.message)
    descriptor = FileDescriptorProto()
    file.CopyToProto(descriptor)
    descriptor.name = "shop.proto"
    value = ParseDict(dict(vector.value), GetMessageClass(message)())
    return {
        "schema": base64.b64encode(descriptor.SerializeToString()).decode(),
        "message": message.full_name.removeprefix("shop."),
        "value": base64.b64encode(value.SerializeToString()).decode(),
    }
