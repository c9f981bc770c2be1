"""The rules for a request before it reaches a route: its path, its host and origin, its body's type and size.

Routing uses the raw path, since subjects may hold %2F. Slashes at the end of the path or of the client's base URL are
ignored, and the prefix form of contexts becomes the plain form.
"""

import re
from functools import lru_cache

from strata.registry import errors
from strata.registry.http.asgi import Receive, Scope
from strata.registry.http.bodies import decompressing, limited
from strata.registry.http.context_prefix import within_context
from strata.registry.http.cross_site import BrowserGuard
from strata.registry.http.media_types import BODY_TYPES, FORM_TYPES
from strata.registry.http.reply import Layer, Reply
from strata.registry.http.request_ids import HEADER as REQUEST_ID
from strata.registry.http.route_facts import DeclaredRoute, RouteFacts, RouteTable
from strata.registry.page_paths import is_page

__all__ = ["RequestChecks", "facts_of", "find_route", "plain_path", "route_of"]

_ROUTE = "strata.route"
_GZIP_NAMES = (b"gzip", b"x-gzip")
_ENCODINGS = (b"", b"identity", *_GZIP_NAMES)
# What these headers say is dealt with here; a node that gets the forwarded write must not judge it again.
_HANDLED = frozenset((b"content-encoding", b"content-length", b"origin", b"sec-fetch-site", REQUEST_ID))
_HANDLED_OF_PAGES = _HANDLED - {b"origin", b"sec-fetch-site"}  # never forwarded, and they judge more strictly
_MAX_PATH = 8192
_BASE_URL = re.compile(r"/*(?:(contexts/[^/]+)/+(?=[^/]))?")
_UNKNOWN = RouteFacts()


def route_of(scope: Scope) -> DeclaredRoute | None:
    """Return the route of a request that has passed the checks; None if there is none."""
    return scope.get(_ROUTE)


def facts_of(scope: Scope) -> RouteFacts:
    """Return the facts about the route of a request that has passed the checks."""
    route = route_of(scope)
    return route.facts if route else _UNKNOWN


def find_route(scope: Scope, routes: RouteTable) -> None:
    """Find the route of a request whose path is settled, and keep it for `route_of` and `facts_of`."""
    scope[_ROUTE] = routes.find(scope["method"], scope["path"])


class RequestChecks:
    """A layer that rejects requests that no route accepts and brings all others into one form.

    Args:
        within: the next layer.
        routes: the routes of the service.
        guard: the check of hosts and origins.
        max_body: the largest request body in bytes.
    """

    def __init__(self, within: Layer, routes: RouteTable, guard: BrowserGuard, max_body: int) -> None:
        self._within, self._routes, self._guard, self._max_body = within, routes, guard, max_body

    async def answer(self, scope: Scope, receive: Receive, reply: Reply) -> None:
        """Check a request and pass it on.

        Raises:
            RegistryError: if no route accepts it.
        """
        self._settle_route(scope)
        headers, facts = reply.asked, facts_of(scope)
        encoding = headers.get(b"content-encoding", b"").strip().lower()
        max_body = self._max_body * facts.bodies
        self._guard.check(scope["method"], headers)
        self._check(scope, facts, reply, encoding, max_body)
        receive = limited(receive, max_body, reply.note_received)
        if encoding in _GZIP_NAMES:
            receive = decompressing(receive, max_body)
        handled = _HANDLED_OF_PAGES if is_page(scope["path"]) else _HANDLED
        kept = [header for header in scope["headers"] if header[0] not in handled]
        scope["headers"] = [*kept, (REQUEST_ID, reply.request_id)]
        await self._within(scope, receive, reply)

    def _settle_route(self, scope: Scope) -> None:
        """Set the path that is routed, and the facts about its route."""
        method, path = scope["method"], plain_path(scope["raw_path"])
        if "//" in path:
            raise errors.http_error(400, "Bad Request")
        within, query = within_context(path, scope["query_string"].decode("latin-1"), self._routes, method)
        if within != path:
            # Change the raw path too, since it is what a forwarded write is sent to.
            scope["raw_path"], scope["query_string"] = within.encode(), query.encode()
        scope["path"], scope["root_path"] = within, ""
        find_route(scope, self._routes)

    def _check(self, scope: Scope, facts: RouteFacts, reply: Reply, encoding: bytes, max_body: int) -> None:
        if len(scope["path"]) > _MAX_PATH:
            raise errors.http_error(414, "URI Too Long")
        if not reply.is_acceptable and not facts.any_media_type:
            raise errors.not_acceptable()
        content_type = reply.asked.get(b"content-type", b"")
        accepted = FORM_TYPES if facts.takes_forms else BODY_TYPES
        if content_type and content_type.split(b";", 1)[0].strip().lower() not in accepted:
            raise errors.media_type()
        if encoding not in _ENCODINGS:
            raise errors.media_type()
        length = reply.asked.get(b"content-length", b"0")
        if length.isdigit() and int(length) > max_body:
            raise errors.too_large(max_body)


@lru_cache(maxsize=256)
def plain_path(raw_path: bytes) -> str:
    """Return a raw path without the slashes at its end and those at the end of a base URL, which may be a context."""
    path = raw_path.decode("latin-1").split("?", 1)[0]
    base = _BASE_URL.match(path)
    start, context = (base.end(), base[1]) if base else (0, None)
    return f"/{context + '/' if context else ''}{path[start:]}".rstrip("/") or "/"
