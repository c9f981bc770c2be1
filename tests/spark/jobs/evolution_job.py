"""A Spark job that follows the newer versions of a subject by `run_stream`, and prints the results.

The tests run it as its own process; the first argument is a JSON object with its options.
"""

import json
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

OPTIONS = json.loads(sys.argv[1])
sys.path.insert(0, OPTIONS["packages"])

import pyarrow as pa  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402
from pyspark.errors import StreamingQueryException  # noqa: E402
from pyspark.sql import SparkSession  # noqa: E402
from pyspark.sql.streaming.query import StreamingQuery  # noqa: E402

from strata.serdes.client import RegisteredSchema, RegistryClient  # noqa: E402
from strata.spark_udfs import decode, install, run_stream  # noqa: E402

FOLDER = Path(OPTIONS["folder"])
TOPIC, SINK = FOLDER / "topic", FOLDER / "sink"


class Build:
    """Builder of the query of a reader schema."""

    def __init__(self, spark: SparkSession, path: Any) -> None:
        self.versions: list[int | None] = []
        self.query: StreamingQuery | None = None
        self._spark, self._path = spark, path

    def __call__(self, reader: RegisteredSchema) -> StreamingQuery:
        """Start the query of a reader schema."""
        if self._path == "jvm":
            install(self._spark, registry=OPTIONS["registry"])
        source = self._spark.readStream.schema("offset long, value binary").parquet(str(TOPIC))
        value = decode(
            "value", registry=OPTIONS["registry"], schema_id=reader.schema_id, mode="FAILFAST", path=self._path
        )
        writer = source.select("offset", value.alias("value")).select("offset", "value.*").writeStream.format("parquet")
        self.query = writer.option("checkpointLocation", f"{SINK}.checkpoint").start(str(SINK))
        self.versions.append(reader.version)
        return self.query


def produce(offset: int, value: bytes) -> None:
    """Add a record."""
    columns = {"offset": pa.array([offset], pa.int64()), "value": pa.array([value], pa.binary())}
    pq.write_table(pa.table(columns), TOPIC / ".unfinished")
    (TOPIC / ".unfinished").rename(TOPIC / f"{offset}.parquet")


def wait_until(holds: Callable[[], bool]) -> None:
    """Wait for a condition for at most a minute."""
    deadline = time.monotonic() + 60
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError("it does not happen")
        time.sleep(0.1)


def main() -> None:
    """Run the job."""
    builder = SparkSession.builder
    for name, value in OPTIONS["conf"].items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    TOPIC.mkdir()
    build = Build(spark, OPTIONS["path"])
    frames = [bytes.fromhex(one) for one in OPTIONS["frames"]]
    with ThreadPoolExecutor(1) as threads, RegistryClient(OPTIONS["registry"]) as registry:
        following = threads.submit(
            run_stream, build, registry=OPTIONS["registry"], subject=OPTIONS["subject"], evolve="restart", poll=0.3
        )
        wait_until(lambda: bool(build.versions) or following.done())
        produce(0, frames[0])
        build.query.processAllAvailable()
        registry.register(OPTIONS["subject"], OPTIONS["newer"])
        wait_until(lambda: build.versions == [1, 2] or following.done())
        produce(1, frames[1])
        build.query.processAllAvailable()
        build.query.stop()
        ended = following.result(60) is build.query
    produce(2, b"\7")
    try:
        run_stream(build, registry=OPTIONS["registry"], subject=OPTIONS["subject"])
        failure = ""
    except StreamingQueryException as error:
        failure = str(error)
    committed = spark.read.option("mergeSchema", "true").parquet(str(SINK)).orderBy("offset").collect()
    answer = {
        "versions": build.versions,
        "rows": [row.asDict() for row in committed],
        "failure": failure,
        "ended": ended,
    }
    spark.stop()
    print(json.dumps(answer))  # noqa: T201 - the job reports on standard output


if __name__ == "__main__":
    main()
