"""Faults of the logs: brokers, the PostgreSQL server, the SQLite file; and compaction, which must do no harm.

Each fault is a context manager as in `node_faults.py`.
"""

import os
import random
import resource
import signal
import sqlite3
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

import psycopg
from confluent_kafka import Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
)

from faults.archive import database, dsn
from faults.model import LEVELS, Request
from faults.node_faults import restart, start
from faults.scene import Scene
from faults.wal import tear
from harness.kafka import KafkaBroker
from harness.processes import state_of
from strata.storage.record_json import encode
from strata.storage.records import ConfigKey, ConfigValue, Subject

__all__ = [
    "all_brokers",
    "broker",
    "broker_without_last_second",
    "compact",
    "compact_topic",
    "crash_postgres",
    "fill_disk",
    "lock_file",
    "lock_table",
    "read_only",
    "take_connections",
    "tear_wal",
    "write_without_pen",
]

_BROKERS = 3
_LOCK_FILE_S = 5.0
_COMPACT_S = 30.0
_AWAY_S = 0.8
_ADMIN_S = 10.0
_WRITABLE, _READ_ONLY = 0o644, 0o444
# Records are kept long enough to be archived; new segments begin soon, since only closed ones are compacted.
_COMPACT_NOW = {"segment.ms": "200", "min.cleanable.dirty.ratio": "0.001", "min.compaction.lag.ms": "1500"}
_FOREIGN_PAUSE_S = 0.25
_GROWTH_ONLY, _FEW_PAGES = 0.3, 8192
_STILL, _STOPPED_S = ("T", "Z", ""), 5.0  # stopped, ended, gone


# --- Kafka


@contextmanager
def broker(scene: Scene, rng: random.Random, *, paused: bool) -> Iterator[str]:
    """Kill (SIGKILL) or pause (SIGSTOP) a broker."""
    cluster = scene.services.own_broker
    free = (i for i in rng.sample(range(3), 3) if scene.service_locks[i].acquire(blocking=False))
    number = next(free, None) if cluster is not None else None
    if cluster is None or number is None:
        yield ""
        return
    (cluster.pause if paused else cluster.kill)(number)
    try:
        yield f"broker {number}"
    finally:
        (cluster.resume if paused else cluster.restart)(number)
        scene.service_locks[number].release()


@contextmanager
def all_brokers(scene: Scene, _rng: random.Random) -> Iterator[str]:
    """Kill (SIGKILL) all brokers at once."""
    with _claimed_brokers(scene) as cluster:
        if cluster is None:
            yield ""
            return
        for number in range(_BROKERS):
            cluster.kill(number)
        try:
            yield "all brokers"
        finally:
            with ThreadPoolExecutor(_BROKERS) as pool:
                list(pool.map(cluster.restart, range(_BROKERS)))


@contextmanager
def broker_without_last_second(scene: Scene, rng: random.Random) -> Iterator[str]:
    """Kill a broker, which loses what its topics got in the last second, while the others run.

    They have what was acknowledged: two brokers must have a record before it counts.
    """
    number = rng.randrange(_BROKERS)
    with _claimed_brokers(scene) as cluster:
        if cluster is None:
            yield ""
            return
        cluster.kill(number)
        lost = cluster.lose_last(1.0, number)
        try:
            yield f"broker {number}, {lost} bytes lost"
        finally:
            cluster.restart(number)


@contextmanager
def _claimed_brokers(scene: Scene) -> Iterator[KafkaBroker | None]:
    """Reserve all brokers; yield None if other faults hold one, or if the brokers are not the run's own."""
    with ExitStack() as held:
        for lock in scene.service_locks:
            if not lock.acquire(blocking=False):
                break
            held.callback(lock.release)
        else:
            yield scene.services.own_broker
            return
        yield None


@contextmanager
def compact_topic(scene: Scene, _rng: random.Random) -> Iterator[str]:
    """Make the brokers compact the topic continuously."""
    bootstrap, topic = scene.log_url.removeprefix("kafka://").split("/")
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in _COMPACT_NOW.items()
    ]
    changed = admin.incremental_alter_configs(
        [ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=entries)], request_timeout=_ADMIN_S
    )
    try:
        for future in changed.values():
            future.result()
    except Exception:  # noqa: BLE001 - the brokers are away because of another fault
        yield ""
        return
    # The settings stay until the end of the run: segments are compacted some time after they are full.
    yield "the topic"


@contextmanager
def write_without_pen(scene: Scene, rng: random.Random) -> Iterator[str]:
    """Write levels to the topic as another product does, without the pen."""
    bootstrap, topic = scene.log_url.removeprefix("kafka://").split("/")
    stop = threading.Event()
    writing = threading.Thread(target=_write_levels, args=(scene, bootstrap, topic, rng, stop))
    writing.start()
    try:
        yield "the topic"
    finally:
        stop.set()
        writing.join()


def _write_levels(scene: Scene, bootstrap: str, topic: str, rng: random.Random, stop: threading.Event) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 0, "log_level": 0})
    while not stop.is_set():
        subject, level = rng.choice(("s1", "s2")), rng.choice(LEVELS)
        record = encode(ConfigKey(Subject(subject)), ConfigValue({"compatibilityLevel": level}))
        begun = scene.recorder.now()
        producer.produce(topic, record.value, record.key, 0)
        producer.flush(_ADMIN_S)
        # It is unknown when nodes see the record: an open transaction may hide it for a while.
        scene.recorder.add("another product", -1, Request("force_level", subject, level=level), begun, None)
        stop.wait(rng.uniform(0, 2 * _FOREIGN_PAUSE_S))


