"""Tokens of a managed identity: a machine in Azure asks its instance metadata service (IMDS), without a secret.

Rules of this file: no error contains a token or more of an answer than its status.
"""

import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

from strata.http.errors import TokenRefused
from strata.http.sender import Sender
from strata.http.settings import HttpSettings
from strata.http.tokens import MOST_BYTES, RENEWED_AT, answered, is_bearer_token
from strata.shared_cache import SharedCache

__all__ = ["ManagedIdentity"]

_SERVICE = "http://169.254.169.254/metadata/identity/oauth2/token"
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
        self._service = f"the identity service {urlunsplit((*parts[:3], '', ''))}"
        self._target = urlunsplit(("", "", parts.path, query or parts.query, ""))
        self._clock = clock
        settings = HttpSettings(urls=(f"{parts.scheme}://{parts.netloc}",), max_answer_bytes=MOST_BYTES)
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
            answer = answered(lambda: self._sender.send("GET", self._target), self._service)
        finally:
            self._sender.close()  # the next request is hours away
        if answer.status != _OK:
            raise TokenRefused(f"{self._service} refused the request (HTTP {answer.status})")
        try:
            body = json.loads(answer.data)
            text, life = body["access_token"], float(body.get("expires_in", math.inf))
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            text, life = None, 0.0
        if not is_bearer_token(text) or not life > 0:
            raise TokenRefused(f"{self._service}: expected JSON with access_token and expires_in")
        return _Token(text, asked_at + RENEWED_AT * life)
