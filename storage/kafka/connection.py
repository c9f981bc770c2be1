"""A connection to a broker for a thread that waits for each answer."""

import select
import socket
import time

from strata.storage.kafka.credentials import Credentials
from strata.storage.kafka.messages import MOST_BYTES, Api, Login, framed

__all__ = ["Connection"]

_HEAD = 8  # bytes of the length and the number of an answer
_CHUNK = 65_536
_RESTED_S, _STALE_S = 0.05, 30.0
_POLL_MS = 0


class Connection:
    """One connection: a request, then its answer. Not thread-safe.

    Args:
        address: host and port of the broker.
        credentials: how to secure the connection.
        deadline: when to give up, on the clock of `time.monotonic`, in seconds.

    Raises:
        OSError: The broker cannot be reached, in time or at all.
        EOFError: It has closed the connection.
        ValueError: Its answer is not well-formed.
        CredentialsRefused: It refuses the login.
    """

    def __init__(self, address: tuple[str, int], credentials: Credentials, deadline: float) -> None:
        self.address = address
        self._number = 0
        self._socket = socket.create_connection(address, _left(deadline))
        try:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if credentials.tls is not None:
                self._socket = credentials.tls.wrap_socket(self._socket, server_hostname=address[0])
            self._used_at = self._ends = time.monotonic()
            login = Login(credentials)
            request = login.first()
            while request is not None:
                request = login.following(self.ask(*request, deadline))
        except BaseException:
            self.close()
            raise
        self._ends = time.monotonic() + (login.lifetime_s or float("inf"))

    @property
    def is_stale(self) -> bool:
        """Whether a new connection should take its place: it has rested for long, or the broker has closed it."""
        now = time.monotonic()
        if now >= self._ends or now - self._used_at > _STALE_S:
            return True
        if now - self._used_at < _RESTED_S:
            return False
        poll = select.poll()  # `select.select` takes no large descriptors
        poll.register(self._socket, select.POLLIN)
        return bool(poll.poll(_POLL_MS))  # nothing is expected, so this is its end

    def ask(self, api: Api, body: bytes, deadline: float) -> bytes:
        """Send a request and return its answer. After a failure, close the connection.

        Args:
            api: the request's key and version.
            body: the request.
            deadline: when to give up, on the clock of `time.monotonic`, in seconds.

        Raises:
            OSError, EOFError, ValueError: as above; it is unknown whether the broker has received the request.
        """
        self._number = (self._number + 1) & 0x7FFFFFFF
        self._socket.settimeout(_left(deadline))
        self._socket.sendall(framed(api, self._number, body))
        answer = bytearray()
        missing = _HEAD
        while missing > 0:
            self._socket.settimeout(_left(deadline))
            chunk = self._socket.recv(_CHUNK)
            if not chunk:
                raise EOFError("the broker has closed the connection")
            answer += chunk
            if len(answer) >= _HEAD:
                size, number = int.from_bytes(answer[:4], "big"), int.from_bytes(answer[4:8], "big")
                if not 4 <= size <= MOST_BYTES or number != self._number:
                    raise ValueError("the broker sent something else than an answer")
                missing = 4 + size - len(answer)
        if missing < 0:
            raise ValueError("the broker sent more than an answer")
        self._used_at = time.monotonic()
        return bytes(answer[_HEAD:])

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("no answer in time")
    return left
