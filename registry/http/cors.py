"""Lets web pages of chosen origins read the answers of this registry (CORS, the Fetch standard); off by default.

A browser asks for permission (a preflight request, `OPTIONS`) before a page of another origin sends JSON or
credentials. Such pages may then also write (`checks.py`). No answer allows credentials of the browser itself
(cookies, client certificates, stored passwords): a page sends an `Authorization` header of its own.

This is not starlette's middleware, which would wrap `send` for every answer and refuse preflights with plain text.
"""

from collections.abc import Iterable, Mapping

from strata.registry.http.asgi import Answer, Headers
from strata.registry.node.hosts import ANY

__all__ = ["Cors"]

_METHODS = b"GET, HEAD, POST, PUT, DELETE"
_REQUEST_HEADERS = b"Authorization, Content-Type, Accept, X-Request-ID, Confluent-Accept-Unknown-Properties"
_ANSWER_HEADERS = b"X-Request-ID, Retry-After, WWW-Authenticate"
_SECONDS = b"600"
_VARY = (b"vary", b"Origin")


class Cors:
    """The origins whose pages may read answers.

    Args:
        origins: the origins, such as `https://ui.example.com`; `*` allows any.
    """

    def __init__(self, origins: Iterable[str]) -> None:
        self._origins = frozenset(origin.lower().encode() for origin in origins)
        self._any = ANY.encode() in self._origins

    def headers(self, asked: Mapping[bytes, bytes]) -> Headers:
        """Return the headers that each answer to a request needs.

        Args:
            asked: the headers of the request by lower-case name.
        """
        origin = asked.get(b"origin")
        if origin is None or not (self._any or origin.lower() in self._origins):
            return [_VARY]
        return [(b"access-control-allow-origin", origin), (b"access-control-expose-headers", _ANSWER_HEADERS), _VARY]

    def preflight(self, method: str, asked: Mapping[bytes, bytes]) -> Answer | None:
        """Return the answer to a preflight request of an allowed origin, without the headers of `headers`.

        None for any other request.
        """
        if method != "OPTIONS":
            return None
        if b"access-control-request-method" not in asked or len(self.headers(asked)) == 1:
            return None
        granted: Headers = [
            (b"access-control-allow-methods", _METHODS),
            (b"access-control-allow-headers", _REQUEST_HEADERS),
            (b"access-control-max-age", _SECONDS),
        ]
        return 204, granted, b""
