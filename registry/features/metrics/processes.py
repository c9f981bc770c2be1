"""Memory, CPU and files of all workers together, and Python's collections, under prometheus-client's names."""

from collections.abc import Iterator
from functools import partial

from prometheus_client import PlatformCollector, ProcessCollector
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import CollectorRegistry

from strata.registry.features.metrics.facts import fact
from strata.registry.features.metrics.workers import Node

__all__ = ["ProcessesCollector"]

_SMALLEST = frozenset(("process_start_time_seconds", "process_max_fds"))
"""What does not add up over processes."""
_CPU = "Total user and system CPU time spent in seconds."
_GC = {
    "collected": ("python_gc_objects_collected", "objects collected by the garbage collector"),
    "uncollectable": ("python_gc_objects_uncollectable", "objects that the garbage collector cannot free"),
    "collections": ("python_gc_collections", "collections by the garbage collector"),
}


class ProcessesCollector:
    """Collects the figures of the processes of a node.

    Args:
        node: the workers.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._platform = PlatformCollector(registry=CollectorRegistry())

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics."""
        yield from self._platform.collect()
        ever, merged = self._node.ever, dict[str, Metric]()
        for pid in fact(self._node.running, "pid"):
            collector = ProcessCollector(pid=partial(int, pid), registry=CollectorRegistry())
            for metric in collector.collect():
                _merge(merged.setdefault(metric.name, metric), metric)
        merged.pop("process_cpu_seconds", None)  # of those that run: it would go back when a worker dies
        yield from merged.values()
        yield CounterMetricFamily("process_cpu_seconds", _CPU, value=sum(fact(ever, "cpu_s")))
        for what, (name, text) in _GC.items():
            made = CounterMetricFamily(name, text, labels=("generation",))
            for generation in "012":
                made.add_metric((generation,), sum(fact(ever, f"gc_{what}_{generation}")))
            yield made


def _merge(into: Metric, metric: Metric) -> None:
    if into is metric:
        return
    how = min if into.name in _SMALLEST else sum
    pairs = zip(into.samples, metric.samples, strict=True)
    into.samples = [sample._replace(value=how((sample.value, added.value))) for sample, added in pairs]
