"""HTTP calls to another node that another thread can abort.

A blocking client waits for its answer, even if the request behind it is gone. Closing the connection tells the other
node that no client waits any more. urllib3 makes the calls, but cannot abort one that another thread makes, so its
connections are registered here. An asynchronous client could be cancelled, but the clients install urllib3 anyway, and
a forwarded write waits for the log, not for a thread.

This is not `strata.http`, the client for other registries: a call to a node is never repeated, has no credentials but a
signature, and hands the other node's answer on as it is.
"""

import socket
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http.client import HTTPException
from typing import Any

import orjson
import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection

__all__ = ["CONNECT_S", "Call", "accepts_writes", "pool_manager", "responds"]

CONNECT_S = 1.0
_IDLE_S = 0.4  # less than half of the time for which a node drains by default (`node/board.py`)
_FIRST_ANSWER_S = 1.0
_PROBE_TIMEOUT = urllib3.Timeout(connect=CONNECT_S, read=_FIRST_ANSWER_S)

_thread = threading.local()


class Call:
    """One request and its response, which `abort` aborts."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self.aborted = False

    def request(self, pool: urllib3.PoolManager, method: str, url: str, **options: Any) -> urllib3.BaseHTTPResponse:
        """Send the request over a pool of `pool_manager`, and return the response.

        Args:
            pool: the pool.
            method: the HTTP method.
            url: the URL.
            options: passed to `pool.request`.

        Raises:
            urllib3.exceptions.HTTPError: if there is no response; `aborted` says whether the call was aborted.
        """
        _thread.call = self
        try:
            return pool.request(method, url, **options)
        finally:
            _thread.call = None
            with self._lock:
                self._socket = None  # other calls may use the connection now

    def abort(self) -> None:
        """Close the connection, or keep it from being opened; a response that has arrived remains valid."""
        with self._lock:
            self.aborted = True
            if self._socket is not None:
                with suppress(OSError):
                    self._socket.shutdown(socket.SHUT_RDWR)

    def begin(self, connection: socket.socket) -> None:
        """Register the connection, so that `abort` can close it.

        Raises:
            urllib3.exceptions.HTTPError: if the call was already aborted.
        """
        with self._lock:
            if self.aborted:
                raise urllib3.exceptions.HTTPError("the call was aborted")
            self._socket = connection


def pool_manager(size: int, tls: Callable[[], ssl.SSLContext]) -> urllib3.PoolManager:
    """Return a pool whose connections the `Call` that uses them can close.

    Args:
        size: the most connections to one node.
        tls: returns the TLS context for a call; when it returns another one, new connections are opened.
    """
    pools = _Pools(num_pools=4, maxsize=size, retries=False)
    pools.pool_classes_by_scheme = {"http": _Pool, "https": _TlsPool}
    pools.tls = tls
    return pools


def responds(pool: urllib3.PoolManager, url: str) -> bool:
    """Return whether the node at a URL responds at all, within two seconds."""
    try:
        pool.request("GET", f"{url}/", timeout=_PROBE_TIMEOUT, redirect=False)
    except urllib3.exceptions.HTTPError:
        return False
    return True


def accepts_writes(pool: urllib3.PoolManager, url: str) -> bool | None:
    """Return whether the node at a URL accepts writes, by its own account; None if it does not respond."""
    try:
        answer = pool.request("GET", f"{url}/health/ready", timeout=_PROBE_TIMEOUT, redirect=False)
        content = orjson.loads(answer.data)
    except (urllib3.exceptions.HTTPError, ValueError):
        return None
    return not isinstance(content, dict) or content.get("canWrite") is not False


class _Pools(urllib3.PoolManager):
    tls: Callable[[], ssl.SSLContext]

    def connection_from_host(
        self,
        host: str | None,
        port: int | None = None,
        scheme: str | None = "http",
        pool_kwargs: dict[str, object] | None = None,
    ) -> urllib3.HTTPConnectionPool:
        """Return the pool of a node."""
        if scheme == "https":
            pool_kwargs = {"ssl_context": self.tls(), **(pool_kwargs or {})}
        return super().connection_from_host(host, port, scheme, pool_kwargs)


class _Abortable(HTTPConnection):
    def request(self, *args: Any, **options: Any) -> None:
        """Connect, and register the connection with the thread's call before anything is sent."""
        call: Call | None = getattr(_thread, "call", None)
        if call is not None:
            if self.sock is None:
                self._open(call)
            call.begin(self.sock)
        super().request(*args, **options)

    def _open(self, call: Call) -> None:
        """Connect to a process that answers; otherwise this is a failure to connect, since nothing was sent.

        A proxy accepts connections to a node that has ended, and so does the queue of a listener that is being closed.
        """
        self.connect()
        call.begin(self.sock)
        limit, self.timeout = self.timeout, _FIRST_ANSWER_S
        try:
            super().request("HEAD", "/")
            self.getresponse().read()
        except (OSError, HTTPException, urllib3.exceptions.HTTPError) as error:
            self.close()
            if call.aborted:
                raise
            raise urllib3.exceptions.NewConnectionError(self, f"it does not answer: {error}") from None
        finally:
            self.timeout = limit
        if self.sock is None:  # it closes connections after each answer
            self.connect()


class _AbortableTls(_Abortable, HTTPSConnection):
    def connect(self) -> None:
        """Connect; a failed handshake is a failure to connect, since nothing was sent."""
        try:
            super().connect()
        except OSError as error:
            raise urllib3.exceptions.NewConnectionError(self, f"no TLS connection: {error}") from None

    def _open(self, _call: Call) -> None:
        """Connect: a process has answered the handshake."""
        self.connect()


class _Brief:
    """A pool whose connections are not used again after a rest: the other node may be closing them."""

    def _get_conn(self, timeout: float | None = None) -> Any:
        connection = super()._get_conn(timeout)  # type: ignore[misc]
        if time.monotonic() - getattr(connection, "rests_since", 0.0) > _IDLE_S:
            connection.close()
        return connection

    def _put_conn(self, conn: Any) -> None:
        if conn is not None:
            conn.rests_since = time.monotonic()
        super()._put_conn(conn)  # type: ignore[misc]


class _Pool(_Brief, urllib3.HTTPConnectionPool):
    ConnectionCls = _Abortable


class _TlsPool(_Brief, urllib3.HTTPSConnectionPool):
    ConnectionCls = _AbortableTls
