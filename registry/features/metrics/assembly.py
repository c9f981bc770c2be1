"""Puts together what counts and what answers `/metrics`, for one process of a node."""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from strata.registry.core.parsing import caches as parsing_caches
from strata.registry.core.parsing import count_in
from strata.registry.core.request_numbers import ROUTES
from strata.registry.core.tally import Tally
from strata.registry.core.writer import Writer
from strata.registry.features.feature import Measured
from strata.registry.features.metrics.facts import Counted, CountedCache, Facts
from strata.registry.features.metrics.request_counts import RequestCounts
from strata.registry.features.metrics.windows import Windows
from strata.registry.features.metrics.workers import Node
from strata.registry.http.route_facts import RouteTable
from strata.registry.node.board import Seat
from strata.registry.node.health import Health

if TYPE_CHECKING:
    from strata.registry.features.metrics.scrape import Scrape

__all__ = ["Metrics"]


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
        self._windows = Windows(lambda: self._node.ever, len(routes.every) + 1, self._node.connections)
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
