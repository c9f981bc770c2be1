"""The layer that answers repeated reads from memory, so that their routes do not run again (docs/decisions/0015).

Most answers depend on State and request alone. Each is kept under all of the request that can change it: method, path,
query string, body, media type, compression and rights. It is valid while State is the very State that the whole answer
was computed from. The log proves this on each request, as for a route that reads: the catch-up comes first, then the
look into the cache. A route gets the State of that catch-up, so there is never a second one.

Errors are not kept, except what is not found: a schema may be refused because its check took too long.
"""

from strata.registry.service import SERVICE, Service
from strata.registry.transport.access_layer import access_of
from strata.registry.transport.answer_cache import AnswerCache
from strata.registry.transport.asgi import App, Receive, Scope
from strata.registry.transport.bodies import read_up_to
from strata.registry.transport.reply import Reply
from strata.registry.transport.request_checks import facts_of
from strata.registry.transport.route_facts import Kept

__all__ = ["KeptAnswers"]

_Key = tuple[str, str, bytes, bytes, bytes, bool, int]
"""Method, path, query string, body, media type, whether the client accepts gzip, and the number of its rights."""

_LARGEST_BODY = 64 << 10
_KEPT_STATUSES = (200, 207, 404)


class KeptAnswers:
    """A layer that keeps the answers of the routes that allow it.

    Args:
        app: the inner ASGI app.
        service: the service.
        most_bytes: the most bytes that the answers may have together.
    """

    def __init__(self, app: App, service: Service, *, most_bytes: int) -> None:
        self._app, self._service = app, service
        writer = service.writer
        self._cache: AnswerCache[_Key] = AnswerCache(lambda: writer.state, most_bytes)

    async def answer(self, scope: Scope, receive: Receive, reply: Reply) -> None:
        """Send a kept answer, or let the route answer."""
        kept = facts_of(scope).kept
        body: bytes | None = b""
        if kept is not Kept.NO and scope["method"] == "POST":
            body, receive = await read_up_to(receive, _LARGEST_BODY)
        if kept is Kept.NO or body is None:
            await self._run(scope, receive, reply)
            return
        access = access_of(scope)
        asked = scope["method"], scope["path"], scope["query_string"], body
        form = reply.media_type, reply.takes_gzip
        key = *asked, *form, access.number
        service = self._service.for_request(access)
        service.body_bytes = len(body)
        if self._cache.get(key):
            await service.fresh()
            if access.number != key[-1]:  # other rules are in force now
                key = *asked, *form, access.number
            if found := self._cache.get(key):
                await reply.send_answer(found)
                return
        await self._run(scope, receive, reply, service)
        if reply.answer and reply.status in _KEPT_STATUSES and not service.lasts:  # what lasts is kept in front
            self._cache.put(key, reply.answer, service.answers_from, key_bytes=len(key[1]) + len(key[2]) + len(body))

    async def _run(self, scope: Scope, receive: Receive, reply: Reply, service: Service | None = None) -> None:
        scope[SERVICE] = service or self._service.for_request(access_of(scope))
        await self._app(scope, receive, reply.send)
