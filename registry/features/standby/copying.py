"""Decide one step of a copy: the records that bring this registry nearer to what its source held.

Every step is decided on the newest State of the standby's log and carries the mark of the copy. So two nodes of one
standby, a client's write and a promotion cannot come between reading and writing: the log refuses the loser of each
race.

Rules of this file: pure.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from strata.registry.core.decide.decision import Decision
from strata.registry.features.standby.scope import Scope
from strata.registry.transfer.contents import Contents, contents_of, differing, first_records, highest_shown
from strata.registry.transfer.copies import TransferError
from strata.storage.log import START, Record
from strata.storage.record_json import encode
from strata.storage.records import Key, SchemaKey, StandbyKey, StandbyValue, Subject
from strata.storage.state import State

__all__ = [
    "KAFKA_APPEND",
    "OTHER_APPEND",
    "FollowRefused",
    "Promoted",
    "Step",
    "Target",
    "copy_step",
    "first_mark",
    "mark_of",
]

KAFKA_APPEND, OTHER_APPEND = (5_000, 8 << 20), (100_000, 64 << 20)
"""How many records and bytes one append of a log takes well; a database takes more than a topic's transaction."""


class FollowRefused(TransferError):
    """A copy that would harm what this registry holds; the message says why and what helps."""


class Promoted(Exception):
    """The end of a copy: this registry is a writer now."""


@dataclass(frozen=True, slots=True)
class Target:
    """What a copy must hold, and where it comes from.

    Attributes:
        source: the name of the source.
        scope: the part that is copied.
        contents: what the copy must hold.
        position: the offset in the source's log; -1 if the source is not a log.
        read_at: when the source was read, in milliseconds since the epoch.
        unlisted: the kinds of keys that the source cannot show.
        subjects: the subjects that can differ from the copy, whose versions alone are in `contents`; None for all.
        shown: the highest id among the schemas of each context of the copy.
        base: the offset of the standby's log for which `subjects` is right.
        append: the most records and bytes of one append.
        time_of: returns when a version was written at the source, in milliseconds since the epoch; None if unknown.
    """

    source: str
    scope: Scope
    contents: Contents
    position: int
    read_at: int
    unlisted: tuple[type, ...] = ()
    subjects: Collection[Subject] | None = None
    shown: Mapping[str, int] | None = None
    base: int = START
    append: tuple[int, int] = KAFKA_APPEND
    time_of: Callable[[Key], int | None] = lambda _key: None

    def differing(self, state: State) -> list[Record]:
        """Return the records after which a State holds the copy."""
        return differing(
            state, self.contents, self.covers, shown=self.shown, subjects=self.subjects, time_of=self.time_of
        )

    def covers(self, key: Key) -> bool:
        """Return whether a key has to go if the source does not have it."""
        return self.scope.covers(key) and not isinstance(key, self.unlisted)

    def mark(self, position: int, copied_at: int) -> StandbyValue:
        """Return the mark of the copy."""
        return mark_of(self.source, self.scope, position, copied_at)


@dataclass(frozen=True, slots=True)
class Step:
    """The outcome of a step.

    Attributes:
        left: the number of records that remain to be written.
        standby: the mark in the log.
        decided_at: the offset of the standby's log on which it was decided.
        is_late: whether another node has copied a later reading of the source already.
        needs_all: whether the standby's log has changed, so that everything has to be compared.
    """

    left: int
    standby: StandbyValue
    decided_at: int
    is_late: bool = False
    needs_all: bool = False


