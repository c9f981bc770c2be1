"""Decide changes of the rules of access in the log. A mode does not protect them: they must be changeable always."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from strata.registry.core.decide.decision import Decision
from strata.registry.core.rights.logged_rules import key_of_rule, rule_of_key
from strata.registry.core.rights.rules import Resource, Rule, RuleError
from strata.storage.record_json import encode
from strata.storage.records import AclValue
from strata.storage.state import State

__all__ = ["RulesChange", "create_rules", "delete_rules", "listed_rules", "set_rules"]


@dataclass(frozen=True, slots=True)
class RulesChange:
    """The rules that a change adds and removes."""

    added: tuple[Rule, ...] = ()
    removed: tuple[Rule, ...] = ()


def create_rules(state: State, rules: Sequence[Rule], now: int) -> Decision[None]:
    """Return the records of those rules that the log does not hold yet.

    Args:
        state: the State to decide on.
        rules: the rules.
        now: the time, in milliseconds since the epoch.
    """
    keys = dict.fromkeys(map(key_of_rule, rules))
    return Decision(None, [encode(key, AclValue(now)) for key in keys if key not in state.acls])


def delete_rules(state: State, matches: Callable[[Rule], bool]) -> Decision[list[Rule]]:
    """Return the rules that are deleted, sorted, and their tombstones.

    Args:
        state: the State to decide on.
        matches: returns whether to delete a rule.
    """
    going = [rule for rule in listed_rules(state) if matches(rule)]
    return Decision(going, [encode(key_of_rule(rule)) for rule in going])


def set_rules(
    state: State, resource: Resource, rules: Sequence[Rule], now: int, *, only: bool
) -> Decision[RulesChange]:
    """Return what a change of the rules of one resource adds and removes, and its records.

    Args:
        state: the State to decide on.
        resource: what all rules are about.
        rules: the rules.
        now: the time, in milliseconds since the epoch.
        only: whether to delete other rules of the log about this very resource.
    """
    held = [rule for rule in listed_rules(state) if rule.resource == resource]
    added = create_rules(state, rules, now)
    removed = delete_rules(state, lambda rule: only and rule.resource == resource and rule not in rules)
    new = tuple(sorted(set(rules) - set(held)))
    return Decision(RulesChange(new, tuple(removed.answer)), [*added.records, *removed.records])


def listed_rules(state: State) -> list[Rule]:
    """Return the rules of the log that this release knows, sorted."""
    rules = []
    for key in state.acls:
        try:
            rules.append(rule_of_key(key))
        except RuleError:
            continue  # a later release has written it
    return sorted(rules)
