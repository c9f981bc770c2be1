"""Serves an ASGI application over real HTTP from a thread of this process.

with serving(lambda port: app) as port:
http.client.HTTPConnection("127.0.0.1", port)
"""

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import uvicorn

from strata.registry.settings import Settings

__all__ = ["memory_settings", "serving"]

_POLL_S = 0.002
_TICK_S = 1.0


@cache
def memory_settings(**settings: Any) -> Settings:
    """Return settings with a log in memory; to find them takes longer than all else that a registry needs."""
    return Settings(log="memory:", **settings)


@contextmanager
def serving(make_app: Callable[[int], Any]) -> Iterator[int]:
    """Serve an application on a free loopback port until the block ends.

    Args:
        make_app: returns the application, given the port.

    Yields:
        the port.

    Raises:
        RuntimeError: the application did not start.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        server = _Server(uvicorn.Config(make_app(port), log_config=None, access_log=False, timeout_keep_alive=600))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            while not server.started:
                if not thread.is_alive():
                    raise RuntimeError("the application did not start")
                time.sleep(_POLL_S)
            yield port
        finally:
            server.stop()
            thread.join()


class _Server(uvicorn.Server):
    """A server without uvicorn's pauses of 0.1 s: each of many tests would wait for two of them."""

    def stop(self) -> None:
        """Have the server exit; called by another thread once it has started."""
        self._loop.call_soon_threadsafe(self._stopped.set)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start."""
        self._loop, self._stopped = asyncio.get_running_loop(), asyncio.Event()
        await super().startup(sockets)

    async def main_loop(self) -> None:
        """Wait until the server should exit."""
        while not self._stopped.is_set():
            await self.on_tick(0)  # the time in the header Date
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopped.wait(), _TICK_S)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close connections when their requests are answered, then shut down the application."""
        for server in self.servers:
            server.close()
        for listener in sockets or []:
            listener.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        while self.server_state.connections or self.server_state.tasks:  # noqa: ASYNC110 - the same
            await asyncio.sleep(_POLL_S)
        await self.lifespan.shutdown()
