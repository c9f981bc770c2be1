"""Request and response bodies: size limits and gzip.

A request body is limited both as received and as decompressed, because a few kilobytes of gzip can hold gigabytes.
"""

import codecs
import gzip
import json
import zlib
from collections.abc import Callable, MutableMapping
from typing import Any

from starlette.requests import ClientDisconnect

from strata.registry import errors

__all__ = ["GZIP", "Message", "Receive", "as_utf8", "limited", "packed", "takes_gzip", "unpacked"]

Message = MutableMapping[str, Any]
Receive = Callable[[], Any]

GZIP = b"gzip"
# A smaller answer fits one packet anyway.
_WORTH_PACKING = 1400
_FAST = 5
_GZIP_WINDOW = 31
_BYTE_ORDER_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def limited(receive: Receive, limit: int) -> Receive:
    """Return a `receive` that limits the size of a body, whatever the headers say.

    Args:
        receive: the ASGI callable to wrap.
        limit: the largest body in bytes.

    Raises:
        RegistryError: from the returned callable, 413 if the body exceeds the limit.
        ClientDisconnect: from the returned callable, if the client disconnects before the body is complete; no route
            may act on part of a body.
    """
    seen, complete = 0, False

    async def receive_some() -> Message:
        nonlocal seen, complete
        message: Message = await receive()
        if message["type"] == "http.disconnect" and not complete:
            raise ClientDisconnect
        complete = not message.get("more_body", False)
        seen += len(message.get("body", b""))
        if seen > limit:
            raise errors.too_large(limit)
        return message

    return receive_some


def unpacked(receive: Receive, limit: int) -> Receive:
    """Return a `receive` that decompresses a gzip body and passes it on in one piece.

    Args:
        receive: the ASGI callable to wrap.
        limit: the largest decompressed body in bytes.

    Raises:
        RegistryError: from the returned callable, 413 if the decompressed body exceeds the limit; 400 if it is not
            valid gzip.
    """
    given = False

    async def receive_whole() -> Message:
        nonlocal given
        if given:
            return await receive()  # type: ignore[no-any-return]
        data, more = b"", True
        while more:
            message = await receive()
            if message["type"] != "http.request":
                return message  # type: ignore[no-any-return]
            data += message.get("body", b"")
            more = message.get("more_body", False)
        given = True
        return {"type": "http.request", "body": _unpack(data, limit), "more_body": False}

    return receive_whole


def _unpack(data: bytes, limit: int) -> bytes:
    """Decompress a gzip body, which may consist of several members."""
    found = b""
    try:
        while data:
            stream = zlib.decompressobj(_GZIP_WINDOW)
            found += stream.decompress(data, limit + 1 - len(found))
            if len(found) > limit:
                raise errors.too_large(limit)
            if not stream.eof:
                raise errors.unreadable_body("The gzip body ends too early")
            data = stream.unused_data
    except zlib.error as error:
        raise errors.unreadable_body(f"The body is not gzip, as Content-Encoding says: {error}") from None
    return found


def packed(body: bytes) -> bytes | None:
    """Return a body as gzip, or None if compression does not pay."""
    if len(body) < _WORTH_PACKING:
        return None
    smaller = gzip.compress(body, _FAST, mtime=0)
    return smaller if len(smaller) < len(body) else None


def as_utf8(body: bytes) -> bytes:
    """Return a JSON body in UTF-8 without a byte order mark, from UTF-16 or UTF-32 if its first bytes show that.

    Raises:
        RegistryError: 400 if it is not valid in the encoding that its first bytes show.
    """
    if b"\0" not in body[:4] and not body.startswith(_BYTE_ORDER_MARKS):
        return body
    encoding = json.detect_encoding(body)
    try:
        return body.decode(encoding).encode()
    except UnicodeError:
        raise errors.unreadable_body(f"The request body is not JSON in {encoding.upper()}, as it begins") from None


def takes_gzip(accept_encoding: bytes) -> bool:
    """Return whether an `Accept-Encoding` header allows gzip, by name or by `*`, with a quality above 0."""
    weights: dict[bytes, bool] = {}
    for part in accept_encoding.lower().split(b","):
        name, _, quality = part.partition(b";")
        weights[name.strip()] = quality.replace(b" ", b"").removeprefix(b"q=").strip(b"0.") != b"" or not quality
    return weights.get(GZIP, weights.get(b"*", False))
