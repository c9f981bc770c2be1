"""Makes requests to the registry part of the caller's trace, if its process uses OpenTelemetry.

Only the API of OpenTelemetry is used, and only if the process has imported it: without that there is no trace.
"""

import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext

__all__ = ["request_span"]

_NO_TRACE: AbstractContextManager[Mapping[str, str]] = nullcontext({})


def request_span(method: str) -> AbstractContextManager[Mapping[str, str]]:
    """Make a block the span of a request, and return the headers that pass the trace on.

    Args:
        method: the HTTP method.
    """
    return _traced(method) if "opentelemetry.trace" in sys.modules else _NO_TRACE


@contextmanager
def _traced(method: str) -> Iterator[Mapping[str, str]]:
    from opentelemetry import propagate, trace

    headers: dict[str, str] = {}
    tracer = trace.get_tracer("strata.serdes")
    attributes = {"http.request.method": method}
    name = f"schema registry {method}"
    with tracer.start_as_current_span(name, kind=trace.SpanKind.CLIENT, attributes=attributes):
        propagate.inject(headers)
        yield headers
