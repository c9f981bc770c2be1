"""Keeps this registry a copy of its source: reads the source, writes what differs, and waits.

The process that writes follows; on a standby of several nodes each node does, and the log keeps the latest reading. A
source that cannot be read changes nothing: reads are served from what was copied.
"""

import asyncio
import logging
import ssl
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import replace
from functools import partial

from strata.registry.core import errors
from strata.registry.core.errors import RegistryError
from strata.registry.core.tally import COPY_STEPS, FACTS, Tally
from strata.registry.core.writer import Writer
from strata.registry.features.standby.copying import (
    KAFKA_APPEND,
    OTHER_APPEND,
    FollowRefused,
    Promoted,
    Step,
    Target,
    copy_step,
    first_mark,
)
from strata.registry.features.standby.scope import Scope
from strata.registry.features.standby.sources import Reading, Source
from strata.registry.http.node_calls import pool_manager, responds
from strata.registry.node.own_thread import in_own_thread
from strata.registry.transfer.contents import changed_subjects, highest_held
from strata.registry.transfer.copies import TransferError
from strata.storage.log import Conflict, LogError
from strata.storage.records import StandbyValue, Subject

__all__ = ["Follower"]

_SHORT_S = 0.05  # after a race with another node
_SLOWEST_S = 30.0
_PATIENCE_S = 5.0  # with a holder of the pen that does not make this copy
_TELLING_S = 5.0  # between two lines of progress
_THREAD = "strata-follow"
_log = logging.getLogger("strata.standby")


