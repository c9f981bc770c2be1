"""A limit on the requests of each client: a token bucket for each user, and for each address without a user."""

from collections.abc import Hashable

__all__ = ["RateLimit"]

_BURST_S = 2.0
_MOST_CLIENTS = 100_000


class RateLimit:
    """The rates of all clients of one process.

    Args:
        per_second: the requests that a client may send per second; twice as many at once.
    """

    def __init__(self, per_second: float) -> None:
        self._rate, self._most = per_second, max(1.0, per_second * _BURST_S)
        self._buckets: dict[Hashable, tuple[float, float]] = {}

    def wait_s(self, client: Hashable, now: float) -> float:
        """Count a request, and return how long the client must wait before it: 0 if it may be answered.

        Args:
            client: who sends it.
            now: the time, in seconds.
        """
        left, at = self._buckets.get(client, (self._most, now))
        left = min(self._most, left + (now - at) * self._rate)
        if left < 1.0:
            return (1.0 - left) / self._rate
        if len(self._buckets) >= _MOST_CLIENTS and client not in self._buckets:
            self._forget(now)
        self._buckets[client] = (left - 1.0, now)
        return 0.0

    def _forget(self, now: float) -> None:
        """Drop the buckets that are full again, or all if none is."""
        busy = {
            client: (left, at)
            for client, (left, at) in self._buckets.items()
            if left + (now - at) * self._rate < self._most
        }
        self._buckets = busy if len(busy) < _MOST_CLIENTS else {}
