"""The topic of a Kafka log: creation, adoption and refusal; and reading records of other writers."""

import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import TopicCollection

from harness.processes import free_port
from harness.waiting import until
from strata.storage.kafka.log import KafkaLog, Timeouts
from strata.storage.kafka.pen import Pen
from strata.storage.log import START, Conflict, LogError, Record, RecordTooLarge
from strata.storage.record_json import encode
from strata.storage.records import ConfigKey, ConfigValue
from strata.storage.state import State

if TYPE_CHECKING:
    from tests.kafka.conftest import Topic

pytestmark = pytest.mark.kafka

_WAIT_S = 60


def test_a_copy_of_the_topic_has_no_markers(topic: "Topic") -> None:
    """In a copy, such as MirrorMaker's, a record stands where the topic has a transaction's marker: it is read."""
    topic.create()
    node = topic.node()
    states = [State()]

    def read_to(last: int) -> bool:
        states.append(states[-1].apply_all(node.read(states[-1].offset)))
        return states[-1].offset == last

    for number in range(0, 10, 2):
        for one in (number, number + 1):
            record = encode(ConfigKey(f"s{one}"), ConfigValue({"compatibilityLevel": "FULL"}))
            topic.write_plainly(record.key, record.value, strata_append=b"%032d;last" % one)

        # The first read may take the second record for a marker.
        until(partial(read_to, number + 1))

    assert {f"s{number}" for number in range(10)} == set(states[-1].configs)


# --- found or created


def test_a_missing_topic_is_created(topic: "Topic") -> None:
    """A node creates the topic with one partition and compaction."""
    topic.node()
    description = topic.admin.describe_topics(TopicCollection([topic.name]))[topic.name].result(_WAIT_S)
    assert len(description.partitions) == 1
    assert topic.config()["cleanup.policy"] == "compact"


def test_nodes_that_start_at_once_share_the_topic(topic: "Topic") -> None:
    """If several nodes find no topic, one creates it, and all use it."""
    with ThreadPoolExecutor(4) as pool:
        nodes = list(pool.map(lambda _: topic.node(), range(4)))
    nodes[0].append(START, [Record(b"a", b"1")])
    assert [[entry.key for entry in node.read(START)][-1] for node in nodes] == [b"a"] * 4


def test_a_topic_with_two_partitions_is_refused(topic: "Topic") -> None:
    """Two partitions have no order between them, so the error says what to do."""
    topic.create(partitions=2)
    with pytest.raises(LogError, match=r"has 2 partitions; .*exactly one.*name another topic"):
        topic.node()


@pytest.mark.parametrize("policy", ["delete", "compact,delete"])
def test_a_topic_that_forgets_is_refused(topic: "Topic", policy: str) -> None:
    """A node refuses a topic whose records expire, with the command that corrects the setting."""
    topic.create(cleanup_policy=policy)
    with pytest.raises(LogError, match=r"cleanup.policy=.*delete.*kafka-configs.sh"):
        topic.node()


def test_an_unreachable_broker_is_a_bounded_failure() -> None:
    """Without Kafka the start fails in time, with an error that says so."""
    with pytest.raises(LogError, match=r"no broker can be reached: 127\.0\.0\.1:.*refused"):
        KafkaLog(f"127.0.0.1:{free_port()}", "schemas", advertised_url=None, timeouts=Timeouts(start=0.5))


# --- records of other writers


def test_an_existing_topic_is_adopted(topic: "Topic") -> None:
    """A node reads records of another product unchanged, null and junk included, and appends after them."""
    # The broker refuses a record without a key in a compacted topic; one from before the compaction setting stays.
    topic.create(cleanup_policy="delete")
    left: list[tuple[bytes | None, bytes | None]] = [
        (b'{"keytype":"NOOP","magic":0}', None),
        (b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}', b'{"subject":"s","version":1,"id":1}'),
        (None, b"no key"),
        (b"\xff\x00junk", b"\x80"),
        (b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}', None),
    ]
    topic.write_all_plainly(left)
    topic.alter("cleanup.policy", "compact")
    node = topic.node("http://one:8081")
    adopted = list(node.read(START))
    assert [(entry.key, entry.value) for entry in adopted] == left
    assert node.holder() is None
    assert node.end() == adopted[-1].offset
    written = node.append(adopted[-1].offset, [Record(b"a", b"1")])
    assert list(topic.node().read(written[0].offset - 1)) == list(written)


