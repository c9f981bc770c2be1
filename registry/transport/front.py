"""The outermost ASGI layer, before FastAPI: the fast path of hot reads, and the rules of transport.

Fast path: a schema by id, or by subject and explicit version, does not change until something is deleted. Such
responses are cached as bytes and sent from memory at the speed of the server itself; a FastAPI handler costs three
times as much (docs/benchmarks.md). A route marks its response by `keep_answer`, and any deletion empties the cache.
Large responses are cached compressed as well.

Rules: routing uses the raw path, since subjects may hold %2F. A trailing slash is ignored. The front handles `Accept`,
`Content-Type` and encodings, adds a request id (`X-Request-ID`) to every response, and lets no exception escape,
because the server would then drop the connection while other requests use it.
"""

import asyncio
import itertools
import logging
import re
from collections.abc import Callable, MutableMapping
from typing import Any
from uuid import uuid4

import orjson
from fastapi import Request
from starlette.requests import ClientDisconnect

from strata.registry import errors
from strata.registry.cache import Cache
from strata.registry.errors import RegistryError
from strata.registry.transport.bodies import GZIP, Message, Receive, limited, packed, takes_gzip, unpacked
from strata.registry.transport.context_prefix import within_context
from strata.registry.transport.cross_site import BrowserGuard
from strata.registry.transport.media_types import TYPES, media_type_for

__all__ = ["Front", "keep_answer"]

Scope = MutableMapping[str, Any]
Send = Callable[[Message], Any]
App = Callable[[Scope, Receive, Send], Any]

_JSON = TYPES[0]
_TAKEN = (*TYPES, b"application/octet-stream")
_KEEP = "strata.keep"
_KEPT_BYTES = 64 << 20
_BYTES_AROUND = 600  # memory per cached response in addition to its bytes
_PACKINGS = (GZIP, b"x-gzip")
_BODILESS = (204, 304)
_LONG_TO_PACK = 64 * 1024
_MAX_ACCEPTS = 256
_MAX_PATH = 8192
_PAGES = ("/docs", "/openapi.json")
_BASE_URL = re.compile(r"/*(?:(contexts/[^/]+)/+(?=[^/]))?")
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._:/+=@-]{1,128}")
# The front has handled these headers; a node that gets the forwarded write must not judge Origin and the like again.
_SETTLED_HEADERS = (b"content-encoding", b"content-length", b"x-request-id", b"origin", b"sec-fetch-site")
_log = logging.getLogger("strata.http")


def keep_answer(request: Request) -> None:
    """Mark the response of a request for the cache, which keeps it until something is deleted."""
    request.scope[_KEEP] = True


