"""Compaction of a SQL log: drop records whose loss leaves the State unchanged.

As in a compacted Kafka topic, a record is superseded by a later one with the same key bytes, and a tombstone can go
together with the records that it supersedes. Unlike in Kafka, the plan is proved before anything is dropped: the State
of the remaining records is compared with the State of the whole log. Keys whose loss makes a difference keep all their
records (for example, a deletion that named more versions than the next one, or the highest id where no high-water
record holds it).

The last record always stays, because it marks the end of the log.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING

from strata.storage.fold import Fold
from strata.storage.log import START, Conflict, Entry
from strata.storage.record_json import RecordError, decode_key
from strata.storage.records import (
    AclKey,
    ConfigKey,
    DekKey,
    ExporterKey,
    ExportKey,
    HighWaterKey,
    KekKey,
    LoweredKey,
    ModeKey,
    NoopKey,
    SchemaKey,
    StandbyKey,
    Subject,
    context_of,
)
from strata.storage.state import State

if TYPE_CHECKING:
    from strata.storage.sql.log import SqlLog

__all__ = ["CompactionPlan", "CompactionRefused", "compact", "plan_compaction"]

_ROUNDS = 6
_WORTH_A_VACUUM = 1000
_SETTLED = SchemaKey | ConfigKey | ModeKey | NoopKey | KekKey | DekKey | AclKey | StandbyKey | ExporterKey | ExportKey
Read = Callable[[], Iterable[Entry]]


class CompactionRefused(Exception):
    """No safe plan was found, or another compaction came first; nothing was dropped."""


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """The offsets of the records to drop, out of `records` records up to offset `upto`."""

    upto: int
    records: int
    dropped: frozenset[int]


def plan_compaction(read: Read, progress: Callable[[str], None] = lambda _: None) -> CompactionPlan:
    """Choose the records to drop; this reads the log several times and holds its State twice.

    Args:
        read: Returns the records of the log from the start, the same ones in each call.
        progress: Receives a line about each step.

    Raises:
        CompactionRefused: No choice leaves the State unchanged.
    """
    fold, aside = Fold(State()), set[int]()
    for entry in read():
        if fold.apply(entry) is not None:
            aside.add(entry.offset)
    whole = fold.finish()
    kept = _Kept()
    for _ in range(_ROUNDS):
        dropped = frozenset(_superseded(read, kept, aside))
        progress(f"{whole.records} records up to offset {whole.offset}, {len(dropped)} of them superseded; checking")
        left = State().apply_all(entry for entry in read() if entry.offset not in dropped)
        if left == whole:
            return CompactionPlan(whole.offset, whole.records, dropped)
        if not kept.add(*_differing(whole, left, read)):
            break
        progress("keeping some of them, because the State depends on them")
    raise CompactionRefused(
        f"the remaining records would not give the same State up to offset {whole.offset}; nothing was dropped"
    )


def compact(
    log: "SqlLog", *, dry_run: bool = False, progress: Callable[[str], None] = lambda _: None
) -> CompactionPlan:
    """Drop the superseded records of a SQL log; other nodes may keep running. Release the space if it is worth it.

    Args:
        log: The log.
        dry_run: Return the plan and drop nothing.
        progress: Receives a line about each step.

    Raises:
        CompactionRefused: No choice leaves the State unchanged, or another compaction came first.
        LogError: The log cannot be read or written.
    """
    generation, end = log.generation(), log.end()
    plan = plan_compaction(lambda: takewhile(lambda entry: entry.offset <= end, log.read(START)), progress)
    if dry_run or not plan.dropped:
        return plan
    progress("dropping them; other nodes wait meanwhile")
    try:
        log.drop(sorted(plan.dropped), upto=plan.upto, generation=generation)
    except Conflict:
        raise CompactionRefused("another compaction came first; this one dropped nothing") from None
    if len(plan.dropped) >= max(_WORTH_A_VACUUM, plan.records // 10):
        progress("releasing their disk space")
        log.vacuum()
    return plan


class _Kept:
    """The subjects, and later whole contexts, that keep all their records."""

    def __init__(self) -> None:
        self._subjects: set[Subject] = set()
        self._contexts: set[str] = set()

    def add(self, subjects: set[Subject], contexts: set[str]) -> bool:
        """Add subjects, or the contexts if all the subjects are kept already; return whether anything was added."""
        before = len(self._subjects), len(self._contexts)
        if subjects - self._subjects:
            self._subjects |= subjects
        else:
            self._contexts |= contexts
        return (len(self._subjects), len(self._contexts)) != before

    def __contains__(self, key: bytes) -> bool:
        if not self._subjects and not self._contexts:
            return False
        try:
            decoded = decode_key(key)
        except RecordError:
            return False
        if isinstance(decoded, HighWaterKey | LoweredKey):
            return decoded.context in self._contexts
        subject = getattr(decoded, "subject", None)
        return subject is not None and (subject in self._subjects or context_of(subject) in self._contexts)


def _superseded(read: Read, kept: _Kept, aside: set[int]) -> Iterator[int]:
    """Yield the offsets of superseded records; a record that was set aside supersedes nothing and stays."""
    newest: dict[bytes | None, int] = {}
    last = START
    for entry in read():
        last = entry.offset
        if last not in aside:
            newest[entry.key] = last
    for entry in read():
        if entry.offset in aside or entry.offset == last or entry.key is None:
            continue
        superseded = newest[entry.key] != entry.offset or (entry.value is None and _is_settled(entry.key))
        if superseded and entry.key not in kept:
            yield entry.offset


def _is_settled(key: bytes) -> bool:
    """Return whether a tombstone that is the newest record of this key only undoes earlier records of the key."""
    try:
        return isinstance(decode_key(key), _SETTLED)
    except RecordError:
        return False


def _differing(whole: State, left: State, read: Read) -> tuple[set[Subject], set[str]]:
    """Return the subjects whose records cause the difference between two States, and all contexts that differ."""
    subjects = {
        subject
        for subject in {*whole.subjects, *left.subjects}
        if whole.subjects.get(subject) != left.subjects.get(subject)
    }
    marks: dict[str, int] = {}
    for name in {*whole.contexts, *left.contexts}:
        context, other = whole.context(name), left.context(name)
        for schema_id in {*context.schemas, *other.schemas}:
            entries = context.schemas.get(schema_id), other.schemas.get(schema_id)
            if entries[0] != entries[1]:
                subjects |= {place[0] for entry in entries if entry for place in entry.used_by}
        if context.high_water != other.high_water:
            marks[name] = context.high_water
    contexts = {
        name for name in {*whole.contexts, *left.contexts} if whole.contexts.get(name) != left.contexts.get(name)
    }
    contexts |= {context_of(subject) for subject in subjects}
    return subjects | (_sources_of_highest_ids(marks, read) if marks else set()), contexts


def _sources_of_highest_ids(marks: dict[str, int], read: Read) -> set[Subject]:
    """Return the subjects whose records gave some contexts their highest id."""
    subjects: set[Subject] = set()
    state = State()
    for entry in read():
        state = state.apply(entry)
        missing = [name for name, mark in marks.items() if state.context(name).high_water == mark]
        for name in missing:
            del marks[name]
            held = state.context(name).schemas.get(state.context(name).high_water)
            subjects |= {place[0] for place in held.used_by} if held else set()
        if not marks:
            break
    return subjects
