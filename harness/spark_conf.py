"""A folder of settings for the Spark of a document: `SPARK_CONF_DIR`."""

from pathlib import Path

from harness import spark_jar
from harness.jars import offline_ivy_settings
from harness.spark_jvm import spark_jvm

__all__ = ["spark_conf"]

# Settings that keep a session small and on loopback, and its UI off fixed ports.
_DEFAULTS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.port": "0",
    "spark.ui.showConsoleProgress": "false",
}


def spark_conf(folder: Path, *, tables: bool = False) -> Path:
    """Write settings by which `spark.jars.packages` finds Spark's Kafka source in the cache; return the folder.

    Args:
        folder: an empty folder.
        tables: whether to find the packages of table formats too.
    """
    spark_jar.build()
    settings = folder / "spark-conf"
    settings.mkdir()
    computed = {
        "spark.driver.extraJavaOptions": spark_jvm(),
        "spark.jars.ivy": str(folder / "ivy"),
        "spark.jars.ivySettings": str(offline_ivy_settings(settings, tables=tables)),
    }
    lines = (f"{name} {value}\n" for name, value in (_DEFAULTS | computed).items())
    (settings / "spark-defaults.conf").write_text("".join(lines))
    return settings
