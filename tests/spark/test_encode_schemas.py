"""Schemas are derived from Spark's types."""

import json
from typing import Any

import fastavro
import pytest
from pyspark.sql.types import DataType, IntegerType, StringType, StructField, StructType

from strata.spark_udfs.encoding.derived_schemas import UnsupportedType, avro_schema, json_schema

pytestmark = pytest.mark.spark


def _type(ddl: str) -> DataType:
    return StructType.fromDDL(f"x {ddl}").fields[0].dataType


# Spark type, Avro, JSON Schema
DERIVED: list[tuple[str, Any, Any]] = [
    ("boolean", "boolean", {"type": "boolean"}),
    ("tinyint", "int", {"type": "integer"}),
    ("smallint", "int", {"type": "integer"}),
    ("int", "int", {"type": "integer"}),
    ("bigint", "long", {"type": "integer"}),
    ("float", "float", {"type": "number"}),
    ("double", "double", {"type": "number"}),
    ("string", "string", {"type": "string"}),
    ("varchar(3)", "string", {"type": "string"}),
    ("binary", "bytes", {"type": "string", "contentEncoding": "base64"}),
    ("date", {"type": "int", "logicalType": "date"}, {"type": "string", "format": "date"}),
    ("timestamp", {"type": "long", "logicalType": "timestamp-micros"}, {"type": "string", "format": "date-time"}),
    ("timestamp_ntz", {"type": "long", "logicalType": "local-timestamp-micros"}, {"type": "string"}),
    (
        "decimal(12,3)",
        {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 3},
        {"type": "number"},
    ),
    (
        "array<int>",
        {"type": "array", "items": ["null", "int"]},
        {"type": "array", "items": {"oneOf": [{"type": "null"}, {"type": "integer"}]}},
    ),
    (
        "map<string,bigint>",
        {"type": "map", "values": ["null", "long"]},
        {"type": "object", "additionalProperties": {"oneOf": [{"type": "null"}, {"type": "integer"}]}},
    ),
    (
        "struct<a: int not null, b: struct<c: string>>",
        {
            "type": "record",
            "name": "com.acme.R",
            "fields": [
                {"name": "a", "type": "int"},
                {
                    "name": "b",
                    "type": [
                        "null",
                        {
                            "type": "record",
                            "name": "com.acme.R_b",
                            "fields": [{"name": "c", "type": ["null", "string"], "default": None}],
                        },
                    ],
                    "default": None,
                },
            ],
        },
        {
            "type": "object",
            "properties": {
                "a": {"type": "integer"},
                "b": {
                    "oneOf": [
                        {"type": "null"},
                        {
                            "type": "object",
                            "properties": {"c": {"oneOf": [{"type": "null"}, {"type": "string"}]}},
                            "additionalProperties": False,
                        },
                    ]
                },
            },
            "additionalProperties": False,
            "required": ["a"],
        },
    ),
]


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(("ddl", "avro", "in_json"), [pytest.param(*one, id=one[0]) for one in DERIVED])
def test_schemas_of_spark_types(ddl: str, avro: Any, in_json: Any) -> None:
    """Each Spark type has its schema in both languages."""
    head = {"$schema": "http://json-schema.org/draft-07/schema#", "title": "com.acme.R"}

    assert avro == json.loads(avro_schema(_type(ddl), "com.acme.R"))
    assert head | in_json == json.loads(json_schema(_type(ddl), "com.acme.R"))


@pytest.mark.usefixtures("spark")
def test_names_of_records() -> None:
    """Two records that would have one name get different names."""
    kind = StructType.fromDDL("a_b struct<c: struct<x: int>>, a struct<b: struct<y: int>, b_c: struct<z: int>>")

    assert fastavro.parse_schema(json.loads(avro_schema(kind, "R")))


# Spark type, schema of it, message
NOT_DERIVED: list[tuple[str | DataType, Any, str]] = [
    ("map<int,string>", avro_schema, "the column: expected map keys of type string, got int"),
    ("array<map<int,string>>", json_schema, r"the column at \[\]: expected map keys"),
    (
        "struct<a: struct<b: interval day to second>>",
        avro_schema,
        "at a.b: the schema language has no type for interval day",
    ),
    (
        "struct<a: array<struct<b: interval month>>>",
        json_schema,
        r"at a\[\].b: the schema language has no type for interval",
    ),
    ("struct<`a b`: int>", avro_schema, "at a b: a name in Avro has only letters, digits and underscores"),
    (
        StructType([StructField("a", IntegerType()), StructField("a", StringType())]),
        json_schema,
        "at a: two fields have this name",
    ),
]


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(("kind", "make", "message"), NOT_DERIVED)
def test_types_that_cannot_be_expressed(kind: str | DataType, make: Any, message: str) -> None:
    """A type without a schema is refused with its place."""
    with pytest.raises(UnsupportedType, match=message):
        make(_type(kind) if isinstance(kind, str) else kind, "R")
