"""Failed logins: slowed down, then rejected, by address.

Failures fill a bucket that drains slowly. Guessed passwords have two buckets: one of the address and user, and a larger
one of the address. So a client with a wrong password does not keep out the others behind its address: its own bucket
is full long before that of the address. A password counts before it is checked, so that guesses at the same time do
not all get through. IPv6 addresses count by their network of 64 bits, which one host has to itself.
"""

from collections import OrderedDict
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address
from time import monotonic

__all__ = ["Throttle"]

_MOST_OF_USER, _MOST_OF_ADDRESS = 10, 40
_MINUTE_S = 60.0  # in which a full bucket drains
_FREE = 3  # failures that are not slowed down
_FIRST_DELAY_S, _MOST_DELAY_S = 0.1, 1.6
_MOST_BUCKETS = 20_000


class Throttle:
    """The recent failures of all addresses.

    Args:
        now: the clock, in seconds.
        most_buckets: how many buckets to keep; those that changed longest ago are dropped first.
    """

    def __init__(self, now: Callable[[], float] = monotonic, *, most_buckets: int = _MOST_BUCKETS) -> None:
        self._now, self._most = now, most_buckets
        # By a hash, because user names come from the client: the level, and when it was that.
        self._levels: OrderedDict[int, tuple[float, float]] = OrderedDict()

    def __len__(self) -> int:
        """Return the number of buckets."""
        return len(self._levels)

    def begin(self, address: str, user: str) -> float:
        """Count a password that is about to be checked, unless its client must wait.

        Returns:
            For how long the client must wait, in seconds; 0 if the password may be checked.
        """
        own, shared = _key(address, user), _key(address)
        wait_s = max(self._excess_s(own, _MOST_OF_USER), self._excess_s(shared, _MOST_OF_ADDRESS))
        if not wait_s:
            self._add(own, _MOST_OF_USER, 1)
            self._add(shared, _MOST_OF_ADDRESS, 1)
        return wait_s

    def succeed(self, address: str, user: str) -> None:
        """Take back what `begin` counted."""
        self._add(_key(address, user), _MOST_OF_USER, -1)
        self._add(_key(address), _MOST_OF_ADDRESS, -1)

    def delay_s(self, address: str, user: str) -> float:
        """Return for how long to delay the answer to a wrong password, which `begin` has counted, in seconds."""
        return _delay_s(self._level(_key(address, user), _MOST_OF_USER))

    def fail_token(self, address: str) -> tuple[float, float]:
        """Count an invalid token.

        Returns:
            For how long the client must wait if it sends too many, and for how long to delay the answer, in seconds.
        """
        key = _key(address, "")
        wait_s = self._excess_s(key, _MOST_OF_USER)
        if wait_s:
            return wait_s, 0.0
        self._add(key, _MOST_OF_USER, 1)
        return 0.0, _delay_s(self._level(key, _MOST_OF_USER))

    def _level(self, key: int, most: int) -> float:
        level, at = self._levels.get(key, (0.0, 0.0))
        return max(0.0, level - (self._now() - at) * most / _MINUTE_S)

    def _excess_s(self, key: int, most: int) -> float:
        """Return the time until a bucket has room for one more failure."""
        return max(0.0, self._level(key, most) - (most - 1)) * _MINUTE_S / most

    def _add(self, key: int, most: int, count: int) -> None:
        level = min(max(0.0, self._level(key, most) + count), most)
        self._levels[key] = level, self._now()
        self._levels.move_to_end(key)
        while len(self._levels) > self._most:
            self._levels.popitem(last=False)


def _delay_s(failures: float) -> float:
    over = round(failures) - _FREE
    return 0.0 if over <= 0 else min(_FIRST_DELAY_S * 2 ** (over - 1), _MOST_DELAY_S)


def _key(address: str, user: str | None = None) -> int:
    return hash((_network(address), user))


def _network(address: str) -> str:
    try:
        found = ip_address(address)
    except ValueError:
        return address
    if not isinstance(found, IPv6Address):
        return address
    return str(found.ipv4_mapped or IPv6Address(int(found) >> 64 << 64))
