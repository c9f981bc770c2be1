"""The way of a request, on one page: `Pipeline._walk` has all steps in their order, from the first byte to the answer.

Begin, count, admit, hot answer, kept answer of a GET, find the route, check, note, permit, kept answer, forward or
call. All that a step learns is in the exchange of the request. Requests from within the node, those of pages and those
that another worker passes on, were admitted and checked as the request that they come from, so they begin at the route.

A request is not a task before it writes (`http/protocol.py`). A read that needs to be one awaits `in_task`.

Two steps answer from memory. **Hot answers** are schemas by id, or by subject and explicit version: they stay the same
until something is deleted, and such a read costs the server little more than its bytes, so this step comes before all
that such a read does not need. **Kept answers** (docs/decisions/0004) are those that depend on State and request alone.
Each is kept under all of the request that can change it, and valid while State is the very State that the whole answer
was computed from. The log proves this on each request, as for a route that reads: the catch-up comes first, then the
look into the cache; a route gets the State of that catch-up, so there is never a second one. A GET has one key for
both, and its kept answer is looked for as early as a hot one: the request that it was made for has passed the checks.
Errors are not kept, except what is not found: a schema may be refused because its check took too long. An answer is
kept when its request comes for the second time. Many requests never come again, such as the check of a new schema in a
build, and keeping their answers costs a quarter of the time of a read.

No exception leaves the pipeline: the server would drop a connection that other requests use.
"""

import itertools
import logging
import re
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from http import HTTPStatus
from typing import Any, Protocol, cast
from uuid import uuid4

from starlette.requests import ClientDisconnect
from starlette.responses import Response

from strata.registry.core import errors
from strata.registry.core.cache import BasisCache, Repeats
from strata.registry.core.errors import RegistryError
from strata.registry.core.log_reader import in_task
from strata.registry.core.rights.request_access import Access, AskedBy
from strata.registry.core.rights.route_rights import OPEN
from strata.registry.core.subject_names import subject_name
from strata.registry.http.admission import Admission
from strata.registry.http.asgi import REQUEST_ID, SEND_WHOLE, Answer, App, Message, Receive, Scope, Send
from strata.registry.http.bodies import answer, read_up_to, replayed
from strata.registry.http.checks import BrowserGuard, RequestChecks, plain_path
from strata.registry.http.cors import Cors
from strata.registry.http.exchange import Exchange, RequestFacts, header_lines
from strata.registry.http.forward import Forward
from strata.registry.http.link import PassedOn
from strata.registry.http.media_types import TYPES
from strata.registry.http.page_paths import PAGES, is_page
from strata.registry.http.route_facts import SUBJECT, Kept, RouteTable
from strata.registry.http.service import Service
from strata.registry.node.logs.changes import EVENTS, change_fields, log_change
from strata.registry.node.logs.context import REQUEST, TRACEPARENT
from strata.storage.log import Record
from strata.storage.state import State

__all__ = ["Auditor", "ConnectionCounts", "HotKey", "KeptAnswer", "Pipeline", "RequestIds"]

_PAGES = PAGES.encode()
_USABLE_ID = re.compile(rb"[A-Za-z0-9._:/+=@-]{1,128}")
_KEPT_FOR_API = (b"host", b"user-agent", TRACEPARENT)
_KEK = "{name}"
_BYTES_AROUND = 1000  # memory per kept answer in addition to its bytes
_LARGEST_BODY = 64 << 10
_MOST_NOTED = 4096
_KEPT_STATUSES = (200, 207, 404)
_UNNOTED = nullcontext()
_log = logging.getLogger("strata.http")

HotKey = tuple[bytes, bytes, bytes, bool, int]
"""Raw path, query string, media type, whether the client accepts gzip, and the number of its rights, of a GET request.

So an answer is only sent to a client with the same rights as the one that it was made for.
"""
KeptKey = tuple[str, str, bytes, bytes, bytes, bool, int]
"""Method, path, query string, body, media type, whether the client accepts gzip, and the number of its rights."""


class KeptAnswer:
    """An answer in memory, its headers as lines, and what was noted with it.

    Args:
        answer: the answer.
        note: what to keep with it, of a few bytes.
    """

    __slots__ = ("answer", "head", "note", "size")

    def __init__(self, answer: Answer, note: Any) -> None:
        status, headers, body = answer
        # A body from orjson keeps the buffer that it was written to, some 4 KiB; a copy does not.
        self.answer = status, headers, bytes(memoryview(body))
        self.head, self.note, self.size = header_lines(headers), note, len(body) + _BYTES_AROUND


