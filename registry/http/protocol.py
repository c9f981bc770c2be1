"""The HTTP protocol of one connection: uvicorn's, with limits on the size and duration of requests.

A timer limits how long the client may take from the start of the connection, or from the first bytes of a request,
until the request is complete. uvicorn's keep-alive timer covers an idle connection after a response. Another timer
covers a client that does not read its response. A request that the parser rejects gets an error object; if
earlier requests of the connection are still running, it closes after their responses instead.

Over TLS, closing means to say goodbye (close_notify) and to wait for the client's goodbye. Clients that keep idle
connections read no goodbye, so that wait is short.

A request becomes a task only when it needs one. Most requests that are answered from memory never wait, or wait for
one future: making and ending a task costs a tenth of such an answer.
"""

import asyncio
import logging
import re
import struct
from collections.abc import Callable, Coroutine
from contextvars import Context, copy_context
from dataclasses import dataclass
from fcntl import ioctl
from functools import partial
from http import HTTPStatus
from termios import TIOCOUTQ
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from strata.registry.core.errors import error_body
from strata.registry.http.asgi import FORWARDED, SEND_WHOLE, Scope
from strata.registry.http.media_types import TYPES
from strata.registry.http.tls_extension import tls_extension

__all__ = ["ConnectionLimits", "HttpProtocol", "begin"]

_REQUEST_LINE = re.compile(rb"[\r\n]*[!#$%&'*+.^_`|~0-9A-Za-z-]+ \S+ HTTP/1\.[01]\r?\n")
_AROUND_A_HEADER = 4  # colon, space, CR, LF
_WORTH_COPYING = 64 << 10  # bytes of a body that is joined to its head
_LINGER_S, _LAST_LINGER_S = 2.0, 0.2
_GOODBYE_S = 0.5
_LAST_REQUEST_S = 2.0  # for the rest of a request, once the node ends
_MALFORMED = "the request is not well-formed HTTP/1.1"
_log = logging.getLogger("strata.http")


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """The limits of client connections.

    Attributes:
        connections: the most open connections.
        headers: the most headers of a request.
        head_bytes: the largest request target and headers, in bytes.
        seconds: the longest wait for a complete request or for a client to read, in seconds.
    """

    connections: int
    headers: int
    head_bytes: int
    seconds: float


class _Refused(Exception):
    """The end of parsing a rejected request; `HttpProtocol._refusal` holds the reason."""


