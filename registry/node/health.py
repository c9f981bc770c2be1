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
from contextlib import suppress
from typing import Any, Protocol

from strata.registry.core.decide.standby import copied_parts, source_of_everything
from strata.registry.core.errors import RegistryError
from strata.registry.core.tally import COPY_STEPS, FACTS
from strata.registry.core.writer import WRITE_FAILURES, Writer
from strata.registry.node.board import Seat
from strata.storage.log import LogError, LogReadOnly

__all__ = ["WITH_RIGHTS_S", "Health"]

WITH_RIGHTS_S = 1.0
"""The interval with access control: answers from memory follow a revocation on another node that soon."""

_EVERY_S = 5.0
_TOO_LONG_S = 15.0
_log = logging.getLogger("strata.health")


class AuthFile(Protocol):
    """An auth file that is read again when it changes."""

    @property
    def failure(self) -> str | None:
        """Why the newest content cannot be used; None if it is in force."""


class Health:
    """A watch on the log of one node that reports whether the node is ready, for requests and for writes.

    Each worker of a node watches the log for itself, and the node is ready only if all its workers are.

    Args:
        writer: the writer, which holds the State and reads the log.
        seat: this worker's place among the workers of the node.
        every_s: the interval between two reads of the log, in seconds; None for the default.
        too_long_s: how long the log may be silent before the node is not ready for writes, in seconds.
        auth_file: the auth file in force, if there is one.
    """

    def __init__(
        self,
        writer: Writer,
        seat: Seat,
        *,
        every_s: float | None = None,
        too_long_s: float = _TOO_LONG_S,
        auth_file: AuthFile | None = None,
    ) -> None:
        self._writer = writer
        self._auth_file = auth_file
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

    def progress(self) -> dict[str, Any]:
        """Return how far this node has read, and the age of that information."""
        offset = self._writer.state.offset
        end = max(self._end, offset)
        age = time.monotonic() - self._writer.read_at
        return {"offset": offset, "end": end, "behind": end - offset, "secondsSinceRead": round(age, 3)}

    def standby(self) -> dict[str, Any] | None:
        """Return what this registry copies, and how old the newest complete copy is; None if it is not a standby.

        The age counts from when the reading of the source began: the copy has everything that was there then.
        """
        parts = copied_parts(self._writer.state)
        if not parts:
            return None
        scope, value = min(parts.items(), key=lambda part: part[1].copied_at)
        copied_at = self._seat.board.numbers(0)[FACTS["copied_at"]]
        age = time.monotonic() - copied_at if copied_at else time.time() - value.copied_at / 1000
        behind = round(max(0.0, age), 3) if value.copied_at else None
        found: dict[str, Any] = {"source": value.source, "context": scope, "secondsBehind": behind}
        return found | ({"reading": reading} if (reading := self.reading()) else {})

    def reading(self) -> dict[str, Any] | None:
        """Return how far a standby has read the service that it copies; None while it reads none."""
        cells = self._seat.board.numbers(0)
        step, done, total = (int(cells[FACTS[name]]) for name in ("copy_step", "copy_done", "copy_total"))
        return {"step": COPY_STEPS[step - 1], "done": done, "total": total or None} if step else None

    def workers(self) -> list[bool]:
        """Return whether each worker of the node is ready, by its number."""
        board, own = self._seat.board, self._seat.number
        return [self._own_reason() is None if one == own else board.is_ready(one) for one in range(board.workers)]

    def auth_is_stale(self) -> bool:
        """Return whether an older auth file is in force, because the newest one cannot be used."""
        return self._auth_file is not None and self._auth_file.failure is not None

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
        if source := source_of_everything(self._writer.state):
            return f"this registry is a standby of {source}: it refuses writes"
        if failure := WRITE_FAILURES[int(self._seat.board.numbers(0)[FACTS["write_failed"]])]:
            return f"the last write failed: {failure}"
        if failing := self._seat.without_log():
            return f"not all workers of the node reach the log; these do not: {', '.join(map(str, failing))}"
        return None

    def _own_reason(self) -> str | None:
        for value in copied_parts(self._writer.state).values():
            if not value.copied_at:
                return f"the first copy of {value.source} is not complete"
        return None

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
