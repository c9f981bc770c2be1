"""The requests of the clients: JSON over `strata.http`, whose answers and failures become values and errors of serdes.

Rules of this file: it knows error bodies of a registry, and no route.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from urllib.parse import urlencode

from strata.http.client import Answer, Client
from strata.http.errors import AnswerTooLong, AnswerTooSlow, NoAnswer, TokenRefused, TokenUnavailable
from strata.http.retries import repeats_after_status
from strata.serdes.errors import RegistryError, RegistryUnavailable, SerdeError, TokenError
from strata.serdes.observer import Observer
from strata.serdes.settings import ClientSettings
from strata.serdes.trace_context import request_span

__all__ = ["Transport"]

_MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"
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
        self._urls = settings.urls
        headers = {"Accept": f"{_MEDIA_TYPE}, application/json; q=0.9"}
        watcher = None if observer is None else _Watcher(observer)
        self._http = Client(settings, headers, sleep=sleep, watcher=watcher)

    def close(self) -> None:
        """Close the connections; a later request opens new ones."""
        self._http.close()

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, object] | None = None,
    ) -> object:
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
            headers = dict(trace) if payload is None else {**trace, "Content-Type": _MEDIA_TYPE}
            try:
                answer = self._http.send(method, target, payload, headers=headers)
            except NoAnswer as silence:
                if silence.is_open:
                    raise RegistryUnavailable(
                        f"{silence.base} may or may not have carried out {method} {path}: {silence.error}"
                    ) from None
                raise _last(_silence(silence), self._urls) from None
            except TokenRefused as error:
                raise TokenError(str(error)) from None
            except TokenUnavailable as error:
                raise RegistryUnavailable(str(error)) from None
            except (AnswerTooLong, AnswerTooSlow) as error:
                raise SerdeError(str(error)) from None
            if 200 <= answer.status < 300:
                return _parse(answer)
            refusal = _refusal(answer, f"{method} {path}")
            if repeats_after_status(method, answer.status):
                raise _last(f"the registry keeps answering: {refusal}", self._urls) from refusal
            raise refusal


class _Watcher:
    """Tells an observer what happens to requests."""

    def __init__(self, observer: Observer) -> None:
        self.attempt = observer.request
        self._observer = observer

    def retry(self, method: str, target: str, failure: Answer | NoAnswer, seconds: float) -> None:
        """Note that a request failed and is about to be sent again."""
        path = target.partition("?")[0]
        if isinstance(failure, NoAnswer):
            error: SerdeError = RegistryUnavailable(_silence(failure))
        else:
            error = _refusal(failure, f"{method} {path}")
        self._observer.retry(method, path, error, seconds)


def _parse(answer: Answer) -> object:
    if not answer.data:
        return None
    try:
        return json.loads(answer.data)
    except (ValueError, RecursionError):
        raise SerdeError(f"{answer.base} answered with something that is not JSON; is it a schema registry?") from None


def _refusal(answer: Answer, request: str) -> RegistryError:
    try:
        body = json.loads(answer.data)
        code, message = int(body["error_code"]), str(body["message"])
    except (ValueError, KeyError, TypeError, RecursionError):
        text = answer.data[:_REASON_LENGTH].decode("utf-8", "replace").strip()
        code, message = answer.status, text or "the answer has no body"
    return RegistryError(answer.status, code, message + _hint(answer.base, code, request))


def _hint(base: str, code: int, request: str) -> str:
    """Return what to check; errors of a schema registry itself have codes of five digits, and messages that say it."""
    if code == _FORBIDDEN:
        return f": {request}"
    if code == _UNAUTHORIZED:
        return f": are username and password, or the token, those of {base}?"
    return f": is {base} the address of a schema registry?" if code == _NOT_FOUND else ""


def _silence(silence: NoAnswer) -> str:
    if silence.fault is not None:
        return f"the certificate of {silence.base} is not accepted: {silence.fault}"
    return str(silence)


def _last(reason: str, urls: Sequence[str]) -> RegistryUnavailable:
    """Return the error after all attempts."""
    return RegistryUnavailable(f"{reason} (tried {', '.join(urls)})" if len(urls) > 1 else reason)
