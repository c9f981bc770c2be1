"""Traces as a feature, which the variables of OpenTelemetry switch on."""

import os

from strata.registry.features.feature import Feature, Node, Part, settings_of
from strata.registry.features.tracing.request_traces import RequestTraces
from strata.registry.features.tracing.settings import TraceSettings
from strata.registry.features.tracing.tracer import Tracing, TracingMissing, is_configured, load
from strata.registry.node.settings import CoreSettings, SettingRefused

__all__ = ["TRACING"]


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
