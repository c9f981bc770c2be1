"""The auth file: what it may say, and the message for what it may not."""

import json
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.examples import examples
from strata.registry.core.rights.rules import rule_json
from strata.registry.features.access.auth_file import MOST_BYTES, AuthFileError, parse_auth_file

HASH = "$scrypt$ln=4,r=8,p=1$c2FsdHNhbHQ$" + "A" * 43
GOOD = f"""
users:
  - name: alice
    password: {HASH}
    groups: [orders-team, 'on']
  - name: no          # a text, in spite of YAML 1.1
    password: {HASH}
roles:
  - principal: Group:orders-team
    role: owner
    on: orders-*
  - {{principal: User:alice, role: admin}}
rules:
  - principal: User:alice
    permission: DENY
    operation: DELETE
    resource_type: SUBJECT
    resource: orders-value
"""


def user(**fields):
    """Return the text of a file with one user."""
    return json.dumps({"users": [{"name": "a", "password": HASH} | fields]})


def role(**fields):
    """Return the text of a file with one role."""
    return json.dumps({"roles": [{"principal": "User:a", "role": "owner", "on": "s"} | fields]})


WRONG = [
    ("not UTF-8", b"users: \xff", "byte 7: expected UTF-8"),
    ("not YAML", "users: [", "did not find expected node content"),
    ("not JSON", '{"users": [}', "line 1: Expecting value"),
    ("a control character", "users: \x07", "control characters are not allowed"),
    ("a list", "- a", "expected the sections users, roles, rules"),
    ("a text", "a", "expected the sections"),
    ("two documents", "users: []\n---\nusers: []", "line 2: expected one document"),
    ("an unknown section", "user: []", "user: unknown field; expected users, roles, rules"),
    ("a section that is not a list", "users: {}\nroles: 7", "roles: expected a list, got a text"),
    ("an entry that is not a mapping", "users: [alice]", "users[0]: expected a mapping, got a text"),
    ("a key twice in YAML", "users: []\nusers: []", "line 2: the key 'users' appears twice"),
    ("a key twice in JSON", '{"users": [], "users": []}', "the key 'users' appears twice"),
    ("a key that is not text", "[a]: b", "line 1: a key is not a string"),
    ("an alias", "users: &a []\nroles: *a", "line 1: anchors and aliases are not supported"),
    ("a tag", "users: !!python/object:os.system []", "line 1: tags are not supported"),
    ("an unknown field", user(passwort=HASH), "users[0].passwort: unknown field; expected name, password, groups"),
    ("a hash that is not quoted", f"users: [{{name: a, password: {HASH}}}]", "users[0].…: unknown field"),
    ("no name", json.dumps({"users": [{"password": HASH}]}), "users[0].name: missing"),
    ("no password", json.dumps({"users": [{"name": "a"}]}), "users[0].password: missing"),
    ("a name that is not text", user(name=["a"]), "users[0].name: expected text, got a list"),
    ("an empty name", user(name=""), "users[0].name: expected a name of 1 to 512 printable characters"),
    ("a name with a line end", user(name="a\nb"), "users[0].name: expected a name"),
    ("a name with a direction", user(name="a\u202eb"), "users[0].name: expected a name"),
    ("a name with a colon", user(name="User:a"), "users[0].name: expected a name without a colon"),
    ("every user", user(name="*"), "users[0].name: expected a name"),
    ("a plain password", user(password="secret"), "users[0].password: expected $scrypt$"),
    ("groups that are not a list", user(groups="a"), "users[0].groups: expected a list of names"),
    ("a group that is not text", user(groups=[None]), "users[0].groups: expected text, got NoneType"),
    ("a group of all", user(groups=["*"]), "users[0].groups: expected a name"),
    (
        "a user twice",
        json.dumps({"users": [{"name": "a", "password": HASH}] * 2}),
        "users[1].name: the user 'a' appears twice",
    ),
    ("an unknown role", role(role="boss"), "roles[0]: unknown role 'boss'"),
    ("a role on nothing", "roles: [{principal: User:a, role: owner}]", "roles[0]: the role owner needs subjects"),
    ("a principal without its kind", role(principal="alice"), "roles[0]: principal is 'alice'"),
    (
        "a rule on what looks like a prefix",
        "rules: [{principal: User:a, operation: READ, resource_type: SUBJECT, resource: a-*}]",
        "rules[0]: resource is 'a-*'; for all names that begin with 'a-', expected pattern_type PREFIXED and no star",
    ),
    ("a rule without operation", "rules: [{principal: User:a, resource_type: REGISTRY}]", "rules[0]: operation is"),
    (
        "a rule with a misspelled field",
        "rules: [{principal: User:a, permision: DENY, resource_type: REGISTRY, operation: ALL}]",
        "rules[0]: unknown field 'permision'",
    ),
    ("too deep", "users: " + "[" * 20 + "]" * 20, "nested more than 10 levels deep"),
    ("too deep in JSON", '{"users": ' + "[" * 20 + "]" * 20 + "}", "nested more than 10 levels deep"),
    ("far too deep in YAML", "users: " + "[" * 500_000, "nested"),
    ("far too deep in JSON", '{"users": ' + "[" * 500_000, "nested too deeply"),
    ("too large", "#" * (MOST_BYTES + 1), f"the file is larger than {MOST_BYTES} bytes"),
]  # fmt: skip


def test_a_file():
    """Users, roles and rules are read, and every scalar is a text."""
    found = parse_auth_file(GOOD.encode())

    assert {"alice": {"orders-team", "on"}, "no": set()} == {name: user.groups for name, user in found.users.items()}
    assert HASH == str(found.users["alice"].password)
    assert {
        "Group:orders-team may DELETE subject orders-*",
        "User:alice may ALL cluster",
        "User:alice may not DELETE subject orders-value",
    } <= {str(rule) for rule in found.rules}


def test_json_is_the_same():
    """A JSON file says the same as YAML."""
    users = [{"name": "alice", "password": HASH, "groups": ["orders-team", "on"]}, {"name": "no", "password": HASH}]
    roles = [
        {"principal": "Group:orders-team", "role": "owner", "on": "orders-*"},
        {"principal": "User:alice", "role": "admin"},
    ]
    rules = [rule_json(parse_auth_file(GOOD.encode()).rules[-1])]

    assert parse_auth_file(GOOD.encode()) == parse_auth_file(
        json.dumps({"users": users, "roles": roles, "rules": rules}).encode()
    )


@pytest.mark.parametrize("text", ["", "{}", "users:\nroles:\nrules:\n", "# nothing yet\n"])
def test_an_empty_file(text):
    """A file without entries names no user and gives no rights."""
    found = parse_auth_file(text.encode())

    assert ({}, ()) == (dict(found.users), found.rules)


@pytest.mark.parametrize(("text", "message"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
def test_a_wrong_file(text, message):
    """The message says which field is wrong, and why; it holds no hash."""
    with pytest.raises(AuthFileError) as caught:
        parse_auth_file(text if isinstance(text, bytes) else text.encode())

    assert message in str(caught.value)
    assert "AAAAAAAA" not in str(caught.value)


@settings(max_examples=examples(300))
@given(
    st.binary(max_size=200)
    | st.text(max_size=200).map(str.encode)
    | st.text("{}[]:,-&*!'\"\n ab", max_size=80).map(str.encode)
)
def test_any_bytes(data):
    """Any bytes are a file, or raise the documented error."""
    with suppress(AuthFileError):
        parse_auth_file(data)
