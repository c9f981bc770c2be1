"""Sends a write to the node that holds the right to write, once.

On a Kafka log the right to write is the pen (storage/README.md). Taking it costs a node more than one hop over HTTP,
and two nodes that keep taking it from each other would be slow, so a node that does not hold the pen passes a write
on. When the holder cannot be reached, or does not hold the pen any more, this node takes the pen itself. A hint only:
safety lies in the log, which refuses whoever lost the pen.
"""

import asyncio
import logging
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

_FORWARDED = b"x-forward"
_COPIED = (b"content-type", b"accept", b"authorization", b"x-request-id", b"confluent-accept-unknown-properties")
_WRITES = ("/associations", "/associations:batchMutate")
_AT_ONCE = 32
_TIMEOUT = urllib3.Timeout(connect=1.0, read=60.0)
_log = logging.getLogger("strata.forward")


class Forward:
    """An ASGI app that passes writes on to the pen's holder, and everything else to the app behind it."""

    def __init__(self, app: Any, writer: Writer) -> None:
        self._app = app
        self._writer = writer
        self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="strata-forward")
        self._pool = urllib3.PoolManager(num_pools=4, maxsize=_AT_ONCE, timeout=_TIMEOUT, retries=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a write by the holder's answer, where another node holds the pen."""
        holder = self._writer.log.holder() if scope["type"] == "http" and _is_write(scope) else None
        if holder is None:
            await self._app(scope, receive, send)
            return
        if any(name == _FORWARDED for name, _ in scope["headers"]):
            raise errors.not_the_writer()
        body = await _whole(receive)
        answer = await asyncio.get_running_loop().run_in_executor(self._threads, self._ask, holder, scope, body)
        if answer is None:
            await self._app(scope, _replayed(body, receive), send)
            return
        await self._writer.catch_up()
        status, media_type, content = answer
        headers = [(b"content-type", media_type), (b"content-length", str(len(content)).encode())]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": content})

    def _ask(self, holder: str, scope: Scope, body: bytes) -> tuple[int, bytes, bytes] | None:
        """Return the holder's answer; None when this node has to write itself.

        Raises:
            RegistryError: 50003 when it is unknown whether the holder wrote what must not be tried twice.
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
            _log.warning("the node that writes (%s) cannot be reached, taking over: %s", holder, error)
            return None
        except urllib3.exceptions.HTTPError as error:
            if scope["method"] == "DELETE":
                raise errors.write_forwarding_failed(str(error)) from None
            _log.warning("the node that writes (%s) did not answer, taking over: %s", holder, error)
            return None
        if _is_refused(answer.status, answer.data):
            _log.info("%s does not hold the pen any more, taking it", holder)
            return None
        return answer.status, answer.headers.get("content-type", "application/json").encode(), answer.data


def _is_write(scope: Scope) -> bool:
    if scope["method"] in ("PUT", "DELETE"):
        return True
    path: str = scope["path"]
    writes = path in _WRITES or (path.startswith("/subjects/") and path.endswith(("/versions", "/tags")))
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