class Auditor(Protocol):
    """The audit, as the pipeline sees it."""

    @property
    def reads(self) -> bool:
        """Whether reads are noted too."""

    def noting(self, exchange: Exchange) -> AbstractContextManager[None]:
        """Return the context in which what comes of a request is noted, besides its change."""

    def change(
        self, asked: RequestFacts, access: Access, offset: int, records: Sequence[Record], before: State
    ) -> None:
        """Note a change that the log has; never fails."""


class ConnectionCounts(Protocol):
    """What counts connections."""

    def open_connection(self) -> None:
        """Count a connection that a client has opened."""

    def refuse(self, status: int) -> None:
        """Count a connection or request that the server refuses before the app sees it."""


class Pipeline:
    """The ASGI app of the service.

    Args:
        service: the node.
        routes: its routes.
        app: the app that starts and ends the service; routes find it in the scope.
        forward: forwards writes to the node or worker that writes.
        guard: the check of hosts and origins.
        hot_bytes: the most bytes that the hot answers may have together.
        kept_bytes: the most bytes that the kept answers may have together.
        admission: finds out who asks; None if access control is off and rates are unlimited.
        audit: the audit; None if there is none.
        cors: the origins whose pages may read answers; None if there are none.
        failure_page: returns the answer to a request for a page that failed; None if there are no pages.

    Attributes:
        routes: the routes.
        begins: are called with each request of a client before the first step.
        ends: are called with it after the last one.
        begins_inner: are called with each request that another worker passes on, before the first step.
        ends_inner: are called with it after the last one.
        counts: what counts connections and requests; None if nothing does.
        metrics_page: the app that serves the metrics at an address of their own; None if they have none.
        news: takes what other workers report; None if nothing wants it.
    """

    def __init__(
        self,
        service: Service,
        routes: RouteTable,
        app: App,
        forward: Forward,
        guard: BrowserGuard,
        *,
        hot_bytes: int,
        kept_bytes: int,
        admission: Admission | None = None,
        audit: Auditor | None = None,
        cors: Cors | None = None,
        failure_page: Callable[[Exchange, RegistryError], Answer] | None = None,
    ) -> None:
        settings, writer = service.settings, service.writer
        self._service, self.routes, self._app, self._forward, self._guard = service, routes, app, forward, guard
        self._checks = RequestChecks(routes, guard, settings.max_body)
        self._admission, self._audit, self._cors, self._failure_page = admission, audit, cors, failure_page
        self._max_body = settings.max_body
        self._access_log, self._slow_s = settings.access_log, settings.slow_request or None
        self._ids = RequestIds()
        self._uses_hot = not settings.access_log and not (audit is not None and audit.reads)
        self.hot: BasisCache[HotKey, KeptAnswer] = BasisCache(writer.lasting, hot_bytes)
        self.kept: BasisCache[HotKey | KeptKey, KeptAnswer] = BasisCache(lambda: writer.state, kept_bytes)
        self._repeats = Repeats(_MOST_NOTED)
        self.begins: tuple[Callable[[Exchange], None], ...] = ()
        self.ends: tuple[Callable[[Exchange], None], ...] = ()
        self.begins_inner: tuple[Callable[[Exchange], None], ...] = ()
        self.ends_inner: tuple[Callable[[Exchange], None], ...] = ()
        self.counts: ConnectionCounts | None = None
        self.metrics_page: App | None = None
        self.news: Callable[[Any], None] | None = None

    def reads_from_memory(self) -> int:
        """Return how many reads hot and kept answers have answered."""
        return self.hot.hits + self.kept.hits

    # --- where requests come from

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request of a client."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        is_head = scope["method"] == "HEAD"
        if is_head:
            # A copy, because the server must still see HEAD: else it misses the body and drops the connection.
            scope = {**scope, "method": "GET", SEND_WHOLE: None}
        headers = dict(scope["headers"])
        given_id = headers.get(REQUEST_ID)
        request_id = self._ids.choose(given_id) if given_id else self._ids.next()
        more = self._cors.headers(headers) if self._cors else None
        exchange = Exchange(self._service, scope, receive, send, headers, request_id, more)
        if is_head:
            exchange.is_head = True
        if exchange.raw_path.startswith(_PAGES) and self._failure_page and is_page(plain_path(exchange.raw_path)):
            exchange.failure = self._failure_page
            exchange.ask = partial(self._ask, exchange)
        REQUEST.set(exchange)
        for begin in self.begins:
            begin(exchange)
        try:
            try:
                await self._walk(exchange)
            except Exception as error:  # noqa: BLE001 - nothing is outside of this
                await self._fail(exchange, error)
            if not exchange.is_hot:
                self._log_request(exchange)
        finally:
            for end in self.ends:
                end(exchange)
            del exchange.receive  # it notes in the exchange what it receives, and a cycle would wait for the collector

    async def _ask(self, page: Exchange, method: str, target: str, body: bytes) -> Answer:
        """Return the answer of the API to a request that a page makes for the person who looks at it.

        Args:
            page: the request for the page, which was checked already.
            method: the method.
            target: the path and query string.
            body: the body, JSON.

        Raises:
            RegistryError: 413 if the body is too large.
        """
        if len(body) > self._max_body:
            raise errors.too_large(self._max_body)
        path, _, query = target.partition("?")
        kept = [header for header in page.scope["headers"] if header[0] in _KEPT_FOR_API]
        headers = [*kept, (b"content-type", TYPES[0]), (REQUEST_ID, page.request_id)]
        scope = {**page.scope, "method": method, "path": path, "raw_path": path.encode(), "headers": headers}
        scope |= {"query_string": query.encode(), SEND_WHOLE: None}  # the connection is the page's
        exchange = Exchange(
            self._service, scope, replayed(body, page.receive), _send_nowhere, dict(headers), page.request_id
        )
        exchange.spans = page.spans
        outer = REQUEST.set(exchange)
        try:
            return await self._answer_inner(exchange, page.access.asked_by)
        finally:
            REQUEST.reset(outer)

    async def answer_passed_on(self, scope: Scope, receive: Receive, asked_by: AskedBy) -> PassedOn:
        """Return the answer to a request that another worker has received and checked.

        Args:
            scope: the request.
            receive: its ASGI callable.
            asked_by: the principal and address that the other worker found.
        """
        headers = dict(scope["headers"])
        trace = {TRACEPARENT: headers[TRACEPARENT]} if TRACEPARENT in headers else {}
        exchange = Exchange(self._service, scope, receive, _send_nowhere, trace, headers[REQUEST_ID])
        for begin in self.begins_inner:
            begin(exchange)
        REQUEST.set(exchange)
        try:
            answer = await self._answer_inner(exchange, asked_by)
        finally:
            for end in self.ends_inner:
                end(exchange)
        return answer, self._service.writer.read_to

    async def _answer_inner(self, exchange: Exchange, asked_by: AskedBy) -> Answer:
        exchange.is_inner = True
        if self._service.control is not None:
            exchange.access = self._service.control.passed_on(asked_by, self._service.state)
        try:
            await self._walk(exchange)
        except Exception as error:  # noqa: BLE001 - as for a request of a client
            await self._fail(exchange, error)
        return exchange.answer or (int(HTTPStatus.INTERNAL_SERVER_ERROR), [], b"")  # its client has left

    async def _fail(self, exchange: Exchange, error: Exception) -> None:
        """Answer what a step has raised."""
        if isinstance(error, RegistryError):
            await exchange.fail(error)
            return
        method, path = exchange.scope["method"], plain_path(exchange.raw_path)
        if isinstance(error, ClientDisconnect):
            _log.debug("%s %s: the client disconnected before its request was complete", method, path)
            return
        _log.error(
            "%(method)s %(path)s failed",
            {"event": "request_failed", "method": method, "path": path},
            exc_info=error,
        )
        await exchange.fail(errors.internal())

    # --- the way of a request

    async def _walk(self, exchange: Exchange) -> None:
        """Take a request through the steps, until one has answered it.

        Raises:
            RegistryError: the error that answers it.
        """
        scope, hot_key, basis = exchange.scope, None, None
        if exchange.is_inner:
            exchange.follow(self.routes.find(scope["method"], scope["path"]))
        else:
            if self._cors is not None and (granted := self._cors.preflight(scope["method"], exchange.headers)):
                await exchange.send_answer(granted)
                return
            if self._admission is not None:
                await self._admission.admit(exchange)
            if scope["method"] == "GET":
                media_type, who = exchange.media_type, exchange.access.number
                hot_key = exchange.raw_path, scope["query_string"], media_type, exchange.takes_gzip, who
                if await self._send_from_memory(exchange, hot_key):
                    return
                basis = self.hot.basis()
            self._checks.settle(exchange)
            self._checks.check(exchange)
        with self._noted(exchange):
            if self._service.control is not None:
                await self._permit(exchange)
            kept_key = await self._kept_key(exchange, hot_key) if exchange.facts.kept is not Kept.NO else None
            if kept_key is not None and self.kept.holds(kept_key) and await self._send_kept(exchange, kept_key):
                return
            if exchange.facts.writes or (exchange.facts.about_writer and self._forward.has_link):
                await in_task()
                answer = await self._forward.answer(exchange, self._call)
            else:
                answer = await self._call(exchange)
            if answer is None:  # the client has left
                return
            await exchange.complete(answer)
            if kept_key is not None:
                self._keep(exchange, kept_key)
        if hot_key is not None and exchange.lasts:
            self._keep_hot(exchange, hot_key, basis)

    # --- hot answers

    async def _send_from_memory(self, exchange: Exchange, key: HotKey) -> bool:
        """Send the hot or kept answer to a GET request; a kept one is looked for here too, before the checks."""
        host = exchange.headers.get(b"host", b"")
        if not self._uses_hot or not exchange.is_acceptable or not self._guard.knows(host):
            return False
        if (hot := self.hot.find(key)) is not None:
            exchange.is_hot = True
            exchange.route, exchange.fetched = hot.note
            await exchange.send_answer(hot.answer, hot.head)
            return True
        if (kept := self.kept.peek(key)) is None:
            return False
        exchange.route = kept.note[0]
        return await self._send_kept(exchange, key)

    def _keep_hot(self, exchange: Exchange, key: HotKey, basis: object) -> None:
        same_rights = exchange.access.number == key[-1]  # the rules may have changed meanwhile
        if same_rights and exchange.answer is not None and exchange.status == HTTPStatus.OK:
            kept = KeptAnswer(exchange.answer, (exchange.route, exchange.fetched))
            self.hot.put(key, kept, basis, kept.size + len(key[0]) + len(key[1]))

    # --- changes and refusals

    def _noted(self, exchange: Exchange) -> AbstractContextManager[None]:
        """Return the context in which a request's changes are logged, and audited if there is an audit."""
        route = exchange.route
        if route is None or (self._audit is None and not route.facts.writes):
            return _UNNOTED
        exchange.on_change = self._note_change
        return _UNNOTED if self._audit is None else self._audit.noting(exchange)

    def _note_change(self, exchange: Exchange, offset: int, records: Sequence[Record], before: State) -> None:
        """Note a change that the log has; nothing may fail here, because its client must learn that it was made."""
        facts = exchange.facts_shown()
        if self._audit is not None:
            self._audit.change(facts, exchange.access, offset, records, before)
        event = EVENTS.get((facts["method"], facts["route"]), "change")
        try:
            fields = change_fields(records, offset)
        except Exception:  # noqa: BLE001 - see above
            fields = {"what": "records that cannot be shown", "offset": offset, "records": len(records)}
        exchange.changed = fields
        log_change(event, facts, exchange.access.principal.name, exchange.address, fields)

    # --- rights

    async def _permit(self, exchange: Exchange) -> None:
        """Refuse what the principal may not do, before the body is read.

        Raises:
            RegistryError: 401, 40301 or 429 if it must not pass; 50301 if the newest rules cannot be read.
        """
        route, need, access = exchange.route, exchange.facts.need, exchange.access
        if route is not None and need is not None and need is not OPEN:
            path = exchange.scope["path"]
            subject, kek = subject_name(route.segment(path, SUBJECT)), route.segment(path, _KEK)
            await access.reconsider(partial(access.enter, need, subject, kek), self._service.writer.catch_up)

    # --- kept answers

    async def _kept_key(self, exchange: Exchange, hot_key: HotKey | None) -> HotKey | KeptKey | None:
        """Return the key of a request; for GET it is that of the hot answers, so that the look can come as early."""
        if hot_key is not None:
            exchange.body_bytes = 0
            return hot_key
        scope = exchange.scope
        body = b""
        if scope["method"] == "POST":
            read, exchange.receive = await read_up_to(exchange.receive, _LARGEST_BODY)
            if read is None:
                return None
            body = exchange.body = read
        exchange.body_bytes = len(body)
        method, path, query, who = scope["method"], scope["path"], scope["query_string"], exchange.access.number
        return method, path, query, body, exchange.media_type, exchange.takes_gzip, who

    async def _send_kept(self, exchange: Exchange, key: HotKey | KeptKey) -> bool:
        """Send the answer that is kept under a key, if it is still valid once the State is fresh."""
        await exchange.fresh()
        kept = self.kept.find(_for_rights(key, exchange.access.number))
        if kept is None:
            return False
        exchange.answer = kept.answer
        exchange.route, exchange.error_code, exchange.fetched = kept.note
        await exchange.send_answer(kept.answer, kept.head)
        return True

    def _keep(self, exchange: Exchange, key: HotKey | KeptKey) -> None:
        key = _for_rights(key, exchange.access.number)
        if exchange.lasts or not self._repeats.repeat(hash(key)):  # what lasts is a hot answer
            return
        if exchange.answer is not None and exchange.status in _KEPT_STATUSES:
            kept = KeptAnswer(exchange.answer, (exchange.route, exchange.error_code, exchange.fetched))
            size = kept.size + sum(len(part) for part in key if isinstance(part, str | bytes))
            self.kept.put(key, kept, exchange.answers_from, size)

    # --- the route

    async def _call(self, exchange: Exchange) -> Answer:
        """Return the answer of the request's route on this node."""
        route, scope = exchange.route, exchange.scope
        scope["app"] = self._app
        try:
            if route is not None and route.respond is not None:
                response = await route.respond(exchange)
            else:
                response = self._unrouted(scope)
        except RegistryError as error:
            if is_page(scope["path"]):
                raise  # it becomes a page
            response = _refusal(error)
        return response.status_code, response.raw_headers, bytes(response.body)

    def _unrouted(self, scope: Scope) -> Response:
        methods = self.routes.methods(scope["path"])
        if not methods:
            raise errors.http_error(HTTPStatus.NOT_FOUND.value, HTTPStatus.NOT_FOUND.phrase)
        more = {"OPTIONS", "HEAD"} if "GET" in methods else {"OPTIONS"}
        allow = {"Allow": ", ".join(sorted(more.union(methods)))}
        if scope["method"] == "OPTIONS":
            return Response(headers=allow)
        refusal = _refusal(errors.http_error(HTTPStatus.METHOD_NOT_ALLOWED, HTTPStatus.METHOD_NOT_ALLOWED.phrase))
        refusal.headers.update(allow)
        return refusal

    # --- after the answer

    def _log_request(self, exchange: Exchange) -> None:
        """Log a request that has its answer, if it was slow or all requests are logged."""
        seconds = time.perf_counter() - exchange.began
        # Without an answer, it was the client that was slow, or that left.
        is_slow = self._slow_s is not None and seconds >= self._slow_s and exchange.status != 0
        if not is_slow and not self._access_log:
            return
        route = exchange.route
        fields = {
            "method": exchange.method,
            "path": plain_path(exchange.raw_path),
            "route": route.path if route else None,
            "status": exchange.status,
            "seconds": round(seconds, 6),
            "bytes": 0 if exchange.is_head else exchange.size,
            "address": exchange.address,
            "actor": exchange.access.principal.name,
        }
        if self._access_log:
            _log.info(
                "%(method)s %(path)s %(status)d, %(bytes)d bytes in %(seconds).6f s for %(actor)s at %(address)s",
                {"event": "request", **fields},
            )
        if is_slow:
            _log.warning(
                "%(method)s %(path)s was slow: %(status)d after %(seconds).3f s for %(actor)s at %(address)s",
                {"event": "request_slow", **fields},
            )


class RequestIds:
    """A source of ids that look like UUIDs: a random part for the process, and a counter."""

    def __init__(self) -> None:
        self._prefix = str(uuid4())[:24].encode()
        self._count = itertools.count(1)

    def next(self) -> bytes:
        """Return a new id."""
        return b"%b%012x" % (self._prefix, next(self._count))

    def choose(self, wanted: bytes) -> bytes:
        """Return the client's id if it is usable, else a new one."""
        return wanted if _USABLE_ID.fullmatch(wanted) else self.next()


def _for_rights(key: HotKey | KeptKey, number: int) -> HotKey | KeptKey:
    """Return the key of a request with the rights that it has now: other rules may have come into force."""
    return key if key[-1] == number else cast("HotKey | KeptKey", (*key[:-1], number))


def _refusal(error: RegistryError) -> Response:
    body: dict[str, object] = {"error_code": error.code, "message": error.message}
    response = answer(body if error.findings is None else body | {"findings": error.findings}, error.status)
    for name, value in error.headers:
        response.headers.append(name, value)
    return response


async def _send_nowhere(_message: Message) -> None:
    """Take the answer to a request from within the node, which is in its exchange."""
