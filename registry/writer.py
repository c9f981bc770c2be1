"""The single write path, and the catch-up that reads share.

A write runs *sync, decide, append, apply*: read the log to its end, let a pure function turn State and request into
records and an answer, append on the condition that no other writer has appended since, and apply the records to State.
After a lost race (`Conflict`) the write starts over, so each decision that lands was made on the State it landed on.
While no other node writes, the append's condition alone proves that nothing came in between, and the writer skips the
sync.

Requests that wait during an append form a group (group commit). Each is decided on the draft that the previous ones
left, and one append commits all of them.

A write has a deadline. Until it is handed to the log, its deadline or a client disconnect can withdraw it: it is then
never carried out, and the answer says that nothing was written. After that, only the log decides its outcome.

Blocking calls and computation run in threads. Only the event loop replaces `state`, always by a State further along the
same log, so every reader holds a consistent snapshot.
"""

import asyncio
import logging
import math
import random
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any, TypeVar

from strata.registry import errors
from strata.registry.decide.decision import Decide
from strata.registry.write_group import Command, Outcome, PenLost, Plan, claimed, plan, refuse
from strata.storage.log import (
    START,
    Conflict,
    Entry,
    Log,
    LogCompacted,
    LogError,
    LogFull,
    LogReadOnly,
    LogTimeout,
    Record,
    RecordTooLarge,
)
from strata.storage.state import State

__all__ = ["DEADLINE", "WRITE_TIMEOUT_S", "Writer"]

_T = TypeVar("_T")
_MAX_GROUP = 256
_MAX_TRIES = 200
_MAX_PAUSE = 0.05
_LATE = "the log did not take the write in time"
WRITE_TIMEOUT_S = 30.0
DEADLINE: ContextVar[float] = ContextVar("deadline", default=math.inf)
"""The current request's deadline on the monotonic clock; the writer's own timeout applies if that ends earlier."""

_log = logging.getLogger("strata.writer")


