"""The producer that speaks the protocol itself: its bytes, and what it does when answers are missing."""

import struct
import time
import uuid
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, cast

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from strata.storage.addresses import broker_addresses
from strata.storage.kafka.client_producer import ClientProducer
from strata.storage.kafka.credentials import Credentials, CredentialsRefused
from strata.storage.kafka.messages import (
    END_TRANSACTION,
    FIND_COORDINATOR,
    JOIN_PARTITION,
    METADATA,
    PRODUCE,
    START_PRODUCER,
    Api,
)
from strata.storage.kafka.pen import Pen
from strata.storage.kafka.producer import Staged
from strata.storage.kafka.transactions import Brokers, TransactionalProducer, Unsupported
from strata.storage.log import START, Record

if TYPE_CHECKING:
    from tests.kafka.conftest import Topic

_WAIT_S = 60
_TOPIC = "schemas"
_RECORD = Record(b"key", b"value")
_LONG = b"x" * 300


# --- on a broker


@pytest.mark.kafka
@pytest.mark.parametrize("most_bytes", [200, 1_000_000])
def test_records_as_other_clients_read_them(topic: "Topic", most_bytes: int) -> None:
    """Keys, values, times and headers arrive as written, in one batch or several; an aborted transaction does not."""
    topic.create()
    brokers = Brokers(broker_addresses(topic.bootstrap), topic.name, Credentials())
    producer = TransactionalProducer(brokers, topic.name, topic.name, timeout_ms=10_000, most_bytes=most_bytes)
    deadline = time.monotonic() + _WAIT_S
    records = [
        Record(b"plain", b"1"),
        Record(b"tombstone", None),
        Record("ключ".encode(), b""),
        Record(b"older", _LONG, 1_600_000_000_000),
        Record(_LONG, _LONG),
        *(Record(b"%d" % i, b"v") for i in range(100)),
    ]
    headers = [{"strata-append": b"%d" % i, "empty": b""} for i in range(len(records))]
    with closing(producer):
        producer.take(deadline)
        producer.stage(records, headers, deadline, _WAIT_S)
        producer.abort(deadline)
        before = time.time_ns() // 1_000_000
        staged = producer.stage(records, headers, deadline, _WAIT_S)
        producer.commit(deadline)
        after = time.time_ns() // 1_000_000
        # The same producer goes on once the broker has closed its transaction.
        last = producer.stage([_RECORD], [{}], deadline, _WAIT_S)
        producer.commit(deadline)
    read = _read(topic, last[0].offset)
    expected = [(r.key, r.value, list(h.items())) for r, h in zip(records, headers, strict=True)]
    assert [(key, value, headers) for _, key, value, headers in read] == [*expected, (b"key", b"value", [])]
    assert [place for place, *_ in read] == [*staged, *last]
    assert [staged[3].timestamp] == [1_600_000_000_000]
    assert all(before <= place.timestamp <= after for place in staged[4:])


def _read(topic: "Topic", last: int) -> list[tuple[Staged, bytes | None, bytes | None, list[tuple[str, bytes]]]]:
    """Return the committed records up to an offset, as the Kafka client reads them."""
    config = {"bootstrap.servers": topic.bootstrap, "group.id": uuid.uuid4().hex, "check.crcs": True}
    read: list[tuple[Staged, bytes | None, bytes | None, list[tuple[str, bytes]]]] = []
    with closing(Consumer(config)) as consumer:
        consumer.assign([TopicPartition(topic.name, 0, 0)])
        while not read or read[-1][0].offset < last:
            message = consumer.poll(_WAIT_S)
            assert message is not None
            assert message.error() is None
            place = Staged(cast("int", message.offset()), message.timestamp()[1])
            headers = cast("list[tuple[str, bytes]]", message.headers() or [])
            read.append((place, message.key(), message.value(), headers))
    return read


@pytest.mark.kafka
def test_compression_is_left_to_the_client(topic: "Topic") -> None:
    """Where the settings ask for compression, which this producer does not offer, the Kafka client writes."""
    for config, expected in (({}, TransactionalProducer), ({"compression.type": "gzip"}, ClientProducer)):
        node = topic.node(config=config)
        last = max((entry.offset for entry in node.read(START)), default=START)
        node.append(last, [_RECORD])
        assert node._pen is not None
        assert type(node._pen._producer) is expected


