"""The end of the topic, requested from its leader on an event loop: one request for all callers of a turn.

The Kafka client answers such a request through its own threads, which costs ten times as much CPU time as the request
itself (docs/decisions/0030). It takes few messages (`messages.py`): Metadata to find the leader, ListOffsets to get the
last stable offset, and the two messages of a SASL login.

The answer is only ever an offset, or None for "unknown": an error, another leader, an older leader epoch, a lost
connection, a slow answer. The caller then reads the log in its usual way, while this connection is opened again in the
background.

Rules of this file: a request is sent after its callers arrived, never before, and its answer serves no later caller.
Answers are bounded in size, and parsing them allocates no more than they are long.
"""

import asyncio
import logging
import math
import struct
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple, cast

from strata.storage.kafka.credentials import Credentials, CredentialsRefused
from strata.storage.kafka.messages import (
    LIST_OFFSETS,
    METADATA,
    MOST_BYTES,
    Login,
    Place,
    framed,
    list_offsets,
    list_offsets_answer,
    metadata,
    metadata_answer,
)

__all__ = ["Leader"]

_logger = logging.getLogger(__name__)

_HEAD = struct.Struct(">ii")  # of an answer: the size of what follows it, and the number of its request
_AT_ONCE = 2  # requests on their way; later callers share the one after them
_ANSWER_S, _CONNECT_S = 0.5, 2.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 1.0
_UNKNOWN_PAUSE_S = 60.0  # while no attempt has worked: brokers log each login that fails
_FAILURES = (OSError, ValueError, TimeoutError, CredentialsRefused, EOFError)

_Caller = asyncio.Future[int | None]


