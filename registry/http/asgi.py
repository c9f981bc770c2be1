"""The types of ASGI, the interface between the server, the layers of this package and FastAPI."""

from collections.abc import Callable

from starlette.types import ASGIApp as App
from starlette.types import Message, Receive, Scope, Send

__all__ = [
    "FORWARDED",
    "REQUEST_ID",
    "SEND_WHOLE",
    "Answer",
    "App",
    "Headers",
    "Message",
    "Receive",
    "Scope",
    "Send",
    "SendWhole",
]

Headers = list[tuple[bytes, bytes]]
Answer = tuple[int, Headers, bytes]

SendWhole = Callable[[int, bytes, bytes], bool]
"""Sends a complete answer at once, given its status, its header lines and its body; returns whether it did."""
SEND_WHOLE = "strata.send_whole"
"""The name, in the scope of a request, of the `SendWhole` of its connection."""
FORWARDED = b"x-forward"
"""The name of the header that marks a write that another node forwards."""

REQUEST_ID = b"x-request-id"
"""The name of the header that connects an answer with the log lines of every node that took part in it."""
