"""The layer that answers repeated reads from memory, so that their routes do not run again (docs/decisions/0015).

Most answers depend on State and request alone. Each is kept under all of the request that can change it: method, path,
query string, body, media type, compression and rights. It is valid while State is the very State that the whole answer
was computed from. The log proves this on each request, as for a route that reads: the catch-up comes first, then the
look into the cache. A route gets the State of that catch-up, so there is never a second one.

Errors are not kept, except what is not found: a schema may be refused because its check took too long.

An answer is kept when its request comes for the second time. Many requests never come again, such as the check of a new
schema in a build, and keeping their answers costs a quarter of the time of a read.
"""

from strata.registry.http.access_layer import access_of
from strata.registry.http.answer_cache import AnswerCache
from strata.registry.http.asgi import App, Receive, Scope
from strata.registry.http.bodies import read_up_to
from strata.registry.http.reply import Reply
from strata.registry.http.request_checks import facts_of
from strata.registry.http.route_facts import Kept
from strata.registry.service import SERVICE, Service
from strata.registry.tracing import SPANS

__all__ = ["KeptAnswers", "Repeats"]

_Key = tuple[str, str, bytes, bytes, bytes, bool, int]
"""Method, path, query string, body, media type, whether the client accepts gzip, and the number of its rights."""

_LARGEST_BODY = 64 << 10
_MOST_NOTED = 4096
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
        self.cache: AnswerCache[_Key] = AnswerCache(lambda: writer.state, most_bytes)
        self._requests = Repeats(_MOST_NOTED)

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
        service = self._service.for_request(access, scope.get(SPANS))
        service.body_bytes = len(body)
        if self.cache.holds(key):
            await service.fresh()
            if access.number != key[-1]:  # other rules are in force now
                key = *asked, *form, access.number
            if found := self.cache.find(key):
                answer, head, (reply.error_code, reply.fetched) = found
                await reply.send_answer(answer, head)
                return
        await self._run(scope, receive, reply, service)
        if service.lasts or not self._requests.repeat(hash(key)):  # what lasts is kept in front
            return
        if reply.answer and reply.status in _KEPT_STATUSES:
            size, note = len(key[1]) + len(key[2]) + len(body), (reply.error_code, service.fetched)
            self.cache.put(key, reply.answer, service.answers_from, key_bytes=size, note=note)

    async def _run(self, scope: Scope, receive: Receive, reply: Reply, service: Service | None = None) -> None:
        scope[SERVICE] = service or self._service.for_request(access_of(scope), scope.get(SPANS))
        await self._app(scope, receive, reply.send)


class Repeats:
    """Remembers the newest numbers that it was asked about, such as the hashes of requests. Not thread-safe.

    Args:
        most: how many numbers it remembers at least; twice as many at most.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._newest: set[int] = set()
        self._older: set[int] = set()

    def repeat(self, number: int) -> bool:
        """Return whether a number was asked about before, and remember it."""
        if number in self._newest:
            return True
        if len(self._newest) >= self._most:
            self._newest, self._older = set(), self._newest
        self._newest.add(number)
        return number in self._older
