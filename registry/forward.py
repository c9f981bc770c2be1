"""Sends a write to the node that holds the right to write, once.

On a Kafka log the right to write is the pen (storage/README.md). Taking it costs a node more than one hop over HTTP,
and two nodes that keep taking it from each other would be slow, so a node that does not hold the pen passes a write
on. When the holder cannot be reached, or does not hold the pen any more, this node takes the pen itself. A hint only:
safety lies in the log, which refuses whoever lost the pen.

A write that may have reached the holder is not tried again here: done twice, it could undo what somebody else was
told in between. The client is told that its fate is unknown (50003), and the next write is this node's own. A holder
that keeps a write waiting is asked for a sign of life, so that one that is stopped or cut off is soon given up.

Every write passes here, so this is also where writes are bounded: in number, in bytes and in time. The holder gets the
time that is left, and does nothing later. A write whose client disconnects before it reaches the log is dropped.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

import orjson
import urllib3

from registry import errors
from registry.calls import Call, pool_manager
from registry.errors import RegistryError
from registry.writer import DEADLINE, Writer

__all__ = ["Forward"]

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
_Answer = tuple[int, list[tuple[bytes, bytes]], bytes]

_FORWARDED = b"x-forward"
_TIME_LEFT = b"x-strata-time-left"
_SHARE = 0.9  # of the time that is left, for the holder: its answer should come before this node's own time is over
_COPIED = (b"content-type", b"accept", b"authorization", b"x-request-id", b"confluent-accept-unknown-properties")
_COPIED_BACK = ("content-type", "retry-after")
_BUSY = "the node is busy passing other writes on"
_WRITES = ("/associations", "/associations:batchMutate")
_KEYS = "/dek-registry/"
_AT_ONCE = 32
_CONNECT_S = 1.0
_PATIENCE_S = 1.0
_SIGN_OF_LIFE = urllib3.Timeout(connect=_CONNECT_S, read=1.0)
_PASSED_OVER_S = 10.0
_MOST_MOVES = 20
_log = logging.getLogger("strata.forward")


class Forward:
    """An ASGI app that passes writes on to the pen's holder, and everything else to the app behind it."""

    def __init__(self, app: Any, writer: Writer, *, max_waiting: int, max_waiting_bytes: int) -> None:
        self._app = app
        self._writer = writer
        self._max_waiting, self._max_bytes = max_waiting, max_waiting_bytes
        self._waiting = self._waiting_bytes = 0
        self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="strata-forward")
        self._pool = pool_manager(_AT_ONCE)
        self._probe_thread = ThreadPoolExecutor(1, thread_name_prefix="strata-probe")
        self._probe: asyncio.Task[bool] | None = None
        self._passed_over_until = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a write by the answer of whoever holds the pen."""
        if scope["type"] != "http" or not _is_write(scope):
            await self._app(scope, receive, send)
            return
        body = await _whole(receive)
        if body is None:
            return
        with self._admitted(len(body)):
            DEADLINE.set(self._deadline(scope))
            answer = await _unless_gone(asyncio.create_task(self._answer(scope, body, receive)), receive)
        if answer is not None:
            status, headers, content = answer
            await send({"type": "http.response.start", "status": status, "headers": headers})
            await send({"type": "http.response.body", "body": content})

    @contextmanager
    def _admitted(self, size: int) -> Iterator[None]:
        """Count a write while it waits; a body of any size is taken where nothing else waits."""
        if self._waiting >= self._max_waiting or (self._waiting and self._waiting_bytes + size > self._max_bytes):
            raise errors.not_written("too many writes wait already")
        self._waiting, self._waiting_bytes = self._waiting + 1, self._waiting_bytes + size
        try:
            yield
        finally:
            self._waiting, self._waiting_bytes = self._waiting - 1, self._waiting_bytes - size

    def _deadline(self, scope: Scope) -> float:
        """When this node gives a write up, or the node that it comes from does."""
        left = self._writer.write_timeout_s
        for name, value in scope["headers"]:
            if name == _TIME_LEFT:
                with suppress(ValueError):
                    left = min(left, max(0.0, float(value)))
        return time.monotonic() + left

    async def _answer(self, scope: Scope, body: bytes, receive: Receive) -> _Answer:
        if not any(name == _FORWARDED for name, _ in scope["headers"]):
            return await self._written(scope, body, receive)
        if self._holder() is not None:
            raise errors.not_the_writer()
        return await self._here(scope, body, receive)

    async def _written(self, scope: Scope, body: bytes, receive: Receive) -> _Answer:
        """Follow the pen from node to node; where nobody is known to have it, write here, which takes it."""
        deadline = DEADLINE.get()
        for _ in range(_MOST_MOVES):
            if time.monotonic() > deadline:
                raise errors.not_written("no node was found in time that writes")
            holder = self._holder()
            if holder is None:
                answer = await self._here(scope, body, receive)
                if not _is_refused(answer[0], answer[2]):
                    return answer
            else:
                found = await self._answered(holder, scope, body, deadline)
                await self._catch_up(deadline, answered=found is not None)
                if found is not None:
                    return found
        raise errors.not_the_writer()

    async def _catch_up(self, deadline: float, *, answered: bool) -> None:
        """Read what the holder has written, or who has the pen now.

        The holder's answer stands even if that fails; then nothing is answered from memory until it has succeeded.
        """
        try:
            async with asyncio.timeout(deadline - time.monotonic()):
                await self._writer.catch_up()
        except (RegistryError, TimeoutError):
            if not answered:
                raise errors.not_written("the log cannot be read") from None
            self._writer.lag()

    def _holder(self) -> str | None:
        if time.monotonic() > self._passed_over_until:
            self._writer.passed_over = None
        holder = self._writer.log.holder()
        return None if holder == self._writer.passed_over else holder

    async def _here(self, scope: Scope, body: bytes, receive: Receive) -> _Answer:
        """Return this node's own answer."""
        status, headers, content = 500, [], bytearray()

        async def keep(message: MutableMapping[str, Any]) -> None:
            nonlocal status, headers
            if message["type"] == "http.response.start":
                status, headers = message["status"], list(message["headers"])
            else:
                content.extend(message.get("body", b""))

        await self._app(scope, _replayed(body, receive), keep)
        return status, headers, bytes(content)

    async def _answered(self, holder: str, scope: Scope, body: bytes, deadline: float) -> _Answer | None:
        """Return the holder's answer; None when it has done nothing, or was not asked.

        Raises:
            RegistryError: 50003 when it is unknown whether the holder has written, 50302 when it was not asked in time.
        """
        call = Call()
        turn = self._threads.submit(self._ask, call, holder, scope, body, deadline)
        asked = asyncio.wrap_future(turn)
        try:
            while not (await asyncio.wait([asked], timeout=min(_PATIENCE_S, deadline - time.monotonic())))[0]:
                if time.monotonic() >= deadline:
                    not_asked = turn.cancel()
                    raise errors.not_written(_BUSY) if not_asked else errors.write_forwarding_failed()
                if not await self._is_alive(holder) and not asked.done():
                    failure = self._pass_over(holder, "it gives no sign of life")
                    if turn.cancel():
                        return None
                    raise failure
            return asked.result()
        finally:
            # Nobody waits any more: the client has gone, or has its answer.
            asked.cancel()
            call.break_off()

    async def _is_alive(self, holder: str) -> bool:
        """Whether the holder answers anything; all who ask at the same time share one request."""
        if self._probe is None or self._probe.done():
            self._probe = asyncio.create_task(self._probed(holder))
        return await asyncio.shield(self._probe)

    async def _probed(self, holder: str) -> bool:
        def ask() -> bool:
            try:
                self._pool.request("GET", f"{holder}/", timeout=_SIGN_OF_LIFE, redirect=False)
            except urllib3.exceptions.HTTPError:
                return False
            return True

        return await asyncio.get_running_loop().run_in_executor(self._probe_thread, ask)

    def _pass_over(self, holder: str, reason: str) -> errors.RegistryError:
        """Write without the holder for a while; what a client is told whose write may have reached it."""
        self._writer.passed_over, self._passed_over_until = holder, time.monotonic() + _PASSED_OVER_S
        _log.warning("the node that writes (%s) does not answer, taking over: %s", holder, reason)
        return errors.write_forwarding_failed()

    def _ask(self, call: Call, holder: str, scope: Scope, body: bytes, deadline: float) -> _Answer | None:
        """Return the holder's answer; None when it has done nothing and the pen must be looked for again.

        Raises:
            RegistryError: 50003 when it is unknown whether the holder has written, 50302 when it was not asked in time.
        """
        left = deadline - time.monotonic()
        if left <= 0:
            raise errors.not_written(_BUSY)
        url = holder + scope["raw_path"].decode("latin-1")
        if scope["query_string"]:
            url += "?" + scope["query_string"].decode("latin-1")
        headers = {name.decode(): value.decode("latin-1") for name, value in scope["headers"] if name in _COPIED}
        headers |= {_FORWARDED.decode(): "true", _TIME_LEFT.decode(): f"{left * _SHARE:.3f}"}
        timeout = urllib3.Timeout(connect=min(_CONNECT_S, left), read=left)
        try:
            answer = call.answer(
                self._pool, scope["method"], url, body=body, headers=headers, timeout=timeout, redirect=False
            )
        except (urllib3.exceptions.NewConnectionError, urllib3.exceptions.ConnectTimeoutError) as error:
            self._pass_over(holder, str(error))
            return None
        except urllib3.exceptions.ReadTimeoutError:
            raise errors.write_forwarding_failed() from None
        except urllib3.exceptions.HTTPError as error:
            if call.broken_off:
                raise errors.write_forwarding_failed() from None
            raise self._pass_over(holder, str(error)) from None
        if answer.status >= 500 and _error_code(answer.data) is None:
            raise self._pass_over(holder, f"something in between answered {answer.status}")
        if _is_refused(answer.status, answer.data):
            _log.info("%s does not hold the pen any more", holder)
            return None
        back = {"content-type": "application/json"} | {
            name: answer.headers[name] for name in _COPIED_BACK if name in answer.headers
        }
        headers_back = [(name.encode(), value.encode("latin-1")) for name, value in back.items()]
        return answer.status, [*headers_back, (b"content-length", b"%d" % len(answer.data))], answer.data


