"""The body of a request: a size limit as received and as decompressed, and reading it whole.

A few kilobytes of gzip can hold gigabytes, so both sizes are limited.
"""

from collections.abc import Callable

from starlette.requests import ClientDisconnect

from strata.registry.core import errors
from strata.registry.http.asgi import Message, Receive
from strata.registry.http.compression import decompressed

__all__ = ["decompressing", "limited", "read_up_to", "read_whole", "replayed"]


def limited(receive: Receive, limit: int, note: Callable[[int], None] = lambda _size: None) -> Receive:
    """Return a `receive` that limits the size of a body, whatever the headers say.

    Args:
        receive: the ASGI callable to wrap.
        limit: the largest body in bytes.
        note: is called with the size of the body so far.

    Raises:
        RegistryError: from the returned callable, 413 if the body exceeds the limit.
        ClientDisconnect: from the returned callable, if the client disconnects before the body is complete; no route
            may act on part of a body.
    """
    seen, complete = 0, False

    async def receive_some() -> Message:
        nonlocal seen, complete
        message = await receive()
        if message["type"] == "http.disconnect" and not complete:
            raise ClientDisconnect
        complete = not message.get("more_body", False)
        seen += len(message.get("body", b""))
        note(seen)
        if seen > limit:
            raise errors.too_large(limit)
        return message

    return receive_some


def decompressing(receive: Receive, limit: int) -> Receive:
    """Return a `receive` that decompresses a gzip body and passes it on in one piece.

    Args:
        receive: the ASGI callable to wrap.
        limit: the largest decompressed body in bytes.

    Raises:
        RegistryError: from the returned callable, 413 if the decompressed body exceeds the limit; 400 if it is not
            valid gzip.
    """
    is_read = False

    async def receive_decompressed() -> Message:
        nonlocal is_read
        if is_read:
            return await receive()
        is_read = True
        return _whole(await decompressed(await read_whole(receive), limit))

    return receive_decompressed


async def read_whole(receive: Receive) -> bytes:
    """Return the body of a request.

    Raises:
        ClientDisconnect: if the client disconnects before the body is complete.
    """
    body, more = b"", True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        body += message.get("body", b"")
        more = message.get("more_body", False)
    return body


async def read_up_to(receive: Receive, most: int) -> tuple[bytes | None, Receive]:
    """Return the body of a request, None if it has more than `most` bytes, and a `receive` that gives it again.

    Raises:
        ClientDisconnect: if the client disconnects before the body, or `most` bytes of it, have arrived.
    """
    body, messages = b"", []
    while len(body) <= most:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        body += message.get("body", b"")
        messages.append(message)
        if not message.get("more_body", False):
            break
    unread = iter(messages)

    async def receive_again() -> Message:
        return next(unread, None) or await receive()

    return body if len(body) <= most else None, receive_again


def replayed(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that gives a body that was read before, then what `receive` gives."""
    is_given = False

    async def receive_again() -> Message:
        nonlocal is_given
        if is_given:
            return await receive()
        is_given = True
        return _whole(body)

    return receive_again


def _whole(body: bytes) -> Message:
    return {"type": "http.request", "body": body, "more_body": False}
