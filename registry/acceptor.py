"""Accepts connections, no more than there is room for.

The event loops' own servers accept whatever waits. When the process runs out of file descriptors, uvloop's server
ends for good, and asyncio's pauses for everybody. Here a connection without room is closed at once.
"""

import asyncio
import logging
import resource
import socket
import ssl
from collections.abc import Callable

__all__ = ["Acceptor", "room_for"]

_AT_ONCE = 64
_PAUSE_S = 0.1
_SURPLUS = 16  # connections beyond the limit that are answered 503 before they are closed
_OTHER_DESCRIPTORS = 96  # files, the event loop, connections to the log and to other nodes
_log = logging.getLogger("strata")


def room_for(connections: int) -> int:
    """Return how many connections the limit on file descriptors allows, at most as many as wanted.

    Raises the process's own limit as far as it may.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + _SURPLUS + _OTHER_DESCRIPTORS
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return connections
    if hard == resource.RLIM_INFINITY or hard > soft:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    room = max(soft // 4, soft - _SURPLUS - _OTHER_DESCRIPTORS)
    if room < connections:
        _log.warning("%d file descriptors allow %d connections, not %d (ulimit -n)", soft, room, connections)
    return min(room, connections)


class Acceptor:
    """Accepts the connections of one listening socket, as `asyncio.Server` does.

    Args:
        listener: the listening socket.
        protocol: makes the protocol of a connection.
        count: how many connections are open.
        limit: how many may be; a few more are made so that they can be answered.
        tls: the server's side of TLS.
    """

    def __init__(
        self,
        listener: socket.socket,
        protocol: Callable[[], asyncio.Protocol],
        *,
        count: Callable[[], int],
        limit: int,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._listener, self._protocol, self._tls = listener, protocol, tls
        self._count, self._most = count, limit + _SURPLUS
        self._starting: set[asyncio.Task[object]] = set()
        self._retry: asyncio.TimerHandle | None = None
        listener.setblocking(False)
        self._listen()

    def _listen(self) -> None:
        self._retry = None
        self._loop.add_reader(self._listener, self._accept)

    def _accept(self) -> None:
        for _ in range(_AT_ONCE):
            try:
                connection, _address = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                _log.warning("cannot accept a connection: %s", error)
                self._loop.remove_reader(self._listener)
                self._retry = self._loop.call_later(_PAUSE_S, self._listen)
                return
            if self._count() + len(self._starting) >= self._most:
                connection.close()
                continue
            connection.setblocking(False)
            starting = self._loop.create_task(self._start(connection))
            self._starting.add(starting)
            starting.add_done_callback(self._starting.discard)

    async def _start(self, connection: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self._protocol, connection, ssl=self._tls)
        except OSError as error:
            _log.debug("a connection ended as it began: %s", error)
            connection.close()

    def close(self) -> None:
        """Accept no more connections."""
        self._loop.remove_reader(self._listener)
        if self._retry is not None:
            self._retry.cancel()

    async def wait_closed(self) -> None:
        """Wait for the connections that are being made."""
        await asyncio.gather(*self._starting, return_exceptions=True)
