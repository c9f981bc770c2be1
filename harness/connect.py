"""Kafka Connect and MirrorMaker 2, the real ones from Kafka's jars, each in a process of its own, on loopback.

with ConnectWorker(broker.bootstrap, [debezium_jars(), converter_jars()]) as worker:
    worker.create("orders", {"connector.class": …})
"""

import os
import shlex
import shutil
import tempfile
import time
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import urllib3

from harness.connect_jars import connect_jars
from harness.processes import Process, free_port, start_tied, stop_process, tail
from harness.waiting import until

__all__ = ["SMALL_MIRROR", "ConnectWorker", "MirrorMaker", "connect_programs", "plugin_path"]

_HOST = "127.0.0.1"
_JVM = (
    "-Xmx384m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Xshare:auto",
    "-Djava.awt.headless=true",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
)
SMALL_MIRROR = {
    "replication.factor": "1",
    "offset-syncs.topic.replication.factor": "1",
    "checkpoints.topic.replication.factor": "1",
    "heartbeats.topic.replication.factor": "1",
    "config.storage.replication.factor": "1",
    "offset.storage.replication.factor": "1",
    "status.storage.replication.factor": "1",
    "refresh.topics.interval.seconds": "1",
    "offset.flush.interval.ms": "1000",
    "plugin.discovery": "service_load",
    # Tasks of a worker that was late with a heartbeat would otherwise wait five minutes.
    "scheduled.rebalance.max.delay.ms": "0",
}
"""Settings of a MirrorMaker for clusters of one broker, which starts soon and soon sees new topics."""
_CONVERTER = "org.apache.kafka.connect.storage.Converter"
_CONVERTERS = {
    "kafka-connect-avro-converter": "io.confluent.connect.avro.AvroConverter",
    "kafka-connect-protobuf-converter": "io.confluent.connect.protobuf.ProtobufConverter",
}


_STANDALONE = "org.apache.kafka.connect.cli.ConnectStandalone"
_MIRROR_MAKER = "org.apache.kafka.connect.mirror.MirrorMaker"


def _java(main_class: str) -> list[str]:
    return ["java", *_JVM, "-cp", os.pathsep.join(map(str, connect_jars())), main_class]


class _Program:
    """A Java program with a file of properties."""

    main_class: str

    def __init__(self, properties: Mapping[str, str]) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="strata-connect-"))
        self.properties = dict(properties)
        self.log_file = self.folder / "program.log"
        self._process: Process | None = None

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start the program, or start it again."""
        file = self.folder / "program.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in self.properties.items()))
        self._process = start_tied([*_java(self.main_class), str(file)], log=self.log_file)

    def check(self) -> None:
        """Raise a RuntimeError with the end of the program's log if it has ended."""
        if self._process is not None and self._process.poll() is not None:
            raise RuntimeError(f"{self.main_class} ended:\n{tail(self.log_file)}")

    def kill(self) -> None:
        """Kill the program (SIGKILL)."""
        if self._process is not None:
            stop_process(self._process)

    def stop(self) -> None:
        """Stop the program, and remove its files."""
        if self._process is not None:
            stop_process(self._process, grace_s=20)
        shutil.rmtree(self.folder, ignore_errors=True)


class MirrorMaker(_Program):
    """A MirrorMaker 2 in dedicated mode."""

    main_class = _MIRROR_MAKER


