"""The client of a registry: requests with everything that the settings say, OAuth tokens included."""

from collections.abc import Mapping

from strata.http.exchange import Answer
from strata.http.sender import Sender
from strata.http.tokens import TokenSource

__all__ = ["Answer", "Client"]

_UNAUTHORIZED = 401


class Client(Sender):
    """Connections to the addresses of one registry; threads may share it. See `Sender`.

    Its `send` also raises `TokenRefused` if the OAuth token endpoint gives no token, and `TokenUnavailable` if the
    endpoint does not answer.
    """

    def _open(self) -> None:
        super()._open()
        self._tokens = None if self._settings.token_url is None else TokenSource(self._settings, sleep=self._sleep)

    def close(self) -> None:
        """Close the connections; a later request opens new ones."""
        super().close()
        if self._tokens is not None:
            self._tokens.close()

    def _attempt(self, method: str, base: str, target: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
        """Send a request with a token, and again with a new token if the registry rejects the first."""
        self._open_after_fork()
        if self._settings.authorize is not None:
            answer = self._exchange(method, base, target, body, {**headers, **self._settings.authorize()})
            if answer.status != _UNAUTHORIZED:
                return answer
            return self._exchange(method, base, target, body, {**headers, **self._settings.authorize()})
        if self._tokens is None:
            return self._exchange(method, base, target, body, headers)
        token = self._tokens.get()
        answer = self._exchange(method, base, target, body, {**headers, "Authorization": f"Bearer {token}"})
        if answer.status != _UNAUTHORIZED:
            return answer
        token = self._tokens.get(refused=token)
        return self._exchange(method, base, target, body, {**headers, "Authorization": f"Bearer {token}"})