@pytest.mark.kafka
def test_a_connection_that_rested(topic: "Topic", monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections that rested for long, or that the broker closed meanwhile, are replaced before the next append."""
    node = topic.node()
    after = node.append(START, [_RECORD])[-1].offset
    assert node._pen is not None
    brokers = cast("TransactionalProducer", node._pen._producer)._brokers
    pen = node._pen
    monkeypatch.setattr("strata.storage.kafka.connection._STALE_S", 0.0)
    after = node.append(after, [_RECORD])[-1].offset
    monkeypatch.undo()
    monkeypatch.setattr("strata.storage.kafka.connection._RESTED_S", 0.0)
    assert {FIND_COORDINATOR, METADATA} == brokers._connections.keys()
    for connection in brokers._connections.values():
        connection._socket.shutdown(2)
    node.append(after, [_RECORD])
    assert node._pen is pen


# --- missing answers

_Answer = bytes | Exception


def _answer(api: Api, code: int = 0, offset: int = 7) -> bytes:
    """Return a broker's answer to a request."""
    topic = struct.pack(">ih", 1, len(_TOPIC)) + _TOPIC.encode()
    if api == PRODUCE:
        return topic + struct.pack(">iihqqqi", 1, 0, code, offset, -1, 0, 0)
    if api == JOIN_PARTITION:
        return bytes(4) + topic + struct.pack(">iih", 1, 0, code)
    return struct.pack(">ih", 0, code) + struct.pack(">qh", 40, 2) * (api == START_PRODUCER)


class _Double:
    """The connections of a producer: they answer as a test says, and keep what they were asked."""

    def __init__(self, *answers: tuple[Api, _Answer]) -> None:
        self.answers, self.asked = deque(answers), list[tuple[Api, bytes]]()

    def coordinator(self, _name: str, _deadline: float) -> "_Double":
        return self

    def leader(self, _deadline: float) -> "_Double":
        return self

    def ask(self, api: Api, body: bytes, _deadline: float) -> bytes:
        self.asked.append((api, body))
        expected, answer = self.answers.popleft()
        assert expected == api
        if isinstance(answer, Exception):
            raise answer
        return answer

    def lose_coordinator(self) -> None:
        pass

    def lose_leader(self) -> None:
        pass


def _producer(double: _Double) -> TransactionalProducer:
    return TransactionalProducer(cast("Brokers", double), "id", _TOPIC, timeout_ms=10_000, most_bytes=1_000)


def _code(call: Callable[[], object]) -> int:
    with pytest.raises(KafkaException) as raised:
        call()
    return int(raised.value.args[0].code())


_LOST = ConnectionResetError("lost")
_JOINED, _WRITTEN, _ENDED = ((api, _answer(api)) for api in (JOIN_PARTITION, PRODUCE, END_TRANSACTION))
_STARTED = START_PRODUCER, _answer(START_PRODUCER)


def _staged(producer: TransactionalProducer, patience_s: float = _WAIT_S) -> list[Staged]:
    return producer.stage([_RECORD], [{}], time.monotonic() + _WAIT_S, patience_s)


@pytest.mark.parametrize(
    ("name", "answers"),
    [
        ("a join without an answer", [(JOIN_PARTITION, _LOST), _JOINED, _WRITTEN]),
        (
            "the transaction before is still being closed",
            [(JOIN_PARTITION, _answer(JOIN_PARTITION, KafkaError.CONCURRENT_TRANSACTIONS)), _JOINED, _WRITTEN],
        ),
        (
            "another coordinator",
            [(JOIN_PARTITION, _answer(JOIN_PARTITION, KafkaError.NOT_COORDINATOR)), _JOINED, _WRITTEN],
        ),
        ("records without an answer", [_JOINED, (PRODUCE, _LOST), (PRODUCE, EOFError()), _WRITTEN]),
        ("a cut answer", [_JOINED, (PRODUCE, b"1"), _WRITTEN]),
        (
            "another leader",
            [_JOINED, (PRODUCE, _answer(PRODUCE, KafkaError.NOT_LEADER_FOR_PARTITION)), _WRITTEN],
        ),
    ],
)
def test_what_is_sent_again(name: str, answers: Sequence[tuple[Api, _Answer]]) -> None:
    """A join and records are sent again, with the same bytes, until there is an answer; the transaction then ends."""
    double = _Double(_STARTED, *answers, _ENDED)
    producer = _producer(double)
    producer.take(time.monotonic() + _WAIT_S)
    assert [7] == [place.offset for place in _staged(producer)]
    producer.commit(time.monotonic() + _WAIT_S)
    for api in (JOIN_PARTITION, PRODUCE):
        bodies = [body[-40:] for asked, body in double.asked if asked == api]
        assert len(set(bodies)) == 1
    assert not double.answers


def test_the_end_of_a_transaction_is_sent_once() -> None:
    """A commit without an answer is not sent again: a late one would commit what the producer stages next."""
    double = _Double(_JOINED, _WRITTEN, (END_TRANSACTION, _LOST))
    producer = _producer(double)
    _staged(producer)
    assert KafkaError._TRANSPORT == _code(lambda: producer.commit(time.monotonic() + _WAIT_S))
    assert not double.answers


def test_a_commit_that_the_coordinator_puts_off() -> None:
    """A commit that was answered with "later" is sent again; a refused one is not."""
    later = END_TRANSACTION, _answer(END_TRANSACTION, KafkaError.COORDINATOR_LOAD_IN_PROGRESS)
    fenced = END_TRANSACTION, _answer(END_TRANSACTION, KafkaError.INVALID_PRODUCER_EPOCH)
    producer = _producer(_Double(later, _ENDED, fenced))
    producer.commit(time.monotonic() + _WAIT_S)
    assert KafkaError.INVALID_PRODUCER_EPOCH == _code(lambda: producer.commit(time.monotonic() + _WAIT_S))


def test_records_that_may_still_arrive_are_not_aborted() -> None:
    """Behind an abort, late records would begin a transaction that never ends; refused ones can be aborted."""
    double = _Double(_JOINED, *[(PRODUCE, _LOST)] * 1_000)
    producer = _producer(double)
    assert KafkaError._TRANSPORT == _code(lambda: _staged(producer, 0.02))
    assert KafkaError._TIMED_OUT == _code(lambda: producer.abort(time.monotonic() + _WAIT_S))
    assert all(api != END_TRANSACTION for api, _ in double.asked)
    refused = PRODUCE, _answer(PRODUCE, KafkaError.MSG_SIZE_TOO_LARGE)
    producer = _producer(_Double(_JOINED, refused, _ENDED))
    assert KafkaError.MSG_SIZE_TOO_LARGE == _code(lambda: _staged(producer))
    producer.abort(time.monotonic() + _WAIT_S)


def test_records_are_numbered() -> None:
    """Each record has the next number of its producer, and the first one of an epoch has number 0."""
    numbers: list[int] = []
    double = _Double(_STARTED, *[_JOINED, _WRITTEN] * 3, _STARTED, _JOINED, _WRITTEN)
    producer = _producer(double)
    producer.take(time.monotonic() + _WAIT_S)
    for count in (2, 3, 1):
        producer.stage([_RECORD] * count, [{}] * count, time.monotonic() + _WAIT_S, _WAIT_S)
    producer.take(time.monotonic() + _WAIT_S)
    _staged(producer)
    for api, body in double.asked:
        if api == PRODUCE:
            batch = body[4 + 10 + 2 + len(_TOPIC) + 12 :]
            assert (40, 2) == struct.unpack_from(">qh", batch, 43)
            numbers += struct.unpack_from(">i", batch, 53)
    assert numbers == [0, 2, 5, 0]


@pytest.mark.parametrize(("name", "error"), [("unknown requests", EOFError()), ("a login", CredentialsRefused())])
def test_brokers_that_offer_less(name: str, error: Exception) -> None:
    """Brokers that close the connection at the first request, or refuse the login, are left to the Kafka client."""
    producer = _producer(_Double(*[(START_PRODUCER, error)] * 10))
    with pytest.raises(Unsupported):
        producer.take(time.monotonic() + _WAIT_S)


@pytest.mark.kafka
def test_the_client_takes_over(topic: "Topic", monkeypatch: pytest.MonkeyPatch) -> None:
    """Where this producer cannot start, the pen's producers are those of the Kafka client."""

    def unsupported(_producer: TransactionalProducer, _deadline: float) -> None:
        raise Unsupported

    monkeypatch.setattr(TransactionalProducer, "take", unsupported)
    node = topic.node()
    node.append(START, [_RECORD])
    assert isinstance(node._pen, Pen)
    assert [ClientProducer] * 2 == [type(producer) for producer in node._pen._producers]
