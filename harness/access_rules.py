"""Rules of access in few words, for tests."""

from strata.registry.access.rules import ANYWHERE, Operation, Permission, ResourceType, Rule, parse_resource

__all__ = ["rule"]


def rule(principal: str, operation: str, name: str = "", kind: str = "SUBJECT", permission: str = "ALLOW") -> Rule:
    """Return a rule for a user; a name that ends with a star is a prefix."""
    resource = parse_resource(ResourceType(kind), name)
    return Rule(f"User:{principal}", ANYWHERE, resource, Operation(operation), Permission(permission))
