"""The contexts: how many subjects and schemas each has."""

from collections.abc import Iterator
from typing import NamedTuple

from strata.registry.api.views.paging import paged
from strata.registry.api.views.view import Page
from strata.registry.core.lookup import count_subjects, each_subject
from strata.registry.core.rights.rules import Operation, ResourceType
from strata.storage.records import DEFAULT_CONTEXT, Subject

__all__ = ["show_contexts"]


class _Context(NamedTuple):
    """What the list shows of a context; the number of schemas only to who may see all of them."""

    name: str
    scope: str
    subjects: int
    schemas: int | None


def show_contexts(page: Page) -> dict[str, object]:
    """Return the contexts that the person may know of."""
    names = page.state.context_names()
    if not page.access.may(Operation.DESCRIBE, ResourceType.REGISTRY):
        names = [name for name in names if name == DEFAULT_CONTEXT or next(_subjects(page, name), None) is not None]
    shown = paged(page, names)
    return {"contexts": [_context(page, name) for name in shown.items], "paged": shown}


def _context(page: Page, name: str) -> _Context:
    sees_all = page.access.is_unlimited
    count = count_subjects(page.state, f":{name}:") if sees_all else sum(1 for _ in _subjects(page, name))
    seen = page.access.may_all(Operation.READ, ResourceType.SUBJECT, f":{name}:")
    schemas = len(page.state.context(name).schemas) if seen else None
    return _Context(name, f":{name}:", count, schemas)


def _subjects(page: Page, name: str) -> Iterator[Subject]:
    visible = page.exchange.describable
    return each_subject(page.state, f":{name}:", include_deleted=True, deleted_only=False, visible=visible)
