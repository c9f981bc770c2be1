"""The outermost layer while traces are on: it makes each request a span."""

from collections.abc import Callable
from typing import Any, cast

from strata.registry.http.asgi import Receive, Scope, Send
from strata.registry.http.front import Front
from strata.registry.http.link import PassedOn
from strata.registry.http.reply import Reply
from strata.registry.http.request_checks import plain_path, route_of
from strata.registry.http.route_facts import SCHEMA_ID, SUBJECT, DeclaredRoute
from strata.registry.logs.context import REQUEST
from strata.registry.subject_names import subject_name
from strata.registry.tracing import SPANS, RequestSpans, Tracing
from strata.storage.state import State

__all__ = ["TracedFront"]


class TracedFront(Front):
    """The ASGI app of the service, with a span for each request.

    Args:
        tracing: the tracer.
        state: returns the State in memory.
        args: the arguments of `Front`.
        kwargs: its keyword arguments.
    """

    def __init__(self, tracing: Tracing, state: Callable[[], State], *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._tracing, self._state = tracing, state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await super().__call__(scope, receive, send)
            return
        spans = self._begin(scope)
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._end(spans, scope["method"])

    async def answer_passed_on(self, scope: Scope, receive: Receive) -> PassedOn:
        """Return the answer to a request that another worker has received and checked."""
        spans = self._begin(scope)
        try:
            return await super().answer_passed_on(scope, receive)
        finally:
            self._end(spans, scope["method"])

    def _begin(self, scope: Scope) -> RequestSpans:
        headers = scope["headers"] = list(scope["headers"])
        spans = scope[SPANS] = self._tracing.begin(headers, scope["method"])
        REQUEST.set(None)
        return spans

    def _end(self, spans: RequestSpans, method: str) -> None:
        reply = cast("Reply | None", REQUEST.get())
        if reply is None:
            spans.end(method, {}, failed=True)
            return
        scope = reply.scope
        # An answer from memory needs no route, so none was looked for.
        route = route_of(scope) or self._routes.find(scope["method"], plain_path(scope["raw_path"]))
        name = f"{method} {route.path}" if route else method
        spans.end(name, self._attributes(reply, method, route), failed=reply.status >= 500 or not reply.status)

    def _attributes(self, reply: Reply, method: str, route: DeclaredRoute | None) -> dict[str, Any]:
        scope, change = reply.scope, reply.change
        path = plain_path(scope["raw_path"])
        subject = change.get("subject") or (subject_name(route.segment(path, SUBJECT)) if route else "")
        schema_id = change.get("schema_id") or (route.segment(path, SCHEMA_ID) if route else "")
        return {
            "http.request.method": method,
            "http.route": route.path if route else None,
            "http.response.status_code": reply.status or None,
            "http.response.body.size": reply.size,
            "strata.request_id": reply.request_id.decode(),
            "strata.subject": self._tracing.subject(subject) if subject else None,
            "strata.schema_id": int(schema_id) if str(schema_id).isdecimal() else None,
            "strata.offset": change.get("offset", self._state().offset),
        }
