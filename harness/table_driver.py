"""The driver of a job that follows a topic into tables of Delta and Iceberg (`tests/spark/jobs/follow_job.py`)."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness import spark_jar
from harness.jars import delta_jars, iceberg_jars

__all__ = ["Driver", "conf"]

ROOT = Path(__file__).parents[1]
JOB = ROOT / "tests" / "spark" / "jobs" / "follow_job.py"


def conf(folder: Path, jars: Sequence[Path]) -> dict[str, str]:
    """Return the settings of a small session with both table formats."""
    return {
        "spark.master": "local[2]",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.session.timeZone": "UTC",
        "spark.local.dir": str(folder),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension"
        ",org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": str(folder / "lake"),
        "spark.jars": ",".join(map(str, [*jars, *delta_jars(), *iceberg_jars()])),
    }


class Driver:
    """A driver that answers steps; see `follow_job.py`."""

    def __init__(self, folder: Path, jars: Sequence[Path] = (), **options: Any) -> None:
        spark_jar.build()
        given = {"packages": str(ROOT), "conf": conf(folder, jars), **options}
        self._log = folder / "driver.log"
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, str(JOB), json.dumps(given)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=folder,  # Derby's files
            )

    def send(self, **step: Any) -> None:
        """Send a step."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(step) + "\n")
        self.process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        """Return the answer to a step."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("answer "):
                answer: dict[str, Any] = json.loads(line.removeprefix("answer "))
                return answer
        raise AssertionError(self._log.read_text()[-3000:])

    def ask(self, **step: Any) -> dict[str, Any]:
        """Send a step and return its answer."""
        self.send(**step)
        return self.answer()

    def kill(self) -> None:
        """Kill the driver and its JVM, which are a group of their own."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait(30)
        for stream in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(BrokenPipeError):
                stream.close()  # type: ignore[union-attr]
