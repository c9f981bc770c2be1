"""Decodes columns of Protobuf and JSON frames like a Python worker, without a Spark session."""

import json
from functools import cache
from typing import Any

import pyarrow as pa
from google.protobuf.message_factory import GetMessageClass

from strata.serdes.client import Reference, RegistryClient, Schema
from strata.serdes.framing import join, write_indexes
from strata.serdes.protobuf.files import find_message, link
from strata.spark_udfs.arguments import Mode
from strata.spark_udfs.decoding.payload_decoder import payload_decoder
from strata.spark_udfs.decoding.plan import ReaderSource, plan_decode, reader_type
from strata.spark_udfs.decoding.refusals import FrameRefused

__all__ = [
    "FrameRefused",
    "PayloadColumn",
    "json_column",
    "json_frame",
    "json_schema",
    "kind_of",
    "proto",
    "proto_frame",
]


class PayloadColumn:
    """A column of frames, decoded with one reader schema."""

    def __init__(self, client: RegistryClient, reader: Schema, *, mode: Mode = Mode.DEADLETTER, **options: Any) -> None:
        self.plan = plan_decode(client.settings, ReaderSource(reader), mode=mode, **options)

    @property
    def type(self) -> Any:
        """The column's Spark type."""
        return reader_type(self.plan)

    def decode(self, frames: pa.Array, *origin: pa.Array) -> pa.Array:
        """Return the decoded array, after validating it."""
        decoded = payload_decoder(self.plan).decode(frames, origin)
        decoded.validate(full=True)
        return decoded

    def read(self, *frames: bytes | None) -> list[Any]:
        """Return the values of frames; for a dead letter its reason and id, after checking its bytes."""
        rows = self.decode(pa.array(frames, pa.binary())).to_pylist(maps_as_pydicts="strict")
        if self.plan.mode is not Mode.DEADLETTER:
            return list(rows)
        assert all(row["error"]["frame"] == frame for row, frame in zip(rows, frames, strict=True) if row["error"])
        return [(row["error"]["reason"], row["error"]["schema_id"]) if row["error"] else row["value"] for row in rows]


def proto(text: str, *references: Reference) -> Schema:
    """Return a Protobuf schema."""
    return Schema(text, "PROTOBUF", references)


@cache
def kind_of(schema: Schema, *path: int) -> Any:
    """Return the class of a message in a Protobuf schema without references."""
    return GetMessageClass(find_message(link(schema, {}), path or (0,)))


def proto_frame(client: RegistryClient, schema: Schema, payload: bytes, *path: int) -> bytes:
    """Register a Protobuf schema, and return a frame of it with the payload."""
    return join(client.register("proto-columns", schema).schema_id, write_indexes(path or (0,)) + payload)


def json_schema(document: Any, *references: Reference) -> Schema:
    """Return a JSON Schema."""
    return Schema(json.dumps(document), "JSON", references)


def json_column(client: RegistryClient, reader: Any, **options: Any) -> PayloadColumn:
    """Return a column of frames, decoded with a document or schema."""
    return PayloadColumn(client, reader if isinstance(reader, Schema) else json_schema(reader), **options)


def json_frame(client: RegistryClient, payload: Any, document: Any = True) -> bytes:
    """Return the frame of a value, or of raw bytes, under a schema that is registered for it."""
    text = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    return join(client.register("json-columns", json_schema(document)).schema_id, text)
