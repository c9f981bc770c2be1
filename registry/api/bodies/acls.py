"""The JSON of rules of access, with the fields of Redpanda's `/security/acls`."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import orjson
from pydantic import Field, RootModel

from strata.registry.api.bodies.contracts import Answer, Body
from strata.registry.core import errors
from strata.registry.core.rights.rules import (
    FIELDS,
    Rule,
    RuleError,
    parse_filter,
    parse_new_rule,
    parse_rule,
    rule_json,
)

__all__ = [
    "AclAnswer",
    "AclsBody",
    "VerdictAnswer",
    "matching",
    "parse_filters",
    "parse_question",
    "parse_rules",
    "parse_wanted",
    "rules_json",
]


class AclBody(Body):
    """A rule; to delete, the fields that a rule must have."""

    principal: str = Field(description="User:NAME, User:*, Group:NAME or Anonymous")
    resource: str = Field(description="a name or its beginning; * for all; empty for the registry and the cluster")
    resource_type: str = Field(alias="resource_type", description="SUBJECT, KEK, REGISTRY or CLUSTER")
    pattern_type: str = Field(alias="pattern_type", description="LITERAL or PREFIXED")
    host: str = Field(description="*, an IP address or a network")
    operation: str = Field(description="READ, WRITE, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS, ALTER or ALL")
    permission: str = Field(description="ALLOW or DENY")


class AclsBody(RootModel[list[AclBody]]):
    """Several rules."""


class AclAnswer(Answer):
    """A rule."""

    principal: str
    resource: str
    resource_type: str = Field(alias="resource_type")
    pattern_type: str = Field(alias="pattern_type")
    host: str
    operation: str
    permission: str


class VerdictAnswer(Answer):
    """Whether a principal may do something, and the rule that decides."""

    enabled: bool = Field(description="whether access control is on; if not, everything is allowed")
    allowed: bool
    rule: AclAnswer | None = Field(None, description="absent if no rule matches, or the principal is a superuser")


def parse_question(principal: str, operation: str, resource_type: str, resource: str) -> tuple[str | None, Rule]:
    """Return the user of a question about rights, None for `Anonymous`, and the rule that would allow it.

    Raises:
        RegistryError: 400 if one of its words cannot be used.
    """
    content = {
        "principal": principal,
        "operation": operation,
        "resource_type": resource_type,
        "resource": resource,
    }
    try:
        asked = parse_rule(content)
    except RuleError as error:
        raise errors.unreadable_body(str(error)) from None
    if principal.startswith("Group:"):
        raise errors.unreadable_body("principal: expected User:NAME or Anonymous; pass groups as `group`")
    return (principal.removeprefix("User:") if principal.startswith("User:") else None), asked


def rules_json(rules: Iterable[Rule]) -> list[dict[str, str]]:
    """Return the JSON of rules."""
    return [rule_json(rule) for rule in rules]


def parse_rules(data: bytes) -> list[Rule]:
    """Return the rules of a body, each with all seven fields.

    Raises:
        RegistryError: 400 if one of them cannot be used.
    """
    rules = []
    for number, content in enumerate(_items(data)):
        missing = [name for name in FIELDS if name not in content]
        if missing:
            raise errors.unreadable_body(f"The request body cannot be used: [{number}].{missing[0]} is missing")
        try:
            rules.append(parse_new_rule(content))
        except RuleError as error:
            raise errors.unreadable_body(f"The request body cannot be used: [{number}]: {error}") from None
    return rules


def parse_filters(data: bytes) -> list[Mapping[str, str]]:
    """Return the filters of a body: the fields, of any number, that a rule must have.

    Raises:
        RegistryError: 400 if one of them cannot be used.
    """
    return [
        _checked(fields, f"The request body cannot be used: [{number}]: ") for number, fields in enumerate(_items(data))
    ]


def parse_wanted(fields: Mapping[str, str]) -> Mapping[str, str]:
    """Return the fields that a rule must have, from the parameters of a query.

    Raises:
        RegistryError: 400 if one of them cannot be used.
    """
    return _checked(fields, "")


def matching(filters: Sequence[Mapping[str, str]]) -> Callable[[Rule], bool]:
    """Return a function that returns whether a rule has all the fields of one of some filters."""

    def matches(rule: Rule) -> bool:
        fields = rule_json(rule)
        return any(all(fields[name] == value for name, value in wanted.items()) for wanted in filters)

    return matches


def _checked(fields: Mapping[str, object], place: str) -> Mapping[str, str]:
    try:
        return parse_filter(fields)
    except RuleError as error:
        raise errors.unreadable_body(f"{place}{error}") from None


def _items(data: bytes) -> list[dict[str, object]]:
    try:
        content = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise errors.unreadable_body(f"The request body is not JSON: {error}") from None
    if not isinstance(content, list) or not all(isinstance(item, dict) for item in content):
        raise errors.unreadable_body("The request body cannot be used: expected a list of objects")
    return content
