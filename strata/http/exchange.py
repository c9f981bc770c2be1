"""One HTTP request and its answer of bounded size and time, over a pool of connections.

Rules of this file: it chooses no address, judges no status and parses no body. Redirects are not followed, so that
credentials go only where the user sent them.
"""

import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import urllib3

from strata.http.errors import AnswerTooLong, AnswerTooSlow
from strata.http.settings import HttpSettings, split_userinfo
from strata.http.tls import tls_context

__all__ = ["Answer", "exchange", "open_pool"]

_CHUNK = 256 << 10
"""Bytes of a body that are read, and after decompression kept, at once."""


class Answer(NamedTuple):
    """An HTTP answer: the address that gave it, its status, headers and body."""

    base: str
    status: int
    headers: Mapping[str, str]
    data: bytes


def open_pool(settings: HttpSettings) -> urllib3.PoolManager:
    """Return a connection pool with the time limits, certificates and the proxy of the settings.

    Raises:
        ValueError: If certificates or the key cannot be used.
    """
    addresses = (*settings.urls, settings.proxy or "")
    context = None
    if any(address.startswith("https:") for address in addresses):
        context = tls_context(
            ca_file=settings.ca_file,
            ca_data=settings.ca_data,
            cert_file=settings.cert_file,
            key_file=settings.key_file,
            key_password=settings.key_password,
        )
    options: dict[str, Any] = {
        "num_pools": len(settings.urls),
        "maxsize": settings.pool_size,
        "block": True,
        "timeout": urllib3.Timeout(connect=settings.timeout, read=settings.timeout),
        "retries": False,
        "ssl_context": context,
    }
    if settings.proxy is None:
        return urllib3.PoolManager(**options)
    address, userinfo = split_userinfo(settings.proxy)
    headers = None if userinfo is None else urllib3.make_headers(proxy_basic_auth=":".join(userinfo))
    return urllib3.ProxyManager(address, proxy_headers=headers, proxy_ssl_context=context, **options)


def exchange(
    pool: urllib3.PoolManager,
    settings: HttpSettings,
    method: str,
    base: str,
    target: str,
    payload: bytes | None,
    headers: Mapping[str, str],
) -> Answer:
    """Send one request and return its answer.

    Args:
        pool: the connections.
        settings: the limits of an answer.
        method: the HTTP method.
        base: the address.
        target: the path and query below it.
        payload: the body, if any.
        headers: the request headers.

    Raises:
        AnswerTooLong: If the body is longer than the settings allow.
        AnswerTooSlow: If it takes longer.
        HTTPError: If the connection fails or the answer breaks off; urllib3's.
    """
    response = pool.request(method, base + target, body=payload, headers=headers, redirect=False, preload_content=False)
    try:
        return Answer(base, response.status, response.headers, _body(response, settings))
    except BaseException:
        response.close()  # what is left of the answer must not meet the next request
        raise
    finally:
        response.release_conn()


def _body(response: urllib3.BaseHTTPResponse, settings: HttpSettings) -> bytes:
    body = bytearray()
    deadline = time.monotonic() + settings.max_answer_seconds
    while chunk := response.read1(_CHUNK, decode_content=True):
        body += chunk
        if len(body) > settings.max_answer_bytes:
            raise AnswerTooLong(f"the answer is longer than {settings.max_answer_bytes} bytes")
        if time.monotonic() > deadline:
            raise AnswerTooSlow(f"the answer did not end within {settings.max_answer_seconds:g} s")
    return bytes(body)
