"""Traces of requests by OpenTelemetry, off unless its own variables (`OTEL_…`) name where spans go.

Nothing of OpenTelemetry is imported before that. docs/traces.md lists the spans and their attributes.
"""

import hashlib
import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from threading import Thread
from typing import TYPE_CHECKING

from strata import __version__
from strata.registry.features.tracing.settings import TraceSubjects
from strata.registry.node.logs.context import TRACE_HEADERS

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span, StatusCode, Tracer

__all__ = [
    "RequestSpans",
    "Tracing",
    "TracingMissing",
    "is_configured",
    "load",
]

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_EXPORTER, _OTLP, _HTTP = "OTEL_TRACES_EXPORTER", "otlp", "http/protobuf"
_FLUSH_S = 3.0
_SHOWN_DIGITS = 16
_log = logging.getLogger("strata.tracing")


class TracingMissing(Exception):
    """Tracing is configured and cannot be used; the message says why."""


def is_configured(variables: Mapping[str, str]) -> bool:
    """Return whether the standard variables switch traces on.

    Args:
        variables: the environment.
    """
    if variables.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    exporter = variables.get(_EXPORTER, "").strip().lower()
    return exporter == _OTLP or (not exporter and any(variables.get(name, "").strip() for name in _ENDPOINTS))


def load() -> None:
    """Import OpenTelemetry, before workers are forked, so that they share it.

    Raises:
        TracingMissing: if it is not installed.
    """
    try:
        import_module("opentelemetry.exporter.otlp.proto.http.trace_exporter")
        import_module("opentelemetry.sdk.trace.export")
    except ImportError as error:
        raise TracingMissing(
            f"the OTEL_… variables switch traces on, and {error.name} is not installed: "
            "install strata-registry[otel] (docs/installing.md), or unset them"
        ) from None


class Tracing:
    """The tracer of one process, which sends spans in the background over OTLP (HTTP).

    Args:
        variables: the environment, which OpenTelemetry reads itself for everything not named here.
        subjects: how spans name a subject.
    """

    def __init__(self, variables: Mapping[str, str], subjects: TraceSubjects) -> None:
        from opentelemetry import propagate, trace
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        protocol = next((value for name in _PROTOCOLS if (value := variables.get(name))), _HTTP)
        if protocol != _HTTP:
            _log.warning(
                "traces are sent as http/protobuf, not as %(protocol)s; the port is usually 4318",
                {"event": "trace_protocol_unsupported", "protocol": protocol},
            )
        named = "OTEL_SERVICE_NAME" in variables or "service.name=" in variables.get("OTEL_RESOURCE_ATTRIBUTES", "")
        own = {"service.version": __version__} | ({} if named else {"service.name": "strata"})
        self._exporter = OTLPSpanExporter()
        self._provider = TracerProvider(resource=Resource.create(own), shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(self._exporter))
        self._tracer = self._provider.get_tracer("strata", __version__)
        self._propagate, self._trace = propagate, trace
        self._subjects = subjects

    def begin(self, headers: list[tuple[bytes, bytes]], method: str) -> "RequestSpans":
        """Begin the span of a request, as a child of the one in its headers if there is one.

        Args:
            headers: the headers; those of the trace are replaced by those of the new span.
            method: the method.
        """
        carrier = {name.decode(): value.decode("latin-1") for name, value in headers if name in TRACE_HEADERS}
        span = self._tracer.start_span(method, self._propagate.extract(carrier), kind=self._trace.SpanKind.SERVER)
        context = self._trace.set_span_in_context(span)
        passed_on: dict[str, str] = {}
        self._propagate.inject(passed_on, context)
        headers[:] = [header for header in headers if header[0] not in TRACE_HEADERS]
        headers += [(name.encode(), value.encode("latin-1")) for name, value in passed_on.items()]
        return RequestSpans(self._tracer, span, context, self._trace.StatusCode.ERROR)

    def subject(self, name: str) -> str | None:
        """Return a subject as spans show it; None if they do not."""
        if self._subjects is TraceSubjects.HASH:
            return hashlib.sha256(name.encode()).hexdigest()[:_SHOWN_DIGITS]
        return name if self._subjects is TraceSubjects.NAME else None

    def close(self) -> None:
        """Send the spans that wait, for a few seconds at most: a collector that is away must not delay the end."""
        flush = Thread(target=self._provider.force_flush, daemon=True)
        flush.start()
        flush.join(_FLUSH_S)
        self._exporter.shutdown()  # type: ignore[no-untyped-call]  # ends its retries


class RequestSpans:
    """The span of a request, and the spans of its parts."""

    def __init__(self, tracer: "Tracer", span: "Span", context: "Context", error: "StatusCode") -> None:
        self._tracer, self._span, self._context, self._error = tracer, span, context, error

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Make a block a part of the request."""
        began = time.time_ns()
        try:
            yield
        finally:
            self.add(name, began, time.time_ns())

    def add(self, name: str, began: int, ended: int) -> None:
        """Add a part that is over; any thread may do so.

        Args:
            name: its name.
            began: when it began, in nanoseconds since the epoch.
            ended: when it ended.
        """
        self._tracer.start_span(name, self._context, start_time=began).end(ended)

    def end(self, name: str, attributes: Mapping[str, object], *, failed: bool) -> None:
        """End the span of the request.

        Args:
            name: its final name.
            attributes: its attributes; None leaves one out.
            failed: whether the service failed.
        """
        self._span.update_name(name)
        self._span.set_attributes(
            {key: value for key, value in attributes.items() if isinstance(value, str | int | float)}
        )
        if failed:
            self._span.set_status(self._error)
        self._span.end()
