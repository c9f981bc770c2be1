"""The driver of a job that follows a topic into tables of Delta and Iceberg (`tests/spark/jobs/follow_job.py`).

A driver that is killed and started again many times costs mostly the loading of classes. With an archive of classes
(Java's AppCDS) a start takes a third of the time: the first driver writes it when it is closed, the others map it.
"""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness import spark_jar
from harness.jars import delta_jars, iceberg_jars
from harness.spark_jar import JAR
from harness.spark_jvm import spark_jvm
from harness.spark_servers import INTERPRETED

__all__ = ["Driver", "conf"]

ROOT = Path(__file__).parents[1]
JOB = ROOT / "tests" / "spark" / "jobs" / "follow_job.py"


def conf(folder: Path, jars: Sequence[Path], archive: Path | None, master: str) -> dict[str, str]:
    """Return the settings of a small session with both table formats."""
    classes = [*jars, *delta_jars(), *iceberg_jars()]
    places, java = {"spark.jars": ",".join(map(str, classes))}, [spark_jvm()]
    if archive is not None:  # only classes of the class path itself can be in an archive
        path = ":".join(map(str, [*classes, JAR]))
        places = {"spark.driver.extraClassPath": path, "spark.executor.extraClassPath": path}
        use = [f"-XX:SharedArchiveFile={archive}", "-Xshare:auto"]
        java = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xlog:cds=off"]
        java += use if archive.exists() else [f"-XX:ArchiveClassesAtExit={archive}"]
    return {
        **places,
        **INTERPRETED,
        "spark.master": master,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": " ".join(java),
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
    }


class Driver:
    """A driver that answers steps; see `follow_job.py`."""

    def __init__(
        self,
        folder: Path,
        jars: Sequence[Path] = (),
        *,
        archive: Path | None = None,
        master: str = "local[2]",
        **options: Any,
    ) -> None:
        spark_jar.build()
        given = {"packages": str(ROOT), "conf": conf(folder, jars, archive, master), **options}
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

    def kill_executors(self) -> int:
        """Kill the executors of a session with `local-cluster`, and return their number."""
        session = str(os.getsid(self.process.pid))
        shown = subprocess.run(
            ["ps", "-ww", "-s", session, "-o", "pid=,args="], capture_output=True, text=True, check=False
        )
        lines = [line.split(maxsplit=1) for line in shown.stdout.splitlines() if "CoarseGrainedExecutorBackend" in line]
        for number, _ in lines:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(number), signal.SIGKILL)
        return len(lines)

    def has_answered(self, seconds: float) -> bool:
        """Wait for an answer, and return whether it came."""
        assert self.process.stdout is not None
        return bool(select.select([self.process.stdout], [], [], seconds)[0])

    def close(self) -> None:
        """End the driver in good order, so that its JVM writes the archive of classes."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.read()  # ends when both processes have
        self.process.stdout.close()
        self.process.wait(30)

    def kill(self) -> None:
        """Kill the driver and its JVM, which are a group of their own."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait(30)
        for stream in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(BrokenPipeError):
                stream.close()  # type: ignore[union-attr]
