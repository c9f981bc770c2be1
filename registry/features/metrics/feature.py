"""Metrics as a feature: they count the requests, and publish what all parts of a node count."""

import asyncio
from collections.abc import Callable
from functools import partial

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from strata.registry.api.router import Router, TextAnswer
from strata.registry.core import errors
from strata.registry.core.rights.route_rights import on_cluster
from strata.registry.core.rights.rules import Operation
from strata.registry.features.feature import Feature, Node, Part, settings_of
from strata.registry.features.metrics.assembly import Metrics
from strata.registry.features.metrics.settings import MetricsSettings
from strata.registry.http.asgi import App, Receive, Scope, Send
from strata.registry.http.exchange import ExchangeDep
from strata.registry.http.pipeline import Pipeline
from strata.registry.http.route_facts import Kept
from strata.registry.node.setting_types import Switch

__all__ = ["METRICS"]


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


def metrics_page(scrape: Callable[[str], tuple[bytes, str]]) -> App:
    """Return an ASGI app that answers requests for `/metrics`, and no others.

    Args:
        scrape: returns all metrics and their media type, given the header `Accept`.
    """

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] != "/metrics" or scope["method"] not in ("GET", "HEAD"):
            response: Response = PlainTextResponse("Metrics are at /metrics.\n", 404)
        else:
            accept = dict(scope["headers"]).get(b"accept", b"").decode("latin-1")
            content, media_type = await asyncio.to_thread(scrape, accept)
            response = Response(content, media_type=media_type)
        await response(scope, receive, send)

    return answer


def _part(node: Node) -> Part | None:
    settings = settings_of(node.settings, MetricsSettings)
    if settings.metrics is Switch.OFF:
        return None
    published = Published()
    return Part(
        watch=(published.watch,),
        keeps=None if settings.metrics_listen else published,
        join=partial(_join, node, published),
    )


def _join(node: Node, published: Published, pipeline: Pipeline) -> None:
    metrics = published.metrics = Metrics(
        node.seat,
        node.tally,
        pipeline.routes,
        node.writer,
        node.health,
        {"hot_answers": pipeline.hot, "kept_answers": pipeline.kept},
        node.counted,
        node.measured,
        node.facts,
        has_access_control=node.control is not None,
        certificates=node.certificates,
    )
    pipeline.counts, pipeline.metrics_page = metrics.counts, metrics_page(metrics.scrape)
    pipeline.begins, pipeline.ends = (*pipeline.begins, metrics.counts.begin), (metrics.counts.end, *pipeline.ends)


METRICS = Feature("metrics", _part, MetricsSettings, (router,))
