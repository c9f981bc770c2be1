"""Puts together what counts and what answers `/metrics`, for one process of a node."""

from collections.abc import Callable, Mapping
from functools import cached_property
from time import perf_counter
from typing import TYPE_CHECKING

from strata.registry.core.metric_table import METRICS, other
from strata.registry.core.parsing import caches as parsing_caches
from strata.registry.core.parsing import count_in
from strata.registry.core.request_numbers import ROUTES, Requests
from strata.registry.core.rights.request_access import UNLIMITED
from strata.registry.core.tally import Tally
from strata.registry.core.writer import Writer
from strata.registry.features.feature import Measured
from strata.registry.features.metrics.facts import Counted, CountedCache, Facts
from strata.registry.features.metrics.windows import Windows
from strata.registry.features.metrics.workers import Node
from strata.registry.http.exchange import Exchange
from strata.registry.http.route_facts import RouteTable
from strata.registry.node.board import Seat
from strata.registry.node.health import Health

if TYPE_CHECKING:
    from strata.registry.features.metrics.scrape import Scrape

__all__ = ["Metrics", "RequestCounts"]


_LABELS = {metric.name: metric.labels for metric in METRICS}
_CODES = _LABELS["strata_errors_total"]["code"]
_MECHANISMS = _LABELS["strata_access_requests_total"]["mechanism"]
_OUTCOMES = {401: "unauthorized", 403: "forbidden", 429: "throttled"}
_LIMITS = {408: "request_time", 413: "body_size", 414: "target_size", 431: "header_size"}


class RequestCounts:
    """Counts the requests of one process.

    Args:
        tally: the numbers of the process.
        routes: the routes.
        has_access_control: whether access control is on.
    """

    def __init__(self, tally: Tally, routes: RouteTable, *, has_access_control: bool) -> None:
        self._tally, self.requests, self._has_access_control = tally, Requests(tally), has_access_control
        self.begin = self.requests.begin
        self._elsewhere = routes.number(None)

    def end(self, exchange: Exchange) -> None:
        """Count a request that has its answer, or whose client has left."""
        status, access = exchange.status, exchange.access
        sent = 0 if exchange.is_head else exchange.size
        route = self._elsewhere if exchange.route is None else exchange.route.number
        self.requests.end(route, status, perf_counter() - exchange.began, exchange.received, sent)
        if status >= 400:
            self._note_error(exchange, status)
        if self._has_access_control and access is not UNLIMITED:
            outcome = _OUTCOMES.get(status) or ("failed" if access.error is not None else "allowed")
            mechanism = access.rejected.mechanism if access.rejected is not None else access.principal.mechanism
            self._tally.add("strata_access_requests_total", other(mechanism, _MECHANISMS), outcome)

    def open_connection(self) -> None:
        """Count a connection that a client has opened."""
        self._tally.add("strata_connections_opened_total")

    def refuse(self, status: int) -> None:
        """Count a connection or request that the server refuses before the app sees it."""
        limit = "connections" if status == 503 else _LIMITS.get(status)
        self._tally.add("strata_errors_total", other(str(status), _CODES))
        if limit is not None:
            self._tally.add("strata_limits_hit_total", limit)

    def _note_error(self, exchange: Exchange, status: int) -> None:
        self._tally.add("strata_errors_total", other(str(exchange.error_code or status), _CODES))
        limit = exchange.limit or _LIMITS.get(status)
        if limit:
            self._tally.add("strata_limits_hit_total", limit)


class Metrics:
    """What counts, and what answers a scrape.

    Attributes:
        counts: counts requests.

    Args:
        seat: the place of this process among the workers of the node.
        tally: its numbers.
        routes: the routes.
        writer: its writer.
        health: its health.
        caches: its caches besides those of `parsing.py`, by name.
        counted: counts that others keep.
        measured: what others measure.
        facts: facts that others publish.
        has_access_control: whether access control is on.
        certificates: returns when the first certificate of each file ends, in seconds since the epoch.
    """

    def __init__(
        self,
        seat: Seat,
        tally: Tally,
        routes: RouteTable,
        writer: Writer,
        health: Health,
        caches: Mapping[str, CountedCache],
        counted: Counted,
        measured: Measured,
        facts: Mapping[str, Callable[[], float]],
        *,
        has_access_control: bool,
        certificates: Callable[[], Mapping[str, float]],
    ) -> None:
        if len(routes.every) >= ROUTES:
            raise ValueError(f"there is room for the counts of {ROUTES - 1} routes, got {len(routes.every)}")
        count_in(tally)
        self.counts = RequestCounts(tally, routes, has_access_control=has_access_control)
        self._facts = Facts(tally, self.counts.requests, writer, health, {**caches, **parsing_caches()}, counted, facts)
        self._node = Node(seat, tally.cells)
        self._windows = Windows(lambda: self._node.ever, self._node.connections)
        self._routes, self._writer, self._health = routes, writer, health
        self._measured, self._certificates = measured, certificates
        self._has_auth_file = "auth_in_force" in facts

    @cached_property
    def _written(self) -> "Scrape":
        # Here, because prometheus-client takes a tenth of a second to import, and a node should start fast.
        from strata.registry.features.metrics.confluent import ConfluentCollector
        from strata.registry.features.metrics.node import NodeCollector
        from strata.registry.features.metrics.processes import ProcessesCollector
        from strata.registry.features.metrics.scrape import Scrape

        node, certificates = self._node, self._certificates
        own = NodeCollector(
            node,
            self._routes,
            self._writer,
            self._health,
            self._measured,
            has_auth_file=self._has_auth_file,
            certificates=certificates,
        )
        confluent = ConfluentCollector(node, self._windows, self._routes, self._writer, certificates)
        return Scrape(own, confluent, ProcessesCollector(node))

    def scrape(self, accept: str) -> tuple[bytes, str]:
        """Return all metrics and their media type, given the header `Accept`."""
        self._facts.publish()
        return self._written(accept)

    async def watch(self) -> None:
        """Publish the facts of this process, until cancelled."""
        await self._facts.watch(self._windows.turn)
