"""The layer that notes changes in the service's log, and changes, refusals and reads in the audit if there is one."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from strata.registry.access.audit import EVENTS, Audit
from strata.registry.access.principal import ANONYMOUS
from strata.registry.access.request_access import EVERYTHING, UNLIMITED, Access
from strata.registry.access.tried import Tried, tried_by
from strata.registry.errors import RegistryError
from strata.registry.http.access_layer import ACCESS, access_of
from strata.registry.http.asgi import Receive, Scope
from strata.registry.http.reply import Layer, Reply
from strata.registry.http.request_checks import route_of
from strata.registry.logs.changes import change_fields, log_change
from strata.registry.logs.context import REQUEST
from strata.storage.log import Record
from strata.storage.state import State

__all__ = ["ChangeLayer"]

_REFUSED = (401, 403, 429)
_LONGEST = 256


class ChangeLayer:
    """A layer that notes what the layers within refuse and change.

    Args:
        within: the next layer.
        audit: the audit; None if there is none.
    """

    def __init__(self, within: Layer, audit: Audit | None) -> None:
        self._within, self._audit = within, audit

    async def answer(self, scope: Scope, receive: Receive, reply: Reply) -> None:
        """Pass a request on, and note what comes of it.

        Raises:
            RegistryError: any error of the next layer; 50304 if a change could not be noted and is refused for that.
        """
        route = route_of(scope)
        if route is None or (self._audit is None and not route.facts.writes):
            await self._within(scope, receive, reply)
            return
        access = access_of(scope)
        if access is UNLIMITED:  # which all requests share
            client = scope.get("client")
            access = scope[ACCESS] = Access(ANONYMOUS, EVERYTHING, address=client[0] if client else None)
        asked = _asked(scope, route.path, reply)
        access.on_change = partial(self._note, asked, access, reply)
        if self._audit is None:
            await self._within(scope, receive, reply)
            return
        if route.facts.writes:
            self._audit.check()
        try:
            await self._within(scope, receive, reply)
        except RegistryError as error:
            if error.status in _REFUSED:
                signing = access.signing
                tried = Tried(signing.mechanism, signing.name) if signing else None
                tried = tried_by(scope) if access.error is not None else tried
                self._audit.refusal(asked, access, error.status, error.code, tried)
            raise
        if access.signing is not None:
            self._audit.signing(asked, access, access.signing, reply.status)
        elif reply.status in _REFUSED and access.refusal is not None:
            self._audit.refusal(asked, access, reply.status, 40301 if reply.status == 403 else reply.status)
        elif self._audit.reads and not route.facts.writes:
            self._audit.read(asked, access, reply.status)

    def _note(
        self, asked: dict[str, Any], access: Access, reply: Reply, offset: int, records: Sequence[Record], before: State
    ) -> None:
        """Note a change that the log has; nothing may fail here, because its client must learn that it was made."""
        if self._audit is not None:
            self._audit.change(asked, access, offset, records, before)
        event = EVENTS.get((asked["method"], asked["route"]), "change")
        try:
            fields = change_fields(records, offset)
        except Exception:  # noqa: BLE001 - see above
            fields = {"what": "records that cannot be shown", "offset": offset, "records": len(records)}
        reply.change = fields
        log_change(event, asked, access.principal.name, access.address, fields)


def _asked(scope: Scope, route: str, reply: Reply) -> dict[str, Any]:
    headers = dict(scope["headers"])
    asked = {
        "request_id": reply.request_id.decode(),
        "method": scope["method"],
        "path": scope["path"],
        "route": route,
        "user_agent": headers.get(b"user-agent", b"").decode("latin-1")[:_LONGEST],
    }
    origin = REQUEST.get()
    return asked | {"trace_id": origin.trace_id} if origin and origin.trace_id else asked