def _is_write(scope: Scope) -> bool:
    if scope["method"] in ("PUT", "DELETE"):
        return True
    path: str = scope["path"]
    writes = path in _WRITES or path.startswith(_KEYS)
    writes = writes or (path.startswith("/subjects/") and path.endswith(("/versions", "/tags")))
    return scope["method"] == "POST" and writes


def _is_refused(status: int, body: bytes) -> bool:
    return status >= 500 and _error_code(body) == errors.not_the_writer().code


def _error_code(body: bytes) -> int | None:
    """The code of an error object; None for what no node of ours has answered."""
    try:
        content = orjson.loads(body)
    except ValueError:
        return None
    code = content.get("error_code") if isinstance(content, dict) else None
    return code if isinstance(code, int) else None


async def _unless_gone(work: "asyncio.Task[_Answer]", receive: Receive) -> _Answer | None:
    """Return what the work on a request answers; None when the client disconnects first, which cancels the work."""
    gone = asyncio.create_task(_disconnected(receive))
    try:
        await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
        return work.result() if work.done() else None
    finally:
        gone.cancel()
        work.cancel()


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _whole(receive: Receive) -> bytes | None:
    """Return the body of a request; None when the client disconnects before it is complete."""
    body, more = b"", True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        more = message.get("more_body", False)
    return body


def _replayed(body: bytes, receive: Receive) -> Receive:
    given = False

    async def receive_again() -> MutableMapping[str, Any]:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive_again