class Front:
    """The outermost ASGI app.

    Args:
        app: the inner ASGI app.
        removals: returns a number that changes when cached responses become invalid.
        max_body: the largest request body in bytes.
        access_log: whether to log every request.
        guard: the check of hosts and origins.
    """

    def __init__(
        self, app: App, *, removals: Callable[[], int], max_body: int, access_log: bool, guard: BrowserGuard
    ) -> None:
        self._app = app
        self._guard = guard
        self._removals = removals
        self._max_body = max_body
        self._access_log = access_log
        self._kept: Cache[tuple[bytes, bytes], tuple[bytes, bytes | None]] = Cache(_KEPT_BYTES)
        self._kept_at = 0
        self._accepts: dict[bytes, bytes | None] = {b"": _JSON}
        # Request ids look like UUIDs: a random part for the process, and a counter.
        self._id_prefix = str(uuid4())[:24].encode()
        self._count = itertools.count(1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request from the cache, or pass it on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if scope["method"] == "HEAD":
            scope["method"], send = "GET", _without_body(send)
        headers = dict(scope["headers"])
        accept, encodings = headers.get(b"accept", b""), headers.get(b"accept-encoding", b"")
        request_id = headers.get(b"x-request-id", b"")
        media_type = self._accepts[accept] if accept in self._accepts else self._settle(accept)
        if not request_id or not _REQUEST_ID.fullmatch(request_id):
            request_id = b"%b%012x" % (self._id_prefix, next(self._count))
        known_host = self._guard.knows(headers.get(b"host", b""))
        if scope["method"] == "GET" and media_type and known_host and not self._access_log:
            kept = self._recall((scope["raw_path"], scope["query_string"]))
            if kept is not None:
                await _send_bytes(send, 200, _headers(media_type, request_id), *kept, encodings)
                return
        await self._slow(scope, receive, _Answer(send, media_type or _JSON, request_id, encodings), media_type)

    def _recall(self, key: tuple[bytes, bytes]) -> tuple[bytes, bytes | None] | None:
        removals = self._removals()
        if removals != self._kept_at:
            self._kept.clear()
            self._kept_at = removals
        return self._kept.get(key)

    async def _slow(self, scope: Scope, receive: Receive, answer: "_Answer", media_type: bytes | None) -> None:
        key = (scope["raw_path"], scope["query_string"])
        path = _from_base_url(scope["raw_path"].decode("latin-1").split("?", 1)[0])
        scope["path"] = path.rstrip("/") or "/"
        scope["root_path"] = ""
        removals = self._removals()
        receive = limited(receive, self._max_body)
        try:
            self._enter_context(scope)
            if self._refuse(scope, media_type) in _PACKINGS:
                receive = unpacked(receive, self._max_body)
            _tell_inwards(scope, answer.request_id)
            await self._app(scope, receive, answer.send)
        except RegistryError as error:
            await answer.fail(error)
        except ClientDisconnect:
            _log.debug("%s %s: the client left before its request was complete", scope["method"], path)
        except Exception:  # noqa: BLE001 - the outermost layer logs it and answers 500
            _log.exception("%s %s failed (request %s)", scope["method"], path, answer.request_id.decode())
            await answer.fail(errors.internal())
        if self._access_log:
            _log.info("%s %s %d %s", scope["method"], path, answer.status, answer.request_id.decode())
        if scope.get(_KEEP) and answer.status == 200 and removals == self._removals():
            self._recall(key)
            self._keep(key, bytes(answer.body))

    def _keep(self, key: tuple[bytes, bytes], body: bytes) -> None:
        kept = body, packed(body)
        size = sum(len(part or b"") for part in (*key, *kept))
        self._kept.put(key, kept, size + _BYTES_AROUND)

    def _enter_context(self, scope: Scope) -> None:
        if "//" in scope["path"]:
            raise errors.http_error(400, "Bad Request")
        path, query = within_context(scope["path"], scope["query_string"].decode("latin-1"))
        if path != scope["path"]:
            # Change the raw path too, since it is what a forwarded write is sent to.
            scope["path"], scope["raw_path"], scope["query_string"] = path, path.encode(), query.encode()

    def _refuse(self, scope: Scope, media_type: bytes | None) -> bytes:
        """Reject requests that no route accepts; return the body's encoding."""
        headers, path = dict(scope["headers"]), scope["path"]
        self._guard.check(scope["method"], headers)
        if len(path) > _MAX_PATH:
            raise errors.http_error(414, "URI Too Long")
        if media_type is None and not path.startswith(_PAGES):
            raise errors.not_acceptable()
        content_type = headers.get(b"content-type", b"")
        if content_type and content_type.split(b";", 1)[0].strip().lower() not in _TAKEN:
            raise errors.media_type()
        packing: bytes = headers.get(b"content-encoding", b"").strip().lower()
        if packing not in (b"", b"identity", *_PACKINGS):
            raise errors.media_type()
        length = headers.get(b"content-length", b"0")
        if length.isdigit() and int(length) > self._max_body:
            raise errors.too_large(self._max_body)
        return packing

    def _settle(self, accept: bytes) -> bytes | None:
        """Choose the media type of the response; None if the client accepts none of ours."""
        chosen = media_type_for(accept)
        if len(self._accepts) < _MAX_ACCEPTS:
            self._accepts[accept] = chosen
        return chosen


class _Answer:
    """A response on its way out: adds headers, compresses if that pays, and records status and body."""

    def __init__(self, send: Send, media_type: bytes, request_id: bytes, encodings: bytes) -> None:
        self._send = send
        self._media_type = media_type
        self._encodings = encodings
        self._start: Message | None = None
        self.request_id = request_id
        self.status = 0
        self.body = bytearray()

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self._start = message
            return
        body, start = message.get("body", b""), self._start
        self.body += body
        if start is None:  # a later part of the body
            await self._send(message)
            return
        self._start = None
        given = dict(start["headers"])
        headers = _headers(given.pop(b"content-type", self._media_type), self.request_id)
        given.pop(b"content-length", None)
        headers += given.items()
        if message.get("more_body", False):
            await self._send({**start, "headers": headers})
            await self._send(message)
        else:
            smaller = await self._packed(body)
            await _send_bytes(self._send, self.status, headers, body, smaller, self._encodings)

    async def _packed(self, body: bytes) -> bytes | None:
        if not takes_gzip(self._encodings):
            return None
        return packed(body) if len(body) < _LONG_TO_PACK else await asyncio.to_thread(packed, body)

    async def fail(self, error: RegistryError) -> None:
        if self.status and self._start is None:  # the response has begun and can no longer become an error
            return
        self.status = error.status
        body = orjson.dumps({"error_code": error.code, "message": error.message})
        headers = _headers(self._media_type, self.request_id)
        headers += [(name.lower().encode(), value.encode()) for name, value in error.headers.items()]
        await _send_bytes(self._send, error.status, headers, body, None, b"")


def _from_base_url(path: str) -> str:
    """Remove the slashes at the end of a base URL, which may end in a context."""
    base = _BASE_URL.match(path)
    start, context = (base.end(), base[1]) if base else (0, None)
    return f"/{context + '/' if context else ''}{path[start:]}"


def _headers(media_type: bytes, request_id: bytes) -> list[tuple[bytes, bytes]]:
    return [(b"content-type", media_type), (b"x-request-id", request_id)]


def _tell_inwards(scope: Scope, request_id: bytes) -> None:
    """Set the request id and drop the headers that the front has handled, for the app and for forwarded writes."""
    kept = [header for header in scope["headers"] if header[0] not in _SETTLED_HEADERS]
    scope["headers"] = [*kept, (b"x-request-id", request_id)]


def _without_body(send: Send) -> Send:
    """Return a `send` that answers HEAD: the headers of GET, length included, without the body."""

    async def send_head(message: Message) -> None:
        if message["type"] == "http.response.body":
            message = {**message, "body": b""}
        await send(message)

    return send_head


async def _send_bytes(
    send: Send, status: int, headers: list[tuple[bytes, bytes]], body: bytes, smaller: bytes | None, accepted: bytes
) -> None:
    if smaller is not None:
        headers.append((b"vary", b"Accept-Encoding"))
        if accepted and takes_gzip(accepted):
            headers.append((b"content-encoding", GZIP))
            body = smaller
    if status not in _BODILESS:
        headers.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
