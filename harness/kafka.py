"""A real Kafka cluster in KRaft mode, from jars, on loopback.

    with KafkaBroker() as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap})

Every node is both broker and controller. The settings keep a node small (about 170 MiB) and quick to restart: the
controller rejects a node's id until its old session has ended, so the session is short.

The JVM reads its classes from an archive (`class_archive.py`): a start takes 1.7 s of CPU time instead of 3.3 s.
`python -m harness.kafka` writes the archive ahead of time. A JVM formats the first node of all; what it wrote is kept
beside the jars and serves every later node, which saves a second.
"""

import hashlib
import os
import secrets
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from harness.class_archive import shared_classes, writing_classes
from harness.jars import cache_folder, kafka_jars
from harness.processes import free_port, start_tied, stop_process, tail

__all__ = ["KafkaBroker"]

_HOST = "127.0.0.1"
_QUICK = ("-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
# A test has a few clients, and each thread that listens wakes three times a second.
_FEW_THREADS = {"num.network.threads": "1", "num.io.threads": "2"}
_LASTING = ("-Xms1g", "-Xmx1g", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20")
_JVM = (
    "-Xshare:auto",
    "-Djava.awt.headless=true",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
)
_READY_S = 180.0
_ARCHIVED_S = 120.0
_POLL_S = 0.05
_PAUSE_S = 60.0
_BATCH_BEFORE_SIZE = 12  # the base offset, and the size of what follows
# Of a batch's head: its size, and its newest timestamp.
_BATCH_HEAD = struct.Struct(">8x i 23x q")


@dataclass(slots=True)
class _Node:
    node_id: int
    port: int
    controller_port: int
    folder: Path
    listeners: Mapping[str, int] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> Path:
        return self.folder / "broker.log"

    @property
    def settings(self) -> Path:
        return self.folder / "server.properties"

    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None


class KafkaBroker:
    """A cluster of `nodes` brokers; `config` adds to or overrides the brokers' settings, `formatting` the storage's.

    Nodes are numbered from 0. `kill`, `restart`, `pause` and `resume` act on one node; data and port survive a restart.

    `proxied` adds listeners by name, with one port for each broker. A client that connects through such a listener
    finds the brokers at these ports, where a proxy must forward to `listener_port`. `secured` adds listeners by name,
    with their protocols, such as SASL_SSL; `config` holds what these need.

    A broker that is `lasting` runs with the JVM's settings of a broker in production: it starts more slowly, and is
    faster and more even once it is warm.
    """

    def __init__(
        self,
        nodes: int = 1,
        *,
        config: Mapping[str, str] | None = None,
        proxied: Mapping[str, Sequence[int]] | None = None,
        secured: Mapping[str, str] | None = None,
        formatting: Sequence[str] = (),
        lasting: bool = False,
    ) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="strata-kafka-"))
        self._config = {**({} if lasting else _FEW_THREADS), **(config or {})}
        self._jvm = (*(_LASTING if lasting else _QUICK), *_JVM)
        self._proxied = {name: list(ports) for name, ports in (proxied or {}).items()}
        self._secured, self._formatting = dict(secured or {}), list(formatting)
        self._nodes = [
            _Node(
                i + 1,
                free_port(),
                free_port(),
                self._folder / f"node-{i + 1}",
                {name: free_port() for name in (*self._proxied, *self._secured)},
            )
            for i in range(nodes)
        ]
        self._class_path = ""
        self._archived, self._archiving = not lasting, list[str]()

    @property
    def bootstrap(self) -> str:
        """The `bootstrap.servers` of the cluster."""
        return ",".join(f"{_HOST}:{node.port}" for node in self._nodes)

    def listener_port(self, name: str, i: int) -> int:
        """Return the port at which a node listens for the clients of a proxied listener."""
        return self._nodes[i].listeners[name]

    def bootstrap_by(self, name: str) -> str:
        """Return the `bootstrap.servers` of the cluster through a proxied or secured listener."""
        ports = self._proxied.get(name) or [node.listeners[name] for node in self._nodes]
        return ",".join(f"{_HOST}:{port}" for port in ports)

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
        """Format and start every node, and wait until the whole cluster responds.

        Raises:
            RuntimeError: a node could not be formatted or started; the message contains the end of its log.
        """
        self._class_path = os.pathsep.join(map(str, kafka_jars()))
        if self._archived:
            self._jvm = (*self._jvm, *_shared_classes())
        cluster_id = _new_id()
        for node in self._nodes:
            node.folder.mkdir()
            node.settings.write_text("".join(f"{key}={value}\n" for key, value in self._settings(node).items()))
            self._format(node, cluster_id)
            self._launch(node)
        self._wait(self._nodes)

    def kill(self, i: int = 0) -> None:
        """Kill a node (SIGKILL)."""
        process = self._nodes[i].process
        if process is not None:
            stop_process(process)

    def lose_last(self, seconds: float, i: int = 0) -> int:
        """Cut from a killed node's topics what they got in the last seconds, as a crash of its machine can.

        The log of the controllers stays: Kafka writes it to disk before it answers.

        Returns:
            How many bytes were cut.
        """
        since_ms, lost = (time.time() - seconds) * 1000, 0
        for segment in sorted((self._nodes[i].folder / "data").glob("*/*.log")):
            if not segment.parent.name.startswith("__cluster_metadata"):
                kept, size = _length_before(segment.read_bytes(), since_ms), segment.stat().st_size
                os.truncate(segment, kept)
                lost += size - kept
        return lost

    def restart(self, i: int = 0) -> None:
        """Start a node again with the same data and port, after killing it if it is running."""
        self.kill(i)
        self._launch(self._nodes[i])
        self._wait([self._nodes[i]])

    def pause(self, i: int = 0) -> None:
        """Pause a node's process (SIGSTOP): its connections stay open and silent.

        Return when all of its threads stand still; the signal alone does not wait for those that run on another core.
        """
        process = self._signal(i, signal.SIGSTOP)
        deadline = time.monotonic() + _PAUSE_S
        while not all(state == "T" for state in _thread_states(process.pid)):
            if time.monotonic() > deadline:
                raise RuntimeError(f"Node {i} did not pause within {_PAUSE_S} s")
            time.sleep(0.001)

    def resume(self, i: int = 0) -> None:
        """Resume a paused node (SIGCONT)."""
        self._signal(i, signal.SIGCONT)

    def stop(self) -> None:
        """Stop all nodes and remove their data; a second call does nothing."""
        for node in self._nodes:
            if node.process is not None:
                stop_process(node.process)
        shutil.rmtree(self._folder, ignore_errors=True)

    def write_class_archive(self, path: Path) -> None:
        """Start and stop a cluster that writes the classes that a node loads to a file."""
        self._archived, self._archiving = False, [writing_classes(path)]
        with self:
            for node in self._nodes:
                assert node.process is not None
                stop_process(node.process, grace_s=_ARCHIVED_S)

    def _signal(self, i: int, number: signal.Signals) -> subprocess.Popen[bytes]:
        process = self._nodes[i].process
        if process is None or process.poll() is not None:
            raise RuntimeError(f"Node {i} is not running")
        process.send_signal(number)
        return process

    def _format(self, node: _Node, cluster_id: str) -> None:
        """Write the files of `kafka-storage format`: the ids of the folder, and the first records of the metadata."""
        checkpoint = node.folder / "data" / "bootstrap.checkpoint"
        parts = [self._class_path, *self._formatting]  # the records hold the versions of features, and the users
        kept = cache_folder() / f"kafka-{hashlib.sha256(os.linesep.join(parts).encode()).hexdigest()[:12]}.checkpoint"
        if kept.exists():
            checkpoint.parent.mkdir()
            shutil.copyfile(kept, checkpoint)
            ids = {"version": 1, "cluster.id": cluster_id, "node.id": node.node_id, "directory.id": _new_id()}
            checkpoint.with_name("meta.properties").write_text("".join(f"{key}={ids[key]}\n" for key in ids))
            return
        # One id in 64 begins with a dash: as a separate argument it would be parsed as an option.
        options = ["format", f"--cluster-id={cluster_id}", "--config", str(node.settings), *self._formatting]
        if start_tied(self._java("kafka.tools.StorageTool", *options), log=node.log).wait(_READY_S) != 0:
            raise RuntimeError(f"Kafka's storage could not be formatted:\n{tail(node.log)}")
        copied = kept.with_suffix(f".{os.getpid()}")
        shutil.copyfile(checkpoint, copied)
        copied.rename(kept)

    def _launch(self, node: _Node) -> None:
        node.process = start_tied(self._java("kafka.Kafka", str(node.settings), options=self._archiving), log=node.log)

    def _java(self, main_class: str, *arguments: str, options: Sequence[str] = ()) -> list[str]:
        return ["java", *self._jvm, *options, "-cp", self._class_path, main_class, *arguments]

    def _settings(self, node: _Node) -> dict[str, str]:
        size = len(self._nodes)
        replicas, in_sync = str(min(3, size)), str(min(2, size))
        index = self._nodes.index(node)
        listeners = [f"PLAINTEXT://{_HOST}:{node.port}", f"CONTROLLER://{_HOST}:{node.controller_port}"]
        listeners += [f"{name}://{_HOST}:{port}" for name, port in node.listeners.items()]
        advertised = [f"PLAINTEXT://{_HOST}:{node.port}"]
        advertised += [f"{name}://{_HOST}:{ports[index]}" for name, ports in self._proxied.items()]
        advertised += [f"{name}://{_HOST}:{node.listeners[name]}" for name in self._secured]
        protocols = dict.fromkeys(["PLAINTEXT", "CONTROLLER", *self._proxied], "PLAINTEXT") | self._secured
        return {
            "process.roles": "broker,controller",
            "node.id": str(node.node_id),
            "controller.quorum.voters": ",".join(f"{n.node_id}@{_HOST}:{n.controller_port}" for n in self._nodes),
            "listeners": ",".join(listeners),
            "advertised.listeners": ",".join(advertised),
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in protocols.items()),
            "log.dirs": str(node.folder / "data"),
            "broker.session.timeout.ms": "3000",
            "broker.heartbeat.interval.ms": "500",
            "default.replication.factor": replicas,
            "offsets.topic.replication.factor": replicas,
            "offsets.topic.num.partitions": "4",
            "transaction.state.log.replication.factor": replicas,
            "transaction.state.log.min.isr": in_sync,
            "transaction.state.log.num.partitions": "4",
            "group.initial.rebalance.delay.ms": "0",
            "log.cleaner.dedupe.buffer.size": "8388608",
            # With this, a topic's own settings determine how soon it is compacted.
            "log.cleaner.backoff.ms": "500",
            # A controller without work writes no record, by default two each second.
            "metadata.max.idle.interval.ms": "0",
            **self._config,
        }

    def _wait(self, nodes: list[_Node]) -> None:
        deadline = time.monotonic() + _READY_S
        for node in nodes:
            _until(partial(_listens, node.port), node, deadline)
        wanted = {node.node_id for node in self._nodes if node.alive()}
        for node in nodes:
            # This reference keeps the client alive until its futures are done.
            admin = AdminClient({"bootstrap.servers": f"{_HOST}:{node.port}", "log_level": 0})
            _until(partial(_sees, admin, wanted), node, deadline)


