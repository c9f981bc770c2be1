"""Spark in its own processes, from the installed pyspark: Connect and Thrift servers, and jobs on a cluster.

    with ConnectServer(folder, python=bare_python(folder), env={}) as server:
        run_job(program, {"conf": {"spark.remote": server.url}})

Python workers can get an interpreter that has every library except this project, to show that its code was shipped to
them.
"""

import json
import os
import socket
import subprocess
import sys
import sysconfig
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from harness.jars import pyspark_folder
from harness.processes import Process, free_port, start_tied, stop_process, tail
from harness.spark_jvm import spark_jvm

__all__ = [
    "CHECKOUT",
    "GENERATED",
    "INTERPRETED",
    "ConnectServer",
    "ThriftServer",
    "bare_python",
    "run_job",
    "shipped_packages",
    "small",
    "spark_home",
]

CHECKOUT = Path(__file__).resolve().parent.parent
GENERATED = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}
"""The settings by which Spark generates code; its defaults."""
INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""The settings by which Spark generates no code, which takes a third of the time of small queries."""

_HOST = "127.0.0.1"
_READY_S = 240.0
_JOB_S = 560.0
_POLL_S = 0.05


class _Server:
    """A server of Spark's with its Spark, local[2], in the same process."""

    def __init__(
        self, folder: Path, port: int, entry: str, settings: Mapping[str, str], env: Mapping[str, str]
    ) -> None:
        self.log_file = folder / "server.log"
        self._port = port
        self._folder = folder
        conf = {**small(folder), **settings, "spark.master": "local[2]"}
        flags = [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
        own = {**env, "SPARK_HOME": str(pyspark_folder())}
        start = [
            "env",
            *(f"{key}={value}" for key, value in own.items()),
            str(pyspark_folder() / "bin" / "spark-submit"),
        ]
        self._command = [*start, *flags, "--class", entry, "spark-internal"]
        self._process: Process | None = None

    def __enter__(self) -> Self:
        """Start the server, and wait until it responds.

        Raises:
            RuntimeError: it exited, or did not respond in time; the message contains the end of its log.
        """
        self._process = start_tied(self._command, log=self.log_file)
        deadline = time.monotonic() + _READY_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                stop_process(self._process)
                raise RuntimeError(f"Spark's server did not start:\n{tail(self.log_file)}")
            time.sleep(_POLL_S)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process
        stop_process(self._process, grace_s=10)

    def _answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex((_HOST, self._port)) == 0


class ConnectServer(_Server):
    """A Spark Connect server."""

    def __init__(self, folder: Path, *, python: Path, env: Mapping[str, str]) -> None:
        port = free_port()
        self.url = f"sc://{_HOST}:{port}"
        settings = INTERPRETED | {
            "spark.connect.grpc.binding.address": _HOST,
            "spark.connect.grpc.binding.port": str(port),
        }
        entry = "org.apache.spark.sql.connect.service.SparkConnectServer"
        super().__init__(folder, port, entry, settings, {**env, "PYSPARK_PYTHON": str(python)})


class ThriftServer(_Server):
    """A Thrift server, which JDBC clients talk to; its catalog of tables is in memory."""

    def __init__(self, folder: Path, settings: dict[str, str]) -> None:
        port = free_port()
        self.url = f"jdbc:hive2://{_HOST}:{port}/default"
        own = {
            "spark.hadoop.javax.jdo.option.ConnectionURL": "jdbc:derby:memory:tables;create=true",
            "spark.hadoop.hive.server2.thrift.bind.host": _HOST,
            "spark.hadoop.hive.server2.thrift.port": str(port),
        }
        super().__init__(folder, port, "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2", own | settings, {})

    def run(self, *statements: str) -> list[str]:
        """Run statements in one session of Hive's JDBC driver, and return the lines that it shows.

        Raises:
            RuntimeError: a statement failed; the message contains what the client says.
        """
        script = self._folder / "statements.sql"
        script.write_text(";\n".join(statements) + ";\n")
        client = [str(pyspark_folder() / "bin" / "spark-class"), "org.apache.hive.beeline.BeeLine", "-u", self.url]
        options = ["--silent=true", "--outputformat=tsv2", "--showHeader=false", "-f", str(script)]
        env = {**os.environ, "SPARK_HOME": str(pyspark_folder())}
        done = subprocess.run(
            [*client, *options], cwd=self._folder, env=env, capture_output=True, text=True, timeout=_JOB_S, check=False
        )
        if done.returncode:
            raise RuntimeError(f"a statement failed:\n{done.stderr[-6000:]}")
        return done.stdout.splitlines()


def small(folder: Path) -> dict[str, str]:
    """Return the settings of a small Spark for tests."""
    return {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": spark_jvm(),
        "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.driver.host": _HOST,
        "spark.driver.bindAddress": _HOST,
        # or each call of a column's method would ask the JVM eight times, to say in which line of Python it was made
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.ui.explainMode": "simple",  # or each query would be described twice for the UI
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.local.dir": str(folder / "local"),
    }


def run_job(
    program: Path, options: Mapping[str, Any], env: Mapping[str, str] | None = None, python: Path | None = None
) -> Any:
    """Run a Spark job in its own process, and return its last line of output, parsed as JSON.

    Args:
        program: the job, which gets its options as a JSON object in its only argument.
        options: the options; `packages`, by default the checkout, is the first folder that the job imports from.
        env: environment variables to add.
        python: the interpreter, by default this one.

    Raises:
        RuntimeError: it failed; the message contains the end of its output.
    """
    # Executors would inherit the variables by which this process finds the checkout.
    inherited = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYSPARK_PYTHON")}
    options = {"packages": str(CHECKOUT), **options}
    command = [str(python or sys.executable), str(program), json.dumps(options)]
    environment = {**inherited, **(env or {})}
    # Python workers import from the working directory first.
    done = subprocess.run(
        command,
        cwd=options["packages"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=_JOB_S,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"the job failed:\n{done.stderr[-6000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def spark_home(folder: Path) -> Path:
    """Return a home of the installed Spark into which a local cluster may write."""
    home = folder / "spark-home"
    home.mkdir()
    for part in ("bin", "jars", "python", "sbin"):
        (home / part).symlink_to(pyspark_folder() / part)
    return home


def bare_python(folder: Path) -> Path:
    """Return an interpreter with all installed libraries, but without this project."""
    script = folder / "bare-python"
    libraries = sysconfig.get_paths()["purelib"]
    path = f"${{PYTHONPATH:+$PYTHONPATH:}}{libraries}"
    script.write_text(f'#!/bin/sh\nPYTHONPATH="{path}" exec {sys.executable} -S "$@"\n')
    script.chmod(0o755)
    return script


def shipped_packages(folder: Path) -> Path:
    """Return a zip of the package with the parts of it that executors need."""
    archive = folder / "strata.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as made:
        for part in (".", "compat", "http", "serdes", "spark_udfs"):
            folder = CHECKOUT / "strata" / part
            for source in sorted(folder.glob("*.py") if part == "." else folder.rglob("*.py")):
                made.write(source, source.relative_to(CHECKOUT))
    return archive
