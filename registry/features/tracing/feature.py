"""Traces as a feature, which the variables of OpenTelemetry switch on."""

import os
from collections.abc import Callable

from strata.registry.core.subject_names import subject_name
from strata.registry.features.feature import Feature, Node, Part, settings_of
from strata.registry.features.tracing.settings import TraceSettings
from strata.registry.features.tracing.tracer import Tracing, TracingMissing, is_configured, load
from strata.registry.http.checks import plain_path
from strata.registry.http.exchange import Exchange
from strata.registry.http.pipeline import Pipeline
from strata.registry.http.route_facts import SCHEMA_ID, SUBJECT, DeclaredRoute, RouteTable
from strata.registry.node.settings import CoreSettings, SettingRefused
from strata.storage.state import State

__all__ = ["TRACING"]


class RequestTraces:
    """Begins and ends the spans of requests.

    Args:
        tracing: the tracer.
        state: returns the State in memory.
    """

    def __init__(self, tracing: Tracing, state: Callable[[], State]) -> None:
        self._tracing, self._state = tracing, state
        self._routes = RouteTable(())

    def find_routes_in(self, pipeline: Pipeline) -> None:
        """Name the requests that are refused before their route is looked for by the routes of a pipeline."""
        self._routes = pipeline.routes

    def begin(self, exchange: Exchange) -> None:
        """Begin the span of a request, to which all that it does from here on belongs."""
        headers = list(exchange.scope["headers"])
        exchange.spans = self._tracing.begin(headers, exchange.method)
        exchange.replace_headers(headers)

    def end(self, exchange: Exchange) -> None:
        """End the span of a request."""
        if exchange.spans is None:
            return
        scope, method, status = exchange.scope, exchange.method, exchange.status
        # No route was looked for if the request was refused before that.
        route = exchange.route or self._routes.find(scope["method"], plain_path(scope["raw_path"]))
        name = f"{method} {route.path}" if route else method
        exchange.spans.end(name, self._attributes(exchange, route), failed=status >= 500 or not status)

    def _attributes(self, exchange: Exchange, route: DeclaredRoute | None) -> dict[str, object]:
        change = exchange.changed
        path = plain_path(exchange.scope["raw_path"])
        subject = change.get("subject") or (subject_name(route.segment(path, SUBJECT)) if route else "")
        schema_id = change.get("schema_id") or (route.segment(path, SCHEMA_ID) if route else "")
        return {
            "http.request.method": exchange.method,
            "http.route": route.path if route else None,
            "http.response.status_code": exchange.status or None,
            "http.response.body.size": exchange.size,
            "strata.request_id": exchange.request_id.decode(),
            "strata.subject": self._tracing.subject(str(subject)) if subject else None,
            "strata.schema_id": int(str(schema_id)) if str(schema_id).isdecimal() else None,
            "strata.offset": change.get("offset", self._state().offset),
        }


def _part(node: Node) -> Part | None:
    if not is_configured(node.variables):
        return None
    subjects, writer = settings_of(node.settings, TraceSettings).trace_subjects, node.writer
    tracing = Tracing(node.variables, subjects)
    traces = RequestTraces(tracing, lambda: writer.state)
    return Part(
        close=tracing.close, begin=traces.begin, end=traces.end, sees_passed_on=True, join=traces.find_routes_in
    )


def _check(_settings: CoreSettings) -> None:
    try:
        if is_configured(os.environ):
            load()
    except TracingMissing as error:
        raise SettingRefused(str(error)) from None


TRACING = Feature("tracing", _part, TraceSettings, check=_check)
