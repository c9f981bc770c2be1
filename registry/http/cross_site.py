"""Keeps web pages of other sites from using this registry through a browser that can reach it (CSRF, DNS rebinding).

A page may send a write to any address without permission if the write needs no preflight request; the browser then
names the page's site in `Origin` and `Sec-Fetch-Site`. A page may also point its own host name at 127.0.0.1 (DNS
rebinding); the browser then sends that name as `Host`. Other clients send neither `Origin` nor `Sec-Fetch-Site`, and a
valid `Host`.
"""

from collections.abc import Iterable, Mapping

from strata.registry import errors
from strata.registry.hosts import ANY, host_name, is_loopback

__all__ = ["BrowserGuard"]

_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
_MOST_KNOWN = 256
_LONGEST_SHOWN = 200


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
        if method not in _SAFE_METHODS:
            self._check_origin(host, headers)

    def _check_host(self, host: bytes) -> None:
        name = host_name(host.decode("latin-1"))
        hosts = self._hosts or frozenset()
        if name and name not in hosts and ANY not in hosts and not is_loopback(name):
            raise errors.foreign_host(name[:_LONGEST_SHOWN])
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known.add(host)

    def _check_origin(self, host: bytes, headers: Mapping[bytes, bytes]) -> None:
        origin = headers.get(b"origin", b"").decode("latin-1").lower()
        if ANY in self._origins or (origin and origin in self._origins):
            return
        crosses = headers.get(b"sec-fetch-site", b"").strip().lower() == b"cross-site"
        if crosses or (origin and origin.partition("://")[2] != host.decode("latin-1").lower()):
            raise errors.foreign_origin(origin[:_LONGEST_SHOWN])
