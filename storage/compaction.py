"""Which records of a log can go because what is left adds up to the same State.

A record is superseded by a later one with the same key bytes, and a tombstone by the absence of anything before it,
as in a compacted topic. Unlike there it is proved before anything goes: the State of what would be left is compared
with the State of the whole log, and keys whose loss makes a difference keep all their records (a deletion that named
more versions than the one after it, the highest id with no mark on record).

The last record always stays: it says where the log ends.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING

from storage.fold import Fold
from storage.log import START, Conflict, Entry
from storage.record_json import RecordError, decode_key
from storage.records import (
    ConfigKey,
    DekKey,
    HighWaterKey,
    KekKey,
    ModeKey,
    NoopKey,
    SchemaKey,
    Subject,
    context_of,
)
from storage.state import State

if TYPE_CHECKING:
    from storage.sql_log import SqlLog

__all__ = ["CompactionPlan", "CompactionRefused", "compact", "plan_compaction"]

_ROUNDS = 6
_WORTH_A_VACUUM = 1000
Read = Callable[[], Iterable[Entry]]


class CompactionRefused(Exception):
    """What would be left does not add up to the same State; nothing was dropped."""


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """Of `records` records up to offset `upto`, those at the offsets `dropped` can go."""

    upto: int
    records: int
    dropped: frozenset[int]


def plan_compaction(read: Read, progress: Callable[[str], None] = lambda _: None) -> CompactionPlan:
    """Choose the records to drop. Reads the log several times, and holds its State twice.

    Args:
        read: the records of the log from the start, the same ones in each call.
        progress: told what is being done.

    Raises:
        CompactionRefused: no choice was found that changes nothing.
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
        progress("some records stay after all, since the State depends on them")
    raise CompactionRefused(
        f"The records left would not add up to the same State up to offset {whole.offset}; nothing was dropped"
    )


def compact(
    log: "SqlLog", *, dry_run: bool = False, progress: Callable[[str], None] = lambda _: None
) -> CompactionPlan:
    """Drop what is superseded from a SQL log, and give the space back where that pays; other nodes may go on.

    Raises:
        CompactionRefused: no choice was found that changes nothing, or another compaction was faster.
        LogError: the log cannot be read or written.
    """
    generation, end = log.generation(), log.end()
    plan = plan_compaction(lambda: takewhile(lambda entry: entry.offset <= end, log.read(START)), progress)
    if dry_run or not plan.dropped:
        return plan
    progress("dropping them; the other nodes wait")
    try:
        log.drop(sorted(plan.dropped), upto=plan.upto, generation=generation)
    except Conflict:
        raise CompactionRefused("Another compaction came first; nothing was dropped by this one") from None
    if len(plan.dropped) >= max(_WORTH_A_VACUUM, plan.records // 10):
        progress("giving the space back")
        log.vacuum()
    return plan


class _Kept:
    """Subjects whose records all stay, and then whole contexts."""

    def __init__(self) -> None:
        self._subjects: set[Subject] = set()
        self._contexts: set[str] = set()

    def add(self, subjects: set[Subject], contexts: set[str]) -> bool:
        """Keep more, the contexts only if the subjects are kept already; false when nothing is left to add."""
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
        if isinstance(decoded, HighWaterKey):
            return decoded.context in self._contexts
        subject = getattr(decoded, "subject", None)
        return subject is not None and (subject in self._subjects or context_of(subject) in self._contexts)


def _superseded(read: Read, kept: _Kept, aside: set[int]) -> Iterator[int]:
    """Yield the offsets of what is superseded; what was set aside neither supersedes nor goes."""
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
    """Whether a tombstone, the newest record of its key, says no more than that nothing is there."""
    try:
        return isinstance(decode_key(key), SchemaKey | ConfigKey | ModeKey | NoopKey | KekKey | DekKey)
    except RecordError:
        return False


def _differing(whole: State, left: State, read: Read) -> tuple[set[Subject], set[str]]:
    """The subjects on whose records the difference between two States depends, and all contexts with a difference."""
    found = {
        subject
        for subject in {*whole.subjects, *left.subjects}
        if whole.subjects.get(subject) != left.subjects.get(subject)
    }
    marks: dict[str, int] = {}
    for name in {*whole.contexts, *left.contexts}:
        one, other = whole.context(name), left.context(name)
        for schema_id in {*one.schemas, *other.schemas}:
            entries = one.schemas.get(schema_id), other.schemas.get(schema_id)
            if entries[0] != entries[1]:
                found |= {place[0] for entry in entries if entry for place in entry.used_by}
        if one.high_water != other.high_water:
            marks[name] = one.high_water
    contexts = {
        name for name in {*whole.contexts, *left.contexts} if whole.contexts.get(name) != left.contexts.get(name)
    }
    contexts |= {context_of(subject) for subject in found}
    return found | (_givers(marks, read) if marks else set()), contexts


def _givers(marks: dict[str, int], read: Read) -> set[Subject]:
    """The subjects whose records have the highest id of some contexts."""
    found: set[Subject] = set()
    state = State()
    for entry in read():
        state = state.apply(entry)
        missing = [name for name, mark in marks.items() if state.context(name).high_water == mark]
        for name in missing:
            del marks[name]
            held = state.context(name).schemas.get(state.context(name).high_water)
            found |= {place[0] for place in held.used_by} if held else set()
        if not marks:
            break
    return found
