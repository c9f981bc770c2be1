"""The brokers of the session start.

Each takes seconds, which would be those of the first test that needs it.
"""

import pytest
from confluent_kafka.admin import AdminClient

from harness.kafka import KafkaBroker

pytestmark = pytest.mark.kafka
_WAIT_S = 60


def _brokers(bootstrap: str) -> int:
    return len(AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=_WAIT_S).brokers)


def test_the_session_s_broker(kafka_broker: KafkaBroker) -> None:
    """It is the only one of its cluster."""
    assert 1 == _brokers(kafka_broker.bootstrap)


def test_a_broker_that_tests_may_kill(own_broker: KafkaBroker) -> None:
    """It has a cluster of its own, and listeners for each way to it."""
    ways = [own_broker.bootstrap_by(name) for name in ("RELAY", "PATH", "MUTUAL", "LOGIN", "ENCRYPTED")]

    assert 1 == _brokers(own_broker.bootstrap)
    assert len({own_broker.bootstrap, *ways}) == 6
