"""A TCP proxy in front of a node or a service, so that the path to it can be cut.

`refuse` closes every connection and the port, as when the process behind it dies. `silence` keeps connections open,
accepts new ones, and transfers nothing, as a network that drops packets does: in both directions, or in one only, so
that requests arrive but their answers do not. `slow` delays the data, `delay_answers` some of the answers.
`repeat` transfers some answers twice. `break_after` and `silence_after` transfer a certain request, and break the
connection before its answer, or hold all answers back.

When a silent path is restored, the data that it held back is transferred, as TCP retransmissions would do.
"""

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from queue import SimpleQueue

from harness.processes import free_port

__all__ = ["Proxy"]

_HOST = "127.0.0.1"
_CHUNK = 65_536


def _any(_data: bytes) -> bool:
    return True


def _none(_data: bytes) -> bool:
    return False


class Proxy:
    """A proxy that forwards connections to a loopback port."""

    def __init__(self) -> None:
        self.port = free_port()
        self.url = f"http://{_HOST}:{self.port}"
        self._target = (_HOST, 0)
        self._forth, self._back = threading.Event(), threading.Event()
        self._delay, self._delayed_back = 0.0, 0.0
        self._late: Callable[[bytes], bool] = _any
        self._repeats: Callable[[bytes], bool] = _none
        self._is_last: Callable[[bytes], bool] | None = None
        self._then_breaks = True
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
        self._delay = self._delayed_back = seconds

    def delay_answers(self, seconds: float, is_late: Callable[[bytes], bool] | None = None) -> None:
        """Delay the data from the target by some seconds, or only the pieces that `is_late` accepts."""
        self._delayed_back, self._late = seconds, is_late or _any

    def repeat(self, is_repeated: Callable[[bytes], bool]) -> None:
        """Transfer the pieces of data from the target that `is_repeated` accepts twice."""
        self._repeats = is_repeated

    def break_after(self, is_last: Callable[[bytes], bool]) -> None:
        """Break a connection that transfers certain data to the target: it arrives, but no answer comes back."""
        self._is_last, self._then_breaks = is_last, True

    def silence_after(self, is_last: Callable[[bytes], bool]) -> None:
        """Once certain data is transferred to the target, stop transferring data from it."""
        self._is_last, self._then_breaks = is_last, False

    @property
    def is_silent(self) -> bool:
        """Whether no data is transferred from the target."""
        return not self._back.is_set()

    def restore(self) -> None:
        """Transfer data normally again."""
        self._delay, self._delayed_back, self._late = 0.0, 0.0, _any
        self._repeats, self._is_last = _none, None
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
        threading.Thread(target=self._carry_back, args=(far, near), daemon=True).start()
        with self._carrying(near, far):
            while data := near.recv(_CHUNK):
                if self._delay:
                    time.sleep(self._delay)
                self._forth.wait()
                is_last = self._is_last is not None and self._is_last(data)
                # First, so that a fast answer is lost too.
                if is_last and self._then_breaks:
                    near.shutdown(socket.SHUT_RDWR)
                elif is_last:
                    self._back.clear()
                far.sendall(data)
                if is_last and self._then_breaks:
                    break

    def _carry_back(self, far: socket.socket, near: socket.socket) -> None:
        late: SimpleQueue[tuple[float, bytes]] = SimpleQueue()
        carrier: threading.Thread | None = None
        with self._carrying(far, near):
            while data := far.recv(_CHUNK):
                delay = self._delayed_back if self._late(data) else 0.0
                if delay and carrier is None:
                    carrier = threading.Thread(target=self._carry_late, args=(late, near), daemon=True)
                    carrier.start()
                if carrier is None:
                    self._give_back(near, data)
                else:
                    late.put((time.monotonic() + delay, data))
            if carrier is not None:
                late.put((0.0, b""))
                carrier.join()

    def _carry_late(self, late: "SimpleQueue[tuple[float, bytes]]", near: socket.socket) -> None:
        """Transfer each piece of data when it is due, so that later ones are as late as the first."""
        with contextlib.suppress(OSError):
            while (piece := late.get())[1]:
                due, data = piece
                time.sleep(max(0.0, due - time.monotonic()))
                self._give_back(near, data)

    def _give_back(self, near: socket.socket, data: bytes) -> None:
        self._back.wait()
        near.sendall(data)
        if self._repeats(data):
            near.sendall(data)

    @contextlib.contextmanager
    def _carrying(self, source: socket.socket, target: socket.socket) -> Iterator[None]:
        with contextlib.suppress(OSError):
            yield
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
        with self._lock:
            self._ends -= {source, target}
