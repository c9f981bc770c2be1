"""The log: its newest records, and those that were set aside, with their reasons."""

from typing import NamedTuple

from strata.registry.api.views.view import Page
from strata.registry.core.log_reader import RecentRecord
from strata.storage.record_json import RecordError, decode_key

__all__ = ["show_log"]

_MOST = 200


class _Row(NamedTuple):
    """A record as the page shows it; the key is empty if the person may not know of its subject."""

    record: RecentRecord
    key: str
    subject: str | None
    version: int | None
    reason: str | None
    is_foreign: bool


def show_log(page: Page) -> dict[str, object]:
    """Return what the page of the log shows."""
    writer = page.exchange.service.writer
    aside = page.state.set_aside
    status = writer.log.status()
    foreign = frozenset(status.foreign_newest)
    reasons = {record.offset: record.reason for record in aside}
    return {
        "status": status,
        "foreign": sorted(foreign, reverse=True),
        "holder": writer.log.holder(),
        "progress": page.exchange.service.health.progress(),
        "failure": writer.read_failure,
        "records": page.state.records,
        "rows": [
            _row(page, record, reasons.get(record.offset), is_foreign=record.offset in foreign)
            for record in writer.recent.newest(_MOST)
        ],
        "aside": aside[: -_MOST - 1 : -1],
        "aside_count": page.state.set_aside_count,
    }


def _row(page: Page, record: RecentRecord, reason: str | None, *, is_foreign: bool) -> _Row:
    text = "" if record.key is None else record.key.decode(errors="replace")
    try:
        key = decode_key(record.key)
    except RecordError:
        return _Row(record, text, None, None, reason, is_foreign)
    subject, version = getattr(key, "subject", None), getattr(key, "version", None)
    if subject is not None and not page.exchange.describable(subject):
        return _Row(record, "", None, None, reason, is_foreign)
    return _Row(record, text, subject, version, reason, is_foreign)
