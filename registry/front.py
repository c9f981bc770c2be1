"""What stands in front of the FastAPI app, in plain ASGI: the short way of hot reads, and the rules of transport.

The short way: schema by id, and by subject and explicit version, never change while nothing is deleted. Their answers
are kept as bytes and sent from a dictionary, at the speed of the server itself (a FastAPI handler costs three times
as much, docs/benchmarks.md). A route marks its answer by `keep_answer`; a deletion anywhere empties the dictionary.

The rules: routing is on the raw path, since subjects hold %2F; a trailing slash means nothing; Accept and Content-Type
are settled here; no exception leaves, since the server would drop the connection under other requests.
"""

import logging
import re
from collections.abc import Callable, MutableMapping
from typing import Any

import orjson
from fastapi import Request

from registry import errors
from registry.cache import Cache
from registry.contexts import within_context
from registry.errors import RegistryError
from registry.wire import MEDIA_TYPES

__all__ = ["Front", "keep_answer"]

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Any]
Send = Callable[[Message], Any]
App = Callable[[Scope, Receive, Send], Any]

_TYPES = tuple(media_type.encode() for media_type in MEDIA_TYPES)
_JSON = _TYPES[0]
_TAKEN = (*_TYPES, b"application/octet-stream")
_KEEP = "strata.keep"
_KEPT_BYTES = 64 << 20
_BYTES_AROUND = 500  # what keeping an answer takes beside its bytes
_MAX_ACCEPTS = 256
_MAX_PATH = 8192
_PAGES = ("/docs", "/redoc", "/openapi.json")
_SLASHES = re.compile("/{2,}")
_log = logging.getLogger("strata.http")


def keep_answer(request: Request) -> None:
    """Let this request's answer be sent from memory until something is deleted."""
    request.scope[_KEEP] = True


class Front:
    """The outermost ASGI app."""

    def __init__(self, app: App, *, removals: Callable[[], int], max_body: int, access_log: bool) -> None:
        self._app = app
        self._removals = removals
        self._max_body = max_body
        self._access_log = access_log
        self._kept: Cache[tuple[bytes, bytes], bytes] = Cache(_KEPT_BYTES)
        self._kept_at = 0
        self._accepts: dict[bytes, bytes | None] = {b"": _JSON}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request from memory, or hand it on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if scope["method"] == "HEAD":
            scope["method"], send = "GET", _without_body(send)
        accept = content_type = b""
        length = b"0"
        for name, value in scope["headers"]:
            if name == b"accept":
                accept = value
            elif name == b"content-type":
                content_type = value
            elif name == b"content-length":
                length = value
        media_type = self._accepts[accept] if accept in self._accepts else self._settle(accept)
        if scope["method"] == "GET" and media_type and not self._access_log:
            body = self._recall((scope["raw_path"], scope["query_string"]))
            if body is not None:
                await _send_bytes(send, 200, media_type, body)
                return
        await self._slow(scope, receive, send, media_type, content_type, length)

    def _recall(self, key: tuple[bytes, bytes]) -> bytes | None:
        removals = self._removals()
        if removals != self._kept_at:
            self._kept.clear()
            self._kept_at = removals
        return self._kept.get(key)

    async def _slow(
        self, scope: Scope, receive: Receive, send: Send, media_type: bytes | None, content_type: bytes, length: bytes
    ) -> None:
        answer = _Answer(send, media_type or _JSON)
        key = (scope["raw_path"], scope["query_string"])
        path = _SLASHES.sub("/", scope["raw_path"].decode("latin-1").split("?", 1)[0])
        scope["path"] = path.rstrip("/") or "/"
        scope["root_path"] = ""
        removals = self._removals()
        try:
            self._enter_context(scope)
            self._refuse(scope["path"], media_type, content_type, length)
            await self._app(scope, _limited(receive, self._max_body), answer.send)
        except RegistryError as error:
            await answer.fail(error)
        except Exception:  # noqa: BLE001 - the outermost place: it becomes a 500, and is logged
            _log.exception("%s %s failed", scope["method"], path)
            await answer.fail(errors.internal())
        if self._access_log:
            _log.info("%s %s %d", scope["method"], path, answer.status)
        if scope.get(_KEEP) and answer.status == 200 and removals == self._removals():
            self._recall(key)
            self._kept.put(key, bytes(answer.body), sum(map(len, key)) + len(answer.body) + _BYTES_AROUND)

    def _enter_context(self, scope: Scope) -> None:
        path, query = within_context(scope["path"], scope["query_string"].decode("latin-1"))
        if path != scope["path"]:
            # The raw path too: a write is forwarded as what it stands for.
            scope["path"], scope["raw_path"], scope["query_string"] = path, path.encode(), query.encode()

    def _refuse(self, path: str, media_type: bytes | None, content_type: bytes, length: bytes) -> None:
        if len(path) > _MAX_PATH:
            raise errors.http_error(414, "URI Too Long")
        if media_type is None and not path.startswith(_PAGES):
            raise errors.not_acceptable()
        if content_type and content_type.split(b";", 1)[0].strip().lower() not in _TAKEN:
            raise errors.media_type()
        if length.isdigit() and int(length) > self._max_body:
            raise errors.too_large(self._max_body)

    def _settle(self, accept: bytes) -> bytes | None:
        """Choose the media type of the answer; None when the client takes none of ours."""
        ranges = [part.split(b";")[0].strip().lower() for part in accept.split(b",")]
        wild = any(item in (b"*/*", b"application/*", b"") for item in ranges)
        chosen = next((known for known in _TYPES if known in ranges), _JSON if wild else None)
        if len(self._accepts) < _MAX_ACCEPTS:
            self._accepts[accept] = chosen
        return chosen


class _Answer:
    """Passes an answer on, gives it its media type, and remembers its status and body."""

    def __init__(self, send: Send, media_type: bytes) -> None:
        self._send = send
        self._media_type = media_type
        self.status = 0
        self.body = bytearray()

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            if not any(name == b"content-type" for name, _ in message["headers"]):
                message["headers"] = [*message["headers"], (b"content-type", self._media_type)]
        elif message["type"] == "http.response.body":
            self.body += message.get("body", b"")
        await self._send(message)

    async def fail(self, error: RegistryError) -> None:
        if self.status:  # the answer has begun: nothing can be told any more
            return
        self.status = error.status
        body = orjson.dumps({"error_code": error.code, "message": error.message})
        await _send_bytes(self._send, error.status, self._media_type, body)


def _without_body(send: Send) -> Send:
    """Answer HEAD: what GET would say, length included, but for the body."""

    async def send_head(message: Message) -> None:
        if message["type"] == "http.response.body":
            message = {**message, "body": b""}
        await send(message)

    return send_head


async def _send_bytes(send: Send, status: int, media_type: bytes, body: bytes) -> None:
    headers = [(b"content-type", media_type), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _limited(receive: Receive, limit: int) -> Receive:
    """Refuse a body that grows past the limit, whatever its headers said."""
    seen = 0

    async def receive_some() -> Message:
        nonlocal seen
        message: Message = await receive()
        seen += len(message.get("body", b""))
        if seen > limit:
            raise errors.too_large(limit)
        return message

    return receive_some
