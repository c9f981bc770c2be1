"""When an append returns: every node can read it, and the next one does not wait for the broker to close it."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import KafkaError

from harness.waiting import until
from strata.storage.kafka.cursor import APPEND_HEADER, LAST_MARK, Cursor, Position
from strata.storage.kafka.end_offset import EndOffset
from strata.storage.kafka.log import KafkaLog, Timeouts
from strata.storage.kafka.pen import Pen, pen_ids
from strata.storage.kafka.producer import Producer, Staged
from strata.storage.log import START, Conflict, Entry, LogCompacted, LogTimeout, Record

if TYPE_CHECKING:
    from tests.kafka.conftest import Topic

pytestmark = pytest.mark.kafka

_WAIT_S = 60


def _record(name: str) -> Record:
    return Record(name.encode(), b"v")


def _keys(log: KafkaLog) -> list[bytes | None]:
    return [entry.key for entry in log.read(START) if b"NOOP" not in (entry.key or b"")]


def _withhold_commits(monkeypatch: pytest.MonkeyPatch, node: KafkaLog, wait_s: float = _WAIT_S) -> list[Producer]:
    """Make the broker's answer to a commit come before the commit; return the producers that still have to commit.

    From that answer on, the node waits as long as `wait_s` says.
    """
    answered: list[Producer] = []

    def commit(pen: Pen, _deadline: float) -> None:
        answered.append(pen._producer)
        node._timeouts = Timeouts(write=wait_s)

    monkeypatch.setattr(Pen, "commit", commit)
    return answered


def test_no_acknowledgement_before_visibility(topic: "Topic", monkeypatch: pytest.MonkeyPatch) -> None:
    """An append whose commit is answered waits until every node can read its records."""
    node, other = topic.node(), topic.node()
    first = node.append(START, [_record("a")])
    answered = _withhold_commits(monkeypatch, node)
    asked, original = threading.Semaphore(0), EndOffset.now

    def now(end: EndOffset, deadline: float) -> int:
        found = original(end, deadline)
        asked.release()
        return found

    with ThreadPoolExecutor(1) as pool:
        appending = pool.submit(node.append, first[-1].offset, [_record("b"), _record("c")])
        monkeypatch.setattr(EndOffset, "now", now)
        for _ in range(3):  # the consumer got nothing, and the end has not moved
            assert asked.acquire(timeout=_WAIT_S)
        assert not appending.done()
        assert _keys(other) == [b"a"]
        answered[0].commit(time.monotonic() + _WAIT_S)
        written = appending.result(_WAIT_S)
    assert [entry for entry in other.read(first[-1].offset) if entry.offset > first[-1].offset] == list(written)


def test_a_read_after_an_append_of_its_own(topic: "Topic", monkeypatch: pytest.MonkeyPatch) -> None:
    """A node that has just appended reads to the new end without waiting for the broker: only a marker is left."""
    node = topic.node()
    written = node.append(START, [_record("a")])
    list(node.read(START))

    def fetch(_cursor: Cursor, _deadline: float) -> None:
        raise LogTimeout("the cursor waits for the broker")

    waits = True
    for number in range(20):  # on a busy machine an append may end before its node has read it
        written = node.append(written[-1].offset, [_record(f"b{number}")])
        with monkeypatch.context() as patch, suppress(LogTimeout):
            patch.setattr(Cursor, "_fetch", fetch)
            waits = list(node.read(written[-1].offset)) != []
        if not waits:
            break
    assert not waits
    other = topic.node().append(written[-1].offset, [_record("d")])
    assert _keys(node)[-1] == b"d"
    assert list(node.read(other[-1].offset)) == []


def test_an_append_that_never_becomes_visible(topic: "Topic", monkeypatch: pytest.MonkeyPatch) -> None:
    """An answered commit that no node can read in time is an unknown outcome, not an acknowledgement."""
    node = topic.node()
    first = node.append(START, [_record("a")])
    _withhold_commits(monkeypatch, node, wait_s=1.0)
    with pytest.raises(LogTimeout, match=r"not (be )?readable yet"):
        node.append(first[-1].offset, [_record("b")])
    assert _keys(node) == [b"a"]


@pytest.mark.parametrize("reads_first", [True, False])
def test_appends_are_read_in_order(topic: "Topic", *, reads_first: bool) -> None:
    """Reads by the writing node and by others return each append once and in order, wherever they begin."""
    node, other = topic.node(), topic.node()
    assert not (list(node.read(START)) if reads_first else [])
    written: list[Entry] = []
    for number in range(20):
        after = written[-1].offset if written else START
        written += node.append(after, [_record(f"{number}a"), _record(f"{number}b")])
        if number % 3 == 0:
            assert list(node.read(after))[-2:] == written[-2:]
    for reader in (node, other):
        for start in (1, 17, 38):
            assert list(reader.read(written[start].offset)) == written[start + 1 :]


def test_the_consumer_shows_an_append(topic: "Topic", monkeypatch: pytest.MonkeyPatch) -> None:
    """A node that reads at the end of the topic does not request the end in order to append."""
    node = topic.node()
    node.append(START, [_record("a")])
    list(node.read(START))
    seen = []
    sees = Cursor.sees
    monkeypatch.setattr(Cursor, "sees", lambda *args: seen.append(sees(*args)) or seen[-1])

    def is_shown() -> bool:
        node.append(list(node.read(START))[-1].offset, [_record("b")])
        return any(seen)

    until(is_shown)  # on a busy machine, a record may come too late for some of the appends


def test_a_reader_that_is_far_behind_stays_where_it_is(topic: "Topic") -> None:
    """An append leaves the position of a reader that still has much to read."""
    node = topic.node()
    after = node.append(START, [_record(str(i)) for i in range(1_500)])[-1].offset
    reading = node.read(START)
    next(reading)
    node._reader._cursor.forget()
    node._reader._cursor.take(START, 1, _WAIT_S)
    position = node._reader._cursor.position
    node.append(after, [_record("last")])
    assert node._reader._cursor.position == position
    assert len(list(reading)) >= 1_499


class _Message:
    """The end of a transaction, or the event that the consumer has reached the end of the topic."""

    def __init__(self, offset: int, error: int | None = None) -> None:
        self._offset, self._error = offset, error

    def error(self) -> KafkaError | None:
        """Return the error."""
        return None if self._error is None else KafkaError(self._error)

    def offset(self) -> int:
        """Return the offset of the record, or that of the end."""
        return self._offset

    def headers(self) -> list[tuple[str, bytes]]:
        """Return the header of the last record of a transaction."""
        return [(APPEND_HEADER, b"token" + LAST_MARK)]


class _Consumer:
    """A consumer that has delivered some messages and waits for the next one."""

    def __init__(self, *messages: _Message) -> None:
        self._messages = list(messages)

    def consume(self, _count: int, _timeout: float) -> list[_Message]:
        """Return the messages, once."""
        messages, self._messages = self._messages, []
        return messages

    def poll(self, _timeout: float) -> None:
        """Return None: there are no more."""


END = KafkaError._PARTITION_EOF


@pytest.mark.parametrize(
    ("messages", "is_certain"),
    [
        ([_Message(12), _Message(14)], True),
        ([_Message(12), _Message(14, END)], False),  # 13 has the marker of the transaction before
        ([_Message(12), _Message(14, END), _Message(14)], True),
    ],
)
def test_an_append_is_seen_only_when_it_is_delivered(messages: list[_Message], *, is_certain: bool) -> None:
    """The end of the topic right before an append is not taken for the append's own marker."""
    cursor = Cursor({}, "t")
    cursor._consumer = _Consumer(*messages)  # type: ignore[assignment]
    cursor._position = Position(11, 12, is_record=True)
    assert cursor.sees(14, 14, 0.0) == is_certain


