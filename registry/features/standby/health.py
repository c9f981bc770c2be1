"""The health of a standby: whether its first copy is complete, the age of the newest, and the progress of a reading."""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NotRequired, TypedDict

from strata.registry.core.decide.standby import copied_parts, source_of_everything
from strata.registry.core.tally import COPY_STEPS, FACTS
from strata.registry.features.feature import Measured
from strata.registry.node.board import Board
from strata.registry.node.health import Condition
from strata.storage.state import State

__all__ = ["StandbyHealth"]


class Reading(TypedDict):
    """How far a standby has read the service that it copies: pages or names, and their number if that is known."""

    step: str
    done: int
    total: int | None


class Copy(TypedDict):
    """What a registry copies, and the age of the newest complete copy; None before the first one."""

    source: str
    context: str
    secondsBehind: float | None
    reading: NotRequired[Reading]


_Series = Iterator[tuple[Sequence[str], float]]


class StandbyHealth:
    """The health of a node as a standby, which its log says that it is, whatever the settings of the node.

    Args:
        state: returns the State of this process.
        board: the board of the workers; worker 0 copies.
    """

    def __init__(self, state: Callable[[], State], board: Board) -> None:
        self._state, self._board = state, board

    @property
    def condition(self) -> Condition:
        """What the health routes say."""
        return Condition(self._reason, self._write_reason, self._details)

    @property
    def measured(self) -> Measured:
        """The metrics of a standby."""
        return {
            "strata_standby": lambda: iter([((), bool(copied_parts(self._state())))]),
            "strata_standby_reading_done": lambda: self._read("done"),
            "strata_standby_reading_total": lambda: self._read("total"),
            "strata_standby_behind_seconds": self._behind,
        }

    def copy(self) -> Copy | None:
        """Return what this registry copies, and how old the newest complete copy is; None if it is not a standby.

        The age counts from when the reading of the source began: the copy has everything that was there then.
        """
        parts = copied_parts(self._state())
        if not parts:
            return None
        scope, value = min(parts.items(), key=lambda part: part[1].copied_at)
        copied_at = self._board.numbers(0)[FACTS["copied_at"]]
        age = time.monotonic() - copied_at if copied_at else time.time() - value.copied_at / 1000
        behind = round(max(0.0, age), 3) if value.copied_at else None
        copy = Copy(source=value.source, context=scope, secondsBehind=behind)
        if reading := self._reading():
            copy["reading"] = reading
        return copy

    def _reading(self) -> Reading | None:
        """Return how far a standby has read the service that it copies; None while it reads none."""
        cells = self._board.numbers(0)
        step, done, total = (int(cells[FACTS[name]]) for name in ("copy_step", "copy_done", "copy_total"))
        return Reading(step=COPY_STEPS[step - 1], done=done, total=total or None) if step else None

    def _reason(self) -> str | None:
        for value in copied_parts(self._state()).values():
            if not value.copied_at:
                return f"the first copy of {value.source} is not complete"
        return None

    def _write_reason(self) -> str | None:
        source = source_of_everything(self._state())
        return f"this registry is a standby of {source}: it refuses writes" if source else None

    def _details(self) -> dict[str, object]:
        copy = self.copy()
        return {"standby": copy} if copy else {}

    def _read(self, what: Literal["done", "total"]) -> _Series:
        if reading := self._reading():
            yield (reading["step"],), reading[what] or 0

    def _behind(self) -> _Series:
        copy = self.copy()
        if copy and (behind := copy["secondsBehind"]) is not None:
            yield (), behind
