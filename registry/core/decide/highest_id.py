"""The highest id of a context: the record that keeps it when its schema leaves the log, and the one that lowers it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from strata.registry.core import errors
from strata.registry.core.decide.decision import Decision
from strata.storage.log import Record
from strata.storage.record_json import encode
from strata.storage.records import HighWaterKey, LoweredKey, LoweredValue, context_of
from strata.storage.state import SchemaVersion, State

__all__ = ["Lowered", "lower_highest", "mark_highest"]


@dataclass(frozen=True, slots=True)
class Lowered:
    """The highest id of a context that was given, the one before it was lowered, and the highest that a version has."""

    highest: int
    before: int
    in_use: int


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


def lower_highest(state: State, context: str, highest: int | None) -> Decision[Lowered]:
    """Return the record after which the ids above one are assigned again, which clients may have seen.

    Args:
        state: the State to decide on.
        context: the context.
        highest: the highest id that counts as assigned; None for the highest that a version has.

    Raises:
        RegistryError: 42205 if a version has a higher id, or none that high was assigned.
    """
    held = state.context(context)
    in_use, before = max(held.schemas, default=0), held.high_water
    wanted = in_use if highest is None else highest
    if wanted < in_use:
        subject, version = held.schemas[in_use].used_by[0]
        raise errors.id_in_use(in_use, subject, version)
    if wanted > before:
        raise errors.operation_not_permitted(f"The highest id of context {context} is {before}: it cannot be raised")
    if wanted == before:
        return Decision(Lowered(before, before, in_use))
    last = state.lowered.get(context)
    value = LoweredValue(wanted, last.count + 1 if last else 1)
    return Decision(Lowered(wanted, before, in_use), [encode(LoweredKey(context), value)])
