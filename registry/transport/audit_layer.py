"""The layer that notes changes and refusals in the audit; it is left out while there is no audit."""

from typing import Any

from strata.registry.access.audit import Audit
from strata.registry.access.principal import ANONYMOUS
from strata.registry.access.request_access import EVERYTHING, UNLIMITED, Access
from strata.registry.errors import RegistryError
from strata.registry.transport.access_layer import ACCESS, access_of
from strata.registry.transport.asgi import Receive, Scope
from strata.registry.transport.reply import Layer, Reply
from strata.registry.transport.request_checks import route_of

__all__ = ["AuditLayer"]

_REFUSED = (401, 403, 429)
_LONGEST = 256


class AuditLayer:
    """A layer that notes what the layers within refuse and change.

    Args:
        within: the next layer.
        audit: the audit.
    """

    def __init__(self, within: Layer, audit: Audit) -> None:
        self._within, self._audit = within, audit

    async def answer(self, scope: Scope, receive: Receive, reply: Reply) -> None:
        """Pass a request on, and note what comes of it.

        Raises:
            RegistryError: any error of the next layer; 50304 if a change could not be noted and is refused for that.
        """
        route = route_of(scope)
        if route is None:
            await self._within(scope, receive, reply)
            return
        access = access_of(scope)
        if access is UNLIMITED:  # which all requests share
            client = scope.get("client")
            access = scope[ACCESS] = Access(ANONYMOUS, EVERYTHING, address=client[0] if client else None)
        asked = _asked(scope, route.path, reply)
        access.on_change = lambda offset, records: self._audit.change(asked, access, offset, records)
        if route.facts.writes:
            self._audit.check()
        try:
            await self._within(scope, receive, reply)
        except RegistryError as error:
            if error.status in _REFUSED:
                self._audit.refusal(asked, access, error.status, error.code)
            raise
        if reply.status in _REFUSED and access.refusal is not None:
            self._audit.refusal(asked, access, reply.status, 40301 if reply.status == 403 else reply.status)
        elif self._audit.reads and not route.facts.writes:
            self._audit.read(asked, access, reply.status)


def _asked(scope: Scope, route: str, reply: Reply) -> dict[str, Any]:
    headers = dict(scope["headers"])
    return {
        "request_id": reply.request_id.decode(),
        "method": scope["method"],
        "path": scope["path"],
        "route": route,
        "user_agent": headers.get(b"user-agent", b"").decode("latin-1")[:_LONGEST],
    }
