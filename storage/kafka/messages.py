"""The few messages of Kafka's protocol that this package sends itself: their bytes, without any I/O.

They are of versions that all brokers since Kafka 2.2 know, and that need no negotiation: none has compact fields.

Rules of this file: answers come from the network, so parsing them allocates no more than they are long, and an answer
that is not as expected is a ValueError or "unknown".
"""

import struct
from collections.abc import Generator
from typing import NamedTuple

from strata.storage.kafka.credentials import Credentials, CredentialsRefused

__all__ = [
    "END_TRANSACTION",
    "FIND_COORDINATOR",
    "JOIN_PARTITION",
    "LIST_OFFSETS",
    "METADATA",
    "MOST_BYTES",
    "PRODUCE",
    "START_PRODUCER",
    "Api",
    "Login",
    "Place",
    "Reader",
    "coordinator_answer",
    "end_transaction",
    "end_transaction_answer",
    "find_coordinator",
    "framed",
    "join_partition",
    "join_partition_answer",
    "list_offsets",
    "list_offsets_answer",
    "metadata",
    "metadata_answer",
    "produce",
    "produce_answer",
    "start_producer",
    "start_producer_answer",
    "string",
]

Api = tuple[int, int]
"""The key of a request, and its version."""
LIST_OFFSETS, METADATA, _HANDSHAKE, _AUTHENTICATE = (2, 5), (3, 7), (17, 1), (36, 1)
FIND_COORDINATOR, START_PRODUCER, JOIN_PARTITION, PRODUCE, END_TRANSACTION = (10, 1), (22, 1), (24, 1), (0, 7), (26, 1)
MOST_BYTES = 1 << 20
_CLIENT = b"strata"
_READ_COMMITTED, _LATEST = 1, -1
_LIFETIME = 0.8  # the share of a login's lifetime after which its connection is replaced


class Place(NamedTuple):
    """Where the leader is, and the epoch of its leadership."""

    host: str
    port: int
    epoch: int


def framed(api: Api, number: int, body: bytes) -> bytes:
    """Return a request as it is sent."""
    head = struct.pack(">ihhih", 10 + len(_CLIENT) + len(body), *api, number, len(_CLIENT))
    return head + _CLIENT + body


class Login:
    """The messages of a SASL login. Both methods may take some time: a token may have to be fetched.

    Args:
        credentials: with what to log in; with no mechanism, there is no message.
    """

    def __init__(self, credentials: Credentials) -> None:
        self._messages = self._sent(credentials)
        self.lifetime_s = 0.0
        """After how many seconds the connection should be replaced; 0 if it lasts."""

    def first(self) -> tuple[Api, bytes] | None:
        """Return the first request, or None if there is none."""
        return next(self._messages, None)

    def following(self, answer: bytes) -> tuple[Api, bytes] | None:
        """Return the request after an answer, or None after the last one.

        Raises:
            CredentialsRefused: The broker refuses the login.
            ValueError: The answer is not well-formed.
        """
        try:
            return self._messages.send(answer)
        except StopIteration:
            return None

    def _sent(self, credentials: Credentials) -> Generator[tuple[Api, bytes], bytes, None]:
        if credentials.mechanism is None:
            return
        exchange = credentials.mechanism()
        message: bytes | None = next(exchange)
        reader = Reader((yield _HANDSHAKE, string((credentials.mechanism_name or "").encode())))
        if reader.int16() != 0:
            raise CredentialsRefused("the broker does not offer the mechanism")
        lifetime_ms = 0
        while message is not None:
            reader = Reader((yield _AUTHENTICATE, struct.pack(">i", len(message)) + message))
            code = reader.int16()
            reader.text()
            reply, lifetime_ms = reader.take(max(0, reader.int32())), reader.int64()
            if code != 0:
                raise CredentialsRefused("the broker refuses the credentials")
            try:
                message = exchange.send(reply)
            except StopIteration:
                message = None
        self.lifetime_s = max(0, lifetime_ms) / 1000 * _LIFETIME


def metadata(topic: str) -> bytes:
    """Return the body of a Metadata request for one topic, which it does not create."""
    return struct.pack(">i", 1) + string(topic.encode()) + b"\0"


class Reader:
    """The fields of an answer, in order.

    Raises:
        ValueError: The answer is shorter than its fields say.
    """

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def take(self, size: int) -> bytes:
        """Return the next bytes."""
        end = self._at + size
        if size < 0 or end > len(self._data):
            raise ValueError("the answer is cut off")
        taken, self._at = self._data[self._at : end], end
        return taken

    def int16(self) -> int:
        """Return the next 16 bits as a number."""
        return int.from_bytes(self.take(2), "big", signed=True)

    def int32(self) -> int:
        """Return the next 32 bits as a number."""
        return int.from_bytes(self.take(4), "big", signed=True)

    def int64(self) -> int:
        """Return the next 64 bits as a number."""
        return int.from_bytes(self.take(8), "big", signed=True)

    def text(self) -> str:
        """Return the next text; a missing one is empty."""
        return self.take(max(0, self.int16())).decode("utf-8", "replace")

    def count(self, least: int) -> int:
        """Return the length of an array whose items take at least so many bytes."""
        count = max(0, self.int32())
        if count * least > len(self._data) - self._at:
            raise ValueError("the answer is cut off")
        return count


