"""Both paths refuse the same columns of Avro, have the same modes, and write random rows alike."""

import json
from collections.abc import Callable
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Row, SparkSession, functions
from pyspark.sql.pandas.types import to_arrow_type

from harness.avro_cases import Case
from harness.encode_rules.avro import COLUMNS, NO_VALUE, in_record
from strata.serdes.client import RegistryClient
from strata.serdes.errors import EncodeError
from strata.spark_udfs import decode, encode, encoder
from strata.spark_udfs.decoding.jvm_function import NotInstalled
from strata.spark_udfs.encoding.row_encoder import RowEncoder

pytestmark = [
    pytest.mark.spark,
    pytest.mark.usefixtures("installed", "generated_code"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves them to the collector
    pytest.mark.skipif(not hasattr(functions, "arrow_udf"), reason="this Spark has no arrow_udf"),
]

Families = Callable[[Random, int, int], list[list[Case]]]
PATHS = ("jvm", "python")


@pytest.mark.parametrize(("schema", "kind", "message"), COLUMNS)
def test_columns_that_do_not_fit_avro(
    spark: SparkSession, client: RegistryClient, schema: Any, kind: str, message: str
) -> None:
    """A column of another type is an error in every mode: of the analyzer in the JVM, of the worker in Python."""
    options: dict[str, Any] = {
        "registry": client.settings,
        "schema_id": client.register("both columns", json.dumps(in_record(schema))).schema_id,
        "mode": "PERMISSIVE",
    }
    df = spark.createDataFrame([], f"r struct<{kind}>")

    with pytest.raises(AnalysisException, match=message):
        df.select(encode("r", path="jvm", **options))
    with pytest.raises(EncodeError, match=message):
        RowEncoder(encoder(**options).plan).encode(pa.nulls(2, to_arrow_type(df.schema["r"].dataType)))


def test_a_column_that_does_not_fit_fails_the_task(spark: SparkSession, client: RegistryClient) -> None:
    """The error of a worker is that of the query."""
    df = spark.createDataFrame([(("x",),)], "r struct<f: string>").coalesce(1)
    schema_id = client.register("both columns", json.dumps(in_record("int"))).schema_id

    with pytest.raises(PySparkException, match=r"expected a column of int32, got string \(at field f\)"):
        df.select(encode("r", path="python", registry=client.settings, schema_id=schema_id)).collect()


@pytest.mark.parametrize("path", PATHS)
def test_modes(spark: SparkSession, client: RegistryClient, path: Any) -> None:
    """A row that does not fit is null, or an error that names the row; a null row is a null frame in every mode."""
    df = spark.createDataFrame([(0, (1,)), (1, (None,)), (2, None)], "offset int, r struct<f: int>").coalesce(1)
    schema_id = client.register("both modes", json.dumps(in_record("int"))).schema_id
    frame = bytearray(b"\0" + schema_id.to_bytes(4, "big") + b"\x02")

    def encoded(mode: Any) -> list[Any]:
        column = encode("r", registry=client.settings, schema_id=schema_id, path=path, mode=mode, origin=["offset"])
        return [row["e"] for row in df.select(column.alias("e")).collect()]

    assert [frame, None, None] == encoded("PERMISSIVE")
    refused = Row(frame=None, error=Row(reason=NO_VALUE, path="f"))
    assert [Row(frame=frame, error=None), refused, Row(frame=None, error=None)] == encoded("DEADLETTER")
    with pytest.raises(
        (PySparkException, Py4JJavaError),
        match=r"a row cannot be encoded \(offset 1\): expected a value, got null \(at",
    ):
        encoded("FAILFAST")


@pytest.mark.parametrize(("schemas", "each"), [(8, 40), pytest.param(50, 100, marks=pytest.mark.slow)])
def test_random_rows_of_avro(
    spark: SparkSession, client: RegistryClient, families: Families, schemas: int, each: int
) -> None:
    """Both paths write random rows to the same frames, which decode to the same rows."""
    written, read = 0, 0
    for family in families(Random(19), schemas, each):
        schema_id = client.register("random rows", family[0].reader).schema_id
        frames = [
            b"\0" + client.register("random writers", one.writer).schema_id.to_bytes(4, "big") + one.payload
            for one in family
        ]
        settings = client.settings
        df = spark.createDataFrame(pa.table({"value": pa.array(frames, pa.binary())})).coalesce(1)
        row = decode("value", registry=settings, schema_id=schema_id, mode="PERMISSIVE")
        options: dict[str, Any] = {"registry": settings, "schema_id": schema_id, "mode": "DEADLETTER"}
        made = df.select(row.alias("row")).select(
            "row", *(encode("row", path=path, **options).alias(path) for path in PATHS)
        )
        again = decode("jvm.frame", registry=settings, schema_id=schema_id, mode="FAILFAST")
        texts = made.select("*", again.alias("again")).select(
            "jvm", "python", *(functions.col(name).cast("string") for name in ("row", "again"))
        )
        for one in texts.collect():
            assert one["python"] == one["jvm"]
            assert one["again"] == (one["row"] if one["jvm"]["frame"] is not None else None)
            written += one["jvm"]["frame"] is not None
            read += one["row"] is not None
    assert written > read / 2 > schemas


def test_not_installed(spark: SparkSession) -> None:
    """The JVM path is refused before anything is registered if `install` was not called for the registry."""
    with RegistryClient("http://127.0.0.1:1") as elsewhere:
        df = spark.range(1)
        with pytest.raises(NotInstalled, match="call strata"):
            df.select(encode("id", registry=elsewhere.settings, schema_id=1, path="jvm"))
