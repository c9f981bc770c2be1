"""Requests that come from within the node: those that a page makes for a person, and those of other workers.

They have passed the checks of requests already, so they begin at the layers behind these.
"""

from collections.abc import Callable

from strata.registry import errors
from strata.registry.access.control import AccessControl
from strata.registry.http.access_layer import ACCESS, access_of
from strata.registry.http.asgi import Answer, Receive, Scope
from strata.registry.http.bodies import replayed
from strata.registry.http.error_boundary import ErrorBoundary
from strata.registry.http.link import ASKED_BY, PassedOn
from strata.registry.http.media_types import TYPES
from strata.registry.http.reply import CollectedAnswer, Layer, Reply
from strata.registry.http.request_checks import find_route
from strata.registry.http.request_ids import HEADER as REQUEST_ID
from strata.registry.http.route_facts import RouteTable
from strata.registry.logs.context import REQUEST, TRACEPARENT
from strata.registry.service import SERVICE
from strata.storage.state import State

__all__ = ["ASK", "InnerRequests"]

ASK = "strata.ask"
"""The name, in the scope of a request for a page, of the function by which it asks the API for the person."""

_KEPT_FOR_API = (b"host", b"user-agent", TRACEPARENT)


class InnerRequests:
    """What answers requests that come from within the node.

    Args:
        within: the layer that answers.
        routes: the routes of the inner app.
        max_body: the largest request body in bytes.
        control: access control; None if it is off.
        state: returns the State in memory, which holds rules of access.
        read_to: returns the offset up to which this worker has read all that it has acknowledged; None if it lags.
    """

    def __init__(
        self,
        within: Layer,
        routes: RouteTable,
        *,
        max_body: int,
        control: AccessControl | None = None,
        state: Callable[[], State] = State,
        read_to: Callable[[], int | None] = lambda: None,
    ) -> None:
        self._within, self._routes, self._max_body = ErrorBoundary(within, access_log=False), routes, max_body
        self._control, self._state, self._read_to = control, state, read_to

    async def ask(
        self, page: Scope, receive: Receive, request_id: bytes, method: str, target: str, body: bytes
    ) -> Answer:
        """Return the answer of the API to a request that a page makes for the person who looks at it.

        It passes the layers behind the checks of requests, as a request of its own: the page was checked already.

        Args:
            page: the scope of the request for the page.
            receive: the ASGI callable of that request, which tells when the person has gone.
            request_id: the id of both requests.
            method: the method.
            target: the path and query string.
            body: the body, JSON.

        Raises:
            RegistryError: 413 if the body is too large.
        """
        if len(body) > self._max_body:
            raise errors.too_large(self._max_body)
        path, _, query = target.partition("?")
        scope = {name: value for name, value in page.items() if name not in (SERVICE, ASK)}
        scope |= {"method": method, "path": path, "raw_path": path.encode(), "query_string": query.encode()}
        kept = [header for header in page["headers"] if header[0] in _KEPT_FOR_API]
        scope["headers"] = [*kept, (b"content-type", TYPES[0]), (REQUEST_ID, request_id)]
        find_route(scope, self._routes)
        if self._control is not None:
            scope[ACCESS] = self._control.passed_on(access_of(page).asked_by, self._state())
        collected = CollectedAnswer()
        reply = Reply(collected.send, dict(scope["headers"]), request_id)
        reply.scope = scope
        outer = REQUEST.set(reply)
        try:
            await self._within.answer(scope, replayed(body, receive), reply)
        finally:
            REQUEST.reset(outer)
        return collected.whole

    async def answer_passed_on(self, scope: Scope, receive: Receive) -> PassedOn:
        """Return the answer to a request that another worker has received and checked."""
        find_route(scope, self._routes)
        if self._control is not None:
            scope[ACCESS] = self._control.passed_on(scope[ASKED_BY], self._state())
        kept, headers = CollectedAnswer(), dict(scope["headers"])
        asked = {TRACEPARENT: headers[TRACEPARENT]} if TRACEPARENT in headers else {}
        reply = Reply(kept.send, asked, headers[REQUEST_ID])
        reply.scope = scope
        REQUEST.set(reply)
        await self._within.answer(scope, receive, reply)
        status, answered, body = kept.whole
        return (status, [header for header in answered if header[0] != REQUEST_ID], body), self._read_to()
