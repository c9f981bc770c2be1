"""Writes after an outage of the broker: every node accepts them again, whatever nodes held the pen before."""

import http.client
import json
import re
import time
import uuid
from collections.abc import Collection, Sequence
from contextlib import ExitStack, closing, suppress
from functools import partial
from typing import TYPE_CHECKING

import pytest

from faults.nursery import Nursery
from harness.kafka import KafkaBroker
from harness.registry import RegistryNode
from harness.waiting import until
from strata.storage.kafka.log import KafkaLog, Timeouts
from strata.storage.log import START, Conflict, LogCompacted, LogError, Record

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.kafka.conftest import Topic

pytestmark = pytest.mark.kafka

_WAIT_S = 60
_APART_S, _TRIES = 0.1, 5
_LOST = tuple(b"lost %d" % number for number in range(6))
_READ_AGAIN = re.compile("lost records|no longer has the next offset")


def _write(node: RegistryNode, subject: str | None = None) -> int:
    """Set the level of a subject, and return the status of the answer."""
    with closing(http.client.HTTPConnection("127.0.0.1", node.port, timeout=_WAIT_S)) as connection:
        body = json.dumps({"compatibility": "NONE"})
        connection.request("PUT", f"/config/{subject or uuid.uuid4().hex}", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        return answer.status


def _levels(node: RegistryNode, subjects: Collection[str]) -> set[str]:
    """Return which of the subjects have a level of their own."""
    found = set()
    for subject in subjects:
        with closing(http.client.HTTPConnection("127.0.0.1", node.port, timeout=_WAIT_S)) as connection:
            connection.request("GET", f"/config/{subject}")
            answer = connection.getresponse()
            answer.read()
            found |= {subject} if answer.status == 200 else set()
    return found


def _can_write(node: RegistryNode) -> tuple[bool, float]:
    """Return whether a node accepts writes, as its health and its metrics say."""
    found: list[bytes] = []
    for path in ("/health/write", "/metrics"):
        with closing(http.client.HTTPConnection("127.0.0.1", node.port, timeout=_WAIT_S)) as connection:
            connection.request("GET", path)
            found.append(connection.getresponse().read())
    (line,) = [line for line in found[1].decode().splitlines() if line.startswith("strata_write_ready ")]
    return json.loads(found[0])["canWrite"], float(line.split()[1])


def _accepts(node: RegistryNode) -> bool:
    return _write(node) == 200


def _append(log: KafkaLog, after: int, key: bytes) -> int:
    """Append a record after an offset as a writer does, which reads on after a conflict; return its offset."""
    for _ in range(_TRIES):
        with suppress(Conflict):
            return log.append(after, [Record(key, b"v")])[-1].offset
        after = [after, *(entry.offset for entry in log.read(after))][-1]
    raise AssertionError("every try was a conflict")


def _finds_loss(log: KafkaLog, last: int) -> bool:
    """Return whether a log says that it no longer holds what this node has read up to an offset."""
    try:
        list(log.read(last))
    except LogCompacted:
        return True
    return False


def _hand_over(nodes: Sequence[RegistryNode], order: str) -> None:
    """Let nodes take the pen one after the other, each while the others restart."""
    for name in order:
        holder = nodes["ABC".index(name)]
        others = [node for node in nodes if node is not holder]
        for node in others:
            node.terminate()
        assert _write(holder) == 200
        for node in others:
            node.restart()


@pytest.mark.parametrize(
    ("order", "asked", "workers"),
    [
        pytest.param("BAB", "A", 1, id="two-nodes", marks=pytest.mark.slow),
        pytest.param("BAB", "B", 2, id="two-nodes-with-workers", marks=pytest.mark.slow),
        pytest.param("ABCBA", "C", 1, id="three-nodes", marks=pytest.mark.slow),
        pytest.param("ACBAC", "B", 3, id="three-nodes-with-workers", marks=pytest.mark.slow),
    ],
)
def test_every_node_accepts_writes_again(
    own_broker: KafkaBroker, nursery: Nursery, order: str, asked: str, workers: int
) -> None:
    """Every node accepts writes after an outage, although each one knows older holders of the pen."""
    log = f"kafka://{own_broker.bootstrap}/schemas-{uuid.uuid4().hex[:8]}"
    with ExitStack() as stack:
        nodes = []
        for _ in {*order}:
            node = RegistryNode(log, f"--workers={workers}", "--write-timeout=10", start=nursery.start)
            nodes.append(stack.enter_context(node))
        _hand_over(nodes, order)
        own_broker.kill()
        other = nodes["ABC".index(asked)]
        assert _write(other) >= 500
        until(lambda: _can_write(other) == (False, 0))
        own_broker.restart()
        for node in nodes:
            until(partial(_accepts, node))
            until(lambda node=node: _can_write(node) == (True, 1))  # type: ignore[misc]


@pytest.mark.long  # a broker restarts
def test_a_node_notices_that_records_are_gone(
    own_broker: KafkaBroker, topic_on: "Callable[[KafkaBroker], Topic]"
) -> None:
    """A log that lost records which a node has read says so, also if it has grown to the same length since."""
    topic, impatient = topic_on(own_broker), Timeouts(read=1.0)
    one, two = (topic.node(f"http://{name}:8081", timeouts=impatient) for name in ("one", "two"))
    kept = _append(two, _append(one, START, b"kept"), b"kept too")
    list(one.read(START))
    time.sleep(_APART_S)
    began = time.time()
    time.sleep(_APART_S)
    last = kept
    for key in _LOST:
        last = _append(two, last, key)
    assert [*_LOST] == [entry.key for entry in one.read(kept)]
    own_broker.kill()
    assert own_broker.lose_last(time.time() - began) > 0
    own_broker.restart()
    until(lambda: _finds_loss(two, last), LogError)
    survived = [entry.offset for entry in two.read(START)][-1]
    new = _append(two, survived, b"new")
    while two.end() <= last:  # up to the place of the last marker
        topic.write_plainly(b"filler", b"v")
    until(lambda: _finds_loss(one, last), LogError)
    keys = [entry.key for entry in one.read(START)]

    assert survived < kept + 2 < new < last
    assert [b"kept", b"kept too", b"new"] == [key for key in keys if key in {b"kept", b"kept too", b"new", *_LOST}]


@pytest.mark.slow  # a node waits 10 s for what it has read; CI has the same for a log, with a shorter limit
def test_every_node_writes_after_a_loss(own_broker: KafkaBroker, nursery: Nursery) -> None:
    """After the only broker lost its last moment, nodes that both held the pen write, and serve what the log has."""
    log = f"kafka://{own_broker.bootstrap}/schemas-{uuid.uuid4().hex[:8]}"
    with ExitStack() as stack:
        nodes = [stack.enter_context(RegistryNode(log, "--write-timeout=10", start=nursery.start)) for _ in "AB"]
        _hand_over(nodes, "BAB")
        kept = {f"kept-{number}" for number in range(3)}
        for name in kept:
            assert _write(nodes[0], name) == 200
        time.sleep(_APART_S)
        began = time.time()
        time.sleep(_APART_S)
        lost = {f"lost-{number}" for number in range(3)}
        for number, name in enumerate(lost):
            assert _write(nodes[number % 2], name) == 200
        own_broker.kill()
        assert own_broker.lose_last(time.time() - began) > 0
        own_broker.restart()
        for node in nodes:
            until(partial(_accepts, node))
            until(lambda node=node: _levels(node, lost) == set())  # type: ignore[misc]

        assert [kept, kept] == [_levels(node, kept) for node in nodes]
        assert [bool(_READ_AGAIN.search(node.log_file.read_text())) for node in nodes] == [True, True]


def test_a_node_whose_pen_broke_names_no_older_holder(topic: "Topic") -> None:
    """A node that signed last names no holder when its own producers fail, although it read an older signature."""
    one, two = topic.node("http://one:8081"), topic.node("http://two:8081")
    end = one.append(START, [Record(b"1", b"v")])[-1].offset
    list(two.read(START))
    end = two.append(end, [Record(b"2", b"v")])[-1].offset
    list(one.read(START))
    last = one.append(end, [Record(b"3", b"v")])[-1].offset
    assert one._pen is not None
    one._pen.close()
    assert (one.holder(), list(one.read(last)), one.holder()) == (None, [], None)
    list(two.read(end))
    assert two.holder() == "http://one:8081"
    one.append(last, [Record(b"4", b"v")])
    assert [entry.key for entry in two.read(last)][-1] == b"4"
