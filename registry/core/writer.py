"""The single write path.

A write runs *sync, decide, append, apply*: read the log to its end, let a pure function turn State and request into
records and an answer, append on the condition that no other writer has appended since, and apply the records to State.
After a lost race (`Conflict`) the write starts over, so each decision that lands was made on the State it landed on.
While no other node writes, the append's condition alone proves that nothing came in between, and the writer skips the
sync.

Requests that wait during an append form a group (group commit). Each is decided on the draft that the previous ones
left, and one append commits all of them. If appends take long, a group waits a moment for the clients that the group
before it has answered, because they often write again at once. Beside many reads on a busy event loop, groups pause for
the reads (docs/decisions/0028).

A write has a deadline. Until it is handed to the log, its deadline or a client disconnect can withdraw it: it is then
never carried out, and the answer says that nothing was written. After that, only the log decides its outcome.

Reads of the log, and the threads, are those of `log_reader.py`.
"""

import asyncio
import logging
import math
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context
from typing import NamedTuple, TypeVar

from strata.registry.core import errors
from strata.registry.core.decide.decision import Decide
from strata.registry.core.log_reader import LogReader, RecentRecords
from strata.registry.core.tally import FACTS, Tally
from strata.registry.core.write_group import (
    Command,
    Gathering,
    Outcome,
    PenLost,
    Plan,
    as_answer,
    claimed,
    plan,
    refuse,
    tell_offsets,
)
from strata.storage.log import (
    Conflict,
    Entry,
    Log,
    LogError,
    LogFull,
    LogReadOnly,
    LogTimeout,
    Record,
    RecordTooLarge,
)
from strata.storage.state import State

__all__ = ["HOLDER_FAILS", "WRITE_FAILURES", "WRITE_TIMEOUT_S", "Writer"]

_T = TypeVar("_T")
_Written = tuple[State, list[Outcome], tuple[int, Sequence[Entry]] | None]
"""The State after a group, the outcomes, and what was appended after which offset, if anything was."""
_MAX_GROUP = 256
_MAX_TRIES = 200
_MAX_PAUSE = 0.05
_LATE = "the log did not take the write in time"
WRITE_TIMEOUT_S, READ_TIMEOUT_S = 30.0, 5.0
HOLDER_FAILS = "the node that holds the pen does not accept writes"
WRITE_FAILURES = (
    None,
    *(error.outline for error in (LogError, LogTimeout, LogFull, LogReadOnly)),
    HOLDER_FAILS,
)
"""Why the last write failed, worded for any client; None if it did not. Workers tell each other the place."""
_log = logging.getLogger("strata.writer")


async def _yes(_holder: str) -> bool:
    return True


def _no() -> bool:
    return False


class _PassedOver(NamedTuple):
    """A holder of the pen that this node writes in spite of, the signature that it had then, and until when."""

    url: str
    signed: int | None
    until: float


