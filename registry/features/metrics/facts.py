"""What each process of a node says about itself now and then, so that any of them can answer for all.

Facts of the moment are cells that each process overwrites. Counts that others keep, such as those of the caches or the
CPU time of the process, are added to cells, so that they never go back when a worker is replaced.
"""

import asyncio
import gc
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Protocol

from strata.registry.core.request_numbers import Requests
from strata.registry.core.tally import FACTS, GROWING, Cells, Tally
from strata.registry.core.writer import Writer
from strata.registry.node.health import Health

__all__ = ["Counted", "CountedCache", "Facts", "fact"]

_EVERY_S = 1.0


class CountedCache(Protocol):
    """A cache with its counts."""

    @property
    def hits(self) -> int:
        """How many look-ups found something."""

    @property
    def misses(self) -> int:
        """How many look-ups found nothing."""

    @property
    def evictions(self) -> int:
        """How many entries gave way to others."""

    @property
    def size(self) -> int:
        """The bytes of all entries."""

    @property
    def entries(self) -> int:
        """The number of entries."""


Counted = Mapping[tuple[str, ...], Callable[[], float]]
"""Counts that others keep, by the name of their metric and the values of its labels."""


class Facts:
    """The facts of one process.

    Args:
        tally: the numbers of the process.
        requests: its counts of requests, whose windows turn here.
        writer: its writer.
        health: its health.
        caches: its caches, by name.
        counted: further counts.
        facts: further facts.
    """

    def __init__(
        self,
        tally: Tally,
        requests: Requests,
        writer: Writer,
        health: Health,
        caches: Mapping[str, CountedCache],
        counted: Counted,
        facts: Mapping[str, Callable[[], float]],
    ) -> None:
        self._tally, self._requests, self._writer, self._health = tally, requests, writer, health
        self._caches, self._counted, self._further = caches, dict(counted), facts
        for name, cache in caches.items():
            for what in ("hits", "misses", "evictions"):
                self._counted[f"strata_cache_{what}_total", name] = partial(getattr, cache, what)
        self._lock = threading.Lock()
        self._seen = dict.fromkeys(self._counted, 0.0)
        # A worker inherits the collections of its parent, but not its CPU time.
        self._grown = {**_grown(writer), "cpu_s": 0.0, "pen_taken": 0.0}

    async def watch(self, turned: Callable[[], None]) -> None:
        """Publish the facts every second, and turn the windows, until cancelled.

        Args:
            turned: is called when a window begins.
        """
        left = self._requests.turn()
        turned()
        while True:
            self.publish()
            await asyncio.sleep(min(_EVERY_S, left))
            before, left = left, self._requests.turn()
            if left > before:
                turned()

    def publish(self) -> None:
        """Write the present facts; any thread may call this."""
        with self._lock:
            self._add_counts()
            self._add_growth()
        for name, value in self._present().items():
            self._tally.cells[FACTS[name]] = value

    def _add_counts(self) -> None:
        for series, count in self._counted.items():
            now = count()
            if now > self._seen[series]:
                self._tally.add(*series, amount=now - self._seen[series])
                self._seen[series] = now

    def _add_growth(self) -> None:
        now = _grown(self._writer)
        for name in GROWING:
            self._tally.cells[FACTS[name]] += now[name] - self._grown[name]
        self._grown = now

    def _present(self) -> dict[str, float]:
        writer, status, progress = self._writer, self._writer.log.status(), self._health.progress()
        facts: dict[str, float] = {
            "pid": os.getpid(),
            "end": progress["end"],
            "read_at": writer.read_at,
            "foreign": status.foreign_records,
            "holds_pen": -1 if status.holds_pen is None else status.holds_pen,
            "pen_taking_s": status.pen_taking_s,
            **{name: value() for name, value in self._further.items()},
        }
        for name, cache in self._caches.items():
            facts |= {f"{name}_bytes": cache.size, f"{name}_entries": cache.entries}
        return facts


def _grown(writer: Writer) -> dict[str, float]:
    """Return the present values of this process for `GROWING`."""
    grown: dict[str, float] = {"cpu_s": time.process_time(), "pen_taken": writer.log.status().pen_taken}
    for generation, collected in enumerate(gc.get_stats()):
        grown |= {f"gc_{what}_{generation}": count for what, count in collected.items()}
    return grown


def fact(all_cells: Sequence[Cells], name: str) -> list[float]:
    """Return a fact of each process."""
    return [cells[FACTS[name]] for cells in all_cells]
