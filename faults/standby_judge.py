"""The judge of runs with a standby: what the logs of both sides must hold in the end.

- Following a log, the standby was a prefix of it at each of its steps: it held what the source held up to the offset
  that the step names, and these offsets never go back. Over REST it becomes equal once the source rests.
- Only copied records come before a promotion, and none after it.
- No id of a context names two schemas, whichever side gave it, and no version of a subject is given twice.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress

from strata.registry.transfer.contents import Contents, contents_of
from strata.storage.log import START, Entry
from strata.storage.record_json import RecordError, decode_key, decode_value
from strata.storage.records import HighWaterKey, Key, SchemaKey, SchemaValue, StandbyKey, context_of
from strata.storage.state import State

__all__ = ["held_by", "judge_standby"]


def judge_standby(
    source: Sequence[Entry], standby: Sequence[Entry], *, follows_log: bool
) -> tuple[tuple[str, ...], int]:
    """Return the broken promises, and the number of steps of the copy.

    Args:
        source: every record that the source's log ever held.
        standby: every record that the standby's log ever held.
        follows_log: whether the standby follows the log, not the service.
    """
    steps = list(_steps(standby))
    broken = [
        *(_not_a_prefix(source, standby) if follows_log else ()),
        *_mixed(standby),
        *_given_twice(source, standby),
    ]
    aside = State().apply_all(standby).set_aside
    broken += [f"offset {one.offset} of the standby is set aside: {one.reason}" for one in aside]
    return tuple(broken), len(steps)


def _steps(entries: Sequence[Entry]) -> Iterator[tuple[Entry, int, bool]]:
    """Yield each mark of the copy with its position, and whether it is the promotion."""
    for entry in entries:
        with suppress(RecordError):
            key = decode_key(entry.key)
            if isinstance(key, StandbyKey):
                value = decode_value(key, entry.value)
                yield entry, value.position, bool(value.promoted_at)  # type: ignore[union-attr]


def _not_a_prefix(source: Sequence[Entry], standby: Sequence[Entry]) -> Iterator[str]:
    left, right, mine, theirs, before = list(standby), list(source), State(), State(), START
    for entry, position, is_promotion in _steps(standby):
        own = [one for one in left if one.offset <= entry.offset]
        left, mine = left[len(own) :], mine.apply_all(own)
        if position == START or is_promotion:
            continue
        if position < before:
            yield f"offset {entry.offset}: the copy went back from {before} to {position} of the source"
            return
        before = position
        read = [one for one in right if one.offset <= position]
        right, theirs = right[len(read) :], theirs.apply_all(read)
        if (held := held_by(mine)) != (wanted := held_by(theirs)):
            differing = [key for key in {*held, *wanted} if held.get(key) != wanted.get(key)]
            yield f"offset {entry.offset}: not what the source held at {position}: {differing[:3]}"
            return


def held_by(state: State) -> Contents:
    """Return what a copy must hold: everything but the highest ids that its source has noted."""
    return {key: value for key, value in contents_of(state).items() if not isinstance(key, HighWaterKey)}


def _mixed(standby: Sequence[Entry]) -> Iterator[str]:
    """Yield marks of the copy after the promotion."""
    promoted = None
    for entry, _, is_promotion in _steps(standby):
        if promoted is not None:
            yield f"offset {entry.offset}: a step of the copy after the promotion at {promoted}"
        if is_promotion:
            promoted = entry.offset


def _given_twice(source: Sequence[Entry], standby: Sequence[Entry]) -> Iterator[str]:
    """Yield ids of two schemas, and versions that were given again after the promotion.

    A context that was created after the last copy is unknown to a standby whose source is lost.
    """
    end = next((entry.offset for entry, _, is_promotion in _steps(standby) if is_promotion), standby[-1].offset)
    copied = State().apply_all(entry for entry in standby if entry.offset <= end)
    names: dict[tuple[str, int], tuple[str, str]] = {}
    for side, entries in (("the source", source), ("the standby", standby)):
        for key, value in _schemas(entries):
            place = context_of(key.subject), value.schema_id
            before, text = names.setdefault(place, (side, value.text))
            if text != value.text and place[0] in copied.contexts:
                yield f"id {place[1]} of context {place[0]} names {text} at {before} and {value.text} at {side}"
    given = {
        (subject, number): int(entry.schema.schema_id)
        for subject, versions in copied.subjects.items()
        for number, entry in versions.items()
    }
    for key, value in _schemas([entry for entry in standby if entry.offset > end]):
        if given.setdefault((key.subject, key.version), int(value.schema_id)) != value.schema_id:
            yield f"version {key.version} of {key.subject} was given twice"


def _schemas(entries: Sequence[Entry]) -> Iterator[tuple[SchemaKey, SchemaValue]]:
    for entry in entries:
        with suppress(RecordError):
            key: Key = decode_key(entry.key)
            value = decode_value(key, entry.value)
            if isinstance(key, SchemaKey) and isinstance(value, SchemaValue):
                yield key, value
