"""Faults that aim at read leases: the holder of the pen loses it, or commits, while clients read from it.

Each of them makes the moments wide in which a node might answer from memory though it must not: between a question to
the leader and its answer, between a commit and its answer, and between the signature of another node and the end of the
lease. Each fault is a context manager as in `node_faults.py`.
"""

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress

from faults.linear import WRITES
from faults.node_faults import shift_clock
from faults.scene import Member, Scene

__all__ = ["commit_without_answer", "late_answers", "lengths", "repeated_answers", "take_over"]

_SAME, _MIXED = ("100ms", "100ms", "1s", "1s", "500ms"), ("100ms", "400ms", "700ms", "1s", "0")
_LATE_S, _VERY_LATE_S = (0.05, 0.25), (0.25, 0.45)  # a question waits 0.5 s for its answer
_QUESTION_S = (0.0, 0.2)
_LULLS, _LULL_S = 0.7, (0.1, 0.3)
_SHORT_S = (0.1, 0.5)
_WRITTEN_S, _POLL_S = 4.0, 0.005
_JUMPS = 0.3
_END_TRANSACTION = b"\x00\x1a"
_SHORT = 150  # bytes; an answer with an offset or an outcome is shorter, and one with the brokers or a topic longer


def lengths(seed: str, nodes: int) -> Sequence[str]:
    """Return the lengths of the nodes' leases: mostly the same for all, which makes a new holder wait no longer."""
    rng = random.Random(seed)
    if rng.random() < 0.7:
        return [rng.choice(_SAME)] * nodes
    return [rng.choice(_MIXED) for _ in range(nodes)]


@contextmanager
def take_over(scene: Scene, rng: random.Random) -> Iterator[str]:
    """Let another node take the pen, while clients read from its holder, and heal some time after it has written.

    The answers of the log to the holder may be late, its clock may jump, and it, or one of its workers, may be paused
    meanwhile, so that it goes on with what it learned long ago.
    """
    with _on_path(scene.holder()) as member:
        if member is None:
            yield ""
            return
        late = rng.choice(("", "late", "very late", "very late"))
        with ExitStack() as stack:
            if rng.random() < _JUMPS:
                stack.enter_context(shift_clock(scene, rng))
            _only_read(stack, scene, member)
            with _lull(scene, rng) if rng.random() < _LULLS else nullcontext():
                if late:
                    _delay(member, rng, _LATE_S if late == "late" else _VERY_LATE_S)
                    time.sleep(rng.uniform(*_QUESTION_S))
                began = scene.recorder.now()
                _cut_off(stack, member)
            paused = _paused_meanwhile(member, rng, lambda: _other_has_written(scene, member, began))
            yield ", ".join(part for part in (f"node {member.number}", late, paused) if part)


@contextmanager
def commit_without_answer(scene: Scene, rng: random.Random) -> Iterator[str]:
    """Lose what the log answers to the holder of the pen from its next commit on; another node may take the pen."""
    with _on_path(scene.holder()) as member:
        if member is None:
            yield ""
            return
        for path in member.to_log:
            path.silence_after(lambda data: data[4:6] == _END_TRANSACTION)
        _wait_until(lambda: any(path.is_silent for path in member.to_log))
        for path in member.to_log:
            path.silence(forth=False)
        with ExitStack() as stack:
            paused = ""
            if is_taken := rng.random() < 0.6:
                began = scene.recorder.now()
                _only_read(stack, scene, member)
                _cut_off(stack, member)
                paused = _paused_meanwhile(member, rng, lambda: _other_has_written(scene, member, began))
            yield f"node {member.number}" + (f", pen taken {paused}".rstrip() if is_taken else "")