class Leader:
    """The connection to the leader of the topic's only partition. It belongs to the event loop that uses it.

    Args:
        brokers: the first brokers to contact.
        topic: the topic's name.
        credentials: how to secure the connections.
    """

    def __init__(self, brokers: Sequence[tuple[str, int]], topic: str, credentials: Credentials) -> None:
        self._brokers, self._topic, self._credentials = list(brokers), topic, credentials
        self._loop: asyncio.AbstractEventLoop | None = None
        self._link: _Link | None = None
        self._request = b""
        self._opening: asyncio.Task[None] | None = None
        self._pause_s, self._has_worked = 0.0, False
        self._callers: list[_Caller] = []  # those that share the next request
        self._on_the_way = 0
        self._shared = 0  # how many callers shared the newest request
        self._closed = False

    def end(self) -> "asyncio.Future[int | None]":
        """Return the last stable offset at some moment after this call began, or None if it is unknown."""
        loop = asyncio.get_running_loop()
        caller: _Caller = loop.create_future()
        if loop is not self._loop:
            self._forget(loop)
        link = self._link
        if link is None or link.is_lost:
            self._open_soon(loop)
            caller.set_result(None)
            return caller
        self._callers.append(caller)
        if len(self._callers) == 1 and self._on_the_way < _AT_ONCE:
            if self._shared == 1 and self._on_the_way == 0:
                self._send(link)  # the only client asks again: no other caller will come in this turn
            else:
                # At the end of this turn, so that the other callers of the turn share the request.
                loop.call_soon(self._send, link)
        return caller

    def close(self) -> None:
        """Close the connection; from another thread, soon."""
        self._closed = True
        loop, running = self._loop, None
        with suppress(RuntimeError):  # no loop runs in this thread
            running = asyncio.get_running_loop()
        if loop is not None and loop is running:
            self._drop()
        elif loop is not None:
            with suppress(RuntimeError):  # the loop is closed, and its connections with it
                loop.call_soon_threadsafe(self._drop)

    # --- requests

    def _send(self, link: "_Link") -> None:
        callers, self._callers = self._callers, []
        if not callers:
            return
        self._shared = len(callers)
        self._on_the_way += 1
        link.send(LIST_OFFSETS, self._request, _ANSWER_S, partial(self._answered, link, callers))

    def _answered(self, link: "_Link", callers: "list[_Caller]", body: bytes | None) -> None:
        self._on_the_way -= 1
        end = None if body is None else list_offsets_answer(body, self._topic)
        for caller in callers:
            if not caller.done():  # it may have left
                caller.set_result(end)
        if end is None:
            link.lose()
        else:
            self._pause_s, self._has_worked = 0.0, True
        if self._callers:
            self._send(link)

    # --- the connection

    def _forget(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin again on another event loop; only tests and commands have several, one after the other."""
        self._loop, self._link, self._opening, self._callers = loop, None, None, []
        self._on_the_way, self._pause_s = 0, 0.0

    def _drop(self) -> None:
        if self._opening is not None:
            self._opening.cancel()
        if self._link is not None:
            self._link.lose()

    def _open_soon(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._opening is None and not self._closed:
            self._opening = loop.create_task(self._open())

    async def _open(self) -> None:
        """Find the leader and connect to it; each attempt waits longer than the last, until a request succeeds."""
        try:
            await asyncio.sleep(self._pause_s)
            longest = _LONGEST_PAUSE_S if self._has_worked else _UNKNOWN_PAUSE_S
            self._pause_s = min(max(2 * self._pause_s, _FIRST_PAUSE_S), longest)
            link, place = await self._found()
            self._request, self._link = list_offsets(self._topic, place.epoch), link
        except _FAILURES as error:
            _logger.debug("cannot ask the leader of topic %s directly: %s", self._topic, type(error).__name__)
        finally:
            self._opening = None

    async def _found(self) -> tuple["_Link", Place]:
        """Connect to the leader that the first broker to answer names."""
        failure: Exception = OSError("no broker")
        for address in list(self._brokers):
            try:
                async with asyncio.timeout(_CONNECT_S):
                    return await self._found_by(*address)
            except _FAILURES as error:
                failure = error
                # The next attempt begins with another one.
                self._brokers.remove(address)
                self._brokers.append(address)
        raise failure

    async def _found_by(self, host: str, port: int) -> tuple["_Link", Place]:
        link = await self._connected(host, port)
        try:
            answer = await link.ask(METADATA, metadata(self._topic), _CONNECT_S)
            place = metadata_answer(answer, self._topic)
            if (place.host, place.port) == (host, port):
                return link, place
        except BaseException:
            link.lose()
            raise
        link.lose()
        return await self._connected(place.host, place.port), place

    async def _connected(self, host: str, port: int) -> "_Link":
        loop, tls = asyncio.get_running_loop(), self._credentials.tls
        _, link = await loop.create_connection(
            lambda: _Link(loop), host, port, ssl=tls, server_hostname=host if tls else None
        )
        try:
            if self._credentials.mechanism is not None:
                await self._log_in(link)
        except BaseException:
            link.lose()
            raise
        return link

    async def _log_in(self, link: "_Link") -> None:
        loop, login = asyncio.get_running_loop(), Login(self._credentials)
        # In threads: a token may have to be fetched, and a proof takes some milliseconds of hashing.
        request = await loop.run_in_executor(None, login.first)
        while request is not None:
            answer = await link.ask(*request, _CONNECT_S)
            request = await loop.run_in_executor(None, login.following, answer)
        if login.lifetime_s > 0:
            link.end_after(login.lifetime_s)


class _Request(NamedTuple):
    """A request on its way."""

    number: int
    ends: float  # when it is too old, on the clock of the event loop
    answered: Callable[[bytes | None], None]


class _Link(asyncio.Protocol):
    """One connection: requests in order, and their answers in the same order."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._waiting: deque[_Request] = deque()
        self._number = 0
        self._timer: asyncio.TimerHandle | None = None  # one for all requests: most are answered long before it rings
        self._rings = math.inf
        self._ending: asyncio.TimerHandle | None = None
        self.is_lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, _error: Exception | None) -> None:
        """Fail all requests on their way."""
        self.lose()

    def data_received(self, data: bytes) -> None:
        """Complete the requests whose answers have arrived."""
        buffer, waiting = self._buffer, self._waiting
        if (
            not buffer
            and waiting
            and data[:8] == _HEAD.pack(len(data) - 4, waiting[0].number)
            and len(data) <= MOST_BYTES
        ):
            waiting.popleft().answered(data[8:])  # the answer that was due, whole and alone: nearly always
            return
        buffer += data
        while len(buffer) >= 8:
            size, number = _HEAD.unpack_from(buffer)
            if not 4 <= size <= MOST_BYTES or not self._waiting or number != self._waiting[0].number:
                self.lose()
                return
            if len(buffer) < 4 + size:
                return
            body = bytes(buffer[8 : 4 + size])
            del buffer[: 4 + size]
            self._waiting.popleft().answered(body)

    def ask(self, api: tuple[int, int], body: bytes, timeout_s: float) -> "asyncio.Future[bytes]":
        """Send a request and return its answer; it fails with OSError when the connection is lost, or too slow."""
        answer: asyncio.Future[bytes] = self._loop.create_future()

        def answered(body: bytes | None) -> None:
            if answer.done():
                return
            if body is None:
                answer.set_exception(ConnectionResetError("the connection is lost"))
            else:
                answer.set_result(body)

        self.send(api, body, timeout_s, answered)
        return answer

    def send(
        self, api: tuple[int, int], body: bytes, timeout_s: float, answered: Callable[[bytes | None], None]
    ) -> None:
        """Send a request.

        Args:
            api: the request's key and version.
            body: the request.
            timeout_s: after how many seconds without an answer the connection is given up.
            answered: is called once, with the answer as it arrives; with None when the connection is lost, or too slow.
        """
        if self.is_lost or self._transport is None:
            answered(None)
            return
        self._number = (self._number + 1) & 0x7FFFFFFF
        ends = self._loop.time() + timeout_s
        self._waiting.append(_Request(self._number, ends, answered))
        if ends < self._rings:
            self._ring_at(ends)
        self._transport.write(framed(api, self._number, body))

    def _ring_at(self, moment: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._rings, self._timer = moment, self._loop.call_at(moment, self._ring)

    def _ring(self) -> None:
        """Give the connection up if the oldest request is too old, or look again when it will be."""
        self._rings, self._timer = math.inf, None
        if not self._waiting:
            return
        if self._waiting[0].ends <= self._loop.time():
            self.lose()
        else:
            self._ring_at(self._waiting[0].ends)

    def end_after(self, seconds: float) -> None:
        """Give the connection up after some time: the broker closes it when the login expires."""
        self._ending = self._loop.call_later(seconds, self.lose)

    def lose(self) -> None:
        """Give the connection up; a second call does nothing."""
        if self.is_lost:
            return
        self.is_lost = True
        for timer in (self._ending, self._timer):
            if timer is not None:
                timer.cancel()
        if self._transport is not None:
            self._transport.abort()
        waiting, self._waiting = self._waiting, deque()
        for request in waiting:
            request.answered(None)
