"""Nodes on fresh topics of the session's broker, and raw clients to look behind their backs."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from harness.kafka import KafkaBroker
from storage.kafka_log import KafkaLog

_POLL_S = 30.0


class Topic:
    """One topic on a broker: opens nodes on it, writes to it without the pen, and reads it without manners."""

    def __init__(self, broker: KafkaBroker, stack: ExitStack, name: str | None = None) -> None:
        self.broker, self.bootstrap = broker, broker.bootstrap
        self.name = name or f"schemas-{uuid.uuid4().hex[:8]}"
        self._stack = stack

    def node(self, url: str | None = None, **options: object) -> KafkaLog:
        """One more node; its URL is what the others are told."""
        log = KafkaLog(self.bootstrap, self.name, advertised_url=url, **options)  # type: ignore[arg-type]
        return self._stack.enter_context(closing(log))

    def write_plainly(self, key: bytes | None, value: bytes | None, **headers: bytes) -> None:
        """Write a record as another product would: no transaction, no pen."""
        producer = Producer({"bootstrap.servers": self.bootstrap, "acks": "all"})
        named = {name.replace("_", "-"): content for name, content in headers.items()}
        producer.produce(self.name, value, key, 0, headers=named)
        assert producer.flush(_POLL_S) == 0

    def keys_in_the_topic(self) -> list[bytes | None]:
        """Every key in the topic, also of records that are not committed."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": uuid.uuid4().hex,
                "isolation.level": "read_uncommitted",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
            }
        )
        with closing(consumer):
            consumer.assign([TopicPartition(self.name, 0, 0)])
            keys = []
            while (message := consumer.poll(_POLL_S)) is not None:
                if (problem := message.error()) is None:
                    keys.append(message.key())
                elif problem.code() == KafkaError._PARTITION_EOF:
                    return keys
        raise AssertionError(f"the end of {self.name} was not reached")


@pytest.fixture
def topic(kafka_broker: KafkaBroker) -> Iterator[Topic]:
    """A topic name that is not in use, on the session's broker."""
    with ExitStack() as stack:
        yield Topic(kafka_broker, stack)


@pytest.fixture
def topic_on() -> Iterator[Callable[[KafkaBroker], Topic]]:
    """Topics on a test's own broker."""
    with ExitStack() as stack:
        yield lambda broker: Topic(broker, stack)
