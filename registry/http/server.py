"""The HTTP server of one process: it accepts connections up to a limit, and shuts down on signals.

The servers of the event loops accept every waiting connection. When the process runs out of file descriptors, uvloop's
server stops for good, and asyncio's pauses for all clients. The acceptor here closes a connection above the limit at
once.

Several processes may accept at one socket. The system wakes all of them, and without a rule the first one gets many
connections in a row, which then stay with it. So a process that has more connections than another one waits a moment
before it accepts.
"""

import asyncio
import errno
import logging
import math
import resource
import signal
import socket
import ssl
import time
from collections.abc import Callable, Sized
from contextlib import suppress
from dataclasses import replace
from functools import partial
from types import FrameType
from typing import Protocol

import uvicorn
from uvicorn.server import ServerState

from strata.registry.http.asgi import App
from strata.registry.http.link import AnsweringEnd, Followers
from strata.registry.http.pipeline import ConnectionCounts, Pipeline
from strata.registry.http.protocol import ConnectionLimits, HttpProtocol
from strata.registry.http.tls import TlsContexts
from strata.registry.node.board import Seat
from strata.registry.node.logs.lines import write_folded
from strata.registry.node.logs.signals import log_signal
from strata.registry.node.settings import CoreSettings

__all__ = ["Acceptor", "HttpServer", "room_for"]

_SHUTDOWN_SECONDS = 10
_HANDSHAKE_S = 10.0
_LAST_REQUESTS_S = 0.05  # for those that clients sent before they could know
_SCRAPERS = 16
_TICKS_A_REFRESH = 10  # one second
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
        context = None if self._tls is None else self._tls.accepting
        try:
            await self._loop.connect_accepted_socket(
                self._protocol,
                connection,
                ssl=context,
                ssl_handshake_timeout=None if context is None else self._handshake_s,
                ssl_shutdown_timeout=None if context is None else _PROTOCOL_CLOSES_S,
            )
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


