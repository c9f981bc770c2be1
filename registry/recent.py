"""The newest records that this node has read, for people: without their values, which may be large."""

import threading
from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from strata.storage.log import Entry

__all__ = ["RecentRecord", "RecentRecords"]

_MOST = 500
_LONGEST_KEY = 2_000


class RecentRecord(NamedTuple):
    """A record: its offset, its time in milliseconds, the beginning of its key, the size of its value in bytes."""

    offset: int
    timestamp: int
    key: bytes | None
    size: int | None  # None for a tombstone


class RecentRecords:
    """Keeps the newest records; any thread may add some."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: tuple[RecentRecord, ...] = ()

    def passing(self, entries: Iterable[Entry]) -> Iterator[Entry]:
        """Yield entries, and keep the newest once all have passed."""
        newest: deque[Entry] = deque(maxlen=_MOST)
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
                self._kept = (*self._kept, *new)[-_MOST:]

    def newest(self, count: int) -> tuple[RecentRecord, ...]:
        """Return the newest records, newest first."""
        return self._kept[: -count - 1 : -1]
