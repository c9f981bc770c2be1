"""A cluster that comes back answers for a moment that it has no brokers; the client of a node must survive that.

librdkafka removes a broker that an answer does not name. A consumer whose leader was removed fetches nothing any more,
even if later answers name the same leader: it continues only when the leadership changes.
"""

import uuid
from contextlib import closing, suppress

import pytest

from harness.kafka import KafkaBroker
from harness.kafka_relay import KafkaRelay
from harness.waiting import until
from strata.storage.kafka.log import KafkaLog
from strata.storage.log import START, Conflict, Record

pytestmark = pytest.mark.kafka
_CLOSED = "127.0.0.1:1,127.0.0.1:2"  # more bootstrap addresses, as for a cluster of which one broker is back
_HIDDEN = 3  # one for each of a node's clients: one reads, one asks for the end, one looks the topic up
_TRIES = 5


def _hide_brokers(relay: KafkaRelay) -> None:
    """Let the clients behind a relay connect again, and get some answers without brokers."""
    before = relay.hidden
    relay.hides_brokers = True
    relay.break_connections()
    until(lambda: relay.hidden >= before + _HIDDEN)
    relay.hides_brokers = False


def _places(broker: KafkaBroker) -> tuple[str, str]:
    """Return addresses behind the relay, and a new topic."""
    return f"{broker.bootstrap_by('RELAY')},{_CLOSED}", f"schemas-{uuid.uuid4().hex[:8]}"


def _append(log: KafkaLog, key: bytes, after: int = START) -> int:
    """Append a record as a writer does, which tries again after a conflict; return its offset."""
    for _ in range(_TRIES):
        with suppress(Conflict):
            return log.append(after, [Record(key, b"")])[0].offset
        after = log.end()
    raise AssertionError("every try was a conflict")


def test_a_node_writes_after_metadata_without_brokers(own_broker: KafkaBroker, relay: KafkaRelay) -> None:
    """After such answers, and without a new leader, a node writes with the pen it had."""
    path, topic = _places(own_broker)
    with closing(KafkaLog(path, topic, advertised_url=None)) as log:
        first = _append(log, b"a")
        list(log.read(START))
        _hide_brokers(relay)

        assert _append(log, b"b", first) > first


@pytest.mark.parametrize("rounds", [1, pytest.param(3, marks=pytest.mark.slow)])  # no leader is lost in some of them
def test_a_node_reads_after_metadata_without_brokers(own_broker: KafkaBroker, relay: KafkaRelay, rounds: int) -> None:
    """After such answers, and without a new leader, a node reads what others wrote."""
    path, topic = _places(own_broker)
    with (
        closing(KafkaLog(path, topic, advertised_url=None)) as log,
        closing(KafkaLog(own_broker.bootstrap, topic, advertised_url=None)) as other,
    ):
        last = _append(log, b"a")
        list(log.read(START))
        keys = []
        for _ in range(rounds):
            third = _append(other, b"c", last)
            _hide_brokers(relay)
            keys.append([entry.key for entry in log.read(last)])
            last = third

    assert [True] * rounds == [b"c" in of_a_round for of_a_round in keys]
