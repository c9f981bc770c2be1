"""Rules of access in few words, and an authenticator that believes its clients, for tests."""

from collections.abc import MutableMapping
from typing import Any

from strata.registry.core.errors import Unauthorized
from strata.registry.core.rights.principal import ANONYMOUS, Principal
from strata.registry.core.rights.rules import ANYWHERE, Operation, Permission, ResourceType, Rule, parse_resource

__all__ = ["Claimed", "rule"]


def rule(principal: str, operation: str, name: str = "", kind: str = "SUBJECT", permission: str = "ALLOW") -> Rule:
    """Return a rule for a user; a name that ends with a star is a prefix."""
    resource = parse_resource(ResourceType(kind), name)
    return Rule(f"User:{principal}", ANYWHERE, resource, Operation(operation), Permission(permission))


class Claimed:
    """An authenticator that believes what the header `x-user: NAME,GROUP,…` says."""

    async def authenticate(self, scope: MutableMapping[str, Any]) -> Principal:
        """Return the claimed principal."""
        claim = dict(scope["headers"]).get(b"x-user", b"").decode()
        if claim == "wrong":
            raise self.unauthorized()
        name, *groups = claim.split(",")
        return Principal(name, frozenset(groups), "basic") if name else ANONYMOUS

    def address(self, scope: MutableMapping[str, Any]) -> str:
        """Return the address of the client."""
        address: str = scope["client"][0]
        return address

    def unauthorized(self) -> Unauthorized:
        """Return the error for anonymous clients."""
        return Unauthorized(['Basic realm="test"', 'Bearer realm="test"'])
