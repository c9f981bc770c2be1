"""Configuration and mode as pages show them: what is in force for a scope, and which scope sets it."""

from typing import NamedTuple

from strata.registry.api.views.view import Page
from strata.registry.core.effective_settings import fields_in_force, mode_in_force, mode_source
from strata.registry.core.subject_names import GLOBAL_SCOPE, is_scope_name
from strata.storage.records import Subject, context_of

__all__ = ["Setting", "settings_in_force"]

_MEANINGS = {
    "compatibilityLevel": "which changes a new version may make",
    "compatibilityPolicy": "how strictly differences count",
    "compatibilityGroup": "the property that must be equal for versions to be compared",
    "normalize": "bring each new schema into its normal form",
    "validateFields": "reject reserved field names, and what protoc refuses",
    "validateNewSchemas": "apply the rules for new schemas",
    "validateRules": "reject invalid rule sets",
    "alias": "the subject that this name stands for",
    "aliasForDeks": "the subject whose encryption keys this name stands for",
    "defaultMetadata": "metadata below that of each schema",
    "overrideMetadata": "metadata above that of each schema",
    "defaultRuleSet": "rules below those of each schema",
    "overrideRuleSet": "rules above those of each schema",
}


class Setting(NamedTuple):
    """A setting in force.

    Attributes:
        name: its name on the wire.
        value: its value.
        source: who sets it, in words.
        meaning: what it means.
        is_own: whether the scope itself sets it.
    """

    name: str
    value: object
    source: str
    meaning: str
    is_own: bool


def settings_in_force(page: Page, scope: Subject | None) -> list[Setting]:
    """Return the level, the mode, and all other settings that are in force for a scope.

    Args:
        page: the page.
        scope: the subject or context; None means the registry.
    """
    state = page.state
    fields = fields_in_force(state, scope)
    level, by = fields.pop(
        "compatibilityLevel", (page.exchange.service.settings.compatibility_level.value, GLOBAL_SCOPE)
    )
    is_default = by == GLOBAL_SCOPE and not state.configs.get(Subject(GLOBAL_SCOPE))
    source = "the service's own default" if is_default else _source(Subject(by) if by else None, scope)
    settings = [Setting("compatibilityLevel", level, source, _MEANINGS["compatibilityLevel"], by == scope)]
    settings += (
        Setting(name, value, _source(by, scope), _MEANINGS.get(name, ""), by == scope)
        for name, (value, by) in sorted(fields.items())
    )
    return [*settings, _mode(page, scope)]


def _mode(page: Page, scope: Subject | None) -> Setting:
    by = mode_source(page.state, scope)
    is_set = by in page.state.modes
    source = _source(by, scope) if is_set else "the service's own default"
    meaning = "which operations are allowed"
    return Setting("mode", mode_in_force(page.state, scope).value, source, meaning, is_set and by == scope)


def _source(by: Subject | None, scope: Subject | None) -> str:
    if by is None or by == GLOBAL_SCOPE:
        return "the registry"
    if is_scope_name(by):
        return f"the context {context_of(by)}"
    return "this subject" if by == scope else by
