"""Answers on their way to the client: their headers, their compression, and HEAD."""

import re
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import cached_property
from http import HTTPStatus
from types import MappingProxyType
from typing import Any

import orjson

from strata.registry.errors import RegistryError
from strata.registry.http.asgi import Answer, Headers, Message, Receive, Scope, Send, SendWhole, header_lines
from strata.registry.http.compression import GZIP, accepts_gzip, compressed, is_worth_compressing
from strata.registry.http.media_types import TYPES, media_type_for
from strata.registry.http.request_ids import HEADER as REQUEST_ID
from strata.registry.logs.context import TRACEPARENT, trace_id_of
from strata.registry.usage import Fetched

__all__ = ["CollectedAnswer", "Layer", "Reply", "error_body", "without_body"]

_BODILESS = (204, 304)
_NO_SCOPE: Scope = {}
_ERROR_CODE = re.compile(rb'\{"error_code":(\d+)')  # as `error_body` writes it, on whichever node


class Reply:
    """The answer to one request: completes its headers, compresses it if that pays, and records it.

    Args:
        send: the ASGI callable of the server.
        asked: the headers of the request by lower-case name.
        request_id: the id of the request.
        more: headers of this answer that are not kept with it.
        whole: sends a complete answer at once; None if only `send` can be used.

    Attributes:
        began: when the request came, in seconds of `time.perf_counter`.
        is_head: whether the request was HEAD, so that the body is not sent.
        status: the status of the answer; 0 before it begins.
        size: the bytes of its body so far.
        received: the bytes of the request's body.
        error_code: the code of an error answer; 0 if it has none.
        route: the number of the route; -1 if there is none.
        fetched: the version or id whose schema the answer holds.
        limit: the limit that the request has hit; empty if it has hit none.
        scope: the scope of the request, with its route once that is known.
        change: the fields of the change that the request has made here, as they are logged; empty if there is none.
        failure: returns the answer to a failed request; None if that is an error object.
        answer: the answer, once it has been sent in one piece, without the request id.
    """

    # What most requests never change: an assignment in each of them would cost a read from memory more than its value.
    is_head = False
    status = size = received = error_code = 0
    route, limit = -1, ""
    fetched: Fetched | None = None
    change: Mapping[str, Any] = MappingProxyType({})
    failure: Callable[[RegistryError], Answer] | None = None
    answer: Answer | None = None
    _start: Message | None = None

    def __init__(
        self,
        send: Send,
        asked: Mapping[bytes, bytes],
        request_id: bytes,
        more: Headers | None = None,
        whole: SendWhole | None = None,
    ) -> None:
        self._send = send
        self._whole = None if more else whole
        self._own = ((REQUEST_ID, request_id), *more) if more else ((REQUEST_ID, request_id),)
        self.asked = asked
        accepted = media_type_for(asked.get(b"accept", b""))
        self.media_type, self.is_acceptable = accepted or TYPES[0], accepted is not None
        self.takes_gzip = accepts_gzip(asked.get(b"accept-encoding", b""))
        self.request_id = request_id
        self.began = time.perf_counter()
        self.scope: Scope = _NO_SCOPE

    @cached_property
    def trace_id(self) -> str:
        """The id of the trace that the request belongs to; empty if there is none."""
        return trace_id_of(self.asked.get(TRACEPARENT, b""))

    def note_received(self, size: int) -> None:
        """Note the size of the request's body so far, in bytes."""
        self.received = size

    async def send(self, message: Message) -> None:
        """Send a part of the answer, as the `send` of ASGI; the start waits for the first part of the body."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self._start = message
            return
        start = self._start
        if start is None:  # a later part of the body
            self.size += len(message.get("body", b""))
            await self._send(message)
            return
        self._start = None
        headers = self._headers(start["headers"])
        if message.get("more_body", False):
            self.size += len(message.get("body", b""))
            await self._send({**start, "headers": [*headers, *self._own]})
            await self._send(message)
        else:
            await self._send_whole(headers, message.get("body", b""), may_compress=True)

    async def fail(self, error: RegistryError) -> None:
        """Send the error, unless the answer has begun and can no longer become one."""
        if self.status and self._start is None:
            return
        self.error_code, self.limit = error.code, error.limit
        if self.failure is not None:
            self.status, found, body = self.failure(error)
            await self._send_whole(self._headers(found), body, may_compress=False)
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
        status, headers, body = answer
        self.status, self.size = status, len(body)
        if self._whole is not None:
            head = header_lines(headers) if head is None else head
            if head and self._whole(status, b"%bx-request-id: %b\r\n" % (head, self.request_id), body):
                return
        headers = [*headers, *self._own]
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": body})

    async def _send_whole(self, headers: Headers, body: bytes, *, may_compress: bool) -> None:
        if self.status >= HTTPStatus.BAD_REQUEST and (found := _ERROR_CODE.match(body)):
            self.error_code = int(found[1])
        if may_compress and is_worth_compressing(body):
            headers.append((b"vary", b"Accept-Encoding"))
            smaller = await compressed(body) if self.takes_gzip else body
            if len(smaller) < len(body):
                headers.append((b"content-encoding", GZIP))
                body = smaller
        if self.status not in _BODILESS:
            headers.append((b"content-length", b"%d" % len(body)))
        self.answer = self.status, headers, body
        await self.send_answer(self.answer)

    def _headers(self, given: Iterable[tuple[bytes, bytes]]) -> Headers:
        """Return the headers of an answer without its length; a name may occur several times."""
        media_type, rest = self.media_type, Headers()
        for name, value in given:
            if name == b"content-type":
                media_type = value
            elif name != b"content-length":
                rest.append((name, value))
        return [(b"content-type", media_type), *rest]


Layer = Callable[[Scope, Receive, Reply], Awaitable[None]]
"""A layer before the routes, which sees the whole answer."""


class CollectedAnswer:
    """An answer that is collected instead of sent."""

    def __init__(self) -> None:
        self._status, self._headers, self._body = 500, Headers(), bytearray()

    async def send(self, message: Message) -> None:
        """Collect a part of the answer, as the `send` of ASGI."""
        if message["type"] == "http.response.start":
            self._status, self._headers = message["status"], list(message["headers"])
        else:
            self._body += message.get("body", b"")

    @property
    def whole(self) -> Answer:
        """Status, headers and body."""
        return self._status, self._headers, bytes(self._body)


def error_body(code: int, message: str) -> bytes:
    """Return the JSON of an error without findings."""
    return orjson.dumps({"error_code": code, "message": message})


def without_body(send: Send) -> Send:
    """Return a `send` that answers HEAD: the headers of GET, length included, without the body."""

    async def send_head(message: Message) -> None:
        if message["type"] == "http.response.body":
            message = {**message, "body": b""}
        await send(message)

    return send_head
