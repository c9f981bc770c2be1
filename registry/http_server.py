"""The HTTP server of one process: it accepts connections, keeps their limits, and shuts down on signals."""

import asyncio
import math
import signal
import socket
import time
from collections.abc import Callable
from types import FrameType

import uvicorn

from strata.registry.settings import Settings
from strata.registry.transport.acceptor import Acceptor, room_for
from strata.registry.transport.front import Front
from strata.registry.transport.link import AnsweringEnd
from strata.registry.transport.protocol import ConnectionLimits, HttpProtocol
from strata.registry.transport.tls import TlsContexts
from strata.registry.workers.board import Seat

__all__ = ["HttpServer"]

_SHUTDOWN_SECONDS = 10
_HANDSHAKE_S = 10.0
_TICKS_A_REFRESH = 10  # one second


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
    """

    def __init__(
        self,
        app: Front,
        settings: Settings,
        seat: Seat,
        *,
        tls: TlsContexts,
        started: Callable[[], None],
        parent: int | None = None,
        orphaned: Callable[[], None] = lambda: None,
        entrance: socket.socket | None = None,
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
        self._parent, self._orphaned, self._entrance = parent, orphaned, entrance
        self._drain_s = settings.drain_seconds if parent is None else 0.0
        self._ends_at = math.inf
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
            acceptor = Acceptor(
                listener,
                self._connection,
                count=self._connections,
                limit=self._limits.connections,
                has_most=self._seat.has_most,
                tls=lambda: self._tls.accepting,
                handshake_s=min(_HANDSHAKE_S, self._limits.seconds),
            )
            self.servers.append(acceptor)  # type: ignore[arg-type]  # uvicorn closes it like a server
        self._seat.beat(0)
        self._seat.report(ready=True)
        self._tell_started()

    def _link(self) -> AnsweringEnd:
        return AnsweringEnd(self._app.answer_passed_on)

    def _connections(self) -> int:
        return len(self.server_state.connections)

    def _connection(self) -> HttpProtocol:
        return HttpProtocol(
            config=self.config,
            server_state=self.server_state,
            app_state=self.lifespan.state,
            limits=self._limits,
        )

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Start draining on SIGTERM; a second signal ends it."""
        board = self._seat.board
        if sig == signal.SIGINT and self._parent is not None:
            return
        if sig == signal.SIGTERM and self._drain_s and not board.is_draining:
            board.drain()
            self._ends_at = time.monotonic() + self._drain_s
        else:
            super().handle_exit(sig, frame)

    async def on_tick(self, counter: int) -> bool:
        """Show that the process runs; load changed TLS files; shut down when draining is over."""
        self._seat.beat(self._connections())
        if counter % _TICKS_A_REFRESH == 0:
            self._tls.refresh()
        if time.monotonic() >= self._ends_at:
            self._ends_at = math.inf
            super().handle_exit(signal.SIGTERM, None)
        return await super().on_tick(counter)
