"""The read lease: until when the holder of the pen may answer from memory (docs/decisions/0030).

The lease is a few numbers in memory that the processes of a node share: until when it lasts, for which log, and for
which offset. The process that holds the pen writes them; all of them read. A fourth number says until when the node may
have no lease, because something writes that does not wait for leases; any process may write it, and it outlives each.

Rules of this file: time is that of a clock that goes on while the machine is suspended. A lease begins when a question
was asked, never when its answer came. Once `revoke` has returned, no later look at the lease
finds it in force, and no question asked before grants it again.
"""

import mmap
import threading
import time
from collections.abc import Callable

__all__ = ["DRIFT", "LONGEST_LEASE_S", "ReadLease", "lease_cells"]

LONGEST_LEASE_S = 1.0
DRIFT = 0.05
"""By how much the clocks of two nodes may differ in rate, as a share."""

_CELLS = 4
_UNTIL, _LOG, _OFFSET, _SUSPENDED = range(_CELLS)
_BOOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def lease_cells() -> "memoryview[float]":
    """Return cells that the processes that are forked from this one share."""
    return memoryview(mmap.mmap(-1, 8 * _CELLS)).cast("d")


def _now() -> float:
    return time.clock_gettime(_BOOT)


class ReadLease:
    """The lease of one node. Thread-safe.

    Args:
        seconds: how long a lease lasts; 0 for none.
        cells: the numbers that the processes of a node share; by default those of this process alone.
        now: the clock, in seconds.
    """

    def __init__(
        self, seconds: float = 0.0, cells: "memoryview[float] | None" = None, now: Callable[[], float] = _now
    ) -> None:
        self.seconds = seconds
        self.now = now
        self._cells = lease_cells() if cells is None else cells
        self._revocations = 0
        self._lock = threading.Lock()

    @property
    def revocations(self) -> int:
        """How often the lease was revoked; read it before asking a question."""
        return self._revocations

    @property
    def is_suspended(self) -> bool:
        """Whether the node may have no lease at the moment."""
        return self.now() < self._cells[_SUSPENDED]

    def covers(self, log: int, offset: int) -> bool:
        """Return whether a State at an offset of a log is the newest, at some moment during this call."""
        cells = self._cells
        # In this order. While the lease lasts, nothing beyond its offset is committed; a new lease for another offset
        # may be written between these lines, and is then for a State that this process does not have.
        until, now = cells[_UNTIL], self.now()
        return cells[_SUSPENDED] <= now < until and cells[_LOG] == log and cells[_OFFSET] == offset

    def grant(self, log: int, offset: int, *, asked: float, revocations: int) -> bool:
        """Begin or prolong the lease, unless it was revoked since the question.

        Args:
            log: the identity of the log, less than 2^53.
            offset: the offset of the State that the answer has shown to be the newest.
            asked: when the question was asked, or earlier, on the clock of this lease.
            revocations: `revocations` as it was then, or earlier.
        """
        with self._lock:
            if revocations != self._revocations or self.seconds <= 0 or self.is_suspended:
                return False
            cells = self._cells
            if (cells[_LOG], cells[_OFFSET]) != (log, offset):
                cells[_UNTIL] = 0.0
                cells[_LOG], cells[_OFFSET] = log, offset
            cells[_UNTIL] = asked + self.seconds
            return True

    def revoke(self) -> None:
        """End the lease for all processes of the node."""
        with self._lock:
            self._revocations += 1
            self._cells[_UNTIL] = 0.0

    def suspend(self, seconds: float) -> bool:
        """End the lease, and grant none for some time, in all processes of the node.

        Args:
            seconds: from now on; an earlier suspension that lasts longer stays.

        Returns:
            Whether the node might have had a lease without this call.
        """
        cells, now = self._cells, self.now()
        with self._lock:
            is_news = self.seconds > 0 and cells[_SUSPENDED] <= now
            cells[_SUSPENDED] = max(cells[_SUSPENDED], now + seconds)
            return is_news
