"""Access control of one process: who sends a request, and the rules that say what they may do.

Rules come from the auth file and from the log; they add up, denials included. Those of the log are part of the State,
so all nodes agree on them as they agree on schemas.
"""

import logging
import time
from collections.abc import Callable, Iterable, MutableMapping, Sequence

from strata.registry.core import errors
from strata.registry.core.errors import RegistryError
from strata.registry.core.rights.authentication import Authenticator
from strata.registry.core.rights.logged_rules import logged_rules
from strata.registry.core.rights.principal import ANONYMOUS, Principal, RejectedCredentials
from strata.registry.core.rights.request_access import Access, AskedBy
from strata.registry.core.rights.rights import Rights, View
from strata.registry.core.rights.rules import Rule
from strata.registry.features.access.authenticator import certificates_of
from strata.registry.features.access.basic import InvalidPassword, parse_credentials
from strata.registry.http.asgi import Scope
from strata.registry.http.node_signature import HEADER, InvalidSignature, NodeSecret, Signed
from strata.storage.state import State

__all__ = ["AccessControl", "target_of"]

_NOBODY = View(())
_log = logging.getLogger("strata.access")


class AccessControl:
    """Access control of one process.

    Args:
        authenticator: says who sends a request.
        rules: returns the rules of the auth file now in force; the same object until they change.
        superusers: the names (`User:NAME`, `Group:NAME`) of principals that may do everything.
        secret: the secret of the nodes; None if other nodes cannot say who asks.
    """

    def __init__(
        self,
        authenticator: Authenticator,
        rules: Callable[[], Sequence[Rule]] = tuple,
        superusers: Iterable[str] = (),
        secret: NodeSecret | None = None,
    ) -> None:
        self.authenticator, self._rules = authenticator, rules
        self._superusers = frozenset(superusers)
        self.secret = secret
        self._made: tuple[object, object, Rights] | None = None

    def rights(self, state: State) -> Rights:
        """Return the rights of all principals, by the auth file and by the rules of a State."""
        made, rules = self._made, self._rules()
        if made is None or made[0] is not state.acls or made[1] is not rules:
            made = self._made = (state.acls, rules, Rights([*rules, *logged_rules(state)], self._superusers))
        return made[2]

    async def admit(self, scope: MutableMapping[str, object], state: State) -> Access:
        """Return the rights of a request, which another node may have forwarded; never raises.

        Args:
            scope: the ASGI scope of the request.
            state: the State that this node has in memory.
        """
        try:
            if (signed := self._signed(scope)) is not None:
                access = self.passed_on(signed.asked_by, state)
                access.body_digest = signed.digest
                return access
            principal = await self.authenticator.authenticate(scope)
        except RegistryError as error:
            address, rejected = self.authenticator.address(scope) or None, _rejected_credentials(scope)
            return Access(ANONYMOUS, _NOBODY, address=address, error=error, rejected=rejected)
        except Exception:  # noqa: BLE001 - answered as 500 by the layer, and logged here
            _log.exception("a request could not be authenticated", {"event": "login_broken"})
            return Access(ANONYMOUS, _NOBODY, error=errors.internal(), rejected=_rejected_credentials(scope))
        return self.of(principal, self.authenticator.address(scope) or None, state)

    def _signed(self, scope: Scope) -> Signed | None:
        """Return what the signature of another node says; None if there is no good one."""
        if self.secret is None:
            return None
        value = next((value for name, value in scope["headers"] if name == HEADER), None)
        if value is None:
            return None
        try:
            return self.secret.verify(value, scope["method"], target_of(scope), time.time())
        except InvalidSignature as error:
            _log.warning(
                "a forwarded write counts as its sender's own: %(reason)s",
                {"event": "signature_invalid", "reason": str(error)},
            )
            return None

    def passed_on(self, asked_by: AskedBy, state: State) -> Access:
        """Return the rights of a request whose principal another process of ours has found out."""
        user, groups, mechanism, address = asked_by
        return self.of(Principal(user, frozenset(groups), mechanism), address, state)

    def of(self, principal: Principal, address: str | None, state: State) -> Access:
        """Return the rights of a request whose principal is known."""
        view = self.rights(state).view(principal, address)
        return Access(principal, view, address=address, rights=self.rights, challenge=self.authenticator.unauthorized)


def target_of(scope: Scope) -> bytes:
    """Return the raw path and query string of a request."""
    query: bytes = scope["query_string"]
    path: bytes = scope["raw_path"]
    return path + b"?" + query if query else path


def _rejected_credentials(scope: Scope) -> RejectedCredentials:
    """Return the mechanism of rejected credentials, and the user name of Basic ones.

    An unknown scheme, or Basic credentials without a colon, may be a secret, so neither is returned.
    """
    header = next((value for name, value in scope["headers"] if name == b"authorization"), None)
    if header is None:
        return RejectedCredentials("mtls" if certificates_of(scope) else "proxy")
    scheme, _, credentials = header.partition(b" ")
    if scheme.lower() != b"basic":
        return RejectedCredentials("bearer" if scheme.lower() == b"bearer" else "other")
    try:
        return RejectedCredentials("basic", parse_credentials(credentials.strip())[0])
    except InvalidPassword:
        return RejectedCredentials("basic")
