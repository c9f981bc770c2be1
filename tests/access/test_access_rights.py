"""Rights against a model that asks every rule in turn, and the cases that people get wrong."""

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.access_model import model
from harness.examples import examples
from strata.registry.core.rights.principal import ANONYMOUS, Principal
from strata.registry.core.rights.rights import Rights
from strata.registry.core.rights.rules import (
    Operation,
    Permission,
    Resource,
    ResourceType,
    Rule,
    parse_resource,
    parse_rule,
)
from strata.registry.features.access.roles import expand_role

SUBJECTS = ["a", "ab", "b", "", ":.c:", ":.c:a", ":.cd:ab", ":.c:ab"]
kinds = st.sampled_from(ResourceType)
hosts = st.sampled_from(["10.0.0.1", "10.0.0.2", "192.168.0.1", "::1", None])


@st.composite
def rules(draw):
    """Return a rule that may match what the tests ask for."""
    kind = draw(kinds)
    resource = Resource(kind)
    if kind in (ResourceType.SUBJECT, ResourceType.KEK):
        named = draw(st.sampled_from(["a*", "ab", "b", "*", ":.c:*", ":.c:a*", ":.:*", ":.*", ":.cd:ab", ":.c:a"]))
        resource = parse_resource(kind, named)
    return Rule(
        draw(st.sampled_from(["User:u", "User:v", "User:*", "Group:g", "Group:h", "Anonymous"])),
        draw(st.sampled_from(["*", "*", "10.0.0.1", "10.0.0.0/8", "::1"])),
        resource,
        draw(st.sampled_from(Operation)),
        draw(st.sampled_from([Permission.ALLOW, Permission.ALLOW, Permission.DENY])),
    )


principals = st.builds(
    Principal, st.sampled_from(["u", "v", "w", "*", None]), st.frozensets(st.sampled_from(["g", "h"]))
)


@settings(max_examples=examples(200))
@given(
    st.lists(rules(), max_size=12),
    st.sets(st.sampled_from(["User:u", "Group:h"]), max_size=1),
    st.lists(st.tuples(principals, st.sampled_from(Operation), kinds, st.sampled_from(SUBJECTS), hosts), max_size=20),
)
def test_rights_say_what_the_model_says(given_rules, superusers, questions):
    """Compiled rights and the model agree, and name a rule that decided."""
    rights = Rights(given_rules, superusers)
    for principal, operation, kind, asked, host in questions:
        name = asked if kind in (ResourceType.SUBJECT, ResourceType.KEK) else ""
        verdict = rights.decide(principal, operation, Resource(kind, name), host)

        assert verdict.allowed == model(given_rules, superusers, principal, operation, kind, name, host)
        if verdict.rule is not None:
            assert verdict.rule in given_rules
            assert verdict.rule.permission == (Permission.ALLOW if verdict.allowed else Permission.DENY)


@settings(max_examples=examples(200))
@given(st.lists(rules(), max_size=8), principals, st.sampled_from(Operation), st.sampled_from(["", ":.c:", ":.:"]))
def test_what_is_allowed_for_all_names_is_allowed_for_each(given_rules, principal, operation, prefix):
    """`allows_all` never promises more than the rules give."""
    view = Rights(given_rules).view(principal, "10.0.0.1")
    if view.allows_all(operation, ResourceType.SUBJECT, prefix):
        for name in SUBJECTS:
            full = name if name.startswith(":.") else ":.:" + name
            assert not full.startswith(prefix) or view.decide(operation, ResourceType.SUBJECT, name).allowed


def allowed(content, principal, operation, name):
    """Return whether rules allow something with a subject."""
    rights = Rights([parse_rule(rule) for rule in content])
    return rights.decide(principal, operation, Resource(ResourceType.SUBJECT, name), "10.0.0.1").allowed


ALICE = Principal("alice", frozenset({"dev"}), "basic")
READ_ALL = {"principal": "Group:dev", "resource_type": "SUBJECT", "resource": "*", "operation": "READ"}


def test_a_denial_wins_over_any_permission():
    """A narrow denial wins over a wide permission, and a wide denial over a narrow permission."""
    denial = {"principal": "User:alice", "resource_type": "SUBJECT", "resource": "secret", "operation": "ALL"}

    assert allowed([READ_ALL], ALICE, Operation.READ, "secret")
    assert not allowed([READ_ALL, denial | {"permission": "DENY"}], ALICE, Operation.READ, "secret")
    assert allowed([READ_ALL, denial | {"permission": "DENY"}], ALICE, Operation.READ, "open")


def test_leaving_out_credentials_avoids_no_denial():
    """What every user is denied is denied to anonymous clients, and what every user may do they may not."""
    everyone = {"principal": "User:*", "resource_type": "SUBJECT", "resource": "secret", "operation": "READ"}
    anonymous = READ_ALL | {"principal": "Anonymous"}

    assert not allowed([everyone], ANONYMOUS, Operation.READ, "secret")
    assert not allowed([anonymous, everyone | {"permission": "DENY"}], ANONYMOUS, Operation.READ, "secret")
    assert allowed([anonymous, everyone | {"permission": "DENY"}], ANONYMOUS, Operation.READ, "open")


def test_a_prefix_stays_in_its_context():
    """`orders-` means the default context alone, and `:.a:` another context as a whole."""
    view = Rights([*expand_role("owner", "User:alice", "orders-*"), *expand_role("consumer", "User:alice", ":.a:*")])
    seen = view.view(ALICE, None)

    for name, expected in {"orders-x": True, ":.b:orders-x": False, ":.a:x": True, ":.ab:x": False, "x": False}.items():
        assert seen.decide(Operation.READ, ResourceType.SUBJECT, name).allowed is expected


def test_views_are_kept_per_principal_and_address_only_where_addresses_matter():
    """The memo does not grow with the number of addresses unless a rule names one."""
    plain = Rights([parse_rule(READ_ALL)])
    by_host = Rights([parse_rule(READ_ALL | {"host": "10.0.0.0/8"})])

    assert plain.view(ALICE, "10.0.0.1") is plain.view(ALICE, "10.0.0.2")
    assert by_host.view(ALICE, "10.0.0.1") is not by_host.view(ALICE, "11.0.0.2")
    assert by_host.view(ALICE, "::ffff:10.0.0.1").decide(Operation.READ, ResourceType.SUBJECT, "x").allowed
