"""Decoding registry frames in Spark: ours, Spark's own `from_avro` on one schema, and a plain Python UDF.

Every way reads the same cached column of frames, makes all twenty fields and throws the rows away.
"""

import io
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.functions import expr, udf

from bench.orders import frames, schema_text
from bench.report import table
from harness.jars import spark_avro_jars
from harness.registry import RegistryNode
from serdes.client import RegistryClient
from serdes.model import Schema
from spark_udfs import decode

__all__ = ["run"]

ROWS = 200_000
ROUNDS = 3
_READER = 2


def run() -> str:
    """Measure each way, and return the table."""
    with tempfile.TemporaryDirectory() as folder, RegistryNode("memory:") as node, RegistryClient(node.url) as client:
        client.set_config("NONE", subject="orders-value")
        ids = {n: client.register("orders-value", Schema(schema_text(n))).schema_id for n in (1, 2, 3)}
        spark = _session(Path(folder))
        try:
            one = _cached(spark, folder, "one", {_READER: ids[_READER]})
            mixed = _cached(spark, folder, "mixed", ids)
            ways = _ways(node.url, ids[_READER], one, mixed, spark)
            best = {name: max(_rate(*way) for _ in range(ROUNDS)) for name, way in ways.items()}
        finally:
            spark.stop()
    native, plain = (
        best["`from_avro(substring(value, 6))`, one schema"],
        best["plain Python UDF with fastavro, one schema"],
    )
    rows = [[name, f"{rate:,.0f}", f"{rate / plain:.2f}", f"{rate / native:.2f}"] for name, rate in best.items()]
    head = ["way", "rows/s", "to plain UDF", "to from_avro"]
    scale = f"{ROWS:,} orders of 20 fields, cached, local[2], best of {ROUNDS} runs"
    return f"{scale}.\n\n{table(head, rows)}"


def _ways(
    url: str, schema_id: int, one: DataFrame, mixed: DataFrame, spark: SparkSession
) -> dict[str, tuple[DataFrame, Column]]:
    ours = decode("value", registry=url, schema_id=schema_id)
    native = from_avro(expr("substring(value, 6)"), schema_text(_READER))
    return {
        "`from_avro(substring(value, 6))`, one schema": (one, native),
        "plain Python UDF with fastavro, one schema": (one, _plain_udf(spark)("value")),
        "`decode`, one schema": (one, ours),
        "`decode`, three writer schemas mixed": (mixed, ours),
    }


def _plain_udf(spark: SparkSession) -> Callable[[str], Column]:
    """What one writes by hand: strip five bytes, decode, return the dictionary. It needs to be told its type."""
    text = schema_text(_READER)
    empty = spark.createDataFrame([], "value binary")
    kind = empty.select(from_avro("value", text).alias("order")).schema["order"].dataType
    schema = fastavro.parse_schema(json.loads(text))
    return udf(lambda frame: fastavro.schemaless_reader(io.BytesIO(frame[5:]), schema), kind)


def _rate(rows: DataFrame, column: Column) -> float:
    started = time.perf_counter()
    rows.select(column.alias("order")).write.format("noop").mode("overwrite").save()
    return ROWS / (time.perf_counter() - started)


def _cached(spark: SparkSession, folder: str, name: str, ids: dict[int, int]) -> DataFrame:
    file = Path(folder) / f"{name}.parquet"
    pq.write_table(pa.table({"value": pa.array(frames(ids, ROWS), pa.binary())}), file)
    rows = spark.read.parquet(str(file)).repartition(2).cache()
    if rows.count() != ROWS:
        sys.exit(f"{file} holds {rows.count()} rows, not {ROWS}")
    return rows


def _session(folder: Path) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark: SparkSession = (
        SparkSession.builder.master("local[2]")
        .appName("strata-bench")
        .config("spark.jars", ",".join(map(str, spark_avro_jars())))
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "3g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    return spark
