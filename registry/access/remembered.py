"""Credentials that were valid a moment ago, so that a password is not hashed for each request.

They are kept under a hash with a key that the process has drawn: neither the memory of the process nor the time of a
look-up says what they are.
"""

import secrets
import time
from collections.abc import Callable
from hashlib import blake2b

from strata.registry.access.principal import Principal

__all__ = ["Remembered"]

_KEEP_S = 300.0
_MOST = 10_000


class Remembered:
    """The principals of credentials that were valid.

    Args:
        now: the clock, in seconds.
        most: how many to keep; the oldest are dropped first.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic, *, most: int = _MOST) -> None:
        self._now, self._most = now, most
        self._secret = secrets.token_bytes(32)
        self._found: dict[bytes, tuple[Principal, float, object]] = {}

    def key(self, credentials: bytes) -> bytes:
        """Return the hash under which credentials are kept."""
        return blake2b(credentials, key=self._secret, digest_size=32).digest()

    def get(self, credentials: bytes, generation: object) -> Principal | None:
        """Return the principal of credentials that are still valid.

        Args:
            credentials: what the client has sent.
            generation: that of the auth file and the keys, which must be the same as when they were checked.
        """
        found = self._found.get(self.key(credentials))
        if found is None or found[1] <= self._now() or found[2] != generation:
            return None
        return found[0]

    def put(self, credentials: bytes, principal: Principal, generation: object, *, seconds: float = _KEEP_S) -> None:
        """Keep credentials for a while, but not longer than these seconds."""
        while len(self._found) >= self._most:
            del self._found[next(iter(self._found))]
        self._found[self.key(credentials)] = principal, self._now() + min(seconds, _KEEP_S), generation