def string(text: bytes) -> bytes:
    """Return a text behind its length."""
    return struct.pack(">h", len(text)) + text


def list_offsets(topic: str, epoch: int) -> bytes:
    """Return the body of a ListOffsets request (version 5) for the last stable offset."""
    head = struct.pack(">ibi", -1, _READ_COMMITTED, 1) + string(topic.encode())
    return head + struct.pack(">iiiq", 1, 0, epoch, _LATEST)


def list_offsets_answer(body: bytes, topic: str) -> int | None:
    """Return the offset in the answer to a ListOffsets request (version 5) for one partition; None if it has none."""
    name = topic.encode()
    expected = 4 + 4 + 2 + len(name) + 4 + 4 + 2 + 8 + 8 + 4
    if len(body) != expected:
        return None
    at = 10 + len(name)
    topics, length = struct.unpack_from(">ih", body, 4)
    partitions, index, code, _, offset, _ = struct.unpack_from(">iihqqi", body, at)
    is_expected = (topics, length, partitions, index, code) == (1, len(name), 1, 0, 0) and body[10:at] == name
    return offset if is_expected and offset >= 0 else None


def metadata_answer(body: bytes, topic: str) -> Place:
    """Return the leader in the answer to a Metadata request (version 7) for one topic.

    Raises:
        ValueError: The answer is not well-formed, or names no leader of the topic.
    """
    reader = Reader(body)
    reader.int32()  # how long the broker throttled the request
    brokers = {}
    for _ in range(reader.count(12)):
        node, host, port, _rack = reader.int32(), reader.text(), reader.int32(), reader.text()
        brokers[node] = host, port
    reader.text(), reader.int32()  # the cluster and its controller
    for _ in range(reader.count(9)):
        code, name, _internal = reader.int16(), reader.text(), reader.take(1)
        for _ in range(reader.count(26)):
            partition_code, index, leader, epoch = reader.int16(), reader.int32(), reader.int32(), reader.int32()
            for _ in range(3):  # replicas, those in sync, those offline
                reader.take(4 * reader.count(4))
            if (name, index, code, partition_code) == (topic, 0, 0, 0) and leader in brokers:
                return Place(*brokers[leader], epoch)
    raise ValueError("no leader of the topic is known")


# --- transactions


def find_coordinator(name: str) -> bytes:
    """Return the body of a FindCoordinator request (version 1) for a transactional id."""
    return string(name.encode()) + b"\1"


def coordinator_answer(body: bytes) -> tuple[int, str, int]:
    """Return the error code, the host and the port in the answer to a FindCoordinator request."""
    reader = Reader(body)
    _throttled, code, _reason, _node = reader.int32(), reader.int16(), reader.text(), reader.int32()
    return code, reader.text(), reader.int32()


def start_producer(name: str, timeout_ms: int) -> bytes:
    """Return the body of an InitProducerId request (version 1).

    Args:
        name: the transactional id.
        timeout_ms: after how long the broker aborts a transaction.
    """
    return string(name.encode()) + struct.pack(">i", timeout_ms)


def start_producer_answer(body: bytes) -> tuple[int, int, int]:
    """Return the error code, the producer's id and its epoch in the answer to an InitProducerId request."""
    reader = Reader(body)
    _throttled = reader.int32()
    return reader.int16(), reader.int64(), reader.int16()


def join_partition(name: str, producer: tuple[int, int], topic: str) -> bytes:
    """Return the body of an AddPartitionsToTxn request (version 1) for the topic's only partition."""
    return string(name.encode()) + struct.pack(">qhi", *producer, 1) + string(topic.encode()) + struct.pack(">ii", 1, 0)


def join_partition_answer(body: bytes) -> int:
    """Return the error code in the answer to an AddPartitionsToTxn request."""
    reader = Reader(body)
    _throttled, _topics, _name, _partitions, _index = (
        reader.int32(),
        reader.int32(),
        reader.text(),
        reader.int32(),
        reader.int32(),
    )
    return reader.int16()


def produce(name: str, topic: str, batch: bytes, timeout_ms: int) -> bytes:
    """Return the body of a Produce request (version 7) for the topic's only partition, to all replicas in sync."""
    head = string(name.encode()) + struct.pack(">hii", -1, timeout_ms, 1) + string(topic.encode())
    return head + struct.pack(">iii", 1, 0, len(batch)) + batch


def produce_answer(body: bytes) -> tuple[int, int, int]:
    """Return the error code, the first offset and the time of the append, or -1, in the answer to a Produce request."""
    reader = Reader(body)
    _topics, _name, _partitions, _index = reader.int32(), reader.text(), reader.int32(), reader.int32()
    return reader.int16(), reader.int64(), reader.int64()


def end_transaction(name: str, producer: tuple[int, int], *, commits: bool) -> bytes:
    """Return the body of an EndTxn request (version 1)."""
    return string(name.encode()) + struct.pack(">qh?", *producer, commits)


def end_transaction_answer(body: bytes) -> int:
    """Return the error code in the answer to an EndTxn request."""
    reader = Reader(body)
    _throttled = reader.int32()
    return reader.int16()
