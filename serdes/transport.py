"""HTTP to the registry: one request in, one JSON value out.

Rules of this file: it knows addresses, retries and error bodies, and no route. Redirects are not followed, so that
credentials go only where the user sent them. A deletion is repeated only when it cannot have been carried out.
"""

import base64
import json
import os
import random
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlencode

import urllib3
from urllib3.exceptions import ConnectTimeoutError, HTTPError, NewConnectionError

from serdes.errors import RegistryError, RegistryUnavailable, SerdeError
from serdes.settings import ClientSettings

__all__ = ["Transport"]

_MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"
_RETRIED = frozenset({408, 429, 500, 502, 503, 504})
_NOT_CARRIED_OUT = frozenset({429, 503})
_NEVER_SENT = (NewConnectionError, ConnectTimeoutError)
_REASON_LENGTH = 300


class Transport:
    """A pool of connections to the addresses of one registry; safe to share between threads."""

    def __init__(self, settings: ClientSettings, *, sleep: Callable[[float], None] = time.sleep) -> None:
        self._settings = settings
        self._sleep = sleep
        self._headers = {"Accept": f"{_MEDIA_TYPE}, application/json; q=0.9", **_authorization(settings)}
        self._pool = _pool(settings)
        self._process = os.getpid()
        self._preferred = 0

    def close(self) -> None:
        """Close the connections."""
        self._pool.clear()

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> Any:
        """Send until an answer comes that repeating would not change, and return its JSON."""
        target = f"{path}?{urlencode(query)}" if query else path
        payload = None if body is None else json.dumps(body).encode()
        failure: Exception | None = None
        wait: float | None = None
        for attempt in range(max(self._settings.retries + 1, len(self._settings.urls))):
            self._pause(attempt, wait)
            preferred = self._preferred
            base = self._settings.urls[preferred]
            try:
                status, headers, data = self._send(method, base + target, payload)
            except HTTPError as error:
                if method == "DELETE" and not isinstance(error, _NEVER_SENT):
                    raise RegistryUnavailable(f"{base} may or may not have done {method} {path}: {error}") from None
                failure, wait = RegistryUnavailable(f"{base} does not answer: {_brief(error)}"), None
            else:
                if 200 <= status < 300:
                    return _parse(base, data)
                failure, wait = _refusal(status, data), _retry_after(headers)
                if status not in (_NOT_CARRIED_OUT if method == "DELETE" else _RETRIED):
                    raise failure
            self._preferred = (preferred + 1) % len(self._settings.urls)
        raise _final(failure) from failure

    def _send(self, method: str, url: str, payload: bytes | None) -> tuple[int, Mapping[str, str], bytes]:
        if self._process != os.getpid():
            self._pool, self._process = _pool(self._settings), os.getpid()  # a fork must not share sockets
        headers = self._headers if payload is None else {**self._headers, "Content-Type": _MEDIA_TYPE}
        response = self._pool.request(method, url, body=payload, headers=headers, redirect=False, preload_content=False)
        try:
            data = response.read(self._settings.max_answer_bytes + 1, decode_content=True)
            if len(data) > self._settings.max_answer_bytes:
                response.close()
                raise SerdeError(f"an answer of more than {self._settings.max_answer_bytes} bytes is not read")
            return response.status, response.headers, data
        finally:
            response.release_conn()

    def _pause(self, attempt: int, asked: float | None) -> None:
        """Wait before a repetition; the other addresses are tried first, without waiting."""
        rounds = attempt // len(self._settings.urls)
        if attempt == 0 or attempt % len(self._settings.urls):
            return
        ceiling = min(self._settings.max_backoff, self._settings.backoff * 2 ** (rounds - 1))
        jittered = ceiling * (0.5 + random.random() / 2)  # noqa: S311 - spreads load, hides nothing
        self._sleep(max(jittered, min(asked or 0.0, self._settings.max_backoff)))


def _authorization(settings: ClientSettings) -> dict[str, str]:
    if settings.token is not None:
        return {"Authorization": f"Bearer {settings.token}"}
    if settings.username is None:
        return {}
    pair = f"{settings.username}:{settings.password}".encode()
    return {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}


def _pool(settings: ClientSettings) -> urllib3.PoolManager:
    files = {"ca_certs": settings.ca_file, "cert_file": settings.cert_file, "key_file": settings.key_file}
    tls: dict[str, Any] = {name: file for name, file in files.items() if file is not None}
    return urllib3.PoolManager(
        num_pools=len(settings.urls),
        maxsize=settings.pool_size,
        block=True,
        timeout=urllib3.Timeout(connect=settings.timeout, read=settings.timeout),
        retries=False,
        **tls,
    )


def _parse(base: str, data: bytes) -> Any:
    if not data:
        return None
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise SerdeError(f"{base} answered with something that is not JSON; is it a schema registry?") from None


def _refusal(status: int, data: bytes) -> RegistryError:
    try:
        body = json.loads(data)
        return RegistryError(status, int(body["error_code"]), str(body["message"]))
    except (ValueError, KeyError, TypeError, RecursionError):
        text = data[:_REASON_LENGTH].decode("utf-8", "replace").strip()
        return RegistryError(status, status, text or "the answer has no body")


def _final(failure: Exception | None) -> Exception:
    if isinstance(failure, RegistryError):
        return RegistryUnavailable(f"the registry keeps answering: {failure}")
    return failure or RegistryUnavailable("no attempt was made")


def _retry_after(headers: Mapping[str, str]) -> float | None:
    value = headers.get("Retry-After", "")
    return float(value) if value.isascii() and value.isdigit() else None


def _brief(error: HTTPError) -> str:
    return f"{type(error).__name__}: {error}"[:_REASON_LENGTH]
