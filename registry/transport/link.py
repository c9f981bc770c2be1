"""The way of a write from one worker of a node to the worker that writes: a unix socket that carries whole requests.

All workers but worker 0 pass every write on. HTTP between them would cost a thread and a parser for each write, so one
connection carries many requests at once, each with a number, as a marshalled tuple behind its length. Both ends are
forks of one process, and the socket lies in a folder that only their user may enter.

What is known about a write stays exact. Worker 0 sends a greeting when it accepts the connection, and nothing is sent
before that: while worker 0 is being replaced, writes wait here, and their failure is "nothing was written". After a
request was sent, a broken connection or a missing answer leaves its outcome unknown.
"""

import asyncio
import itertools
import marshal
import struct
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from strata.registry import errors
from strata.registry.transport.asgi import Answer, Headers, Message, Receive, Scope

__all__ = ["ASKED_BY", "AnsweringEnd", "AskingEnd", "Link"]

_LENGTH = struct.Struct("!I")
_GREETING = 0
_RETRY_S = 0.05
_SCOPE = ("method", "path", "raw_path", "query_string", "root_path", "scheme", "http_version", "server", "client")
ASKED_BY = "strata.asked_by"
"""The name, in the scope of a request that was passed on, of the principal and address that another worker found."""
_ABSENT = "the process that writes is being replaced"


class Link:
    """The connection to the worker that writes; it is opened when it is needed, and again after it broke.

    Args:
        path: the unix socket at which that worker listens.
    """

    def __init__(self, path: Path) -> None:
        self._path = str(path)
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

    async def _connect(self) -> "AskingEnd":
        while True:
            with suppress(OSError):
                _, end = await asyncio.get_running_loop().create_unix_connection(AskingEnd, self._path)
                await end.greeted
                return end
            await asyncio.sleep(_RETRY_S)


class _End(asyncio.Protocol):
    """One end of a connection: frames out, frames in."""

    def __init__(self) -> None:
        self._received = bytearray()
        self._transport: Any = None

    @property
    def is_open(self) -> bool:
        """Whether frames can be sent."""
        return self._transport is not None and not self._transport.is_closing()

    def connection_made(self, transport: Any) -> None:
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

    def take(self, number: int, content: Any) -> None:
        """Take one frame."""
        raise NotImplementedError


class AskingEnd(_End):
    """The end that sends requests."""

    def __init__(self) -> None:
        super().__init__()
        self._numbers = itertools.count(_GREETING + 1)
        self._asked: dict[int, asyncio.Future[Answer]] = {}
        self.greeted: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def ask(self, scope: Scope, headers: Headers, body: bytes, deadline: float) -> Answer:
        """Return the answer to a request; a cancelled call withdraws the request.

        Args:
            scope: the request.
            headers: its headers.
            body: its body.
            deadline: when to give up, on the monotonic clock, in seconds.

        Raises:
            RegistryError: 50003 if there is no answer, so that the outcome is unknown.
        """
        number = next(self._numbers)
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._asked[number] = answer
        self.send(number, (*(scope[name] for name in _SCOPE), headers, body, scope.get(ASKED_BY)))
        try:
            async with asyncio.timeout(deadline - time.monotonic()):
                return await answer
        except (TimeoutError, ConnectionError):
            raise errors.write_forwarding_failed() from None
        finally:
            if self._asked.pop(number, None) is not None and self.is_open:
                self.send(number, None)  # its client no longer waits

    def take(self, number: int, content: Any) -> None:
        """Settle the request that an answer belongs to."""
        if number == _GREETING:
            self.greeted.set_result(None)
        elif (answer := self._asked.pop(number, None)) is not None and not answer.done():
            answer.set_result(content)

    def connection_lost(self, _error: Exception | None) -> None:
        """Leave the outcome of all requests unknown."""
        lost = ConnectionResetError("the worker that writes has ended")
        waiting_for: list[asyncio.Future[Any]] = [self.greeted, *self._asked.values()]
        for waiting in waiting_for:
            if not waiting.done():
                waiting.set_exception(lost)
        self._asked.clear()


class AnsweringEnd(_End):
    """The end that answers requests.

    Args:
        answer: answers one request, given its scope and its ASGI `receive`.
    """

    def __init__(self, answer: Callable[[Scope, Receive], Awaitable[Answer]]) -> None:
        super().__init__()
        self._answer = answer
        self._under_way: dict[int, _Request] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def connection_made(self, transport: Any) -> None:
        """Greet the other end, which sends nothing before."""
        super().connection_made(transport)
        self.send(_GREETING, None)

    def connection_lost(self, _error: Exception | None) -> None:
        """Withdraw all requests, as if their clients had disconnected."""
        for request in self._under_way.values():
            request.left.set()

    def take(self, number: int, content: Any) -> None:
        """Begin to answer a request, or withdraw it."""
        if content is None:
            if number in self._under_way:
                self._under_way[number].left.set()
            return
        *values, headers, body, asked_by = content
        request = self._under_way[number] = _Request(body)
        scope = {"type": "http", "headers": headers, ASKED_BY: asked_by, **dict(zip(_SCOPE, values, strict=True))}
        task = asyncio.create_task(self._respond(number, scope, request))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _respond(self, number: int, scope: Scope, request: "_Request") -> None:
        try:
            answer = await self._answer(scope, request.receive)
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
