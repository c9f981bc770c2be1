"""The real services of the run: a Kafka broker, and a registry whose log is a compacted topic on it.

Their logs are kept in the output folder; their data is removed with them.
"""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType  # type: ignore[attr-defined]

from harness.kafka import KafkaBroker
from harness.registry import RegistryNode

__all__ = ["Services", "running_services"]

_SCHEMAS: Final = "_schemas"
_ANSWER_S: Final = 20.0


@dataclass(frozen=True, slots=True)
class Services:
    """The addresses of the running services."""

    bootstrap: str
    registry: str

    def create_topic(self, name: str, *, partitions: int) -> None:
        """Create a topic and wait until it exists."""
        admin = self._admin()
        admin.create_topics([NewTopic(name, partitions, 1)], operation_timeout=_ANSWER_S)[name].result(_ANSWER_S)

    def records_in(self, topic: str) -> int:
        """Return the number of records in a topic, according to its broker."""
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": "count", "enable.auto.commit": False})
        try:
            partitions = consumer.list_topics(topic, timeout=_ANSWER_S).topics[topic].partitions
            bounds = [
                consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=_ANSWER_S)
                for number in partitions
            ]
        finally:
            consumer.close()
        return sum(high - low for low, high in bounds)

    def cleanup_policy_of_schemas(self) -> str:
        """Return the cleanup policy of the registry's topic."""
        admin = self._admin()
        resource = ConfigResource(ResourceType.TOPIC, _SCHEMAS)
        entries = admin.describe_configs([resource], request_timeout=_ANSWER_S)[resource].result(_ANSWER_S)
        return str(entries["cleanup.policy"].value)

    def _admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.bootstrap})


@contextmanager
def running_services(logs: Path) -> Iterator[Services]:
    """Start both services, and stop them at the end; their logs are copied to `logs` first."""
    with ExitStack() as stack:
        broker = stack.enter_context(KafkaBroker())
        stack.callback(_keep_kafka_log, logs)
        node = stack.enter_context(RegistryNode(f"kafka://{broker.bootstrap}/{_SCHEMAS}"))
        stack.callback(lambda: shutil.copy(node.log_file, logs / "registry.log"))
        yield Services(broker.bootstrap, node.url)


def _keep_kafka_log(logs: Path) -> None:
    """Copy the broker's log, which it keeps with its data in a temporary folder and would remove."""
    for log in Path(tempfile.gettempdir()).glob("strata-kafka-*/node-1/broker.log"):
        shutil.copy(log, logs / "kafka.log")
