"""Roles: names for sets of rules. A role is a macro: what is stored and decided by are its rules.

The names of other registries are aliases, so that lists of their grants can be carried over.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from strata.registry.core.rights.rules import (
    ALL_NAMES,
    ANYWHERE,
    Operation,
    Resource,
    ResourceType,
    Rule,
    RuleError,
    parse_resource,
    parse_rule,
)

__all__ = ["ALIASES", "ROLES", "expand_role"]

_READ, _WRITE, _DELETE = Operation.READ, Operation.WRITE, Operation.DELETE
_DESCRIBE, _DESCRIBE_CONFIGS = Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS
_ALTER_CONFIGS, _ALL = Operation.ALTER_CONFIGS, Operation.ALL


@dataclass(frozen=True, slots=True)
class _Role:
    """A role.

    Attributes:
        subjects: its operations on the subjects for which it is given.
        whole: its rules on the registry as a whole; a role that has them is given for all subjects.
    """

    subjects: tuple[Operation, ...] = ()
    whole: tuple[tuple[ResourceType, Operation], ...] = ()


ROLES: Mapping[str, _Role] = MappingProxyType(
    {
        "consumer": _Role((_READ, _DESCRIBE_CONFIGS)),
        "producer": _Role((_READ, _WRITE, _DESCRIBE_CONFIGS)),
        "owner": _Role((_READ, _WRITE, _DELETE, _ALTER_CONFIGS)),
        "viewer": _Role((_READ, _DESCRIBE_CONFIGS), ((ResourceType.REGISTRY, _DESCRIBE_CONFIGS),)),
        "admin": _Role(
            (_ALL,), ((ResourceType.REGISTRY, _ALL), (ResourceType.KEK, _ALL), (ResourceType.CLUSTER, _ALL))
        ),
        "DeveloperManage": _Role((_DELETE, _ALTER_CONFIGS)),
        "SUBJECT_READ": _Role((_READ,)),
        "SUBJECT_WRITE": _Role((_WRITE,)),
        "SUBJECT_DELETE": _Role((_DELETE,)),
        "SUBJECT_COMPATIBILITY_READ": _Role((_DESCRIBE_CONFIGS,)),
        "SUBJECT_COMPATIBILITY_WRITE": _Role((_ALTER_CONFIGS,)),
        "GLOBAL_COMPATIBILITY_READ": _Role((), ((ResourceType.REGISTRY, _DESCRIBE_CONFIGS),)),
        "GLOBAL_COMPATIBILITY_WRITE": _Role((), ((ResourceType.REGISTRY, _ALTER_CONFIGS),)),
        "GLOBAL_READ": _Role((), ((ResourceType.SUBJECT, _DESCRIBE),)),
    }
)
"""What each role stands for. The names in capitals are those of Confluent's `sr-acl-cli --list`."""

ALIASES: Mapping[str, str] = MappingProxyType(
    {
        "DeveloperRead": "consumer",
        "DeveloperWrite": "producer",
        "ResourceOwner": "owner",
        "ClusterAdmin": "admin",
        "SystemAdmin": "admin",
        "GLOBAL_SUBJECTS_READ": "GLOBAL_READ",
    }
)
"""The names that Confluent's role-based access control has for these roles."""


def expand_role(role: str, principal: str, on: str | None = None) -> tuple[Rule, ...]:
    """Return the rules of a role.

    Args:
        role: the name of the role, or an alias.
        principal: who gets it: `User:NAME`, `User:*`, `Group:NAME` or `Anonymous`.
        on: the subject, `PREFIX*` or `*` for which the role is given; None for a role on the registry as a whole.

    Raises:
        RuleError: if there is no such role, the principal or the name is invalid, or the role needs `on`, or none.
    """
    name = ALIASES.get(role, role)
    meant = ROLES.get(name)
    if meant is None:
        raise RuleError(f"unknown role {role!r}; expected one of {', '.join((*ROLES, *ALIASES))}")
    if meant.whole and on not in (None, ALL_NAMES):
        raise RuleError(f"the role {role} is for the registry as a whole, and cannot be given on {on!r}")
    if not meant.whole and not on:
        raise RuleError(f"the role {role} needs subjects: expected a name, PREFIX*, or * for all")
    subjects = parse_resource(ResourceType.SUBJECT, on or ALL_NAMES)
    granted = [(subjects, operation) for operation in meant.subjects]
    granted += [(_all_of(resource_type), operation) for resource_type, operation in meant.whole]
    checked = parse_rule({"principal": principal, "resource_type": "REGISTRY", "operation": "ALL"}).principal
    return tuple(Rule(checked, ANYWHERE, resource, operation) for resource, operation in granted)


def _all_of(resource_type: ResourceType) -> Resource:
    return parse_resource(resource_type, ALL_NAMES)
