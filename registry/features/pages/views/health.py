"""The health of the node, and its main figures over the last half hour."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

from markupsafe import Markup

from strata import __version__
from strata.registry.api.views.view import Page
from strata.registry.features.pages.sparkline import sparkline
from strata.registry.features.pages.trends import Sample, Trends
from strata.storage.listing import Listed

__all__ = ["figures", "show_health"]


class _Figure(NamedTuple):
    """A figure: its name, its present value, and its line."""

    name: str
    now: str
    line: Markup


def show_health(page: Page) -> dict[str, object]:
    """Return what the page of the node shows."""
    service, state = page.exchange.service, page.state
    trends = service.part(Trends)
    samples = trends.samples if trends else []
    listing = state.listing
    return {
        "version": __version__,
        "cluster": service.cluster_id,
        "reason": service.health.reason(),
        "write_reason": service.health.write_reason(),
        "progress": service.health.progress(),
        "workers": service.health.workers(),
        "status": service.writer.log.status(),
        "holder": service.writer.log.holder(),
        "auth_is_stale": service.health.details().get("auth") == "stale",
        "subjects": listing.count(Listed.LIVE_SUBJECTS),
        "schemas": sum(len(context.schemas) for context in state.contexts.values()),
        "contexts": len(state.context_names()),
        "figures": figures(samples),
        "since": round(samples[0].at * 1000) if samples else 0,
        "counts_requests": "metrics" in service.features,
    }


def figures(samples: Sequence[Sample]) -> list[_Figure]:
    """Return the figures between samples, oldest first; none of less than two samples."""
    pairs = [pair for pair in pairwise(samples) if pair[1].at > pair[0].at]
    if not pairs:
        return []
    return [_figure(name, unit, [value(*pair) for pair in pairs]) for name, unit, value in _FIGURES]


def _figure(name: str, unit: str, values: Sequence[float]) -> _Figure:
    digits = 1 if unit else 0
    now = f"{values[-1]:,.{digits}f}{unit}"
    label = f"{name}: {now} now, at most {max(values):,.{digits}f}{unit}"
    return _Figure(name, now, sparkline(values, label))


def _per_second(count: Callable[[Sample], float]) -> Callable[[Sample, Sample], float]:
    return lambda before, after: max(0.0, count(after) - count(before)) / (after.at - before.at)


def _milliseconds(before: Sample, after: Sample) -> float:
    requests = after.requests - before.requests
    return 1000 * (after.seconds - before.seconds) / requests if requests > 0 else 0.0


_FIGURES: Sequence[tuple[str, str, Callable[[Sample, Sample], float]]] = (
    ("Requests", " per second", _per_second(lambda sample: sample.requests)),
    ("Server errors", " per second", _per_second(lambda sample: sample.errors)),
    ("Mean time of a request", " ms", _milliseconds),
    ("Log offsets read", " per second", _per_second(lambda sample: sample.offset)),
    ("Offsets behind", "", lambda _, after: after.behind),
    ("Connections", "", lambda _, after: after.connections),
)
