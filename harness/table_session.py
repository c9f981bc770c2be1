"""A session with tables of Delta and Iceberg beside another one, in the same Spark."""

from pathlib import Path

from pyspark.sql import SparkSession

from harness.spark_jvm import TABLES

__all__ = ["activate", "table_session"]

_EXTENSIONS = "spark.sql.extensions"


def table_session(spark: SparkSession, folder: Path) -> SparkSession:
    """Return a session with catalogs of its own, in the Spark of a session whose JVM has the jars of the formats.

    Args:
        spark: the session.
        folder: the folder of the tables: those of Delta in `warehouse`, those of Iceberg in `lake`.
    """
    context = spark.sparkContext
    jvm, java_context = context._jvm, context._jsc.sc()
    assert jvm is not None
    # Spark reads extensions from the settings of the context when it makes a session; the other sessions have none.
    options = {**TABLES}
    java_context.conf().set(_EXTENSIONS, options.pop(_EXTENSIONS))
    try:
        folders = {
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
            "spark.sql.catalog.lake.warehouse": str(folder / "lake"),
        }
        session = SparkSession._get_j_spark_session_class(jvm)(java_context, options | folders)
    finally:
        java_context.conf().remove(_EXTENSIONS)
    return SparkSession(context, session)


def activate(spark: SparkSession) -> None:
    """Make a session the one that Spark uses in this thread."""
    assert spark._jvm is not None
    SparkSession._get_j_spark_session_class(spark._jvm).setActiveSession(spark._jsparkSession)
