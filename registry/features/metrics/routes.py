"""`/metrics`: what the node counts about itself, for Prometheus (docs/metrics.md)."""

from fastapi import Request
from fastapi.responses import Response

from strata.registry.api.router import Router, TextAnswer
from strata.registry.core import errors
from strata.registry.core.rights.route_rights import on_cluster
from strata.registry.core.rights.rules import Operation
from strata.registry.features.metrics.assembly import Metrics
from strata.registry.http.exchange import ExchangeDep
from strata.registry.http.route_facts import Kept

__all__ = ["Published", "router"]

router = Router("/metrics", "operations", place=200)


@router.reads(
    "GET", "", TextAnswer, (404,), kept=Kept.NO, needs_log=False, any_media_type=True,
    need=on_cluster(Operation.DESCRIBE),
)  # fmt: skip
async def metrics(exchange: ExchangeDep, request: Request) -> Response:
    """Return the metrics of all workers of this node, in the text format of Prometheus or as OpenMetrics."""
    published = exchange.service.part(Published)
    if published is None or published.metrics is None:
        raise errors.not_found()
    accept = request.headers.get("accept", "")
    content, media_type = await exchange.service.writer.in_thread(published.metrics.scrape, accept)
    return Response(content, media_type=media_type)


class Published:
    """The metrics of this process, once they are there."""

    def __init__(self) -> None:
        self.metrics: Metrics | None = None

    async def watch(self) -> None:
        """Publish the facts of this process, until cancelled."""
        if self.metrics is not None:
            await self.metrics.watch()
