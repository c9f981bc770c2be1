"""Who asks, and whether that client has asked too often: before anything else is done for a request."""

from collections.abc import Callable
from typing import Protocol

from strata.registry.core.errors import TooManyRequests
from strata.registry.http.asgi import Scope
from strata.registry.http.exchange import Exchange
from strata.registry.http.route_facts import PROBES
from strata.registry.http.service import Control
from strata.storage.state import State

__all__ = ["Admission", "Rate"]

_PROBES = PROBES.encode()


class Rate(Protocol):
    """Limits on the requests of each client."""

    def wait_s(self, user: str | None, address: str) -> float:
        """Count a request, and return how long its client must wait before it, in seconds."""


class Admission:
    """What finds out who asks, and limits how often.

    Args:
        control: access control; None if it is off.
        rate: the limits on the requests of each client; None if there are none.
        state: returns the State in memory, which holds rules of access.
        address: returns the address of a client.
    """

    def __init__(
        self,
        control: Control | None,
        rate: Rate | None,
        state: Callable[[], State],
        address: Callable[[Scope], str],
    ) -> None:
        self._control, self._rate, self._state, self._address = control, rate, state, address

    async def admit(self, exchange: Exchange) -> None:
        """Find out what the client of a request may do.

        Raises:
            TooManyRequests: if the client has asked too often.
        """
        if self._control is not None:
            exchange.access = await self._control.admit(exchange.scope, self._state())
        if self._rate is not None and (wait_s := self._wait_s(exchange, self._rate)):
            raise TooManyRequests("Too many requests; try again later", wait_s, "request_rate")

    def _wait_s(self, exchange: Exchange, rate: Rate) -> float:
        """Count a request, and return how long its client must wait, in seconds.

        Not counted are probes, the requests of superusers, so that they can always act, and what another node has
        forwarded, because it has counted that.
        """
        access, scope = exchange.access, exchange.scope
        user = access.principal.user
        is_free = (user is not None and access.is_unlimited) or access.body_digest is not None
        if is_free or scope["raw_path"].startswith(_PROBES):
            return 0.0
        return rate.wait_s(user, access.address or self._address(scope))
