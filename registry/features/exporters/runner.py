"""Copies the subjects of all exporters to their destinations, and notes the progress in the log.

Each process that writes runs this, but one node at a time copies for an exporter: the first record of a copy makes the
node its owner, on the condition that the log shows the progress that the node knows. The owner shows that it is alive
by its progress and, in a long copy, by beats. Another node takes over when something is left to copy and the owner has
been silent. On a Kafka log only the holder of the pen can write such a record.

While it runs, a copy knows what the destination holds, and sends what has changed. After a start, a failure or a
change of hands, the log tells whether anything is left: if so, the destination is listed and compared.
"""

import asyncio
import logging
import ssl
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial

from strata.registry.core import errors
from strata.registry.core.decide.exporters import RUNNING, STARTING, Superseded, note_progress, progress_of
from strata.registry.core.decide.standby import source_of_everything
from strata.registry.core.errors import RegistryError
from strata.registry.core.tally import Tally
from strata.registry.core.writer import Writer
from strata.registry.features.exporters.choice import Place, choice_of
from strata.registry.features.exporters.credentials import Credentials
from strata.registry.features.exporters.destination import destination_of
from strata.registry.features.exporters.job import Job
from strata.registry.features.exporters.plan import Since, held_after, plan, removed, since
from strata.registry.features.exporters.target import Stopped, Target
from strata.registry.http.node_calls import pool_manager, responds
from strata.registry.node.own_thread import in_own_thread
from strata.registry.transfer.copies import TransferError
from strata.registry.transfer.progress import reported, silent
from strata.storage.log import START, LogCompacted, LogError
from strata.storage.records import ExportValue, SchemaValue, context_of
from strata.storage.state import State

__all__ = ["Exporters"]

_THREAD = "strata-export"
_AT_ONCE = 4
_BEAT_S = 5.0
_WITHOUT_LOG_S = 5.0
_LONGEST_TRACE = 2000  # characters; a destination may answer with any text
_REST = 4.0  # times as long as comparing took
_log = logging.getLogger("strata.exporters")


