"""Metrics as a feature: they count the requests, and publish what all parts of a node count."""

from functools import partial

from strata.registry.features.feature import Feature, Node, Part, settings_of
from strata.registry.features.metrics import routes
from strata.registry.features.metrics.assembly import Metrics
from strata.registry.features.metrics.page import metrics_page
from strata.registry.features.metrics.routes import Published
from strata.registry.features.metrics.settings import MetricsSettings
from strata.registry.http.pipeline import Pipeline
from strata.registry.node.setting_types import Switch

__all__ = ["METRICS"]


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


METRICS = Feature("metrics", _part, MetricsSettings, (routes.router,))
