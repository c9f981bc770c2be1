"""The faults, one table: what each does, for how long, and on which logs.

A fault is a context manager that does harm on entry and heals on exit; what it yields says to whom. It may find its
target taken by another fault, and then does nothing.
"""

import random
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psycopg
from sqlalchemy.engine import make_url

from faults.scene import Member, Scene
from faults.wal import tear

__all__ = ["FAULTS", "Fault", "Planned", "plan"]

_EVERYWHERE = ("sqlite", "postgres", "kafka")
_TERMINATE_S = 20.0
_LOCK_FILE_S = 5.0
_RESTART_S = 45.0

Inject = Callable[[Scene, random.Random], AbstractContextManager[str]]


@dataclass(frozen=True, slots=True)
class Fault:
    """A kind of fault: `seconds` is how long it lasts, at least and at most; `weight` how often it is drawn.

    `needs_service`: it breaks the broker or the server itself, which must not be somebody else's.
    """

    inject: Inject
    seconds: tuple[float, float]
    weight: int
    logs: tuple[str, ...] = _EVERYWHERE
    needs_service: bool = False


@dataclass(frozen=True, slots=True)
class Planned:
    """A fault in a run's schedule: seconds after the clients begin, and how long it lasts."""

    kind: str
    at: float
    lasts: float
    seed: str


def plan(log: str, seed: int, *, work_s: float, own_service: bool) -> list[Planned]:
    """Draw a run's schedule: one to four faults, which may overlap."""
    rng = random.Random(f"{log} {seed} schedule")
    known = {k: f for k, f in FAULTS.items() if log in f.logs and (own_service or not f.needs_service)}
    kinds = rng.choices(list(known), [fault.weight for fault in known.values()], k=rng.choice((1, 1, 1, 2, 3, 4)))
    return sorted(
        (
            Planned(
                kind, rng.uniform(0.4, work_s * 0.75), rng.uniform(*known[kind].seconds), f"{log} {seed} {i} {kind}"
            )
            for i, kind in enumerate(kinds)
        ),
        key=lambda planned: planned.at,
    )


# --- nodes


@contextmanager
def _kill(scene: Scene, rng: random.Random, *, writer: bool) -> Iterator[str]:
    with scene.claim(rng, writer=writer) as member:
        if member is None:
            yield ""
            return
        member.node.kill()
        try:
            yield f"node {member.number}"
        finally:
            _restart(member)


@contextmanager
def _pause(scene: Scene, rng: random.Random, *, writer: bool) -> Iterator[str]:
    with scene.claim(rng, writer=writer) as member:
        if member is None:
            yield ""
            return
        member.node.send(signal.SIGSTOP)
        try:
            yield f"node {member.number}"
        finally:
            member.node.send(signal.SIGCONT)


@contextmanager
def _terminate(scene: Scene, rng: random.Random) -> Iterator[str]:
    with scene.claim(rng) as member:
        if member is None:
            yield ""
            return
        member.node.terminate(grace_s=_TERMINATE_S)
        try:
            yield f"node {member.number}"
        finally:
            _restart(member)


@contextmanager
def _kill_all(scene: Scene, _rng: random.Random) -> Iterator[str]:
    with scene.claim_all() as members:
        for member in members:
            member.node.kill()
        try:
            yield "all nodes"
        finally:
            _start(members)


@contextmanager
def _cut(scene: Scene, rng: random.Random, *, silently: bool) -> Iterator[str]:
    """Cut the path of the other nodes to the pen's holder; clients still reach it."""
    member = scene.holder() or rng.choice(scene.members)
    if silently:
        member.proxy.silence()
    else:
        member.proxy.refuse()
    try:
        yield f"path to node {member.number}"
    finally:
        member.proxy.restore()


def _start(members: list[Member]) -> None:
    with ThreadPoolExecutor(len(members)) as pool:
        list(pool.map(_restart, members))


def _restart(member: Member) -> None:
    """Start a node; one that finds its log away for the moment ends, and is started again, as a supervisor does."""
    deadline = time.monotonic() + _RESTART_S
    while True:
        try:
            member.node.restart()
        except RuntimeError:
            if time.monotonic() > deadline:
                raise
        else:
            return


# --- Kafka


