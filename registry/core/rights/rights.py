"""Rights: what rules together allow. Pure.

A denial that matches wins; otherwise a permission that matches allows; otherwise nothing does. As in Kafka, READ,
WRITE, DELETE and ALTER include DESCRIBE, ALTER_CONFIGS includes DESCRIBE_CONFIGS, and ALL includes everything, but a
denial of DESCRIBE denies no READ. Superusers may do everything, whatever the rules say.

The rules of one principal at one address are compiled once, and then answer in less than a microsecond.
"""

import ipaddress
import itertools
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from strata.registry.core.rights.principal import Principal
from strata.registry.core.rights.rules import (
    ALL_NAMES,
    ANYWHERE,
    EVERY_USER,
    Operation,
    Pattern,
    Permission,
    Resource,
    ResourceType,
    Rule,
)
from strata.storage.records import DEFAULT_CONTEXT

__all__ = ["PASSED", "Rights", "Verdict", "View"]

_INCLUDED_IN: Mapping[Operation, frozenset[Operation]] = MappingProxyType(
    {
        Operation.DESCRIBE: frozenset({Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER}),
        Operation.DESCRIBE_CONFIGS: frozenset({Operation.ALTER_CONFIGS}),
    }
)
"""The operations whose permission is also one for the operation."""

_DEFAULT_PREFIX = f":{DEFAULT_CONTEXT}:"
_MOST_VIEWS = 10_000
_NUMBERS = itertools.count(1)


class Verdict(NamedTuple):
    """Whether an operation is allowed, and the rule that decided; None if no rule matches, or a superuser asks."""

    allowed: bool
    rule: Rule | None = None


PASSED = Verdict(True)
"""The verdict for superusers, and for what needs no right."""

_NOTHING = Verdict(False)


class View:
    """The rights of one principal at one address.

    Attributes:
        number: a number that no other view in this process has; caches use it as a part of their keys.
        superuser: whether the principal may do everything.
        is_empty: whether the principal may do nothing, because no rule is about it.

    Args:
        rules: the rules that match the principal and the address.
        superuser: whether the principal may do everything.
    """

    def __init__(self, rules: Iterable[Rule], *, superuser: bool = False) -> None:
        self.number = next(_NUMBERS)
        self._rules = tuple(rules)
        self.superuser = superuser
        self.is_empty = not self._rules and not superuser
        self._matchers: dict[tuple[Operation, ResourceType], tuple[_Matcher, _Matcher]] = {}

    def decide(self, operation: Operation, resource_type: ResourceType, name: str = "") -> Verdict:
        """Return whether the principal may do something.

        Args:
            operation: what it wants to do.
            resource_type: the type of the resource.
            name: the name of the KEK, or the qualified name of the subject.
        """
        if self.superuser:
            return PASSED
        denied, allowed = self._matchers.get((operation, resource_type)) or self._compiled(operation, resource_type)
        if resource_type is ResourceType.SUBJECT:
            name = _full(name)
        if (rule := denied.match(name)) is not None:
            return Verdict(False, rule)
        rule = allowed.match(name)
        return _NOTHING if rule is None else Verdict(True, rule)

    def allows_all(self, operation: Operation, resource_type: ResourceType, prefix: str = "") -> bool:
        """Return whether the principal may do something with every resource whose name begins with a prefix.

        Args:
            operation: what it wants to do.
            resource_type: the type of the resources.
            prefix: the prefix, for subjects with the context; empty for all. A denial of anything makes this False.
        """
        if self.superuser:
            return True
        denied, allowed = self._matchers.get((operation, resource_type)) or self._compiled(operation, resource_type)
        return denied.is_empty and allowed.matches_all(prefix)

    def allows_some(self, operation: Operation, resource_type: ResourceType) -> bool:
        """Return whether a rule allows the principal something with at least some names, unless others deny those."""
        if self.superuser:
            return True
        _, allowed = self._matchers.get((operation, resource_type)) or self._compiled(operation, resource_type)
        return not allowed.is_empty

    def _compiled(self, operation: Operation, resource_type: ResourceType) -> "tuple[_Matcher, _Matcher]":
        about = [rule for rule in self._rules if rule.resource.type is resource_type]
        denying = {operation, Operation.ALL}
        allowing = denying | _INCLUDED_IN.get(operation, frozenset())
        made = (
            _Matcher(rule for rule in about if rule.permission is Permission.DENY and rule.operation in denying),
            _Matcher(rule for rule in about if rule.permission is Permission.ALLOW and rule.operation in allowing),
        )
        self._matchers[operation, resource_type] = made
        return made


