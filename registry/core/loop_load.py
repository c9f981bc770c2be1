"""How busy the thread of an event loop is.

Linux counts for each thread how long it has run and how long it has waited for a core. A thread that does one or the
other nearly all the time has no time left: what else it is given delays the requests that it already has.
"""

import math
import time
from collections.abc import Callable
from pathlib import Path

__all__ = ["LoopLoad"]

_WINDOW_S = 0.05  # the system updates the counters of a running thread every few milliseconds
_COUNTERS = Path("/proc/thread-self/schedstat")


class LoopLoad:
    """The load of the thread that asks for it.

    Args:
        counters: the file of the system's counters for the calling thread.
        clock: returns the time in seconds.
    """

    def __init__(self, counters: Path = _COUNTERS, clock: Callable[[], float] = time.monotonic) -> None:
        self._counters, self._clock = counters, clock
        self._share, self._busy_s, self._measured_at = 0.0, 0.0, -math.inf

    def share(self) -> float:
        """Return the part of the recent time in which the thread ran or waited for a core, from 0 to 1.

        It covers the time between two calls that were at least 50 ms apart, and is 0 before the second of these, or if
        the system does not say.
        """
        now = self._clock()
        elapsed = now - self._measured_at
        if elapsed >= _WINDOW_S:
            busy_s = self._read()
            self._share = min(1.0, (busy_s - self._busy_s) / elapsed)
            self._busy_s, self._measured_at = busy_s, now
        return self._share

    def _read(self) -> float:
        """Return for how long the thread has run or waited, in seconds."""
        try:
            ran, waited, _ = self._counters.read_bytes().split()
        except (OSError, ValueError):
            return 0.0
        return (int(ran) + int(waited)) / 1e9
