"""Writes after an outage of the broker: every node accepts them again, whatever nodes held the pen before."""

import http.client
import json
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from functools import partial
from typing import TYPE_CHECKING

import pytest

from faults.nursery import Nursery
from harness.kafka import KafkaBroker
from harness.registry import RegistryNode
from harness.waiting import until
from strata.storage.log import START, Record

if TYPE_CHECKING:
    from tests.kafka.conftest import Topic

pytestmark = pytest.mark.kafka

_WAIT_S = 60


@pytest.fixture(scope="module")
def own_broker() -> Iterator[KafkaBroker]:
    """Yield a broker that these tests may kill."""
    with KafkaBroker() as broker:
        yield broker


def _write(node: RegistryNode) -> int:
    """Set a level, and return the status of the answer."""
    with closing(http.client.HTTPConnection("127.0.0.1", node.port, timeout=_WAIT_S)) as connection:
        body = json.dumps({"compatibility": "NONE"})
        connection.request("PUT", f"/config/{uuid.uuid4().hex}", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        return answer.status


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
        pytest.param("BAB", "A", 1, id="two-nodes"),
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
