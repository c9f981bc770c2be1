"""Counts each request when it ends: by route, by error code, by the limit that it has hit, by who asked."""

from time import perf_counter

from strata.registry.core.metric_table import METRICS, other
from strata.registry.core.request_numbers import Requests
from strata.registry.core.rights.request_access import UNLIMITED
from strata.registry.core.tally import Tally
from strata.registry.http.exchange import Exchange
from strata.registry.http.route_facts import RouteTable

__all__ = ["RequestCounts"]

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
