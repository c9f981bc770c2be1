"""One HTTP request and its answer of bounded size, and how long to wait before a retry.

Rules of this file: it chooses no address, judges no status and parses no body. Redirects are not followed, so that
credentials go only where the user sent them.
"""

import random
from collections.abc import Mapping
from typing import Any, NamedTuple

import urllib3
from urllib3.exceptions import HTTPError

from strata.serdes.errors import SerdeError
from strata.serdes.settings import ClientSettings, split_userinfo

__all__ = ["Answer", "backoff", "brief", "exchange", "open_pool", "retry_after"]

_REASON_LENGTH = 300


class Answer(NamedTuple):
    """The status, headers and body of an HTTP answer."""

    status: int
    headers: Mapping[str, str]
    data: bytes


def open_pool(
    settings: ClientSettings,
    hosts: int,
    *,
    ca_file: str | None,
    cert_file: str | None = None,
    key_file: str | None = None,
) -> urllib3.PoolManager:
    """Return a connection pool with the timeouts and the proxy of the settings.

    Args:
        settings: the timeout, pool size and proxy.
        hosts: how many hosts to keep connections to.
        ca_file: CA certificates for https; None means the system's.
        cert_file: the client certificate.
        key_file: the key of `cert_file`.
    """
    options: dict[str, Any] = {
        "num_pools": hosts,
        "maxsize": settings.pool_size,
        "block": True,
        "timeout": urllib3.Timeout(connect=settings.timeout, read=settings.timeout),
        "retries": False,
        "ca_certs": ca_file,
        "cert_file": cert_file,
        "key_file": key_file,
    }
    if settings.proxy is None:
        return urllib3.PoolManager(**options)
    address, userinfo = split_userinfo(settings.proxy)
    headers = None if userinfo is None else urllib3.make_headers(proxy_basic_auth=":".join(userinfo))
    return urllib3.ProxyManager(address, proxy_headers=headers, **options)


def exchange(
    pool: urllib3.PoolManager, method: str, url: str, payload: bytes | None, headers: Mapping[str, str], most: int
) -> Answer:
    """Send one request and return its answer.

    Args:
        pool: the connections.
        method: the HTTP method.
        url: the full URL.
        payload: the body, if any.
        headers: the request headers.
        most: bytes of the longest body that is read, after decompression.

    Raises:
        SerdeError: If the body is longer than `most` bytes.
        HTTPError: If the connection fails; urllib3's.
    """
    response = pool.request(method, url, body=payload, headers=headers, redirect=False, preload_content=False)
    try:
        data = response.read(most + 1, decode_content=True)
        if len(data) > most:
            response.close()
            raise SerdeError(f"the answer is longer than {most} bytes")
        return Answer(response.status, response.headers, data)
    finally:
        response.release_conn()


def backoff(settings: ClientSettings, repetition: int, asked: float | None) -> float:
    """Return the seconds to wait before a retry: exponential with jitter.

    Args:
        settings: `backoff` and `max_backoff`.
        repetition: the number of the retry, from 1.
        asked: the seconds that the server asked for, honoured up to `max_backoff`.
    """
    ceiling: float = min(settings.max_backoff, settings.backoff * 2 ** (repetition - 1))
    jittered = ceiling * (0.5 + random.random() / 2)  # noqa: S311 - spreads load, keeps no secret
    return max(jittered, min(asked or 0.0, settings.max_backoff))


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of the `Retry-After` header; None for a date or no header."""
    value = headers.get("Retry-After", "")
    return float(value) if value.isascii() and value.isdigit() else None


def brief(error: HTTPError) -> str:
    """Return a connection error as one line of bounded length."""
    return f"{type(error).__name__}: {error}"[:_REASON_LENGTH]