def test_aborted_records_are_gaps(topic: "Topic", monkeypatch: pytest.MonkeyPatch) -> None:
    """Aborted transactions in the middle and at the end hide their records and do not delay readers."""
    node, other = topic.node(), topic.node()
    end = node.append(START, [Record(b"a", b"1")])[-1].offset

    def abort() -> None:
        pen = node._pen
        assert isinstance(pen, Pen)
        pen.stage([Record(b"aborted", b"1")] * 3, b"token", time.monotonic() + _WAIT_S)
        assert pen.abort() is None
        node._known_end = None

    abort()
    assert list(other.read(end)) == []
    assert other.end() == end
    written = node.append(end, [Record(b"b", b"2")])
    abort()
    abort()
    assert list(other.read(end)) == list(written)
    assert other.end() == node.end() == written[0].offset
    assert list(topic.node().read(written[0].offset)) == []


def test_reading_from_every_place(topic: "Topic") -> None:
    """From any offset, a marker's included, a read yields exactly the records after it, forwards and backwards."""
    node, reader = topic.node(), topic.node()
    for i in range(5):
        node.append(node.end(), [Record(f"{i}{half}".encode(), b"v") for half in "ab"])
    entries = list(reader.read(START))
    last = entries[-1].offset
    for after in [*range(last + 1), *reversed(range(last + 1)), START]:
        assert list(reader.read(after)) == [entry for entry in entries if entry.offset > after]


def test_an_append_after_a_marker(topic: "Topic") -> None:
    """An append may name any offset after the last record as the end of its read."""
    node = topic.node()
    last = node.append(START, [Record(b"a", b"1")])[-1].offset
    node.append(last + 1, [Record(b"b", b"2")])
    with pytest.raises(Conflict):
        node.append(last + 1, [Record(b"c", b"3")])


def test_a_log_that_lost_records_is_an_error(topic: "Topic") -> None:
    """A topic that is deleted under a running node causes an error; it does not count as empty."""
    writer, node = topic.node(), topic.node(timeouts=Timeouts(start=_WAIT_S, read=2.0))
    last = writer.append(START, [Record(str(i).encode(), b"v") for i in range(5)])[-1].offset
    topic.delete()
    with pytest.raises(LogError):
        _read_until_it_fails(node, last)


def _read_until_it_fails(node: KafkaLog, after: int) -> None:
    """Read until this fails: the broker takes a moment to forget a topic."""
    deadline = time.monotonic() + _WAIT_S
    while time.monotonic() < deadline:
        assert list(node.read(after)) == []


def test_the_broker_refuses_a_size(topic: "Topic") -> None:
    """The broker enforces a limit that was lowered after the start; the node then continues."""
    node = topic.node()
    last = node.append(START, [Record(b"a", b"1")])[-1].offset
    topic.alter("max.message.bytes", "2000")

    def is_refused() -> bool:
        nonlocal last
        try:
            last = node.append(last, [Record(b"large", b"v" * 10_000)])[-1].offset
        except RecordTooLarge:
            return True
        return False

    until(is_refused)
    written = node.append(last, [Record(b"b", b"2")])
    assert [entry.key for entry in topic.node().read(last) if b"NOOP" not in (entry.key or b"")] == [b"b"]
    assert node.end() == written[0].offset


def test_compaction(topic: "Topic") -> None:
    """After Kafka has compacted the topic, it holds the newest record of every key, and the last holder of the pen."""
    topic.create(segment_ms="100", min_cleanable_dirty_ratio="0.001")
    node = topic.node("http://one:8081")
    newest: dict[bytes | None, bytes | None] = {}
    end = START
    for i in range(30):
        record = Record(f"key {i % 3}".encode(), str(i).encode())
        end, newest[record.key] = node.append(end, [record])[-1].offset, record.value
        time.sleep(0.02)
    deadline = time.monotonic() + _WAIT_S
    while len(topic.keys_in_the_topic()) > 20 and time.monotonic() < deadline:
        # The next record closes a segment.
        end, newest[b"key 0"] = node.append(end, [Record(b"key 0", b"30")])[-1].offset, b"30"
        time.sleep(0.2)
    fresh = topic.node("http://two:8081")
    entries = list(fresh.read(START))
    assert len(entries) <= 20
    replayed = {entry.key: entry.value for entry in entries if b"NOOP" not in (entry.key or b"")}
    assert replayed == newest
    assert fresh.holder() == "http://one:8081"
    assert fresh.end() == end
    fresh.append(end, [Record(b"key 1", b"31")])
    assert list(node.read(end))[-1].value == b"31"
