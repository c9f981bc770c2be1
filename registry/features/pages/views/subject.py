"""The page of a subject: its versions as a time line, and all that is kept about it."""

from strata.compat.entities import Entity
from strata.registry.api.views.paging import paged
from strata.registry.api.views.subject import asked_subject
from strata.registry.api.views.view import Page
from strata.registry.core.errors import RegistryError
from strata.registry.core.lookup import versions_of
from strata.registry.core.parsing import inline_tags
from strata.registry.core.rights.rules import Operation, ResourceType
from strata.registry.core.rule_sets import PHASES
from strata.registry.core.subject_names import aliased, subject_name
from strata.registry.features.pages.views.settings_in_force import settings_in_force
from strata.storage.records import Subject
from strata.storage.state import SchemaVersion

__all__ = ["contract_of", "show_subject"]

_MOST_TAGS = 200


def show_subject(page: Page) -> dict[str, object]:
    """Return what the page of a subject shows.

    Raises:
        RegistryError: 40401 if it has no version, not even a deleted one.
    """
    name, state = asked_subject(page), page.state
    every = versions_of(state, name, include_deleted=True)
    readable = page.exchange.readable(name)
    latest = state.latest(name) or every[-1]
    asked = subject_name(page.names["subject"])
    sees_settings = page.access.may(Operation.DESCRIBE_CONFIGS, ResourceType.SUBJECT, name)
    return {
        "name": name,
        "alias": asked if asked != name else None,
        "versions": paged(page, reversed(every)),
        "count": len(every),
        "deleted": state.latest(name) is None,
        "readable": readable,
        "has_usage": "usage" in page.exchange.service.features,
        "latest": latest,
        "settings": settings_in_force(page, name) if sees_settings else None,
        "aliases": _aliases(page, name),
        "associations": state.associations.of_subject(name),
        "contract": contract_of(page, latest) if readable else None,
    }


def contract_of(page: Page, entry: SchemaVersion) -> dict[str, object]:
    """Return the metadata, the rules and the tags of a version, as pages show them."""
    metadata = entry.schema.value.metadata or {}
    rules = entry.schema.value.rule_set or {}
    return {
        "properties": sorted((metadata.get("properties") or {}).items()),
        "sensitive": frozenset(metadata.get("sensitive") or ()),
        "path_tags": sorted((metadata.get("tags") or {}).items()),
        "rules": [(phase, rule) for phase in PHASES for rule in rules.get(phase) or ()],
        "tags": _tags(page, entry),
    }


def _tags(page: Page, entry: SchemaVersion) -> list[tuple[Entity, tuple[str, ...]]]:
    try:
        tags_by_entity = inline_tags(page.state, entry, page.exchange.limits.started())
    except RegistryError:
        return []
    return [(entity, tuple(tags)) for entity, tags in list(tags_by_entity.items())[:_MOST_TAGS]]


def _aliases(page: Page, name: Subject) -> list[Subject]:
    """Return the names that stand for a subject, of those that the person may know of."""
    aliases = (alias for alias, config in page.state.configs.items() if alias and config.get("alias"))
    return sorted(alias for alias in aliases if aliased(page.state, alias) == name and page.exchange.describable(alias))
