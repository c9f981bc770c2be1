"""HTTP to the registry: send a request, retry it, and parse the JSON of the answer.

Rules of this file: it knows addresses, retries and error bodies, and no route. A deletion is retried only when the
registry cannot have carried it out.
"""

import base64
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any
from urllib.parse import urlencode

from urllib3.exceptions import ConnectTimeoutError, HTTPError, NewConnectionError

from strata.http.certificates import certificate_fault
from strata.http.retries import repeats_after_silence, repeats_after_status
from strata.serdes.errors import RegistryError, RegistryUnavailable, SerdeError
from strata.serdes.http import Answer, backoff, brief, exchange, open_pool, retry_after
from strata.serdes.oauth import TokenSource
from strata.serdes.observer import Observer
from strata.serdes.settings import ClientSettings
from strata.serdes.trace_context import request_span

__all__ = ["Transport"]

_MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"
_NEVER_SENT = (NewConnectionError, ConnectTimeoutError)
_NOT_FOUND = 404
_UNAUTHORIZED = 401
_FORBIDDEN = 403
_REASON_LENGTH = 300


class Transport:
    """Connections to the addresses of one registry, safe to share between threads."""

    def __init__(
        self,
        settings: ClientSettings,
        *,
        sleep: Callable[[float], None] = time.sleep,
        observer: Observer | None = None,
    ) -> None:
        self._settings, self._observer = settings, observer
        self._sleep = sleep
        self._headers = {"Accept": f"{_MEDIA_TYPE}, application/json; q=0.9", **_authorization(settings)}
        self._preferred = 0
        self._met = False  # whether the registry has ever answered
        self._open()

    def _open(self) -> None:
        one = self._settings
        self._pool = open_pool(one, len(one.urls), ca_file=one.ca_file, cert_file=one.cert_file, key_file=one.key_file)
        self._tokens = None if one.token_url is None else TokenSource(one, sleep=self._sleep)
        self._process = os.getpid()

    def close(self) -> None:
        """Close the connections; a later request opens new ones."""
        self._pool.clear()
        if self._tokens is not None:
            self._tokens.close()

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> Any:
        """Send a request, retry it over all addresses, and return the parsed JSON of the answer.

        Args:
            method: the HTTP method; a DELETE is retried only if the registry cannot have carried it out.
            path: the path after the base address, with quoted segments.
            query: query parameters.
            body: the body, sent as JSON.

        Returns:
            The parsed JSON; None for an empty body.

        Raises:
            RegistryError: If the registry answers with an error that a retry would not change.
            RegistryUnavailable: If there is no usable answer after all retries, or a deletion broke off.
            TokenError: If the OAuth token endpoint gives no token.
            SerdeError: If the answer is not JSON or is too long.
        """
        target = f"{path}?{urlencode(query)}" if query else path
        payload = None if body is None else json.dumps(body).encode()
        with request_span(method) as trace:
            return self._retried(method, path, target, payload, trace)

    def _retried(self, method: str, path: str, target: str, payload: bytes | None, trace: Mapping[str, str]) -> Any:
        failure: Exception | None = None
        wait: float | None = None
        began = time.monotonic()
        for attempt in count():
            if failure is not None and not self._goes_on(attempt, time.monotonic() - began):
                break
            if failure is not None and self._observer is not None:
                self._observer.retry(method, path, failure, time.monotonic() - began)
            if attempt and attempt % len(self._settings.urls) == 0:  # all addresses are tried before a wait
                self._sleep(backoff(self._settings, attempt // len(self._settings.urls), wait))
            preferred = self._preferred
            base = self._settings.urls[preferred]
            try:
                status, headers, data = self._send(method, base + target, payload, trace)
            except HTTPError as error:
                fault = certificate_fault(error)
                if not repeats_after_silence(method) and fault is None and not isinstance(error, _NEVER_SENT):
                    raise RegistryUnavailable(f"{base} may or may not have done {method} {path}: {error}") from None
                failure, wait = _silence(base, error), None
                # Before the first answer it is a mistake of settings or operator, which waiting does not mend.
                if fault and not self._met and attempt + 1 >= len(self._settings.urls):
                    raise failure from None
            else:
                self._met = True
                if 200 <= status < 300:
                    return _parse(base, data)
                failure, wait = _refusal(base, status, data, f"{method} {path}"), retry_after(headers)
                if not repeats_after_status(method, status):
                    raise failure
            self._preferred = (preferred + 1) % len(self._settings.urls)
        raise _final(failure, self._settings.urls) from failure

    def _goes_on(self, attempts: int, seconds: float) -> bool:
        """Return whether to try again after some attempts, the first of which began some seconds ago."""
        one = self._settings
        return attempts < max(one.retries + 1, len(one.urls)) or seconds < (one.wait or 0)

    def _send(self, method: str, url: str, payload: bytes | None, trace: Mapping[str, str]) -> Answer:
        if self._process != os.getpid():
            self._open()  # a forked process must not share sockets or a token request under way
        if self._tokens is None:
            return self._exchange(method, url, payload, trace)
        token = self._tokens.get()
        answer = self._exchange(method, url, payload, {**trace, "Authorization": f"Bearer {token}"})
        if answer.status != 401:
            return answer
        token = self._tokens.get(refused=token)
        return self._exchange(method, url, payload, {**trace, "Authorization": f"Bearer {token}"})

    def _exchange(self, method: str, url: str, payload: bytes | None, more: Mapping[str, str]) -> Answer:
        headers = {**self._headers, **more}
        if payload is not None:
            headers["Content-Type"] = _MEDIA_TYPE
        if self._observer is None:
            return exchange(self._pool, method, url, payload, headers, self._settings.max_answer_bytes)
        began, status = time.perf_counter(), None
        try:
            answer = exchange(self._pool, method, url, payload, headers, self._settings.max_answer_bytes)
            status = answer.status
            return answer
        finally:
            self._observer.request(method, status, time.perf_counter() - began)


def _authorization(settings: ClientSettings) -> dict[str, str]:
    """Return the headers that are the same for all requests."""
    given = {"target-sr-cluster": settings.logical_cluster, "Confluent-Identity-Pool-Id": settings.identity_pool}
    headers = {name: value for name, value in given.items() if value is not None}
    if settings.token is not None:
        headers["Authorization"] = f"Bearer {settings.token}"
    if settings.username is not None:
        pair = f"{settings.username}:{settings.password}".encode()
        headers["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"
    return headers


def _parse(base: str, data: bytes) -> Any:
    if not data:
        return None
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise SerdeError(f"{base} answered with something that is not JSON; is it a schema registry?") from None


def _refusal(base: str, status: int, data: bytes, request: str) -> RegistryError:
    try:
        body = json.loads(data)
        code, message = int(body["error_code"]), str(body["message"])
    except (ValueError, KeyError, TypeError, RecursionError):
        text = data[:_REASON_LENGTH].decode("utf-8", "replace").strip()
        code, message = status, text or "the answer has no body"
    return RegistryError(status, code, message + _hint(base, code, request))


def _hint(base: str, code: int, request: str) -> str:
    """Return what to check; errors of a schema registry itself have codes of five digits, and messages that say it."""
    if code == _FORBIDDEN:
        return f": {request}"
    if code == _UNAUTHORIZED:
        return f": are username and password, or the token, those of {base}?"
    return f": is {base} the address of a schema registry?" if code == _NOT_FOUND else ""


def _silence(base: str, error: HTTPError) -> RegistryUnavailable:
    fault = certificate_fault(error)
    if fault is not None:
        return RegistryUnavailable(f"the certificate of {base} is not accepted: {fault}")
    return RegistryUnavailable(f"{base} does not answer: {brief(error)}")


def _final(failure: Exception | None, urls: Sequence[str]) -> Exception:
    tried = f" (tried {', '.join(urls)})" if len(urls) > 1 else ""
    if isinstance(failure, RegistryError):
        return RegistryUnavailable(f"the registry keeps answering: {failure}{tried}")
    return RegistryUnavailable(f"{failure or 'no attempt was made'}{tried}")
