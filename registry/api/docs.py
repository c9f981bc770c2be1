"""`/docs` and `/openapi.json`: the API to read and to try in a browser.

The page loads nothing from other hosts; its content security policy forbids it.
"""

import asyncio
from functools import cache
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from strata.registry.api.router import Router
from strata.registry.core import errors
from strata.registry.core.rights.route_rights import OPEN
from strata.registry.http.bodies import answer

__all__ = ["router"]

router = Router(place=240)

_FOLDER = Path(__file__).parent / "swagger"
_FILES = {
    "start.js": "text/javascript; charset=utf-8",
    "swagger-ui-bundle.js": "text/javascript; charset=utf-8",
    "swagger-ui.css": "text/css; charset=utf-8",
}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
}


@router.reads("GET", "/docs", None, any_media_type=True, needs_log=False, need=OPEN)
async def docs() -> Response:
    """Return the page."""
    return _answer("docs.html", "text/html; charset=utf-8")


@router.reads("GET", "/docs/{name}", None, any_media_type=True, needs_log=False, need=OPEN)
async def docs_file(name: str) -> Response:
    """Return a file that the page loads."""
    if name not in _FILES:
        raise errors.not_found()
    return _answer(name, _FILES[name])


@router.reads("GET", "/openapi.json", None, any_media_type=True, needs_log=False, need=OPEN)
async def document(request: Request) -> Response:
    """Return the OpenAPI document."""
    content = await asyncio.to_thread(request.app.openapi)
    return answer(content, media_type="application/json")


def _answer(name: str, media_type: str) -> Response:
    return Response(_content(name), media_type=media_type, headers=_HEADERS)


@cache
def _content(name: str) -> bytes:
    return (_FOLDER / name).read_bytes()
