"""The waiting writes that one append commits: each is decided on the draft that the previous ones left.

A request can withdraw its command until the group is handed to the log; from then on only the log decides its outcome.
"""

import threading
import time
from asyncio import Future
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from strata.registry import errors
from strata.registry.decide.decision import Decide
from strata.storage.log import Conflict, Record, RecordTooLarge
from strata.storage.state import State

__all__ = ["Command", "Outcome", "PenLost", "Plan", "claimed", "plan", "refuse"]


@dataclass(slots=True, eq=False)
class Command:
    """A waiting write; either the log takes it or the request withdraws it, and `take` succeeds only once.

    `written` is called with the offset of the command's last record, once the log has it, even if its client has left.
    `records` is how many records its last decision has.
    """

    decide: Decide[Any]
    done: "Future[Any]"
    deadline: float
    written: Callable[[int], None] | None = None
    records: int = 0
    _taken: threading.Lock = field(default_factory=threading.Lock)

    @property
    def waits(self) -> bool:
        """Whether a client still waits for the answer."""
        return not self.done.done() and time.monotonic() < self.deadline

    def take(self) -> bool:
        """Claim the command, for the log or to withdraw it; return False if the other side came first."""
        return self._taken.acquire(blocking=False)

    def give_back(self) -> None:
        """Release the claim: the log has not written the command."""
        self._taken.release()

    def settle(self, answer: Any, failure: Exception | None) -> None:
        """Answer the request, unless its client has left."""
        if self.done.done():
            return
        if failure is None:
            self.done.set_result(answer)
        else:
            self.done.set_exception(failure)


Outcome = tuple[Command, Any, Exception | None]


@dataclass(slots=True)
class Plan:
    """The decisions on a group: the records to append, the outcomes, and whether every command has records."""

    records: list[Record]
    outcomes: list[Outcome]
    all_append: bool = True


class PenLost(Exception):
    """The loss of the pen to another node; nothing was written."""


@contextmanager
def claimed(group: Sequence[Command]) -> Iterator[None]:
    """Claim all commands of a group, and release them if the log reports that it wrote nothing."""
    taken = [command for command in group if command.take()]
    if len(taken) < len(group) or not all(command.waits for command in group):
        _give_back(taken)
        raise Conflict
    try:
        yield
    except (Conflict, RecordTooLarge, PenLost):
        _give_back(taken)
        raise


def _give_back(taken: Sequence[Command]) -> None:
    for command in taken:
        command.give_back()


def plan(state: State, group: Sequence[Command]) -> Plan:
    """Decide each command of a group on the draft that the previous ones left."""
    draft, now = state, time.time_ns() // 1_000_000
    made = Plan([], [])
    for command in group:
        try:
            decision = command.decide(draft)
        except Exception as failure:  # noqa: BLE001 - a failure must not affect the other requests of the group
            command.records = 0
            made.outcomes.append((command, None, failure))
            made.all_append = False
            continue
        records = [*decision.records, *draft.tombstones_besides(decision.records)]
        made.outcomes.append((command, decision.answer, None))
        made.records += records
        command.records = len(records)
        made.all_append &= bool(records)
        if records and command is not group[-1]:
            draft = draft.drafted(records, now)
    return made


def refuse(group: Sequence[Command], error: errors.RegistryError) -> None:
    """Answer all commands of a group with an error."""
    for command in group:
        command.settle(None, error)
