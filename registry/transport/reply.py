"""Answers on their way to the client: their headers, their compression, and HEAD."""

import orjson

from strata.registry.errors import RegistryError
from strata.registry.transport.asgi import Answer, Headers, Message, Send
from strata.registry.transport.compression import GZIP, accepts_gzip, compressed
from strata.registry.transport.request_ids import HEADER as REQUEST_ID

__all__ = ["KeptAnswer", "Reply", "error_body", "send_whole", "without_body"]

_BODILESS = (204, 304)


class Reply:
    """The answer to one request: completes its headers, compresses it if that pays, and records status and body.

    Args:
        send: the ASGI callable of the server.
        media_type: the media type of JSON that the client prefers.
        request_id: the id of the request.
        encodings: the request's `Accept-Encoding`.
    """

    def __init__(self, send: Send, media_type: bytes, request_id: bytes, encodings: bytes) -> None:
        self._send = send
        self._encodings = encodings
        self._start: Message | None = None
        self._compressed: bytes | None = None
        self._is_compressed = False
        self._media_type = media_type
        self.request_id = request_id
        self.status = 0
        self.body = bytearray()

    async def send(self, message: Message) -> None:
        """Send a part of the answer, as the `send` of ASGI; the start waits for the first part of the body."""
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
        headers = self._headers(dict(start["headers"]))
        if message.get("more_body", False):
            await self._send({**start, "headers": headers})
            await self._send(message)
        else:
            smaller = await self.compressed() if accepts_gzip(self._encodings) else None
            await send_whole(self._send, self.status, headers, body, smaller, self._encodings)

    async def fail(self, error: RegistryError) -> None:
        """Send an error object, unless the answer has begun and can no longer become an error."""
        if self.status and self._start is None:
            return
        self.status = error.status
        headers = self._headers({name.lower().encode(): value.encode() for name, value in error.headers.items()})
        await send_whole(self._send, error.status, headers, error_body(error.code, error.message), None, b"")

    async def compressed(self) -> bytes | None:
        """Return the whole body as gzip; None if compression does not pay."""
        if not self._is_compressed:
            self._compressed, self._is_compressed = await compressed(bytes(self.body)), True
        return self._compressed

    def _headers(self, given: dict[bytes, bytes]) -> Headers:
        media_type = given.pop(b"content-type", self._media_type)
        given.pop(b"content-length", None)
        return [(b"content-type", media_type), (REQUEST_ID, self.request_id), *given.items()]


class KeptAnswer:
    """An answer that is kept instead of sent."""

    def __init__(self) -> None:
        self._status, self._headers, self._body = 500, Headers(), bytearray()

    async def send(self, message: Message) -> None:
        """Keep a part of the answer, as the `send` of ASGI."""
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


async def send_whole(
    send: Send, status: int, headers: Headers, body: bytes, smaller: bytes | None, encodings: bytes
) -> None:
    """Send a complete answer.

    Args:
        send: the ASGI callable of the server.
        status: the HTTP status.
        headers: the headers, to which this function adds.
        body: the body.
        smaller: the body as gzip, if there is one.
        encodings: the request's `Accept-Encoding`.
    """
    if smaller is not None:
        headers.append((b"vary", b"Accept-Encoding"))
        if encodings and accepts_gzip(encodings):
            headers.append((b"content-encoding", GZIP))
            body = smaller
    if status not in _BODILESS:
        headers.append((b"content-length", b"%d" % len(body)))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def without_body(send: Send) -> Send:
    """Return a `send` that answers HEAD: the headers of GET, length included, without the body."""

    async def send_head(message: Message) -> None:
        if message["type"] == "http.response.body":
            message = {**message, "body": b""}
        await send(message)

    return send_head
