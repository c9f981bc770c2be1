"""Configuration and mode: of the registry, and of each context and subject that has its own."""

from strata.registry.api.views.paging import paged
from strata.registry.api.views.view import Page
from strata.registry.core.rights.rules import Operation, ResourceType
from strata.registry.core.subject_names import GLOBAL_SCOPE, is_scope_name, scope
from strata.registry.features.pages.views.settings_in_force import settings_in_force

__all__ = ["show_configuration", "show_scope"]


def show_configuration(page: Page) -> dict[str, object]:
    """Return the settings of the registry, and the scopes that have some of their own."""
    state = page.state
    configured = (name for name, config in state.configs.items() if config.fields)
    set_by = {name for name in (*configured, *state.modes) if name is not None and name != GLOBAL_SCOPE}
    seen = (name for name in sorted(set_by) if _sees(page, name))
    shown = paged(page, seen)
    rows = [(name, is_scope_name(name), state.configs.get(name), state.modes.get(name)) for name in shown.items]
    sees_registry = page.access.may(Operation.DESCRIBE_CONFIGS, ResourceType.REGISTRY)
    return {"settings": settings_in_force(page, None) if sees_registry else None, "rows": rows, "paged": shown}


def show_scope(page: Page) -> dict[str, object]:
    """Return the settings in force for a subject or a context."""
    name = scope(page.names["subject"])
    return {
        "scope": name or "",
        "is_context": not name or is_scope_name(name),
        "settings": settings_in_force(page, name),
    }


def _sees(page: Page, name: str) -> bool:
    return page.access.is_unlimited or page.access.may(Operation.DESCRIBE_CONFIGS, ResourceType.SUBJECT, name)