class _Matcher:
    """Rules about resources of one type, by name."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._every: Rule | None = None
        self._names: dict[str, Rule] = {}
        self._by_prefix: dict[str, Rule] = {}
        for rule in sorted(rules):
            resource = rule.resource
            name = _full(resource.name) if resource.type is ResourceType.SUBJECT else resource.name
            if resource.pattern is Pattern.PREFIXED:
                self._by_prefix.setdefault(name, rule)
            elif resource.name == ALL_NAMES:
                self._every = self._every or rule
            else:
                self._names.setdefault(name, rule)
        self._prefixes = tuple(self._by_prefix)
        self.is_empty = not (self._every or self._names or self._prefixes)

    def match(self, name: str) -> Rule | None:
        """Return a rule that matches a name; None if none does."""
        if self._every is not None:
            return self._every
        if (matching := self._names.get(name)) is not None:
            return matching
        if self._prefixes and name.startswith(self._prefixes):
            return next(rule for prefix, rule in self._by_prefix.items() if name.startswith(prefix))
        return None

    def matches_all(self, prefix: str) -> bool:
        """Return whether one rule matches every name that begins with a prefix."""
        return self._every is not None or bool(self._prefixes and prefix.startswith(self._prefixes))


class Rights:
    """What some rules allow.

    Args:
        rules: the rules.
        superusers: the names (`User:NAME`, `Group:NAME`) of principals that may do everything.
    """

    def __init__(self, rules: Iterable[Rule], superusers: Iterable[str] = ()) -> None:
        self._by_principal: dict[str, list[Rule]] = {}
        self._superusers = frozenset(superusers)
        self._knows_hosts = False
        for rule in rules:
            self._by_principal.setdefault(rule.principal, []).append(rule)
            self._knows_hosts |= rule.host != ANYWHERE
        self._views: dict[tuple[Principal, str | None], View] = {}
        self._by_rules: dict[frozenset[Rule], View] = {}
        self._unlimited = View((), superuser=True)

    def view(self, principal: Principal, host: str | None) -> View:
        """Return the rights of a principal at an address; principals with the same rules share one view.

        Args:
            principal: the principal.
            host: the client's address; None if it is unknown, which matches all denials and no permission by address.
        """
        key = (principal, host if self._knows_hosts else None)
        view = self._views.get(key)
        if view is None:
            if len(self._views) >= _MOST_VIEWS:
                self._views.clear()
                self._by_rules.clear()
            view = self._views[key] = self._viewed(principal, host)
        return view

    def decide(self, principal: Principal, operation: Operation, resource: Resource, host: str | None) -> Verdict:
        """Return whether a principal at an address may do something with a resource, whose name is taken literally."""
        return self.view(principal, host).decide(operation, resource.type, resource.name)

    def _viewed(self, principal: Principal, host: str | None) -> View:
        if not self._superusers.isdisjoint(principal.names):
            return self._unlimited
        named = [rule for name in principal.names for rule in self._by_principal.get(name, ())]
        every = () if EVERY_USER in principal.names else self._by_principal.get(EVERY_USER, ())
        named += [rule for rule in every if principal.user is not None or rule.permission is Permission.DENY]
        matching = frozenset(rule for rule in named if _is_at(rule, host))
        if matching not in self._by_rules:
            self._by_rules[matching] = View(matching)
        return self._by_rules[matching]


def _is_at(rule: Rule, host: str | None) -> bool:
    if rule.host == ANYWHERE:
        return True
    try:
        address = ipaddress.ip_address(host or "")
    except ValueError:
        return rule.permission is Permission.DENY
    mapped = getattr(address, "ipv4_mapped", None)  # what a socket for both families calls an IPv4 client
    return (mapped or address) in ipaddress.ip_network(rule.host)


def _full(name: str) -> str:
    """Return a subject name or prefix with its context, also the default one, so that prefixes compare."""
    return name if name[:2] == ":." else _DEFAULT_PREFIX + name
