"""Tokens of a managed identity: a machine in Azure asks its instance metadata service (IMDS), without a secret.

Rules of this file: no error contains a token or more of an answer than its status.
"""

import json
import math
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

from strata.http.errors import AnswerTooLong, AnswerTooSlow, NoAnswer, TokenRefused, TokenUnavailable
from strata.http.retries import RETRIED
from strata.http.sender import Sender
from strata.http.settings import HttpSettings
from strata.shared_cache import SharedCache

__all__ = ["ManagedIdentity"]

_SERVICE = "http://169.254.169.254/metadata/identity/oauth2/token"
_TOKEN = re.compile(r"[A-Za-z0-9\-._~+/]+=*")  # RFC 6750, section 2.1
_RENEWED_AT = 0.8
_MOST_BYTES = 64 * 1024
_OK = 200


@dataclass(frozen=True, slots=True, repr=False)
class _Token:
    text: str
    renew_at: float


class ManagedIdentity:
    """Returns the header with a token, which is renewed before it expires; threads may share it.

    Args:
        url: the service, if it is not that of Azure.
        query: the query, such as `api-version=2018-02-01&resource=api://registry`.
        clock: returns seconds that never go back.

    Raises:
        ValueError: If neither says for which resource the token is, or the URL cannot be parsed.
    """

    def __init__(
        self, url: str | None = None, query: str | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        if url is None and not query:
            raise ValueError("bearer.auth.issuer.endpoint.query: expected api-version and resource, got none")
        parts = urlsplit(url or _SERVICE)
        self._url = urlunsplit((*parts[:3], query or parts.query, ""))
        self._shown = urlunsplit((*parts[:3], "", ""))
        self._target = urlunsplit(("", "", parts.path, query or parts.query, ""))
        self._clock = clock
        settings = HttpSettings(urls=(f"{parts.scheme}://{parts.netloc}",), max_answer_bytes=_MOST_BYTES)
        self._sender = Sender(settings, {"Metadata": "true", "Accept": "application/json"})
        self._tokens: SharedCache[None, _Token] = SharedCache(1)

    def __reduce__(self) -> tuple[type["ManagedIdentity"], tuple[str]]:
        return ManagedIdentity, (self._url,)

    def __call__(self) -> dict[str, str]:
        """Return the header of one attempt.

        Raises:
            TokenRefused: If the service rejects the request, or its answer has no usable token.
            TokenUnavailable: If the service does not answer after all retries.
        """
        token = self._tokens.get(None, self._fetch, is_fresh=lambda known: self._clock() < known.renew_at)
        return {"Authorization": f"Bearer {token.text}"}

    def _fetch(self) -> _Token:
        asked_at = self._clock()
        try:
            answer = self._sender.send("GET", self._target)
        except NoAnswer as silence:
            raise TokenUnavailable(f"the identity service {self._shown} does not answer: {silence.reason}") from None
        except (AnswerTooLong, AnswerTooSlow) as error:
            raise TokenRefused(f"the identity service {self._shown}: {error}") from None
        finally:
            self._sender.close()  # the next request is hours away
        if answer.status in RETRIED:
            raise TokenUnavailable(f"the identity service {self._shown} answered HTTP {answer.status} to every attempt")
        if answer.status != _OK:
            raise TokenRefused(f"the identity service {self._shown} refused the request (HTTP {answer.status})")
        try:
            body = json.loads(answer.data)
            text, life = body["access_token"], float(body.get("expires_in", math.inf))
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            text, life = None, 0.0
        if not isinstance(text, str) or not _TOKEN.fullmatch(text) or not life > 0:
            raise TokenRefused(f"the identity service {self._shown}: expected JSON with access_token and expires_in")
        return _Token(text, asked_at + _RENEWED_AT * life)
