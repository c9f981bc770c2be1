"""`/metrics`: what the node counts about itself, for Prometheus (docs/metrics.md)."""

from fastapi import Request
from fastapi.responses import Response

from strata.registry import errors
from strata.registry.access.needs import on_cluster
from strata.registry.access.rules import Operation
from strata.registry.http.exchange import ExchangeDep
from strata.registry.http.route_facts import Kept
from strata.registry.routes.router import Router, TextAnswer

__all__ = ["router"]

router = Router("/metrics", "operations")


@router.reads(
    "GET", "", TextAnswer, (404,), kept=Kept.NO, needs_log=False, any_media_type=True,
    need=on_cluster(Operation.DESCRIBE),
)  # fmt: skip
async def metrics(exchange: ExchangeDep, request: Request) -> Response:
    """Return the metrics of all workers of this node, in the text format of Prometheus or as OpenMetrics."""
    if exchange.service.scrape is None:
        raise errors.not_found()
    content, media_type = await exchange.service.writer.in_thread(
        exchange.service.scrape, request.headers.get("accept", "")
    )
    return Response(content, media_type=media_type)
