"""The waiting writes that one append commits: each is decided on the draft that the previous ones left.

A request can withdraw its command until the group is handed to the log; from then on only the log decides its outcome.

All threads and attempts that work on a request share its computing time. A small write is decided once, in its turn, if
that takes no more than a moment. Any other write is first decided in a work thread, before its turn, which fills the
caches (`parsing.py`). If the State is still the same when the turn comes, that decision stands. Else the turn, during
which all other writes wait, has only the remaining time, and so has every attempt after a lost race. So no request
delays the others longer than one request may compute.
"""

import asyncio
import math
import threading
import time
from asyncio import Future
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from strata.compat.limits import Limits, NotAtOnce
from strata.registry.core import errors
from strata.registry.core.decide.decision import Decide, Decision
from strata.registry.core.errors import RegistryError, TooExpensive
from strata.storage.log import (
    Conflict,
    Entry,
    LogError,
    LogFull,
    LogReadOnly,
    LogTimeout,
    Record,
    RecordTooLarge,
)
from strata.storage.state import State

__all__ = [
    "Clock",
    "Command",
    "Gathering",
    "LoopLoad",
    "Outcome",
    "PenLost",
    "Plan",
    "TimedDecide",
    "as_answer",
    "claimed",
    "plan",
    "refuse",
    "tell_offsets",
]

_T = TypeVar("_T")
TimedDecide = Callable[[State, Limits], Decision[_T]]
"""A decision within limits whose clock is running."""

_SLOW_S, _MOMENT_S = 0.003, 0.001
_BUSY, _MANY_READS, _PAUSE_S = 0.5, 2, 0.02  # load of the event loop, reads for each write, pause between groups
_ENOUGH = 16  # that so many share an append; with more clients, some are read while others are written
_WINDOW_S = 0.05  # the system updates the counters of a running thread every few milliseconds
_COUNTERS = Path("/proc/thread-self/schedstat")


class LoopLoad:
    """The load of the thread that asks for it.

    Linux counts for each thread how long it has run and how long it has waited for a core. A thread that does one or
    the other nearly all the time has no time left: what else it is given delays the requests that it already has.

    Args:
        counters: the file of the system's counters for the calling thread.
        clock: returns the time in seconds.
    """

    def __init__(self, counters: Path = _COUNTERS, clock: Callable[[], float] = time.monotonic) -> None:
        self._counters, self._clock = counters, clock
        self._share, self._busy_s, self._measured_at = 0.0, 0.0, -math.inf

    def share(self) -> float:
        """Return the part of the recent time in which the thread ran or waited for a core, from 0 to 1.

        It covers the time between two calls that were at least 50 ms apart, and is 0 before the second of these, or if
        the system does not say.
        """
        now = self._clock()
        elapsed = now - self._measured_at
        if elapsed >= _WINDOW_S:
            busy_s = self._read()
            self._share = min(1.0, (busy_s - self._busy_s) / elapsed)
            self._busy_s, self._measured_at = busy_s, now
        return self._share

    def _read(self) -> float:
        """Return for how long the thread has run or waited, in seconds."""
        try:
            ran, waited, _ = self._counters.read_bytes().split()
        except (OSError, ValueError):
            return 0.0
        return (int(ran) + int(waited)) / 1e9


class Clock(Generic[_T]):
    """A runner of one request's decision, as often as needed within the limits' total seconds.

    Args:
        decide: the decision.
        limits: the limits of the request, with its seconds of thread time.
    """

    def __init__(self, decide: TimedDecide[_T], limits: Limits) -> None:
        self._decide, self._limits = decide, limits
        self._left = limits.seconds
        self._tried: tuple[State, Decision[_T] | RegistryError] | None = None

    def decide(self, state: State) -> Decision[_T]:
        """Decide within the remaining time, or return the outcome of the dry run on the same State.

        Raises:
            RegistryError: any error of the decision; `TooExpensive` if the time is used up.
        """
        if self._tried is None or self._tried[0] is not state:
            return self._timed(state)
        outcome = self._tried[1]
        if isinstance(outcome, RegistryError):
            raise outcome
        return outcome

    def decide_briefly(self, state: State) -> Decision[_T]:
        """Decide within a moment, so that a turn without a dry run delays no other write.

        Raises:
            RegistryError: any error of the decision.
            NotAtOnce: if this takes longer.
        """
        return self._decide(state, self._limits.briefly())

    def try_out(self, state: State) -> None:
        """Fill the caches by a dry run; a rejection does not count yet, since the State may change before the turn.

        Raises:
            TooExpensive: if the time is used up, so that the request must not get a turn.
        """
        try:
            self._tried = state, self._timed(state)
        except TooExpensive:
            raise
        except RegistryError as error:
            self._tried = state, error

    def _timed(self, state: State) -> Decision[_T]:
        # Thread time, so the remaining time follows the request from one thread to the next.
        limits = self._limits.ending_in(max(self._left, 0.0))
        try:
            return self._decide(state, limits)
        finally:
            self._left = limits.ends - time.thread_time()


