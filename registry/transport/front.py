"""The outermost ASGI layer: answers hot reads from memory, and hands all other requests to the layers within.

A hot read is a schema by id, or by subject and explicit version, which stays the same until something is deleted. It
costs the server little more than its bytes, so this layer does only what such a read needs: HEAD, the request id,
`Accept`, the host, the cache. The layer in `kept_answers.py` answers what depends on the newest State.
"""

from collections.abc import Awaitable, Callable
from http import HTTPStatus

from strata.registry.access.audit import Audit
from strata.registry.access.control import BODY_DIGEST, AccessControl
from strata.registry.access.rate_limit import RateLimit
from strata.registry.access.request_access import UNLIMITED, Access
from strata.registry.errors import TooManyRequests
from strata.registry.service import SERVICE, Service
from strata.registry.transport.access_layer import ACCESS, AccessLayer
from strata.registry.transport.answer_cache import AnswerCache
from strata.registry.transport.asgi import Answer, App, Receive, Scope, Send
from strata.registry.transport.audit_layer import AuditLayer
from strata.registry.transport.cors import Cors
from strata.registry.transport.cross_site import BrowserGuard
from strata.registry.transport.error_boundary import ErrorBoundary
from strata.registry.transport.link import ASKED_BY
from strata.registry.transport.reply import CollectedAnswer, Layer, Reply, without_body
from strata.registry.transport.request_checks import RequestChecks, find_route
from strata.registry.transport.request_ids import HEADER as REQUEST_ID
from strata.registry.transport.request_ids import RequestIds
from strata.registry.transport.route_facts import RouteTable
from strata.storage.state import State

__all__ = ["Front", "Key"]

_PROBES = b"/health/"

Key = tuple[bytes, bytes, bytes, bool, int]
"""Raw path, query string, media type, whether the client accepts gzip, and the number of its rights, of a GET request.

So an answer is only sent to a client with the same rights as the one that it was made for.
"""


async def _empty() -> State:
    return State()


class Front:
    """The ASGI app of the service.

    Args:
        app: the inner ASGI app, for what is not a request.
        within: the layer that answers.
        cache: the answers to hot reads.
        routes: the routes of the inner app.
        guard: the check of hosts and origins.
        max_body: the largest request body in bytes.
        access_log: whether to log every request; the cache is then unused, as it is if the audit notes reads.
        control: access control; None if it is off.
        state: returns the State in memory, which holds rules of access.
        newest: reads the log to its end and returns the State there.
        audit: the audit; None if there is none.
        cors: the origins whose pages may read answers; None if there are none.
        rate: the limits on the requests of each client; None if there are none.
        address: returns the address of a client.
    """

    def __init__(
        self,
        app: App,
        within: Layer,
        cache: AnswerCache[Key],
        routes: RouteTable,
        guard: BrowserGuard,
        *,
        max_body: int,
        access_log: bool,
        control: AccessControl | None = None,
        state: Callable[[], State] = State,
        newest: Callable[[], Awaitable[State]] = _empty,
        audit: Audit | None = None,
        cors: Cors | None = None,
        rate: RateLimit | None = None,
        address: Callable[[Scope], str] = lambda _scope: "",
    ) -> None:
        self._app, self._cache, self._guard = app, cache, guard
        self._routes, self._control, self._state = routes, control, state
        if control is not None or rate is not None:
            within = AccessLayer(within, newest).answer
        if audit is not None:
            within = AuditLayer(within, audit).answer
        self._inner = ErrorBoundary(within, access_log=False)
        self._cors, self._rate, self._address = cors, rate, address
        self._uses_cache = not access_log and not (audit and audit.reads)
        self._layers = ErrorBoundary(RequestChecks(within, routes, guard, max_body).answer, access_log=access_log)
        self._ids = RequestIds()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if scope["method"] == "HEAD":
            # A copy, because the server must still see HEAD: else it misses the body and drops the connection.
            scope, send = {**scope, "method": "GET"}, without_body(send)
        headers = dict(scope["headers"])
        given_id = headers.get(REQUEST_ID)
        request_id = self._ids.choose(given_id) if given_id else self._ids.next()
        reply = Reply(send, headers, request_id, self._cors.headers(headers) if self._cors else None)
        if self._cors and scope["method"] == "OPTIONS" and (granted := self._cors.preflight(headers)):
            await reply.send_answer(granted)
            self._layers.note(scope["method"], scope["raw_path"], reply)
            return
        access = UNLIMITED if self._control is None else await self._control.admit(scope, self._state())
        if access is not UNLIMITED:
            scope[ACCESS] = access
        if self._rate is not None and (wait_s := self._wait_s(scope, access, self._rate)):
            await reply.fail(TooManyRequests("Too many requests; try again later", wait_s))
            self._layers.note(scope["method"], scope["raw_path"], reply)
            return
        key = scope["raw_path"], scope["query_string"], reply.media_type, reply.takes_gzip, access.number
        is_hot = scope["method"] == "GET" and reply.is_acceptable and self._uses_cache
        if is_hot and self._guard.knows(headers.get(b"host", b"")) and (found := self._cache.get(key)):
            await reply.send_answer(found)
            return
        basis = self._cache.basis()
        await self._layers.answer(scope, receive, reply)
        service: Service | None = scope.get(SERVICE)
        same_rights = access.number == key[-1]  # the rules may have changed meanwhile
        if service and service.lasts and same_rights and reply.answer and reply.status == HTTPStatus.OK:
            self._cache.put(key, reply.answer, basis, key_bytes=len(key[0]) + len(key[1]))

    def _wait_s(self, scope: Scope, access: Access, rate: RateLimit) -> float:
        """Count a request, and return how long its client must wait, in seconds.

        Not counted are probes, the requests of superusers, so that they can always act, and what another node has
        forwarded, because it has counted that.
        """
        user = access.principal.user
        is_free = (user is not None and access.is_unlimited) or BODY_DIGEST in scope
        if is_free or scope["raw_path"].startswith(_PROBES):
            return 0.0
        return rate.wait_s(user, access.address or self._address(scope))

    async def answer_passed_on(self, scope: Scope, receive: Receive) -> Answer:
        """Return the answer to a request that another worker has received and checked."""
        find_route(scope, self._routes)
        if self._control is not None:
            scope[ACCESS] = self._control.passed_on(scope[ASKED_BY], self._state())
        kept, request_id = CollectedAnswer(), dict(scope["headers"])[REQUEST_ID]
        await self._inner.answer(scope, receive, Reply(kept.send, {}, request_id))
        status, headers, body = kept.whole
        return status, [header for header in headers if header[0] != REQUEST_ID], body
