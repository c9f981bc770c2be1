"""A Spark job that follows a topic into a table, step by step: each line of standard input is a step, as a JSON object.

It answers each step with a line of JSON on standard output. The tests run it as its own process, because Delta and
Iceberg need a session of their own.
"""

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

OPTIONS = json.loads(sys.argv[1])
sys.path.insert(0, OPTIONS["packages"])

from pyspark.errors import PySparkException  # noqa: E402
from pyspark.sql import SparkSession, functions  # noqa: E402

from strata.spark_udfs import install  # noqa: E402
from strata.spark_udfs.tables import follow  # noqa: E402

FRAMES = "key binary, value binary, topic string, partition int, offset bigint"


def source(spark: SparkSession) -> Any:
    """Return the stream: a topic, or a folder of frames."""
    if "brokers" not in OPTIONS:
        files = str(OPTIONS.get("files", 1000))
        return spark.readStream.schema(FRAMES).option("maxFilesPerTrigger", files).parquet(OPTIONS["frames"])
    kafka = {"kafka.bootstrap.servers": OPTIONS["brokers"], "subscribe": OPTIONS["topic"]}
    kafka |= {"startingOffsets": "earliest", "maxOffsetsPerTrigger": str(OPTIONS["batch"])}
    return spark.readStream.format("kafka").options(**kafka).load()


def rows(spark: SparkSession, table: str) -> list[dict[str, Any]]:
    """Return the rows of a table by offset."""
    return [row.asDict(recursive=True) for row in spark.table(table).orderBy("offset").collect()]


def stop_at(spark: SparkSession, sign: Path) -> None:
    """Stop the running queries as soon as a file is there."""

    def wait() -> None:
        while not sign.exists():
            time.sleep(0.1)
        for query in spark.streams.active:
            query.stop()

    threading.Thread(target=wait, daemon=True).start()


def _text(value: Any) -> str:
    return value.hex() if isinstance(value, bytes | bytearray) else str(value)


def answer(spark: SparkSession, step: dict[str, Any]) -> dict[str, Any]:
    """Carry out a step."""
    if "sql" in step:
        return {"rows": [row.asDict() for row in spark.sql(step["sql"]).collect()]}
    table, options = step["table"], dict(step.get("options", {}))
    if "key" in options:
        options["key"] = functions.expr(options["key"])
    error = None
    trigger: dict[str, Any] = {"availableNow": True}
    if "stop" in step:
        stop_at(spark, Path(step["stop"]))
        trigger = {"processingTime": "0 seconds"}
    try:
        follow(
            source(spark),
            table=table,
            subject=step["subject"],
            registry=OPTIONS["registry"],
            checkpoint=step["checkpoint"],
            format=step["format"],
            with_columns=["offset"],
            trigger=trigger,
            **options,
        )
    except (ValueError, TypeError, PySparkException) as failure:
        error = f"{type(failure).__name__}: {failure}"
    if step.get("quiet"):
        return {"error": error}
    columns = {field.name: field.dataType.simpleString() for field in spark.table(table).schema}
    comments = {field.name: field.metadata.get("comment") for field in spark.table(table).schema}
    dead = rows(spark, options.get("dead_letters", f"{table}_dead_letters"))
    result = {"error": error, "columns": columns, "comments": comments, "rows": rows(spark, table), "dead": dead}
    return json.loads(json.dumps(result, default=_text))  # type: ignore[no-any-return]


def main() -> None:
    """Run the job."""
    os.setsid()  # the JVM belongs to the same group, so one signal kills both
    builder = SparkSession.builder
    for name, value in OPTIONS["conf"].items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    install(spark, registry=OPTIONS["registry"])
    for line in sys.stdin:
        sys.stdout.write(f"answer {json.dumps(answer(spark, json.loads(line)))}\n")
        sys.stdout.flush()
    spark.stop()


if __name__ == "__main__":
    main()
