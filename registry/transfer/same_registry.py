"""Whether two addresses mean the same registry, as far as the addresses show."""

import socket
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit

from strata.storage.addresses import broker_addresses

__all__ = ["is_same_registry"]

_PORTS = {"http": 80, "https": 443, "postgresql": 5432, "kafka": 9092}
_SCHEMES = {"postgres": "postgresql", "postgresql+psycopg": "postgresql", "sqlite+pysqlite": "sqlite"}


def is_same_registry(a: str, b: str) -> bool:
    """Return whether two URLs of services or logs lead to the same file, database, topic or address.

    A malformed URL is never the same as another.
    """
    try:
        return any(_is_same(mine, theirs) for mine in _urls(a) for theirs in _urls(b))
    except ValueError:
        return False


def _urls(text: str) -> list[SplitResult]:
    """Return the URLs of a text: a service may have several addresses, with commas between them."""
    is_service = text.lower().startswith(("http://", "https://"))
    return [urlsplit(url.strip()) for url in (text.split(",") if is_service else [text])]


def _is_same(mine: SplitResult, theirs: SplitResult) -> bool:
    scheme = _scheme(mine)
    if scheme != _scheme(theirs) or _path(mine, scheme) != _path(theirs, scheme):
        return False
    return scheme == "sqlite" or not _addresses(mine, scheme).isdisjoint(_addresses(theirs, scheme))


def _scheme(url: SplitResult) -> str:
    return _SCHEMES.get(url.scheme.lower(), url.scheme.lower())


def _path(url: SplitResult, scheme: str) -> str:
    if scheme == "sqlite":
        return str(Path(unquote(url.path.removeprefix("/"))).resolve())
    return unquote(url.path).strip("/")


def _addresses(url: SplitResult, scheme: str) -> set[tuple[str, int]]:
    """Return the addresses of all servers in a URL; a Kafka URL may name several."""
    addresses: set[tuple[str, int]] = set()
    for name, port in broker_addresses(url.netloc.rpartition("@")[2], _PORTS.get(scheme, 0)):
        host = (name or "localhost").lower()
        addresses.add((host, port))
        try:
            addresses |= {(str(address[4][0]), port) for address in socket.getaddrinfo(host, port)}
        except OSError:
            continue
    return {("127.0.0.1" if host == "::1" else host, port) for host, port in addresses}
