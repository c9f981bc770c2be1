"""Karapace's auth file: its users, and its regular expressions as rules."""

import base64
import hashlib
import json

import pytest

from strata.registry.features.access.auth_file import AuthFileError, parse_auth_file

DIGEST = base64.b64encode(hashlib.pbkdf2_hmac("sha256", b"secret", b"salt", 5000)).decode()
USER = {"username": "aladdin", "algorithm": "sha256", "salt": "salt", "password_hash": DIGEST}
READ, WRITE = {"READ", "DESCRIBE_CONFIGS"}, {"READ", "DESCRIBE_CONFIGS", "WRITE", "DELETE", "ALTER_CONFIGS"}
CONFIG = {"DESCRIBE_CONFIGS", "ALTER_CONFIGS"}
# the expression, and the resources that it means
RESOURCES = [
    (".*", ["subject *", "registry"]),
    ("^.*$", ["subject *", "registry"]),
    ("Config:", ["registry"]),
    ("Config:.*", ["registry"]),
    ("Subject:.*", ["subject *"]),
    ("Subject:", ["subject *"]),
    ("Subject:cave-.*", ["subject cave-*"]),
    ("^Subject:cave-.*$", ["subject cave-*"]),
    ("Subject:cave-", ["subject cave-*"]),
    ("Subject:cave-value$", ["subject cave-value"]),
    (r"Subject:com\.acme\.Cave$", ["subject com.acme.Cave"]),
    ("Subject:com.acme.Cave$", ["subject com.acme.Cave"]),
    (r"Subject:price\$", ["subject price$*"]),
]
WRONG = [
    "Subject:(a|b).*", "Subject:a+", "Subject:.*-value", "Subject:[ab]", "Subj", "subject:a", "Subject:a|Config:",
    r"Subject:\d", "Subject:a\n", "Config:|Subject:", "(", r"Subject:a\*",
]  # fmt: skip


def text(**permission):
    """Return a file with one user, and one permission if it is given."""
    permissions = [{"username": "aladdin", "operation": "Read", "resource": ".*"} | permission] if permission else []
    return json.dumps({"users": [USER], "permissions": permissions}).encode()


def test_users_keep_their_passwords():
    """A user logs in with the password of before."""
    found = parse_auth_file(text())

    assert found.users["aladdin"].password.matches("secret")
    assert () == found.rules


@pytest.mark.parametrize(("expression", "resources"), RESOURCES)
def test_an_expression_is_a_name_or_a_prefix(expression, resources):
    """An expression becomes rules on what it matches."""
    found = parse_auth_file(text(resource=expression)).rules

    assert set(resources) == {str(rule.resource) for rule in found}
    assert {"User:aladdin"} == {rule.principal for rule in found}


@pytest.mark.parametrize("expression", WRONG)
def test_another_expression_is_an_error(expression):
    """An expression that is neither a name nor a prefix is an error that names the field."""
    with pytest.raises(AuthFileError, match=r"^permissions\[0\]\.resource: "):
        parse_auth_file(text(resource=expression))


def test_operations():
    """Write includes Read, deletions and settings; on the global settings only these count."""
    found = parse_auth_file(text(operation="Write")).rules

    assert WRITE == {rule.operation for rule in found if str(rule.resource) == "subject *"}
    assert CONFIG == {rule.operation for rule in found if str(rule.resource) == "registry"}
    assert READ == {rule.operation for rule in parse_auth_file(text(resource="Subject:a$")).rules}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"users": [USER, USER], "permissions": []}, "users[1].username: the user 'aladdin' appears twice"),
        ({"users": [USER | {"algorithm": "md5"}]}, "users[0]: expected one of the algorithms sha1"),
        ({"users": [USER | {"password": "x"}]}, "users[0].password: unknown field"),
        ({"users": [], "permissions": [], "roles": []}, "roles: unknown field; expected users, permissions"),
        (
            {"permissions": [{"username": "a", "operation": "Admin", "resource": ""}]},
            "permissions[0].operation: expected",
        ),
        (
            {"permissions": [{"username": "*", "operation": "Read", "resource": ""}]},
            "permissions[0].username: expected",
        ),
    ],
)
def test_a_wrong_file(content, message):
    """The message says which field is wrong."""
    with pytest.raises(AuthFileError) as caught:
        parse_auth_file(json.dumps(content).encode())

    assert message in str(caught.value)
