"""The request that a log line belongs to. Lines written outside any request have none."""

import re
from contextvars import ContextVar
from typing import Protocol

__all__ = ["REQUEST", "TRACEPARENT", "TRACE_HEADERS", "Origin", "trace_id_of"]

TRACEPARENT = b"traceparent"
TRACE_HEADERS = (TRACEPARENT, b"tracestate", b"baggage")
"""The headers by which a request belongs to a trace (https://www.w3.org/TR/trace-context/)."""

# https://www.w3.org/TR/trace-context/: version, trace id, span id, flags. Later versions may add fields.
_TRACEPARENT = re.compile(rb"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?")


class Origin(Protocol):
    """The request of a log line."""

    @property
    def request_id(self) -> bytes:
        """The id of the request."""
        ...

    @property
    def trace_id(self) -> str:
        """The id of the trace that it belongs to; empty if there is none."""
        ...


REQUEST: ContextVar[Origin | None] = ContextVar("request", default=None)
"""The request that runs now; None outside any request."""


def trace_id_of(traceparent: bytes) -> str:
    """Return the trace id in the header `traceparent`; empty if there is none that is valid."""
    match = _TRACEPARENT.fullmatch(traceparent)
    return match[1].decode() if match else ""