def _new_id() -> str:
    return urlsafe_b64encode(secrets.token_bytes(16)).decode().rstrip("=")


def _shared_classes() -> list[str]:
    return shared_classes("kafka", kafka_jars(), lambda file: KafkaBroker().write_class_archive(file))


def _until(ready: Callable[[], bool], node: _Node, deadline: float) -> None:
    while not ready():
        if not node.alive():
            raise RuntimeError(f"Kafka node {node.node_id} ended while starting:\n{tail(node.log)}")
        if time.monotonic() > deadline:
            raise RuntimeError(f"Kafka node {node.node_id} was not ready in {_READY_S:.0f} s:\n{tail(node.log)}")
        time.sleep(_POLL_S)


def _length_before(segment: bytes, since_ms: float) -> int:
    """Return where the first batch of records begins whose newest timestamp is at or after a time."""
    at = 0
    while at + _BATCH_HEAD.size <= len(segment):
        size, newest_ms = _BATCH_HEAD.unpack_from(segment, at)
        if newest_ms >= since_ms or size <= 0:
            break
        at += _BATCH_BEFORE_SIZE + size
    return min(at, len(segment))


def _thread_states(pid: int) -> Iterator[str]:
    """Yield the state of each thread of a process, such as R or T, as /proc has it."""
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError):  # the thread has ended
            yield (thread / "stat").read_text().rpartition(")")[2].split()[0]


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((_HOST, port)) == 0


def _sees(admin: AdminClient, wanted: set[int]) -> bool:
    try:
        return wanted <= set(admin.list_topics(timeout=5).brokers)
    except KafkaException:
        return False


if __name__ == "__main__":
    _shared_classes()
