"""The types of ASGI, the interface between the server, the layers of this package and FastAPI."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

__all__ = [
    "FORWARDED",
    "SEND_WHOLE",
    "Answer",
    "App",
    "Headers",
    "Message",
    "Receive",
    "Scope",
    "Send",
    "SendWhole",
    "header_lines",
]

Headers = list[tuple[bytes, bytes]]
Answer = tuple[int, Headers, bytes]
Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

SendWhole = Callable[[int, bytes, bytes], bool]
"""Sends a complete answer at once, given its status, its header lines and its body; returns whether it did."""
SEND_WHOLE = "strata.send_whole"
"""The name, in the scope of a request, of the `SendWhole` of its connection."""
FORWARDED = b"x-forward"
"""The name of the header that marks a write that another node forwards."""


def header_lines(headers: Headers) -> bytes:
    """Return headers as lines; nothing if one of them holds a line break, by which a client could forge others."""
    lines = b"".join([b"%b: %b\r\n" % header for header in headers])
    return lines if lines.count(b"\r") == lines.count(b"\n") == len(headers) else b""