class Follower:
    """The copying of one source.

    Args:
        writer: the writer of this node.
        source: the registry to copy.
        scope: the part to copy.
        every_s: the pause between two readings of the source, in seconds.
        tally: the numbers of the process.
        tls: returns the TLS context for calls to other nodes.
    """

    def __init__(
        self,
        writer: Writer,
        source: Source,
        scope: Scope,
        *,
        every_s: float,
        tally: Tally,
        tls: Callable[[], ssl.SSLContext],
    ) -> None:
        self._writer, self._source, self._scope, self._tally = writer, source, scope, tally
        self._every_s = every_s
        self._nodes = pool_manager(1, tls)
        self._mine: StandbyValue | None = None
        # The reading that the standby's log holds completely, and its offset then.
        self._synced: tuple[Reading, int] | None = None
        self._reading: Reading | None = None
        # The mark of the copy when the holder of the pen kept this node from writing, and since when, in seconds.
        self._refused: tuple[StandbyValue, float] | None = None
        self._failures = 0
        self._told_at = 0.0
        source.report = self._tell_progress

    def begin(self) -> None:
        """Make the log a standby, which no client may write to, before it serves and before the source answers; blocks.

        Raises:
            FollowRefused: if the log holds something of its own.
            LogError: if the log cannot be read or written.
        """
        while mark := first_mark(self._writer.state, self._source.name, self._scope):
            with suppress(Conflict):
                self._writer.log.append(self._writer.state.offset, mark)
            self._writer.replay(quietly=True)

    async def watch(self) -> None:
        """Copy until cancelled or promoted."""
        _log.info("following %(source)s", {"event": "following", "source": self._source.name})
        try:
            while True:
                pause_s = await self._turn()
                if pause_s is None:
                    return
                await asyncio.sleep(pause_s)
        finally:
            self._source.close()

    async def _turn(self) -> float | None:
        """Copy once; return how long to wait, in seconds, or None if that was the last time."""
        try:
            is_done = await self.copy()
        except Promoted:
            _log.warning(
                "this registry was promoted and follows %(source)s no longer; --follow is ignored",
                {"event": "promoted", "source": self._source.name},
            )
            return None
        except (RegistryError, LogError, TransferError, FollowRefused, ValueError) as error:
            return await self._fail(error)
        except Exception as error:  # noqa: BLE001 - the watch must survive any failure
            _log.exception("following failed", {"event": "follow_broken"})
            return await self._fail(error)
        if self._failures:
            _log.info("following %(source)s again", {"event": "following", "source": self._source.name})
        self._failures = 0
        if self._refused is not None:
            self._refused = None
            self._writer.pass_over_none()
        return self._every_s if is_done else _SHORT_S

    async def copy(self) -> bool:
        """Read the source and write what differs; return whether this registry now holds what was read.

        Raises:
            Promoted: if this registry is a writer now.
            FollowRefused: if the copy would harm what it holds.
            LogError: if the source is a log that cannot be read.
            TransferError: if the source is a service that cannot be read, or something cannot be copied.
            RegistryError: if the standby's log cannot be read or written.
        """
        state = await self._writer.catch_up()
        before = state.standbys[self._scope.into]
        if before.promoted_at:
            raise Promoted
        began = time.monotonic()
        try:
            reading = self._reading = await in_own_thread(self._source.read, _THREAD)
        finally:
            self._tally.cells[FACTS["copy_step"]] = 0
        if not self._is_synced(reading, state.offset):
            target = await self._writer.in_thread(self._narrow_target, reading)
            while (step := await self._step(target, before, reading)).left or step.needs_all:
                if target.subjects is not None:
                    target = await self._writer.in_thread(self._target, reading)
            if step.is_late:
                return False
        self._tally.cells[FACTS["copied_at"]] = began
        return True

    def _tell_progress(self, title: str, done: int, total: int) -> None:
        """Show how far a read has come, and log it now and then until the first copy is complete."""
        name = title.rpartition(", ")[2]
        cells, now = self._tally.cells, time.monotonic()
        cells[FACTS["copy_done"]], cells[FACTS["copy_total"]] = done, total
        cells[FACTS["copy_step"]] = COPY_STEPS.index(name) + 1 if name in COPY_STEPS else 0
        if cells[FACTS["copied_at"]] or now < self._told_at + _TELLING_S:
            return
        self._told_at = now
        _log.info(
            "reading %(source)s: %(step)s, %(done)d of %(total)s",
            {
                "event": "follow_progress",
                "source": self._source.name,
                "step": name,
                "done": done,
                "total": total or "?",
            },
        )

    async def _step(self, target: Target, before: StandbyValue, reading: Reading) -> Step:
        """Write the next records of a copy, and note when it is complete."""
        written: list[int] = []
        decide = partial(copy_step, target=target, before=before, mine=self._mine)
        step: Step = await self._writer.write(decide, written.append)
        self._mine = step.standby
        if not (step.left or step.needs_all or step.is_late):
            self._synced = reading, (written or [step.decided_at])[-1]
        return step

    def _is_synced(self, reading: Reading, offset: int) -> bool:
        """Return whether nothing has changed at either side since the last complete copy."""
        return self._synced is not None and self._synced[0].state is reading.state and self._synced[1] == offset

    def _narrow_target(self, reading: Reading) -> Target:
        """Return what the copy must hold, of all subjects only those that have changed at the source, if possible."""
        if self._synced is None or not self._scope.is_everything:
            return self._target(reading)
        last, base = self._synced
        subjects, shown = changed_subjects(last.state, reading.state), highest_held(reading.state)
        return replace(self._target(reading, subjects), subjects=subjects, shown=shown, base=base)

    def _target(self, reading: Reading, subjects: Collection[Subject] | None = None) -> Target:
        return Target(
            self._source.name,
            self._scope,
            self._scope.wanted(reading.state, subjects),
            reading.position,
            reading.began_at,
            reading.unlisted,
            time_of=self._scope.times(reading.state),
            append=KAFKA_APPEND if self._writer.log.status().backend == "kafka" else OTHER_APPEND,
        )

    async def _fail(self, error: Exception) -> float:
        """Report a failure, the first of several in a row; return how long to wait."""
        if isinstance(error, RegistryError) and error.code == errors.not_the_writer.code:
            await self._pass_over_idle_holder()
            return self._every_s
        self._failures += 1
        self._tally.add("strata_standby_failures_total")
        if self._failures == 1:
            _log.error(
                "%(source)s cannot be followed now: %(reason)s",
                {"event": "follow_failed", "source": self._source.name, "reason": str(error)},
            )
        return float(min(_SLOWEST_S, self._every_s * 2 ** min(self._failures, 10)))

    async def _pass_over_idle_holder(self) -> None:
        """Take the pen with the next write if the node that holds it does not respond, or does not make this copy.

        On one Kafka log nodes may make several copies, each below a context. The holder makes its own, so the others
        have to take the pen in turn. A holder that makes this copy moves its mark, and keeps the pen.
        """
        holder = self._writer.log.holder()
        if holder is None:
            return
        mark, now = self._writer.state.standbys[self._scope.into], time.monotonic()
        if not await in_own_thread(partial(responds, self._nodes, holder), _THREAD):
            self._writer.pass_over(holder, despite_signing=True)
        elif self._refused is None or self._refused[0] != mark:
            self._refused = mark, now
        elif now - self._refused[1] > _PATIENCE_S and await self._is_behind():
            self._writer.pass_over(holder, despite_signing=True)

    async def _is_behind(self) -> bool:
        """Return whether the standby's log lacks something of the last reading."""
        state, reading = self._writer.state, self._reading
        if reading is None:
            return False
        is_behind = bool(await self._writer.in_thread(lambda: self._target(reading).differing(state)))
        if not is_behind:
            self._synced = reading, state.offset
        return is_behind
