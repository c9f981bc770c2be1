"""Keeps the highest id of a context on record when the schema that has it leaves the log."""

from collections.abc import Iterable, Iterator

from strata.storage.log import Record
from strata.storage.record_json import encode
from strata.storage.records import HighWaterKey, context_of
from strata.storage.state import SchemaVersion, State

__all__ = ["mark_highest"]


def mark_highest(state: State, leaving: Iterable[SchemaVersion]) -> Iterator[Record]:
    """Yield a high-water record if one of the leaving versions has the highest id of its context.

    Compaction forgets the schema, but an id must never be reused.

    Args:
        state: the State before the versions leave.
        leaving: the leaving versions, all of one context.
    """
    for entry in leaving:
        name = context_of(entry.subject)
        if entry.schema.schema_id == state.context(name).high_water:
            yield encode(HighWaterKey(name), entry.schema.schema_id)
            return
