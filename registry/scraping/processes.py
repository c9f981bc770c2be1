"""Memory, CPU and files of all workers together, and Python's collections, under prometheus-client's names."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from prometheus_client import PlatformCollector, ProcessCollector
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import CollectorRegistry

from strata.registry.metrics.tally import Cells
from strata.registry.scraping.facts import fact

__all__ = ["ProcessesCollector"]

_SMALLEST = frozenset(("process_start_time_seconds", "process_max_fds"))
"""What does not add up over processes."""
_GC = {
    "collected": ("python_gc_objects_collected", "objects collected by the garbage collector"),
    "uncollectable": ("python_gc_objects_uncollectable", "objects that the garbage collector cannot free"),
    "collections": ("python_gc_collections", "collections by the garbage collector"),
}


class ProcessesCollector:
    """Collects the figures of the processes of a node.

    Args:
        running: returns the cells of the workers that run.
    """

    def __init__(self, running: Callable[[], Sequence[Cells]]) -> None:
        self._running = running
        self._platform = PlatformCollector(registry=CollectorRegistry())

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics."""
        yield from self._platform.collect()
        running = self._running()
        merged: dict[str, Metric] = {}
        for pid in fact(running, "pid"):
            one = ProcessCollector(pid=partial(int, pid), registry=CollectorRegistry())
            for metric in one.collect():
                _merge(merged.setdefault(metric.name, metric), metric)
        yield from merged.values()
        for what, (name, text) in _GC.items():
            made = CounterMetricFamily(name, text, labels=("generation",))
            for generation in "012":
                made.add_metric((generation,), sum(fact(running, f"gc_{what}_{generation}")))
            yield made


def _merge(into: Metric, metric: Metric) -> None:
    if into is metric:
        return
    how = min if into.name in _SMALLEST else sum
    pairs = zip(into.samples, metric.samples, strict=True)
    into.samples = [one._replace(value=how((one.value, another.value))) for one, another in pairs]
