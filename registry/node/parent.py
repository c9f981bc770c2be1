"""The parent of the workers: it starts them, replaces those that die, and ends them in order.

The parent has no event loop, no thread and no open log, so a fork copies nothing that only its owner may use. It sleeps
until a signal or a worker writes to its pipe. The workers watch another pipe, whose writing end only the parent holds:
it closes when the parent ends, however that happens, and then they end as well.

A worker takes orders from the parent only. Ctrl-C in a terminal reaches every process, so workers ignore SIGINT.
"""

import logging
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from types import FrameType

from strata.registry.node.board import Board, Seat
from strata.registry.node.logs.signals import log_signal

__all__ = ["Lines", "Parent"]

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD)
_STARTED = 0  # what a worker writes to the parent's pipe; the other numbers are those of signals
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 5.0
_STEADY_S = 10.0
_log = logging.getLogger("strata.workers")


@dataclass(frozen=True, slots=True)
class Lines:
    """The pipes between the parent and a worker, as the worker holds them."""

    to_parent: int
    from_parent: int

    def tell_started(self) -> None:
        """Tell the parent that the worker serves."""
        with suppress(OSError):  # the parent has ended, or its pipe is full of other news
            os.write(self.to_parent, bytes([_STARTED]))


class Parent:
    """The process that runs the workers of a node.

    Args:
        board: the board of the workers.
        work: what a worker does until SIGTERM, given its seat and its lines to the parent.
        started: is called once, when all workers serve.
        drain_s: how long the node serves after SIGTERM, in seconds.
    """

    def __init__(
        self, board: Board, work: Callable[[Seat, Lines], None], *, started: Callable[[], None], drain_s: float
    ) -> None:
        self._board, self._work, self._started, self._drain_s = board, work, started, drain_s
        self._news, self._to_parent = os.pipe()
        self._from_parent, self._held = os.pipe()
        os.set_blocking(self._to_parent, False)
        self._running: dict[int, _Run] = {}
        self._due: dict[int, float] = {}
        self._pauses = dict.fromkeys(range(board.workers), 0.0)
        self._orders = 0

    def run(self) -> None:
        """Run the workers until SIGTERM or SIGINT, then end them."""
        handlers = {number: signal.signal(number, _wake) for number in _SIGNALS}
        signal.set_wakeup_fd(self._to_parent, warn_on_full_buffer=False)
        try:
            self._run()
        finally:
            signal.set_wakeup_fd(-1)
            for number, handler in handlers.items():
                signal.signal(number, handler)
            for end in (self._news, self._to_parent, self._from_parent, self._held):
                os.close(end)

    def _run(self) -> None:
        for number in range(self._board.workers):
            self._start(number)
        while not self._orders:
            self._wait(self._next_start())
            self._replace()
        self._drain()
        # Worker 0 writes for the others, so it ends last.
        self._end([number for number in self._workers if number != 0])
        self._end([0])

    @property
    def _workers(self) -> list[int]:
        return [run.number for run in self._running.values()]

    def _drain(self) -> None:
        self._board.drain(self._drain_s)
        ends, orders = time.monotonic() + self._drain_s, self._orders
        while self._orders == orders and time.monotonic() < ends:
            self._wait(min(ends, self._next_start()))
            self._replace()

    def _end(self, numbers: list[int]) -> None:
        """End workers: SIGTERM lets their requests finish, and a further order kills all that remain."""
        self._send(signal.SIGTERM, numbers)
        orders = self._orders
        while set(numbers) & set(self._workers):
            self._wait(float("inf"))
            if self._orders > orders:
                self._send(signal.SIGKILL, self._workers)

    def _send(self, order: signal.Signals, numbers: list[int]) -> None:
        for pid, run in self._running.items():
            if run.number in numbers:
                os.kill(pid, order)  # it exists until `_reap` has waited for it

    # --- news

    def _wait(self, until: float) -> None:
        """Sleep until there is news, or until a time on the monotonic clock; then take the news."""
        timeout = None if until == float("inf") else max(0.0, until - time.monotonic())
        if not select.select([self._news], [], [], timeout)[0]:
            return
        for item in os.read(self._news, 4096):
            if item == _STARTED:
                self._note_started()
            elif item != signal.SIGCHLD:
                self._take_order(item)
        self._reap()

    def _take_order(self, number: int) -> None:
        # SIGINT skips draining, as the second order does.
        if not self._orders and number == signal.SIGINT:
            self._drain_s = 0.0
        log_signal(number, 0.0 if self._orders else self._drain_s)
        self._orders += 1

    def _note_started(self) -> None:
        if self._board.all_ready():
            self._started()
            self._started = lambda: None

    def _reap(self) -> None:
        for pid in list(self._running):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                run = self._running.pop(pid)
                self._board.vacate(run.number)
                self._plan_start(run, pid, os.waitstatus_to_exitcode(status))

    # --- starting

    def _plan_start(self, run: "_Run", pid: int, code: int) -> None:
        number, now = run.number, time.monotonic()
        pause = self._pauses[number]
        self._pauses[number] = (
            0.0 if now - run.since > _STEADY_S else min(max(2 * pause, _FIRST_PAUSE_S), _LONGEST_PAUSE_S)
        )
        self._due[number] = now + self._pauses[number]
        if not self._orders:
            how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"exited with {code}"
            _log.error(
                "worker %(worker)d (process %(pid)d) %(how)s; another one takes its place",
                {"event": "worker_ended", "worker": number, "pid": pid, "how": how},
            )

    def _next_start(self) -> float:
        return min(self._due.values(), default=float("inf"))

    def _replace(self) -> None:
        for number, due in list(self._due.items()):
            if due <= time.monotonic():
                del self._due[number]
                self._start(number)

    def _start(self, number: int) -> None:
        # A signal that the worker got before it has its own handlers would be lost.
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        try:
            pid = os.fork()
            if pid == 0:
                self._be_worker(number)
            self._running[pid] = _Run(number, time.monotonic())
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)

    def _be_worker(self, number: int) -> None:
        """Work as a child of the parent; does not return."""
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGTERM, _exit)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
            os.close(self._held)
            os.close(self._news)
            self._work(Seat(self._board, number), Lines(self._to_parent, self._from_parent))
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0
        except BaseException:  # noqa: BLE001 - nothing may return into the parent's frames
            _log.exception("worker %(worker)d failed", {"event": "worker_failed", "worker": number})
        finally:
            sys.stderr.flush()
            os._exit(code)


@dataclass(frozen=True, slots=True)
class _Run:
    number: int
    since: float


def _wake(_number: int, _frame: FrameType | None) -> None:
    """Do nothing: the pipe tells the parent."""


def _exit(_number: int, _frame: FrameType | None) -> None:
    sys.exit(0)
