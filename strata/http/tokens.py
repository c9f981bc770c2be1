"""Access tokens by OAuth 2.0 client credentials (RFC 6749, section 4.4), renewed before they expire.

Rules of this file: the secret goes to the token endpoint and nowhere else; no error contains the secret or a token. An
answer of the endpoint is of bounded size, and an error repeats no more of it than an error code of RFC 6749.
"""

import json
import math
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeGuard
from urllib.parse import urlencode, urlsplit, urlunsplit

from strata.http.errors import AnswerTooLong, AnswerTooSlow, HttpFailure, NoAnswer, TokenRefused, TokenUnavailable
from strata.http.exchange import Answer
from strata.http.retries import RETRIED
from strata.http.sender import Sender
from strata.http.settings import HttpSettings
from strata.shared_cache import SharedCache

__all__ = ["MOST_BYTES", "RENEWED_AT", "TokenSource", "answered", "is_bearer_token"]

RENEWED_AT = 0.8
"""The share of its lifetime after which a token is renewed, as in Confluent's clients."""

MOST_BYTES = 64 * 1024
"""The most bytes of an answer with a token."""

_OK = 200
_REGISTRYS_ALONE = (
    "token",
    "token_url",
    "authorize",
    "client_id",
    "client_secret",
    "scope",
    "token_ca_file",
    "logical_cluster",
    "identity_pool",
    "wait",
    "cert_file",
    "key_file",
    "key_password",
)
"""Settings that do not concern the token endpoint."""

_TOKEN = re.compile(r"[A-Za-z0-9\-._~+/]+=*")  # RFC 6750, section 2.1
_REFUSALS = frozenset(  # RFC 6749, section 5.2
    {
        "invalid_request",
        "invalid_client",
        "invalid_grant",
        "unauthorized_client",
        "unsupported_grant_type",
        "invalid_scope",
    }
)


@dataclass(frozen=True, slots=True, repr=False)
class _Token:
    text: str
    renew_at: float
    expires_at: float


