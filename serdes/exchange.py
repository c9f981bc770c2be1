"""One HTTP request and its answer, of bounded size, and how long to wait before the next.

Rules of this file: no address is chosen, no status judged and no body parsed here. Redirects are not followed, so that
credentials go only where the user sent them.
"""

import random
from collections.abc import Mapping
from typing import Any, NamedTuple

import urllib3
from urllib3.exceptions import HTTPError

from serdes.errors import SerdeError
from serdes.settings import ClientSettings, split_userinfo

__all__ = ["RETRIED", "Answer", "backoff", "brief", "exchange", "open_pool", "retry_after"]

RETRIED = frozenset({408, 429, 500, 502, 503, 504})
"""Statuses that a later attempt may not meet again."""

_REASON_LENGTH = 300


class Answer(NamedTuple):
    """Status, headers and body."""

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
    """Connections to some hosts, with the time-outs of the settings."""
    files = {"ca_certs": ca_file, "cert_file": cert_file, "key_file": key_file}
    tls: dict[str, Any] = {name: file for name, file in files.items() if file is not None}
    options: dict[str, Any] = {
        "num_pools": hosts,
        "maxsize": settings.pool_size,
        "block": True,
        "timeout": urllib3.Timeout(connect=settings.timeout, read=settings.timeout),
        "retries": False,
        **tls,
    }
    if settings.proxy is None:
        return urllib3.PoolManager(**options)
    address, userinfo = split_userinfo(settings.proxy)
    headers = None if userinfo is None else urllib3.make_headers(proxy_basic_auth=":".join(userinfo))
    return urllib3.ProxyManager(address, proxy_headers=headers, **options)


def exchange(
    pool: urllib3.PoolManager, method: str, url: str, payload: bytes | None, headers: Mapping[str, str], most: int
) -> Answer:
    """Send once; a body of more than `most` bytes is not read, but a SerdeError."""
    response = pool.request(method, url, body=payload, headers=headers, redirect=False, preload_content=False)
    try:
        data = response.read(most + 1, decode_content=True)
        if len(data) > most:
            response.close()
            raise SerdeError(f"an answer of more than {most} bytes is not read")
        return Answer(response.status, response.headers, data)
    finally:
        response.release_conn()


def backoff(settings: ClientSettings, repetition: int, asked: float | None) -> float:
    """Seconds to wait before a repetition, counted from 1; what the other side asked for counts within bounds."""
    ceiling: float = min(settings.max_backoff, settings.backoff * 2 ** (repetition - 1))
    jittered = ceiling * (0.5 + random.random() / 2)  # noqa: S311 - spreads load, hides nothing
    return max(jittered, min(asked or 0.0, settings.max_backoff))


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds that an answer asks to wait."""
    value = headers.get("Retry-After", "")
    return float(value) if value.isascii() and value.isdigit() else None


def brief(error: HTTPError) -> str:
    """What went wrong on the way, in a bounded line."""
    return f"{type(error).__name__}: {error}"[:_REASON_LENGTH]
