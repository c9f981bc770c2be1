"""An observer that counts in the metrics of OpenTelemetry."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from strata.imports import require
from strata.serdes.observer import Observer

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider

__all__ = ["OpenTelemetryObserver"]


class OpenTelemetryObserver(Observer):
    """Counts records, look-ups and rules; the metrics of rules have the names of Confluent's clients.

    Pickled copies of a client count with the global provider of their process; with another provider they have no
    observer.

    Args:
        provider: makes the instruments; by default the global provider, which the application sets up.

    Raises:
        MissingExtra: If OpenTelemetry is not installed.
    """

    def __init__(self, provider: "MeterProvider | None" = None) -> None:
        require("otel", "strata.serdes.otel_observer", "opentelemetry.metrics")
        from opentelemetry.metrics import get_meter

        self._is_global = provider is None
        meter = get_meter("strata.serdes", meter_provider=provider)
        self._records = meter.create_counter("strata.serde.records", "{record}", "records encoded or decoded")
        self._cache = meter.create_counter("strata.serde.schema_cache", "{record}", "whether their schema was known")
        self._requests = meter.create_histogram("strata.serde.request.duration", "s", "requests to the registry")
        self._executions = meter.create_counter("rule.executions.total", "{run}", "runs of rules")
        self._successes = meter.create_counter("rule.success.total", "{run}", "runs of rules that succeeded")
        self._failures = meter.create_counter("rule.failure.total", "{run}", "runs of rules that failed")
        self._actions = meter.create_counter("rule.actions.total", "{action}", "actions that followed rules")
        self._skipped = meter.create_counter("rule.skipped.total", "{record}", "records that passed without a rule")
        self._last = meter.create_gauge("rule.last.success.timestamp.ms", "ms", "when a rule last succeeded")

    def record(self, operation: str, schema_format: str, outcome: str) -> None:
        """Count a record."""
        self._records.add(1, {"operation": operation, "format": schema_format, "outcome": outcome})

    def cached(self, operation: str, *, hit: bool) -> None:
        """Count a look into the cache."""
        self._cache.add(1, {"operation": operation, "result": "hit" if hit else "miss"})

    def request(self, method: str, status: int | None, seconds: float) -> None:
        """Count a request and its time."""
        answered = {} if status is None else {"http.response.status_code": status}
        self._requests.record(seconds, {"http.request.method": method, **answered})

    def rule(self, rule_type: str, rule_mode: str, subject: str, rule_name: str, action: str, *, failed: bool) -> None:
        """Count a run of a rule."""
        names = {"rule_type": rule_type, "rule_mode": rule_mode, "subject": subject, "rule_name": rule_name}
        self._executions.add(1, names)
        (self._failures if failed else self._successes).add(1, names)
        self._actions.add(1, {**names, "action": action})
        if not failed:
            self._last.set(int(time.time() * 1000), names)

    def skipped(self, rule_type: str, rule_mode: str, subject: str, rule_name: str) -> None:
        """Count a record that passed without a rule."""
        names = {"rule_type": rule_type, "rule_mode": rule_mode, "subject": subject, "rule_name": rule_name}
        self._skipped.add(1, names)

    def elsewhere(self) -> Callable[[], Observer] | None:
        """Return the class, unless it counts with a provider of its own."""
        return OpenTelemetryObserver if self._is_global else None