class TokenSource:
    """The token of one OAuth client, shared by threads: on expiry one of them fetches a new one for all.

    Args:
        settings: with `token_url`, `client_id` and `client_secret`.
        sleep: waits some seconds before a retry.
        clock: returns seconds that never go back.

    Raises:
        ValueError: If the settings have no `token_url`.
    """

    def __init__(
        self,
        settings: HttpSettings,
        *,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if settings.token_url is None:
            raise ValueError("token_url is missing")
        self._settings, self._sleep, self._clock = settings, sleep, clock
        parts = urlsplit(settings.token_url)
        self._shown = urlunsplit((*parts[:3], "", ""))
        self._target = urlunsplit(("", "", *parts[2:]))
        self._sender = Sender(
            replace(
                settings,
                urls=(f"{parts.scheme}://{parts.netloc}",),
                # Not form-encoded first: Confluent's clients send the pair as it is, and so do Kafka's by default.
                username=settings.client_id,
                password=settings.client_secret,
                **dict.fromkeys(_REGISTRYS_ALONE),  # type: ignore[arg-type]
                ca_file=settings.token_ca_file,
                max_answer_bytes=MOST_BYTES,
            ),
            {"Accept": "application/json", "Content-Type": "application/x-www-form-urlencoded"},
            sleep=self._pause,
        )
        self._asked_at = 0.0  # the lifetime of a token begins before the answer arrives
        self._tokens: SharedCache[None, _Token] = SharedCache(1)
        self._last: _Token | None = None

    def close(self) -> None:
        """Close the connections; a later fetch opens new ones."""
        self._sender.close()

    def get(self, *, refused: str | None = None) -> str:
        """Return a valid token; fetch or renew it if needed.

        Args:
            refused: a token that the registry rejected; it is returned again only if the endpoint issues it again.

        Raises:
            TokenRefused: If the endpoint rejects the request, or its answer has no usable token.
            TokenUnavailable: If the endpoint does not answer after all retries; a later call may succeed.
        """
        return self._tokens.get(
            None,
            lambda: self._renewed(refused),
            is_fresh=lambda token: token.text != refused and self._clock() < token.renew_at,
        ).text

    def _renewed(self, refused: str | None) -> _Token:
        last, now = self._last, self._clock()
        in_force = last is not None and last.text != refused and now < last.expires_at
        try:
            token = self._fetch(retries=0 if in_force else self._settings.retries)
        except HttpFailure:
            if last is None or not in_force:
                raise
            token = replace(last, renew_at=min(last.expires_at, now + self._settings.max_backoff))
        self._last = token
        return token

    def _pause(self, seconds: float) -> None:
        self._sleep(seconds)
        self._asked_at = self._clock()

    def _fetch(self, retries: int) -> _Token:
        form = {"grant_type": "client_credentials", "scope": self._settings.scope}
        payload = urlencode({name: value for name, value in form.items() if value is not None}).encode()
        self._asked_at = self._clock()
        answer = answered(
            lambda: self._sender.send("POST", self._target, payload, retries=retries),
            f"the token endpoint {self._shown}",
        )
        if answer.status != _OK:
            raise TokenRefused(f"the token endpoint {self._shown} refused the request: {_refusal(answer)}")
        return self._read(answer.data)

    def _read(self, data: bytes) -> _Token:
        try:
            body = json.loads(data)
            text, token_type, life = (
                body["access_token"],
                body.get("token_type", "Bearer"),
                _seconds(body.get("expires_in")),
            )
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            raise TokenRefused(
                f"unexpected answer of the token endpoint {self._shown}: expected JSON with access_token"
            ) from None
        if not is_bearer_token(text):
            raise TokenRefused(
                f"the token endpoint {self._shown} returned an invalid access_token: expected a bearer token (RFC 6750)"
            )
        if not isinstance(token_type, str) or token_type.lower() != "bearer":
            raise TokenRefused(f"the token endpoint {self._shown} returned another token_type: expected Bearer")
        if not life > 0:
            raise TokenRefused(
                f"the token endpoint {self._shown} returned an expired token: expected expires_in above 0"
            )
        return _Token(text, self._asked_at + RENEWED_AT * life, self._asked_at + life)


def answered(send: Callable[[], Answer], service: str) -> Answer:
    """Return the answer of a service that gives out tokens, of any status but those that are sent again.

    Args:
        send: sends the request, with its retries.
        service: the service, as errors name it.

    Raises:
        TokenRefused: If the answer is too long or too slow, or the certificate is not accepted.
        TokenUnavailable: If the service does not answer after all retries.
    """
    try:
        answer = send()
    except NoAnswer as silence:
        if silence.fault:
            raise TokenRefused(f"the certificate of {service} is not accepted: {silence.fault}") from None
        raise TokenUnavailable(f"{service} does not answer: {silence.reason}") from None
    except (AnswerTooLong, AnswerTooSlow) as error:
        raise TokenRefused(f"{service}: {error}") from None
    if answer.status in RETRIED:
        raise TokenUnavailable(f"{service} answered HTTP {answer.status} to every attempt")
    return answer


def is_bearer_token(text: object) -> TypeGuard[str]:
    """Return whether a value is a token that a header may hold."""
    return isinstance(text, str) and _TOKEN.fullmatch(text) is not None


def _seconds(value: object) -> float:
    """Return a lifetime in seconds; without one the token counts as valid until the registry rejects it."""
    if value is None:
        return math.inf
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise TypeError("expires_in")
    return float(value)


def _refusal(answer: Answer) -> str:
    try:
        code = json.loads(answer.data)["error"]
    except (ValueError, LookupError, TypeError, RecursionError):
        code = None
    known = f"{code} " if isinstance(code, str) and code in _REFUSALS else ""
    return f"{known}(HTTP {answer.status})"
