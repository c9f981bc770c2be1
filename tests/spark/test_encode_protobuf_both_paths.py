"""Both paths refuse the same columns of Protobuf, and write random rows alike."""

import json
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession, functions
from pyspark.sql.pandas.types import to_arrow_type

from harness.encode_rules.protobuf import COLUMNS, SHOP
from harness.payload_columns import kind_of, proto
from harness.protobuf_cases import Maker, fill
from strata.serdes.client import RegistryClient
from strata.serdes.errors import EncodeError
from strata.serdes.framing import join, write_indexes
from strata.spark_udfs import decode, encode, encoder
from strata.spark_udfs.encoding.row_encoder import RowEncoder

pytestmark = [
    pytest.mark.spark,
    pytest.mark.usefixtures("installed", "generated_code"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves them to the collector
    pytest.mark.skipif(not hasattr(functions, "arrow_udf"), reason="this Spark has no arrow_udf"),
]

PATHS = ("jvm", "python")


@pytest.mark.parametrize(("kind", "message"), COLUMNS)
def test_columns_that_do_not_fit_protobuf(spark: SparkSession, client: RegistryClient, kind: str, message: str) -> None:
    """A column of another type is an error in every mode: of the analyzer in the JVM, of the worker in Python."""
    df = spark.createDataFrame([], f"r struct<{kind}>")
    options: dict[str, Any] = {"registry": client.settings, "mode": "PERMISSIVE"}
    options["schema_id"] = client.register("payloads of both paths", SHOP).schema_id

    with pytest.raises(AnalysisException, match=message):
        df.select(encode("r", path="jvm", **options))
    with pytest.raises(EncodeError, match=message):
        RowEncoder(encoder(**options).plan).encode(pa.nulls(2, to_arrow_type(df.schema["r"].dataType)))


ONLY_IN_PYTHON = [
    ('syntax = "proto2"; message M { required int32 a = 1; }', r"the required field M\.a"),
    ('syntax = "proto2"; message M { optional group G = 1 { optional int32 a = 1; } }', r"the group M\.g"),
]


@pytest.mark.parametrize(("text", "part"), ONLY_IN_PYTHON)
def test_only_in_python(spark: SparkSession, client: RegistryClient, text: str, part: str) -> None:
    """Python workers encode what the JVM does not, unless the JVM is asked for, which the error explains."""
    schema_id = client.register("only in Python", proto(text)).schema_id
    options: dict[str, Any] = {"registry": client.settings, "schema_id": schema_id}

    with pytest.raises(ValueError, match=rf"path='jvm' does not encode {part}"):
        encode("r", path="jvm", **options)
    shown = spark.sql("SELECT named_struct('a', 1) AS r").select(encode("r", **options))._jdf.toString()
    assert "encode_arrow" in shown


@pytest.mark.parametrize(("schemas", "each"), [(3, 20), pytest.param(50, 100, marks=pytest.mark.slow)])
def test_random_rows_of_protobuf(spark: SparkSession, client: RegistryClient, schemas: int, each: int) -> None:
    """Both paths write random rows to the same frames, which decode to the same rows."""
    chance, written = Random(23), 0
    maker = Maker(chance)
    for _ in range(schemas):
        schema = proto(maker.kind().text())
        kind = kind_of(schema)
        schema_id = client.register("random messages", schema).schema_id
        frames = [join(schema_id, write_indexes((0,)) + fill(kind(), chance).SerializeToString()) for _ in range(each)]
        options: dict[str, Any] = {"registry": client.settings, "schema_id": schema_id}
        df = spark.createDataFrame(pa.table({"value": pa.array(frames, pa.binary())})).coalesce(1)
        made = df.select(decode("value", mode="PERMISSIVE", **options).alias("row")).select(
            "row", *(encode("row", path=path, mode="DEADLETTER", **options).alias(path) for path in PATHS)
        )
        again = decode("jvm.frame", mode="FAILFAST", **options)
        rows = made.select("*", again.alias("again")).select(
            "jvm", "python", *(functions.to_json(name).alias(name) for name in ("row", "again"))
        )
        for one in rows.collect():
            assert one["python"] == one["jvm"]
            if one["jvm"]["frame"] is not None:
                assert json.loads(one["again"]) == json.loads(one["row"])  # maps in any order
                written += 1
    assert written > schemas * each / 2
