"""Sends a write to the node that holds the right to write, once.

On a Kafka log the right to write is the pen (storage/README.md). Taking it costs a node more than one hop over HTTP,
and two nodes that keep taking it from each other would be slow, so a node that does not hold the pen passes a write
on. When the holder cannot be reached, or does not hold the pen any more, this node takes the pen itself. A hint only:
safety lies in the log, which refuses whoever lost the pen.

A write that may have reached the holder is not tried again here: done twice, it could undo what somebody else was
told in between. The client is told that its fate is unknown (50003), and the next write is this node's own. A holder
that keeps a write waiting is asked for a sign of life, so that one that is stopped or cut off is soon given up.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import orjson
import urllib3

from registry import errors
from registry.writer import Writer

__all__ = ["Forward"]

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
_Answer = tuple[int, list[tuple[bytes, bytes]], bytes]

_FORWARDED = b"x-forward"
_COPIED = (b"content-type", b"accept", b"authorization", b"x-request-id", b"confluent-accept-unknown-properties")
_WRITES = ("/associations", "/associations:batchMutate")
_KEYS = "/dek-registry/"
_AT_ONCE = 32
_TIMEOUT = urllib3.Timeout(connect=1.0, read=60.0)
_PATIENCE_S = 1.0
_SIGN_OF_LIFE = urllib3.Timeout(connect=1.0, read=1.0)
_PASSED_OVER_S = 10.0
_MOST_MOVES = 20
_log = logging.getLogger("strata.forward")


class Forward:
    """An ASGI app that passes writes on to the pen's holder, and everything else to the app behind it."""

    def __init__(self, app: Any, writer: Writer) -> None:
        self._app = app
        self._writer = writer
        self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="strata-forward")
        self._pool = urllib3.PoolManager(num_pools=4, maxsize=_AT_ONCE, timeout=_TIMEOUT, retries=False)
        self._probe_thread = ThreadPoolExecutor(1, thread_name_prefix="strata-probe")
        self._probe: asyncio.Task[bool] | None = None
        self._passed_over_until = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a write by the answer of whoever holds the pen."""
        if scope["type"] != "http" or not _is_write(scope):
            await self._app(scope, receive, send)
            return
        body = await _whole(receive)
        if any(name == _FORWARDED for name, _ in scope["headers"]):
            if self._holder() is not None:
                raise errors.not_the_writer()
            answer = await self._here(scope, body, receive)
        else:
            answer = await self._written(scope, body, receive)
        status, headers, content = answer
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": content})

    async def _written(self, scope: Scope, body: bytes, receive: Receive) -> _Answer:
        """Follow the pen from node to node; where nobody is known to have it, write here, which takes it."""
        for _ in range(_MOST_MOVES):
            holder = self._holder()
            if holder is None:
                answer = await self._here(scope, body, receive)
                if not _is_refused(answer[0], answer[2]):
                    return answer
            else:
                found = await self._answered(holder, scope, body)
                await self._writer.catch_up()
                if found is not None:
                    return found
        raise errors.not_the_writer()

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

    async def _answered(self, holder: str, scope: Scope, body: bytes) -> _Answer | None:
        asked = asyncio.get_running_loop().run_in_executor(self._threads, self._ask, holder, scope, body)
        while not (await asyncio.wait([asked], timeout=_PATIENCE_S))[0]:
            if not await self._is_alive(holder) and not asked.done():
                asked.cancel()
                raise self._pass_over(holder, "it gives no sign of life")
        return await asked

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
        return errors.write_forwarding_failed(reason)

    def _ask(self, holder: str, scope: Scope, body: bytes) -> _Answer | None:
        """Return the holder's answer; None when it has done nothing and the pen must be looked for anew.

        Raises:
            RegistryError: 50003 when it is unknown whether the holder has written.
        """
        url = holder + scope["raw_path"].decode("latin-1")
        if scope["query_string"]:
            url += "?" + scope["query_string"].decode("latin-1")
        headers = {name.decode(): value.decode("latin-1") for name, value in scope["headers"] if name in _COPIED}
        try:
            answer = self._pool.request(
                scope["method"], url, body=body, headers={**headers, _FORWARDED.decode(): "true"}, redirect=False
            )
        except (urllib3.exceptions.NewConnectionError, urllib3.exceptions.ConnectTimeoutError) as error:
            self._pass_over(holder, str(error))
            return None
        except urllib3.exceptions.HTTPError as error:
            raise self._pass_over(holder, str(error)) from None
        if _is_refused(answer.status, answer.data):
            _log.info("%s does not hold the pen any more", holder)
            return None
        media_type, length = answer.headers.get("content-type", "application/json"), str(len(answer.data))
        headers_back = [(b"content-type", media_type.encode()), (b"content-length", length.encode())]
        return answer.status, headers_back, answer.data


def _is_write(scope: Scope) -> bool:
    if scope["method"] in ("PUT", "DELETE"):
        return True
    path: str = scope["path"]
    writes = path in _WRITES or path.startswith(_KEYS)
    writes = writes or (path.startswith("/subjects/") and path.endswith(("/versions", "/tags")))
    return scope["method"] == "POST" and writes


def _is_refused(status: int, body: bytes) -> bool:
    if status < 500:
        return False
    try:
        content = orjson.loads(body)
    except ValueError:
        return True
    return not isinstance(content, dict) or content.get("error_code") == errors.not_the_writer().code


async def _whole(receive: Receive) -> bytes:
    body, more = b"", True
    while more:
        message = await receive()
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
