"""The options of the JVM of a small Spark: it compiles little, and reads its classes from an archive.

A session with two queries takes 5 s of CPU time instead of 11 s. `python -m harness.spark_jvm` writes the archives
ahead of time: one of Spark's own classes, and one of those of Delta and Iceberg too.
"""

import json
import os
import shutil
import subprocess
import sys
from functools import cache, partial
from pathlib import Path
from typing import Final

from harness.class_archive import shared_classes, writing_classes
from harness.jars import delta_jars, iceberg_jars, pyspark_folder

__all__ = ["TABLES", "spark_java", "spark_jvm", "table_jars"]

TABLES: Final = {
    "spark.databricks.delta.allFilesInCrc.enabled": "false",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.lake.type": "hadoop",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension"
    ",org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
}
"""The settings of a session with tables of Delta, and of Iceberg in the catalog `lake`, whose folder is a setting."""

# Huge pages spare a tenth of the kernel's time. In the default code cache of 48 MB, Spark's code is thrown away and
# compiled again; small heaps are collected often, and so is the whole heap while the space for classes grows from
# 21 MB.
_SMALL: Final = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:+UseTransparentHugePages -XX:ReservedCodeCacheSize=160m"
    " -Xms512m -Xmn256m -XX:MetaspaceSize=512m"
)
_WRITE_S: Final = 600
# What most tests do: rows from Python and back, generated code, SQL functions, files, a stream.
_SESSION: Final = """
import json, sys
from pyspark.sql import SparkSession, functions as F
options, folder, tables = sys.argv[1:]
conf = {"driver.extraJavaOptions": options, "driver.host": "127.0.0.1", "driver.bindAddress": "127.0.0.1",
        "driver.memory": "1g", "ui.enabled": "false", "sql.shuffle.partitions": "2",
        "sql.catalog.lake.warehouse": f"{folder}/lake",
        "sql.warehouse.dir": f"{folder}/warehouse", "local.dir": f"{folder}/local"}
conf = {f"spark.{name}": value for name, value in conf.items()} | json.loads(tables)
builder = SparkSession.builder.master("local[2]")
for name, value in conf.items():
    builder = builder.config(name, value)
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
for kind, table in (("iceberg", "lake.db.t"), ("delta", "t")) if json.loads(tables) else ():
    spark.sql(f"CREATE TABLE {table} (number INT, text STRING) USING {kind}")
    spark.sql(f"ALTER TABLE {table} ADD COLUMNS (more STRING COMMENT 'more')")
    def write(batch, _):
        columns = batch.select("number", "text", F.lit(None).cast("string").alias("more"))
        columns.writeTo(table).append() if kind == "iceberg" else columns.write.insertInto(table)
        columns.createOrReplaceTempView("changes")
        batch.sparkSession.sql(f"MERGE INTO {table} t USING (SELECT DISTINCT * FROM changes) s ON t.number = s.number "
                               "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *")
    writer = stream.writeStream.foreachBatch(write).trigger(availableNow=True)
    writer.option("checkpointLocation", f"{folder}/{kind}").start().awaitTermination()
    spark.table(table).orderBy("number").collect()
spark.stop()
"""


@cache
def spark_jvm(*, tables: bool = False) -> str:
    """Return the options, for `spark.driver.extraJavaOptions`.

    Args:
        tables: whether the class path goes on with `table_jars`, as by `spark_files.class_path`.
    """
    name, more = ("tables", table_jars()) if tables else ("spark", [])
    return " ".join([_SMALL, *shared_classes(name, [*sorted(_pyspark_jars()), *more], partial(_write, tables=tables))])


def spark_java(*more: Path) -> list[str]:
    """Return the start of a command that runs a class beside Spark's, which are first on the class path.

    Args:
        more: folders and jars that follow on the class path.
    """
    jars = pyspark_folder() / "jars"
    # In the order of Spark's launcher, or the archive would not fit.
    path = [pyspark_folder() / "conf", *jars.glob("slf4j-api-*.jar"), jars / "*", *more]
    # Rows as large as they may be would fill huge pages with zeros, most of which are never used.
    options = [*spark_jvm().split(), "-XX:-UseTransparentHugePages"]
    return [shutil.which("java") or "java", *options, "-cp", os.pathsep.join(map(str, path))]


def table_jars() -> list[Path]:
    """Return the jars of Delta and Iceberg."""
    return [*delta_jars(), *iceberg_jars()]


def _write(file: Path, *, tables: bool) -> None:
    folder = file.with_name(f"{file.name}-session")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    if tables:
        environment["SPARK_DIST_CLASSPATH"] = os.pathsep.join(map(str, table_jars()))
    settings = json.dumps(TABLES if tables else {})
    try:
        subprocess.run(
            [sys.executable, "-c", _SESSION, f"{_SMALL} {writing_classes(file)}", str(folder), settings],
            env={**environment, "PYSPARK_PYTHON": sys.executable},
            capture_output=True,
            timeout=_WRITE_S,
            check=True,
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _pyspark_jars() -> list[Path]:
    return [*(pyspark_folder() / "jars").glob("*.jar")]


if __name__ == "__main__":
    sys.stdout.write(f"{spark_jvm()}\n{spark_jvm(tables=True)}\n")
