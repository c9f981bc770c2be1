"""Karapace's auth file, so that its users keep their passwords and permissions.

A permission of Karapace is a regular expression that matches the beginning of `Config:` or `Subject:NAME`
(`src/karapace/core/auth.py` of Karapace 6). Rules of this registry know names and prefixes, so only expressions that
mean one of those are accepted; all others are an error, and never more or less than what was granted. One exception
grants less: a dot matches itself only.

| operation | as rules |
| --- | --- |
| Read | READ and DESCRIBE_CONFIGS |
| Write | these, WRITE, DELETE and ALTER_CONFIGS |
"""

import re
from collections.abc import Mapping

from strata.registry.core.rights.rules import (
    ANYWHERE,
    Operation,
    Resource,
    ResourceType,
    Rule,
    RuleError,
    parse_resource,
)
from strata.registry.features.access.fields import AuthFileError, at, check_keys, entries, text_of
from strata.registry.features.access.names import InvalidName, check_name
from strata.registry.features.access.passwords import InvalidHash, PasswordHash, karapace_hash

__all__ = ["is_one", "parse"]

_READ = (Operation.READ, Operation.DESCRIBE_CONFIGS)
_WRITE = (*_READ, Operation.WRITE, Operation.DELETE, Operation.ALTER_CONFIGS)
_OPERATIONS = {"Read": _READ, "Write": _WRITE}
_CONFIG = {Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS}
_SUBJECT, _GLOBAL = "Subject:", "Config:"
_PLAIN = re.compile(r"(?:[\w:./% -]|\\[^\w\s])*")
_EXPECTED = f"expected .*, {_GLOBAL}, {_SUBJECT}NAME$, {_SUBJECT}PREFIX or {_SUBJECT}PREFIX.*"


def is_one(content: Mapping[str, object]) -> bool:
    """Return whether the content of an auth file has Karapace's form."""
    users = content.get("users")
    return "permissions" in content or (
        isinstance(users, list) and any(isinstance(user, dict) and "username" in user for user in users)
    )


def parse(content: Mapping[str, object]) -> tuple[dict[str, PasswordHash], list[Rule]]:
    """Return the users with their passwords, and the rules.

    Raises:
        AuthFileError: if any of it is invalid, or a permission is neither a name nor a prefix.
    """
    check_keys("", content, ("users", "permissions"))
    users: dict[str, PasswordHash] = {}
    for where, entry in entries(content, "users"):
        check_keys(where, entry, ("username", "algorithm", "salt", "password_hash"))
        with at(f"{where}.username", InvalidName):
            name = check_name(text_of(where, entry, "username"))
        if name in users:
            raise AuthFileError(f"{where}.username: the user {name!r} appears twice")
        algorithm, salt, digest = (text_of(where, entry, key) for key in ("algorithm", "salt", "password_hash"))
        with at(where, InvalidHash):
            users[name] = karapace_hash(algorithm, salt, digest)
    return users, [rule for where, entry in entries(content, "permissions") for rule in _rules(where, entry)]


def _rules(where: str, entry: Mapping[str, object]) -> list[Rule]:
    check_keys(where, entry, ("username", "operation", "resource"))
    with at(f"{where}.username", InvalidName):
        name = check_name(text_of(where, entry, "username"))
    operation = text_of(where, entry, "operation")
    if operation not in _OPERATIONS:
        raise AuthFileError(f"{where}.operation: expected Read or Write, got {operation!r}")
    with at(f"{where}.resource", RuleError):
        resources = _resources(text_of(where, entry, "resource"))
    return [
        Rule(f"User:{name}", ANYWHERE, resource, granted)
        for resource in resources
        for granted in _OPERATIONS[operation]
        if resource.type is ResourceType.SUBJECT or granted in _CONFIG
    ]


def _resources(expression: str) -> list[Resource]:
    """Return what an expression matches.

    Raises:
        RuleError: if that is neither one name, nor all names with a prefix, nor the global configuration.
    """
    everything = parse_resource(ResourceType.SUBJECT, "*")
    if expression in ("", ".*", "^.*", ".*$", "^.*$"):
        return [everything, Resource(ResourceType.REGISTRY)]
    text = expression.removeprefix("^")
    if text.removesuffix("$").removesuffix(".*") in (_GLOBAL, _GLOBAL[:-1]):
        return [Resource(ResourceType.REGISTRY)]
    is_exact = text.endswith("$") and not text.endswith((".*$", r"\$"))
    name = text.removesuffix("$") if is_exact else text.removesuffix(".*$").removesuffix(".*")
    if not name.startswith(_SUBJECT) or not _PLAIN.fullmatch(name):
        raise RuleError(f"{expression!r} is neither a name nor a prefix; {_EXPECTED}")
    plain = re.sub(r"\\(.)", r"\1", name.removeprefix(_SUBJECT))
    if not plain:
        return [everything]
    if "*" in plain:
        raise RuleError(f"{expression!r} names a subject with *; {_EXPECTED}")
    return [parse_resource(ResourceType.SUBJECT, plain if is_exact else plain + "*")]
