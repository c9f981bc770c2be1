"""Whether a node is fit to serve: alive, its log answering, its State fresh, and not about to end.

A node that nobody asks reads the log now and then, so that it notices a dead log, or records that a foreign writer
left, by itself. It also looks whether the log has become read-only. Probes are answered from memory: a log that hangs
holds up no answer. Anybody may ask, so the answers use general words; the service's own log has the details.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from registry.errors import RegistryError
from registry.writer import Writer
from storage.log import LogError, LogReadOnly

__all__ = ["Health"]

_EVERY_S = 5.0
_TOO_LONG_S = 15.0
_log = logging.getLogger("strata.health")


class Health:
    """Watches the log of one node, and says whether the node is ready.

    Args:
        writer: holds the State, and reads the log.
        draining: whether the node is about to end.
        every_s: how often the log is read at least.
        too_long_s: how long the log may go without an answer before the node is not ready.
    """

    def __init__(
        self,
        writer: Writer,
        draining: Callable[[], bool],
        *,
        every_s: float = _EVERY_S,
        too_long_s: float = _TOO_LONG_S,
    ) -> None:
        self._writer = writer
        self._draining = draining
        self._every_s, self._too_long_s = every_s, too_long_s
        self._end = writer.state.offset
        self._read_only = False
        self._was_ready = True

    async def watch(self) -> None:
        """Read the log when nobody else did, until cancelled."""
        while True:
            await asyncio.sleep(self._every_s)
            try:
                if time.monotonic() - self._writer.read_at >= self._every_s:
                    with suppress(RegistryError):  # kept by the writer as the reason
                        await self._writer.catch_up()
                with suppress(LogError):
                    self._end = await self._writer.end()
                self._read_only = await self._is_read_only()
            except Exception:  # noqa: BLE001 - whatever happens, the watch goes on
                _log.exception("watching the log failed")
            self._tell_changes()

    def progress(self) -> dict[str, Any]:
        """Return how far this node has read, and how old that knowledge is."""
        offset = self._writer.state.offset
        end = max(self._end, offset)
        age = time.monotonic() - self._writer.read_at
        return {"offset": offset, "end": end, "behind": end - offset, "secondsSinceRead": round(age, 3)}

    def reason(self) -> str | None:
        """Return why this node is not ready; None when it is."""
        if self._draining():
            return "the node is about to end"
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
        except LogError:  # the next read says more
            pass
        return False

    def _tell_changes(self) -> None:
        reason = self.reason()
        if reason is not None and self._was_ready:
            _log.log(logging.INFO if self._draining() else logging.ERROR, "not ready: %s", reason)
        elif reason is None and not self._was_ready:
            _log.info("ready again")
        self._was_ready = reason is None
