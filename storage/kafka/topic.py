"""The topic of a Kafka log: find and check it, or create it, before anything is read from it.

A topic that would lose or reorder records is refused with advice: one with several partitions (which have no common
order), or with another cleanup policy than compaction (records would expire).
"""

import logging
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    TopicDescription,
)

from strata.storage.log import LogError

__all__ = ["Topic", "prepare_topic", "retention_of"]

_logger = logging.getLogger(__name__)

_REPLICAS = 3
_PAUSE_S = 0.05
_ATTEMPT_S = 2.0
_T = TypeVar("_T")
_DEFAULT_LIMIT = 1_000_000
_DEFAULT_RETENTION_MS = 86_400_000
_LEAST_RETENTION_S, _SHORT_RETENTION_S = 1.0, 60.0


@dataclass(frozen=True, slots=True)
class Topic:
    """An existing topic; a topic that is created later under the same name has another id."""

    name: str
    topic_id: str
    max_bytes: int
    """The maximum size of a record batch, in bytes."""
    retention_s: float
    """How long compaction keeps a tombstone, in seconds."""


def prepare_topic(admin: AdminClient, topic: str, timeout_s: float, *, must_exist: bool = False) -> Topic:
    """Find or create the topic, check that it can hold the log, and return its properties.

    Args:
        admin: The client.
        topic: The topic's name.
        timeout_s: Time limit in seconds.
        must_exist: Refuse a missing topic instead of creating it.

    Raises:
        LogError: Kafka does not answer, the topic is missing, or it cannot hold the log; the message says what to do.
    """
    deadline = time.monotonic() + timeout_s
    brokers = _brokers(admin, timeout_s)
    description = _describe(admin, topic, deadline)
    if description is None:
        if must_exist:
            raise LogError(f"no such topic: {topic}")
        _create(admin, topic, brokers, deadline)
        description = _await_topic(admin, topic, deadline)
    _check_partitions(topic, description, brokers)
    config = _config(admin, topic, deadline)
    _check_policy(topic, config)
    retention_s = _retention(config)
    _check_retention(topic, retention_s)
    return Topic(topic, str(description.topic_id), int(config.get("max.message.bytes", _DEFAULT_LIMIT)), retention_s)


def retention_of(admin: AdminClient, topic: str) -> float | None:
    """Return how long compaction now keeps a tombstone, in seconds, or None if Kafka does not answer."""
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    try:
        asked = admin.describe_configs([resource], request_timeout=_ATTEMPT_S)[resource]
        return _retention({name: entry.value for name, entry in asked.result(_ATTEMPT_S + 1).items()})
    except (KafkaException, FutureTimeoutError):
        return None


def _brokers(admin: AdminClient, timeout_s: float) -> int:
    try:
        return len(admin.list_topics(timeout=timeout_s).brokers)
    except KafkaException as error:
        raise LogError(f"Kafka did not answer within {timeout_s:g} s: {_reason(error)}") from error


def _describe(admin: AdminClient, topic: str, deadline: float) -> TopicDescription | None:
    """Look the topic up by a request that never makes a broker create it."""

    def ask(timeout_s: float) -> "Future[TopicDescription]":
        return admin.describe_topics(TopicCollection([topic]), request_timeout=timeout_s)[topic]

    try:
        return _retried(admin, ask, deadline)
    except KafkaException as error:
        if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            return None
        raise LogError(f"topic {topic}: cannot be looked up: {_reason(error)}") from error


def _create(admin: AdminClient, topic: str, brokers: int, deadline: float) -> None:
    replicas = min(_REPLICAS, brokers)
    config = {"cleanup.policy": "compact"}
    if replicas == _REPLICAS:
        # One replica may be down; an acknowledged record is then still on two.
        config["min.insync.replicas"] = "2"
    new = NewTopic(topic, num_partitions=1, replication_factor=replicas, config=config)

    def ask(timeout_s: float) -> "Future[None]":
        return admin.create_topics([new], request_timeout=timeout_s)[topic]

    try:
        _retried(admin, ask, deadline)
    except KafkaException as error:
        # Another node that starts at the same moment may have created it.
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise LogError(f"topic {topic} does not exist and cannot be created: {_reason(error)}") from error
    else:
        _logger.info(
            "created a new log: topic %(name)s with %(replicas)d replica(s)",
            {"event": "log_created", "name": topic, "replicas": replicas},
        )