class HttpProtocol(HttpToolsProtocol):
    """One connection, which rejects requests beyond the limits and closes if the client takes too long.

    Args:
        args: uvicorn's arguments.
        limits: the limits.
        opened: is called when the connection begins.
        refused: is called with the status of each request that is rejected here.
        is_draining: returns whether the node is about to shut down.
        kwargs: uvicorn's keyword arguments.
    """

    def __init__(
        self,
        *args: Any,
        limits: ConnectionLimits,
        opened: Callable[[], None] = lambda: None,
        refused: Callable[[int], None] = lambda _status: None,
        is_draining: Callable[[], bool] = lambda: False,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        opened()
        self._refused, self._is_draining = refused, is_draining
        self._limits = limits
        self._refusal: tuple[int, str] | None = None
        self._is_open = self._in_head = False  # between the start and the end of a message, and of its head
        # Bytes of the last chunk, of the chunk that held the head or the last part of the body, and of all chunks
        # since.
        self._chunk = self._first = self._received = 0
        self._plain_head = b""
        self._is_surplus = self._is_leaving = self._is_deaf = False  # deaf: incoming bytes are dropped
        self._unread = 0
        self._extensions: dict[str, dict[object, object]] | None = None  # of ASGI, for all requests
        self._timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None

    # --- the connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timer for the first request."""
        super().connection_made(transport)
        tls = transport.get_extra_info("ssl_object")
        if tls is not None:
            self._extensions = {"tls": tls_extension(tls)}
        self._is_surplus = len(self.connections) > self._limits.connections
        seconds = min(self._limits.seconds, _LINGER_S) if self._is_surplus else self._limits.seconds
        self._timer = self.loop.call_later(seconds, self._expire)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop all timers."""
        super().connection_lost(exc)
        self._unset_keepalive_if_required()
        for timer in (self._timer, self._write_timer):
            if timer is not None:
                timer.cancel()

    def data_received(self, data: bytes) -> None:
        """Parse incoming bytes; reject malformed and oversized requests."""
        if self._is_deaf:
            return
        self._unset_keepalive_if_required()
        if self._is_surplus:
            self._refuse(503, f"this node already serves {self._limits.connections} connections; try again later")
            return
        self._chunk = len(data)
        self._received += self._chunk
        try:
            self._feed(data)
        except httptools.HttpParserError as error:
            self._refuse(*(self._refusal or _reason(error, data)))
            return
        if self._is_open and (excess := self._excess()):
            self._refuse(*excess)
            return
        if self._is_open or self.cycle is None or self.cycle.response_complete:
            if self._timer is None:
                self._timer = self.loop.call_later(self._limits.seconds, self._expire)
        elif self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Callable[..., Any]) -> None:
        """Pass a request to the app, in the next turn of the event loop and without a task."""
        begin(self.loop, cycle.run_asgi(app), self.tasks)

    def _feed(self, data: bytes) -> None:
        """Parse bytes, ignoring an offer to upgrade the protocol.

        The parser ends such a request after its headers, so a new parser reads the headers again without the offer.
        """
        rest: bytes | memoryview = data
        while rest:
            try:
                self.parser.feed_data(rest)
            except httptools.HttpParserUpgrade as upgrade:
                rest = memoryview(rest)[upgrade.args[0] :]
                head, self._plain_head = self._plain_head, b""
                self.parser = httptools.HttpRequestParser(self)
                self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn does
                self.parser.feed_data(head)
            else:
                return

    def _expire(self) -> None:
        """Close a connection whose client has not sent a complete request in time."""
        self._timer = None
        is_answering = self._in_head and self.cycle is not None and not self.cycle.response_complete
        if self.flow.read_paused or is_answering:  # the client may be waiting for an earlier response
            self._timer = self.loop.call_later(self._limits.seconds, self._expire)
        elif self._is_open:
            self._refuse(408, f"no complete request arrived within {self._limits.seconds:g} s")
        else:
            self._close()

    # --- one message, called by the parser

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        if self._extensions is not None:
            self.scope["extensions"] = self._extensions
        self._is_open = self._in_head = True
        self._received = self._first = self._chunk

    def on_headers_complete(self) -> None:
        """Pass the request to the app."""
        limits = self._limits
        if (len(self.headers) > limits.headers or self._received > limits.head_bytes) and (excess := self._excess()):
            self._stop(*excess)
        if self.parser.should_upgrade():
            method = self.parser.get_method()
            if method == b"CONNECT":
                self._stop(405, "this server is not a proxy")
            headers = b"".join(b"%b: %b\r\n" % header for header in self.headers if header[0] != b"upgrade")
            version = self.parser.get_http_version().encode()
            self._plain_head = b"%b %b HTTP/%b\r\n%b\r\n" % (method, self.url, version, headers)
            return
        super().on_headers_complete()
        self._in_head = False
        if self._is_leaving or (self._is_draining() and any(name == FORWARDED for name, _ in self.headers)):
            # A node would send a further write over this connection when it is being closed, and not know its outcome.
            self.cycle.keep_alive = False
        scope: Scope = self.scope  # type: ignore[assignment]  # which allows more keys than uvicorn's type
        scope[SEND_WHOLE] = self._send_whole

    def on_body(self, body: bytes) -> None:
        """Pass a part of the body to the app, which limits its size; the protocol still limits trailers."""
        self._received = self._first = self._chunk
        super().on_body(body)

    def on_message_complete(self) -> None:
        """End the request's body."""
        if self._plain_head:
            return
        self._is_open = False
        super().on_message_complete()

    def _excess(self) -> tuple[int, str] | None:
        """Return status and reason if a head, or trailers, exceed the limits.

        The parser holds back an incomplete header, so the received bytes count as well as the parsed ones.
        """
        limits = self._limits
        if len(self.headers) > limits.headers:
            return 431, f"there are more than {limits.headers} headers"
        if self._received <= limits.head_bytes:
            return None
        if len(self.url) > limits.head_bytes:
            return 414, f"the request target is longer than {limits.head_bytes} bytes"
        size = len(self.url) + sum(len(name) + len(value) + _AROUND_A_HEADER for name, value in self.headers)
        if max(size, self._received - self._first) > limits.head_bytes:
            return 431, f"the request target and headers are longer than {limits.head_bytes} bytes"
        return None

    def _stop(self, status: int, reason: str) -> None:
        self._refusal = status, reason
        raise _Refused

    # --- responses and closing

    def _send_whole(self, status: int, head: bytes, body: bytes) -> bool:
        """Send a complete answer in one write; see `SendWhole`.

        uvicorn's way through two messages and each header costs a hot read a quarter of its time. That way is left to
        large answers, to answers that close the connection, and to clients that do not read fast enough or that send
        requests before they have the answers to earlier ones: then `cycle` may belong to a later request.
        """
        cycle = self.cycle
        if self.pipeline or self.flow.write_paused or cycle.disconnected or not cycle.keep_alive:
            return False
        if len(body) > _WORTH_COPYING:
            return False
        cycle.response_started = cycle.response_complete = True
        cycle.waiting_for_100_continue = False
        always = [b"%b: %b\r\n" % header for header in self.server_state.default_headers]
        self.transport.write(b"".join((STATUS_LINE[status], *always, head, b"\r\n", body)))
        cycle.message_event.set()
        cycle.on_response()
        return True

    def _refuse(self, status: int, reason: str) -> None:
        """Answer the incoming request with an error and close; with earlier responses due, only close after them."""
        if self.transport.is_closing():
            return
        cycle, in_body = self.cycle, self._is_open and not self._in_head
        if cycle is not None and not in_body and not cycle.response_complete:
            cycle.keep_alive = False
            self._is_deaf = True
            return
        if cycle is not None and in_body:
            cycle.disconnected = True
            if self.pipeline or cycle.response_started:
                self._close()
                return
        self._refused(status)
        _log.info(
            "refused a request from %(address)s with %(status)d: %(reason)s",
            {
                "event": "request_refused",
                "address": (self.client or ("unknown",))[0],
                "status": status,
                "reason": reason,
            },
        )
        self.transport.write(_answer(status, reason, self.server_state.default_headers))
        self._linger()

    def _linger(self) -> None:
        """Read and drop bytes for a moment: closing with unread data would destroy the response at the client."""
        self._is_deaf = True
        if self.cycle is not None:
            self.cycle.message_event.set()
        self.flow.resume_reading()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._wait(_LAST_LINGER_S if self._is_leaving else _LINGER_S, self._end)

    def _wait(self, seconds: float, then: Callable[[], None]) -> None:
        """Give the client so many seconds, at most those of a request, in place of what it had."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_later(min(self._limits.seconds, seconds), then)

    def _end(self) -> None:
        """Close without waiting for the client."""
        if self._extensions is None:
            self.transport.abort()
        else:
            self._close()

    def _close(self) -> None:
        """Close once the client has read its response."""
        if not self.transport.is_closing():  # asyncio breaks a TLS transport that is closed a second time
            self.transport.close()
        if self._write_timer is None:
            self._watch_reader()

    def _watch_reader(self) -> None:
        """Abort the connection if the client has read nothing of its response since the last check."""
        self._write_timer = None
        if not self.transport.get_write_buffer_size():
            if self._extensions is not None and self.transport.is_closing():
                self._write_timer = self.loop.call_later(_GOODBYE_S, self._stop_waiting)
            return
        unread = self.transport.get_write_buffer_size() + _queued(self.transport)
        if unread == self._unread:
            self.transport.abort()
        else:
            self._unread = unread
            self._write_timer = self.loop.call_later(self._limits.seconds, self._watch_reader)

    def _stop_waiting(self) -> None:
        """Abort a closing TLS connection, unless the client has yet to receive some bytes."""
        if _queued(self.transport):
            self._write_timer = self.loop.call_later(self._limits.seconds, self.transport.abort)
        else:
            self.transport.abort()

    def shutdown(self) -> None:
        """Close an idle connection, and another one after its response; wait a moment for the rest of a request."""
        if self._is_open and not self._is_deaf:
            self._is_leaving = True
            if self.cycle is not None and not self._in_head:
                self.cycle.keep_alive = False
            self._wait(_LAST_REQUEST_S, self._leave)
        elif not self.transport.is_closing() and not self._is_deaf:
            super().shutdown()
        if self.transport.is_closing():
            self._close()

    def _leave(self) -> None:
        """Close a connection whose client has not sent the rest of its request by the end of the node."""
        self._timer = None
        if self._is_open:
            self._refuse(408, "no complete request arrived before the node shut down")

    def on_response_complete(self) -> None:
        """Start the next waiting request or the keep-alive timer."""
        super().on_response_complete()
        if self.transport.is_closing():
            self._close()

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection."""
        self._close()

    def pause_writing(self) -> None:
        """Wait for the client to read, and start to check that it does."""
        super().pause_writing()
        self._watch_reader()

    def resume_writing(self) -> None:
        """Continue writing."""
        super().resume_writing()
        self._unread = 0
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None


def _queued(transport: asyncio.Transport) -> int:
    """Return how many bytes the system has taken that the client has not acknowledged; 0 if unknown."""
    try:
        (count,) = struct.unpack("i", ioctl(transport.get_extra_info("socket").fileno(), TIOCOUTQ, bytes(4)))
    except OSError:
        return 0
    return int(count)


def _reason(error: httptools.HttpParserError, data: bytes) -> tuple[int, str]:
    """Return status and reason for a parser error."""
    if isinstance(error, httptools.HttpParserInvalidMethodError) and _REQUEST_LINE.match(data):
        return 405, "the method is not one of HTTP/1.1"
    return 400, _MALFORMED


def _answer(status: int, reason: str, headers: list[tuple[bytes, bytes]]) -> bytes:
    body = error_body(status, f"HTTP {status} {HTTPStatus(status).phrase}: {reason}")
    more = [(b"retry-after", b"1")] if status == HTTPStatus.SERVICE_UNAVAILABLE else []
    lines = [
        *headers,
        *more,
        (b"content-type", TYPES[0]),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    head = b"".join(b"%b: %b\r\n" % line for line in lines)
    return STATUS_LINE[status] + head + b"\r\n" + body


def begin(
    loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, None, None], tasks: "set[asyncio.Task[None]]"
) -> None:
    """Run a coroutine soon, which becomes a task when it pauses for a turn of the event loop (`in_task`).

    Like a task, it first runs in the next turn, so that all requests of a turn are parsed before the first one is
    answered.

    Args:
        loop: the event loop.
        coroutine: the coroutine; it must not raise.
        tasks: gets its task while there is one, because the event loop keeps no reference to it.
    """
    context = copy_context()
    loop.call_soon(_advance, loop, coroutine, tasks, context, None, context=context)


def _advance(
    loop: asyncio.AbstractEventLoop,
    coroutine: Coroutine[Any, None, None],
    tasks: "set[asyncio.Task[None]]",
    context: Context,
    _awaited: object,
) -> None:
    try:
        awaited = coroutine.send(None)
    except StopIteration:
        return
    if awaited is None:  # a pause until the next turn
        task = loop.create_task(coroutine, context=context)
        tasks.add(task)
        task.add_done_callback(tasks.discard)
    else:
        awaited._asyncio_future_blocking = False  # the sign of a task to a future that it takes it (asyncio.isfuture)
        awaited.add_done_callback(partial(_advance, loop, coroutine, tasks, context), context=context)
