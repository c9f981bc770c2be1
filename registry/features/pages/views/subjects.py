"""The list of subjects: filtered, sorted, in pages.

Without filters a page is read from the ordered lists of the State. Filters and other orders go through a table of all
subjects that is kept from State to State.
"""

from collections.abc import Iterable
from itertools import chain, islice
from typing import NamedTuple

from strata.compat.levels import Level
from strata.registry.api.views.paging import paged_from
from strata.registry.api.views.view import Page
from strata.registry.core.effective_settings import Mode, config_in_force, mode_in_force
from strata.registry.core.lookup import each_subject
from strata.registry.core.rights.rules import Operation, ResourceType
from strata.registry.features.pages.subject_table import SORTS, Row, SubjectTable
from strata.storage.records import Subject, context_of
from strata.storage.state import SchemaVersion

__all__ = ["show_places", "show_subjects"]

_FORMATS = ("AVRO", "JSON", "PROTOBUF")
_MOST_PLACES = 50
_table = SubjectTable()
_DELETED = {"": "not deleted", "also": "deleted ones too", "only": "deleted only"}


class _Row(NamedTuple):
    """What the list shows of a subject; None for what the person may not know."""

    name: Subject
    versions: int
    deleted: bool
    latest: SchemaVersion | None
    level: Level | None
    mode: Mode | None


def show_subjects(page: Page) -> dict[str, object]:
    """Return a page of the subjects that a request asks for."""
    paged = paged_from(page, lambda skip: _chosen(page, skip))
    return {
        "rows": [_row(page, name) for name in paged.items],
        "paged": paged,
        "contexts": page.state.context_names() if page.access.is_unlimited else [],
        "formats": _FORMATS,
        "levels": list(Level),
        "deleted": _DELETED,
        "sorts": {name: sort.label for name, sort in SORTS.items()},
    }


def show_places(page: Page) -> dict[str, object]:
    """Return the latest versions of the subjects with a part of a name, as references name them."""
    text, state = page.text("reference_to").rpartition(":")[0] or page.text("reference_to"), page.state
    rows = (row for row in _rows(page, "", text.casefold(), "") if row.is_live and text.casefold() in row.folded)
    names = (row.name for row in rows if page.exchange.readable(row.name))
    latest = (state.latest(name) for name in islice(names, _MOST_PLACES))
    return {"places": [f"{entry.subject}:{entry.version}" for entry in latest if entry]}


def _chosen(page: Page, skip: int) -> Iterable[Subject]:
    """Return the subjects that the request asks for, in its order, after some of them."""
    text, wanted, level = page.text("name").casefold(), page.text("format"), page.text("level")
    order = page.text("sort") if page.text("sort") in SORTS else ""
    if not (text or wanted or level or order):
        return _by_name(page, skip)
    rows = _rows(page, order, text, wanted)
    if context := page.text("context"):
        rows = (row for row in rows if context_of(row.name) == context)
    if (deleted := page.text("deleted")) != "also":
        rows = (row for row in rows if row.is_live == (deleted != "only"))
    if text:
        rows = (row for row in rows if text in row.folded)
    if wanted:
        readable = page.exchange.readable
        rows = (row for row in rows if row.schema_type == wanted and readable(row.name))
    names: Iterable[Subject] = (row.name for row in rows)
    if level:
        names = _with_level(page, names, level)
    if not page.access.is_unlimited:
        names = filter(page.access.describes, names)
    return islice(names, skip, None)


def _by_name(page: Page, skip: int) -> Iterable[Subject]:
    context, deleted = page.text("context"), page.text("deleted")
    return each_subject(
        page.state,
        f":{context}:" if context else ":*:",
        include_deleted=deleted == "also",
        deleted_only=deleted == "only",
        offset=skip,
        visible=page.exchange.describable,
    )


def _rows(page: Page, order: str, text: str, wanted: str) -> Iterable[Row]:
    """Return the rows in an order, without some that lack a part of a name or a format."""
    if order:
        return _table.rows(page.state, order)
    blocks = _table.blocks(page.state)
    fitting = (
        candidate
        for candidate in blocks
        if text in candidate.folded and (not wanted or wanted in candidate.schema_types)
    )
    return chain.from_iterable(block.rows for block in fitting)


def _with_level(page: Page, names: Iterable[Subject], level: str) -> Iterable[Subject]:
    """Return the subjects with a level in force, of those whose settings the person may see."""
    default = page.exchange.service.settings.compatibility_level
    own = {name: config.get("compatibilityLevel") or default for name, config in page.state.configs.items()}
    inherited = {
        context: config_in_force(page.state, Subject(f":{context}:")).level or default
        for context in page.state.contexts
    }
    fitting: Iterable[Subject]
    if level in (default, *inherited.values()):
        fitting = (name for name in names if (own.get(name) or inherited.get(context_of(name), default)) == level)
    else:
        fitting = filter({name for name, own_level in own.items() if own_level == level}.__contains__, names)
    return (name for name in fitting if _sees_settings(page, name))


def _row(page: Page, name: Subject) -> _Row:
    every = page.state.versions(name, include_deleted=True)
    live = [entry for entry in every if not entry.deleted]
    mode = mode_in_force(page.state, name) if _sees_settings(page, name) else None
    return _Row(name, len(live) or len(every), not live, _latest(page, name), _level(page, name), mode)


def _latest(page: Page, name: Subject) -> SchemaVersion | None:
    if not page.exchange.readable(name):
        return None
    return page.state.latest(name) or page.state.latest(name, include_deleted=True)


def _level(page: Page, name: Subject) -> Level | None:
    if not _sees_settings(page, name):
        return None
    return config_in_force(page.state, name).level or page.exchange.service.settings.compatibility_level


def _sees_settings(page: Page, name: Subject) -> bool:
    return page.access.is_unlimited or page.access.may(Operation.DESCRIBE_CONFIGS, ResourceType.SUBJECT, name)