class HttpServer(uvicorn.Server):
    """A server that keeps serving for a while after SIGTERM, not ready, so that load balancers stop sending requests.

    SIGINT shuts it down at once. One of several workers shuts down at once on SIGTERM, since its parent has waited
    already, and ignores SIGINT.

    Args:
        app: the app.
        settings: the settings of the service.
        seat: the place of this process among the workers of the node.
        tls: the TLS contexts, which the server keeps fresh.
        started: is called when the server accepts connections.
        parent: a pipe that closes when the parent of the workers ends; None if there is no parent.
        orphaned: is called when that happens.
        entrance: the socket at which the other workers pass writes on, if this is the one that writes.
        followers: the connections to those workers.
        metrics_at: the socket at which metrics are served, if they have one of their own.
        counts: counts connections and what is rejected before it reaches the app.
    """

    def __init__(
        self,
        app: Pipeline,
        settings: CoreSettings,
        seat: Seat,
        *,
        tls: TlsContexts,
        started: Callable[[], None],
        parent: int | None = None,
        orphaned: Callable[[], None] = lambda: None,
        entrance: socket.socket | None = None,
        followers: Followers | None = None,
        metrics_at: socket.socket | None = None,
        counts: ConnectionCounts | None = None,
    ) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                lifespan="on",
                server_header=False,
                timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
                timeout_keep_alive=settings.idle_seconds,
                proxy_headers=False,
                ws="none",
            )
        )
        self._app, self._seat, self._tls, self._tell_started = app, seat, tls, started
        self._parent, self._orphaned, self._entrance, self._metrics_at = parent, orphaned, entrance, metrics_at
        self._followers = followers or Followers()
        self._drain_s = settings.drain_seconds if parent is None else 0.0
        self._counts = counts
        self._ends_at = math.inf
        self._signals: list[int] = []  # that are not logged yet: their handler may have interrupted the logging
        self._links: asyncio.AbstractServer | None = None
        self._limits = ConnectionLimits(
            connections=room_for(settings.max_connections),
            headers=settings.max_headers,
            head_bytes=settings.max_header_bytes,
            seconds=settings.request_seconds,
        )

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the app, then accept connections on the sockets."""
        await super().startup(sockets=[])
        loop = asyncio.get_running_loop()
        if self._parent is not None:
            loop.add_reader(self._parent, self._orphaned)  # nothing is ever written to it
        if self._entrance is not None:
            # uvloop closes the socket of a server to which nothing refers.
            self._links = await loop.create_unix_server(self._link, sock=self._entrance)
        for listener in sockets or []:
            self._accept(listener, self._protocol(), self.server_state, self._limits, self._seat.has_most)
        if self._metrics_at is not None and self._app.metrics_page is not None:
            self._accept_scrapes(self._metrics_at, self._app.metrics_page)
        self._seat.beat(0)
        self._seat.report(ready=True, can_write=True)
        self._tell_started()
        self._log_signals()

    def _accept(
        self,
        listener: socket.socket,
        protocol: Callable[[], HttpProtocol],
        state: ServerState,
        limits: ConnectionLimits,
        has_most: Callable[[int], bool] = lambda _connections: False,
    ) -> None:
        acceptor = Acceptor(
            listener,
            protocol,
            connections=state.connections,
            limit=limits.connections,
            has_most=has_most,
            tls=self._tls,
            handshake_s=min(_HANDSHAKE_S, limits.seconds),
            leaves=self._seat.is_draining,
        )
        self.servers.append(acceptor)  # type: ignore[arg-type]  # uvicorn closes it like a server

    def _accept_scrapes(self, listener: socket.socket, page: App) -> None:
        """Serve the metrics at an address of their own, whose connections do not count among those of clients."""
        config = uvicorn.Config(page, log_config=None, access_log=False, lifespan="off", server_header=False, ws="none")
        config.load()
        state, limits = ServerState(), replace(self._limits, connections=_SCRAPERS)
        protocol = partial(HttpProtocol, config=config, server_state=state, app_state={}, limits=limits)
        self._accept(listener, protocol, state, limits)

    def _link(self) -> AnsweringEnd:
        tell = [self._app.news] if self._app.news is not None else []
        return AnsweringEnd(self._app.answer_passed_on, self._followers, *tell)

    def _protocol(self) -> Callable[[], HttpProtocol]:
        counts = self._counts
        counted: dict[str, Callable[..., None]] = (
            {} if counts is None else {"opened": counts.open_connection, "refused": counts.refuse}
        )
        return partial(
            HttpProtocol,
            config=self.config,
            server_state=self.server_state,
            app_state=self.lifespan.state,
            limits=self._limits,
            is_draining=self._seat.is_draining,
            **counted,
        )

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Start draining on SIGTERM; a second signal ends it."""
        board = self._seat.board
        self._signals.append(sig)
        if sig == signal.SIGINT and self._parent is not None:
            return
        seconds = self._drain_s if sig == signal.SIGTERM and not board.is_draining else 0.0
        if self._parent is None:  # a parent says it for its workers
            board.drain(seconds)
        if seconds:
            self._ends_at = time.monotonic() + seconds
        else:
            super().handle_exit(sig, frame)

    def _log_signals(self) -> None:
        while self._signals:
            number = self._signals.pop(0)
            if self._parent is None:  # a parent logs what it gets
                log_signal(number, max(0.0, self._ends_at - time.monotonic()) if self._ends_at < math.inf else 0.0)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Finish the requests under way, and close the app."""
        for acceptor in self.servers:
            acceptor.close()
        await asyncio.sleep(_LAST_REQUESTS_S)
        await super().shutdown(sockets)
        write_folded(everything=True)

    async def on_tick(self, counter: int) -> bool:
        """Show that the process runs; load changed TLS files; shut down when draining is over."""
        self._seat.beat(len(self.server_state.connections))
        self._log_signals()
        if counter % _TICKS_A_REFRESH == 0:
            self._tls.refresh()
            write_folded()
        if time.monotonic() >= self._ends_at:
            self._ends_at = math.inf
            super().handle_exit(signal.SIGTERM, None)
        return await super().on_tick(counter)
