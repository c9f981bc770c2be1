"""Rates, averages, maxima and percentiles of the last minute, for the gauges with Confluent's names.

They cover the present window of 30 s and the previous one, as in Kafka's metrics. Each worker remembers the counts of
the whole node at the start of both, so any of them can answer.
"""

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from strata.registry.core.metric_table import CLASSES
from strata.registry.core.request_numbers import BOUNDS, WINDOW_S, Row, Tops, counted_routes, rows, tops
from strata.registry.core.tally import Cells

__all__ = ["Sample", "Windows"]

_Counts = dict[int, list[Row]]
_EMPTY = Row((0.0,) * (len(BOUNDS) + 1), 0.0, 0.0, 0.0)
_NO_TOPS = Tops(0.0, 0.0, 0.0)
_CLEAR = [_EMPTY] * len(CLASSES)


@dataclass(slots=True)
class Sample:
    """The requests of one or several routes in the last windows; what has no value is NaN.

    Attributes:
        elapsed_s: the length of the windows so far.
        rows: the counts of each route and class of status.
        top: the maxima.
        ever: the number of requests since the start.
    """

    elapsed_s: float
    rows: list[list[Row]] = field(default_factory=list)
    top: Tops = _NO_TOPS
    ever: float = 0.0

    def counts(self) -> list[float]:
        """Return the number of requests of each class of status."""
        return [sum(row.requests for row in column) for column in zip(*self.rows, strict=True)] or [0.0] * len(CLASSES)

    def total(self, name: str) -> float:
        """Return the sum of one of the fields of `Row`."""
        return math.fsum(getattr(row, name) for route_rows in self.rows for row in route_rows)

    def rate(self, amount: float) -> float:
        """Return an amount per second."""
        return amount / self.elapsed_s

    def percentile(self, share: float) -> float:
        """Return the duration that a share of the requests did not exceed, in seconds, by linear interpolation."""
        buckets = [
            sum(row.buckets[at] for route_rows in self.rows for row in route_rows) for at in range(len(BOUNDS) + 1)
        ]
        wanted = share * sum(buckets)
        if not wanted:
            return math.nan
        low, below = 0.0, 0.0
        for bound, count in zip((*BOUNDS, self.top.seconds), buckets, strict=True):
            high = max(low, min(bound, self.top.seconds))
            if count and below + count >= wanted:
                return low + (high - low) * (wanted - below) / count
            low, below = high, below + count
        return self.top.seconds


class Windows:
    """The counts at the start of the last two windows.

    Args:
        cells: returns the cells of all workers.
        connections: returns how many connections were ever opened, and how many are open.
        now: the monotonic clock, in seconds.
    """

    def __init__(
        self,
        cells: Callable[[], Sequence[Cells]],
        connections: Callable[[], tuple[float, float]],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cells, self._connections, self._now = cells, connections, now
        self._starts = [self._start()]

    def turn(self) -> None:
        """Begin a window."""
        self._starts = [self._starts[-1], self._start()]

    def _start(self) -> tuple[float, _Counts, tuple[float, float]]:
        return self._now(), self._counts(), self._connections()

    def ever(self, routes: Iterable[int]) -> list[float]:
        """Return the number of requests of some routes since the start, by class of status."""
        cells = self._cells()
        requests = [
            [row.requests for row in route_rows] for route in routes if (route_rows := rows(cells, route)) is not None
        ]
        return [sum(column) for column in zip(*requests, strict=True)] or [0.0] * len(CLASSES)

    def connections(self) -> tuple[float, float, float]:
        """Return how many connections are open, and how many were opened and closed per second."""
        began, _, (opened_before, open_before) = self._starts[0]
        elapsed = max(self._now() - began, WINDOW_S)
        opened, now_open = self._connections()
        added = opened - opened_before
        return now_open, added / elapsed, (added - (now_open - open_before)) / elapsed

    def samples(self, groups: Iterable[Sequence[int]]) -> list[Sample]:
        """Return a sample of each group of routes."""
        began, before, _ = self._starts[0]
        elapsed = max(self._now() - began, WINDOW_S)  # as long as there is less, a rate is that of a whole window
        counts, cells = self._counts(), self._cells()
        samples = []
        for group in groups:
            sample = Sample(elapsed)
            for route in group:
                if (now := counts.get(route)) is not None:
                    pairs = zip(now, before.get(route, _CLEAR), strict=True)
                    sample.rows.append([_since(row, old) for row, old in pairs])
                    sample.ever += sum(row.requests for row in now)
                    top = tops(cells, route)
                    sample.top = Tops(*map(max, zip(sample.top, top, strict=True)))
            samples.append(sample)
        return samples

    def _counts(self) -> _Counts:
        cells = self._cells()
        counted = ((route, rows(cells, route)) for route in counted_routes(cells))
        return {route: route_rows for route, route_rows in counted if route_rows is not None}


def _since(now: Row, before: Row) -> Row:
    buckets = tuple(map(float.__sub__, now.buckets, before.buckets))
    return Row(buckets, now.seconds - before.seconds, now.received - before.received, now.sent - before.sent)
