"""The auth file: users with their passwords, roles and rules.

    users:
      - name: alice
        password: $scrypt$ln=15,r=8,p=1$…       # `strata user add` writes it
        groups: [orders-team]
    roles:
      - {principal: Group:orders-team, role: owner, on: orders-*}
    rules:                                      # the fields of `/security/acls`
      - {principal: User:alice, permission: DENY, operation: DELETE, resource_type: SUBJECT, resource: orders-value}

Parsing is strict, and a file holds or fails as a whole: a misspelled field could be one that denies. Karapace's auth
file is read as well. Pure; `watched_file.py` reads the file.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from strata.registry.core.rights.rules import Rule, RuleError, parse_new_rule
from strata.registry.features.access import karapace_file
from strata.registry.features.access.fields import AuthFileError, at, check_keys, entries, text_of
from strata.registry.features.access.names import InvalidName, check_name
from strata.registry.features.access.passwords import InvalidHash, PasswordHash, parse_hash
from strata.registry.features.access.roles import expand_role

__all__ = ["MOST_BYTES", "AuthFile", "AuthFileError", "User", "parse_auth_file", "read_content"]

MOST_BYTES = 2 << 20
"""The largest auth file."""

_SECTIONS = ("users", "roles", "rules")


@dataclass(frozen=True, slots=True)
class User:
    """A user who has a password.

    Attributes:
        name: the name, without the prefix `User:`.
        password: the hash of the password.
        groups: the groups of the user, without the prefix `Group:`.
    """

    name: str
    password: PasswordHash
    groups: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class AuthFile:
    """The content of an auth file.

    Attributes:
        users: the users by name.
        rules: its rules, and those of its roles.
    """

    users: Mapping[str, User] = field(default_factory=lambda: MappingProxyType({}))
    rules: tuple[Rule, ...] = ()


def parse_auth_file(data: bytes) -> AuthFile:
    """Return what an auth file says.

    Args:
        data: the file, YAML or JSON in UTF-8.

    Raises:
        AuthFileError: if any of it is invalid.
    """
    content = read_content(data)
    if karapace_file.is_one(content):
        hashes, rules = karapace_file.parse(content)
        return AuthFile(
            MappingProxyType({name: User(name, password) for name, password in hashes.items()}), tuple(rules)
        )
    check_keys("", content, _SECTIONS)
    users: dict[str, User] = {}
    for where, entry in entries(content, "users"):
        user = _user(where, entry)
        if user.name in users:
            raise AuthFileError(f"{where}.name: the user {user.name!r} appears twice")
        users[user.name] = user
    rules = [rule for where, entry in entries(content, "roles") for rule in _rules_of_role(where, entry)]
    for where, entry in entries(content, "rules"):
        with at(where, RuleError):
            rules.append(parse_new_rule(entry))
    return AuthFile(MappingProxyType(users), tuple(rules))


def read_content(data: bytes) -> dict[str, Any]:
    """Return the content of an auth file as mappings, lists and texts, of which only size and syntax are checked.

    Raises:
        AuthFileError: if it is too large, or not a mapping.
    """
    if len(data) > MOST_BYTES:
        raise AuthFileError(f"the file is larger than {MOST_BYTES} bytes")
    from strata.strict_yaml import InvalidText, read_text  # here, because most nodes have no such file

    try:
        content = read_text(data.decode())
    except UnicodeDecodeError as error:
        raise AuthFileError(f"byte {error.start}: expected UTF-8") from None
    except InvalidText as error:
        raise AuthFileError(str(error)) from None
    if not isinstance(content, dict):
        raise AuthFileError(f"expected the sections {', '.join(_SECTIONS)}")
    return content


def _user(where: str, entry: Mapping[str, object]) -> User:
    check_keys(where, entry, ("name", "password", "groups"))
    with at(f"{where}.name", InvalidName):
        name = check_name(text_of(where, entry, "name"))
    if ":" in name:
        raise AuthFileError(f"{where}.name: expected a name without a colon, which ends the name in Basic credentials")
    with at(f"{where}.password", InvalidHash):
        password = parse_hash(text_of(where, entry, "password"))
    groups = entry.get("groups") or []
    if not isinstance(groups, list):
        raise AuthFileError(f"{where}.groups: expected a list of names")
    with at(f"{where}.groups", InvalidName):
        return User(name, password, frozenset(map(check_name, groups)))


def _rules_of_role(where: str, entry: Mapping[str, object]) -> tuple[Rule, ...]:
    check_keys(where, entry, ("principal", "role", "on"))
    principal, role = (text_of(where, entry, name) for name in ("principal", "role"))
    on = text_of(where, entry, "on") if "on" in entry else None
    with at(where, RuleError):
        return expand_role(role, principal, on)
