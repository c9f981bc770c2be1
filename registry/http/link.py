"""The way of a write from one worker of a node to the worker that writes: a unix socket that carries whole requests.

All workers but worker 0 pass every write on. HTTP between them would cost a thread and a parser for each write, so one
connection carries many requests at once, each with a number, as a marshalled tuple behind its length. Both ends are
forks of one process, and the socket lies in a folder that only their user may enter.

The same connection tells the other workers what worker 0 has appended. They apply it without a read of the log, if they
had read exactly as far as worker 0 had before; otherwise they read the log. An answer carries the offset up to which
worker 0 has read, so that a worker knows whether it must read on.

What is known about a write stays exact. Worker 0 sends a greeting when it accepts the connection, and nothing is sent
before that: while worker 0 is being replaced, writes wait here, and their failure is "nothing was written". After a
request was sent, a broken connection or a missing answer leaves its outcome unknown.
"""

import asyncio
import itertools
import marshal
import struct
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from strata.registry.core import errors
from strata.registry.core.rights.request_access import AskedBy
from strata.registry.http.asgi import Answer, Headers, Message, Receive, Scope
from strata.storage.log import Entry

__all__ = ["AnsweringEnd", "AskingEnd", "Followers", "Link", "PassedOn"]

_LENGTH = struct.Struct("!I")
_GREETING, _NEWS, _APPENDED = 0, -1, -2
_MOST_SHARED = 64  # entries; applying them takes a few milliseconds of the event loop
_RETRY_S = 0.05
_REPORT_S = 1.0
_SCOPE = ("method", "path", "raw_path", "query_string", "root_path", "scheme", "http_version", "server", "client")
PassedOn = tuple[Answer, int | None]
"""An answer, and the offset up to which the worker that gave it had read; None if it knows of more."""
_ABSENT = "the process that writes is being replaced"
Follow = Callable[[int, Sequence[Entry]], None]


def _ignore(_after: int, _entries: Sequence[Entry]) -> None:
    pass


class Link:
    """The connection to the worker that writes; it is opened when it is needed, and again after it broke.

    Args:
        path: the unix socket at which that worker listens.
    """

    def __init__(self, path: Path) -> None:
        self._path = str(path)
        self.on_append: Follow = _ignore
        """Is called with what the other worker has appended, and the offset that it had read up to before."""
        self._end: AskingEnd | None = None
        self._opening: asyncio.Task[AskingEnd] | None = None

    async def open(self, deadline: float) -> "AskingEnd":
        """Return the open connection.

        Args:
            deadline: when to give up, on the monotonic clock, in seconds.

        Raises:
            RegistryError: 50302 if there was none in time.
        """
        if self._end is not None and self._end.is_open:
            return self._end
        if self._opening is None or self._opening.done():
            self._opening = asyncio.create_task(self._connect())
        try:
            async with asyncio.timeout(deadline - time.monotonic()):
                self._end = await asyncio.shield(self._opening)
        except TimeoutError:
            raise errors.not_written(_ABSENT) from None
        return self._end

    async def report(self, news: object) -> None:
        """Send news that need no answer, as plain values.

        Raises:
            RegistryError: 50302 if there is no connection.
        """
        end = await self.open(time.monotonic() + _REPORT_S)
        end.send(_NEWS, news)

    async def _connect(self) -> "AskingEnd":
        while True:
            with suppress(OSError):
                _, end = await asyncio.get_running_loop().create_unix_connection(
                    lambda: AskingEnd(self.on_append), self._path
                )
                await end.greeted
                return end
            await asyncio.sleep(_RETRY_S)


class _End(asyncio.Protocol, ABC):
    """One end of a connection: frames out, frames in."""

    def __init__(self) -> None:
        self._received = bytearray()
        self._transport: Any = None

    @property
    def is_open(self) -> bool:
        """Whether frames can be sent."""
        return self._transport is not None and not self._transport.is_closing()

    def connection_made(self, transport: object) -> None:
        """Keep the transport."""
        self._transport = transport

    def send(self, number: int, content: Any) -> None:
        """Send one frame: a request or its answer under the request's number."""
        frame = marshal.dumps((number, content))
        self._transport.write(_LENGTH.pack(len(frame)) + frame)

    def data_received(self, data: bytes) -> None:
        """Take the frames that are complete."""
        received = self._received
        received += data
        start, view = 0, memoryview(received)
        while len(received) - start >= _LENGTH.size:
            (size,) = _LENGTH.unpack_from(received, start)
            end = start + _LENGTH.size + size
            if len(received) < end:
                break
            number, content = marshal.loads(view[start + _LENGTH.size : end])  # noqa: S302 - from a fork of this process
            start = end
            self.take(number, content)
        view.release()
        del received[:start]

    @abstractmethod
    def take(self, number: int, content: object) -> None:
        """Take one frame."""


