"""The Spark job: the topic in, two tables of Parquet files out.

    flights         decoded into the reader schema, with the Kafka position and the writer's schema id
    dead-letters    records that could not be decoded: position, schema id if readable, reason, and the original bytes

Each batch is decoded once and writes both tables into folders named by its number. If a batch fails halfway, Spark
repeats it with the same offsets under the same number, and overwrites the output of the first try: no record is lost or
duplicated.

Rules of this file: a job that any user of `spark_udfs` could write; only starting and watching it is specific to the
demo.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, cast

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery

from harness.jars import spark_kafka_jars
from strata.spark_udfs import decode, install, split_dead_letters

__all__ = ["FlightStream", "running_spark"]

_RECORDS_PER_BATCH: Final = 60_000
_ENDED_S: Final = 30.0
_PLACE: Final = ("topic", "partition", "offset")
# Loopback only, no web pages; a stop that hangs becomes an error. The optimizing compiler would cost a third of the
# time of such a short run.
_SPARK: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.stopTimeout": "60s",
}


@contextmanager
def running_spark(folder: Path) -> Iterator[SparkSession]:
    """Run a session on two cores of this machine, with Spark's own Kafka source; `folder` takes its files.

    After success the session is stopped; otherwise its process is killed, since a job that hangs would not stop.
    """
    os.environ["PYSPARK_PYTHON"] = sys.executable  # so that workers find this process's libraries
    builder = SparkSession.builder.master("local[2]").appName("flights")
    settings = {
        **_SPARK,
        "spark.jars": ",".join(map(str, spark_kafka_jars())),
        "spark.local.dir": str(folder),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    before = _children()
    try:
        spark = builder.getOrCreate()
    except BaseException:
        for pid in _children() - before:  # a JVM without a handle yet
            os.kill(pid, signal.SIGKILL)
        raise
    process = cast("Any", spark.sparkContext)._gateway.proc
    try:
        yield spark
        spark.stop()
    except BaseException:
        process.kill()
        raise
    finally:
        process.stdin.close()  # which makes it exit
        try:
            process.wait(_ENDED_S)
        except subprocess.TimeoutExpired:
            process.kill()


class FlightStream:
    """The running job; `with` starts it, stops it after success, and otherwise kills Spark itself."""

    def __init__(
        self, spark: SparkSession, *, bootstrap: str, topic: str, registry: str, reader_schema: str, output: Path
    ) -> None:
        self.flights = output / "flights"
        self.dead_letters = output / "dead-letters"
        self._checkpoint = output / "checkpoint"
        self._records = _decoded(spark, bootstrap, topic, registry, reader_schema)
        self._query: StreamingQuery | None = None

    def __enter__(self) -> Self:
        writer = self._records.writeStream.foreachBatch(self._write)
        self._query = writer.option("checkpointLocation", str(self._checkpoint)).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._query is not None and kind is None:
            self._query.stop()

    @property
    def position(self) -> int:
        """The number of records of the topic that are in the tables.

        Raises:
            RuntimeError: the job has ended.
        """
        if self._query is None or not self._query.isActive:
            raise RuntimeError(f"the Spark job ended: {_cause(self._query)}")
        progress = self._query.lastProgress
        sources = json.loads(progress.json)["sources"] if progress else []
        return sum(sum(partitions.values()) for one in sources for partitions in (one["endOffset"] or {}).values())

    def _write(self, batch: DataFrame, number: int) -> None:
        batch.persist()
        try:
            good, dead = split_dead_letters(batch)
            flights = good.select(*_PLACE, f.col("writer_id").alias("schema_id"), "decoded.*")
            letters = dead.select(*_PLACE, "schema_id", "reason", "frame").coalesce(1)
            for table, folder in ((flights, self.flights), (letters, self.dead_letters)):
                table.write.mode("overwrite").parquet(str(folder / f"batch={number}"))
        finally:
            batch.unpersist()


def _decoded(spark: SparkSession, bootstrap: str, topic: str, registry: str, reader_schema: str) -> DataFrame:
    install(spark, registry=registry)
    source = spark.readStream.format("kafka").options(
        **{
            "kafka.bootstrap.servers": bootstrap,
            "subscribe": topic,
            "startingOffsets": "earliest",
            "maxOffsetsPerTrigger": str(_RECORDS_PER_BATCH),
            "failOnDataLoss": "true",
        }
    )
    # The writer's schema id comes after the magic byte, as four big-endian bytes.
    writer_id = f.conv(f.hex(f.substring("value", 2, 4)), 16, 10).cast("int")
    return source.load().select(
        *_PLACE,
        writer_id.alias("writer_id"),
        decode("value", registry=registry, reader_schema=reader_schema, mode="DEADLETTER", path="jvm").alias("decoded"),
    )


def _cause(query: StreamingQuery | None) -> str:
    """Return the last meaningful line: before it are long traces, after it the plan; both are in the log."""
    text = str(query.exception() if query is not None else "").partition("=== Streaming Query ===")[0]
    lines = [line for line in text.splitlines() if line.strip() and not line[0].isspace()]
    return lines[-1] if lines else "unknown cause"


def _children() -> set[int]:
    """Return the child processes of this process; on systems other than Linux an empty set."""
    return {int(pid) for file in Path("/proc/self/task").glob("*/children") for pid in file.read_text().split()}
