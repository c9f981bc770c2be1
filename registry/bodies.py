"""Bodies on their way in and out: how large they may be, and gzip.

A request's body is bounded twice, as it comes and as it is unpacked: a few kilobytes of gzip can stand for gigabytes.
"""

import gzip
import zlib
from collections.abc import Callable, MutableMapping
from typing import Any

from registry import errors

__all__ = ["GZIP", "Message", "Receive", "limited", "packed", "takes_gzip", "unpacked"]

Message = MutableMapping[str, Any]
Receive = Callable[[], Any]

GZIP = b"gzip"
# Below this, an answer fits one packet anyway.
_WORTH_PACKING = 1400
_FAST = 5
_GZIP_WINDOW = 31


def limited(receive: Receive, limit: int) -> Receive:
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


def unpacked(receive: Receive, limit: int) -> Receive:
    """Unpack a gzip body, in one piece.

    Raises (when the body is asked for):
        RegistryError: 413 when it unpacks to more than the limit, 400 when it is damaged.
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
    """A gzip body may be several streams, one after the other."""
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
    """Return a body as gzip, None when that is not worth it."""
    if len(body) < _WORTH_PACKING:
        return None
    smaller = gzip.compress(body, _FAST, mtime=0)
    return smaller if len(smaller) < len(body) else None


def takes_gzip(accept_encoding: bytes) -> bool:
    """Tell whether a client takes gzip: by name, or by `*`, unless at quality 0."""
    weights: dict[bytes, bool] = {}
    for part in accept_encoding.lower().split(b","):
        name, _, quality = part.partition(b";")
        weights[name.strip()] = quality.replace(b" ", b"").removeprefix(b"q=").strip(b"0.") != b"" or not quality
    return weights.get(GZIP, weights.get(b"*", False))
