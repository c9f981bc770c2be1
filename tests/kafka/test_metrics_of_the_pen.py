"""The metrics of nodes on a topic: who holds the pen, how often it was taken, and what others wrote."""

import http.client
import json
import signal
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from harness.registry import RegistryNode

if TYPE_CHECKING:
    from tests.kafka.conftest import Topic

pytestmark = pytest.mark.kafka
_ANSWERS_S = 60.0
NAMES = ("holds_pen", "pen_taken_total", "pen_lost_total", "foreign_records")


def _call(node: RegistryNode, method: str, path: str, body: Any = None) -> str:
    with closing(http.client.HTTPConnection("127.0.0.1", node.port, timeout=60)) as connection:
        connection.request(method, path, body and json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read().decode()
        assert answer.status == 200, text
        return text


def _pen(node: RegistryNode) -> tuple[float, ...]:
    """Return whether a node holds the pen, how often it took and lost it, and the number of foreign records."""
    text = _call(node, "GET", "/metrics")
    found = {one.name: one.value for family in text_string_to_metric_families(text) for one in family.samples}
    roles = found["kafka_schema_registry_master_slave_role"], found["kafka_schema_registry_node_count"]
    return (*(found[f"strata_log_{name}"] for name in NAMES), *roles)


def _taking_s(node: RegistryNode) -> float:
    """Return how long a node needed to take the pen, in seconds."""
    text = _call(node, "GET", "/metrics")
    found = {one.name: one.value for family in text_string_to_metric_families(text) for one in family.samples}
    return found["kafka_schema_registry_leader_initialization_latency"] / 1000


def _await(node: RegistryNode, expected: tuple[float, ...]) -> None:
    deadline = time.monotonic() + _ANSWERS_S
    while (found := _pen(node)) != expected:
        assert time.monotonic() < deadline, found
        time.sleep(0.1)


@pytest.mark.slow
def test_the_pen_and_other_writers(topic: "Topic") -> None:
    """A node that writes takes the pen; the other one forwards to it, until that one ends; a foreign record counts."""
    log = f"kafka://{topic.bootstrap}/{topic.name}"
    with RegistryNode(log) as first, RegistryNode(log) as second:
        assert (0, 0, 0, 0, 0, 1) == _pen(first)
        assert _taking_s(first) == 0
        began = time.monotonic()
        _call(first, "POST", "/subjects/a/versions", {"schema": '"int"'})
        assert 0 < _taking_s(first) < time.monotonic() - began
        _call(second, "POST", "/subjects/b/versions", {"schema": '"int"'})
        assert (1, 1, 0, 0, 1, 1) == _pen(first)
        assert (0, 0, 0, 0, 0, 2) == _pen(second)
        topic.write_plainly(b'{"keytype":"CONFIG","subject":"x","magic":0}', b'{"compatibilityLevel":"NONE"}')
        _await(first, (1, 1, 0, 1, 1, 1))
        first.send(signal.SIGSTOP)
        try:  # a write that was sent to a node that does not answer has an unknown outcome; one that was not is written
            _call(second, "POST", "/subjects/c/versions", {"schema": '"int"'})
        except AssertionError as refusal:
            assert "50003" in str(refusal)  # noqa: PT017 - either may be
        _call(second, "POST", "/subjects/c/versions", {"schema": '"int"'})
        assert (1, 1, 0) == _pen(second)[:3]
        first.send(signal.SIGCONT)
        _await(first, (0, 1, 1, 1, 0, 2))
