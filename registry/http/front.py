"""The outermost ASGI layer: answers hot reads from memory, and hands all other requests to the layers within.

A hot read is a schema by id, or by subject and explicit version, which stays the same until something is deleted. It
costs the server little more than its bytes, so this layer does only what such a read needs: HEAD, the request id,
`Accept`, the host, the cache. The layer in `kept_answers.py` answers what depends on the newest State.
"""

from collections.abc import Callable
from functools import partial
from http import HTTPStatus

from strata.registry.access.request_access import UNLIMITED, Access
from strata.registry.errors import RegistryError, TooManyRequests
from strata.registry.http.access_layer import ACCESS
from strata.registry.http.admission import Admission
from strata.registry.http.answer_cache import AnswerCache
from strata.registry.http.asgi import SEND_WHOLE, Answer, App, Receive, Scope, Send
from strata.registry.http.cors import Cors
from strata.registry.http.cross_site import BrowserGuard
from strata.registry.http.error_boundary import ErrorBoundary
from strata.registry.http.inner_requests import ASK, InnerRequests
from strata.registry.http.link import PassedOn
from strata.registry.http.reply import Reply, without_body
from strata.registry.http.request_checks import plain_path, route_of
from strata.registry.http.request_counts import RequestCounts
from strata.registry.http.request_ids import HEADER as REQUEST_ID
from strata.registry.http.request_ids import RequestIds
from strata.registry.http.route_facts import RouteTable
from strata.registry.logs.context import REQUEST
from strata.registry.page_paths import PAGES, is_page
from strata.registry.service import SERVICE, Service
from strata.registry.usage import Usage

__all__ = ["Front", "Key"]


_PAGES = PAGES.encode()

Key = tuple[bytes, bytes, bytes, bool, int]
"""Raw path, query string, media type, whether the client accepts gzip, and the number of its rights, of a GET request.

So an answer is only sent to a client with the same rights as the one that it was made for.
"""


class Front:
    """The ASGI app of the service.

    Args:
        app: the inner ASGI app, for what is not a request.
        within: the layers that answer, and log what they answer.
        cache: the answers to hot reads.
        routes: the routes of the inner app.
        guard: the check of hosts and origins.
        inner: what answers requests that come from within the node.
        uses_cache: whether to answer from the cache; not if every request is to be logged.
        admission: finds out who asks; None if access control is off and rates are unlimited.
        cors: the origins whose pages may read answers; None if there are none.
        failure_page: returns the answer to a request for a page that failed, given its id; None if there are no pages.
        counts: what counts requests; None if nothing does.
        usage: which versions are fetched; None if that is not counted.
        metrics_page: the app that serves the metrics at an address of their own; None if they have none.
    """

    def __init__(
        self,
        app: App,
        within: ErrorBoundary,
        cache: AnswerCache[Key],
        routes: RouteTable,
        guard: BrowserGuard,
        *,
        inner: InnerRequests,
        uses_cache: bool = True,
        admission: Admission | None = None,
        cors: Cors | None = None,
        failure_page: Callable[[Scope, bytes, RegistryError], Answer] | None = None,
        counts: RequestCounts | None = None,
        metrics_page: App | None = None,
        usage: Usage | None = None,
    ) -> None:
        self._app, self._layers, self._cache, self._guard = app, within, cache, guard
        self._routes, self._inner, self._uses_cache = routes, inner, uses_cache
        self._admission, self._cors, self._failure_page = admission, cors, failure_page
        self._ids = RequestIds()
        self.counts, self.metrics_page, self.usage = counts, metrics_page, usage

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        is_head = scope["method"] == "HEAD"
        if is_head:
            # A copy, because the server must still see HEAD: else it misses the body and drops the connection.
            scope, send = {**scope, "method": "GET"}, without_body(send)
        headers = dict(scope["headers"])
        given_id = headers.get(REQUEST_ID)
        request_id = self._ids.choose(given_id) if given_id else self._ids.next()
        whole = None if is_head else scope.get(SEND_WHOLE)
        reply = Reply(send, headers, request_id, self._cors.headers(headers) if self._cors else None, whole)
        reply.scope = scope
        if is_head:
            reply.is_head = True
        REQUEST.set(reply)
        if self._failure_page and scope["raw_path"].startswith(_PAGES) and is_page(plain_path(scope["raw_path"])):
            reply.failure = partial(self._failure_page, scope, request_id)
            scope[ASK] = partial(self._inner.ask, scope, receive, request_id)
        if self.counts is None:
            await self._answer(scope, receive, reply)
        else:
            self.counts.begin()
            try:
                await self._answer(scope, receive, reply)
            finally:
                self.counts.end(scope, reply)
        if reply.fetched is not None and self.usage is not None:
            access: Access | None = scope.get(ACCESS)
            user = access.principal.user if access is not None else None
            self.usage.note(reply.fetched, headers.get(b"user-agent", b""), user)

    async def _answer(self, scope: Scope, receive: Receive, reply: Reply) -> None:
        headers = reply.asked
        if self._cors and scope["method"] == "OPTIONS" and (granted := self._cors.preflight(headers)):
            await reply.send_answer(granted)
            self._layers.note(scope, scope["raw_path"], reply)
            return
        access = UNLIMITED
        if self._admission is not None:
            try:
                access = await self._admission.admit(scope)
            except TooManyRequests as error:
                await reply.fail(error)
                self._layers.note(scope, scope["raw_path"], reply)
                return
        key = scope["raw_path"], scope["query_string"], reply.media_type, reply.takes_gzip, access.number
        is_hot = scope["method"] == "GET" and reply.is_acceptable and self._uses_cache
        if is_hot and self._guard.knows(headers.get(b"host", b"")) and (found := self._cache.find(key)):
            answer, head, (reply.route, reply.fetched) = found
            await reply.send_answer(answer, head)
            return
        basis = self._cache.basis()
        await self._layers.answer(scope, receive, reply)
        route = route_of(scope)
        if route is None:
            return
        reply.route = self._routes.number(route)
        service: Service | None = scope.get(SERVICE)
        if service and reply.status == HTTPStatus.OK:
            reply.fetched = service.fetched
        same_rights = access.number == key[-1]  # the rules may have changed meanwhile
        if service and service.lasts and same_rights and reply.answer and reply.status == HTTPStatus.OK:
            size = len(key[0]) + len(key[1])
            self._cache.put(key, reply.answer, basis, key_bytes=size, note=(reply.route, reply.fetched))

    async def answer_passed_on(self, scope: Scope, receive: Receive) -> PassedOn:
        """Return the answer to a request that another worker has received and checked."""
        return await self._inner.answer_passed_on(scope, receive)
