"""Rules of access as the log holds them."""

import logging
from collections.abc import Iterator
from dataclasses import replace

from strata.registry.core.rights.rules import FIELDS, IN_LOG, Operation, Permission, Rule, RuleError, parse_rule
from strata.storage.records import AclKey
from strata.storage.state import State

__all__ = ["key_of_rule", "logged_rules", "rule_of_key"]

_log = logging.getLogger("strata.access")


def logged_rules(state: State) -> Iterator[Rule]:
    """Yield the rules of a State, for rights."""
    for key in state.acls:
        yield from (replace(rule, source=IN_LOG) for rule in rules_of_key(key))


def key_of_rule(rule: Rule) -> AclKey:
    """Return the key of a rule in the log."""
    resource = rule.resource
    return AclKey(
        principal=rule.principal,
        host=rule.host,
        resource_type=resource.type.value,
        resource=resource.name,
        pattern_type=resource.pattern.value,
        operation=rule.operation.value,
        permission=rule.permission.value,
    )


def rule_of_key(key: AclKey) -> Rule:
    """Return the rule of a key in the log.

    Raises:
        RuleError: if this release does not know such a rule.
    """
    return parse_rule({name: getattr(key, name) for name in FIELDS})


def rules_of_key(key: AclKey) -> list[Rule]:
    """Return the rule of a key in the log, for rights.

    Of a rule that this release does not know, such as one that a later release has written, a permission permits
    nothing, and a denial denies its principal everything.
    """
    try:
        return [rule_of_key(key)]
    except RuleError as error:
        _log.error(
            "the log holds a rule of access that cannot be read: %(reason)s",
            {"event": "rule_unreadable", "reason": str(error)},
        )
    if key.permission == Permission.ALLOW.value:
        return []
    whole = {"operation": Operation.ALL.value, "permission": Permission.DENY.value, "principal": key.principal}
    kinds = [("SUBJECT", "*"), ("KEK", "*"), ("REGISTRY", ""), ("CLUSTER", "")]
    try:
        return [
            parse_rule({**whole, "resource_type": resource_type, "resource": name}) for resource_type, name in kinds
        ]
    except RuleError:
        return []
