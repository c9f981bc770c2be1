"""The formats besides Avro: their readers in Python workers and in the JVM, and the extras that they need.

Rules of this file: the module of a format is imported when it is needed, because its extra may be missing.
"""

from functools import lru_cache

from strata.imports import require
from strata.serdes.model import PROTOBUF
from strata.spark_udfs.decoding.payload_reader import PayloadReader
from strata.spark_udfs.decoding.payload_schema import PayloadSchema

__all__ = ["inputs_for_jvm", "reader_of"]


@lru_cache(maxsize=32)
def reader_of(schema: PayloadSchema) -> PayloadReader:
    """Return the reader that reads payloads into a reader schema.

    Raises:
        UnsupportedSchema: If the reader schema has no Spark type.
        SchemaError: If the reader schema is invalid.
        ValueError: If it has no such message or columns.
        MissingExtra: If the extra of the format is not installed.
    """
    if schema.schema.format == PROTOBUF:
        require("protobuf", "decoding of Protobuf", "google.protobuf")
        from strata.spark_udfs.decoding.protobuf_reader import ProtobufReader

        return ProtobufReader(schema)
    require("json", "decoding of JSON", "jsonschema_rs", "orjson")
    from strata.spark_udfs.decoding.json_reader import JsonReader

    return JsonReader(schema)


@lru_cache(maxsize=32)
def inputs_for_jvm(schema: PayloadSchema) -> dict[str, object]:
    """Return what the session's JVM plans a decode from: texts or descriptors, and what of them to read.

    Raises:
        OnlyInPython: If the JVM does not decode it.
    """
    if schema.schema.format == PROTOBUF:
        from strata.spark_udfs.decoding import protobuf_jvm

        return protobuf_jvm.inputs_of(schema)
    from strata.spark_udfs.decoding import json_jvm

    return json_jvm.inputs_of(schema)
