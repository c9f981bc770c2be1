"""Faults of nodes, of their clocks, and of the network paths between them and to their log.

Each fault is a context manager that injects on entry and heals on exit. It yields its target, or an empty string when
another fault holds the target.
"""

import os
import random
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

from faults.nursery import set_clock
from faults.proxy import Proxy
from faults.scene import Member, Scene

__all__ = [
    "cut",
    "cut_from_log",
    "kill",
    "kill_all",
    "kill_worker",
    "pause",
    "pause_worker",
    "restart",
    "shift_clock",
    "start",
    "terminate",
]

_TERMINATE_S = 60.0
_RESTART_S = 90.0
_SLOW_S = (0.02, 0.3)
_JUMPS_S = (-86_400.0 * 400, -3_600.0, -5.0, 5.0, 3_600.0, 86_400.0 * 400)


@contextmanager
def kill(scene: Scene, rng: random.Random, *, writer: bool) -> Iterator[str]:
    """Kill (SIGKILL) a node, or the one that writes, and start it again."""
    with scene.claim(rng, writer=writer) as member:
        if member is None:
            yield ""
            return
        member.node.kill()
        try:
            yield f"node {member.number}"
        finally:
            restart(member)


@contextmanager
def pause(scene: Scene, rng: random.Random, *, writer: bool) -> Iterator[str]:
    """Pause (SIGSTOP) a node, or the one that writes, and resume it."""
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
def kill_worker(scene: Scene, rng: random.Random) -> Iterator[str]:
    """Kill (SIGKILL) a worker of a node, which the node replaces."""
    with scene.claim(rng) as member:
        yield _to_a_worker(member, rng, signal.SIGKILL)[0]


@contextmanager
def pause_worker(scene: Scene, rng: random.Random) -> Iterator[str]:
    """Pause (SIGSTOP) a worker of a node, and resume it."""
    with scene.claim(rng) as member:
        target, worker = _to_a_worker(member, rng, signal.SIGSTOP)
        try:
            yield target
        finally:
            if target:
                with suppress(ProcessLookupError):
                    os.kill(worker, signal.SIGCONT)


def _to_a_worker(member: Member | None, rng: random.Random, number: signal.Signals) -> tuple[str, int]:
    """Send a signal to a worker, in half of the cases to the oldest, which is most likely the one that writes."""
    workers = member.node.workers if member else []
    if member is None or not workers:
        return "", 0
    worker = workers[0] if rng.random() < 0.5 else rng.choice(workers)
    with suppress(ProcessLookupError):
        os.kill(worker, number)
    return f"worker {workers.index(worker)} of node {member.number}", worker


@contextmanager
def terminate(scene: Scene, rng: random.Random) -> Iterator[str]:
    """Terminate (SIGTERM) a node, and start it again."""
    with scene.claim(rng) as member:
        if member is None:
            yield ""
            return
        member.node.terminate(grace_s=_TERMINATE_S)
        try:
            yield f"node {member.number}"
        finally:
            restart(member)


@contextmanager
def kill_all(scene: Scene, _rng: random.Random) -> Iterator[str]:
    """Kill (SIGKILL) all nodes at once, and start them again."""
    with scene.claim_all() as members:
        for member in members:
            member.node.kill()
        try:
            yield "all nodes"
        finally:
            start(members)


@contextmanager
def shift_clock(scene: Scene, rng: random.Random) -> Iterator[str]:
    """Make the wall clock of a node jump forward or back, and restore it."""
    member, jump = rng.choice(scene.members), rng.choice(_JUMPS_S)
    set_clock(member.node.log_file, jump)
    try:
        yield f"node {member.number} by {jump:+.0f} s"
    finally:
        set_clock(member.node.log_file, 0)


@contextmanager
def cut(scene: Scene, rng: random.Random, how: str) -> Iterator[str]:
    """Cut the path from the other nodes to the pen's holder; clients still reach it."""
    member = scene.holder() or rng.choice(scene.members)
    _HOW[how](member.proxy, rng)
    try:
        yield f"path to node {member.number}"
    finally:
        member.proxy.restore()


@contextmanager
def cut_from_log(scene: Scene, rng: random.Random, how: str) -> Iterator[str]:
    """Cut the path from a node to its log: to the server, or to one or all of the brokers.

    Args:
        scene: the running nodes.
        rng: selects the node and the brokers.
        how: a key of `_HOW`; with "then refused", the connections break before the path is restored.
    """
    holder = scene.holder() if rng.random() < 0.5 else None
    candidates = [holder] if holder else rng.sample(scene.members, len(scene.members))
    member = next((member for member in candidates if member.path_lock.acquire(blocking=False)), None)
    if member is None or not member.to_log:
        yield ""
        return
    one = rng.randrange(len(member.to_log)) if len(member.to_log) > 1 and rng.random() < 0.3 else None
    paths = member.to_log if one is None else [member.to_log[one]]
    for path in paths:
        _HOW[how](path, rng)
    try:
        yield f"node {member.number}" + ("" if one is None else f" to broker {one}")
    finally:
        for path in paths:
            if "then" in how:
                path.refuse()
            path.restore()
        member.path_lock.release()


def _slow(path: Proxy, rng: random.Random) -> None:
    path.slow(rng.uniform(*_SLOW_S))


_HOW = {
    "refused": lambda path, _rng: path.refuse(),
    "silent": lambda path, _rng: path.silence(),
    "requests lost": lambda path, _rng: path.silence(back=False),
    "answers lost": lambda path, _rng: path.silence(forth=False),
    "answers lost, then refused": lambda path, _rng: path.silence(forth=False),
    "answer to COMMIT lost": lambda path, _rng: path.break_after(lambda data: b"COMMIT" in data),
    "slow": _slow,
}


def start(members: list[Member]) -> None:
    """Start several nodes again, concurrently."""
    with ThreadPoolExecutor(len(members)) as pool:
        list(pool.map(restart, members))


def restart(member: Member) -> None:
    """Start a node; if it exits because its log is unavailable, start it again, as a supervisor does."""
    deadline = time.monotonic() + _RESTART_S
    while True:
        try:
            member.node.restart()
        except RuntimeError:
            if time.monotonic() > deadline:
                raise
        else:
            return