@contextmanager
def _broker(scene: Scene, rng: random.Random, *, paused: bool) -> Iterator[str]:
    broker = scene.services.own_broker
    if broker is None or not scene.service_lock.acquire(blocking=False):
        yield ""
        return
    number = rng.randrange(3)
    (broker.pause if paused else broker.kill)(number)
    try:
        yield f"broker {number}"
    finally:
        (broker.resume if paused else broker.restart)(number)
        scene.service_lock.release()


# --- PostgreSQL


@contextmanager
def _crash_postgres(scene: Scene, _rng: random.Random) -> Iterator[str]:
    server = scene.services.own_postgres
    if server is None or not scene.service_lock.acquire(blocking=False):
        yield ""
        return
    server.kill()
    try:
        yield "the server"
    finally:
        server.restart()
        scene.service_lock.release()


@contextmanager
def _lock_table(scene: Scene, _rng: random.Random) -> Iterator[str]:
    """Keep every node's connections busy, until its pool has no more."""
    with suppress(psycopg.OperationalError), closing(psycopg.connect(_dsn(scene))) as connection:
        connection.execute("LOCK TABLE strata_log IN ACCESS EXCLUSIVE MODE")
        yield "the table"
        return
    yield ""


@contextmanager
def _take_connections(scene: Scene, _rng: random.Random) -> Iterator[str]:
    """Take every connection that the server has left."""
    with ExitStack() as taken:
        with suppress(psycopg.OperationalError):
            while True:
                taken.enter_context(closing(psycopg.connect(_dsn(scene))))
        yield "the server's connections"


def _dsn(scene: Scene) -> str:
    return make_url(scene.log_url).set(drivername="postgresql").render_as_string(hide_password=False)


# --- SQLite


@contextmanager
def _lock_file(scene: Scene, _rng: random.Random) -> Iterator[str]:
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
def _tear_wal(scene: Scene, rng: random.Random) -> Iterator[str]:
    """Kill all nodes in the middle of their work, and leave a torn write behind the last commit."""
    with scene.claim_all() as members:
        for member in members:
            member.node.kill()
        length = tear(_file(scene), rng)
        try:
            yield f"all nodes, {length} bytes torn"
        finally:
            _start(members)


def _file(scene: Scene) -> Path:
    return Path(make_url(scene.log_url).database or "")


FAULTS = {
    "kill -9 of a node": Fault(lambda s, r: _kill(s, r, writer=False), (0.1, 1.0), 4),
    "kill -9 of the pen's holder": Fault(lambda s, r: _kill(s, r, writer=True), (0.1, 2.0), 8, ("kafka",)),
    "kill -9 of all nodes": Fault(_kill_all, (0.0, 0.3), 2),
    "restart of a node": Fault(_terminate, (0.0, 0.5), 3),
    "pause of a node": Fault(lambda s, r: _pause(s, r, writer=False), (0.2, 2.5), 3),
    "pause of the pen's holder": Fault(lambda s, r: _pause(s, r, writer=True), (0.2, 4.0), 5, ("kafka",)),
    "pause beyond the transaction's time": Fault(lambda s, r: _pause(s, r, writer=True), (11.0, 13.0), 1, ("kafka",)),
    "path to the pen's holder refused": Fault(lambda s, r: _cut(s, r, silently=False), (0.5, 3.0), 3, ("kafka",)),
    "path to the pen's holder silent": Fault(lambda s, r: _cut(s, r, silently=True), (0.5, 3.0), 3, ("kafka",)),
    "kill -9 of a broker": Fault(
        lambda s, r: _broker(s, r, paused=False), (0.5, 3.0), 4, ("kafka",), needs_service=True
    ),
    "pause of a broker": Fault(lambda s, r: _broker(s, r, paused=True), (0.5, 5.0), 3, ("kafka",), needs_service=True),
    "crash of PostgreSQL": Fault(_crash_postgres, (0.0, 1.5), 6, ("postgres",), needs_service=True),
    "table locked": Fault(_lock_table, (0.5, 2.0), 3, ("postgres",)),
    "connections used up": Fault(_take_connections, (0.5, 2.0), 3, ("postgres",), needs_service=True),
    "write lock held": Fault(_lock_file, (0.5, 2.0), 3, ("sqlite",)),
    "torn write, all nodes killed": Fault(_tear_wal, (0.0, 0.3), 5, ("sqlite",)),
}
