"""Failed logins: slowed down, then rejected, by address.

Failures fill a bucket that drains slowly. Guessed passwords have two buckets: one of the address and user, and a larger
one of the address. So a client with a wrong password does not keep out the others behind its address: its own bucket
is full long before that of the address. A password counts before it is checked, so that guesses at the same time do
not all get through. IPv6 addresses count by their network of 64 bits, which one host has to itself.

A third bucket bounds the guesses for one user from all addresses together. It does not count where the user has logged
in lately, so an attacker cannot keep users out of the places that they use.
"""

from strata.registry.features.access.proxy import network_of
from strata.registry.node.buckets import Buckets

__all__ = ["Throttle"]

_MOST_OF_USER, _MOST_OF_ADDRESS, _MOST_ANYWHERE = 10, 40, 120
_US = 1_000_000
_MINUTE = 60 * _US  # in which a full bucket drains
_LATELY = 7 * 24 * 60 * _MINUTE
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
        counted: list[tuple[int, int]] = []
        for key, most in self._counted(address, user, is_known=self.knows(address, user)):
            if wait_s := self._count(key, most):
                for other, limit in counted:
                    self._count(other, limit, -1)
                return wait_s
            counted.append((key, most))
        return 0.0

    def succeed(self, address: str, user: str) -> None:
        """Take back what `begin` counted, and remember that the user logs in from the address."""
        for key, most in self._counted(address, user, is_known=self.knows(address, user)):
            self._count(key, most, -1)
        known = _key(address, user, "known")
        self._buckets.pour(known, _LATELY - self._buckets.level_us(known), _LATELY)

    def knows(self, address: str, user: str) -> bool:
        """Return whether a user has logged in from an address during the last week."""
        return self._buckets.level_us(_key(address, user, "known")) > 0

    @staticmethod
    def _counted(address: str, user: str, *, is_known: bool) -> tuple[tuple[int, int], ...]:
        """Return the buckets in which a password of a user counts, each with the most that it holds."""
        own = (_key(address, user), _MOST_OF_USER), (_key(address), _MOST_OF_ADDRESS)
        return own if is_known else (*own, (_key("", user, "anywhere"), _MOST_ANYWHERE))

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


def _key(address: str, user: str | None = None, what: str = "login") -> int:
    return hash((what, network_of(address), user))
