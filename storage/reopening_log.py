"""A log that is reopened when another log has replaced it, such as a topic that was deleted and created again.

Offsets keep growing: those of the k-th log (from 0) begin at k times `_SPAN`. So an offset shows to which log it
belongs, and no reader or writer can continue from the end of another log.
"""

import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any

from strata.storage.log import START, Conflict, Entry, Log, LogReplaced, LogStatus, Record

__all__ = ["CLOSING", "ReopeningLog"]

CLOSING = "strata-closing"
"""The name of the threads that close logs that were replaced."""

_SPAN = 1 << 48


class ReopeningLog:
    """The newest log under a name.

    Args:
        opened: Opens the log; its argument says whether the log must exist.
        must_exist: The argument for the first opening; later ones require that the log exists.

    Raises:
        LogError: The log cannot be opened.
    """

    def __init__(self, opened: Callable[[bool], Log], *, must_exist: bool) -> None:
        self._opened = opened
        self._lock = threading.Lock()
        self._current = (opened(must_exist), 0)
        self._replaced = False

    def read(self, after: int) -> Iterator[Entry]:
        """Yield the records after an offset; see `Log.read`."""
        if after == START:
            self._reopen_if_replaced()
        log, base = self._current
        if START < after < base:
            raise LogReplaced("another log took the place of this one; this node reads it from the start")
        try:
            entries = log.read(after if after == START else after - base)
            yield from entries if base == 0 else (entry._replace(offset=base + entry.offset) for entry in entries)
        except LogReplaced:
            self._note_replaced(log)
            raise

    def unchanged(self, after: int) -> bool:
        """Return whether certainly no record follows an offset; see `Log.unchanged`."""
        log, base = self._current
        return after >= base and log.unchanged(after - base)

    def ends_at(self, read_to: Callable[[], int]) -> Coroutine[Any, Any, bool]:
        """Ask whether certainly no record follows a reader's offset; see `Log.ends_at`."""
        log, base = self._current
        if base == 0:
            return log.ends_at(read_to)
        # An offset of an older log lies below all of this one.
        return log.ends_at(lambda: max(START - 1, read_to() - base))

    def note_append(self, last: int) -> None:
        """Note where an append of another process of this node ended; see `Log.note_append`."""
        log, base = self._current
        if last >= base:
            log.note_append(last - base)

    def append(self, after: int, records: Sequence[Record]) -> Sequence[Entry]:
        """Append all records or none; see `Log.append`."""
        log, base = self._current
        if START < after < base:
            raise Conflict
        try:
            written = log.append(after if after == START else after - base, records)
        except LogReplaced as error:
            self._note_replaced(log)
            raise Conflict from error
        return written if base == 0 else [entry._replace(offset=base + entry.offset) for entry in written]

    def end(self) -> int:
        """Return the offset of the last record, or `START` if the log is empty."""
        log, base = self._current
        end = log.end()
        return end if end == START else base + end

    def check_writable(self) -> None:
        """Check that the log takes writes; see `Log.check_writable`."""
        self._current[0].check_writable()

    def holder(self) -> str | None:
        """Return the URL of the other node that holds the right to write; see `Log.holder`."""
        return self._current[0].holder()

    def status(self) -> LogStatus:
        """Return the status of the log."""
        return self._current[0].status()

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            self._current[0].close()

    def _note_replaced(self, log: Log) -> None:
        with self._lock:
            self._replaced = self._replaced or log is self._current[0]

    def _reopen_if_replaced(self) -> None:
        with self._lock:
            if not self._replaced:
                return
            old, base = self._current
            # Never create the log here: it would be empty, and whether to create it is up to those who deleted it.
            self._current, self._replaced = (self._opened(True), base + _SPAN), False
        # Closing may have to wait for a call that is still running.
        threading.Thread(target=old.close, name=CLOSING, daemon=True).start()
