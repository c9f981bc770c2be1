"""The health of a node: whether it is alive, may be sent requests, and can write.

The last two are different answers. A node whose log does not respond still serves what never changes, such as schemas
by id; if all nodes refused requests while the log is away, no client could read what each of them has in memory.

A node reads the log at intervals, so that it notices an unavailable log, a foreign writer's records or the revocation
of a right without any request. It also checks whether the log has become read-only. Probes are answered from memory, so
a log that hangs does not delay them. Any client may probe, and without access control sees the reasons, so these use
general words; the service's own log has the details.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypedDict

from strata.registry.core.errors import RegistryError
from strata.registry.core.tally import FACTS
from strata.registry.core.writer import WRITE_FAILURES, Writer
from strata.registry.node.board import Seat
from strata.storage.log import LogError, LogReadOnly

__all__ = ["WITH_RIGHTS_S", "Condition", "Health", "Progress"]

WITH_RIGHTS_S = 1.0
"""The interval with access control: answers from memory follow a revocation on another node that soon."""

_EVERY_S = 5.0
_TOO_LONG_S = 15.0
_log = logging.getLogger("strata.health")


class Progress(TypedDict):
    """How far a node has read the log, and the age of that information."""

    offset: int
    end: int
    behind: int
    secondsSinceRead: float


def _no_reason() -> str | None:
    return None


@dataclass(frozen=True, slots=True)
class Condition:
    """What a feature says about the health of a node.

    Attributes:
        reason: returns why requests should not be sent to the node; None if they may be.
        write_reason: returns why it cannot write; None if it can.
        details: returns what the health routes tell besides, to clients that may describe the cluster.
    """

    reason: Callable[[], str | None] = _no_reason
    write_reason: Callable[[], str | None] = _no_reason
    details: Callable[[], Mapping[str, object]] = dict


class Health:
    """A watch on the log of one node that reports whether the node is ready, for requests and for writes.

    Each worker of a node watches the log for itself, and the node is ready only if all its workers are.

    Args:
        writer: the writer, which holds the State and reads the log.
        seat: this worker's place among the workers of the node.
        every_s: the interval between two reads of the log, in seconds; None for the default.
        too_long_s: how long the log may be silent before the node is not ready for writes, in seconds.
        conditions: what features say about it.

    Attributes:
        conditions: the same.
    """

    def __init__(
        self,
        writer: Writer,
        seat: Seat,
        *,
        every_s: float | None = None,
        too_long_s: float = _TOO_LONG_S,
        conditions: Sequence[Condition] = (),
    ) -> None:
        self._writer = writer
        self.conditions = conditions
        self._seat = seat
        self._every_s, self._too_long_s = every_s or _EVERY_S, too_long_s
        self._end = writer.state.offset
        self._read_only = False
        self._was_ready = self._could_write = True

    async def watch(self) -> None:
        """Read the log every `every_s` seconds, until cancelled, whenever a request has read it last."""
        while True:
            await asyncio.sleep(self._every_s)
            try:
                with suppress(RegistryError):  # the writer keeps the reason
                    await self._writer.catch_up()
                with suppress(LogError):
                    self._end = await self._writer.end()
                self._read_only = await self._is_read_only()
                if self._seat.writes:
                    with suppress(LogError):
                        await self._writer.try_again()
            except Exception:  # noqa: BLE001 - the watch must survive any failure
                _log.exception("the health check failed", {"event": "watch_failed"})
            self._tell_changes()

    def progress(self) -> Progress:
        """Return how far this node has read, and the age of that information."""
        offset = self._writer.state.offset
        end = max(self._end, offset)
        age = time.monotonic() - self._writer.read_at
        return {"offset": offset, "end": end, "behind": end - offset, "secondsSinceRead": round(age, 3)}

    def workers(self) -> list[bool]:
        """Return whether each worker of the node is ready, by its number."""
        board, own = self._seat.board, self._seat.number
        return [
            self._own_reason() is None if number == own else board.is_ready(number) for number in range(board.workers)
        ]

    def details(self) -> dict[str, object]:
        """Return what features say besides, by name."""
        named = {name: value for condition in self.conditions for name, value in condition.details().items()}
        return dict(sorted(named.items()))

    def reason(self) -> str | None:
        """Return why requests should not be sent to this node; None if they may be."""
        if self._seat.board.is_draining:
            return "the node is shutting down"
        reason = self._own_reason()
        if reason is None and (missing := self._seat.missing()):
            return f"not all workers of the node are ready; these are not: {', '.join(map(str, missing))}"
        return reason

    def write_reason(self) -> str | None:
        """Return why this node cannot write, nor read what changes; None if it can."""
        if reason := self.reason() or self._log_reason():
            return reason
        if reason := _first(condition.write_reason for condition in self.conditions):
            return reason
        if failure := WRITE_FAILURES[int(self._seat.board.numbers(0)[FACTS["write_failed"]])]:
            return f"the last write failed: {failure}"
        if failing := self._seat.without_log():
            return f"not all workers of the node reach the log; these do not: {', '.join(map(str, failing))}"
        return None

    def _own_reason(self) -> str | None:
        return _first(condition.reason for condition in self.conditions)

    def _log_reason(self) -> str | None:
        if self._writer.read_failure is not None:
            return f"the log cannot be read: {self._writer.read_failure}"
        age = time.monotonic() - self._writer.read_at
        if age > self._too_long_s:
            return f"the log has not answered for {age:.0f} s"
        return f"{LogReadOnly.outline}: reads are served, writes are refused" if self._read_only else None

    async def _is_read_only(self) -> bool:
        try:
            await self._writer.check_writable()
        except LogReadOnly:
            return True
        except LogError:  # the next read reports it
            pass
        return False

    def _tell_changes(self) -> None:
        own, log, draining = self._own_reason(), self._log_reason(), self._seat.board.is_draining
        self._seat.report(ready=own is None, can_write=log is None)
        reason = self.reason() if draining else own
        if reason is not None and self._was_ready:
            level = logging.INFO if draining else logging.ERROR
            _log.log(level, "not ready: %(reason)s", {"event": "not_ready", "reason": reason})
        elif reason is None and not self._was_ready:
            _log.info("ready again", {"event": "ready_again"})
        if log is not None and self._could_write:
            _log.error("cannot write: %(reason)s", {"event": "cannot_write", "reason": log})
        elif log is None and not self._could_write:
            _log.info("can write again", {"event": "can_write_again"})
        self._was_ready, self._could_write = reason is None, log is None


def _first(reasons: Iterable[Callable[[], str | None]]) -> str | None:
    return next((reason for ask in reasons if (reason := ask()) is not None), None)