class AskingEnd(_End):
    """The end that sends requests.

    Args:
        on_append: is called with what the other end tells of appends.
    """

    def __init__(self, on_append: Follow) -> None:
        super().__init__()
        self._on_append = on_append
        self._numbers = itertools.count(_GREETING + 1)
        self._asked: dict[int, asyncio.Future[PassedOn]] = {}
        self.greeted: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def ask(self, scope: Scope, headers: Headers, body: bytes, asked_by: AskedBy, deadline: float) -> PassedOn:
        """Return the answer to a request; a cancelled call withdraws the request.

        Args:
            scope: the request.
            headers: its headers.
            body: its body.
            asked_by: the principal and address of its client.
            deadline: when to give up, on the monotonic clock, in seconds.

        Raises:
            RegistryError: 50003 if there is no answer, so that the outcome is unknown.
        """
        number = next(self._numbers)
        answer: asyncio.Future[PassedOn] = asyncio.get_running_loop().create_future()
        self._asked[number] = answer
        self.send(number, (*(scope[name] for name in _SCOPE), headers, body, asked_by))
        try:
            async with asyncio.timeout(deadline - time.monotonic()):
                return await answer
        except (TimeoutError, ConnectionError):
            raise errors.write_forwarding_failed() from None
        finally:
            if self._asked.pop(number, None) is not None and self.is_open:
                self.send(number, None)  # its client no longer waits

    def take(self, number: int, content: Any) -> None:
        """Settle the request that an answer belongs to, or pass on what was appended."""
        if number == _GREETING:
            self.greeted.set_result(None)
        elif number == _APPENDED:
            after, entries = content
            self._on_append(after, list(map(Entry._make, entries)))
        elif (answer := self._asked.pop(number, None)) is not None and not answer.done():
            answer.set_result(content)

    def connection_lost(self, _error: Exception | None) -> None:
        """Leave the outcome of all requests unknown."""
        lost = ConnectionResetError("the worker that writes has ended")
        waiting_for: list[asyncio.Future[None] | asyncio.Future[PassedOn]] = [self.greeted, *self._asked.values()]
        for waiting in waiting_for:
            if not waiting.done():
                waiting.set_exception(lost)
        self._asked.clear()


class Followers:
    """The connections to the workers that follow the one that writes."""

    def __init__(self) -> None:
        self.ends: set[AnsweringEnd] = set()

    def tell(self, after: int, entries: Sequence[Entry]) -> None:
        """Tell them what was appended after an offset; they read a large append from the log."""
        if len(entries) <= _MOST_SHARED:
            plain = list(map(tuple, entries))
            for end in self.ends:
                if end.is_open:
                    end.send(_APPENDED, (after, plain))


class AnsweringEnd(_End):
    """The end that answers requests.

    Args:
        answer: answers one request, given its scope, its ASGI `receive`, and who asks.
        followers: the ends that are open.
        tell: takes the news of the other worker.
    """

    def __init__(
        self,
        answer: Callable[[Scope, Receive, AskedBy], Awaitable[PassedOn]],
        followers: Followers,
        tell: Callable[[object], None] = lambda _news: None,
    ) -> None:
        super().__init__()
        self._answer, self._followers, self._tell = answer, followers, tell
        self._under_way: dict[int, _Request] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def connection_made(self, transport: object) -> None:
        """Greet the other end, which sends nothing before."""
        super().connection_made(transport)
        self.send(_GREETING, None)
        self._followers.ends.add(self)

    def connection_lost(self, _error: Exception | None) -> None:
        """Withdraw all requests, as if their clients had disconnected."""
        self._followers.ends.discard(self)
        for request in self._under_way.values():
            request.left.set()

    def take(self, number: int, content: Any) -> None:
        """Begin to answer a request, or withdraw it; or take news."""
        if number == _NEWS:
            self._tell(content)
            return
        if content is None:
            if number in self._under_way:
                self._under_way[number].left.set()
            return
        *values, headers, body, asked_by = content
        request = self._under_way[number] = _Request(body)
        scope = {"type": "http", "headers": headers, **dict(zip(_SCOPE, values, strict=True))}
        task = asyncio.create_task(self._respond(number, scope, request, asked_by))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _respond(self, number: int, scope: Scope, request: "_Request", asked_by: AskedBy) -> None:
        try:
            answer = await self._answer(scope, request.receive, asked_by)
        finally:
            del self._under_way[number]
        if self.is_open:
            self.send(number, answer)


class _Request:
    """The body of a request, and whether its client has left."""

    def __init__(self, body: bytes) -> None:
        self._body: bytes | None = body
        self.left = asyncio.Event()

    async def receive(self) -> Message:
        """Return the body, then wait until the client has left, as the `receive` of ASGI."""
        body, self._body = self._body, None
        if body is not None:
            return {"type": "http.request", "body": body, "more_body": False}
        await self.left.wait()
        return {"type": "http.disconnect"}
