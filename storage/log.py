"""The Log protocol: an ordered sequence of keyed records that refuses a write based on stale data.

Compare-and-append is the whole concurrency model. A writer names the offset up to which it has read (`after`). If the
log has grown since, nothing is written, and `Conflict` makes the writer read the new records and decide again. There is
no leader election, and no decision based on an old State can be written.

Offsets grow and may have gaps. -1 means "before the first record".

Rules of this file: the protocol, its values, and its shortest implementation, a log in memory. `records.py` defines
keys and values, `state.py` their fold.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

__all__ = [
    "START",
    "Conflict",
    "Entry",
    "Log",
    "LogCompacted",
    "LogError",
    "LogFull",
    "LogReadOnly",
    "LogReplaced",
    "LogStatus",
    "LogTimeout",
    "MemoryLog",
    "Record",
    "RecordTooLarge",
]

START = -1


class LogError(Exception):
    """The log could not be read or written. Only `LogTimeout` leaves open whether an append wrote anything.

    The message is for the operator: it may name addresses and files. Clients see `outline` only.
    """

    outline: ClassVar[str] = "the log failed or did not answer"


class LogTimeout(LogError):
    """The log did not answer in time; the fate of a write is unknown."""

    outline = "the log did not answer in time"


class LogFull(LogError):
    """The storage of the log is full; nothing was written."""

    outline = "no space is left where the log is kept"


class LogReadOnly(LogError):
    """The log takes no writes; nothing was written."""

    outline = "the log is read-only"


class RecordTooLarge(LogError):
    """The log refuses a record of this size; nothing was written."""


class LogCompacted(LogError):
    """Records after the requested offset may have been dropped unseen: read again from the start."""


class LogReplaced(LogCompacted):
    """Another log has taken the name of the one that was read: read again from the start."""


class Conflict(Exception):
    """The log has grown beyond the offset up to which the writer had read; nothing was written."""


@dataclass(frozen=True, slots=True)
class Record:
    """A record to append: key bytes, and value bytes or None for a tombstone.

    `timestamp` is the time that the log gives it, in milliseconds since the epoch, if that is not the time of the
    append: a copy of a record is as old as the record. A log that gives times of its own ignores it.
    """

    key: bytes
    value: bytes | None
    timestamp: int | None = None

    def time(self, now: int) -> int:
        """Return the time of the record if it is appended now; a copied one may not lie in the future."""
        return now if self.timestamp is None else min(self.timestamp, now)


class Entry(NamedTuple):
    """A record in the log, with its offset and its timestamp in milliseconds since the epoch."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None


@dataclass(frozen=True, slots=True)
class LogStatus:
    """The status of a log, from memory."""

    backend: str
    holds_pen: bool | None = None
    """Whether this node has the pen; None for a log without a pen."""
    foreign_records: int = 0
    """How many records writers without the pen have written while this node had it."""
    pen_taken: int = 0
    """How often this node has taken the pen."""
    foreign_newest: tuple[int, ...] = ()
    """The offsets of the newest foreign records."""
    pen_taking_s: float = 0.0
    """How long this node needed to take the pen the last time, in seconds."""
    signature: tuple[int, bytes, bytes, int] | None = None
    """The newest signature of a holder of the pen that this node has read; `open_log` takes it with a State."""


class Log(Protocol):
    """The interface of every log. Calls block, are thread-safe, and raise `LogError` on failure."""

    def read(self, after: int) -> Iterator[Entry]:
        """Yield the records after an offset, in order, up to the end known when the call began (or later).

        A read includes every record whose `append` had returned, on any node, before the read began. It does not wait
        for an append that is still running.

        Args:
            after: The offset of the last record that the reader has, or `START`.

        Raises:
            LogCompacted: Records that the reader has not seen may have been dropped.
            LogError: The log cannot be read.
        """
        ...

    def unchanged(self, after: int) -> bool:
        """Return whether a read after an offset would certainly yield nothing; False means that this is unknown.

        An event loop may call this: it takes microseconds, waits for nothing and never raises. A log that cannot tell
        so quickly returns False, and so does one that fails: only a read reports failures.
        """
        ...

    async def ends_at(self, read_to: Callable[[], int]) -> bool:
        """Ask whether the log certainly holds nothing after a reader's offset; False means that this is unknown.

        The question is asked after this call began. It never raises and takes less than a second: only a read reports
        failures. A log that has no quicker way than a read returns False at once. Unlike the others, this method
        belongs to an event loop, one at a time.

        Args:
            read_to: Returns the offset of the last record that the reader has; called when the answer is there.
        """
        ...

    def note_append(self, last: int) -> None:
        """Note the offset at which an append of another process of this node ended, so that `ends_at` knows it."""
        ...

    def append(self, after: int, records: Sequence[Record]) -> Sequence[Entry]:
        """Append all records or none, and return them with their offsets and timestamps.

        Args:
            after: The offset of the last record that the writer has read, or `START`.
            records: At least one record; they get consecutive offsets.

        Raises:
            Conflict: There is a record after `after`; nothing was written.
            RecordTooLarge: The log refuses a record; nothing was written.
            LogTimeout: No answer in time; the records may or may not have been written.
            LogError: Any other failure; nothing was written.
            ValueError: `records` is empty.
        """
        ...

    def end(self) -> int:
        """Return the offset of the last record, or `START` if the log is empty."""
        ...

    def check_writable(self) -> None:
        """Check that the log takes writes, without writing a record of the State; do nothing if the log cannot tell.

        Raises:
            LogReadOnly: The log takes no writes.
            LogError: The log cannot be reached.
        """
        ...

    def holder(self) -> str | None:
        """Return the base URL of the node to which writes should be forwarded, or None to write here.

        This is only a hint: the other node may have lost the right to write.
        """
        ...

    def status(self) -> LogStatus:
        """Return the status of the log, without any request."""
        ...

    def close(self) -> None:
        """Close connections and stop threads; a second call does nothing."""
        ...


class MemoryLog:
    """A log in memory: a list of entries whose index is their offset."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._lock = threading.Lock()

    def read(self, after: int) -> Iterator[Entry]:
        """Yield the records after an offset; see `Log.read`."""
        return iter(self._entries[max(after, START) + 1 :])

    def unchanged(self, after: int) -> bool:
        """Return whether no record follows an offset; see `Log.unchanged`."""
        return after == self.end()

    async def ends_at(self, _read_to: Callable[[], int]) -> bool:
        """Return False: `unchanged` or a read tells; see `Log.ends_at`."""
        return False

    def note_append(self, last: int) -> None:
        """Do nothing; see `Log.note_append`."""

    def append(self, after: int, records: Sequence[Record]) -> Sequence[Entry]:
        """Append all records or none; see `Log.append`."""
        if not records:
            raise ValueError("an append needs at least one record")
        now = time.time_ns() // 1_000_000
        with self._lock:
            if after != len(self._entries) - 1:
                raise Conflict
            added = [
                Entry(offset, record.time(now), record.key, record.value)
                for offset, record in enumerate(records, start=after + 1)
            ]
            # Extending a list is atomic under the interpreter lock: a reader sees all of the entries or none.
            self._entries += added
        return added

    def end(self) -> int:
        """Return the offset of the last record, or `START` if the log is empty."""
        return len(self._entries) - 1

    def check_writable(self) -> None:
        """Do nothing: memory takes every write."""

    def holder(self) -> str | None:
        """Return None: only this process can write."""
        return None

    def status(self) -> LogStatus:
        """Return the kind of log."""
        return LogStatus("memory")

    def close(self) -> None:
        """Do nothing: there are no connections."""
