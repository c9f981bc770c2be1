"""The driver of a job that follows a topic into tables of Delta and Iceberg (`tests/spark/jobs/follow_job.py`)."""

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
from harness.spark_files import LOCAL_FILES, class_path
from harness.spark_jvm import TABLES, spark_jvm, table_jars
from harness.spark_servers import INTERPRETED, small

__all__ = ["Driver", "conf", "environment"]

ROOT = Path(__file__).parents[1]
JOB = ROOT / "tests" / "spark" / "jobs" / "follow_job.py"


def conf(folder: Path, master: str = "local[2]") -> dict[str, str]:
    """Return the settings of a small session with both table formats, whose JVM needs `environment`."""
    return {
        **small(folder),
        **LOCAL_FILES,
        **INTERPRETED,
        **TABLES,
        "spark.master": master,
        "spark.driver.extraJavaOptions": spark_jvm(tables=True),
        "spark.local.dir": str(folder),
        "spark.sql.catalog.lake.warehouse": str(folder / "lake"),
    }


def environment(*jars: Path) -> dict[str, str]:
    """Return the environment of a session with both table formats, and more jars."""
    return {**os.environ, **class_path(*table_jars(), *jars)}


class Driver:
    """A driver that answers steps; see `follow_job.py`."""

    def __init__(self, folder: Path, jars: Sequence[Path] = (), *, master: str = "local[2]", **options: Any) -> None:
        spark_jar.build()
        options = {"packages": str(ROOT), "conf": conf(folder, master), **options}
        self._log = folder / "driver.log"
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, str(JOB), json.dumps(options)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=environment(*jars),
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

    def kill(self) -> None:
        """Kill the driver and its JVM, which are a group of their own."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait(30)
        for stream in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(BrokenPipeError):
                stream.close()  # type: ignore[union-attr]
