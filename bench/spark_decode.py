"""Decoding registry frames in Spark: ours on both paths, Spark's own `from_avro`, and a plain Python UDF.

Every way reads the same cached column of frames, produces all twenty fields, or five of them, and discards the rows. A
decoder that costs nothing shows the best that a Python worker can reach: it returns the columns of its first batch.
"""

import io
import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession, functions
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.functions import col, expr, struct, udf

from bench.orders import frames, schema_text
from bench.report import table
from bench.spark_session import Job, compared, in_turn, session
from harness.jars import spark_avro_jars
from harness.registry import RegistryNode
from strata.serdes.client import RegistryClient
from strata.serdes.model import Schema
from strata.spark_udfs import decode, install
from strata.spark_udfs.arguments import Mode, settings_of
from strata.spark_udfs.decoding.avro_decoder import avro_decoder
from strata.spark_udfs.decoding.paths import output_type
from strata.spark_udfs.decoding.plan import ReaderSource, plan_decode

__all__ = ["FEW", "ROUNDS", "ROWS", "cached", "run"]

ROWS = 2_000_000
PLAIN_ROWS = 200_000
"""The rows for the plain Python UDF, which is that much slower."""
ROUNDS = 5
"""The rounds after one to warm up. All ways run in turn in each round, so that other load affects them equally."""
_READER = 2
FEW = ["id", "customer", "price", "status", "total"]
"""The fields of queries that read five."""
_NATIVE = "`from_avro(substring(value, 6))`, one schema"
_PLAIN = "plain Python UDF with fastavro, one schema"
_FREE = "a Python decoder that costs nothing"
_JVM = "`decode` in the JVM, 3 writer schemas"
_COMPARED = {"to plain UDF": _PLAIN, "to from_avro": _NATIVE, "to the JVM, 3": _JVM, "to free Python": _FREE}


def run() -> str:
    """Measure each way, and return the table."""
    with tempfile.TemporaryDirectory() as folder, RegistryNode("memory:") as node, RegistryClient(node.url) as client:
        client.set_config("NONE", subject="orders-value")
        ids = {n: client.register("orders-value", Schema(schema_text(n))).schema_id for n in range(1, 51)}
        spark = session(Path(folder), spark_avro_jars())
        try:
            install(spark, registry=node.url)
            rates = in_turn(_jobs(node.url, ids, spark, folder), 1, ROUNDS)
        finally:
            spark.stop()
    rows = [compared(name, rates, _COMPARED.values()) for name in rates]
    head = ["way", "rows/s", "CPU µs a row", *_COMPARED]
    scale = (
        f"{ROWS:,} orders of 20 fields ({PLAIN_ROWS:,} through the plain UDF), cached, local[2], "
        f"{ROUNDS} rounds in turn after one to warm up: the best of each, and the median of its ratio to another way "
        "in the same round"
    )
    return f"{scale}.\n\n{table(head, rows)}"


def _jobs(url: str, ids: dict[int, int], spark: SparkSession, folder: str) -> dict[str, Job]:
    few, mixed = {_READER: ids[_READER]}, {n: ids[n] for n in (1, 2, 3)}
    large = {
        name: cached(spark, folder, name, given, ROWS)
        for name, given in (("one", few), ("three", mixed), ("fifty", ids))
    }
    small = cached(spark, folder, "small", few, PLAIN_ROWS)

    def ours(path: Any, **options: Any) -> Column:
        return decode("value", registry=url, schema_id=ids[_READER], path=path, **options)

    def made(frames: DataFrame, count: int, column: Column) -> Job:
        return Job(frames.select(column.alias("order")), count)

    native = from_avro(expr("substring(value, 6)"), schema_text(_READER))
    return {
        _NATIVE: made(large["one"], ROWS, native),
        _PLAIN: made(small, PLAIN_ROWS, _plain_udf(spark)("value")),
        "`decode` in the JVM, one schema": made(large["one"], ROWS, ours("jvm")),
        _JVM: made(large["three"], ROWS, ours("jvm")),
        "`decode` in the JVM, 50 writer schemas": made(large["fifty"], ROWS, ours("jvm")),
        "`decode` in the JVM, 3 writer schemas, five columns": made(large["three"], ROWS, ours("jvm", columns=FEW)),
        "`from_avro`, one schema, five columns selected": made(large["one"], ROWS, struct(*(native[n] for n in FEW))),
        "`decode` in Python, one schema": made(large["one"], ROWS, ours("python")),
        "`decode` in Python, 3 writer schemas": made(large["three"], ROWS, ours("python")),
        "`decode` in Python, 50 writer schemas": made(large["fifty"], ROWS, ours("python")),
        _FREE: made(large["three"], ROWS, _costless(url, ids[_READER])),
        "`decode` in Python, 3 writer schemas, five columns": made(large["three"], ROWS, ours("python", columns=FEW)),
        f"{_FREE}, five columns": made(large["three"], ROWS, _costless(url, ids[_READER], FEW)),
    }


def _costless(url: str, schema_id: int, columns: Sequence[str] | None = None) -> Column:
    """Return what `decode` returns in Python workers, with the columns of a task's first batch for every batch."""
    decided = plan_decode(settings_of(url), ReaderSource(schema_id=schema_id), mode=Mode.DEADLETTER, columns=columns)
    kept: list[pa.Array] = []

    def hand_back(frames: pa.Array) -> pa.Array:
        if not kept or len(kept[0]) < len(frames):
            kept[:] = [avro_decoder(decided).decode(frames)]
        return kept[0] if len(kept[0]) == len(frames) else kept[0].slice(0, len(frames))

    made = cast("Any", functions).arrow_udf(hand_back, output_type(decided))
    return cast("Column", made.asNondeterministic()("value"))


def _plain_udf(spark: SparkSession) -> Callable[[str], Column]:
    """Return a hand-written UDF: strip five bytes, decode, return the dictionary. It needs an explicit type."""
    text = schema_text(_READER)
    empty = spark.createDataFrame([], "value binary")
    kind = empty.select(from_avro("value", text).alias("order")).schema["order"].dataType
    schema = fastavro.parse_schema(json.loads(text))
    return udf(lambda frame: fastavro.schemaless_reader(io.BytesIO(frame[5:]), schema), kind)


def cached(spark: SparkSession, folder: str, name: str, ids: dict[int, int], count: int) -> DataFrame:
    """Return so many frames of writer versions (version -> schema id), mixed row by row, in memory."""
    file = Path(folder) / f"{name}.parquet"
    pq.write_table(pa.table({"value": pa.array(frames(ids, count), pa.binary())}), file)
    # Otherwise equal frames, and so writer schemas, would be next to each other.
    spark.conf.set("spark.sql.execution.sortBeforeRepartition", "false")
    rows = spark.read.parquet(str(file)).repartition(2).cache()
    if rows.count() != count:
        sys.exit(f"{file} holds {rows.count()} rows, not {count}")
    return rows.select(col("value"))
