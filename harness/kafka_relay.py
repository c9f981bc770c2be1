"""A relay between Kafka clients and one broker, which can break connections and take the brokers out of Metadata.

A broker answers so for a moment when a whole cluster comes back: it is up, and the controller has not let any broker in
yet.
"""

import socket
import struct
import threading
from contextlib import suppress
from typing import Self

__all__ = ["KafkaRelay", "without_brokers"]

_HOST = "127.0.0.1"
_METADATA, _FLEXIBLE = 3, 9  # the key of the request, and the first version with compact arrays


class KafkaRelay:
    """A relay to one broker, which must advertise the relay's port. Use as a context manager.

    Attributes:
        port: where clients reach the relay.
        hides_brokers: whether the answers to Metadata requests name no broker.
        hidden: how many such answers the relay has changed.
    """

    def __init__(self) -> None:
        self._listener = socket.create_server((_HOST, 0), backlog=256)
        self.port = int(self._listener.getsockname()[1])
        self.hides_brokers = False
        self.hidden = 0
        self._target = 0
        self._lock, self._ends = threading.Lock(), set[socket.socket]()

    def __enter__(self) -> Self:
        """Begin to accept connections."""
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_exception: object) -> None:
        """Close everything."""
        self._listener.close()
        self.break_connections()

    def lead_to(self, port: int) -> None:
        """Relay to this loopback port from now on."""
        self._target = port

    def break_connections(self) -> None:
        """Break every connection, as if the broker had been killed."""
        with self._lock:
            ends, self._ends = self._ends, set()
        for end in ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                threading.Thread(target=self._relay, args=(near,), daemon=True).start()

    def _relay(self, near: socket.socket) -> None:
        versions: dict[int, int] = {}
        with near, suppress(OSError), socket.create_connection((_HOST, self._target)) as far:
            with self._lock:
                self._ends |= {near, far}
            back = threading.Thread(target=self._answer, args=(far, near, versions), daemon=True)
            back.start()
            while request := _frame(near):
                key, version, number = struct.unpack_from(">hhi", request)
                if key == _METADATA:
                    versions[number] = version
                far.sendall(struct.pack(">i", len(request)) + request)
            far.shutdown(socket.SHUT_RDWR)
            back.join()

    def _answer(self, far: socket.socket, near: socket.socket, versions: dict[int, int]) -> None:
        with suppress(OSError):
            while answer := _frame(far):
                version = versions.pop(struct.unpack_from(">i", answer)[0], None)
                if version is not None and self.hides_brokers:
                    answer, self.hidden = without_brokers(answer, version), self.hidden + 1
                near.sendall(struct.pack(">i", len(answer)) + answer)
        with suppress(OSError):
            near.shutdown(socket.SHUT_RDWR)


def without_brokers(answer: bytes, version: int) -> bytes:
    """Return an answer to a Metadata request without its brokers; version 3 or later."""
    flexible = version >= _FLEXIBLE
    begin = at = 9 if flexible else 8  # after the number, the tags of the header, and the throttle time
    if flexible:
        count, at = _varint(answer, at)
        count -= 1
    else:
        count, at = struct.unpack_from(">i", answer, at)[0], at + 4
    for _ in range(count):
        at = _after_text(answer, at + 4, flexible=flexible)  # the id, the host
        at = _after_text(answer, at + 4, flexible=flexible)  # the port, the rack
        at += flexible  # no tags
    return answer[:begin] + (b"\x01" if flexible else bytes(4)) + answer[at:]


def _after_text(data: bytes, at: int, *, flexible: bool) -> int:
    if flexible:
        size, at = _varint(data, at)
        return at + max(0, size - 1)
    return at + 2 + max(0, int(struct.unpack_from(">h", data, at)[0]))


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value, shift, at = value | (byte & 0x7F) << shift, shift + 7, at + 1
        if byte < 0x80:
            return value, at


def _frame(source: socket.socket) -> bytes:
    """Return the next frame without its size; empty at the end of the stream."""
    head = _exactly(source, 4)
    return _exactly(source, struct.unpack(">i", head)[0]) if head else b""


def _exactly(source: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        part = source.recv(min(65_536, size - len(parts)))
        if not part:
            return b""
        parts += part
    return bytes(parts)
