"""The rules for a request before it reaches a route: its path, its host and origin, its body's type and size.

Routing uses the raw path, since subjects may hold %2F. Slashes at the end of the path or of the client's base URL are
ignored, and the prefix form of contexts becomes the plain form.

Web pages of other sites must not use this registry through a browser that can reach it (CSRF, DNS rebinding). A page
may send a write to any address without permission if the write needs no preflight request; the browser then names the
page's site in `Origin` and `Sec-Fetch-Site`. A page may also point its own host name at 127.0.0.1 (DNS rebinding); the
browser then sends that name as `Host`. Other clients send neither `Origin` nor `Sec-Fetch-Site`, and a valid `Host`.
"""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from strata.registry.core import errors
from strata.registry.http.asgi import REQUEST_ID
from strata.registry.http.bodies import decompressing, limited
from strata.registry.http.context_prefix import CONTEXTS, within_context
from strata.registry.http.exchange import Exchange
from strata.registry.http.media_types import BODY_TYPES, FORM_TYPES
from strata.registry.http.page_paths import PAGES, is_page
from strata.registry.http.route_facts import RouteTable
from strata.registry.node.hosts import ANY, host_name, is_loopback

__all__ = ["BrowserGuard", "RequestChecks", "plain_path"]

_GZIP_NAMES = (b"gzip", b"x-gzip")
_ENCODINGS = (b"", b"identity", *_GZIP_NAMES)
# What these headers say is dealt with here; a node that gets the forwarded write must not judge it again.
_HANDLED = frozenset((b"content-encoding", b"content-length", b"origin", b"sec-fetch-site", REQUEST_ID))
_HANDLED_OF_PAGES = _HANDLED - {b"origin", b"sec-fetch-site"}  # never forwarded, and they judge more strictly
_MAX_PATH = 8192
_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
_MOST_KNOWN_HOSTS = 256
_LONGEST_SHOWN = 200
_BASE_URL = re.compile(r"/*(?:(contexts/[^/]+)/+(?=[^/]))?")


class BrowserGuard:
    """A check of `Host`, `Origin` and `Sec-Fetch-Site` in requests.

    Args:
        hosts: names that `Host` may have besides those of loopback; None allows any.
        origins: origins that may write, such as `https://ui.example.com`; `*` allows any.
    """

    def __init__(self, hosts: Iterable[str] | None, origins: Iterable[str]) -> None:
        self._hosts = None if hosts is None else frozenset(host_name(host) for host in hosts)
        self._origins = frozenset(origin.lower() for origin in origins)
        self._known: set[bytes] = set()

    def knows(self, host: bytes) -> bool:
        """Return whether a `Host` header has passed `check` before, or any is allowed."""
        return host in self._known or self._hosts is None

    def check(self, method: str, headers: Mapping[bytes, bytes]) -> None:
        """Reject a request for an unknown host, and a write from another site.

        Args:
            method: the HTTP method.
            headers: the request's headers by lower-case name.

        Raises:
            RegistryError: 403; the message names the setting that would allow the request.
        """
        host = headers.get(b"host", b"")
        if not self.knows(host):
            self._check_host(host)
        if method not in _SAFE_METHODS and (b"origin" in headers or b"sec-fetch-site" in headers):  # else no browser
            self._check_origin(host, headers)

    def _check_host(self, host: bytes) -> None:
        name = host_name(host.decode("latin-1"))
        hosts = self._hosts or frozenset()
        if name and name not in hosts and ANY not in hosts and not is_loopback(name):
            raise errors.foreign_host(name[:_LONGEST_SHOWN])
        if len(self._known) >= _MOST_KNOWN_HOSTS:
            self._known.clear()
        self._known.add(host)

    def _check_origin(self, host: bytes, headers: Mapping[bytes, bytes]) -> None:
        origin = headers.get(b"origin", b"").decode("latin-1").lower()
        if ANY in self._origins or (origin and origin in self._origins):
            return
        crosses = headers.get(b"sec-fetch-site", b"").strip().lower() == b"cross-site"
        if crosses or (origin and origin.partition("://")[2] != host.decode("latin-1").lower()):
            raise errors.foreign_origin(origin[:_LONGEST_SHOWN])


class RequestChecks:
    """The checks that each request of a client passes, which bring it into one form.

    Args:
        routes: the routes of the service.
        guard: the check of hosts and origins.
        max_body: the largest request body in bytes.
    """

    def __init__(self, routes: RouteTable, guard: BrowserGuard, max_body: int) -> None:
        self._routes, self._guard, self._max_body = routes, guard, max_body

    def settle(self, exchange: Exchange) -> None:
        """Set the path that is routed, and find its route.

        Raises:
            RegistryError: 400 if the path is not valid.
        """
        scope = exchange.scope
        method, path = scope["method"], plain_path(scope["raw_path"])
        if "//" in path:
            raise errors.http_error(400, "Bad Request")
        if path.startswith(CONTEXTS):
            within, query = within_context(path, scope["query_string"].decode("latin-1"), self._routes, method)
            if within != path:
                # Change the raw path too, since it is what a forwarded write is sent to.
                path, scope["raw_path"], scope["query_string"] = within, within.encode(), query.encode()
        scope["path"], scope["root_path"] = path, ""
        exchange.follow(self._routes.find(method, path))

    def check(self, exchange: Exchange) -> None:
        """Reject a request that its route does not accept; limit and decompress the body of any other.

        Raises:
            RegistryError: if the route does not accept it.
        """
        scope, headers, facts = exchange.scope, exchange.headers, exchange.facts
        method, path = scope["method"], scope["path"]
        encoding = headers[b"content-encoding"].strip().lower() if b"content-encoding" in headers else b""
        max_body = self._max_body * facts.bodies
        self._guard.check(method, headers)
        if len(path) > _MAX_PATH:
            raise errors.http_error(414, "URI Too Long")
        if not exchange.is_acceptable and not facts.any_media_type:
            raise errors.not_acceptable()
        content_type = headers.get(b"content-type", b"")
        accepted = FORM_TYPES if facts.takes_forms else BODY_TYPES
        if content_type and content_type not in accepted and _bare(content_type) not in accepted:
            raise errors.media_type()
        if encoding not in _ENCODINGS:
            raise errors.media_type()
        length = headers.get(b"content-length", b"0")
        if length.isdigit() and int(length) > max_body:
            raise errors.too_large(max_body)
        if method != "GET" or facts.about_writer:  # no other GET reads a body
            exchange.receive = limited(exchange.receive, max_body, exchange.note_received)
            if encoding in _GZIP_NAMES:
                exchange.receive = decompressing(exchange.receive, max_body)
        handled = _HANDLED_OF_PAGES if path.startswith(PAGES) and is_page(path) else _HANDLED
        kept = [header for header in scope["headers"] if header[0] not in handled]
        scope["headers"] = [*kept, (REQUEST_ID, exchange.request_id)]


def _bare(content_type: bytes) -> bytes:
    """Return a media type in lower case and without its parameters."""
    return content_type.split(b";", 1)[0].strip().lower()


@lru_cache(maxsize=256)
def plain_path(raw_path: bytes) -> str:
    """Return a raw path without the slashes at its end and those at the end of a base URL, which may be a context."""
    path = raw_path.decode("latin-1").split("?", 1)[0]
    base = _BASE_URL.match(path)
    start, context = (base.end(), base[1]) if base else (0, None)
    return f"/{context + '/' if context else ''}{path[start:]}".rstrip("/") or "/"