# --- PostgreSQL


@contextmanager
def crash_postgres(scene: Scene, _rng: random.Random) -> Iterator[str]:
    """Crash the server, and let it recover."""
    server = scene.services.own_postgres
    if server is None or not scene.service_locks[0].acquire(blocking=False):
        yield ""
        return
    server.kill()
    try:
        yield "the server"
    finally:
        server.restart()
        scene.service_locks[0].release()


@contextmanager
def lock_table(scene: Scene, _rng: random.Random) -> Iterator[str]:
    """Block every node's connections until its pool is exhausted."""
    with suppress(psycopg.OperationalError), closing(psycopg.connect(dsn(scene.log_url))) as connection:
        connection.execute("LOCK TABLE strata_log IN ACCESS EXCLUSIVE MODE")
        yield "the table"
        return
    yield ""


@contextmanager
def take_connections(scene: Scene, _rng: random.Random) -> Iterator[str]:
    """Take every connection that the server has left."""
    with ExitStack() as taken:
        with suppress(psycopg.OperationalError):
            while True:
                taken.enter_context(closing(psycopg.connect(dsn(scene.log_url))))
        yield "the server's connections"


# --- SQL


@contextmanager
def compact(scene: Scene, rng: random.Random, *, paused: bool) -> Iterator[str]:
    """Run `strata compact`, optionally beside a node that was paused some time before."""
    with scene.claim(rng) as member:
        if member is None:
            yield ""
            return
        if paused:
            member.node.send(signal.SIGSTOP)
            threading.Event().wait(_AWAY_S)
        try:
            code = _compacted(scene)
            yield f"exit code {code}" + (f", node {member.number} paused" if paused else "")
        finally:
            if paused:
                member.node.send(signal.SIGCONT)


def _compacted(scene: Scene) -> int:
    output = scene.members[0].node.log_file.with_name(f"compact-{random.randrange(10**9)}.log")
    child = scene.services.start(["strata", "compact", scene.log_url], log=output)
    try:
        # A compaction that another compaction disturbs exits with 1, and drops nothing.
        return child.wait(_COMPACT_S)
    except subprocess.TimeoutExpired:
        child.kill()
        return -1


# --- SQLite


@contextmanager
def lock_file(scene: Scene, _rng: random.Random) -> Iterator[str]:
    """Hold the write lock of the file, as a backup or a stuck process does."""
    with closing(sqlite3.connect(_file(scene), timeout=_LOCK_FILE_S, isolation_level=None)) as connection:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            yield ""
            return
        yield "the file"
        connection.execute("ROLLBACK")


@contextmanager
def tear_wal(scene: Scene, rng: random.Random) -> Iterator[str]:
    """Kill all nodes while they work, and leave a torn write behind the last commit."""
    with scene.claim_all() as members:
        for member in members:
            member.node.kill()
        length = tear(_file(scene), rng)
        try:
            yield f"all nodes, {length} bytes torn"
        finally:
            start(members)


@contextmanager
def fill_disk(scene: Scene, rng: random.Random) -> Iterator[str]:
    """Prevent the nodes' files from growing, as on a full disk, or from being written beyond their first pages."""
    wal = _file(scene).with_name(f"{_file(scene).name}-wal")
    size = wal.stat().st_size if wal.exists() and rng.random() < _GROWTH_ONLY else _FEW_PAGES
    _limit_nodes(scene, size)
    try:
        yield f"all nodes, at {size} bytes"
    finally:
        _limit_nodes(scene, resource.RLIM_INFINITY)


def _limit_nodes(scene: Scene, size: int) -> None:
    """Limit the files of every process: a worker has the limit that its node had when it began to fork it."""
    for member in scene.members:
        with _standing_still(member.node.pid):
            for pid in (member.node.pid, *member.node.workers):
                _limit_files(pid, size)


@contextmanager
def _standing_still(pid: int) -> Iterator[None]:
    """Stop a process, after the fork that it has begun, if it has not been stopped before."""
    stops = state_of(pid) not in _STILL
    if stops:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
        ends = time.monotonic() + _STOPPED_S
        while state_of(pid) not in _STILL and time.monotonic() < ends:
            time.sleep(0.001)
    try:
        yield
    finally:
        if stops:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def _limit_files(pid: int, size: int) -> None:
    with suppress(ProcessLookupError):
        _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, hard))


@contextmanager
def read_only(scene: Scene, rng: random.Random) -> Iterator[str]:
    """Restart a node on a file that it cannot write to, and again when the file is writable."""
    with scene.claim(rng) as member:
        if member is None or not scene.service_locks[0].acquire(blocking=False):
            yield ""
            return
        member.node.kill()
        _file(scene).chmod(_READ_ONLY)
        try:
            with suppress(RuntimeError):
                member.node.restart()
            yield f"node {member.number}"
        finally:
            _file(scene).chmod(_WRITABLE)
            member.node.kill()
            restart(member)
            scene.service_locks[0].release()


def _file(scene: Scene) -> Path:
    return Path(database(scene.log_url))