@dataclass(slots=True, eq=False)
class Command:
    """A waiting write; either the log takes it or the request withdraws it, and `take` succeeds only once.

    `written` is called with the offset of the command's last record, once the log has it, even if its client has left.
    `records` is how many records its last decision has.
    """

    decide: Decide[object]
    done: "Future[Any]"
    deadline: float
    written: Callable[[int], None] | None = None
    records: int = 0
    _taken: threading.Lock = field(default_factory=threading.Lock)

    @property
    def waits(self) -> bool:
        """Whether a client still waits for the answer."""
        return not self.done.done() and time.monotonic() < self.deadline

    def take(self) -> bool:
        """Claim the command, for the log or to withdraw it; return False if the other side came first."""
        return self._taken.acquire(blocking=False)

    def give_back(self) -> None:
        """Release the claim: the log has not written the command."""
        self._taken.release()

    def settle(self, answer: object, failure: Exception | None) -> None:
        """Answer the request, unless its client has left."""
        if self.done.done():
            return
        if failure is None:
            self.done.set_result(answer)
        else:
            self.done.set_exception(failure)


class Gathering:
    """The time for which a group waits for more writes.

    After a slow group, this is a moment for its clients, which often write again. Beside many reads on a busy event
    loop, it is a pause, which goes to the reads (docs/decisions/0028).

    Args:
        load: returns the load of the event loop, from 0 to 1.
    """

    def __init__(self, load: Callable[[], float] | None = None) -> None:
        self.reads: Callable[[], int] = lambda: 0
        """Returns how many reads this process has answered from memory."""
        self._load = load or LoopLoad().share
        self._reads_before = 0
        self._expected = 0
        self._pause_ends: float | None = None
        self._complete: Future[None] | None = None

    def expect(self, writes: int, *, after_s: float) -> None:
        """Note that a group has been written.

        A client that writes alone never waits.

        Args:
            writes: how many writes it had and left waiting.
            after_s: how long it took, in seconds.
        """
        self._expected, self._pause_ends = 0, None
        before, self._reads_before = self._reads_before, self.reads()
        has_many_reads = self._reads_before - before >= _MANY_READS * writes
        if writes > 1 and has_many_reads and self._load() >= _BUSY:
            self._expected, self._pause_ends = _ENOUGH, time.monotonic() + _PAUSE_S
        elif after_s >= _SLOW_S:
            self._expected = min(writes, _ENOUGH)

    def note(self, waiting: int) -> None:
        """End the wait if as many writes wait as are expected."""
        if self._complete is not None and waiting >= self._expected and not self._complete.done():
            self._complete.set_result(None)

    async def wait(self, waiting: int) -> None:
        """Wait until as many writes are there as are expected, but not for long."""
        seconds = _MOMENT_S if self._pause_ends is None else self._pause_ends - time.monotonic()
        if waiting >= self._expected or seconds <= 0:
            return
        self._complete = asyncio.get_running_loop().create_future()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._complete
        self._complete = None


Outcome = tuple[Command, object, Exception | None]


@dataclass(slots=True)
class Plan:
    """The decisions on a group: the records to append, the outcomes, and whether every command has records."""

    records: list[Record]
    outcomes: list[Outcome]
    all_append: bool = True


class PenLost(Exception):
    """The loss of the pen to another node; nothing was written."""


@contextmanager
def claimed(group: Sequence[Command]) -> Iterator[None]:
    """Claim all commands of a group, and release them if the log reports that it wrote nothing."""
    taken = [command for command in group if command.take()]
    if len(taken) < len(group) or not all(command.waits for command in group):
        _give_back(taken)
        raise Conflict
    try:
        yield
    except (Conflict, RecordTooLarge, PenLost):
        _give_back(taken)
        raise


def _give_back(taken: Sequence[Command]) -> None:
    for command in taken:
        command.give_back()


def plan(state: State, group: Sequence[Command]) -> Plan:
    """Decide each command of a group on the draft that the previous ones left."""
    draft, now = state, time.time_ns() // 1_000_000
    made = Plan([], [])
    for command in group:
        try:
            decision = command.decide(draft)
        except Exception as failure:  # noqa: BLE001 - a failure must not affect the other requests of the group
            command.records = 0
            made.outcomes.append((command, None, failure))
            # A decision that comes again in its turn answers nothing now, so nothing depends on this State.
            made.all_append &= isinstance(failure, NotAtOnce)
            continue
        records = [*decision.records, *draft.tombstones_besides(decision.records)]
        made.outcomes.append((command, decision.answer, None))
        made.records += records
        command.records = len(records)
        made.all_append &= bool(records)
        if records and command is not group[-1]:
            draft = draft.drafted(records, now)
    return made


def refuse(group: Sequence[Command], error: errors.RegistryError) -> None:
    """Answer all commands of a group with an error."""
    for command in group:
        command.settle(None, error)


def tell_offsets(planned: Plan, entries: Sequence[Entry]) -> None:
    """Tell each command of a group the offset of its last record."""
    end = 0
    for command, _, _ in planned.outcomes:
        end += command.records
        if command.records and command.written is not None:
            command.written(entries[end - 1].offset)


def as_answer(error: Exception) -> errors.RegistryError:
    """Return what the clients of a group learn of its failure."""
    if isinstance(error, LogTimeout):
        return errors.write_timed_out()
    if isinstance(error, LogFull | LogReadOnly):
        return errors.write_refused(error.outline)
    return errors.not_written(error.outline) if isinstance(error, LogError) else errors.internal()
