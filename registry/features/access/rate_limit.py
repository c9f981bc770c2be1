"""Limits on the requests of each user and of each address, for the node as a whole."""

from strata.registry.features.access.proxy import network_of
from strata.registry.node.buckets import Buckets

__all__ = ["RateLimit"]

_US = 1_000_000


class RateLimit:
    """The rates of all clients.

    Args:
        buckets: where requests are counted.
        per_user: requests per second of each user, and of each address without a user; None for no limit.
        per_address: requests per second of each address, all its users together; None for no limit.
        burst_s: how many seconds' worth of requests may come at once, but always one.
    """

    def __init__(
        self, buckets: Buckets, *, per_user: float | None, per_address: float | None, burst_s: float = 2.0
    ) -> None:
        self._buckets, self._burst = buckets, round(burst_s * _US)
        self._user = round(_US / per_user) if per_user else 0
        self._address = round(_US / per_address) if per_address else 0

    def wait_s(self, user: str | None, address: str) -> float:
        """Count a request, and return how long its client must wait before it, in seconds: 0 if it may be answered.

        Args:
            user: the name of the user; None for an anonymous client.
            address: the address of the client.
        """
        network = network_of(address)
        if self._address and (wait := self._pour(hash(("address", network)), self._address)):
            return wait / _US
        if self._user:
            return self._pour(hash(("rate", network if user is None else user, user is None)), self._user) / _US
        return 0.0

    def _pour(self, client: int, amount: int) -> int:
        return self._buckets.pour(client, amount, max(amount, self._burst))
