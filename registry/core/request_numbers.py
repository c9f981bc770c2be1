"""Counts requests by route and class of status: the only counting on the path of a hot read, so it must be cheap.

Each route has a row of cells for each class: a histogram of durations finer than the one that is exported, so that the
percentiles of a window are close, and three sums. Only the event loop of the process counts here, so there is no lock.
A further cell of each route says whether it has any requests: readers leave the memory of all other rows untouched.
"""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from time import monotonic
from typing import Final, NamedTuple

from strata.registry.core.metric_table import CLASSES, SECONDS
from strata.registry.core.tally import PLACES, ROOM, Cells, Tally

__all__ = ["BOUNDS", "ROUTES", "WINDOW_S", "Requests", "Row", "Tops", "counted_routes", "rows", "tops"]

BOUNDS: Final = tuple(sorted({*SECONDS, *(low + (high - low) / 2 for low, high in pairwise(SECONDS))}))
"""The bounds of the histogram in a row, in seconds."""
ROUTES: Final = 256
"""The most routes, including the place of requests without one."""
WINDOW_S: Final = 30.0
"""The length of a window of the gauges with Confluent's names, in seconds; the present and the previous one count."""
_SECONDS, _RECEIVED, _SENT = (len(BOUNDS) + 1 + place for place in range(3))
_ROW: Final = len(BOUNDS) + 4
_TOPS: Final = ROOM + ROUTES * len(CLASSES) * _ROW  # three maxima for each route, in each of two windows
_TOP: Final = 6
_COUNTED: Final = _TOPS + ROUTES * _TOP  # whether a route has requests
_IN_FLIGHT: Final = PLACES["strata_requests_in_flight",]


class Row(NamedTuple):
    """What was counted of one route and class: requests by bucket, seconds, bytes of bodies in and out."""

    buckets: tuple[float, ...]
    seconds: float
    received: float
    sent: float

    @property
    def requests(self) -> float:
        """The number of requests."""
        return sum(self.buckets)


class Tops(NamedTuple):
    """The largest of the last two windows: duration in seconds, body of a request and of an answer in bytes."""

    seconds: float
    received: float
    sent: float


class Requests:
    """Counts the requests of one process.

    Args:
        tally: the numbers of the process.
    """

    def __init__(self, tally: Tally) -> None:
        self._cells = tally.cells
        self._cells[_IN_FLIGHT] = 0.0  # of a process that this one replaces
        self._window = monotonic() // WINDOW_S
        self._half = int(self._window) % 2

    def begin(self, _exchange: object = None) -> None:
        """Count a request that has arrived."""
        self._cells[_IN_FLIGHT] += 1

    def end(self, route: int, status: int, seconds: float, received: int, sent: int) -> None:
        """Count a request that has its answer, or whose client has left.

        Args:
            route: the number of the route.
            status: the status of the answer; 0 if there is none.
            seconds: its duration.
            received: the bytes of its body.
            sent: the bytes of the answer's body.
        """
        cells = self._cells
        cells[_IN_FLIGHT] -= 1
        row = ROOM + (route * len(CLASSES) + status // 100) * _ROW
        cells[row + bisect_left(BOUNDS, seconds)] += 1
        cells[row + _SECONDS] += seconds
        cells[row + _SENT] += sent
        cells[_COUNTED + route] = 1.0
        top = _TOPS + route * _TOP + self._half
        if seconds > cells[top]:
            cells[top] = seconds
        if sent > cells[top + 4]:
            cells[top + 4] = sent
        if received:
            cells[row + _RECEIVED] += received
            if received > cells[top + 2]:
                cells[top + 2] = received

    def turn(self) -> float:
        """Begin the present window if it has not begun, and return the seconds until the next one."""
        window, into = divmod(monotonic(), WINDOW_S)
        if window != self._window:
            self._half = int(window) % 2
            over = (self._half,) if window == self._window + 1 else (0, 1)
            for top in (place for half in over for place in range(_TOPS + half, _COUNTED, 2)):
                self._cells[top] = 0.0
            self._window = window
        return WINDOW_S - into


def counted_routes(all_cells: Sequence[Cells]) -> list[int]:
    """Return the routes of which something was counted."""
    flags = [cells[_COUNTED : _COUNTED + ROUTES].tolist() for cells in all_cells]
    return [route for route, counted in enumerate(zip(*flags, strict=True)) if any(counted)]


def rows(all_cells: Sequence[Cells], route: int) -> list[Row] | None:
    """Return the sums over processes of what was counted of a route, by class of status; None if nothing was."""
    start = ROOM + route * len(CLASSES) * _ROW
    end = start + len(CLASSES) * _ROW
    routes = [cells[start:end].tolist() for cells in all_cells if cells[_COUNTED + route]]
    if not routes:
        return None
    sums = [sum(column) for column in zip(*routes, strict=True)]
    return [Row(tuple(sums[at : at + _SECONDS]), *sums[at + _SECONDS : at + _ROW]) for at in range(0, len(sums), _ROW)]


def tops(all_cells: Sequence[Cells], route: int) -> Tops:
    """Return the largest of a route in the last two windows, over processes."""
    start = _TOPS + route * _TOP
    highest = [max(max(cells[start + at], cells[start + at + 1]) for cells in all_cells) for at in (0, 2, 4)]
    return Tops(*highest)
