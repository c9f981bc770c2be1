"""Failed logins: slowed down, then rejected, by address.

Failures fill a bucket that drains slowly. Guessed passwords have two buckets: one of the address and user, and a larger
one of the address. So a client with a wrong password does not keep out the others behind its address: its own bucket
is full long before that of the address. A password counts before it is checked, so that guesses at the same time do
not all get through. IPv6 addresses count by their network of 64 bits, which one host has to itself.
"""

from strata.registry.access.proxy import network_of
from strata.registry.workers.buckets import Buckets

__all__ = ["Throttle"]

_MOST_OF_USER, _MOST_OF_ADDRESS = 10, 40
_US = 1_000_000
_MINUTE = 60 * _US  # in which a full bucket drains
_FREE = 3  # failures that are not slowed down
_FIRST_DELAY_S, _MOST_DELAY_S = 0.1, 1.6


class Throttle:
    """The recent failures of all addresses.

    Args:
        buckets: where failures are counted.
    """

    def __init__(self, buckets: Buckets) -> None:
        self._buckets = buckets

    def begin(self, address: str, user: str) -> float:
        """Count a password that is about to be checked, unless its client must wait.

        Returns:
            For how long the client must wait, in seconds; 0 if the password may be checked.
        """
        own = _key(address, user)
        if wait_s := self._count(own, _MOST_OF_USER):
            return wait_s
        if wait_s := self._count(_key(address), _MOST_OF_ADDRESS):
            self._count(own, _MOST_OF_USER, -1)
        return wait_s

    def succeed(self, address: str, user: str) -> None:
        """Take back what `begin` counted."""
        self._count(_key(address, user), _MOST_OF_USER, -1)
        self._count(_key(address), _MOST_OF_ADDRESS, -1)

    def delay_s(self, address: str, user: str) -> float:
        """Return for how long to delay the answer to a wrong password, which `begin` has counted, in seconds."""
        return self._delay_s(_key(address, user))

    def fail_token(self, address: str) -> tuple[float, float]:
        """Count an invalid token.

        Returns:
            For how long the client must wait if it sends too many, and for how long to delay the answer, in seconds.
        """
        key = _key(address, "")
        wait_s = self._count(key, _MOST_OF_USER)
        return (wait_s, 0.0) if wait_s else (0.0, self._delay_s(key))

    def _count(self, key: int, most: int, count: int = 1) -> float:
        """Count a failure, and return 0; or return the time until the bucket has room for one more, in seconds."""
        return self._buckets.pour(key, count * (_MINUTE // most), _MINUTE) / _US

    def _delay_s(self, key: int) -> float:
        failures = self._buckets.level_us(key) * _MOST_OF_USER / _MINUTE
        over = round(failures) - _FREE
        return 0.0 if over <= 0 else min(_FIRST_DELAY_S * 2 ** (over - 1), _MOST_DELAY_S)


def _key(address: str, user: str | None = None) -> int:
    return hash(("login", network_of(address), user))
