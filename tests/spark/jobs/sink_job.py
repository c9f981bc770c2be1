"""A Spark job that copies a topic into a table by `run_stream`, and ends when it has read all records.

The tests run it as its own process, and kill it; the argument is a JSON object with its options.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

OPTIONS = json.loads(sys.argv[1])
sys.path.insert(0, OPTIONS["packages"])

from pyspark.sql import DataFrame, SparkSession  # noqa: E402
from pyspark.sql.streaming.query import StreamingQuery  # noqa: E402

from strata.serdes.client import RegisteredSchema  # noqa: E402
from strata.spark_udfs import decode, install, run_stream, split_dead_letters  # noqa: E402


def add_columns(spark: SparkSession, table: str, df: DataFrame) -> None:
    """Add the columns that a data frame has and a table lacks; create the table if it is missing."""
    columns = ", ".join(f"{one.name} {one.dataType.simpleString()}" for one in df.schema)
    spark.sql(f"CREATE TABLE IF NOT EXISTS {table} ({columns}) USING iceberg")
    missing = [one for one in df.schema if one.name not in spark.table(table).columns]
    for one in missing:
        spark.sql(f"ALTER TABLE {table} ADD COLUMN {one.name} {one.dataType.simpleString()}")


def start(spark: SparkSession, rows: DataFrame) -> StreamingQuery:
    """Start the query that writes rows to the table, from its checkpoint if there is one."""
    writer: Any = rows.writeStream.option("checkpointLocation", OPTIONS["checkpoint"]).trigger(availableNow=True)
    if OPTIONS["format"] == "iceberg":
        add_columns(spark, OPTIONS["table"], rows)
        return writer.format("iceberg").toTable(OPTIONS["table"])  # type: ignore[no-any-return]
    return writer.format(OPTIONS["format"]).option("mergeSchema", "true").start(OPTIONS["table"])  # type: ignore[no-any-return]


def main() -> None:
    """Run the job."""
    os.setsid()  # the JVM belongs to the same group, so one signal kills both
    builder = SparkSession.builder
    for name, value in OPTIONS["conf"].items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("WARN")
    install(spark, registry=OPTIONS["registry"])
    kafka = {
        "kafka.bootstrap.servers": OPTIONS["brokers"],
        "subscribe": OPTIONS["topic"],
        "startingOffsets": "earliest",
    }

    def build(reader: RegisteredSchema) -> StreamingQuery:
        source = spark.readStream.format("kafka").options(**kafka, maxOffsetsPerTrigger=str(OPTIONS["batch"])).load()
        value = decode("value", registry=OPTIONS["registry"], schema_id=reader.schema_id, path="jvm")
        good, _ = split_dead_letters(source.select("offset", value.alias("decoded")))
        return start(spark, good.select("offset", "decoded.*"))

    run_stream(build, registry=OPTIONS["registry"], subject=OPTIONS["subject"])
    reader = spark.read.option("mergeSchema", "true")
    table = (
        spark.table(OPTIONS["table"])
        if OPTIONS["format"] == "iceberg"
        else reader.format(OPTIONS["format"]).load(OPTIONS["table"])
    )
    rows = [row.asDict() for row in table.orderBy("offset").collect()]
    spark.stop()
    Path(OPTIONS["rows"]).write_text(json.dumps(rows))


if __name__ == "__main__":
    main()
