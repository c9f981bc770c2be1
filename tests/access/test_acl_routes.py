"""Rules in the log: their routes, their commands, and what they change at once."""

import json

import pytest
from click.testing import CliRunner

from harness.access_rules import Claimed, rule
from harness.serving import serving
from strata.registry.app import create_app
from strata.registry.commands.cli import main
from strata.registry.features.access.control import AccessControl
from strata.registry.settings import Settings
from strata.storage.log import START, MemoryLog
from strata.storage.record_json import encode
from strata.storage.records import AclKey, AclValue

ACLS = "/security/acls"


def acl(principal="User:alice", operation="READ", resource="orders-", **more):
    """Return a rule as JSON, with all seven fields."""
    fields = {"principal": principal, "resource": resource, "resource_type": "SUBJECT", "pattern_type": "PREFIXED"}
    return {**fields, "host": "*", "operation": operation, "permission": "ALLOW", **more}


def test_rules_are_added_listed_and_deleted(guarded):
    """The routes have the JSON of Redpanda's."""
    registry = guarded()
    rules = [acl(), acl(operation="write"), acl("Group:ops", "ALL", "*", pattern_type="LITERAL")]
    assert registry.ask("POST", ACLS, rules)[:2] == (201, [rules[0], acl(operation="WRITE"), rules[2]])
    assert registry.ask("POST", ACLS, rules)[0] == 201

    everything = registry.ask("GET", ACLS)[1]
    assert len(everything) == 3
    assert registry.ask("GET", f"{ACLS}?operation=read")[1] == [acl()]
    assert registry.ask("GET", f"{ACLS}?principal=Group%3Aops&host=*")[1] == [rules[2]]
    assert registry.ask("GET", f"{ACLS}?principal=Group%3Aop")[1] == []
    assert registry.ask("DELETE", ACLS, [{"principal": "User:alice", "operation": "READ"}])[:2] == (200, [acl()])
    assert registry.ask("DELETE", ACLS, [{"principal": "User:alice", "operation": "READ"}])[1] == []
    assert registry.ask("DELETE", ACLS, [{}])[1] == [one for one in everything if one != acl()]
    assert registry.ask("GET", ACLS)[1] == []
    assert len(list(registry.log.read(START))) == 6


@pytest.mark.parametrize(
    ("method", "body", "message"),
    [
        ("POST", {}, "expected a list of objects"),
        ("POST", [1], "expected a list of objects"),
        ("POST", [acl(), {"principal": "User:a"}], "[1].resource is missing"),
        ("POST", [acl("alice")], "[0]: principal is 'alice'; expected User:NAME"),
        ("POST", [acl(), acl(operation="SEE")], "[1]: operation is 'SEE'"),
        ("POST", [acl(resource="a-*")], "that begin with 'a-', expected pattern_type PREFIXED and no star"),
        ("DELETE", [{"subject": "a"}], "[0]: unknown field 'subject'"),
        ("DELETE", [{"operation": "SEE"}], "[0]: operation is 'SEE'; expected one of READ"),
        ("DELETE", [{"principal": "alice"}], "[0]: principal is 'alice'; expected User:NAME"),
        ("DELETE", [{"permission": None}], "[0]: permission is missing"),
        ("DELETE", [{"host": "here"}], "[0]: host is 'here'; expected *, an IP address"),
        ("DELETE", "x", "expected a list of objects"),
    ],
)
def test_a_wrong_rule_changes_nothing(guarded, method, body, message):
    """One wrong rule rejects them all, and the message says which."""
    registry = guarded()
    status, content, _ = registry.ask(method, ACLS, body)

    assert (status, message in content["message"]) == (400, True)
    assert list(registry.log.read(START)) == []


