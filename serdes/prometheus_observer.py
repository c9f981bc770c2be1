"""An observer that counts in the metrics of prometheus-client."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from strata.imports import require
from strata.serdes.observer import Observer

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry, Counter

__all__ = ["PrometheusObserver"]

_RULE = ("rule_type", "rule_mode", "subject", "rule_name")
_of_process: list["PrometheusObserver"] = []
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class PrometheusObserver(Observer):
    """Counts records, look-ups and rules; the metrics of rules have the names of Confluent's clients.

    Make one per process and registry of metrics, and pass it to every client. Pickled copies of a client count in the
    global registry of their process; if the metrics are in another registry, copies have no observer.

    Args:
        registry: where the metrics are registered; by default prometheus-client's global registry.

    Raises:
        MissingExtra: If prometheus-client is not installed.
    """

    def __init__(self, registry: "CollectorRegistry | None" = None) -> None:
        require("prometheus", "strata.serdes.prometheus_observer", "prometheus_client")
        from prometheus_client import REGISTRY, Counter, Gauge, Histogram

        self._is_global = registry is None
        registry = REGISTRY if registry is None else registry

        def counter(name: str, text: str, labels: tuple[str, ...]) -> "Counter":
            return Counter(name, text, labels, registry=registry)

        self._records = counter(
            "strata_serde_records", "records encoded or decoded", ("operation", "format", "outcome")
        )
        self._cache = counter(
            "strata_serde_schema_cache", "records by whether their schema was known", ("operation", "result")
        )
        self._requests = Histogram(
            "strata_serde_request_seconds",
            "time of one attempt of a request to the registry",
            ("method", "status"),
            buckets=_SECONDS,
            registry=registry,
        )
        self._executions = counter("rule_executions", "runs of rules", _RULE)
        self._successes = counter("rule_success", "runs of rules that succeeded", _RULE)
        self._failures = counter("rule_failure", "runs of rules that failed", _RULE)
        self._actions = counter("rule_actions", "actions that followed rules", (*_RULE, "action"))
        self._skipped = counter("rule_skipped", "records that passed without a rule", _RULE)
        self._last = Gauge("rule_last_success_timestamp_ms", "when a rule last succeeded", _RULE, registry=registry)
        if self._is_global:
            _of_process.append(self)

    def record(self, operation: str, schema_format: str, outcome: str) -> None:
        """Count a record."""
        self._records.labels(operation, schema_format, outcome).inc()

    def cached(self, operation: str, *, hit: bool) -> None:
        """Count a look into the cache."""
        self._cache.labels(operation, "hit" if hit else "miss").inc()

    def request(self, method: str, status: int | None, seconds: float) -> None:
        """Count a request and its time."""
        self._requests.labels(method, "none" if status is None else str(status)).observe(seconds)

    def rule(self, rule_type: str, rule_mode: str, subject: str, rule_name: str, action: str, *, failed: bool) -> None:
        """Count a run of a rule."""
        names = rule_type, rule_mode, subject, rule_name
        self._executions.labels(*names).inc()
        (self._failures if failed else self._successes).labels(*names).inc()
        self._actions.labels(*names, action).inc()
        if not failed:
            self._last.labels(*names).set(int(time.time() * 1000))

    def skipped(self, *rule: str) -> None:
        """Count a record that passed without a rule."""
        self._skipped.labels(*rule).inc()

    def elsewhere(self) -> Callable[[], Observer] | None:
        """Return what makes or finds the observer of another process; None with a registry of its own."""
        return _the_global_one if self._is_global else None


def _the_global_one() -> PrometheusObserver:
    return _of_process[-1] if _of_process else PrometheusObserver()