class Writer:
    """The State of one node, changed only through the log.

    Args:
        log: the log, which `close` closes.
        state: the State from which to read on; by default the log is read from the start.
        write_timeout_s: the longest time for a write or a catch-up, in seconds.
    """

    def __init__(self, log: Log, *, state: State | None = None, write_timeout_s: float = WRITE_TIMEOUT_S) -> None:
        self.log = log
        self.write_timeout_s = write_timeout_s
        self.state = state or State()
        self.passed_over: str | None = None
        """The URL of a pen holder that does not respond: this node may write although that one holds the pen."""
        self.read_at = time.monotonic()
        self.read_failure: str | None = None
        """Why the last read of the log failed, worded for any client; None if it succeeded."""
        # Writes that this node forwarded and acknowledged: their number now, and when the last successful read began.
        self._acknowledged = self._acknowledged_and_read = 0
        # A pool of its own, so that reads of the log never wait for expensive checks.
        self._log_threads = ThreadPoolExecutor(max_workers=4, thread_name_prefix="strata-log")
        self._work_threads = ThreadPoolExecutor(max_workers=8, thread_name_prefix="strata-work")
        self._alone = False
        self._waiting: list[Command] = []
        self._writing: asyncio.Task[None] | None = None
        self._reading: asyncio.Task[None] | None = None
        self._next_reading: asyncio.Task[None] | None = None

    def replay(self, *, quietly: bool = False) -> None:
        """Read the log to its end before the service answers any request; blocks.

        Args:
            quietly: whether to report nothing, because another process has reported what it read.

        Raises:
            LogError: if the log cannot be read.
        """
        started = time.monotonic()
        self.state = self._synced(self.state)
        self.read_at = time.monotonic()
        if quietly:
            return
        _log.info(
            "replayed the log up to offset %d in %.2f s: %d subjects, %d records set aside",
            self.state.offset,
            time.monotonic() - started,
            len(self.state.subjects),
            self.state.set_aside_count,
        )
        for aside in self.state.set_aside:
            _log.warning("the record at offset %d is set aside: %s", aside.offset, aside.reason)

    async def close(self) -> None:
        """Finish the writes under way, then close the log."""
        if self._writing:
            await asyncio.wait([self._writing])
        self._log_threads.shutdown(wait=True)
        self._work_threads.shutdown(wait=True)
        self.log.close()

    # --- reads

    async def catch_up(self) -> State:
        """Return a State that holds every write that any node acknowledged before this call.

        If the log itself shows at once that nothing was appended, it is not read. Otherwise all callers that arrive
        during a read of the log share the next read.

        Raises:
            RegistryError: 50301 if the log cannot be read, or not in time.
        """
        if self.read_failure is None and self.log.unchanged(self.state.offset):
            self.read_at, self._acknowledged_and_read = time.monotonic(), self._acknowledged
            return self.state
        if self._next_reading is None:
            self._next_reading = asyncio.create_task(self._catch_up_after(self._reading))
            # All callers that wait get its exception; retrieve it here in case no caller is left.
            self._next_reading.add_done_callback(lambda task: task.cancelled() or task.exception())
        try:
            async with asyncio.timeout(self.write_timeout_s):
                await asyncio.shield(self._next_reading)
        except TimeoutError:
            raise errors.log_unreadable(LogTimeout.outline) from None
        return self.state

    async def _catch_up_after(self, under_way: "asyncio.Task[None] | None") -> None:
        if under_way:
            await asyncio.wait([under_way])
        self._reading, self._next_reading = self._next_reading, None
        acknowledged = self._acknowledged
        try:
            base = self.state
            self._advance(base, await self._on_log(self._synced, base))
            self._acknowledged_and_read = acknowledged
        except LogError as error:
            if self.read_failure is None:
                _log.error("the log cannot be read: %s", error)
            self.read_failure = error.outline
            raise errors.log_unreadable(error.outline) from None

    def _synced(self, state: State) -> State:
        try:
            return state.apply_all(self.log.read(state.offset))
        except LogCompacted as error:
            _log.warning("%s", error)
            return State().apply_all(self.log.read(START))

    def _advance(self, base: State, state: State) -> None:
        """Publish `state`, made from `base`; a full replay may end before the offset of the State that it replaces."""
        if self.read_failure is not None:
            _log.info("the log can be read again")
        self.read_at, self.read_failure = time.monotonic(), None
        if state.offset > self.state.offset or self.state is base:
            self.state = state

    @property
    def lags(self) -> bool:
        """Whether this node has acknowledged a forwarded write that it has not read yet, so its State may be stale."""
        return self._acknowledged > self._acknowledged_and_read

    def lag(self) -> None:
        """Record that this node acknowledged a forwarded write and cannot read it; the next catch-up clears this."""
        self._acknowledged += 1

    async def end(self) -> int:
        """Return the offset of the log's last record.

        Raises:
            LogError: if the log cannot be reached.
        """
        return await self._on_log(self.log.end)

    async def check_writable(self) -> None:
        """Check, without writing, that the log accepts writes.

        Raises:
            LogReadOnly: if it does not.
            LogError: if the log cannot be reached.
        """
        await self._on_log(self.log.check_writable)

    async def in_thread(self, call: Callable[..., _T], *args: Any) -> _T:
        """Run a blocking or long computation in a worker thread and return its result."""
        return await asyncio.get_running_loop().run_in_executor(self._work_threads, call, *args)

    async def _on_log(self, call: Callable[..., _T], *args: Any) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._log_threads, call, *args)

    # --- writes

    async def write(self, decide: Decide[_T], written: Callable[[int], None] | None = None) -> _T:
        """Decide on the newest State of the log, append the records, and return the answer once they are written.

        Args:
            decide: a pure function; it runs in a thread, and again after each lost race.
            written: is called with the offset of the last record, once the log has the records.

        Raises:
            RegistryError: any error of `decide`; 50302 if nothing was written in time; 50004 if nothing was written
                because another node has taken the pen; another 5xx if the log fails.
        """
        done: asyncio.Future[_T] = asyncio.get_running_loop().create_future()
        command = Command(decide, done, self.deadline(), written)
        self._waiting.append(command)
        if self._writing is None:
            self._writing = asyncio.create_task(self._write_groups())
        try:
            async with asyncio.timeout(command.deadline - time.monotonic()):
                return await done
        except TimeoutError:
            if done.done() and not done.cancelled():
                return done.result()
            raise (errors.not_written(_LATE) if command.take() else errors.write_timed_out()) from None
        finally:
            if done.cancelled():  # the client disconnected or the deadline passed
                command.take()
                if command in self._waiting:
                    self._waiting.remove(command)

    def deadline(self) -> float:
        """Return the deadline of a write by the current request, on the monotonic clock."""
        return min(DEADLINE.get(), time.monotonic() + self.write_timeout_s)

    async def in_time(self, call: Callable[..., _T], *args: Any) -> _T:
        """Run a computation that a write needs before its turn, and return its result.

        Raises:
            RegistryError: any error of `call`; 50302 if the request's deadline passes first.
        """
        try:
            async with asyncio.timeout(self.deadline() - time.monotonic()):
                return await self.in_thread(call, *args)
        except TimeoutError:
            raise errors.not_written("the node is busy with other requests") from None

    async def _write_groups(self) -> None:
        try:
            while self._waiting:
                group, self._waiting = self._waiting[:_MAX_GROUP], self._waiting[_MAX_GROUP:]
                await self._write_group(group)
        finally:
            self._writing = None

    async def _write_group(self, group: list[Command]) -> None:
        for attempt in range(_MAX_TRIES):
            group = [command for command in group if command.waits]
            if not group:
                return
            try:
                base = self.state
                state, outcomes = await self._on_log(self._attempt, base, group)
            except Conflict:
                self._alone = False
                await asyncio.sleep(random.uniform(0, min(_MAX_PAUSE, 0.001 * attempt)))  # noqa: S311
            except PenLost:
                self._alone = False
                refuse(group, errors.not_the_writer())
                return
            except RecordTooLarge:
                await self._refuse_too_large(group)
                return
            except Exception as error:  # noqa: BLE001 - every waiting client must get an answer
                self._fail(group, error)
                return
            else:
                self._advance(base, state)
                for command, answer, failure in outcomes:
                    command.settle(answer, failure)
                return
        _log.error("%d races with other writers lost in a row", _MAX_TRIES)
        refuse(group, errors.not_written("other writers came first each time"))

    def _attempt(self, state: State, group: Sequence[Command]) -> tuple[State, list[Outcome]]:
        """Decide a group and append its records; return the State after them and the outcomes."""
        return self._write_without_sync(state, group) if self._alone else self._write_after_sync(state, group)

    def _write_without_sync(self, state: State, group: Sequence[Command]) -> tuple[State, list[Outcome]]:
        """Decide on the State in memory: while this node writes alone, the append fails if that is not the newest."""
        planned = plan(state, group)
        # Only an append proves it, so an answer without records needs the sync.
        if not planned.all_append and self._newest(state) is not state:
            self._alone = False
            return self._write_after_sync(state, group)
        return self._carry_out(planned, state, group)

    def _write_after_sync(self, state: State, group: Sequence[Command]) -> tuple[State, list[Outcome]]:
        """Read the log to its end, then decide: another node may have written."""
        newest = self._newest(state)
        self._alone = newest is state
        return self._carry_out(plan(newest, group), newest, group)

    def _newest(self, state: State) -> State:
        """Return the State at the end of the log, which this node may write to.

        Raises:
            PenLost: if another node holds the pen.
        """
        newest = self._synced(state)
        # Nodes that take the pen from each other make no progress.
        if self.log.holder() not in (None, self.passed_over):
            raise PenLost
        return newest

    def _carry_out(self, planned: Plan, state: State, group: Sequence[Command]) -> tuple[State, list[Outcome]]:
        if planned.records:
            entries = self._append(state, planned.records, group)
            _tell_offsets(planned, entries)
            state = state.apply_all(entries)
        return state, planned.outcomes

    def _append(self, state: State, records: Sequence[Record], group: Sequence[Command]) -> Sequence[Entry]:
        """Hand a group to the log; from here on its commands cannot be withdrawn.

        Raises:
            Conflict: if another writer came first, or a command was withdrawn after its decision; nothing was written.
        """
        with claimed(group):
            try:
                return self.log.append(state.offset, records)
            except Conflict:
                self._newest(state)
                raise

    async def _refuse_too_large(self, group: list[Command]) -> None:
        """Write a group's commands one by one to find the record that is too large for the log."""
        if len(group) == 1:
            group[0].settle(None, errors.schema_too_large())
            return
        for command in group:
            await self._write_group([command])

    def _fail(self, group: Sequence[Command], error: Exception) -> None:
        unexpected = None if isinstance(error, LogError) else error
        _log.error("a write of %d requests failed: %s", len(group), error, exc_info=unexpected)
        refuse(group, _as_answer(error))


def _tell_offsets(planned: Plan, entries: Sequence[Entry]) -> None:
    """Tell each command of a group the offset of its last record."""
    end = 0
    for command, _, _ in planned.outcomes:
        end += command.records
        if command.records and command.written is not None:
            command.written(entries[end - 1].offset)


def _as_answer(error: Exception) -> errors.RegistryError:
    if isinstance(error, LogTimeout):
        return errors.write_timed_out()
    if isinstance(error, LogFull | LogReadOnly):
        return errors.write_refused(error.outline)
    return errors.not_written(error.outline) if isinstance(error, LogError) else errors.internal()
