"""What the Spark measurements share: a session, and the CPU time of everything below this process."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import SparkSession

__all__ = ["cpu_seconds", "session"]


def session(folder: Path, jars: Sequence[Path]) -> SparkSession:
    """Return a session of two threads that keeps what it needs in a folder, with jars in it."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark: SparkSession = (
        SparkSession.builder.master("local[2]")
        .appName("strata-bench")
        .config("spark.jars", ",".join(map(str, jars)))
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "6g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    return spark


def cpu_seconds() -> float:
    """What all processes below this one have used so far: the JVM and its workers."""
    ticks, below = 0, {os.getpid()}
    stats = [_stat(file) for file in Path("/proc").glob("[0-9]*/stat")]
    for pid, parent, used in sorted(one for one in stats if one is not None):
        if parent in below:  # children have higher numbers than their parents, but for the rare turn-over
            below.add(pid)
            ticks += used
    return ticks / os.sysconf("SC_CLK_TCK")


def _stat(file: Path) -> tuple[int, int, int] | None:
    try:
        fields = file.read_text().rpartition(")")[2].split()
    except OSError:  # it has ended
        return None
    return int(file.parent.name), int(fields[1]), int(fields[11]) + int(fields[12])
