"""Columns encoded as frames of the three formats: schemas, values, modes, framings."""

import io
import json
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from pyspark.errors import PythonException
from pyspark.sql import Row, SparkSession, functions
from pyspark.sql.types import ArrayType, DataType, IntegerType, StringType, StructField, StructType

from serdes.avro import AvroDeserializer
from serdes.client import RegistryClient, Schema
from serdes.errors import EncodeError, RegistryError, SchemaError
from serdes.json_schema import JsonDeserializer
from serdes.model import JSON, PROTOBUF, Reference
from serdes.protobuf import ProtobufDeserializer
from spark_udfs import decode, encode, encoder
from spark_udfs.encode_executor import BatchEncoder, RowRefused
from spark_udfs.encode_schemas import UnsupportedType, avro_schema, json_schema

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves that to the collector
]


def _type(ddl: str) -> DataType:
    return StructType.fromDDL(f"x {ddl}").fields[0].dataType


def _frames(registry: RegistryClient, values: pa.Array, **options: Any) -> list[Any]:
    """What a Python worker makes of an array."""
    plan = encoder(registry=registry.settings, **options).plan
    made: list[Any] = BatchEncoder(plan).encode(values).to_pylist()
    return made


def _avro(name: str, *fields: tuple[Any, ...]) -> str:
    """A record of fields (name, type) or (name, type, default)."""
    made = [dict(zip(("name", "type", "default"), one, strict=False)) for one in fields]
    return json.dumps({"type": "record", "name": name, "fields": made})


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
    """Records that would have one name get two."""
    kind = StructType.fromDDL("a_b struct<c: struct<x: int>>, a struct<b: struct<y: int>, b_c: struct<z: int>>")

    assert fastavro.parse_schema(json.loads(avro_schema(kind, "R")))


# Spark type, schema of it, message
NOT_DERIVED: list[tuple[str | DataType, Any, str]] = [
    ("map<int,string>", avro_schema, "the column: the keys of a map are strings, and not int"),
    ("array<map<int,string>>", json_schema, r"the column at \[\]: the keys of a map"),
    ("struct<a: struct<b: interval day to second>>", avro_schema, "at a.b: there is nothing for interval day"),
    ("struct<a: array<struct<b: interval month>>>", json_schema, r"at a\[\].b: there is nothing for interval"),
    ("struct<`a b`: int>", avro_schema, "at a b: Avro's names are letters, digits and underscores"),
    (StructType([StructField("a", IntegerType()), StructField("a", StringType())]), json_schema, "at a: there are two"),
]


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(("kind", "make", "message"), NOT_DERIVED)
def test_types_that_cannot_be_expressed(kind: str | DataType, make: Any, message: str) -> None:
    """What has no schema is refused with its place."""
    with pytest.raises(UnsupportedType, match=message):
        make(_type(kind) if isinstance(kind, str) else kind, "R")


def test_every_type_of_avro(spark: SparkSession, registry: RegistryClient, frame: Any, everything: Any) -> None:
    """What was decoded is encoded to what fastavro reads as the first values."""
    schema, values = everything
    schema_id = registry.register("encode everything", json.dumps(schema)).schema_id
    frames = pa.array([*(frame(schema_id, schema, value) for value in values), None], pa.binary())
    df = spark.createDataFrame(pa.table({"value": frames})).coalesce(1)
    decoded = df.select(decode("value", registry=registry.settings, schema_id=schema_id, mode="FAILFAST").alias("d"))

    encoded = decoded.select(encode("d", registry=registry.settings, schema_id=schema_id).alias("value")).collect()

    assert [one[:5] if one else None for one in frames.to_pylist()] == [
        row["value"] and bytes(row["value"][:5]) for row in encoded
    ]
    # fastavro insists on what a uuid looks like
    parsed = fastavro.parse_schema(json.loads(json.dumps(schema).replace('"uuid"}', '"none"}')))
    read = [fastavro.schemaless_reader(io.BytesIO(row["value"][5:]), parsed, None) for row in encoded[:-1]]
    sent = [fastavro.schemaless_reader(io.BytesIO(one[5:]), parsed, None) for one in frames.to_pylist()[:-1]]
    assert repr(sent) == repr(read)


NUMBER = _avro("Number", ("n", "int"), ("label", ["null", "string"], None))
JSON_NUMBER = json.dumps(
    {
        "type": "object",
        "properties": {"n": {"type": "integer", "maximum": 100}, "label": {"type": "string"}},
        "required": ["n"],
    }
)
PROTO_NUMBER = 'syntax = "proto3"; message Number { optional int32 n = 1; optional string label = 2; }'
MISFITS: list[tuple[str, str, pa.DataType, list[Any], list[tuple[int, str, str]]]] = [
    (
        "AVRO",
        NUMBER,
        pa.int64(),
        [1, 2**31, None, 2],
        [
            (1, "Integer value 2147483648 not in range: -2147483648 to 2147483647", "n"),
            (2, "a value expected, found null", "n"),
        ],
    ),
    (
        "JSON",
        JSON_NUMBER,
        pa.int64(),
        [1, 101, None, 2],
        [
            (1, "the schema does not allow it: properties/n/maximum", "n"),
            (2, "the schema does not allow it: properties/n/type", "n"),
        ],
    ),
    ("PROTOBUF", PROTO_NUMBER, pa.int64(), [1, 2**31, 3, 2], [(1, "a value is out of range", "n")]),
]
"""Format, schema, type of n, its values, and row, reason and path of those that do not fit."""


@pytest.mark.parametrize(("kind", "schema", "arrow", "numbers", "misfits"), MISFITS, ids=["AVRO", "JSON", "PROTOBUF"])
def test_modes(
    registry: RegistryClient, kind: str, schema: str, arrow: Any, numbers: list[Any], misfits: list[Any]
) -> None:
    """A row that does not fit is null, a dead letter with its reason and path, or the end; its neighbours are kept."""
    rows = pa.StructArray.from_arrays([pa.array(numbers, arrow), pa.array(["a", "b", "c", "d"])], names=["n", "label"])
    options: dict[str, Any] = {"subject": f"modes {kind}", "schema": schema, "format": kind}
    bad = [row for row, _, _ in misfits]

    permissive = _frames(registry, rows, mode="PERMISSIVE", **options)
    letters = _frames(registry, rows, mode="DEADLETTER", **options)

    assert bad == [row for row, one in enumerate(permissive) if one is None]
    assert permissive == [one["frame"] for one in letters]
    assert misfits == [
        (row, one["error"]["reason"], one["error"]["path"]) for row, one in enumerate(letters) if one["error"]
    ]
    plan = replace(encoder(registry=registry.settings, **options).plan, origin=("offset",))
    with pytest.raises(RowRefused, match=r"a row cannot be encoded \(offset 11\): .*\(at field n\)"):
        BatchEncoder(plan).encode(rows, [pa.array([10, 11, 12, 13])])
