"""Our own metrics of one node, read from all its workers at the moment of a scrape."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from strata import __version__
from strata.registry.core.metric_table import CACHES, CLASSES, FORMATS, METRICS, SECONDS, Kind, other
from strata.registry.core.request_numbers import BOUNDS, Row, rows
from strata.registry.core.tally import FAMILIES, series, totals
from strata.registry.core.writer import Writer
from strata.registry.features.feature import Measured
from strata.registry.features.metrics.facts import fact
from strata.registry.features.metrics.workers import Node
from strata.registry.http.route_facts import RouteTable
from strata.registry.node.health import Health
from strata.storage.listing import Listed

__all__ = ["NodeCollector"]

_TABLE = {metric.name: metric for metric in METRICS}
_ELSEWHERE = "none"


def _family(name: str, numbers: Iterable[tuple[Sequence[str], float]]) -> Metric:
    """Return a metric of the table with its series: the values of its labels, and its number."""
    row = _TABLE[name]
    family = CounterMetricFamily if row.kind is Kind.COUNTER else GaugeMetricFamily
    made = family(name, row.help, labels=tuple(row.labels))
    for values, number in numbers:
        made.add_metric(values, number)
    return made


def _histogram(name: str, rows: Iterable[tuple[Sequence[str], Sequence[float]]]) -> Metric:
    """Return a histogram of the table with its series: the values of its labels; buckets, the last one and the sum."""
    row = _TABLE[name]
    made = HistogramMetricFamily(name, row.help, labels=tuple(row.labels))
    for values, numbers in rows:
        below, buckets = 0.0, []
        for bound, count in zip([*map(str, row.bounds), "+Inf"], numbers, strict=False):
            below += count
            buckets.append((bound, below))
        made.add_metric(values, buckets, numbers[-1])
    return made


class NodeCollector:
    """Collects our own metrics.

    Args:
        node: the workers.
        routes: the routes.
        writer: the writer of this worker, whose State answers for all.
        health: the health of the node.
        measured: what features measure.
        has_auth_file: whether there is an auth file.
        certificates: returns when the first certificate of each file ends, in seconds since the epoch.
    """

    def __init__(
        self,
        node: Node,
        routes: RouteTable,
        writer: Writer,
        health: Health,
        measured: Measured,
        *,
        has_auth_file: bool,
        certificates: Callable[[], Mapping[str, float]],
    ) -> None:
        self._node, self._writer, self._health = node, writer, health
        self._routes = [(route.method, route.path) for route in routes.every] + [(_ELSEWHERE, _ELSEWHERE)]
        self._measured, self._has_auth_file, self._certificates = measured, has_auth_file, certificates

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics."""
        yield from self._requests()
        yield from self._counted()
        yield from self._registered()
        yield from self._log()
        yield from self._caches()
        yield from self._files()

    def _requests(self) -> Iterator[Metric]:
        counted: list[tuple[tuple[str, str], list[Row]]] = []
        for number, labels in enumerate(self._routes):
            if (routes_rows := rows(self._node.ever, number)) is not None:
                counted.append((labels, routes_rows))
        each = [
            ((*labels, CLASSES[at]), row)
            for labels, routes_rows in counted
            for at, row in enumerate(routes_rows)
            if any(row.buckets)
        ]
        yield _family("strata_requests_total", ((labels, row.requests) for labels, row in each))
        yield _histogram(
            "strata_request_duration_seconds", ((labels, [*_coarse(row.buckets), row.seconds]) for labels, row in each)
        )
        received = ((labels, sum(row.received for row in routes_rows)) for labels, routes_rows in counted)
        yield _family("strata_request_bytes_total", received)
        yield _family(
            "strata_response_bytes_total",
            ((labels, sum(row.sent for row in routes_rows)) for labels, routes_rows in counted),
        )

    def _counted(self) -> Iterator[Metric]:
        numbers = totals(self._node.ever)
        for family in FAMILIES:
            values_and_numbers = series(numbers, family)
            if family.metric.kind is Kind.HISTOGRAM:
                # Most combinations of labels never occur; those without labels are there from the start.
                yield _histogram(family.metric.name, ((v, n) for v, n in values_and_numbers if not v or any(n)))
            else:
                yield _family(family.metric.name, ((values, number) for values, (number,) in values_and_numbers))

    def _registered(self) -> Iterator[Metric]:
        state = self._writer.state
        live, every = (state.listing.count(listed) for listed in (Listed.LIVE_SUBJECTS, Listed.SUBJECTS))
        yield _family("strata_subjects", [(("live",), live), (("deleted",), every - live)])
        counts = {(what, name): 0 for what in ("live", "deleted") for name in FORMATS}
        for name, count in state.formats.items():
            counts["live", other(name, FORMATS)] += count.live
            counts["deleted", other(name, FORMATS)] += count.deleted
        yield _family("strata_versions", counts.items())
        yield _family("strata_schemas", [((), sum(len(context.schemas) for context in state.contexts.values()))])
        yield _family("strata_contexts", [((), len(state.context_names()))])

    def _log(self) -> Iterator[Metric]:
        running, state = self._node.running, self._writer.state
        offset = min(fact(running, "offset"))
        end = max(fact(running, "end"))
        holds, taken = max(fact(running, "holds_pen")), sum(fact(self._node.ever, "pen_taken"))
        single = {
            "strata_ready": self._health.reason() is None,
            "strata_write_ready": self._health.write_reason() is None,
            "strata_workers": len(running),
            "strata_connections": self._node.connections()[1],
            "strata_log_records_read": state.records,
            "strata_log_records_set_aside": state.set_aside_count,
            "strata_log_foreign_records": max(fact(running, "foreign")),
            "strata_log_offset": offset,
            "strata_log_end_offset": end,
            "strata_log_behind_offsets": max(0.0, end - offset),
            "strata_log_read_age_seconds": time.monotonic() - min(fact(running, "read_at")),
            "strata_log_pen_taken_total": taken,
            "strata_log_pen_lost_total": taken - (holds > 0),
        }
        for name, number in single.items():
            yield _family(name, [((), number)])
        for name, measure in self._measured.items():
            yield _family(name, measure())
        yield _family("strata_build_info", [((__version__,), 1)])
        yield _family("strata_log_holds_pen", [((), holds)] if holds >= 0 else [])

    def _caches(self) -> Iterator[Metric]:
        running = self._node.running
        for what in ("bytes", "entries"):
            yield _family(
                f"strata_cache_{what}", (((cache,), sum(fact(running, f"{cache}_{what}"))) for cache in CACHES)
            )

    def _files(self) -> Iterator[Metric]:
        in_force = min(fact(self._node.running, "auth_in_force"))
        yield _family("strata_auth_file_in_force", [((), in_force)] if self._has_auth_file else [])
        ends = self._certificates()
        yield _family("strata_certificate_expiry_timestamp_seconds", (((name,), end) for name, end in ends.items()))


def _coarse(buckets: Sequence[float]) -> list[float]:
    """Return the counts by the bounds that are exported."""
    counts, count = [], 0.0
    for bound, number in zip((*BOUNDS, None), buckets, strict=True):
        count += number
        if bound is None or bound in SECONDS:
            counts.append(count)
            count = 0.0
    return counts
