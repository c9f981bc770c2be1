"""What one node has read of the log: its State, and the catch-up that reads share.

Blocking calls and computation run in threads. Only the event loop replaces `state`, always by a State further along the
same log, so every reader holds a consistent snapshot.
"""

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, TypeVar

from strata.registry.core import errors
from strata.registry.core.tally import FACTS, Tally
from strata.storage.log import START, Entry, Log, LogCompacted, LogError, LogTimeout
from strata.storage.state import State

__all__ = ["LogReader", "RecentRecord", "RecentRecords", "in_task"]

_T = TypeVar("_T")

_NOTHING = State()
_MOST_RECENT = 500
_LONGEST_KEY = 2_000
_log = logging.getLogger("strata.writer")


async def in_task() -> None:
    """Return in a task: in the next turn of the event loop if the caller is not in one yet.

    A request starts without a task (`http/protocol.py`), which `asyncio.timeout` and some libraries need.
    """
    if asyncio.current_task() is None:
        await asyncio.sleep(0)


class RecentRecord(NamedTuple):
    """A record without its value, which may be large.

    It has its offset, its time in milliseconds, the beginning of its key, and the size of its value in bytes.
    """

    offset: int
    timestamp: int
    key: bytes | None
    size: int | None  # None for a tombstone


class RecentRecords:
    """Keeps the newest records that were read, for people; any thread may add some."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: tuple[RecentRecord, ...] = ()

    def passing(self, entries: Iterable[Entry]) -> Iterator[Entry]:
        """Yield entries, and keep the newest once all have passed."""
        newest: deque[Entry] = deque(maxlen=_MOST_RECENT)
        keep = newest.append  # a start reads millions of records
        for entry in entries:
            keep(entry)
            yield entry
        self.add(newest)

    def add(self, entries: Iterable[Entry]) -> None:
        """Keep entries that are newer than those kept."""
        with self._lock:
            last = self._kept[-1].offset if self._kept else -1
            new = [
                RecentRecord(offset, timestamp, key and key[:_LONGEST_KEY], None if value is None else len(value))
                for offset, timestamp, key, value in entries
                if offset > last
            ]
            if new:
                self._kept = (*self._kept, *new)[-_MOST_RECENT:]

    def newest(self, count: int) -> tuple[RecentRecord, ...]:
        """Return the newest records, newest first."""
        return self._kept[: -count - 1 : -1]


class LogReader:
    """The State of one node, as far as it has read the log.

    Args:
        log: the log, which `close` closes.
        state: the State from which to read on; by default the log is read from the start.
        timeout_s: the longest time for a catch-up, in seconds.
        tally: the numbers of the process; by default nothing reads them.
        recent: the newest records up to `state`.
    """

    def __init__(
        self, log: Log, *, state: State | None, timeout_s: float, tally: Tally | None, recent: RecentRecords | None
    ) -> None:
        self.log = log
        self.recent = recent or RecentRecords()
        self._tally = tally or Tally()
        self.state = state or State()
        self.read_at = time.monotonic()
        self.read_failure: str | None = None
        """Why the last read of the log failed, worded for any client; None if it succeeded."""
        self._timeout_s = timeout_s
        # Writes that this node forwarded and acknowledged: their number now, and when the last successful read began.
        self._acknowledged = self._acknowledged_and_read = 0
        # A pool of its own, so that reads of the log never wait for expensive checks.
        self._log_threads = ThreadPoolExecutor(max_workers=4, thread_name_prefix="strata-log")
        self._work_threads = ThreadPoolExecutor(max_workers=8, thread_name_prefix="strata-work")
        self._reading: asyncio.Task[None] | None = None
        self._next_reading: asyncio.Task[None] | None = None

    @property
    def state(self) -> State:
        """The State of this node."""
        return self._state

    @state.setter
    def state(self, state: State) -> None:
        self._state = state
        # At once, and not with the other facts: a worker would seem to be behind whenever another one has written.
        self._tally.cells[FACTS["offset"]] = state.offset

    @property
    def read_at(self) -> float:
        """When this node last knew that it had read the whole log, on the monotonic clock."""
        return self._read_at

    @read_at.setter
    def read_at(self, moment: float) -> None:
        self._read_at = moment
        self._tally.cells[FACTS["read_at"]] = moment  # at once: this is how far a node with local reads may be behind

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
            "replayed the log up to offset %(offset)d in %(seconds).2f s: %(subjects)d subjects, "
            "%(set_aside)d records set aside",
            {
                "event": "log_replayed",
                "offset": self.state.offset,
                "seconds": round(time.monotonic() - started, 3),
                "subjects": len(self.state.subjects),
                "set_aside": self.state.set_aside_count,
            },
        )
        for aside in self.state.set_aside:
            _log.warning(
                "the record at offset %(offset)d is set aside: %(reason)s",
                {"event": "record_set_aside", "offset": aside.offset, "reason": aside.reason},
            )

    async def close(self) -> None:
        """Wait for the calls under way, then close the log."""
        self._log_threads.shutdown(wait=True)
        self._work_threads.shutdown(wait=True)
        self.log.close()

    async def catch_up(self) -> State:
        """Return a State that holds every write that any node acknowledged before this call.

        If the log itself shows quickly that nothing was appended, it is not read. Otherwise all callers that arrive
        during a read of the log share the next read.

        Raises:
            RegistryError: 50301 if the log cannot be read, or not in time.
        """
        acknowledged = self._acknowledged
        if self.read_failure is None and (
            self.log.unchanged(self.state.offset) or await self.log.ends_at(self._offset)
        ):
            self.read_at = time.monotonic()
            self._acknowledged_and_read = max(acknowledged, self._acknowledged_and_read)
            return self.state
        if self._next_reading is None:
            self._next_reading = asyncio.create_task(self._catch_up_after(self._reading))
            # All callers that wait get its exception; retrieve it here in case no caller is left.
            self._next_reading.add_done_callback(lambda task: task.cancelled() or task.exception())
        reading = self._next_reading
        await in_task()
        try:
            async with asyncio.timeout(self._timeout_s):
                await asyncio.shield(reading)
        except TimeoutError:
            raise errors.log_unreadable(LogTimeout.outline) from None
        return self.state

    def _offset(self) -> int:
        return self._state.offset

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
                _log.error("the log cannot be read: %(reason)s", {"event": "log_unreadable", "reason": str(error)})
            self.read_failure = error.outline
            raise errors.log_unreadable(error.outline) from None

    def _synced(self, state: State) -> State:
        with self._tally.timing("strata_log_read_duration_seconds"):
            return self._read_on(state)

    def _read_on(self, state: State) -> State:
        try:
            return state.apply_all(self.recent.passing(self.log.read(state.offset)))
        except LogCompacted as error:
            _log.warning("%(reason)s", {"event": "log_read_again", "reason": str(error)})
            return State().apply_all(self.recent.passing(self.log.read(START)))

    def _advance(self, base: State, state: State) -> None:
        """Publish `state`, made from `base`; a full replay may end before the offset of the State that it replaces."""
        if self.read_failure is not None:
            _log.info("the log can be read again", {"event": "log_readable"})
        self.read_at, self.read_failure = time.monotonic(), None
        if state.offset > self.state.offset or self.state is base:
            self.state = state

    def follow(self, after: int, entries: Sequence[Entry]) -> None:
        """Apply what another worker has appended, if this one has read exactly as far as that one had before."""
        if self.state.offset == after:
            self.recent.add(entries)
            self.log.note_append(entries[-1].offset)
            self.state = self.state.apply_all(entries)

    @property
    def read_to(self) -> int | None:
        """The offset up to which this node has read; None while it lags."""
        return None if self.lags else self.state.offset

    @property
    def lags(self) -> bool:
        """Whether this node has acknowledged a forwarded write that it has not read yet, so its State may be stale."""
        return self._acknowledged > self._acknowledged_and_read

    @property
    def known(self) -> State:
        """The State for answers from memory: empty while the node has not read a write that it acknowledged."""
        return _NOTHING if self._acknowledged > self._acknowledged_and_read else self._state

    def lasting(self) -> object:
        """Return what answers that last until a deletion are made from; a new object while no answer is valid."""
        return object() if self._acknowledged > self._acknowledged_and_read else self._state.removals

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

    async def in_thread(self, call: Callable[..., _T], *args: object) -> _T:
        """Run a blocking or long computation in a worker thread and return its result."""
        return await asyncio.get_running_loop().run_in_executor(self._work_threads, call, *args)

    async def _on_log(self, call: Callable[..., _T], *args: object) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._log_threads, call, *args)