def copy_step(
    state: State, target: Target, before: StandbyValue | None, mine: StandbyValue | None = None
) -> Decision[Step]:
    """Return the next records of a copy.

    Args:
        state: the State of the standby's log.
        target: what the copy must hold.
        before: the mark in the log before the source was read.
        mine: the mark that this process has written last.

    Raises:
        FollowRefused: if the source is another registry than the one that was copied, or has lost something.
        Promoted: if the copy has become a registry of its own.
    """
    scope = target.scope.into
    standby = state.standbys.get(scope)
    if standby is None or standby.promoted_at:
        raise Promoted
    if before is not None and before.source == target.source:
        _check_not_shorter(target, before.position)
    if _is_late(target, standby, before, mine):
        return Decision(Step(0, standby, state.offset, is_late=True))
    if _is_done(target, standby, mine):
        return Decision(Step(0, standby, state.offset))
    if target.subjects is not None and state.offset != target.base:
        return Decision(Step(0, standby, state.offset, needs_all=True))
    records = target.differing(state)
    _check_source(state, target, standby, records)
    some = first_records(records, *target.append)
    if not some and standby.copied_at and standby == target.mark(standby.position, standby.copied_at):
        return Decision(Step(0, standby, state.offset))
    whole = len(some) == len(records)
    made = target.mark(target.position, target.read_at) if whole else target.mark(standby.position, standby.copied_at)
    return Decision(Step(len(records) - len(some), made, state.offset), [*some, encode(StandbyKey(scope), made)])


def first_mark(state: State, source: str, scope: Scope) -> list[Record]:
    """Return the record that makes a log a standby, before anything is copied; nothing if it is there.

    Args:
        state: the State of the standby's log.
        source: the name of the source.
        scope: the part that is copied.

    Raises:
        FollowRefused: if the log holds something of its own.
    """
    if scope.into in state.standbys:
        return []
    content = next((key for key in contents_of(state) if scope.covers(key)), None)
    if content is not None:
        raise FollowRefused(
            f"--follow: the log holds {_named(content)}, which is not a copy of {source}; expected an empty log"
            + ("" if scope.into == "." else f" or an empty context {scope.into}")
        )
    return [encode(StandbyKey(scope.into), mark_of(source, scope, START, 0))]


def mark_of(source: str, scope: Scope, position: int, copied_at: int) -> StandbyValue:
    """Return the mark of a copy; see `StandbyValue`."""
    return StandbyValue(source, position, copied_at, 0, ",".join(scope.subjects), ",".join(scope.contexts))


def _is_late(target: Target, standby: StandbyValue, before: StandbyValue | None, mine: StandbyValue | None) -> bool:
    """Return whether the log may hold a later reading of the source, by another node of this standby.

    A service has no offsets, and clocks differ between nodes: what was complete before this reading began is earlier.
    """
    if standby == mine or standby.source != target.source:
        return False
    if target.position > START:
        return target.position < standby.position
    return standby != before


def _is_done(target: Target, standby: StandbyValue, mine: StandbyValue | None) -> bool:
    """Return whether another node of this standby has copied the same reading of a log.

    The first step of a process compares nevertheless.
    """
    if mine is None or target.position == START:
        return False
    return standby == target.mark(target.position, standby.copied_at) and standby.copied_at > 0


def _check_not_shorter(target: Target, position: int) -> None:
    if START < target.position < position:
        raise FollowRefused(
            f"the log {target.source} ends at offset {target.position}, but was copied up to {position}: it has lost "
            "records, or another log has taken its name. Nothing was copied; promote this standby, or start a new one "
            "on an empty log"
        )


def _check_source(state: State, target: Target, standby: StandbyValue, records: list[Record]) -> None:
    """Reject a source that holds nothing any more, and another registry than the one that was copied."""
    shown = highest_shown(target.contents) if target.shown is None else target.shown
    if records and not any(shown.values()):
        held = sum(isinstance(key, SchemaKey) and target.covers(key) for key in contents_of(state))
        if held:
            raise FollowRefused(
                f"{target.source} holds no schema, but {held} versions were copied from it. Nothing was deleted; "
                "promote this standby, or start a new one on an empty log"
            )
    if standby.source != target.source and any(record.value is None for record in records):
        raise FollowRefused(
            f"this log is a copy of {standby.source}, and {target.source} lacks something of it or differs; expected "
            "another address of the same registry. Nothing was copied"
        )


def _named(key: Key) -> str:
    subject = getattr(key, "subject", None)
    return (
        f"subject {subject!r}" if isinstance(key, SchemaKey) else f"a {type(key).__name__.removesuffix('Key')} record"
    )
