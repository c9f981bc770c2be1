"""Rules as JSON, and the roles that stand for them."""

import pytest

from strata.registry.core.rights.rules import (
    Operation,
    Pattern,
    Permission,
    Resource,
    ResourceType,
    Rule,
    RuleError,
    parse_resource,
    parse_rule,
    rule_json,
)
from strata.registry.features.access.roles import ALIASES, ROLES, expand_role

FULL = {
    "principal": "User:alice",
    "resource": "orders-",
    "resource_type": "SUBJECT",
    "pattern_type": "PREFIXED",
    "host": "10.0.0.0/8",
    "operation": "READ",
    "permission": "DENY",
}


def test_a_rule_is_read_from_and_written_as_the_same_object() -> None:
    """Parsing and printing lose nothing."""
    rule = parse_rule(FULL)

    assert rule == Rule(
        "User:alice",
        "10.0.0.0/8",
        Resource(ResourceType.SUBJECT, "orders-", Pattern.PREFIXED),
        Operation.READ,
        Permission.DENY,
    )
    assert rule_json(rule) == FULL
    assert str(rule) == "User:alice may not READ subject orders-* from 10.0.0.0/8"


def test_fields_left_out_have_the_usual_meaning_and_case_does_not_matter() -> None:
    """A rule in a file is short."""
    content = {"principal": "Group:ops", "resource": "a", "resource_type": "kek", "operation": "describe_configs"}

    assert parse_rule(content) == Rule(
        "Group:ops", "*", Resource(ResourceType.KEK, "a", Pattern.LITERAL), Operation.DESCRIBE_CONFIGS
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"principal": "alice"}, "principal is 'alice'; expected User:NAME"),
        ({"principal": "User:"}, "principal is 'User:'"),
        ({"principal": "RedpandaRole:x"}, "principal is 'RedpandaRole:x'"),
        ({"principal": None}, "principal is missing"),
        ({"principal": 7}, "principal: expected text, got int"),
        ({"resource": ""}, "resource is missing; expected the name of a SUBJECT"),
        ({"resource": "*"}, "for all names, expected pattern_type LITERAL"),
        ({"resource": "a\nb"}, "resource: expected at most 1024 printable characters"),
        ({"resource": "a" * 1025}, "resource: expected at most 1024 printable characters"),
        ({"resource_type": "TOPIC"}, "resource_type is 'TOPIC'; expected one of SUBJECT, REGISTRY, KEK, CLUSTER"),
        ({"resource_type": "REGISTRY"}, "resource is 'orders-'; a REGISTRY has no name"),
        ({"pattern_type": "MATCH"}, "pattern_type is 'MATCH'; expected one of LITERAL, PREFIXED"),
        ({"host": "localhost"}, "host is 'localhost'; expected *, an IP address or a network"),
        ({"host": "10.0.0.1/8"}, "host is '10.0.0.1/8'"),
        ({"operation": "ALTER"}, "operation ALTER does not exist for a SUBJECT"),
        ({"operation": "SEE"}, "operation is 'SEE'; expected one of READ"),
        ({"permission": "MAYBE"}, "permission is 'MAYBE'; expected one of ALLOW, DENY"),
        ({"subject": "x"}, "unknown field 'subject'"),
    ],
)
def test_a_broken_rule_says_what_is_wrong(change: dict[str, object], message: str) -> None:
    """The message names the field, what it is and what is expected."""
    with pytest.raises(RuleError) as refused:
        parse_rule(FULL | change)

    assert message in str(refused.value)


def test_a_rule_is_an_object() -> None:
    """A list is none."""
    with pytest.raises(RuleError, match="expected an object"):
        parse_rule([])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("orders", Resource(ResourceType.SUBJECT, "orders")),
        ("orders-*", Resource(ResourceType.SUBJECT, "orders-", Pattern.PREFIXED)),
        ("*", Resource(ResourceType.SUBJECT, "*")),
        (":.:orders", Resource(ResourceType.SUBJECT, "orders")),
        (":.:ord*", Resource(ResourceType.SUBJECT, "ord", Pattern.PREFIXED)),
        (":.:*", Resource(ResourceType.SUBJECT, ":.:", Pattern.PREFIXED)),
        (":.billing:*", Resource(ResourceType.SUBJECT, ":.billing:", Pattern.PREFIXED)),
        (":.billing", Resource(ResourceType.SUBJECT, ":.billing:")),
    ],
)
def test_a_subject_is_named_in_its_shortest_form(text: str, expected: Resource) -> None:
    """Two spellings of one name are one resource."""
    assert parse_resource(ResourceType.SUBJECT, text) == expected


@pytest.mark.parametrize(
    ("role", "on", "expected"),
    [
        ("consumer", "a-*", ["READ subject a-*", "DESCRIBE_CONFIGS subject a-*"]),
        ("producer", "a", ["READ subject a", "WRITE subject a", "DESCRIBE_CONFIGS subject a"]),
        ("owner", "*", ["READ subject *", "WRITE subject *", "DELETE subject *", "ALTER_CONFIGS subject *"]),
        ("viewer", None, ["READ subject *", "DESCRIBE_CONFIGS subject *", "DESCRIBE_CONFIGS registry"]),
        ("admin", None, ["ALL subject *", "ALL registry", "ALL kek *", "ALL cluster"]),
        ("ResourceOwner", "a", ["READ subject a", "WRITE subject a", "DELETE subject a", "ALTER_CONFIGS subject a"]),
        ("SUBJECT_READ", "a", ["READ subject a"]),
        ("GLOBAL_READ", None, ["DESCRIBE subject *"]),
    ],
)
def test_a_role_stands_for_rules(role: str, on: str | None, expected: list[str]) -> None:
    """A role is a macro."""
    assert [str(rule) for rule in expand_role(role, "User:a", on)] == [f"User:a may {text}" for text in expected]


@pytest.mark.parametrize("role", [*ROLES, *ALIASES])
def test_each_role_can_be_given(role: str) -> None:
    """Each name stands for rules that parse."""
    rules = expand_role(role, "Group:a", "*")

    assert rules
    assert [parse_rule(rule_json(rule)) for rule in rules] == list(rules)


@pytest.mark.parametrize(
    ("role", "principal", "on", "message"),
    [
        ("chef", "User:a", "x", "unknown role 'chef'; expected one of consumer"),
        ("consumer", "User:a", None, "the role consumer needs subjects"),
        ("consumer", "User:a", "", "the role consumer needs subjects"),
        ("admin", "User:a", "x", "cannot be given on 'x'"),
        ("consumer", "a", "x", "principal is 'a'"),
    ],
)
def test_a_role_that_cannot_be_given_says_why(role: str, principal: str, on: str | None, message: str) -> None:
    """The message names what is expected."""
    with pytest.raises(RuleError) as refused:
        expand_role(role, principal, on)

    assert message in str(refused.value)
