"""The read lease: until when the holder of the pen may answer from memory (docs/decisions/0030).

The lease is a few numbers in memory that the processes of a node share: until when it lasts, for which log, and for
which offset. The process that holds the pen writes them; all of them read.

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

_CELLS = 3
_UNTIL, _LOG, _OFFSET = range(_CELLS)
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

    def covers(self, log: int, offset: int) -> bool:
        """Return whether a State at an offset of a log is the newest, at some moment during this call."""
        cells = self._cells
        # In this order. While the lease lasts, nothing beyond its offset is committed; a new lease for another offset
        # may be written between these lines, and is then for a State that this process does not have.
        until = cells[_UNTIL]
        return self.now() < until and cells[_LOG] == log and cells[_OFFSET] == offset

    def grant(self, log: int, offset: int, *, asked: float, revocations: int) -> bool:
        """Begin or prolong the lease, unless it was revoked since the question.

        Args:
            log: the identity of the log, less than 2^53.
            offset: the offset of the State that the answer has shown to be the newest.
            asked: when the question was asked, or earlier, on the clock of this lease.
            revocations: `revocations` as it was then, or earlier.
        """
        with self._lock:
            if revocations != self._revocations or self.seconds <= 0:
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
