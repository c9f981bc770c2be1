"""The services of the session start: the process that forks nodes, and its two brokers.

Each of them takes seconds, which would be those of the first test that needs it.
"""

import pytest
from confluent_kafka.admin import AdminClient

from faults.nursery import Nursery
from harness.kafka import KafkaBroker
from harness.registry import RegistryNode

pytestmark = pytest.mark.kafka
_WAIT_S = 60


def _brokers(bootstrap: str) -> int:
    return len(AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=_WAIT_S).brokers)


def test_a_forked_node(nursery: Nursery) -> None:
    """A node that was forked is ready."""
    with RegistryNode("memory:", start=nursery.start) as node:
        assert node.port > 0


def test_the_session_s_broker(kafka_broker: KafkaBroker) -> None:
    """It is the only one of its cluster."""
    assert 1 == _brokers(kafka_broker.bootstrap)


def test_a_broker_that_tests_may_kill(own_broker: KafkaBroker) -> None:
    """It has a cluster of its own, and listeners for each way to it."""
    ways = [own_broker.bootstrap_by(name) for name in ("RELAY", "PATH", "MUTUAL", "LOGIN", "ENCRYPTED")]

    assert 1 == _brokers(own_broker.bootstrap)
    assert len({own_broker.bootstrap, *ways}) == 6
