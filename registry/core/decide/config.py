"""Decide changes of the configuration: a change is merged, an absent property keeps its value and null removes it."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import cast

from strata.compat.levels import Level, Policy
from strata.registry.core import errors
from strata.registry.core.decide.decision import Decision
from strata.registry.core.effective_settings import check_writable, config_answer, config_in_force
from strata.registry.core.rule_sets import check_rule_set
from strata.storage.record_json import encode
from strata.storage.records import CONFIG_FIELDS, ConfigKey, ConfigValue, RuleSet, Subject
from strata.storage.state import State

__all__ = ["delete_config", "set_config"]


def set_config(state: State, scope: Subject | None, change: Mapping[str, object]) -> Decision[dict[str, object]]:
    """Return the merged configuration in the form of a change, and the record that stores it.

    Args:
        state: the State to decide on.
        scope: a subject or context; None for the registry as a whole.
        change: the changed properties by their JSON names.

    Raises:
        RegistryError: 42203 for an unknown level; 42210 for an invalid rule set; 42205 if the
            scope is read-only.
    """
    before = state.configs.get(scope, ConfigValue()).fields
    checked = {
        field: _CHECKS[name](value) if name in _CHECKS and value is not None else value
        for name, value in change.items()
        if (field := "compatibilityLevel" if name == _LEVEL else name) in CONFIG_FIELDS
    }
    after = {name: value for name, value in {**before, **checked}.items() if value not in (None, "", {})}
    if after.get("validateRules", config_in_force(state, scope).validate_rules):
        for name in _RULE_SETS & checked.keys() & after.keys():
            check_rule_set(cast("RuleSet", after[name]))
    check_writable(state, scope)
    # The level has another name in a change and its answer than in the stored configuration.
    answer = {_LEVEL if name == "compatibilityLevel" else name: after[name] for name in CONFIG_FIELDS if name in after}
    return Decision(answer, [encode(ConfigKey(scope), ConfigValue(MappingProxyType(after)))])


def delete_config(state: State, scope: Subject | None, default: Level) -> Decision[dict[str, object]]:
    """Return the deleted configuration, and the tombstone that deletes it.

    Args:
        state: the State to decide on.
        scope: a subject or context; None for the registry as a whole.
        default: the level of scopes that have none.

    Raises:
        RegistryError: 40401 if the scope has no configuration; 42205 if it is read-only.
    """
    own = state.configs.get(scope)
    if own is None and scope is not None:
        raise errors.subject_not_found(scope)
    check_writable(state, scope)
    answer = dict(own.fields) if own and scope is not None else config_answer(state, None, default)
    return Decision(answer, [encode(ConfigKey(scope))] if own else [])


def _level(value: object) -> str:
    try:
        return Level(str(value).upper()).value
    except ValueError:
        raise errors.invalid_level() from None


def _policy(value: object) -> str | None:
    """Return the policy in upper case; an unknown one counts as none, as in the reference."""
    policy = str(value).upper()
    return policy if policy in Policy.__members__ else None


# Checks of a change's values; their types were checked before.
_LEVEL = "compatibility"
_CHECKS: Mapping[str, Callable[[object], str | None]] = {_LEVEL: _level, "compatibilityPolicy": _policy}
_RULE_SETS = {"defaultRuleSet", "overrideRuleSet"}
