"""Accepts connections up to a limit.

The servers of the event loops accept every waiting connection. When the process runs out of file descriptors, uvloop's
server stops for good, and asyncio's pauses for all clients. This acceptor closes a connection above the limit at once.

Several processes may accept at one socket. The system wakes all of them, and without a rule the first one gets many
connections in a row, which then stay with it. So a process that has more connections than another one waits a moment
before it accepts.
"""

import asyncio
import errno
import logging
import resource
import socket
import ssl
from collections.abc import Callable, Sized
from contextlib import suppress
from typing import Any, Protocol

__all__ = ["Acceptor", "room_for"]

_AT_ONCE = 64
_PAUSE_S = 0.1
_YIELD_S = 0.01  # for a process with fewer connections to accept the next one
_SURPLUS = 16  # connections above the limit that get a 503 before they are closed
_PROTOCOL_CLOSES_S = 3600.0  # the protocol has timers for closing, which end much sooner
_OTHER_DESCRIPTORS = 96  # for files, the event loop, and connections to the log and to other nodes
_log = logging.getLogger("strata")


def room_for(connections: int) -> int:
    """Return how many connections the file descriptor limit allows, at most the wanted number.

    Raises the process's soft limit as far as the hard limit allows.

    Args:
        connections: the wanted number of connections.
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
        _log.warning(
            "%(files)d file descriptors allow %(room)d connections, not %(wanted)d (ulimit -n)",
            {"event": "too_few_files", "files": soft, "room": room, "wanted": connections},
        )
    return min(room, connections)


class _Tls(Protocol):
    """What has the TLS context for new connections."""

    accepting: ssl.SSLContext | None


class Acceptor:
    """An accept loop for one listening socket, with the interface of `asyncio.Server`.

    Args:
        listener: the listening socket.
        protocol: returns the protocol for a new connection.
        connections: the open connections.
        limit: the most open connections; a few more are accepted so that they get a 503.
        has_most: returns whether, with so many connections here, another process at the same socket has fewer.
        tls: has the TLS context for a new connection; None for plain connections.
        handshake_s: the longest handshake, in seconds.
        leaves: returns whether all processes at the socket are about to end.
    """

    def __init__(
        self,
        listener: socket.socket,
        protocol: Callable[[], asyncio.Protocol],
        *,
        connections: Sized,
        limit: int,
        has_most: Callable[[int], bool] = lambda _connections: False,
        tls: _Tls | None = None,
        handshake_s: float = 10.0,
        leaves: Callable[[], bool] = lambda: False,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._listener, self._protocol = listener, protocol
        self._tls, self._handshake_s = tls, handshake_s
        self._connections, self._most, self._has_most = connections, limit + _SURPLUS, has_most
        self._leaves, self._is_closed = leaves, False
        self._starting: set[asyncio.Task[object]] = set()
        self._retry: asyncio.TimerHandle | None = None
        listener.setblocking(False)
        self._listen()

    def _listen(self) -> None:
        self._retry = None
        self._loop.add_reader(self._listener, self._accept)

    def _listen_after_wait(self) -> None:
        self._listen()
        self._accept(has_waited=True)

    def _accept(self, *, has_waited: bool = False) -> None:
        if self._is_closed:  # the event loop had found the socket readable before
            return
        for turn in range(_AT_ONCE):
            has_most = self._has_most(len(self._connections) + len(self._starting))
            if has_most and not (has_waited and turn == 0):
                self._loop.remove_reader(self._listener)
                self._retry = self._loop.call_later(_YIELD_S, self._listen_after_wait)
                return
            try:
                connection, _address = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno == errno.EINVAL:  # another process at the socket leaves, and has shut it down
                    self._loop.remove_reader(self._listener)
                    return
                _log.warning("cannot accept a connection: %(reason)s", {"event": "accept_failed", "reason": str(error)})
                self._loop.remove_reader(self._listener)
                self._retry = self._loop.call_later(_PAUSE_S, self._listen)
                return
            if len(self._connections) + len(self._starting) >= self._most:
                connection.close()
                continue
            connection.setblocking(False)
            starting = self._loop.create_task(self._start(connection))
            self._starting.add(starting)
            starting.add_done_callback(self._starting.discard)

    async def _start(self, connection: socket.socket) -> None:
        options: dict[str, Any] = {}
        if self._tls is not None and (context := self._tls.accepting) is not None:
            options = {
                "ssl": context,
                "ssl_handshake_timeout": self._handshake_s,
                "ssl_shutdown_timeout": _PROTOCOL_CLOSES_S,
            }
        try:
            await self._loop.connect_accepted_socket(self._protocol, connection, **options)
        except ssl.SSLCertVerificationError as error:
            _log.info(
                "a client's certificate is not valid: %(reason)s",
                {"event": "client_certificate_invalid", "reason": error.verify_message},
            )
        except OSError as error:  # such as another failed handshake
            _log.debug("a connection failed during its handshake: %s", error)
            connection.close()

    def close(self) -> None:
        """Stop accepting connections, and end TLS handshakes; a second call does nothing.

        If the socket's processes are about to end, accept what waits, and let the system refuse what comes then. It
        would accept connections as long as one process holds the socket, and none would answer.
        """
        if self._is_closed:
            return
        if self._leaves():
            self._accept(has_waited=True)
            with suppress(OSError):  # another process has done it
                self._listener.shutdown(socket.SHUT_RDWR)
        self._is_closed = True
        for starting in self._starting if self._tls is not None and self._tls.accepting else ():
            starting.cancel()
        self._loop.remove_reader(self._listener)
        if self._retry is not None:
            self._retry.cancel()

    async def wait_closed(self) -> None:
        """Wait until the connections being accepted are set up."""
        await asyncio.gather(*self._starting, return_exceptions=True)
