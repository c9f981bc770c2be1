"""One request and its answer: the only state of a request, from its first byte to its last.

`pipeline.py` makes an exchange for each request and takes it through the steps in order. The steps and the routes find
here what is asked and who asks, and they put here the answer and what is noted about it for logs, metrics and caches.
Routes read and write the registry through it, so that every answer comes from a State that is fresh enough, and every
write is one that the principal may make.
"""

import math
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import cached_property, partial
from types import MappingProxyType
from typing import Annotated, Literal, NotRequired, Protocol, TypedDict, TypeVar

from strata.compat.entities import Tags
from strata.compat.limits import Limits, NotAtOnce
from strata.registry.core.decide.decision import Decide, Decision
from strata.registry.core.decide.standby import decided
from strata.registry.core.errors import RegistryError, error_body
from strata.registry.core.lookup import Visible, everything
from strata.registry.core.parsing import inline_tags, printed
from strata.registry.core.rights.request_access import UNLIMITED, Access, Signing
from strata.registry.core.rights.rules import Operation, ResourceType
from strata.registry.core.write_group import Clock, TimedDecide
from strata.registry.http.asgi import REQUEST_ID, SEND_WHOLE, Answer, Headers, Receive, Scope, Send
from strata.registry.http.compression import GZIP, WORTH_COMPRESSING, accepts_gzip, compressed
from strata.registry.http.media_types import TYPES, media_type_for
from strata.registry.http.parameter_marks import Depends
from strata.registry.http.route_facts import DeclaredRoute, RouteFacts
from strata.registry.http.service import NOTHING, Service
from strata.registry.node.logs.context import TRACEPARENT, trace_id_of
from strata.registry.node.settings import Reads
from strata.storage.log import Record
from strata.storage.records import context_of
from strata.storage.state import SchemaVersion, State

__all__ = ["Exchange", "ExchangeDep", "Fetched", "Spans", "header_lines", "this_exchange"]

Fetched = tuple[Literal["version", "id"], str, int]
"""What was fetched: a version of a subject, or an id of a context, which stands for all versions that use it."""
_T = TypeVar("_T")
_BODILESS = (204, 304)
_BAD_REQUEST = 400  # in Python 3.11, a look at a member of `HTTPStatus` takes as long as ten such comparisons
_SMALL_BYTES = 16 << 10
_LONGEST_AGENT = 256
_ERROR_CODE = re.compile(rb'\{"error_code":(\d+)')  # as `error_body` writes it, on whichever node


class Spans(Protocol):
    """The span of a request in its trace, and the spans of its parts."""

    def timed(self, name: str) -> AbstractContextManager[None]:
        """Make a block a part of the request."""

    def add(self, name: str, began: int, ended: int) -> None:
        """Add a part that is over, which began and ended at these nanoseconds since the epoch; any thread may do so."""

    def end(self, name: str, attributes: Mapping[str, object], *, failed: bool) -> None:
        """End the span of the request, with its final name; None leaves an attribute out."""


class RequestFacts(TypedDict):
    """What the log line and the audit say about a request."""

    source_ip: str | None
    request_id: str
    method: str
    path: str
    route: str | None
    user_agent: str
    trace_id: NotRequired[str]


