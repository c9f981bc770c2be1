"""Credentials that were valid a moment ago, so that a password is not hashed for each request.

Use extends the time for which they are kept: all are forgotten when what they were checked against changes, and a token
or certificate has an end of its own.

They are kept under a hash with a key that the process has drawn: neither the memory of the process nor the time of a
look-up says what they are.
"""

import math
import secrets
import time
from collections.abc import Callable
from hashlib import blake2b

from strata.registry.core.rights.principal import Principal

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
        # The principal, until when it is kept without use, and until when at most.
        self._found: dict[bytes, tuple[Principal, float, float]] = {}
        self.generation = 0

    def key(self, credentials: bytes) -> bytes:
        """Return the hash under which credentials are kept."""
        hashed = self._keyed.copy()  # half the time of a new one
        hashed.update(credentials)
        return hashed.digest()

    def get(self, credentials: bytes) -> Principal | None:
        """Return the principal of credentials that are still valid."""
        key = self.key(credentials)
        found = self._found.get(key)
        if found is None:
            return None
        principal, until, end = found
        now = self._now()
        if until <= now:
            return None
        if until - now < _KEEP_S / 2 and until < end:
            # In its new place it is among the last to be dropped.
            del self._found[key]
            self._found[key] = principal, min(now + _KEEP_S, end), end
        return principal

    def put(self, credentials: bytes, principal: Principal, generation: int, *, seconds: float = math.inf) -> None:
        """Keep credentials for five minutes, and longer if they are used.

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
        now = self._now()
        self._found[self.key(credentials)] = principal, now + min(seconds, _KEEP_S), now + seconds

    def clear(self) -> None:
        """Drop all credentials, because what they were checked against has changed."""
        self._found.clear()
        self.generation += 1
