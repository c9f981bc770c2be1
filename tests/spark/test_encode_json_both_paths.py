"""Both paths write random rows as the same JSON, and validate it with the same words."""

import json
import math
import struct
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession, functions

from strata.serdes.client import RegistryClient, Schema
from strata.serdes.model import JSON
from strata.spark_udfs import encode

pytestmark = [
    pytest.mark.spark,
    pytest.mark.usefixtures("installed", "generated_code"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves them to the collector
    pytest.mark.skipif(not hasattr(functions, "arrow_udf"), reason="this Spark has no arrow_udf"),
]

PATHS = ("jvm", "python")


@pytest.mark.parametrize("count", [300, pytest.param(5000, marks=pytest.mark.slow)])
def test_random_rows_of_json(spark: SparkSession, client: RegistryClient, count: int) -> None:
    """Both paths write random rows to the same text."""
    chance = Random(29)

    def text() -> str:
        return "".join(chr(chance.choice([chance.randrange(128), 0xE9, 0x1F68B])) for _ in range(chance.randrange(30)))

    table = {
        "double": pa.array([_random_double(chance) for _ in range(count)]),
        "long": pa.array([chance.getrandbits(64) - 2**63 >> chance.randrange(64) for _ in range(count)]),
        "text": pa.array([text() for _ in range(count)]),
        "money": pa.array([Decimal(chance.getrandbits(60)).scaleb(-4) for _ in range(count)], pa.decimal128(24, 4)),
        "at": pa.array(
            [chance.randrange(-62_135_596_800_000_000, 253_402_300_800_000_000) for _ in range(count)],
            pa.timestamp("us", "UTC"),
        ),
    }
    rows = pa.StructArray.from_arrays(list(table.values()), names=list(table))
    df = spark.createDataFrame(pa.table([rows], names=["r"])).coalesce(1)
    options: dict[str, Any] = {"registry": client.settings, "validate": False}
    options["schema_id"] = client.register("random JSON", Schema("{}", JSON)).schema_id

    made = df.select(*(encode("r", path=path, **options).alias(path) for path in PATHS)).collect()

    assert count == len(made)
    assert [] == [(one["python"], one["jvm"]) for one in made if one["python"] != one["jvm"]][:3]


def _random_double(chance: Random) -> float:
    if chance.random() < 0.5:
        return chance.uniform(-1, 1) * 10.0 ** chance.randrange(-8, 20)
    number: float = struct.unpack("<d", chance.randbytes(8))[0]
    return number if math.isfinite(number) else 0.0


def test_json_with_validation(spark: SparkSession, client: RegistryClient) -> None:
    """Rows that the schema must allow are encoded in the JVM too; both paths refuse the others with the same words."""
    schema = {"properties": {"a": {"maximum": 3}, "b": {"type": "string"}}, "required": ["b"]}
    options: dict[str, Any] = {
        "registry": client.settings,
        "schema_id": client.register("valid JSON", Schema(json.dumps(schema), JSON)).schema_id,
    }
    rows = [(3, "x"), (4, "x"), (1, None)]
    df = spark.createDataFrame([(row,) for row in rows], "r struct<a: int, b: string>").coalesce(1)

    def encoded(mode: str) -> list[list[Any]]:
        made = df.select(*(encode("r", path=path, mode=mode, **options).alias(path) for path in PATHS)).collect()
        return [[row[path] for row in made] for path in PATHS]

    jvm, python = encoded("DEADLETTER")
    assert [None, "a", "b"] == [one["error"] and one["error"]["path"] for one in jvm]
    assert "expected a number of at most 3, got a larger one (rule properties/a/maximum)" == jvm[1]["error"]["reason"]
    assert python == jvm
    jvm, python = encoded("PERMISSIVE")
    assert [b'{"a":3,"b":"x"}', None, None] == [one and bytes(one)[5:] for one in jvm]
    assert python == jvm
    for path in PATHS:
        with pytest.raises(
            Exception, match=r"a row cannot be encoded \(r.b x\): expected a number of at most 3, got a "
        ):
            df.select(encode("r", path=path, origin=["r.b"], **options)).collect()


def test_json_with_rules_for_python_workers(spark: SparkSession, client: RegistryClient) -> None:
    """A schema with a keyword that the JVM does not know is for Python workers, and an error if the JVM must encode."""
    options: dict[str, Any] = {
        "registry": client.settings,
        "schema_id": client.register("pattern", Schema('{"properties": {"a": {"pattern": "^x.?$"}}}', JSON)).schema_id,
    }
    df = spark.createDataFrame([(("x",),), (("y",),)], "r struct<a: string>").coalesce(1)

    with pytest.raises(ValueError, match="path='jvm' does not encode JSON with validation by `pattern`"):
        encode("r", path="jvm", **options)
    rows = df.select(encode("r", mode="PERMISSIVE", **options).alias("e")).collect()
    assert [b'{"a":"x"}', None] == [row["e"] and bytes(row["e"])[5:] for row in rows]