def _await_topic(admin: AdminClient, topic: str, deadline: float) -> TopicDescription:
    while True:
        description = _describe(admin, topic, deadline)
        if description is not None and all(partition.leader for partition in description.partitions):
            return description
        if time.monotonic() > deadline:
            raise LogError(f"topic {topic} was created, but has no leader yet")
        time.sleep(_PAUSE_S)


def _check_partitions(topic: str, description: TopicDescription, brokers: int) -> None:
    count = len(description.partitions)
    if count != 1:
        raise LogError(
            f"topic {topic} has {count} partitions; expected exactly one, which keeps the order of its records. "
            "Partitions cannot be removed: name another topic, and copy existing records to it"
        )
    replicas = len(description.partitions[0].replicas)
    if replicas < _REPLICAS:
        _logger.warning(
            "topic %(topic)s has %(replicas)d replica(s) on %(brokers)d broker(s); use at least %(wanted)d so that it "
            "survives the loss of a broker",
            {
                "event": "too_few_replicas",
                "topic": topic,
                "replicas": replicas,
                "brokers": brokers,
                "wanted": _REPLICAS,
            },
        )


def _config(admin: AdminClient, topic: str, deadline: float) -> dict[str, str]:
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)

    def ask(timeout_s: float) -> "Future[dict[str, ConfigEntry]]":
        return admin.describe_configs([resource], request_timeout=timeout_s)[resource]

    while True:
        try:
            return {
                name: entry.value for name, entry in _retried(admin, ask, deadline).items() if entry.value is not None
            }
        except KafkaException as error:
            # A broker may not know yet of a topic that was just created.
            if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART or time.monotonic() > deadline:
                _logger.warning(
                    "cannot check the settings of topic %(topic)s: %(reason)s",
                    {"event": "topic_unchecked", "topic": topic, "reason": _reason(error)},
                )
                return {}
            time.sleep(_PAUSE_S)


def _check_policy(topic: str, config: dict[str, str]) -> None:
    policy = config.get("cleanup.policy", "compact")
    if policy != "compact":
        raise LogError(
            f"topic {topic} has cleanup.policy={policy}; expected compact, since Kafka would delete old schemas. "
            f"To set it: kafka-configs.sh --bootstrap-server … --entity-type topics --entity-name {topic} "
            "--alter --add-config cleanup.policy=compact"
        )


def _retention(config: Mapping[str, str]) -> float:
    return int(config.get("delete.retention.ms", _DEFAULT_RETENTION_MS)) / 1000


def _check_retention(topic: str, retention_s: float) -> None:
    advice = (
        f"topic {topic} has delete.retention.ms={retention_s * 1000:.0f}: a node that does not read for half of that "
        "time reads the whole log again, because it may have missed deletions. A day (86400000) is usual"
    )
    if retention_s < _LEAST_RETENTION_S:
        raise LogError(f"{advice}; expected at least {_LEAST_RETENTION_S * 1000:.0f}")
    if retention_s < _SHORT_RETENTION_S:
        _logger.warning("%(advice)s", {"event": "topic_retention_short", "topic": topic, "advice": advice})


def _retried(admin: AdminClient, ask: Callable[[float], "Future[_T]"], deadline: float) -> _T:
    """Retry a request until Kafka answers, and look up the controller again between attempts.

    Without that look-up the client waits for the controller that it knows until the timeout, even if that one is dead.
    """
    while True:
        attempt = min(_ATTEMPT_S, _left(deadline))
        try:
            return ask(attempt).result(attempt + 1)
        except (KafkaException, FutureTimeoutError) as error:
            silent = isinstance(error, FutureTimeoutError) or error.args[0].code() == KafkaError._TIMED_OUT
            if not silent:
                raise
            if time.monotonic() > deadline:
                raise LogError(f"Kafka did not answer in time: {error}") from error
        with suppress(KafkaException):
            admin.list_topics(timeout=attempt)


def _left(deadline: float) -> float:
    return max(0.1, deadline - time.monotonic())


def _reason(error: KafkaException) -> str:
    return str(error.args[0].str())
