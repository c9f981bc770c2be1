"""Decide changes of the configuration: a change is a merge, where absent keeps and null clears."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from compat.levels import Level, Policy
from registry import errors
from registry.effective import config_in_force, mode_in_force
from registry.writer import Decision
from storage.records import ConfigKey, ConfigValue, Subject, context_of, encode
from storage.state import State

__all__ = ["delete_config", "set_config"]


def set_config(state: State, scope: Subject | None, change: Mapping[str, Any]) -> Decision[dict[str, Any]]:
    """Return the merged configuration in the shape of a change, and the record that stores it.

    Raises:
        RegistryError: 42203 for a level that is none, 400 for a flag that is none, 42205 in a read-only scope.
    """
    _check_writable(state, scope)
    before = state.configs.get(scope, ConfigValue()).fields
    checked = {
        stored: None if change[name] is None else check(name, change[name])
        for name, (stored, check) in _CHANGEABLE.items()
        if name in change
    }
    after = {name: value for name, value in {**before, **checked}.items() if value is not None}
    answer = {name: after[stored] for name, (stored, _) in _CHANGEABLE.items() if stored in after}
    return Decision(answer, [encode(ConfigKey(scope), ConfigValue(MappingProxyType(after)))])


def delete_config(state: State, scope: Subject | None, default: Level) -> Decision[dict[str, Any]]:
    """Return the configuration that goes, and the tombstone that takes it.

    Raises:
        RegistryError: 40401 when the scope has none, 42205 when it is read-only.
    """
    _check_writable(state, scope)
    own = state.configs.get(scope)
    if scope is None:
        answer = config_in_force(state, None, default)
    elif own is None:
        raise errors.subject_not_found(scope)
    else:
        answer = dict(own.fields)
    return Decision(answer, [encode(ConfigKey(scope))] if own else [])


def _level(_name: str, value: Any) -> str:
    try:
        return Level(str(value).upper()).value
    except ValueError:
        raise errors.invalid_level() from None


def _policy(_name: str, value: Any) -> str | None:
    """An unknown policy counts as none, as the reference has it."""
    policy = str(value).upper()
    return policy if policy in Policy.__members__ else None


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise errors.unreadable_body(f"The property '{name}' takes true, false or null, not {value!r}")
    return value


# Property of a change -> (property as stored, check of its value).
_CHANGEABLE: Mapping[str, tuple[str, Callable[[str, Any], Any]]] = {
    "normalize": ("normalize", _flag),
    "validateNewSchemas": ("validateNewSchemas", _flag),
    "compatibility": ("compatibilityLevel", _level),
    "compatibilityPolicy": ("compatibilityPolicy", _policy),
}


def _check_writable(state: State, scope: Subject | None) -> None:
    if mode_in_force(state, scope).is_read_only:
        raise errors.read_only(scope or "", context_of(scope or ""))
