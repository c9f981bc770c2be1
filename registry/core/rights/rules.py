"""Rules: who may do what, or may not. One rule is what Kafka calls an ACL, with the same fields.

Rules come from the auth file and from the log, as JSON objects with the seven fields of Redpanda's `/security/acls`.
`rights.py` decides by them.
"""

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

from strata.storage.records import DEFAULT_CONTEXT, qualified

__all__ = [
    "ALL_NAMES",
    "ANYWHERE",
    "EVERY_USER",
    "FIELDS",
    "IN_FILE",
    "IN_LOG",
    "Operation",
    "Pattern",
    "Permission",
    "Resource",
    "ResourceType",
    "Rule",
    "RuleError",
    "parse_filter",
    "parse_new_rule",
    "parse_resource",
    "parse_rule",
    "rule_json",
]

ALL_NAMES = "*"
"""The literal name that matches every subject, or every KEK."""

ANYWHERE = "*"
"""The host of a rule that holds for every address."""

EVERY_USER = "User:*"
"""Every authenticated user. A denial also holds for `Anonymous`: else leaving out credentials would help."""

IN_FILE, IN_LOG = "file", "log"
"""Where rules are kept."""

_ANONYMOUS = "Anonymous"
_DEFAULT_PREFIX = f":{DEFAULT_CONTEXT}:"
_MOST_CHARACTERS = 1024
_E = TypeVar("_E", bound=StrEnum)


class RuleError(ValueError):
    """A rule that cannot be used; the message says which field, why, and what is expected."""


class ResourceType(StrEnum):
    """What a rule is about.

    The registry is its global configuration and mode and its contexts; the cluster is the log and the rules in it.
    Neither has a name.
    """

    SUBJECT = "SUBJECT"
    REGISTRY = "REGISTRY"
    KEK = "KEK"
    CLUSTER = "CLUSTER"


class Pattern(StrEnum):
    """How the name of a rule's resource is compared."""

    LITERAL = "LITERAL"
    PREFIXED = "PREFIXED"


class Operation(StrEnum):
    """What a rule allows or denies; `rights.py` says which operation includes which."""

    READ = "READ"
    WRITE = "WRITE"
    DELETE = "DELETE"
    DESCRIBE = "DESCRIBE"
    DESCRIBE_CONFIGS = "DESCRIBE_CONFIGS"
    ALTER_CONFIGS = "ALTER_CONFIGS"
    ALTER = "ALTER"
    ALL = "ALL"


class Permission(StrEnum):
    """Whether a rule allows or denies."""

    ALLOW = "ALLOW"
    DENY = "DENY"


@dataclass(frozen=True, slots=True, order=True)
class Resource:
    """What a rule is about: a type and, for a subject or KEK, a name or the beginning of names.

    The name of a subject is qualified: `orders-value` belongs to the default context, `:.billing:orders-value` to the
    context `.billing`. The prefix `:.billing:` is that whole context, and `:.:` the default context.
    """

    type: ResourceType
    name: str = ""
    pattern: Pattern = Pattern.LITERAL

    def __str__(self) -> str:
        """Return the resource as it is written on the command line, such as `subject orders-*`."""
        star = "*" if self.pattern is Pattern.PREFIXED else ""
        return f"{self.type.value.lower()} {self.name}{star}".rstrip()


@dataclass(frozen=True, slots=True, order=True)
class Rule:
    """A permission or a denial.

    Attributes:
        principal: `User:NAME`, `User:*` (every user), `Group:NAME` or `Anonymous`.
        host: the address of the client, a network such as `10.0.0.0/8`, or `*`.
        resource: what it is about.
        operation: what is allowed or denied.
        permission: which of both.
        source: where it is kept: `file` or `log`; rules that say the same are equal wherever they are kept.
    """

    principal: str
    host: str
    resource: Resource
    operation: Operation
    permission: Permission = Permission.ALLOW
    source: str = field(default=IN_FILE, compare=False)

    def __str__(self) -> str:
        """Return the rule as a sentence for messages and audit lines."""
        verb = "may" if self.permission is Permission.ALLOW else "may not"
        place = "" if self.host == ANYWHERE else f" from {self.host}"
        return f"{self.principal} {verb} {self.operation} {self.resource}{place}"


FIELDS = ("principal", "resource", "resource_type", "pattern_type", "host", "operation", "permission")
"""The fields of a rule as JSON."""

_DEFAULTS = {"resource": "", "pattern_type": Pattern.LITERAL, "host": ANYWHERE, "permission": Permission.ALLOW}
_WORDS: Mapping[str, type[StrEnum]] = {
    "resource_type": ResourceType,
    "pattern_type": Pattern,
    "operation": Operation,
    "permission": Permission,
}
_NAMED = (ResourceType.SUBJECT, ResourceType.KEK)
_OPERATIONS = {
    ResourceType.SUBJECT: frozenset(Operation) - {Operation.ALTER},
    ResourceType.REGISTRY: frozenset(Operation) - {Operation.ALTER},
    ResourceType.KEK: frozenset(Operation) - {Operation.ALTER},
    ResourceType.CLUSTER: frozenset({Operation.DESCRIBE, Operation.ALTER, Operation.ALL}),
}


