"""The configuration and mode in force for a subject: its own, its context's, the registry's or the default.

Inheritance follows the reference (docs/compatibility.md): a subject with its own configuration takes the level from
that alone, and only some flags fall through to the registry-wide configuration.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TypedDict, cast

from strata.compat.levels import Level, Policy
from strata.registry.core import errors
from strata.registry.core.subject_names import GLOBAL_SCOPE
from strata.storage.records import DEFAULT_CONTEXT, Metadata, RuleSet, Subject, context_of
from strata.storage.state import State

__all__ = [
    "ConfigFields",
    "EffectiveConfig",
    "Mode",
    "check_writable",
    "config_answer",
    "config_in_force",
    "fields_in_force",
    "mode_in_force",
    "mode_source",
]

# Fields that a subject without its own value takes from the registry-wide configuration.
_FALL_THROUGH = (
    "normalize",
    "validateFields",
    "validateNewSchemas",
    "validateRules",
    "compatibilityPolicy",
    "compatibilityGroup",
)


class ConfigFields(TypedDict, total=False):
    """The fields of a stored configuration; `record_json` has checked their types when it read the record."""

    alias: str
    aliasForDeks: str
    normalize: bool
    validateFields: bool
    validateNewSchemas: bool
    validateRules: bool
    compatibilityLevel: str
    compatibilityPolicy: str
    compatibilityGroup: str
    defaultMetadata: Metadata
    overrideMetadata: Metadata
    defaultRuleSet: RuleSet
    overrideRuleSet: RuleSet


@dataclass(frozen=True, slots=True)
class EffectiveConfig:
    """The configuration in force for a subject; `config_in_force` has the defaults of what is not set.

    Attributes:
        level: the compatibility level; None if none is set, which means the service's default.
        policy: how strictly differences count.
        group: the metadata property whose value divides the versions into compatibility groups.
        normalize: whether to normalize every schema.
        validate_fields: whether to reject reserved field names.
        validate_new_schemas: whether to apply the rules for new schemas.
        validate_rules: whether to reject invalid rule sets.
        default_metadata: metadata below that of each schema.
        override_metadata: metadata above that of each schema.
        default_rules: rules below those of each schema.
        override_rules: rules above those of each schema.
    """

    level: Level | None
    policy: Policy
    group: str | None
    normalize: bool
    validate_fields: bool
    validate_new_schemas: bool
    validate_rules: bool
    default_metadata: Metadata | None
    override_metadata: Metadata | None
    default_rules: RuleSet | None
    override_rules: RuleSet | None

    @property
    def adds_to_contracts(self) -> bool:
        """Whether it adds metadata or rules to each schema."""
        return bool(self.default_metadata or self.override_metadata or self.default_rules or self.override_rules)


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


def config_in_force(state: State, subject: Subject | None) -> EffectiveConfig:
    """Return the configuration in force for a subject; None means the registry as a whole."""
    if not state.configs:
        return _NOTHING_SET
    fields = _fields(state, subject)
    return _effective(fields) if fields else _NOTHING_SET


def _effective(fields: ConfigFields) -> EffectiveConfig:
    level, policy = fields.get("compatibilityLevel"), fields.get("compatibilityPolicy")
    return EffectiveConfig(
        level=Level.__members__.get(level or ""),
        policy=Policy.__members__.get(policy or "", Policy.STRICT),
        group=fields.get("compatibilityGroup"),
        normalize=fields.get("normalize", False),
        validate_fields=fields.get("validateFields", False),
        validate_new_schemas=fields.get("validateNewSchemas", True),
        validate_rules=fields.get("validateRules", True),
        default_metadata=fields.get("defaultMetadata"),
        override_metadata=fields.get("overrideMetadata"),
        default_rules=fields.get("defaultRuleSet"),
        override_rules=fields.get("overrideRuleSet"),
    )


_NOTHING_SET = _effective({})


def config_answer(state: State, subject: Subject | None, default: Level) -> dict[str, object]:
    """Return the configuration in force as JSON, which always has a level; `default` is the service's own level."""
    fields = _fields(state, subject)
    return {**fields, "compatibilityLevel": fields.get("compatibilityLevel", default.value)}


def fields_in_force(state: State, subject: Subject | None) -> dict[str, tuple[object, Subject | None]]:
    """Return the configuration in force, each field that is set with the scope that sets it.

    Args:
        state: the State.
        subject: the subject or context; None means the registry as a whole.
    """
    fields: dict[str, tuple[object, Subject | None]] = {}
    own = state.configs.get(subject) if subject else None
    wider = next((scope for scope in _wider_scopes(subject) if state.configs.get(scope)), None)
    inherited = state.configs.get(wider)
    for name, value in (inherited.fields if inherited else {}).items():
        if own is None or name in _FALL_THROUGH:
            fields[name] = value, wider
    return fields | {name: (value, subject) for name, value in (own.fields if own else {}).items()}


def mode_source(state: State, subject: Subject | None) -> Subject | None:
    """Return the scope whose mode `mode_in_force` returns; the subject itself if none is set."""
    if mode_in_force(state, subject) == Mode.READONLY_OVERRIDE:
        return None
    scopes = (subject, *_wider_scopes(subject))
    return next((scope for scope in scopes if state.modes.get(scope) in Mode.__members__), subject)


def mode_in_force(state: State, subject: Subject | None) -> Mode:
    """Return the mode of a subject; None means the registry as a whole."""
    if not state.modes:
        return Mode.READWRITE
    if state.modes.get(None, state.modes.get(Subject(GLOBAL_SCOPE))) == Mode.READONLY_OVERRIDE:
        return Mode.READONLY_OVERRIDE
    for scope in (subject, *_wider_scopes(subject)):
        mode = state.modes.get(scope)
        if mode is not None and mode in Mode.__members__:
            return Mode(mode)
    return Mode.READWRITE


def check_writable(state: State, subject: Subject | None) -> Mode:
    """Return the mode of a subject that is not read-only; None means the registry as a whole.

    Raises:
        RegistryError: 42205 if it is read-only.
    """
    mode = mode_in_force(state, subject)
    if mode.is_read_only:
        raise errors.read_only(subject or "")
    return mode


def _wider_scopes(subject: Subject | None) -> Iterator[Subject | None]:
    context = context_of(subject or "")
    yield None if context == DEFAULT_CONTEXT else Subject(f":{context}:")
    yield Subject(GLOBAL_SCOPE)


def _fields(state: State, subject: Subject | None) -> ConfigFields:
    fields = {name: value for name, (value, _) in fields_in_force(state, subject).items()}
    return cast("ConfigFields", fields)
