"""The main figures of a node over the last half hour, sampled in memory: for people who look at its page.

What is kept for longer is the task of a monitoring system, which reads `/metrics`.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from strata.registry.core.metric_table import CLASSES
from strata.registry.core.request_numbers import counted_routes, rows
from strata.registry.core.tally import Cells

__all__ = ["Sample", "Trends"]

_EVERY_S = 5.0
_MOST = 360
_SERVER_ERRORS = CLASSES.index("5xx")


class Sample(NamedTuple):
    """What was counted up to a moment, and how things were then."""

    at: float  # seconds since the epoch
    requests: float
    errors: float  # answers with a status of 500 or above
    seconds: float  # the time of all requests
    offset: int
    behind: int
    connections: int


class Trends:
    """Samples of the figures of all workers of a node.

    Args:
        cells: the cells in which each worker counts.
        progress: returns the offset read, and how many offsets the log is ahead.
        connections: returns how many connections the node has.
    """

    def __init__(
        self, cells: Sequence[Cells], progress: Callable[[], tuple[int, int]], connections: Callable[[], int]
    ) -> None:
        self._cells, self._progress, self._connections = cells, progress, connections
        self._samples: deque[Sample] = deque(maxlen=_MOST)

    @property
    def samples(self) -> list[Sample]:
        """The samples, oldest first."""
        return list(self._samples)

    async def watch(self) -> None:
        """Take a sample now and every five seconds, until cancelled."""
        while True:
            self.sample()
            await asyncio.sleep(_EVERY_S)

    def sample(self) -> None:
        """Take a sample."""
        requests = errors = seconds = 0.0
        for route in counted_routes(self._cells):
            for at, row in enumerate(rows(self._cells, route) or ()):
                requests += row.requests
                seconds += row.seconds
                errors += row.requests if at == _SERVER_ERRORS else 0
        sample = Sample(time.time(), requests, errors, seconds, *self._progress(), self._connections())
        self._samples.append(sample)
