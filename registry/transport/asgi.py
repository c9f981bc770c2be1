"""The types of ASGI, the interface between the server, the layers of this package and FastAPI."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

__all__ = ["Answer", "App", "Headers", "Message", "Receive", "Scope", "Send"]

Headers = list[tuple[bytes, bytes]]
Answer = tuple[int, Headers, bytes]
Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
