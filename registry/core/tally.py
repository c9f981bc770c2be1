"""The numbers of one process: a row of cells, which all processes of a node can read.

Cells are 8-byte numbers in memory that the workers share (`node/board.py`), each with one writing process. So one
worker can answer for the node, and what a worker has counted outlives it: counters never go back. prometheus-client's
own counters take a lock and a look-up per increment, and its files for several processes are slower still; one cell
costs 50 ns.
"""

import itertools
import math
import threading
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import perf_counter
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

from strata.registry.core.metric_table import CACHES, METRICS, Kind, Metric

__all__ = [
    "CELLS",
    "COPY_STEPS",
    "FACTS",
    "FAMILIES",
    "GROWING",
    "PLACES",
    "ROOM",
    "Cells",
    "Family",
    "Tally",
    "private_cells",
    "series",
    "totals",
]

COPY_STEPS: Final = ("pages of schemas", "config", "mode", "encryption keys", "associations")
"""The steps of reading a service, with which the titles of their progress end; the fact `copy_step` counts from 1."""

Cells: TypeAlias = "memoryview[float]"


class Family(NamedTuple):
    """A metric in cells, and the first cell of each combination of its labels' values."""

    metric: Metric
    cells: dict[tuple[str, ...], int]


def _families() -> tuple[list[Family], int]:
    place, families = 0, []
    for metric in METRICS:
        if metric.in_cells:
            size = len(metric.bounds) + 2 if metric.bounds else 1  # buckets, what is above them, and the sum
            cells = {}
            for values in itertools.product(*metric.labels.values()):
                cells[values] = place
                place += size
            families.append(Family(metric, cells))
    return families, place


FAMILIES, CELLS = _families()
PLACES: Final = {(family.metric.name, *values): cell for family in FAMILIES for values, cell in family.cells.items()}
"""The first cell of each series, by the name of the metric and the values of its labels."""
_COLLECTIONS: Final = ("collections", "collected", "uncollectable")
GROWING: Final = ("cpu_s", "pen_taken", *(f"gc_{what}_{generation}" for what in _COLLECTIONS for generation in "012"))
"""The facts that a process adds to what the processes before it in this place have counted."""
FACTS: Final = {
    name: CELLS + place
    for place, name in enumerate(
        [
            *("pid", "offset", "end", "read_at", "foreign", "holds_pen", "pen_taking_s"),
            *("auth_in_force", "copied_at", "copy_step", "copy_done", "copy_total", "write_failed"),
            *GROWING,
            *(f"{cache}_{what}" for cache in CACHES for what in ("bytes", "entries")),
        ]
    )
}
"""The cells of what each process says about itself now and then; each merges in its way."""
ROOM: Final = CELLS + len(FACTS)
"""How many cells come before those of requests."""
_BOUNDS: Final = {family.metric.name: family.metric.bounds for family in FAMILIES}


def private_cells() -> Cells:
    """Return the cells of a process alone."""
    return memoryview(bytearray(8 << 16)).cast("d")


class Tally:
    """What one process counts. Any thread may count: it holds a lock for a moment.

    Args:
        cells: the cells; by default those of a process alone.
    """

    def __init__(self, cells: "Cells | None" = None) -> None:
        self.cells = private_cells() if cells is None else cells
        self._lock = threading.Lock()

    def add(self, name: str, *labels: str, amount: float = 1) -> None:
        """Add to a counter or gauge."""
        place = PLACES[name, *labels]
        with self._lock:
            self.cells[place] += amount

    def observe(self, name: str, *labels: str, value: float) -> None:
        """Count a value in a histogram."""
        cells, place, bounds = self.cells, PLACES[name, *labels], _BOUNDS[name]
        with self._lock:
            cells[place + bisect_left(bounds, value)] += 1
            cells[place + len(bounds) + 1] += value

    @contextmanager
    def timing(self, name: str, outcomes: Mapping[type[BaseException], str] = MappingProxyType({})) -> Iterator[None]:
        """Count the duration of a block in a histogram, with the outcome `ok`, `failed`, or that of an exception."""
        began, outcome = perf_counter(), "ok"
        try:
            yield
        except BaseException as error:
            outcome = outcomes.get(type(error), "failed")
            raise
        finally:
            self.observe(name, outcome, value=perf_counter() - began)

    def value(self, name: str, *labels: str) -> float:
        """Return the number in a cell."""
        return self.cells[PLACES[name, *labels]]


def totals(all_cells: Sequence[Cells]) -> list[float]:
    """Return the sums of the cells of several processes."""
    return [math.fsum(column) for column in zip(*(cells[:CELLS] for cells in all_cells), strict=True)]


def series(numbers: Sequence[float], family: Family) -> Iterator[tuple[tuple[str, ...], Sequence[float]]]:
    """Yield the labels' values and the numbers of each series of a metric: one, or buckets and their sum."""
    size = len(family.metric.bounds) + 2 if family.metric.kind is Kind.HISTOGRAM else 1
    for values, place in family.cells.items():
        yield values, numbers[place : place + size]
