"""The configuration and mode in force for a subject: its own, its context's, the registry's or the default.

Inheritance follows the reference (docs/compatibility.md): a subject with its own configuration takes the level from
that alone, and only some flags fall through to the registry-wide configuration.
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any

from strata.compat.levels import Level, Policy
from strata.registry import errors
from strata.registry.subject_names import GLOBAL_SCOPE
from strata.storage.records import DEFAULT_CONTEXT, Subject, context_of
from strata.storage.state import State

__all__ = [
    "UNSUPPORTED_POLICY",
    "Mode",
    "config_in_force",
    "flag_in_force",
    "level_in_force",
    "mode_in_force",
    "policy_in_force",
]

UNSUPPORTED_POLICY = "LOGICAL"  # the reference's third policy

# Fields that a subject without its own value takes from the registry-wide configuration.
_FALL_THROUGH = (
    "normalize",
    "validateFields",
    "validateNewSchemas",
    "validateRules",
    "compatibilityPolicy",
    "compatibilityGroup",
)


class Mode(StrEnum):
    """The mode of a scope, which says which operations it allows."""

    READWRITE = "READWRITE"
    READONLY = "READONLY"
    READONLY_OVERRIDE = "READONLY_OVERRIDE"
    IMPORT = "IMPORT"
    FORWARD = "FORWARD"

    @property
    def is_read_only(self) -> bool:
        """Whether registrations, deletions and configuration changes are rejected."""
        return self in (Mode.READONLY, Mode.READONLY_OVERRIDE)

    @property
    def is_import(self) -> bool:
        """Whether clients choose ids and versions."""
        return self in (Mode.IMPORT, Mode.FORWARD)


def config_in_force(state: State, subject: Subject | None, default: Level) -> dict[str, Any]:
    """Return the configuration in force, which always has a level.

    Args:
        state: the State.
        subject: the subject; None for the registry as a whole.
        default: the level if none is set.
    """
    own = state.configs.get(subject) if subject else None
    wider = [config for scope in _wider_scopes(subject) if (config := state.configs.get(scope))]
    inherited = wider[0].fields if wider else {}
    fields = {**inherited} if own is None else {**_flags(inherited), **own.fields}
    return {**fields, "compatibilityLevel": fields.get("compatibilityLevel", default.value)}


def level_in_force(state: State, subject: Subject, default: Level) -> Level:
    """Return the compatibility level of a subject; an unknown one in the log counts as the default."""
    try:
        return Level(config_in_force(state, subject, default)["compatibilityLevel"])
    except ValueError:
        return default


def flag_in_force(state: State, subject: Subject | None, name: str, *, default: bool) -> bool:
    """Return a boolean field of the configuration in force, or `default` if it is not set."""
    value = config_in_force(state, subject, Level.BACKWARD).get(name)
    return value if isinstance(value, bool) else default


def policy_in_force(state: State, subject: Subject) -> Policy:
    """Return the compatibility policy of a subject: how strictly differences count.

    Raises:
        RegistryError: 42203 if another registry's log sets a policy with checks that this registry lacks.
    """
    policy = config_in_force(state, subject, Level.BACKWARD).get("compatibilityPolicy")
    if policy == UNSUPPORTED_POLICY:
        raise errors.unsupported_policy(policy)
    return Policy(policy) if isinstance(policy, str) and policy in Policy.__members__ else Policy.STRICT


def mode_in_force(state: State, subject: Subject | None) -> Mode:
    """Return the mode of a subject; None means the registry as a whole."""
    if state.modes.get(None, state.modes.get(Subject(GLOBAL_SCOPE))) == Mode.READONLY_OVERRIDE:
        return Mode.READONLY_OVERRIDE
    for scope in (subject, *_wider_scopes(subject)):
        mode = state.modes.get(scope)
        if mode is not None and mode in Mode.__members__:
            return Mode(mode)
    return Mode.READWRITE


def _wider_scopes(subject: Subject | None) -> Iterator[Subject | None]:
    context = context_of(subject or "")
    yield None if context == DEFAULT_CONTEXT else Subject(f":{context}:")
    yield Subject(GLOBAL_SCOPE)


def _flags(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: fields[name] for name in _FALL_THROUGH if name in fields}
