"""Makes a standby the writer: says what would be lost, then ends the copy with a record in its log."""

import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass

from strata.registry.core.decide.standby import is_within, promotion
from strata.registry.features.standby.copying import Target
from strata.registry.features.standby.scope import Scope
from strata.registry.features.standby.sources import Reading, Source
from strata.registry.transfer.contents import contents_of
from strata.registry.transfer.copies import TransferError
from strata.storage.log import START, Conflict, Log, Record
from strata.storage.record_json import decode_key
from strata.storage.records import Key, SchemaKey, StandbyValue
from strata.storage.state import State

__all__ = ["Loss", "assumed_highest", "loss_of", "promote", "standby_in", "state_of"]

_RACES = 100


@dataclass(frozen=True, slots=True)
class Loss:
    """What a promotion would lose.

    Attributes:
        things: what the source holds and the standby does not, or holds otherwise, in words.
        highest: the highest ids that the source has given, by context of the standby.
    """

    things: tuple[str, ...]
    highest: Mapping[str, int]


def state_of(log: Log) -> State:
    """Return the State at the end of a log."""
    return State().apply_all(log.read(START))


def standby_in(state: State, scope: str) -> StandbyValue:
    """Return the mark of a copy that can be promoted.

    Args:
        state: the State of the standby.
        scope: the context of the copy; `.` for the whole registry.

    Raises:
        TransferError: if there is no such copy, it was promoted before, or its first copy is not complete.
    """
    standby = state.standbys.get(scope)
    if standby is None:
        known = f"; its copies are in: {', '.join(sorted(state.standbys))}" if state.standbys else ""
        what = "this log" if scope == "." else f"context {scope} of this log"
        raise TransferError(f"{what} is not a standby{known}. Nothing was promoted")
    if standby.promoted_at:
        raise TransferError(f"this log has been a writer since {_time(standby.promoted_at)}. Nothing was promoted")
    if not standby.copied_at:
        raise TransferError(
            f"the first copy of {standby.source} is not complete, so this log holds only a part of it. Nothing was "
            "promoted"
        )
    return standby


def loss_of(state: State, standby: StandbyValue, into: str, source: Source) -> Loss:
    """Return what a promotion would lose, as the source is now.

    Raises:
        LogError: if the source is a log that cannot be read.
        TransferError: if the source is a service that cannot be read.
    """
    scope = Scope(_names(standby.subjects), _names(standby.contexts), into)
    with closing(source):
        reading: Reading = source.read()
    target = Target(
        source.name,
        scope,
        scope.wanted(reading.state),
        reading.position,
        0,
        reading.unlisted,
        time_of=scope.times(reading.state),
    )
    records = target.differing(state)
    highest = {scope.context(name): context.high_water for name, context in reading.state.contexts.items()}
    return Loss(tuple(dict.fromkeys(_worded(records, state))), {name: top for name, top in highest.items() if top})


def assumed_highest(state: State, into: str, gap: int) -> dict[str, int]:
    """Return the highest ids to keep free for a source that cannot be asked, by context of the standby."""
    return {
        name: context.high_water + gap
        for name, context in state.contexts.items()
        if gap and is_within(name, into) and context.high_water
    }


def promote(log: Log, scope: str, highest: Mapping[str, int]) -> State:
    """End a copy; return the State after it.

    Args:
        log: the log of the standby; nodes may serve it meanwhile.
        scope: the context of the copy; `.` for the whole registry.
        highest: the highest ids that are never given again, by context.

    Raises:
        TransferError: if the copy cannot be promoted, or other writers come first each time.
        LogError: if the log cannot be read or written.
    """
    for _ in range(_RACES):
        state = state_of(log)
        standby_in(state, scope)
        decision = promotion(state, scope, time.time_ns() // 1_000_000, highest)
        try:
            return state.apply_all(log.append(state.offset, decision.records))
        except Conflict:
            continue
    raise TransferError("other writers came first each time; stop the nodes of the standby and run the command again")


def _worded(records: list[Record], state: State) -> Iterator[str]:
    """Yield each difference in words."""
    held = contents_of(state)
    for record in records:
        key = decode_key(record.key)
        if record.value is None:
            yield f"{_named(key)}: gone at the source"
        else:
            yield f"{_named(key)}: {'differs from the source' if key in held else 'only at the source'}"


def _named(key: Key) -> str:
    if isinstance(key, SchemaKey):
        return f"subject {key.subject!r} version {key.version}"
    noun = type(key).__name__.removesuffix("Key").lower()
    about = ", ".join(str(getattr(key, name)) for name in key.__dataclass_fields__ if getattr(key, name) is not None)
    return f"{noun} of {about or 'the registry'}"


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for name in text.split(",") if name)


def _time(ms: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(ms / 1000))