def test_an_end_beyond_a_marker_is_kept() -> None:
    """What the consumer has reported of offsets beyond the end of a read needs no second report, which never comes."""
    cursor = Cursor({}, "t")
    cursor._consumer = _Consumer(_Message(12), _Message(16, END))  # type: ignore[assignment]
    cursor._position = Position(11, 12, is_record=True)
    assert [12] == [one.offset() for one in cursor.take(11, 14, 0.0)]
    assert [] == cursor.take(12, 16, 0.0)


class _LostEvent:
    """The consumer's report that records it has read are gone."""

    def error(self) -> KafkaError:
        """Return the error."""
        return KafkaError(KafkaError._LOG_TRUNCATION)

    def offset(self) -> int:
        """Return the offset from which records are gone."""
        return 1


def test_a_loss_is_left_for_the_next_read(topic: "Topic") -> None:
    """An append that meets the report of lost records succeeds, and the next read raises it."""
    node = topic.node()
    after = node.append(START, [_record("a")])[-1].offset
    list(node.read(START))
    node._reader._cursor._pending.append(_LostEvent())  # type: ignore[arg-type]
    after = node.append(after, [_record("b")])[-1].offset
    with pytest.raises(LogCompacted):
        list(node.read(after - 2))
    assert _keys(node) == [b"a", b"b"]


def test_two_producers_take_turns(topic: "Topic", monkeypatch: pytest.MonkeyPatch) -> None:
    """Consecutive transactions belong to different producers, also after one was aborted."""
    node = topic.node()
    after = node.append(START, [_record("a")])[-1].offset
    turns: list[Producer] = []
    send = Pen._send

    def noting(pen: Pen, *arguments: object) -> list[Staged]:
        turns.append(pen._producer)
        return send(pen, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Pen, "_send", noting)
    after = node.append(after, [_record("b")])[-1].offset
    topic.write_plainly(b"foreign", b"v")
    with pytest.raises(Conflict):
        node.append(after, [_record("c")])
    for name in "de":
        after = node.append(list(node.read(START))[-1].offset, [_record(name)])[-1].offset
    assert len(set(turns)) == 2
    assert all(one is not other for one, other in pairwise(turns))


def test_both_producers_have_one_coordinator() -> None:
    """Java's hash, by which Kafka chooses the coordinator of a transactional id, is the same for both ids."""

    def java_hash(text: str) -> int:
        result = 0
        for character in text:
            result = (31 * result + ord(character)) % 2**32
        return result

    one, two = pen_ids("_schemas")
    assert one != two
    assert java_hash(one) == java_hash(two)
