"""A TCP proxy in front of a node or a service, so that the path to it can be cut.

`refuse` closes every connection and the port, as when the process behind it dies. `silence` keeps connections open,
accepts new ones, and transfers nothing, as a network that drops packets does: in both directions, or in one only, so
that requests arrive but their answers do not. `slow` delays the data. `break_after` transfers a request that contains
certain bytes, and breaks its connection before the answer.

When a silent path is restored, the data that it held back is transferred, as TCP retransmissions would do.
"""

import contextlib
import socket
import threading
import time

from harness.processes import free_port

__all__ = ["Proxy"]

_HOST = "127.0.0.1"
_CHUNK = 65_536


class Proxy:
    """A proxy that forwards connections to a loopback port."""

    def __init__(self) -> None:
        self.port = free_port()
        self.url = f"http://{_HOST}:{self.port}"
        self._target = (_HOST, 0)
        self._forth, self._back = threading.Event(), threading.Event()
        self._delay = 0.0
        self._last_words: bytes | None = None
        self._lock = threading.Lock()
        self._ends: set[socket.socket] = set()
        self._listener: socket.socket | None = None
        self.restore()

    def lead_to(self, port: int) -> None:
        """Forward connections to this loopback port."""
        self._target = (_HOST, port)

    def refuse(self) -> None:
        """Break every connection, and refuse new ones."""
        with self._lock:
            listener, self._listener = self._listener, None
            ends, self._ends = self._ends, set()
        for end in [listener, *ends]:
            if end is not None:
                # Closing alone would not wake a thread that waits for this socket.
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
                end.close()

    def silence(self, *, forth: bool = True, back: bool = True) -> None:
        """Stop transferring data to the target (`forth`), from it (`back`), or both; connections stay open."""
        if forth:
            self._forth.clear()
        if back:
            self._back.clear()

    def slow(self, seconds: float) -> None:
        """Delay all data by some seconds."""
        self._delay = seconds

    def break_after(self, words: bytes) -> None:
        """Break a connection that transfers these bytes to the target: they arrive, but no answer comes back."""
        self._last_words = words

    def restore(self) -> None:
        """Transfer data normally again."""
        self._delay, self._last_words = 0.0, None
        self._forth.set()
        self._back.set()
        with self._lock:
            if self._listener is None:
                self._listener = socket.create_server((_HOST, self.port), backlog=256)
                threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def close(self) -> None:
        """Close the proxy and all connections."""
        self._forth.set()
        self._back.set()
        self.refuse()

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = listener.accept()
                threading.Thread(target=self._connect, args=(near,), daemon=True).start()

    def _connect(self, near: socket.socket) -> None:
        self._forth.wait()
        try:
            far = socket.create_connection(self._target, timeout=5)
        except OSError:
            near.close()
            return
        far.settimeout(None)
        for end in (near, far):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self._lock:
            self._ends |= {near, far}
        threading.Thread(target=self._carry, args=(far, near, self._back), daemon=True).start()
        self._carry(near, far, self._forth)

    def _carry(self, source: socket.socket, target: socket.socket, flows: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(_CHUNK):
                if self._delay:
                    time.sleep(self._delay)
                flows.wait()
                breaks = self._last_words and flows is self._forth and self._last_words in data
                if breaks:
                    source.shutdown(socket.SHUT_RDWR)  # first, so that a fast answer is lost too
                target.sendall(data)
                if breaks:
                    break
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
        with self._lock:
            self._ends -= {source, target}
