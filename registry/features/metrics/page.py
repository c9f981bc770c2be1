"""The app that serves `/metrics` at an address of their own, to any client that reaches it."""

import asyncio
from collections.abc import Callable

from fastapi.responses import PlainTextResponse, Response

from strata.registry.http.asgi import App, Receive, Scope, Send

__all__ = ["metrics_page"]


def metrics_page(scrape: Callable[[str], tuple[bytes, str]]) -> App:
    """Return an ASGI app that answers requests for `/metrics`, and no others.

    Args:
        scrape: returns all metrics and their media type, given the header `Accept`.
    """

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] != "/metrics" or scope["method"] not in ("GET", "HEAD"):
            response: Response = PlainTextResponse("Metrics are at /metrics.\n", 404)
        else:
            accept = dict(scope["headers"]).get(b"accept", b"").decode("latin-1")
            content, media_type = await asyncio.to_thread(scrape, accept)
            response = Response(content, media_type=media_type)
        await response(scope, receive, send)

    return answer
