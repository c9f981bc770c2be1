"""Sends a request to the addresses of one registry in turn, and again by the rules of `retries`.

Rules of this file: it judges no answer except by whether to repeat the request, and parses no body.
"""

import base64
import os
import time
from collections.abc import Callable, Mapping
from itertools import count
from typing import Protocol

from urllib3.exceptions import HTTPError

from strata.http.errors import NoAnswer
from strata.http.exchange import Answer, exchange, open_pool
from strata.http.retries import backoff, repeats_after_silence, repeats_after_status, retry_after
from strata.http.settings import HttpSettings

__all__ = ["Sender", "Watcher"]


class Watcher(Protocol):
    """Learns of requests. Any thread may call it; it must not raise."""

    def attempt(self, method: str, status: int | None, seconds: float) -> None:
        """Note one attempt; the status is None if there was no answer."""
        ...

    def retry(self, method: str, target: str, failure: Answer | NoAnswer, seconds: float) -> None:
        """Note that a request is about to be sent again, and how long ago its first attempt began."""
        ...


class Sender:
    """Connections to the addresses of one registry; threads may share it.

    Args:
        settings: the addresses, credentials and limits.
        headers: sent with every request.
        sleep: waits some seconds before a retry.
        watcher: learns of requests.

    Raises:
        ValueError: If certificates or keys of the settings cannot be used.
    """

    def __init__(
        self,
        settings: HttpSettings,
        headers: Mapping[str, str] | None = None,
        *,
        sleep: Callable[[float], None] = time.sleep,
        watcher: Watcher | None = None,
    ) -> None:
        self._settings, self._sleep, self._watcher = settings, sleep, watcher
        self._headers = {**(headers or {}), **_identity(settings)}
        self._preferred = 0
        self._has_answered = False
        self._open()

    def _open(self) -> None:
        self._pool = open_pool(self._settings)
        self._process = os.getpid()

    def _open_after_fork(self) -> None:
        if self._process != os.getpid():
            self._open()  # a forked process must not share sockets or a token request under way

    def close(self) -> None:
        """Close the connections; a later request opens new ones."""
        self._pool.clear()

    def send(
        self,
        method: str,
        target: str,
        body: bytes | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        retries: int | None = None,
    ) -> Answer:
        """Send a request, again over all addresses if that may help, and return the last answer.

        Args:
            method: the HTTP method.
            target: the path and query below the base address, quoted.
            body: the body.
            headers: further headers.
            retries: how often to repeat the request, instead of the number in the settings.

        Returns:
            The answer; its status is one of those that are repeated only if all attempts were used up.

        Raises:
            NoAnswer: If the last attempt got no whole answer.
            AnswerTooLong: If an answer is longer than the settings allow.
            AnswerTooSlow: If an answer takes longer.
        """
        urls = self._settings.urls
        least = max((self._settings.retries if retries is None else retries) + 1, len(urls))
        failure: Answer | NoAnswer | None = None
        wish: float | None = None
        began = time.monotonic()
        for attempt in count():
            if failure is not None:
                spent = time.monotonic() - began
                if attempt >= least and spent >= (self._settings.wait or 0):
                    break
                if self._watcher is not None:
                    self._watcher.retry(method, target, failure, spent)
                if attempt % len(urls) == 0:  # all addresses are tried before a wait
                    repetition = attempt // len(urls)
                    self._sleep(backoff(self._settings.backoff, self._settings.max_backoff, repetition, wish))
            preferred = self._preferred
            try:
                answer = self._attempt(method, urls[preferred], target, body, headers or {})
            except HTTPError as error:
                failure, wish = NoAnswer(urls[preferred], error, is_open=not repeats_after_silence(method)), None
                # Before the first answer a certificate is a mistake of settings or operator, which no wait mends.
                if failure.is_open or (failure.fault and not self._has_answered and attempt + 1 >= len(urls)):
                    raise failure from None
            else:
                self._has_answered = True
                if not repeats_after_status(method, answer.status):
                    return answer
                failure, wish = answer, retry_after(answer.headers)
            self._preferred = (preferred + 1) % len(urls)
        if isinstance(failure, NoAnswer):
            raise failure
        assert failure is not None  # noqa: S101 - the loop ends only after a failure
        return failure

    def _attempt(self, method: str, base: str, target: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
        """Send a request once, to one address."""
        self._open_after_fork()
        return self._exchange(method, base, target, body, headers)

    def _exchange(self, method: str, base: str, target: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
        headers = {**self._headers, **headers}
        if self._watcher is None:
            return exchange(self._pool, self._settings, method, base, target, body, headers)
        began, status = time.perf_counter(), None
        try:
            answer = exchange(self._pool, self._settings, method, base, target, body, headers)
            status = answer.status
            return answer
        finally:
            self._watcher.attempt(method, status, time.perf_counter() - began)


def _identity(settings: HttpSettings) -> dict[str, str]:
    """Return the headers that say who asks."""
    named = {"target-sr-cluster": settings.logical_cluster, "Confluent-Identity-Pool-Id": settings.identity_pool}
    headers = {name: value for name, value in named.items() if value is not None}
    if settings.token is not None:
        headers["Authorization"] = f"Bearer {settings.token}"
    if settings.username is not None:
        pair = f"{settings.username}:{settings.password}".encode()
        headers["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"
    return headers