def parse_rule(content: object) -> Rule:
    """Return the rule of a JSON object.

    Args:
        content: an object with `principal`, `resource_type`, `operation` and, for a subject or KEK, `resource`. By
            default `pattern_type` is LITERAL, `host` is `*` and `permission` is ALLOW. Upper and lower case of these
            words are the same.

    Raises:
        RuleError: if it is not a rule.
    """
    if not isinstance(content, Mapping):
        raise RuleError(f"expected an object with the fields {', '.join(FIELDS)}, got {type(content).__name__}")
    if unknown := sorted(str(name) for name in content if name not in FIELDS):
        raise RuleError(f"unknown field {unknown[0]!r}; expected {', '.join(FIELDS)}")
    fields = {name: _text(content, name) for name in FIELDS}
    resource_type = _member(ResourceType, fields, "resource_type")
    operation = _member(Operation, fields, "operation")
    if operation not in _OPERATIONS[resource_type]:
        expected = ", ".join(sorted(_OPERATIONS[resource_type]))
        raise RuleError(f"operation {operation} does not exist for a {resource_type}; expected one of {expected}")
    return Rule(
        principal=_principal(fields["principal"]),
        host=_host(fields["host"]),
        resource=_resource(resource_type, fields["resource"], _member(Pattern, fields, "pattern_type")),
        operation=operation,
        permission=_member(Permission, fields, "permission"),
    )


def parse_new_rule(content: object) -> Rule:
    """Return the rule of a JSON object that a user wrote; the log may hold others.

    Args:
        content: as for `parse_rule`.

    Raises:
        RuleError: if it is not a rule, or its name ends in a star as if it were a pattern: a denial would deny nothing.
    """
    rule = parse_rule(content)
    name = rule.resource.name
    if name.endswith("*") and name != ALL_NAMES:
        raise RuleError(
            f"resource is {name!r}; for all names that begin with {name.rstrip('*')!r}, expected pattern_type PREFIXED "
            "and no star"
        )
    return rule


def parse_filter(content: Mapping[str, object]) -> dict[str, str]:
    """Return the fields of a JSON object, of any number, that a rule must have, as `rule_json` writes them.

    Raises:
        RuleError: if no rule could have them: to find nothing would look as if there were no such rule.
    """
    fields = {str(name): value for name, value in content.items()}
    if unknown := sorted(name for name in fields if name not in FIELDS):
        raise RuleError(f"unknown field {unknown[0]!r}; expected {', '.join(FIELDS)}")
    members = {name: _text(fields, name) for name in fields}
    for name, words in _WORDS.items():
        if name in members:
            members[name] = _member(words, members, name).value
    for name, check in (("principal", _principal), ("host", _host)):
        if name in members:
            members[name] = check(members[name])
    if "resource" in members and members["resource"] != _DEFAULT_PREFIX:
        members["resource"] = members["resource"].removeprefix(_DEFAULT_PREFIX)
    return members


def parse_resource(resource_type: ResourceType, text: str = "") -> Resource:
    """Return the resource that a text names: `NAME`, `PREFIX*`, or `*` for every name.

    Args:
        resource_type: the type of the resource.
        text: the name or prefix; empty for the registry and the cluster.

    Raises:
        RuleError: if the name does not fit the type.
    """
    if text.endswith("*") and text != ALL_NAMES:
        return _resource(resource_type, text[:-1], Pattern.PREFIXED)
    return _resource(resource_type, text, Pattern.LITERAL)


def rule_json(rule: Rule) -> dict[str, str]:
    """Return a rule as a JSON object with all its fields, which `parse_rule` reads."""
    return {
        "principal": rule.principal,
        "resource": rule.resource.name,
        "resource_type": rule.resource.type.value,
        "pattern_type": rule.resource.pattern.value,
        "host": rule.host,
        "operation": rule.operation.value,
        "permission": rule.permission.value,
    }


def _text(content: Mapping[str, object], name: str) -> str:
    value = content.get(name, _DEFAULTS.get(name))
    if value is None:
        raise RuleError(f"{name} is missing")
    if not isinstance(value, str):
        raise RuleError(f"{name}: expected text, got {type(value).__name__}")
    if len(value) > _MOST_CHARACTERS or not value.isprintable():
        raise RuleError(f"{name}: expected at most {_MOST_CHARACTERS} printable characters")
    return value


def _member(words: type[_E], fields: Mapping[str, str], name: str) -> _E:
    try:
        return words(fields[name].upper())
    except ValueError:
        raise RuleError(f"{name} is {fields[name]!r}; expected one of {', '.join(words)}") from None


def _principal(text: str) -> str:
    resource_type, _, name = text.partition(":")
    if text == _ANONYMOUS or (resource_type in ("User", "Group") and name and name == name.strip()):
        return text
    raise RuleError(f"principal is {text!r}; expected User:NAME, User:*, Group:NAME or {_ANONYMOUS}")


def _host(text: str) -> str:
    if text == ANYWHERE:
        return text
    try:
        return str(ipaddress.ip_network(text)).removesuffix("/32").removesuffix("/128")
    except ValueError:
        raise RuleError(f"host is {text!r}; expected *, an IP address or a network such as 10.0.0.0/8") from None


def _resource(resource_type: ResourceType, name: str, pattern: Pattern) -> Resource:
    if resource_type not in _NAMED:
        # Redpanda's own clients write an empty name or *.
        if name in ("", ALL_NAMES) and pattern is Pattern.LITERAL:
            return Resource(resource_type)
        raise RuleError(f"resource is {name!r}; a {resource_type} has no name")
    if not name:
        raise RuleError(f"resource is missing; expected the name of a {resource_type}, or * for all")
    if pattern is Pattern.PREFIXED and name == ALL_NAMES:
        raise RuleError("resource is '*' and pattern_type PREFIXED; for all names, expected pattern_type LITERAL")
    return Resource(resource_type, _shortest(name, pattern) if resource_type is ResourceType.SUBJECT else name, pattern)


def _shortest(name: str, pattern: Pattern) -> str:
    """Return a subject name or prefix without the default context, unless it is that context."""
    short = qualified(name, DEFAULT_CONTEXT) if pattern is Pattern.LITERAL else name.removeprefix(_DEFAULT_PREFIX)
    return short or name
