"""The outermost ASGI layer: answers hot reads from the answer cache, and passes all other requests on.

A hot read costs the server itself little more than its bytes; a FastAPI handler costs three times as much
(docs/benchmarks.md). So this layer does only what such a read needs: `Accept`, the request id, the host, the cache.
"""

from strata.registry.transport.answer_cache import AnswerCache, is_marked
from strata.registry.transport.asgi import Answer, App, Receive, Scope, Send
from strata.registry.transport.cross_site import BrowserGuard
from strata.registry.transport.error_boundary import ErrorBoundary
from strata.registry.transport.media_types import TYPES, media_type_for
from strata.registry.transport.reply import KeptAnswer, Reply, send_whole, without_body
from strata.registry.transport.request_checks import RequestChecks, facts_of, find_facts
from strata.registry.transport.request_ids import HEADER as REQUEST_ID
from strata.registry.transport.request_ids import RequestIds
from strata.registry.transport.route_facts import RouteTable

__all__ = ["Front"]


class Front:
    """The ASGI app of the service.

    Args:
        app: the inner ASGI app.
        cache: the cache of answers.
        routes: the routes of the inner app.
        guard: the check of hosts and origins.
        max_body: the largest request body in bytes.
        access_log: whether to log every request; the cache is then unused.
    """

    def __init__(
        self,
        app: App,
        cache: AnswerCache,
        routes: RouteTable,
        guard: BrowserGuard,
        *,
        max_body: int,
        access_log: bool,
    ) -> None:
        self._app, self._cache, self._guard = app, cache, guard
        self._routes = routes
        self._layers = ErrorBoundary(RequestChecks(app, routes, guard, max_body), access_log=access_log)
        self._inner = ErrorBoundary(app, access_log=False)
        self._uses_cache = not access_log
        self._ids = RequestIds()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request from the cache, or pass it on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        method = scope["method"]
        if method == "HEAD":
            method = scope["method"] = "GET"
            send = without_body(send)
        header = dict(scope["headers"]).get
        encodings, given_id = header(b"accept-encoding", b""), header(REQUEST_ID)
        media_type = media_type_for(header(b"accept", b""))
        request_id = self._ids.choose(given_id) if given_id else self._ids.next()
        if method == "GET" and media_type and self._uses_cache and self._guard.knows(header(b"host", b"")):
            cached = self._cache.get((scope["raw_path"], scope["query_string"]))
            if cached is not None:
                headers = [(b"content-type", media_type), (REQUEST_ID, request_id)]
                await send_whole(send, 200, headers, *cached, encodings)
                return
        scope["headers"] = [*(one for one in scope["headers"] if one[0] != REQUEST_ID), (REQUEST_ID, request_id)]
        await self._pass_on(scope, receive, Reply(send, media_type or TYPES[0], request_id, encodings))

    async def answer_passed_on(self, scope: Scope, receive: Receive) -> Answer:
        """Return the answer to a request that another worker has received and checked."""
        find_facts(scope, self._routes)
        kept, request_id = KeptAnswer(), dict(scope["headers"])[REQUEST_ID]
        await self._inner.answer(scope, receive, Reply(kept.send, TYPES[0], request_id, b""))
        status, headers, body = kept.whole
        return status, [header for header in headers if header[0] != REQUEST_ID], body

    async def _pass_on(self, scope: Scope, receive: Receive, reply: Reply) -> None:
        """Let the routes answer, and keep the answer if its route allows that."""
        key, removals = (scope["raw_path"], scope["query_string"]), self._cache.removals()
        await self._layers.answer(scope, receive, reply)
        if facts_of(scope).cacheable and is_marked(scope) and reply.status == 200:
            self._cache.put(key, bytes(reply.body), await reply.compressed(), removals=removals)
