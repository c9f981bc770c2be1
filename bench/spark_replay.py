"""`replay` in Spark beside `decode`: what a candidate makes of frames, counted with the first and the last place."""

import json
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession, functions

from bench.orders import VERSIONS, frames, schema_text
from bench.report import table
from bench.spark_session import Job, compared, in_turn, session
from harness.registry import RegistryNode
from strata.serdes.client import RegistryClient
from strata.serdes.model import Schema
from strata.spark_udfs import decode, install, replay

__all__ = ["run"]

ROWS = 1_000_000
ROUNDS = 7
_READER = 2
_DECODE = "`decode` in the JVM"


def run() -> str:
    """Measure each way, and return the table."""
    with tempfile.TemporaryDirectory() as folder, RegistryNode("memory:") as node, RegistryClient(node.url) as client:
        client.set_config("NONE", subject="orders-value")
        ids = {n: client.register("orders-value", Schema(schema_text(n))).schema_id for n in (1, 2, 3)}
        spark = session(Path(folder), [])
        try:
            install(spark, registry=node.url)
            rows = _cached(spark, folder, ids)
            rates = in_turn(_jobs(node.url, rows), 2, ROUNDS)
        finally:
            spark.stop()
    ways = [compared(name, rates, [_DECODE]) for name in rates]
    scale = (
        f"{ROWS:,} orders of 20 fields in 3 writer schemas with topic, partition and offset, cached, local[2], "
        f"{ROUNDS} rounds in turn after two to warm up: the best of each, and the median of its ratio to `decode`"
    )
    return f"{scale}.\n\n{table(['way', 'rows/s', 'CPU µs a row', 'to `decode`'], ways)}"


def _jobs(url: str, rows: DataFrame) -> dict[str, Job]:
    candidate = schema_text(_READER)
    return {
        _DECODE: Job(rows.select(decode("value", registry=url, reader_schema=candidate, path="jvm")), ROWS),
        "`replay`": Job(replay(rows, candidate, registry=url, path="jvm"), ROWS),
        "`replay` without places": Job(replay(rows.select("value"), candidate, registry=url, path="jvm"), ROWS),
        "`replay`, where values of every record may change": Job(
            replay(rows, _changing(), registry=url, path="jvm"), ROWS
        ),
    }


def _changing() -> str:
    """Return a candidate that reads a long of each writer as a double."""
    fields = [{**field, "type": "double"} if field["name"] == "id" else field for field in VERSIONS[_READER]]
    return json.dumps({"type": "record", "name": "Order", "namespace": "shop", "fields": fields})


def _cached(spark: SparkSession, folder: str, ids: dict[int, int]) -> DataFrame:
    file = Path(folder) / "frames.parquet"
    pq.write_table(
        pa.table({"value": pa.array(frames(ids, ROWS), pa.binary()), "offset": pa.array(range(ROWS), pa.int64())}), file
    )
    rows = (
        spark.read.parquet(str(file))
        .withColumns({"topic": functions.lit("orders"), "partition": functions.lit(0)})
        .repartition(2)
        .cache()
    )
    rows.count()
    return rows