class Exporters:
    """The exporters of a log, as one node runs them.

    Args:
        writer: the writer of this node.
        credentials: decrypts the credentials of exporters.
        auto: the context of the type AUTO.
        me: the name of this node, which no other node of the log has.
        every_s: seconds between two checks of the log.
        tally: the numbers of the process.
        tls: returns the TLS context for calls to other nodes.
    """

    def __init__(
        self,
        writer: Writer,
        credentials: Credentials,
        auto: str,
        *,
        me: str,
        every_s: float,
        tally: Tally,
        tls: Callable[[], ssl.SSLContext] = ssl.create_default_context,
    ) -> None:
        self._writer, self._credentials, self._auto, self._me = writer, credentials, auto, me
        self._every_s, self._tally = every_s, tally
        self._jobs: dict[str, Job] = {}
        self._running: dict[str, asyncio.Task[None]] = {}
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._nodes = pool_manager(1, tls)

    async def watch(self) -> None:
        """Copy until cancelled."""
        try:
            while True:
                await self._look()
                await asyncio.sleep(self._every_s)
        finally:
            for job in self._jobs.values():
                job.stop.set()
            for task in self._running.values():
                task.cancel()

    async def _look(self) -> None:
        """Start the copies that are due, and stop those whose exporter has changed."""
        state = self._writer.state
        if state.exporters:
            with suppress(RegistryError):
                state = await self._writer.catch_up()
        is_standby = source_of_everything(state) is not None
        wanted = {} if is_standby else {name: value for name, value in state.exporters.items() if not value.paused}
        for name in [name for name, job in self._jobs.items() if wanted.get(name) != job.exporter]:
            self._jobs.pop(name).stop.set()
        for name, exporter in wanted.items():
            job = self._jobs.get(name)
            if job is None:
                job = self._jobs[name] = Job(name, exporter, choice_of(exporter, self._auto))
            under_way = self._running.get(name)
            if (under_way is None or under_way.done()) and time.monotonic() >= job.due:
                self._running[name] = asyncio.create_task(self._turn(job))

    async def _turn(self, job: Job) -> None:
        """Copy once, if there is something to copy and it is this node's turn."""
        async with self._turns:
            try:
                await self._copy(job)
            except (Superseded, Stopped):
                job.begin_again()
            except TransferError as error:
                await self._fail(job, str(error))
            except (RegistryError, LogError) as error:
                await self._wait(job, error)
            except Exception as error:  # noqa: BLE001 - the watch must survive any failure
                _log.exception("the exporter %(exporter)s failed", {"event": "exporter_broken", "exporter": job.name})
                await self._fail(job, f"a defect of this registry: {error!r}")

    async def _copy(self, job: Job) -> None:
        """Compare, and copy what differs.

        Raises:
            Superseded: if the exporter has changed, or another node copies.
            Stopped: likewise.
            TransferError: if the destination fails or rejects something.
            RegistryError: if this node's log fails.
            LogError: likewise.
        """
        state, began = self._writer.state, time.monotonic()
        job.note(progress_of(state, job.name), began)
        if job.is_settled(state):
            return
        wanted = await self._writer.in_thread(job.choice.wanted, state)
        gone: frozenset[Place] = frozenset()
        if job.held is None:
            news = await in_own_thread(partial(self._since, job, wanted), _THREAD)
            if news.is_empty:
                job.copied(state, wanted)
                return
            gone = news.gone
        elif job.held == held_after(wanted):
            job.copied(state, wanted)
            return
        job.due = time.monotonic() + (time.monotonic() - began) * _REST
        if job.is_mine(self._me, began) and await self._may_write(job):
            await self._carry_out(job, state, wanted, gone)

    async def _may_write(self, job: Job) -> bool:
        """Return whether this node can note what it copies; the holder of the pen copies, unless it is gone."""
        if self._writer.holder() is None:
            return True
        await self._pass_over_silent_holder()
        job.due = time.monotonic() + max(self._every_s, _WITHOUT_LOG_S)
        return False

    def _since(self, job: Job, wanted: Mapping[Place, SchemaValue]) -> Since:
        """Return what the log says about the time since the last copy; blocks."""
        progress = job.progress
        if progress is None or progress.offset == START:
            return Since(is_empty=False)
        try:
            news = since(self._writer.log.read(progress.offset), job.choice, {subject for subject, _ in wanted})
        except LogCompacted:
            return Since(is_empty=False)
        return replace(news, is_empty=news.is_empty and not progress.trace)

    async def _carry_out(
        self, job: Job, state: State, wanted: dict[Place, SchemaValue], gone: frozenset[Place]
    ) -> None:
        """Bring the destination to what is wanted, and note it."""
        if job.progress is None or job.progress.owner != self._me:
            await self._note(job, owner=self._me)
        await self._while_beating(job, partial(self._send, job, state, wanted, gone))
        is_news = job.failures > 0 or job.progress is None or job.progress.state != RUNNING
        job.failures = 0
        await self._note(job, state=RUNNING, offset=state.offset, ts=time.time_ns() // 1_000_000, trace="")
        job.copied(state, wanted)
        if is_news:
            _log.info(
                "the exporter %(exporter)s has copied everything to %(destination)s",
                {"event": "exporter_running", "exporter": job.name, "destination": _address(job)},
            )

    def _send(self, job: Job, state: State, wanted: Mapping[Place, SchemaValue], gone: frozenset[Place]) -> None:
        """Send to the destination what it lacks; blocks."""
        with reported(silent):
            if job.connection is None:
                config = self._credentials.opened(job.name, job.exporter.config)
                job.connection = destination_of(config).connection()
            target = Target(job.connection, job.stop)
            if job.held is None or job.seen is None:
                held = target.held({context_of(subject) for subject, _ in {*wanted, *gone}})
            else:
                held, gone = job.held, removed(job.seen, state, job.choice)
            target.carry_out(plan(wanted, held, gone), held)

    async def _while_beating(self, job: Job, call: Callable[[], None]) -> None:
        """Run a long call, and show the other nodes meanwhile that this one is alive."""
        work = asyncio.ensure_future(in_own_thread(call, _THREAD))
        try:
            while not (await asyncio.wait({work}, timeout=_BEAT_S))[0]:
                await self._note(job, beats=1)
            work.result()
        finally:
            if not work.done():
                job.stop.set()
                work.cancel()

    async def _note(self, job: Job, *, beats: int = 0, **changes: str | int) -> None:
        """Note the progress of a copy in the log.

        Raises:
            Superseded: if the exporter has changed, or another node copies.
            RegistryError: if the log cannot be written.
        """
        before = job.progress or ExportValue(STARTING)
        after: ExportValue = replace(before, beat=before.beat + beats, **changes)  # type: ignore[arg-type]
        await self._writer.write(
            partial(note_progress, name=job.name, exporter=job.exporter, before=before, after=after)
        )
        job.written(after, time.monotonic())

    async def _fail(self, job: Job, reason: str) -> None:
        """Note why a copy failed, and wait longer each time."""
        reason = reason[:_LONGEST_TRACE]
        self._tally.add("strata_exporter_failures_total")
        if not job.failures or (job.progress and job.progress.trace != reason):
            _log.error(
                "the exporter %(exporter)s cannot copy to %(destination)s: %(reason)s",
                {
                    "event": "exporter_failed",
                    "exporter": job.name,
                    "destination": _address(job),
                    "reason": reason,
                },
            )
        job.fail(time.monotonic(), self._every_s)
        with suppress(Superseded, RegistryError, LogError):
            await self._note(job, state=RUNNING, trace=reason)

    async def _wait(self, job: Job, error: RegistryError | LogError) -> None:
        """Wait for this node's log, or for the pen, whose holder may be gone."""
        job.due = time.monotonic() + max(self._every_s, _WITHOUT_LOG_S)
        if isinstance(error, RegistryError) and error.code == errors.not_the_writer.code:
            await self._pass_over_silent_holder()

    async def _pass_over_silent_holder(self) -> None:
        """Take the pen with the next write if the node that holds it does not respond."""
        holder = self._writer.log.holder()
        if holder is not None and not await in_own_thread(partial(responds, self._nodes, holder), _THREAD):
            self._writer.pass_over(holder)


def _address(job: Job) -> str:
    return job.exporter.config.get("schema.registry.url", "")
