"""The options of the JVM of a small Spark: it compiles little, and reads its classes from an archive.

A session with two queries takes 5 s of CPU time instead of 11 s. `python -m harness.spark_jvm` writes the archive ahead
of time.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Final

from harness.class_archive import shared_classes, writing_classes

__all__ = ["spark_jvm"]

# In the default code cache of 48 MB, Spark's code is thrown away and compiled again; small heaps are collected often.
_SMALL: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=160m -Xms512m -Xmn256m"
_WRITE_S: Final = 600
# What most tests do: rows from Python and back, generated code, SQL functions, files, a stream.
_SESSION: Final = """
import sys
from pyspark.sql import SparkSession, functions as F
options, folder = sys.argv[1:]
conf = {"driver.extraJavaOptions": options, "driver.host": "127.0.0.1", "driver.bindAddress": "127.0.0.1",
        "driver.memory": "1g", "ui.enabled": "false", "sql.shuffle.partitions": "2",
        "sql.warehouse.dir": f"{folder}/warehouse", "local.dir": f"{folder}/local"}
builder = SparkSession.builder.master("local[2]")
for name, value in conf.items():
    builder = builder.config(f"spark.{name}", value)
spark = builder.getOrCreate()
rows = spark.createDataFrame([(1, "a", b"x"), (2, "b", None)], "number int, text string, bytes binary")
rows.createOrReplaceTempView("rows")
spark.sql("SELECT text, count(*), max(number), named_struct('a', 1) FROM rows GROUP BY text ORDER BY text").collect()
rows.select(F.from_json(F.lit('{"a": [1]}'), "a array<int>"), F.to_json(F.struct("number"))).collect()
rows.mapInArrow(lambda batches: batches, rows.schema).collect()
rows.write.parquet(f"{folder}/rows")
stream = spark.readStream.schema(rows.schema).parquet(f"{folder}/rows")
query = stream.writeStream.format("memory").queryName("copy").trigger(availableNow=True)
query.option("checkpointLocation", f"{folder}/places").start().awaitTermination()
spark.table("copy").collect()
spark.stop()
"""


@cache
def spark_jvm() -> str:
    """Return the options, for `spark.driver.extraJavaOptions`."""
    return " ".join([_SMALL, *shared_classes("spark", sorted(_pyspark_jars()), _write)])


def _write(file: Path) -> None:
    folder = file.with_name(f"{file.name}-session")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    try:
        subprocess.run(
            [sys.executable, "-c", _SESSION, f"{_SMALL} {writing_classes(file)}", str(folder)],
            env={**environment, "PYSPARK_PYTHON": sys.executable},
            capture_output=True,
            timeout=_WRITE_S,
            check=True,
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _pyspark_jars() -> list[Path]:
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise RuntimeError("pyspark is not installed")
    return [*(Path(spec.origin).parent / "jars").glob("*.jar")]


if __name__ == "__main__":
    sys.stdout.write(f"{spark_jvm()}\n")
