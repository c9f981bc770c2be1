"""A stream of frames written to tables of Iceberg and Delta: by `follow`, and by jobs without it."""

import shutil
import tempfile
import time
from collections.abc import Callable
from itertools import count, islice
from pathlib import Path
from statistics import median

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from bench.orders import frames, schema_text
from bench.report import table
from bench.spark_session import session
from harness.jars import delta_jars, iceberg_jars
from harness.registry import RegistryNode
from strata.serdes.client import RegistryClient
from strata.serdes.model import Schema
from strata.spark_udfs import decode, install, split_dead_letters
from strata.spark_udfs.tables import follow

__all__ = ["run"]

BATCHES = 4
ROWS = 200_000
"""Of each batch."""
ROUNDS = 3
WARM_UPS = 1
FORMATS = ("iceberg", "delta")
_SUBJECT = "orders-value"
_FRAMES = "value binary, topic string, partition int, offset bigint"
_NOW = {"availableNow": True}
_GOOD = "good rows alone, Spark's own sink"
_BOTH = "good rows and dead letters, `foreachBatch`"
_FOLLOW = "`follow`"
_HEAD = ["format", "job", "rows/s", f"to {_GOOD}", f"to {_BOTH}"]


def run() -> str:
    """Write the same stream in each way in turn, and return the table."""
    with (
        tempfile.TemporaryDirectory() as name,
        RegistryNode("memory:") as node,
        RegistryClient(node.url) as client,
    ):
        folder = Path(name)
        client.set_config("NONE", subject=_SUBJECT)
        ids = {n: client.register(_SUBJECT, Schema(schema_text(n))).schema_id for n in (1, 2, 3)}
        _fill(folder / "frames", ids)
        spark = _session(folder)
        try:
            install(spark, registry=node.url)
            jobs = {f"{format_} {job}": (format_, job) for format_ in FORMATS for job in (_GOOD, _BOTH, _FOLLOW)}
            seconds: dict[str, list[float]] = {key: [] for key in jobs}
            runner = _Runner(spark, folder, node.url)
            for number in range(WARM_UPS + ROUNDS):
                for key, (format_, job) in jobs.items():
                    taken = runner.run(format_, job)
                    if number >= WARM_UPS:
                        seconds[key].append(taken)
        finally:
            spark.stop()
    rows = [_row(format_, job, seconds) for format_ in FORMATS for job in (_GOOD, _BOTH, _FOLLOW)]
    scale = (
        f"{BATCHES} batches of {ROWS:,} orders of 20 fields in 3 writer schemas, from Parquet files, local[2], "
        f"{ROUNDS} rounds in turn after one to warm up: the best of each, and the median of its ratio to "
        "another job in the same round"
    )
    return f"{scale}.\n\n{table(_HEAD, rows)}"


def _row(format_: str, job: str, seconds: dict[str, list[float]]) -> list[str]:
    own = seconds[f"{format_} {job}"]
    ratios = [
        median(other / taken for taken, other in zip(own, seconds[f"{format_} {base}"], strict=True))
        for base in (_GOOD, _BOTH)
    ]
    return [format_, job, f"{BATCHES * ROWS / min(own):,.0f}", *(f"{ratio:.2f}" for ratio in ratios)]


class _Runner:
    """Runs a job into new tables, and returns its seconds."""

    def __init__(self, spark: SparkSession, folder: Path, url: str) -> None:
        self._spark, self._folder, self._url, self._numbers = spark, folder, url, count()
        self._jobs: dict[str, Callable[[str, str, str], None]] = {
            _GOOD: self._good_rows,
            _BOTH: self._both,
            _FOLLOW: self._follow,
        }

    def run(self, format_: str, job: str) -> float:
        """Run a job, check what it wrote, and drop it."""
        prefix = "lake.db." if format_ == "iceberg" else ""
        name = f"{prefix}orders_{next(self._numbers)}"
        checkpoint = self._folder / "checkpoint"
        started = time.perf_counter()
        self._jobs[job](format_, name, str(checkpoint))
        seconds = time.perf_counter() - started
        if (written := self._spark.table(name).count()) != BATCHES * ROWS:
            raise RuntimeError(f"{name} has {written} rows")
        for made in (name, f"{name}_dead_letters"):
            self._spark.sql(f"DROP TABLE IF EXISTS {made} {'PURGE' if format_ == 'iceberg' else ''}")
        shutil.rmtree(checkpoint)
        return seconds

    def _stream(self) -> DataFrame:
        source = self._spark.readStream.schema(_FRAMES).option("maxFilesPerTrigger", "1")
        return source.parquet(str(self._folder / "frames"))

    def _decoded(self) -> DataFrame:
        decoded = decode("value", registry=self._url, subject=_SUBJECT, path="jvm")
        return self._stream().select("topic", "partition", "offset", decoded.alias("order"))

    def _good_rows(self, format_: str, name: str, checkpoint: str) -> None:
        good = self._decoded().where("order.error IS NULL").select("order.value.*")
        writer = good.writeStream.format(format_).option("checkpointLocation", checkpoint).trigger(**_NOW)
        writer.toTable(name).awaitTermination()

    def _both(self, format_: str, name: str, checkpoint: str) -> None:
        def write(batch: DataFrame, _: int) -> None:
            good, dead = split_dead_letters(batch, "order")
            good.select("order.*").write.format(format_).mode("append").saveAsTable(name)
            dead.write.format(format_).mode("append").saveAsTable(f"{name}_dead_letters")

        writer = self._decoded().writeStream.foreachBatch(write).option("checkpointLocation", checkpoint)
        writer.trigger(**_NOW).start().awaitTermination()

    def _follow(self, format_: str, name: str, checkpoint: str) -> None:
        follow(
            self._stream(),
            table=name,
            subject=_SUBJECT,
            registry=self._url,
            checkpoint=checkpoint,
            format=format_,  # type: ignore[arg-type]
            trigger=_NOW,
            path="jvm",
        )


def _session(folder: Path) -> SparkSession:
    conf = {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension"
        ",org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": str(folder / "lake"),
    }
    return session(folder, [*delta_jars(), *iceberg_jars()], conf)


def _fill(folder: Path, ids: dict[int, int]) -> None:
    folder.mkdir()
    made = frames(ids, BATCHES * ROWS)
    for batch in range(BATCHES):
        part = list(islice(made, ROWS))
        offsets = range(batch * ROWS, (batch + 1) * ROWS)
        columns = {"value": pa.array(part, pa.binary()), "topic": pa.array(["orders"] * ROWS)}
        columns |= {"partition": pa.array([0] * ROWS, pa.int32()), "offset": pa.array(offsets, pa.int64())}
        pq.write_table(pa.table(columns), folder / f"{batch}.parquet")
