"""Brokers that fail during reads and writes."""

import json
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import TopicCollection
from confluent_kafka.admin import AdminClient

from faults.proxy import Proxy
from harness.kafka import KafkaBroker
from harness.log_lines import call
from harness.registry import RegistryNode
from harness.waiting import until
from strata.storage.kafka import pen
from strata.storage.kafka.log import KafkaLog, Timeouts
from strata.storage.log import START, Conflict, Entry, LogError, Record

if TYPE_CHECKING:
    from tests.kafka.conftest import Topic

pytestmark = pytest.mark.kafka

_WAIT_S = 60
_RETRY_S = 120
_SHORT = Timeouts(start=_WAIT_S, take_pen=_WAIT_S, read=0.5, write=1.0)


def _keys(log: KafkaLog) -> list[bytes | None]:
    return [entry.key for entry in log.read(START) if b"NOOP" not in (entry.key or b"")]


def _append_at_end(log: KafkaLog, key: str, *, patience: threading.Event) -> list[Entry]:
    """Append as a persistent client: after every failure check whether the record is in the log, then try again."""
    deadline = time.monotonic() + _RETRY_S
    while time.monotonic() < deadline:
        with suppress(Conflict, LogError):
            entries = list(log.read(START))
            if found := [entry for entry in entries if entry.key == key.encode()]:
                return found
            return list(log.append(entries[-1].offset if entries else START, [Record(key.encode(), b"v")]))
        patience.wait(0.1)
    raise AssertionError(f"{key} could not be written")


@pytest.mark.slow
def test_a_broker_that_restarts(own_broker: KafkaBroker, topic_on: Callable[[KafkaBroker], "Topic"]) -> None:
    """After an outage all records remain, the same node reads and writes, and no record is there twice."""
    topic = topic_on(own_broker)
    node, other = topic.node(), topic.node()
    written = [*node.append(START, [Record(b"a", b"1")])]
    own_broker.restart()
    assert [entry for entry in other.read(START) if b"NOOP" not in (entry.key or b"")] == written
    patience = threading.Event()
    written += _append_at_end(node, "b", patience=patience)
    written += _append_at_end(other, "c", patience=patience)
    assert _keys(node) == _keys(other) == [b"a", b"b", b"c"]


def test_calls_while_the_broker_is_away(
    own_broker: KafkaBroker,
    path: Proxy,
    topic_on: Callable[[KafkaBroker], "Topic"],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every call fails in bounded time; a refused append is never written later."""
    monkeypatch.setattr(pen, "_ABORT_S", 0.5)
    topic = topic_on(own_broker)
    topic.bootstrap = own_broker.bootstrap_by("PATH")
    node = topic.node(timeouts=_SHORT)
    last = _append_at_end(node, "a", patience=threading.Event())[-1].offset
    path.refuse()
    try:
        for call in (
            lambda: list(node.read(last)),
            node.end,
            lambda: node.append(last, [Record(b"lost", b"1")]),
        ):
            with pytest.raises((LogError, Conflict)):
                call()
    finally:
        path.restore()
    _append_at_end(node, "b", patience=threading.Event())
    assert _keys(topic.node()) == [b"a", b"b"]


@pytest.mark.slow
def test_a_broker_that_falls_silent(own_broker: KafkaBroker, topic_on: Callable[[KafkaBroker], "Topic"]) -> None:
    """A broker that holds its connections without answering also causes an error in bounded time."""
    topic = topic_on(own_broker)
    node = topic.node(timeouts=_SHORT)
    last = _append_at_end(node, "a", patience=threading.Event())[-1].offset
    own_broker.pause()
    try:
        with pytest.raises(LogError):
            list(node.read(last))
        with pytest.raises((LogError, Conflict)):  # a long-held pen that gets no answer is taken again at the next try
            node.append(last, [Record(b"lost", b"1")])
    finally:
        own_broker.resume()
    _append_at_end(node, "b", patience=threading.Event())
    assert [key for key in _keys(topic.node()) if key != b"lost"] == [b"a", b"b"]


@pytest.mark.slow
def test_a_leader_that_dies(topic_on: Callable[[KafkaBroker], "Topic"]) -> None:
    """In a cluster of three, the loss of the topic's leader costs time, but no acknowledged record."""
    with KafkaBroker(3) as cluster:
        topic = topic_on(cluster)
        nodes = [topic.node(timeouts=_SHORT), topic.node(timeouts=_SHORT)]
        patience = threading.Event()
        written = _append_at_end(nodes[0], "0", patience=patience)
        admin = AdminClient({"bootstrap.servers": topic.bootstrap})
        description = admin.describe_topics(TopicCollection([topic.name]))[topic.name].result(_WAIT_S)
        partition = description.partitions[0]
        assert len(partition.replicas) == 3
        cluster.kill(partition.leader.id - 1)
        for i in range(1, 4):
            written += _append_at_end(nodes[i % 2], str(i), patience=patience)
        assert [entry.key for entry in written] == [b"0", b"1", b"2", b"3"]
        assert _keys(nodes[0]) == _keys(nodes[1]) == [b"0", b"1", b"2", b"3"]


@pytest.mark.slow
def test_a_start_right_after_the_controller_died(topic_on: Callable[[KafkaBroker], "Topic"]) -> None:
    """A node that starts while the brokers still name a dead controller asks again, and finds the new one."""
    with KafkaBroker(3) as cluster:
        topic = topic_on(cluster)
        _append_at_end(topic.node(timeouts=_SHORT), "a", patience=threading.Event())
        admin = AdminClient({"bootstrap.servers": topic.bootstrap})
        for _ in range(2):
            controller = admin.list_topics(timeout=_WAIT_S).controller_id
            cluster.kill(controller - 1)
            assert [b"a"] == _keys(topic.node(timeouts=Timeouts()))
            cluster.restart(controller - 1)


def test_a_node_whose_broker_falls_silent(own_broker: KafkaBroker, topic_on: Callable[[KafkaBroker], "Topic"]) -> None:
    """The node serves schemas by id and stays ready for them; `latest` gets its 503 after --read-timeout.

    The other limits are longer than the test may take.
    """
    with _node(own_broker, topic_on) as node:
        assert 200 == call(node, "POST", "/subjects/s/versions", {"schema": '"int"'})[0]
        own_broker.pause()
        try:
            status, answer = call(node, "GET", "/subjects/s/versions/latest")
            assert (503, 50301) == (status, json.loads(answer)["error_code"])
            assert 200 == call(node, "GET", "/schemas/ids/1")[0]
            assert 200 == call(node, "GET", "/health/ready")[0]
        finally:
            own_broker.resume()
        until(lambda: call(node, "GET", "/subjects/s/versions/latest")[0] == 200)


@pytest.mark.slow
def test_a_node_whose_broker_stays_silent(own_broker: KafkaBroker, topic_on: Callable[[KafkaBroker], "Topic"]) -> None:
    """After 15 s the node is not ready for writes, and still ready for reads; later it is ready for both again."""
    with _node(own_broker, topic_on) as node:
        own_broker.pause()
        try:
            until(lambda: call(node, "GET", "/health/write")[0] == 503)
            assert 200 == call(node, "GET", "/health/ready")[0]
        finally:
            own_broker.resume()
        until(lambda: call(node, "GET", "/health/write")[0] == 200)


def _node(broker: KafkaBroker, topic_on: Callable[[KafkaBroker], "Topic"]) -> RegistryNode:
    topic = topic_on(broker)
    return RegistryNode(f"kafka://{topic.bootstrap}/{topic.name}", "--read-timeout=0.5", "--write-timeout=3600")
