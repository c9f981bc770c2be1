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

    Attributes:
        generation: rises when all of them are dropped.

    Args:
        now: the clock, in seconds.
        most: how many to keep; the oldest are dropped first.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic, *, most: int = _MOST) -> None:
        self._now, self._most = now, most
        self._keyed = blake2b(key=secrets.token_bytes(32), digest_size=32)
        self._found: dict[bytes, tuple[Principal, float]] = {}
        self.generation = 0

    def key(self, credentials: bytes) -> bytes:
        """Return the hash under which credentials are kept."""
        hashed = self._keyed.copy()  # half the time of a new one
        hashed.update(credentials)
        return hashed.digest()

    def get(self, credentials: bytes) -> Principal | None:
        """Return the principal of credentials that are still valid."""
        found = self._found.get(self.key(credentials))
        return found[0] if found is not None and found[1] > self._now() else None

    def put(self, credentials: bytes, principal: Principal, generation: int, *, seconds: float = _KEEP_S) -> None:
        """Keep credentials for a while.

        Args:
            credentials: what the client has sent.
            principal: whom it names.
            generation: the generation when the check began; if another has begun, nothing is kept.
            seconds: for how long at most.
        """
        if generation != self.generation:
            return
        while len(self._found) >= self._most:
            del self._found[next(iter(self._found))]
        self._found[self.key(credentials)] = principal, self._now() + min(seconds, _KEEP_S)

    def clear(self) -> None:
        """Drop all credentials, because what they were checked against has changed."""
        self._found.clear()
        self.generation += 1
