"""The reader of the log's tail, which keeps nodes with local reads close to the end of the log."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from strata.registry.core.decide.decision import Decision
from strata.registry.core.tail_reader import TailReader
from strata.registry.core.writer import Writer
from strata.storage.log import LogError, MemoryLog
from strata.storage.record_json import encode
from strata.storage.records import ModeKey

_WAIT_S = 60


@contextlib.asynccontextmanager
async def _watched(writer: Writer) -> AsyncIterator[None]:
    watching = asyncio.create_task(TailReader(writer).watch())
    try:
        yield
    finally:
        watching.cancel()


async def _write(writer: Writer, subject: str) -> None:
    await writer.write(lambda _state: Decision(None, [encode(ModeKey(subject), "READONLY")]))


async def _until_known(writer: Writer, subject: str) -> None:
    async with asyncio.timeout(_WAIT_S):
        while True:
            if subject in writer.state.modes:
                return
            await asyncio.sleep(0.005)


async def test_an_idle_node_follows_the_log() -> None:
    """A node that nothing asks has what another one has written."""
    log = MemoryLog()
    idle, busy = Writer(log), Writer(log)
    async with _watched(idle):
        await _write(busy, "a")
        await _until_known(idle, "a")
        await _write(busy, "b")
        await _until_known(idle, "b")


async def test_a_log_that_fails_for_a_while() -> None:
    """A log that cannot be read ends nothing: the reader follows it again once it can be read."""

    class FailingLog(MemoryLog):
        failures = 3

        def read(self, after: int):  # type: ignore[no-untyped-def]
            if self.failures > 0:
                self.failures -= 1
                raise LogError("away")
            return super().read(after)

        def unchanged(self, _after: int) -> bool:
            return False

    log = FailingLog()
    idle, busy = Writer(log), Writer(log)
    async with _watched(idle):
        while log.failures > 0:  # noqa: ASYNC110 - the log counts, and tells nothing
            await asyncio.sleep(0.005)
        await _write(busy, "a")
        await _until_known(idle, "a")