def test_filters_find_rules_however_they_are_spelled(guarded):
    """The case of words, the form of an address and the default context make no difference."""
    registry = guarded()
    rule = acl(host="10.0.0.1")
    registry.ask("POST", ACLS, [rule])

    assert [rule] == registry.ask("GET", f"{ACLS}?operation=read&host=10.0.0.1/32&resource=:.:orders-")[1]
    assert (400, "operation is 'SEE'") == _refusal(registry, f"{ACLS}?operation=SEE")
    assert [rule] == registry.ask("DELETE", ACLS, [{"pattern_type": "prefixed", "resource": ":.:orders-"}])[1]


def _refusal(registry, path):
    status, content, _ = registry.ask("GET", path)
    return status, content["message"].partition(";")[0]


def test_rules_of_the_log_count_at_once(guarded):
    """A rule allows from its acknowledgement on, and no longer after its deletion; file and log add up."""
    registry = guarded([rule("alice", "DELETE", "orders-x")])
    registry.register("orders-x")
    read = ("GET", "/subjects/orders-x/versions/1", None, "alice")

    assert registry.code(*read) == 40301
    registry.ask("POST", ACLS, [acl()])
    assert registry.code(*read) == 200
    assert registry.code("POST", ACLS, [], "alice") == 40301
    registry.ask("POST", ACLS, [acl(operation="ALL", permission="DENY")])
    assert registry.code(*read) == 40301
    assert registry.code("DELETE", "/subjects/orders-x", None, "alice") == 40301
    registry.ask("DELETE", ACLS, [{"permission": "DENY"}])
    assert registry.code(*read) == 200
    registry.ask("DELETE", ACLS, [{}])
    assert registry.code(*read) == 40301


def test_a_write_is_decided_by_the_newest_rules_of_the_log(guarded):
    """A grant or revocation that another node wrote, and this node has not read, holds for a write and a fresh read."""
    log = MemoryLog()
    registry = guarded([rule("alice", "ALL", "b")], log)
    registry.ask("POST", ACLS, [acl(operation="ALL", resource="a", pattern_type="LITERAL")])
    registry.register("a", user="alice")
    key = AclKey("User:alice", "*", "SUBJECT", "a", "LITERAL", "ALL", "ALLOW")
    log.append(log.end(), [encode(key)])

    assert registry.app._admission._state().acls  # not read yet
    assert registry.code("POST", "/subjects/a/versions", {"schema": '"long"'}, "alice") == 40301
    log.append(log.end(), [encode(key, AclValue(1))])
    assert registry.code("GET", "/subjects/a/versions", None) == 200
    log.append(log.end(), [encode(key)])
    assert registry.code("GET", "/subjects/a/versions", None, "alice") == 40301
    log.append(log.end(), [encode(key, AclValue(1))])
    assert registry.code("GET", "/subjects/a/versions", None, "alice") == 200
    log.append(log.end(), [encode(key)])
    assert registry.code("GET", "/subjects/a/versions", None, "alice") == 40301


def test_a_rule_of_a_later_release_permits_nothing_and_denies_everything(guarded):
    """What cannot be read must not be passed over if it denies."""
    log = MemoryLog()
    registry = guarded([rule("alice", "READ", "a"), rule("bob", "READ", "a")], log)
    registry.register("a")
    unknown = [
        AclKey("User:alice", "*", "SUBJECT", "a", "LITERAL", "GLANCE", "ALLOW"),
        AclKey("User:bob", "*", "SUBJECT", "z", "REGEX", "READ", "DENY"),
    ]
    log.append(log.end(), [encode(key, AclValue(1)) for key in unknown])
    registry.ask("GET", "/subjects")

    assert registry.code("GET", "/subjects/a/versions/1", None, "alice") == 200
    assert registry.code("GET", "/subjects/a/versions/1", None, "bob") == 40301
    assert registry.ask("GET", ACLS)[1] == []


