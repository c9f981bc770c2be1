"""A log in memory, for tests and for trying out the registry. It ends with the process."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence

from strata.storage.log import START, Conflict, Entry, LogStatus, Record

__all__ = ["MemoryLog"]


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