class ConnectWorker(_Program):
    """A standalone worker.

    Args:
        bootstrap: the brokers.
        plugins: the jars of each plugin.
        properties: more properties of the worker.
    """

    main_class = _STANDALONE

    def __init__(
        self, bootstrap: str, plugins: Sequence[Sequence[Path]] = (), properties: Mapping[str, str] | None = None
    ) -> None:
        self.url = f"http://{_HOST}:{free_port()}"
        super().__init__(properties or {})
        path = plugin_path(self.folder, plugins)
        self.properties = {
            "bootstrap.servers": bootstrap,
            "listeners": self.url,
            "plugin.path": str(path),
            "plugin.discovery": "service_load",
            "offset.storage.file.filename": str(self.folder / "offsets"),
            "offset.flush.interval.ms": "200",
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.storage.StringConverter",
            **self.properties,
        }
        self._pool = urllib3.PoolManager(retries=False)

    def start(self) -> None:
        """Start the worker, and wait until it responds."""
        super().start()
        until(self._responds, urllib3.exceptions.HTTPError)

    def create(self, name: str, config: Mapping[str, str]) -> None:
        """Create or change a connector, and wait until its task runs.

        Raises:
            RuntimeError: the worker refuses it, or it fails; the message says why.
        """
        response = self._pool.request("PUT", f"{self.url}/connectors/{name}/config", json={"name": name, **config})
        if response.status >= 300:
            raise RuntimeError(f"{response.status}: {response.data.decode()}")
        until(lambda: self.states(name) == ["RUNNING", "RUNNING"])

    def states(self, name: str) -> list[str]:
        """Return the states of a connector and of its tasks.

        Raises:
            RuntimeError: one has failed; the message says why.
        """
        status: dict[str, Any] = self._pool.request("GET", f"{self.url}/connectors/{name}/status").json()
        if "connector" not in status:
            return []
        parts = [status["connector"], *status["tasks"]]
        for part in parts:
            if part["state"] == "FAILED":
                raise RuntimeError(part["trace"])
        return [part["state"] for part in parts]

    def failure(self, name: str) -> str:
        """Wait until a connector fails, and return its stack trace."""
        deadline = time.monotonic() + 90
        while time.monotonic() < deadline:
            try:
                self.states(name)
            except RuntimeError as error:
                return str(error)
            time.sleep(0.05)
        raise AssertionError("the connector did not fail")

    def restart(self, name: str) -> None:
        """Restart a connector that has failed, with its tasks."""
        self._pool.request("POST", f"{self.url}/connectors/{name}/restart?includeTasks=true&onlyFailed=true")

    def delete(self, name: str) -> None:
        """Delete a connector; its offsets stay."""
        self._pool.request("DELETE", f"{self.url}/connectors/{name}")

    def _responds(self) -> bool:
        self.check()
        return bool(self._pool.request("GET", f"{self.url}/connectors", timeout=5).status == 200)


def connect_programs(folder: Path) -> Path:
    """Make a folder with Kafka's programs for Connect, as scripts, and return it; `SMALL_MIRROR` holds for them too."""
    folder.mkdir()
    small = folder / "small.properties"
    small.write_text("".join(f"{key}={value}\n" for key, value in SMALL_MIRROR.items()))
    for name, main_class, prepare in (
        ("connect-standalone.sh", _STANDALONE, ""),
        ("connect-mirror-maker.sh", _MIRROR_MAKER, f'cat "{small}" >> "$1"\n'),
    ):
        script = folder / name
        script.write_text(f'#!/bin/sh\n{prepare}exec {shlex.join(_java(main_class))} "$@"\n')
        script.chmod(0o755)
    return folder


def plugin_path(folder: Path, plugins: Sequence[Sequence[Path]]) -> Path:
    """Make a folder with a folder of links for each plugin, and return it.

    Confluent's converters have no manifests, which `connect-plugin-path sync-manifests` adds. With manifests a worker
    starts in a quarter of the time.
    """
    path = folder / "plugins"
    for number, jars in enumerate(plugins):
        plugin = path / f"plugin-{number}"
        plugin.mkdir(parents=True)
        for jar in jars:
            (plugin / jar.name).symlink_to(jar)
        if found := [name for jar in jars for prefix, name in _CONVERTERS.items() if jar.name.startswith(prefix)]:
            with zipfile.ZipFile(plugin / "manifests.jar", "w") as manifests:
                manifests.writestr(f"META-INF/services/{_CONVERTER}", "\n".join(found))
    path.mkdir(exist_ok=True)
    return path