def test_the_verdict_names_the_rule(guarded):
    """An administrator asks what a user may do, and why."""
    registry = guarded([rule("alice", "READ", "a*"), rule("alice", "READ", "ab", permission="DENY")])

    def verdict(query):
        return registry.ask("GET", f"{ACLS}/verdict?{query}")[1]

    deny = acl(resource="ab", pattern_type="LITERAL", permission="DENY")
    assert verdict("principal=User:alice&resource=ab") == {"enabled": True, "allowed": False, "rule": deny}
    assert verdict("principal=User:alice&resource=ax")["rule"]["resource"] == "a"
    assert verdict("principal=User:bob&resource=ax") == {"enabled": True, "allowed": False}
    assert verdict("principal=User:root&resource=ax") == {"enabled": True, "allowed": True}
    assert registry.code("GET", f"{ACLS}/verdict?principal=alice&resource=x") == 400
    assert registry.code("GET", f"{ACLS}/verdict?principal=Group:x&resource=x") == 400


@pytest.fixture
def service():
    """Serve a registry with access control; yield its URL."""
    control = AccessControl(Claimed(), lambda: (), ["Anonymous"])
    with serving(lambda _: create_app(MemoryLog(), Settings(log="memory:"), control=control)) as port:
        yield f"http://127.0.0.1:{port}"


def run(*arguments):
    """Run a command; return exit code and output."""
    result = CliRunner().invoke(main, [str(one) for one in arguments])
    return result.exit_code, result.output


def test_commands_change_and_test_the_rules(service):
    """`strata acl` does what the routes do."""
    alice = ("--principal", "User:alice")
    assert run("acl", "add", service, *alice, "--role", "consumer", "--on", "orders-*") == (
        0,
        "User:alice may READ subject orders-*\nUser:alice may DESCRIBE_CONFIGS subject orders-*\n",
    )
    assert run("acl", "add", service, *alice, "--operation", "READ", "--subject", "orders-x", "--deny")[0] == 0
    assert run("acl", "list", service, "--principal", "User:bob") == (0, "")
    assert len(run("acl", "list", service)[1].splitlines()) == 3
    assert run("acl", "test", service, *alice, "--operation", "READ", "--subject", "orders-a") == (
        0,
        "allowed, by the rule: User:alice may READ subject orders-*\n",
    )
    assert run("acl", "test", service, *alice, "--operation", "READ", "--subject", "orders-x") == (
        1,
        "refused, by the rule: User:alice may not READ subject orders-x\n",
    )
    assert run("acl", "test", service, *alice, "--operation", "WRITE", "--registry") == (
        1,
        "refused, no rule matches\n",
    )
    assert run("acl", "remove", service, *alice, "--subject", "orders-x") == (
        0,
        "User:alice may not READ subject orders-x\n",
    )
    assert run("acl", "remove", service, *alice, "--subject", "orders-x") == (
        0,
        "strata: no rule in the log matches; nothing was removed\n",
    )
    assert run("acl", "remove", service, "--all")[1].count("\n") == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("add", "--principal", "User:a"), "expected --role, or --operation with a resource"),
        (("add", "--principal", "User:a", "--operation", "READ"), "name a resource"),
        (("add", "--principal", "a", "--operation", "READ", "--registry"), "principal is 'a'"),
        (("add", "--principal", "User:a", "--role", "chef"), "unknown role 'chef'"),
        (("add", "--principal", "User:a", "--role", "owner", "--deny"), "--role can only be combined with"),
        (("remove",), "name the rules to remove, or --all"),
        (("remove", "--registry", "--cluster"), "name one resource only"),
        (("test", "--principal", "User:a", "--operation", "READ"), "name a resource"),
    ],
)
def test_wrong_arguments_are_explained(arguments, message):
    """Nothing is sent if the arguments make no sense."""
    command, *rest = arguments
    code, output = run("acl", command, "http://127.0.0.1:1", *rest)

    assert (code, message in output) == (2, True), output


def test_rules_survive_a_restart_of_the_node(guarded):
    """They are in the log."""
    log = MemoryLog()
    guarded((), log).ask("POST", ACLS, [acl()])
    later = guarded((), log)

    assert later.ask("GET", ACLS)[1] == [acl()]
    assert json.loads(next(iter(log.read(START))).key)["kind"] == "ACL"
