"""A model of rights that asks every rule in turn, as the documents say it, for comparison with the compiled ones."""

import ipaddress
from collections.abc import Iterable

from strata.registry.core.rights.principal import Principal
from strata.registry.core.rights.rules import Operation, Resource, Rule

__all__ = ["decision", "model"]

INCLUDES = {
    "READ": {"READ", "DESCRIBE"},
    "WRITE": {"WRITE", "DESCRIBE"},
    "DELETE": {"DELETE", "DESCRIBE"},
    "DESCRIBE": {"DESCRIBE"},
    "DESCRIBE_CONFIGS": {"DESCRIBE_CONFIGS"},
    "ALTER_CONFIGS": {"ALTER_CONFIGS", "DESCRIBE_CONFIGS"},
    "ALTER": {"ALTER", "DESCRIBE"},
    "ALL": {operation.value for operation in Operation},
}


def model(
    rules: Iterable[Rule],
    superusers: Iterable[str],
    principal: Principal,
    operation: str,
    kind: str,
    name: str,
    host: str | None,
) -> bool:
    """Return whether a principal may do something."""
    return decision(rules, superusers, principal, operation, kind, name, host) is True


def decision(
    rules: Iterable[Rule],
    superusers: Iterable[str],
    principal: Principal,
    operation: str,
    kind: str,
    name: str,
    host: str | None,
) -> bool | None:
    """Return whether a principal may do something, by the words of the guide, one rule after the other.

    Returns:
        True or False as a rule says; None if no rule says anything.
    """
    own = {"Anonymous"} if principal.user is None else {f"User:{principal.user}"}
    own |= {f"Group:{group}" for group in principal.groups}
    if own & set(superusers):
        return True
    allowed = None
    for rule in rules:
        denies = rule.permission == "DENY"
        if rule.principal not in own and not (rule.principal == "User:*" and (denies or principal.user is not None)):
            continue
        if rule.host != "*":
            if host is None:
                if not denies:
                    continue
            elif ipaddress.ip_address(host) not in ipaddress.ip_network(rule.host):
                continue
        if rule.resource.type != kind or not names(rule.resource, kind, name):
            continue
        if denies and rule.operation in (operation, "ALL"):
            return False
        if not denies and operation in INCLUDES[rule.operation]:
            allowed = True
    return allowed


def names(resource: Resource, kind: str, name: str) -> bool:
    """Return whether a resource of a rule names another."""
    given = resource.name
    if resource.pattern == "LITERAL" and given in ("*", name):
        return True
    if kind == "SUBJECT":
        given, name = (text if text.startswith(":.") else ":.:" + text for text in (given, name))
    return resource.pattern == "PREFIXED" and name.startswith(given)