class Writer(LogReader):
    """The State of one node, changed only through the log.

    Args:
        log: the log, which `close` closes.
        state: the State from which to read on; by default the log is read from the start.
        write_timeout_s: the longest time for a write, in seconds.
        read_timeout_s: the longest time for a catch-up, in seconds.
        tally: the numbers of the process; by default nothing reads them.
        recent: the newest records up to `state`.
    """

    def __init__(
        self,
        log: Log,
        *,
        state: State | None = None,
        write_timeout_s: float = WRITE_TIMEOUT_S,
        read_timeout_s: float = READ_TIMEOUT_S,
        tally: Tally | None = None,
        recent: RecentRecords | None = None,
    ) -> None:
        super().__init__(log, state=state, timeout_s=read_timeout_s, tally=tally, recent=recent)
        self.write_timeout_s = write_timeout_s
        self.may_forward = True
        """Whether this node may pass writes on to the holder of the pen; if not, it takes the pen for each."""
        self._passed_over: _PassedOver | None = None
        self.on_append: Callable[[int, Sequence[Entry]], None] | None = None
        """Is called with what was appended, and the offset up to which this node had read before."""
        self.ask_holder: Callable[[str], Awaitable[bool]] = _yes
        """Returns whether the node that holds the pen accepts writes, or this one can take its place, given its URL."""
        self.yields: Callable[[], bool] = _no
        """Returns whether this node leaves the pen to another one, which is about to sign."""
        self._alone = False
        self._waiting: list[Command] = []
        self.gathering = Gathering()
        self._writing: asyncio.Task[None] | None = None
        self._asking: asyncio.Task[bool] | None = None

    async def close(self) -> None:
        """Finish the writes under way, then close the log."""
        if self._writing:
            await asyncio.wait([self._writing])
        if self._asking:
            self._asking.cancel()
        await super().close()

    def holder(self) -> str | None:
        """Return the URL of the node that holds the pen, to which writes go; None to write here."""
        holder, passed_over = self.log.holder(), self._passed_over
        if holder is None or not self.may_forward:
            return None
        if passed_over is None or holder != passed_over.url or time.monotonic() > passed_over.until:
            return holder
        return holder if passed_over.signed not in (None, self._signed()) else None

    def pass_over(self, holder: str, seconds: float = math.inf, *, despite_signing: bool = False) -> None:
        """Write here for a while although another node holds the pen; that takes the pen.

        This ends when that node signs again: it then lives, and two nodes that go on taking the pen from each other
        write nothing, since each waits for the read leases of the other (docs/decisions/0030).

        Args:
            holder: the URL of the node.
            seconds: the longest time.
            despite_signing: also pass over what that node signs from now on.
        """
        until = time.monotonic() + seconds
        self._passed_over = _PassedOver(holder, None if despite_signing else self._signed(), until)

    def pass_over_none(self) -> None:
        """Let writes go to the holder of the pen again."""
        self._passed_over = None

    def _signed(self) -> int | None:
        signature = self.log.status().signature
        return None if signature is None else signature[0]

    async def write(
        self, decide: Decide[_T], written: Callable[[int], None] | None = None, deadline: float = math.inf
    ) -> _T:
        """Decide on the newest State of the log, append the records, and return the answer once they are written.

        Args:
            decide: a pure function; it runs in a thread, and again after each lost race.
            written: is called with the offset of the last record, once the log has the records.
            deadline: when the request gives up, on the monotonic clock; the writer's own timeout may end earlier.

        Raises:
            RegistryError: any error of `decide`; 50302 if nothing was written in time; 50004 if nothing was written
                because another node has taken the pen; another 5xx if the log fails.
        """
        done: asyncio.Future[_T] = asyncio.get_running_loop().create_future()
        command = Command(decide, done, self._ends(deadline), written)
        self._waiting.append(command)
        if self._writing is None:
            # Its log lines belong to no request, because it writes for many.
            self._writing = asyncio.create_task(self._write_groups(), context=Context())
        else:
            self.gathering.note(len(self._waiting))
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

    def note_failure(self, outline: str | None) -> None:
        """Note why the last write failed, one of `WRITE_FAILURES`; None if it succeeded."""
        self._tally.cells[FACTS["write_failed"]] = WRITE_FAILURES.index(outline)

    async def try_again(self) -> None:
        """After a failed write, find out whether the next one can succeed.

        Raises:
            LogError: if the log still takes no writes.
        """
        if not self._tally.cells[FACTS["write_failed"]]:
            return
        await self.check_writable()
        holder = self.log.holder()
        if holder is None or await self.ask_holder(holder):
            self.note_failure(None)

    def _ends(self, deadline: float) -> float:
        return min(deadline, time.monotonic() + self.write_timeout_s)

    async def in_time(self, deadline: float, call: Callable[..., _T], *args: object) -> _T:
        """Run a computation that a write needs before its turn, and return its result.

        Args:
            deadline: the deadline of the request, as for `write`.
            call: the computation.
            args: its arguments.

        Raises:
            RegistryError: any error of `call`; 50302 if the request's deadline passes first.
        """
        try:
            async with asyncio.timeout(self._ends(deadline) - time.monotonic()):
                return await self.in_thread(call, *args)
        except TimeoutError:
            raise errors.not_written("the node is busy with other requests") from None

    async def _write_groups(self) -> None:
        try:
            while self._waiting:
                await self.gathering.wait(len(self._waiting))
                group, self._waiting = self._waiting[:_MAX_GROUP], self._waiting[_MAX_GROUP:]
                began = time.monotonic()
                await self._write_group(group)
                self.gathering.expect(len(group) + len(self._waiting), after_s=time.monotonic() - began)
        finally:
            self._writing = None

    async def _write_group(self, group: list[Command]) -> None:
        for attempt in range(_MAX_TRIES):
            group = [command for command in group if command.waits]
            if not group:
                return
            try:
                base, was_alone = self.state, self._alone
                write = self._write_without_sync if was_alone else self._write_after_sync
                state, outcomes, appended = await self._on_log(write, base, group)
            except Conflict:
                self._alone = False
                self._tally.add("strata_log_conflicts_total")
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
                if appended:
                    self.note_failure(None)
                    if self.on_append is not None:
                        self.on_append(*appended)
                    if not was_alone:
                        self._ask_for_lease()
                for command, answer, failure in outcomes:
                    command.settle(answer, failure)
                return
        _log.error("%(races)d races with other writers lost in a row", {"event": "races_lost", "races": _MAX_TRIES})
        refuse(group, errors.not_written("other writers came first each time"))

    def _ask_for_lease(self) -> None:
        """Ask whether the log ends here, as a read does, so that the log keeps its lease though no read comes here."""
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self.log.ends_at(self._offset))
            self._asking.add_done_callback(lambda task: task.cancelled() or task.exception())

    def _write_without_sync(self, state: State, group: Sequence[Command]) -> _Written:
        """Decide on the State in memory: while this node writes alone, the append fails if that is not the newest."""
        planned = plan(state, group)
        # Only an append proves it, so an answer without records needs the sync.
        if not planned.all_append and self._newest(state) is not state:
            self._alone = False
            return self._write_after_sync(state, group)
        return self._carry_out(planned, state, group)

    def _write_after_sync(self, state: State, group: Sequence[Command]) -> _Written:
        """Read the log to its end, then decide: another node may have written."""
        newest = self._newest(state)
        self._alone = newest is state
        return self._carry_out(plan(newest, group), newest, group)

    def _newest(self, state: State) -> State:
        """Return the State at the end of the log, which this node may write to.

        Raises:
            PenLost: if another node holds the pen, or is about to.
        """
        newest = self._synced(state)
        # Nodes that take the pen from each other make no progress.
        if self.holder() is not None or (self.yields() and not self.log.status().holds_pen):
            raise PenLost
        return newest

    def _carry_out(self, planned: Plan, state: State, group: Sequence[Command]) -> _Written:
        if not planned.records:
            return state, planned.outcomes, None
        entries = self._append(state, planned.records, group)
        tell_offsets(planned, entries)
        self.recent.add(entries)
        return state.apply_all(entries), planned.outcomes, (state.offset, entries)

    def _append(self, state: State, records: Sequence[Record], group: Sequence[Command]) -> Sequence[Entry]:
        """Hand a group to the log; from here on its commands cannot be withdrawn.

        Raises:
            Conflict: if another writer came first, or a command was withdrawn after its decision; nothing was written.
        """
        with claimed(group):
            try:
                with self._tally.timing("strata_log_append_duration_seconds", {Conflict: "conflict"}):
                    entries = self.log.append(state.offset, records)
            except Conflict:
                self._newest(state)
                raise
        self._tally.observe("strata_write_group_requests", value=len(group))
        self._tally.add("strata_log_records_written_total", amount=len(records))
        return entries

    async def _refuse_too_large(self, group: list[Command]) -> None:
        """Write a group's commands one by one to find the record that is too large for the log."""
        if len(group) == 1:
            group[0].settle(None, errors.schema_too_large())
            return
        for command in group:
            await self._write_group([command])

    def _fail(self, group: Sequence[Command], error: Exception) -> None:
        unexpected = None if isinstance(error, LogError) else error
        self.note_failure(error.outline if isinstance(error, LogError) else LogError.outline)
        _log.error(
            "a write of %(requests)d requests failed: %(reason)s",
            {"event": "write_failed", "requests": len(group), "reason": str(error)},
            exc_info=unexpected,
        )
        refuse(group, as_answer(error))