class Exchange:
    """One request, who asks, its answer, and what is noted about it.

    Attributes:
        service: the node that answers.
        scope: the request as ASGI has it; the checks bring its path and headers into one form.
        receive: gives the parts of its body, then tells when the client has left.
        headers: the headers that came, by lower-case name.
        request_id: the id of the request.
        raw_path: the path as it came.
        began: when it came, in seconds of `time.perf_counter`.
        is_head: whether it is HEAD, which is answered as GET without the body.
        is_inner: whether it comes from within the node: from a page, or from another worker that has checked it.
        media_type: the media type of ours that the client prefers.
        is_acceptable: whether the client takes any of them.
        takes_gzip: whether the client takes gzip.
        route: its route; None before it is looked for, and if there is none.
        facts: the facts about that route.
        body: its body, if that was read before the route.
        body_bytes: the size of its body; None if it was not read.
        received: the bytes of its body that have arrived.
        deadline: when a write gives up, on the monotonic clock.
        access: who asks, and what they may do.
        status: the status of the answer; 0 while there is none.
        size: the bytes of its body.
        answer: the whole answer, without the request id; None while there is none.
        failure: returns the answer to an error; None if that is an error object.
        ask: only for a page: returns the answer of the API to a request (method, target, JSON body) that the page makes
            for the person who looks at it.
        error_code: the code of an error answer; 0 if it has none.
        limit: the limit that the request has hit; empty if it has hit none.
        is_hot: whether the answer came from the memory of hot answers.
        answers_from: the State that the whole answer is computed from; None if it may come from several, or from more
            than State and request.
        lasts: whether the answer stays the same until something is deleted.
        fetched: the version or id whose schema the answer holds.
        on_change: is called with the exchange, the offset and the records of each write, once the log has it, and the
            State that it was decided on; None: nothing is.
        changed: the fields of the change that the request has made here, as they are logged; empty if there is none.
        signing: who has signed in or out, or tried to; None if the request is not about that.
        spans: the spans of its trace; None while tracing is off.
    """

    # What most requests never change: an assignment in each of them would cost a read from memory more than its value.
    is_head = is_inner = is_hot = lasts = takes_gzip = False
    media_type, is_acceptable = TYPES[0], True
    route: DeclaredRoute | None = None
    facts = RouteFacts()
    body = b""
    body_bytes: int | None = None
    deadline = math.inf
    access: Access = UNLIMITED
    status = size = received = error_code = 0
    limit = ""
    answer: Answer | None = None
    failure: "Callable[[Exchange, RegistryError], Answer] | None" = None
    ask: Callable[[str, str, bytes], Awaitable[Answer]]
    answers_from: State | None = None
    fetched: Fetched | None = None
    on_change: "Callable[[Exchange, int, Sequence[Record], State], None] | None" = None
    changed: Mapping[str, object] = MappingProxyType({})
    signing: Signing | None = None
    spans: Spans | None = None
    _has_begun = False
    _decided: Sequence[Record] = ()
    _decided_on = NOTHING
    _decided_at = 0

    def __init__(
        self,
        service: Service,
        scope: Scope,
        receive: Receive,
        send: Send,
        headers: Mapping[bytes, bytes],
        request_id: bytes,
        more: Headers | None = None,
    ) -> None:
        """Begin an exchange.

        Args:
            service: the node.
            scope: the request.
            receive: the ASGI callable of the request.
            send: the ASGI callable that sends the answer.
            headers: the headers of the request by lower-case name.
            request_id: the id of the request.
            more: headers of this answer that are not kept with it.
        """
        self.began = time.perf_counter()
        self.service, self.scope, self.receive, self._send = service, scope, receive, send
        self.headers, self.request_id, self.raw_path = headers, request_id, scope["raw_path"]
        self._more = more
        self._whole = None if more else scope.get(SEND_WHOLE)
        if accept := headers.get(b"accept"):
            accepted = media_type_for(accept)
            self.media_type, self.is_acceptable = accepted or TYPES[0], accepted is not None
        if encodings := headers.get(b"accept-encoding"):
            self.takes_gzip = accepts_gzip(encodings)

    # --- the request

    def follow(self, route: DeclaredRoute | None) -> None:
        """Keep the route of the request, if it has one."""
        self.route = route
        if route is not None:
            self.facts = route.facts

    @property
    def method(self) -> str:
        """The method as the client sent it."""
        method: str = "HEAD" if self.is_head else self.scope["method"]
        return method

    @property
    def address(self) -> str | None:
        """The address of the client; None if it is unknown."""
        client = self.scope.get("client")
        return self.access.address or (client[0] if client else None)

    @cached_property
    def trace_id(self) -> str:
        """The id of the trace that the request belongs to; empty if there is none."""
        header = self.headers.get(TRACEPARENT)
        return trace_id_of(header) if header else ""

    def facts_shown(self) -> RequestFacts:
        """Return what the log line and the audit say about a request."""
        scope, route = self.scope, self.route
        facts: RequestFacts = {
            "source_ip": self.address,
            "request_id": self.request_id.decode(),
            "method": scope["method"],
            "path": scope["path"],
            "route": route.path if route else None,
            "user_agent": dict(scope["headers"]).get(b"user-agent", b"").decode("latin-1")[:_LONGEST_AGENT],
        }
        if self.trace_id:
            facts["trace_id"] = self.trace_id
        return facts

    def replace_headers(self, headers: Headers) -> None:
        """Let the request have other headers."""
        self.scope["headers"], self.headers = headers, dict(headers)

    def note_received(self, size: int) -> None:
        """Note the size of the request's body so far, in bytes."""
        self.received = size

    @property
    def limits(self) -> Limits:
        """The limits on schemas in one request."""
        return self.service.settings.limits

    @property
    def readable(self) -> Visible:
        """Which subjects the request may read."""
        return everything if self.access.is_unlimited else self.access.reads

    @property
    def describable(self) -> Visible:
        """Which subjects the request may know of."""
        return everything if self.access.is_unlimited else self.access.describes

    # --- reads

    async def fresh(self) -> State:
        """Return a State with every write acknowledged before this request, unless reads are local.

        Further calls return the same State, so that an answer comes from one State alone.

        Raises:
            RegistryError: 50301 if the log cannot be read; 40301 if the newest rules refuse the request.
        """
        if self.answers_from is None:
            writer = self.service.writer
            if self.service.settings.reads is Reads.LOCAL:
                self.answers_from = writer.state
            elif self.spans is None:
                self.answers_from = await writer.catch_up()
            else:
                with self.spans.timed("log read"):
                    self.answers_from = await writer.catch_up()
            if not self.access.is_off:
                self.access.renew(self.answers_from)
        return self.answers_from

    async def fresh_on_miss(self) -> State:
        """Return a State with every write acknowledged before this request, also if reads are local.

        Raises:
            RegistryError: 50301 if the log cannot be read.
        """
        if self.service.settings.reads is not Reads.LOCAL:
            return await self.fresh()
        self.forget()
        with self._timed("log read"):
            state = await self.service.writer.catch_up()
        self.access.renew(state)
        return state

    async def text_of(self, state: State, entry: SchemaVersion, form: str) -> str:
        """Return the text of a version.

        Args:
            state: the State that holds the version.
            entry: the version.
            form: another form of its format, such as `resolved`; empty means as stored.

        Raises:
            RegistryError: 42201 if the stored schema cannot be printed.
        """
        if not form:
            return entry.schema.text
        return await self.service.writer.in_thread(printed, state, entry, form)

    async def tags_of(self, state: State, entry: SchemaVersion, wanted: list[str]) -> Tags:
        """Return the records and fields of a version that have a wanted tag, with their tags.

        Args:
            state: the State that holds the version.
            entry: the version.
            wanted: the wanted tags; `*` means any.

        Raises:
            TooExpensive: if this takes too long.
        """
        if not wanted:
            return {}
        computed = await self.computed(partial(inline_tags, state, entry))
        return {entity: tags for entity, tags in computed.items() if "*" in wanted or not set(wanted).isdisjoint(tags)}

    async def computed(self, work: Callable[[Limits], _T]) -> _T:
        """Return the result of a computation that looks at the clock of the limits that it gets.

        A small request is computed at once, because passing it to a thread and back costs as much as most of them. If
        that takes more than a moment, a thread starts again.

        Raises:
            RegistryError: any error of `work`.
        """
        if self.spans is None:
            return await self._compute(work)
        with self.spans.timed("check"):
            return await self._compute(work)

    async def _compute(self, work: Callable[[Limits], _T]) -> _T:
        if self._is_small:
            try:
                return work(self.limits.briefly())
            except NotAtOnce:
                pass
        return await self.service.writer.in_thread(lambda: work(self.limits.started()))

    def fetch(self, entry: SchemaVersion) -> None:
        """Record that the answer holds the schema of a version."""
        self.fetched = "version", entry.subject, entry.version

    def fetch_id(self, entry: SchemaVersion) -> None:
        """Record that the answer holds the schema of an id that a version uses."""
        self.fetched = "id", context_of(entry.subject), entry.schema.schema_id

    def keep(self) -> None:
        """Let the answer be kept until something is deleted."""
        self.lasts = True

    def forget(self) -> None:
        """Keep the answer out of the cache, because it comes from more than State and request."""
        self.answers_from = None

    # --- writes

    async def require(self, operation: Operation, resource_type: ResourceType, name: str) -> None:
        """Check a right that is not in the path of the request.

        Raises:
            RegistryError: 40301, or 401 if an anonymous client must say who it is.
        """
        await self.access.reconsider(
            partial(self.access.check, operation, resource_type, name), self.service.writer.catch_up
        )

    async def change(self, decide: Decide[_T]) -> _T:
        """Write what a decision writes, if the request has the rights for it on the State that it is decided on.

        Raises:
            RegistryError: any error of `Writer.write`; 40301 if a right is missing or was revoked.
        """
        return await self.service.writer.write(
            lambda state: self._permitted(state, lambda: decide(state)), self._note_change, self.deadline
        )

    async def write(self, decide: TimedDecide[_T]) -> _T:
        """Write as `change` does; one clock counts the time of all decisions.

        A small request is decided in its turn, if that takes no more than a moment. Else a dry run outside the writer's
        turn comes first.

        Raises:
            RegistryError: any error of `change`; `TooExpensive` if the request's time is used up.
        """
        writer = self.service.writer
        clock = Clock(lambda state, limits: self._permitted(state, lambda: decide(state, limits)), self.limits)
        if self._is_small:
            with suppress(NotAtOnce):
                return await writer.write(clock.decide_briefly, self._note_change, self.deadline)
        await writer.in_time(self.deadline, clock.try_out, writer.state)
        return await writer.write(clock.decide, self._note_change, self.deadline)

    def _permitted(self, state: State, decide: Callable[[], Decision[_T]]) -> Decision[_T]:
        began = time.time_ns()
        if not self.access.is_off:
            self.access.renew(state)
        decision = decided(state, decide) if state.standbys else decide()
        if not self.access.is_unlimited:
            self.access.check_records(decision.records)
        self._decided, self._decided_on = decision.records, state
        if self.spans is not None:
            self._decided_at = time.time_ns()
            self.spans.add("decide", began, self._decided_at)
        return decision

    def _note_change(self, offset: int) -> None:
        """Note what the log has."""
        if self.spans is not None:
            self.spans.add("log append", self._decided_at, time.time_ns())
        if self.on_change is not None:
            self.on_change(self, offset, self._decided, self._decided_on)

    def _timed(self, name: str) -> AbstractContextManager[None]:
        return nullcontext() if self.spans is None else self.spans.timed(name)

    @property
    def _is_small(self) -> bool:
        return self.body_bytes is not None and self.body_bytes <= _SMALL_BYTES

    # --- the answer

    async def complete(self, answer: Answer) -> None:
        """Send the answer of a route: complete its headers, and compress it if that pays."""
        self.status, headers, body = answer
        complete = self._headers(headers) if headers else [(b"content-type", self.media_type)]
        await self._send_whole(complete, body, may_compress=True)

    async def fail(self, error: RegistryError) -> None:
        """Send the error, unless the answer has begun and can no longer become one."""
        if self._has_begun:
            return
        self.error_code, self.limit = error.code, error.limit
        if self.failure is not None:
            self.status, answer_headers, body = self.failure(self, error)
            await self._send_whole(self._headers(answer_headers), body, may_compress=False)
            return
        self.status = error.status
        headers = self._headers((name.lower().encode(), value.encode()) for name, value in error.headers)
        await self._send_whole(headers, error_body(error.code, error.message), may_compress=False)

    async def send_answer(self, answer: Answer, head: bytes | None = None) -> None:
        """Send a complete answer.

        Args:
            answer: the answer.
            head: its headers as lines, if it was sent before.
        """
        self._has_begun = True
        status, headers, body = answer
        self.status, self.size = status, len(body)
        if self._whole is not None:
            head = header_lines(headers) if head is None else head
            if head and self._whole(status, b"%bx-request-id: %b\r\n" % (head, self.request_id), body):
                return
        headers = [*headers, (REQUEST_ID, self.request_id), *(self._more or ())]
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": b"" if self.is_head else body})

    async def _send_whole(self, headers: Headers, body: bytes, *, may_compress: bool) -> None:
        if self.status >= _BAD_REQUEST and (match := _ERROR_CODE.match(body)):
            self.error_code = int(match[1])
        if may_compress and len(body) >= WORTH_COMPRESSING:
            headers.append((b"vary", b"Accept-Encoding"))
            smaller = await compressed(body) if self.takes_gzip else body
            if len(smaller) < len(body):
                headers.append((b"content-encoding", GZIP))
                body = smaller
        if self.status not in _BODILESS:
            headers.append((b"content-length", b"%d" % len(body)))
        self.answer = self.status, headers, body
        await self.send_answer(self.answer)

    def _headers(self, headers: Iterable[tuple[bytes, bytes]]) -> Headers:
        """Return the headers of an answer without its length; a name may occur several times."""
        media_type, rest = self.media_type, Headers()
        for name, value in headers:
            if name == b"content-type":
                media_type = value
            elif name != b"content-length":
                rest.append((name, value))
        return [(b"content-type", media_type), *rest]


async def this_exchange() -> Exchange:
    """Stand, in the signatures that FastAPI documents, for the exchange that `Endpoint` passes."""
    raise AssertionError("never called")


ExchangeDep = Annotated[Exchange, Depends(this_exchange)]


def header_lines(headers: Headers) -> bytes:
    """Return headers as lines; nothing if one of them holds a line break, by which a client could forge others."""
    lines = b"".join([b"%b: %b\r\n" % header for header in headers])
    return lines if lines.count(b"\r") == lines.count(b"\n") == len(headers) else b""
