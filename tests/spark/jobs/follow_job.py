"""A Spark job that follows a topic into a table, step by step: each line of standard input is a step, as a JSON object.

It answers each step with a line of JSON on standard output. The tests run it as its own process, because Delta and
Iceberg need a session of their own.
"""

import json
import os
import sys
from typing import Any

OPTIONS = json.loads(sys.argv[1])
sys.path.insert(0, OPTIONS["packages"])

from pyspark.errors import PySparkException  # noqa: E402
from pyspark.sql import SparkSession  # noqa: E402

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


def answer(spark: SparkSession, step: dict[str, Any]) -> dict[str, Any]:
    """Carry out a step."""
    if "sql" in step:
        return {"rows": [row.asDict() for row in spark.sql(step["sql"]).collect()]}
    try:
        follow(
            source(spark),
            table=step["table"],
            subject=step["subject"],
            registry=OPTIONS["registry"],
            checkpoint=step["checkpoint"],
            format=step["format"],
            with_columns=["offset"],
            trigger={"availableNow": True},
            **step["options"],
        )
    except (ValueError, TypeError, PySparkException) as failure:
        return {"error": f"{type(failure).__name__}: {failure}"}
    return {"error": None}


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