@contextmanager
def late_answers(scene: Scene, rng: random.Random) -> Iterator[str]:
    """Delay what the log answers to the holder of the pen, or to another node."""
    member = scene.holder() if rng.random() < 0.6 else rng.choice(scene.members)
    with _on_path(member) as claimed:
        if claimed is None:
            yield ""
            return
        _delay(claimed, rng, rng.choice((_LATE_S, _VERY_LATE_S)))
        yield f"node {claimed.number}"


@contextmanager
def repeated_answers(scene: Scene, rng: random.Random) -> Iterator[str]:
    """Give a node answers of the log twice, whole ones: the client library aborts the process on a broken one."""
    with _on_path(rng.choice(scene.members)) as member:
        if member is None:
            yield ""
            return
        for path in member.to_log:
            path.repeat(lambda data: int.from_bytes(data[:4]) == len(data) - 4)
        yield f"node {member.number}"


# --- parts


@contextmanager
def _lull(scene: Scene, rng: random.Random) -> Iterator[None]:
    """Keep writes from all nodes for a moment, so that what follows meets a holder that rests, and has a lease."""
    others = {member.number for member in scene.members} - scene.only_read
    scene.only_read.update(others)
    try:
        time.sleep(rng.uniform(*_LULL_S))
        yield
    finally:
        scene.only_read.difference_update(others)


@contextmanager
def _on_path(member: Member | None) -> Iterator[Member | None]:
    """Reserve the path of a node to its log, and restore it at the end; yield None if another fault holds it."""
    if member is None or not member.to_log or not member.path_lock.acquire(blocking=False):
        yield None
        return
    try:
        yield member
    finally:
        for path in member.to_log:
            path.restore()
        member.path_lock.release()


def _delay(member: Member, rng: random.Random, seconds: tuple[float, float]) -> None:
    """Make answers to a node late, in most cases only the short ones, such as those to questions for the end."""
    delay, short_only = rng.uniform(*seconds), rng.random() < 0.7
    for path in member.to_log:
        path.delay_answers(delay, (lambda data: len(data) < _SHORT) if short_only else None)


def _only_read(stack: ExitStack, scene: Scene, member: Member) -> None:
    """Keep the writes of clients from a node."""
    scene.only_read.add(member.number)
    stack.callback(scene.only_read.discard, member.number)


def _cut_off(stack: ExitStack, member: Member) -> None:
    """Keep other nodes from a node, so that their next write takes the pen."""
    member.proxy.refuse()
    stack.callback(member.proxy.restore)


def _paused_meanwhile(member: Member, rng: random.Random, is_over: Callable[[], bool]) -> str:
    """Wait until something is over, in half of the cases with a node or one of its workers paused; return which."""
    what = rng.choice(("", "", "node", "worker"))
    if what == "" or not member.lock.acquire(blocking=False):
        _wait_until(is_over)
        return ""
    worker = rng.choice(member.node.workers or [0]) if what == "worker" else 0
    try:
        _send(member, worker, signal.SIGSTOP)
        if rng.random() < 0.7:
            _wait_until(is_over)
        else:
            threading.Event().wait(rng.uniform(*_SHORT_S))
    finally:
        _send(member, worker, signal.SIGCONT)
        member.lock.release()
    _wait_until(is_over)
    return "worker paused" if worker else "paused"


def _send(member: Member, worker: int, number: signal.Signals) -> None:
    if not worker:
        member.node.send(number)
        return
    with suppress(ProcessLookupError):
        os.kill(worker, number)


def _other_has_written(scene: Scene, member: Member, since: float) -> bool:
    """Return whether a write at another node was acknowledged that began after a moment."""
    recorded = scene.recorder.operations
    return any(
        operation.node != member.number
        and operation.start > since
        and operation.request.kind in WRITES
        and operation.answer is not None
        and operation.answer[0] == 200
        for operation in recorded[-200:]
    )


def _wait_until(is_over: Callable[[], bool]) -> None:
    ends = time.monotonic() + _WRITTEN_S
    while not is_over() and time.monotonic() < ends:
        time.sleep(_POLL_S)
