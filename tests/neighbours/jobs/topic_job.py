"""A Spark job that reads a topic, decodes its values on both paths, and prints the rows of each.

The tests run it as its own process; the first argument is a JSON object with its options.
"""

import json
import sys

OPTIONS = json.loads(sys.argv[1])
sys.path.insert(0, OPTIONS["packages"])

from pyspark.sql import SparkSession, functions  # noqa: E402

from strata.spark_udfs import decode, install  # noqa: E402


def main() -> None:
    """Run the job."""
    builder = SparkSession.builder
    for name, value in OPTIONS["conf"].items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    install(spark, registry=OPTIONS["registry"])
    source = {
        "kafka.bootstrap.servers": OPTIONS["bootstrap"],
        "subscribe": OPTIONS["topic"],
        "startingOffsets": "earliest",
    }
    frames = spark.read.format("kafka").options(**source).load()
    rows = {}
    for path in ("jvm", "python"):
        column = decode(
            "value", registry=OPTIONS["registry"], subject=f"{OPTIONS['topic']}-value", mode="FAILFAST", path=path
        )
        decoded = frames.orderBy("offset").select(column.alias("value")).where("value is not null")
        text = functions.to_json(functions.struct(*OPTIONS["columns"]), {"ignoreNullFields": "false"})
        rows[path] = [json.loads(row[0]) for row in decoded.select(text).collect()]
    spark.stop()
    print(json.dumps(rows))  # noqa: T201 - the job reports on standard output


if __name__ == "__main__":
    main()
