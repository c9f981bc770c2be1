"""Spark as processes of its own: a Connect server, and a standalone cluster, from the pyspark that is installed.

    with ConnectServer(folder) as server:
        run_job(program, {"conf": {"spark.remote": server.url}})

Python workers can be given an interpreter that has every library and not this project, so that what they know of it was
shipped to them.
"""

import importlib.util
import json
import os
import socket
import subprocess
import sys
import sysconfig
import time
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from harness.processes import Process, free_port, start_tied, stop_process, tail

__all__ = ["CHECKOUT", "ConnectServer", "StandaloneCluster", "bare_python", "run_job", "shipped_packages", "small"]

CHECKOUT = Path(__file__).resolve().parent.parent
_HOST = "127.0.0.1"
_READY_S = 90.0
_JOB_S = 280.0
_POLL_S = 0.05
_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


class _Server:
    """One process of `spark-class`, ready when its port answers."""

    def __init__(self, folder: Path, name: str, port: int, arguments: Sequence[str], env: Mapping[str, str]) -> None:
        self.log_file = folder / f"{name}.log"
        self._port = port
        self._command = ["env", *(f"{key}={value}" for key, value in env.items()), *_spark_class(), *arguments]
        self._process: Process | None = None

    def start(self) -> None:
        """Start it, and wait until it answers.

        Raises:
            RuntimeError: it ends, or does not answer in time; the message holds the end of its log.
        """
        self._process = start_tied(self._command, log=self.log_file)
        deadline = time.monotonic() + _READY_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise RuntimeError(f"Spark did not start:\n{tail(self.log_file)}")
            time.sleep(_POLL_S)

    def stop(self) -> None:
        """End it."""
        if self._process:
            stop_process(self._process, grace_s=10)

    def _answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex((_HOST, self._port)) == 0


class _Servers:
    """Some of them, started in order and ended in the opposite one."""

    def __init__(self, servers: Sequence[_Server]) -> None:
        self._servers = servers

    def __enter__(self) -> Self:
        try:
            for server in self._servers:
                server.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """End all."""
        for server in reversed(self._servers):
            server.stop()


class ConnectServer(_Servers):
    """A server of Spark Connect with its Spark in the same process, local[2] unless `master` says otherwise."""

    def __init__(
        self, folder: Path, *, python: Path, env: Mapping[str, str], master: str = "local[2]", **conf: str
    ) -> None:
        port = free_port()
        self.url = f"sc://{_HOST}:{port}"
        settings = {**small(folder), **conf, "spark.connect.grpc.binding.port": str(port)}
        settings["spark.connect.grpc.binding.address"] = _HOST
        flags = [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
        entry = ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
        submit = ["org.apache.spark.deploy.SparkSubmit", "--master", master, *flags, *entry]
        super().__init__([_Server(folder, "connect", port, submit, {**env, "PYSPARK_PYTHON": str(python)})])


class StandaloneCluster(_Servers):
    """A master and two workers of one core each."""

    def __init__(self, folder: Path, *, env: Mapping[str, str]) -> None:
        port = free_port()
        self.url = f"spark://{_HOST}:{port}"
        work = folder / "work"
        master = ["org.apache.spark.deploy.master.Master", "--host", _HOST, "--port", str(port), "--webui-port", "0"]
        servers = [_Server(folder, "master", port, master, env)]
        for number in range(2):
            own = free_port()
            flags = ["--host", _HOST, "--port", str(own), "--webui-port", "0", "--cores", "1", "--memory", "1g"]
            worker = ["org.apache.spark.deploy.worker.Worker", *flags, "--work-dir", str(work), self.url]
            servers.append(_Server(folder, f"worker-{number}", own, worker, env))
        super().__init__(servers)


def small(folder: Path) -> dict[str, str]:
    """Settings of a Spark that is for tests."""
    return {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": _JVM,
        "spark.executor.extraJavaOptions": _JVM,
        "spark.driver.host": _HOST,
        "spark.driver.bindAddress": _HOST,
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.local.dir": str(folder / "local"),
    }


def run_job(program: Path, options: Mapping[str, Any]) -> Any:
    """Run a Spark job as a process that has the checkout, and return what it prints last, read as JSON.

    Raises:
        RuntimeError: it fails; the message holds the end of what it wrote.
    """
    env = {**_environment(), "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, str(program), json.dumps({"packages": str(CHECKOUT), **options})]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_JOB_S, check=False, env=env)
    if done.returncode:
        raise RuntimeError(f"the job failed:\n{done.stderr[-6000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def bare_python(folder: Path) -> Path:
    """An interpreter with all libraries that are installed here, but not with this project."""
    script = folder / "bare-python"
    libraries = sysconfig.get_paths()["purelib"]
    path = f"${{PYTHONPATH:+$PYTHONPATH:}}{libraries}"
    script.write_text(f'#!/bin/sh\nPYTHONPATH="{path}" exec {sys.executable} -S "$@"\n')
    script.chmod(0o755)
    return script


def shipped_packages(folder: Path) -> Path:
    """The two packages that executors need, as a zip."""
    archive = folder / "strata.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as made:
        for package in ("serdes", "spark_udfs"):
            for source in sorted((CHECKOUT / package).rglob("*.py")):
                made.write(source, source.relative_to(CHECKOUT))
    return archive


def _environment() -> dict[str, str]:
    """That of this process, without what would lead a worker to the checkout."""
    return {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYSPARK_PYTHON")}


def _spark_class() -> list[str]:
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        raise RuntimeError("pyspark is not installed")
    home = Path(found.origin).parent
    return [f"SPARK_HOME={home}", str(home / "bin" / "spark-class")]
