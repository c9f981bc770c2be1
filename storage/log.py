"""The Log protocol: an ordered sequence of keyed records that refuses a write made on stale knowledge.

Compare-and-append is the whole concurrency model. A writer names the offset up to which it has read (`after`);
when the log has moved on, nothing is written and `Conflict` tells the writer to read on and decide again. Nobody is
elected, and no decision made on an old State can land.

Offsets grow and may have gaps. -1 stands for "before the first record".

Rules of this file: protocol and values only; what a key or a value means is `records.py`, what they add up to is
`state.py`.
"""

from collections.abc import Iterator, Sequence
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
    "Record",
    "RecordTooLarge",
]

START = -1


class LogError(Exception):
    """The log could not be read or written. Only `LogTimeout` leaves open whether an append has written something.

    The message is for the operator: it may name addresses and files. `outline` is for everybody.
    """

    outline: ClassVar[str] = "the log failed or did not answer"


class LogTimeout(LogError):
    """The log did not answer in time; the fate of a write is unknown."""

    outline = "the log did not answer in time"


class LogFull(LogError):
    """No space is left where the log is kept; nothing was written."""

    outline = "no space is left where the log is kept"


class LogReadOnly(LogError):
    """The log takes no writes; nothing was written."""

    outline = "the log is read-only"


class RecordTooLarge(LogError):
    """The log refuses a record of this size; nothing was written."""


class LogCompacted(LogError):
    """Records after the offset asked for have been dropped since they were last read: read again from the start."""


class LogReplaced(LogCompacted):
    """Another log stands under the name of the one that was read: read again from the start."""


class Conflict(Exception):
    """The log's end is no longer the offset the writer had read to; nothing was written."""


@dataclass(frozen=True, slots=True)
class Record:
    """What a writer appends: key bytes, and value bytes or None for a tombstone."""

    key: bytes
    value: bytes | None


class Entry(NamedTuple):
    """A record as the log holds it: with its offset, and its timestamp in milliseconds since the epoch."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None


@dataclass(frozen=True, slots=True)
class LogStatus:
    """What a log tells of itself, from memory."""

    backend: str
    holds_pen: bool | None = None
    """Whether this node has the pen; None for a log without one."""
    foreign_records: int = 0
    """Records of writers without the pen that came while this node had it."""


class Log(Protocol):
    """What every log offers. All calls block, may come from several threads, and raise `LogError` on failure."""

    def read(self, after: int) -> Iterator[Entry]:
        """Yield the records after an offset, in order, up to the end known when the call began (or later).

        Everything that any node's `append` had returned before this call began is included.
        A read does not wait for an append that is under way.

        Raises:
            LogCompacted: a compaction since has dropped records that the reader has not seen.
        """
        ...

    def append(self, after: int, records: Sequence[Record]) -> Sequence[Entry]:
        """Append all records or none, and return them as the log holds them.

        Args:
            after: the offset of the last record that the writer has read, `START` for none.
            records: at least one; they take consecutive places in the log.

        Raises:
            Conflict: a record after `after` exists; nothing was written.
            RecordTooLarge: the log refuses a record; nothing was written.
            LogTimeout: no answer in time; the records may or may not have been written.
            LogError: any other failure; nothing was written.
        """
        ...

    def end(self) -> int:
        """Return the offset of the last record, `START` when there is none."""
        ...

    def check_writable(self) -> None:
        """Look whether the log takes writes, without writing anything; a log that cannot tell does nothing.

        Raises:
            LogReadOnly: it takes none.
        """
        ...

    def holder(self) -> str | None:
        """Return the base URL of the other node that holds the right to write, if writes had better go there.

        None when this node may as well write itself: a hint, never a promise.
        """
        ...

    def status(self) -> LogStatus:
        """Return what the log knows of itself, without asking anybody."""
        ...

    def close(self) -> None:
        """Give up connections and threads; a second call does nothing."""
        ...
