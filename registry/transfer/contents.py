"""What a registry holds, as one value by key, and the records that turn one content into another.

Following compares contents instead of passing on records. So it does not matter where the source was read, how often,
and whether this node, its log or the source was away meanwhile: what differs is what has to be written.

Rules of this file: pure.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import cast

from strata.storage.log import Record
from strata.storage.record_json import encode
from strata.storage.records import (
    ConfigKey,
    ContextKey,
    DekKey,
    HighWaterKey,
    KekKey,
    Key,
    LoweredKey,
    ModeKey,
    SchemaKey,
    SchemaValue,
    Subject,
    Value,
    context_of,
)
from strata.storage.state import ContextState, State

__all__ = ["Contents", "changed_subjects", "contents_of", "differing", "first_records", "highest_held", "highest_shown"]

Contents = Mapping[Key, Value]
"""Everything that a registry holds: the newest value of each key that has one."""

# The order in which values are written: a KEK before its DEKs, a context before its subjects.
_RANK = {kind: rank for rank, kind in enumerate((ContextKey, SchemaKey, ConfigKey, ModeKey, KekKey, DekKey))}
_LAST = len(_RANK)


def contents_of(state: State, subjects: Collection[Subject] | None = None) -> dict[Key, Value]:
    """Return what a State holds.

    A context has a mark of its highest id if no schema that it still holds shows that id.

    Args:
        state: the State.
        subjects: the subjects whose versions to return; None for all. What else the State holds is returned anyway.
    """
    contents: dict[Key, Value] = {}
    for name, context in state.contexts.items():
        if context.recorded:
            contents[ContextKey(name)] = name
        if context.high_water > _highest_held(context):
            contents[HighWaterKey(name)] = context.high_water
    for subject in state.subjects if subjects is None else subjects:
        for number, entry in state.subjects.get(subject, {}).items():
            contents[SchemaKey(subject, number)] = entry.schema.value._replace(
                subject=subject, version=number, deleted=entry.deleted
            )
    contents.update({ConfigKey(scope): config for scope, config in state.configs.items()})
    contents.update({ModeKey(scope): mode for scope, mode in state.modes.items()})
    contents.update({key: association.value for key, association in state.associations.by_key.items()})
    contents.update({KekKey(name): kek for name, kek in state.encryption_keys.keks.items()})
    for kek_name, series in state.encryption_keys.deks.items():
        for (subject, algorithm), deks in series.items():
            contents.update({DekKey(kek_name, subject, algorithm, number): dek for number, dek in deks.items()})
    contents.update(state.acls.items())
    contents.update({LoweredKey(name): lowered for name, lowered in state.lowered.items()})
    return contents


def changed_subjects(before: State, after: State) -> frozenset[Subject]:
    """Return the subjects whose versions differ between two States of one log or service."""
    return frozenset(
        subject
        for subject in {*before.subjects, *after.subjects}
        if (old := before.subjects.get(subject)) is not (new := after.subjects.get(subject)) and old != new
    )


def highest_shown(wanted: Contents) -> dict[str, int]:
    """Return the highest id among the schemas of each context."""
    shown: dict[str, int] = {}
    for key, value in wanted.items():
        if isinstance(key, SchemaKey):
            name = context_of(key.subject)
            shown[name] = max(shown.get(name, 0), cast("SchemaValue", value).schema_id)
    return shown


def highest_held(state: State) -> dict[str, int]:
    """Return the highest id among the schemas that each context of a State holds."""
    return {name: _highest_held(context) for name, context in state.contexts.items()}


def differing(
    state: State,
    wanted: Contents,
    covers: Callable[[Key], bool],
    *,
    shown: Mapping[str, int] | None = None,
    subjects: Collection[Subject] | None = None,
    time_of: Callable[[Key], int | None] = lambda _key: None,
) -> list[Record]:
    """Return the records after which a State holds the wanted contents.

    No id is forgotten: before a schema with the highest id of its context goes, that id is marked.

    Args:
        state: the State to change.
        wanted: what it must hold.
        covers: whether a key belongs to the copy, so that its value changes, or goes if it is not wanted.
        shown: the highest id among the wanted schemas of each context; by default it is computed.
        subjects: the subjects that can differ, and whose versions alone are in `wanted`; None for all.
        time_of: returns when the value of a key was written at first, in milliseconds since the epoch; None: now.
    """
    held = contents_of(state, subjects)
    changed = {
        key: value
        for key, value in wanted.items()
        if not isinstance(key, HighWaterKey) and held.get(key) != value and (key not in held or covers(key))
    }
    gone = [key for key in held if key not in wanted and not isinstance(key, HighWaterKey) and covers(key)]
    # An id may pass from one version to another: each must be free before it is bound again.
    rebound = [key for key, value in changed.items() if key in held and _is_rebound(held[key], value)]
    tombstones = [encode(key) for key in sorted([*gone, *rebound], key=repr)]
    values = [replace(encode(key, value), timestamp=time_of(key)) for key, value in sorted(changed.items(), key=_place)]
    marks = _marks(state, wanted, covers, highest_shown(wanted) if shown is None else shown)
    lowered = {key.context for key in changed if isinstance(key, LoweredKey)}
    raised = [key for key in wanted if isinstance(key, HighWaterKey) and key.context in lowered]
    return [*marks, *tombstones, *values, *(encode(key, wanted[key]) for key in raised)]


def first_records(records: list[Record], most: int, most_bytes: int) -> list[Record]:
    """Return as many records as one append may take: a number, or fewer if they are large, but at least one."""
    size = 0
    for count, record in enumerate(records[:most]):
        size += len(record.key) + len(record.value or b"")
        if count and size > most_bytes:
            return records[:count]
    return records[:most]


def _marks(state: State, wanted: Contents, covers: Callable[[Key], bool], shown: Mapping[str, int]) -> Iterator[Record]:
    """Yield the marks of highest ids that the wanted schemas will not show, and the log does not hold yet."""
    marked = {key.context: cast("int", value) for key, value in wanted.items() if isinstance(key, HighWaterKey)}
    ours = {name for name in state.contexts if covers(HighWaterKey(name))}
    for name in sorted({*ours, *marked}):
        context = state.context(name)
        highest = max(context.high_water, marked.get(name, 0))
        is_marked = context.high_water == highest > _highest_held(context)
        if highest > shown.get(name, 0) and not is_marked:
            yield encode(HighWaterKey(name), highest)


def _is_rebound(held: Value, value: Value) -> bool:
    """Return whether a version gets another schema, not just another mark of deletion."""
    if not isinstance(held, SchemaValue) or not isinstance(value, SchemaValue):
        return False
    return held._replace(deleted=value.deleted) != value


def _place(item: tuple[Key, Value]) -> tuple[int, int, str]:
    key, value = item
    return _RANK.get(type(key), _LAST), value.schema_id if isinstance(value, SchemaValue) else 0, repr(key)


def _highest_held(context: ContextState) -> int:
    return max(context.schemas, default=0)
