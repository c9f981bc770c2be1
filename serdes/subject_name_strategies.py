"""Subject name strategies: under which subject the schema of a record is registered.

A strategy is any callable `(context, record_name) -> subject`. The context needs only `.topic` and `.field`, so the
`SerializationContext` of confluent-kafka fits, and strategies written for its clients work here.
"""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

from strata.serdes.errors import NoSubject, RegistryError, SerdeError
from strata.serdes.registry_protocol import Registry

__all__ = [
    "ASSOCIATED",
    "CLUSTER",
    "FALLBACK",
    "STRATEGIES",
    "Context",
    "RecordContext",
    "SubjectNameStrategy",
    "record_name",
    "strategy_named",
    "topic_name",
    "topic_record_name",
]


_NOT_FOUND = 404


class RecordContext(Protocol):
    """The topic of a record, and whether the value is its key or its value."""

    @property
    def topic(self) -> str | None:
        """The Kafka topic."""

    @property
    def field(self) -> str | None:
        """`key` or `value`."""


@dataclass(frozen=True, slots=True)
class Context:
    """The context of a call without a Kafka client.

    Attributes:
        topic: the Kafka topic.
        field: `key` or `value`.
        headers: the record headers, as pairs or a dict; a serializer may add the schema header to them.
        key: the key of the record, for dead letters.
        partition: the partition of the record, for errors.
        offset: the offset of the record in its partition, for errors.
    """

    topic: str | None = None
    field: str = "value"
    headers: list[tuple[str, Any]] | dict[str, Any] | None = None
    key: Any = None
    partition: int | None = None
    offset: int | None = None


@lru_cache(maxsize=1000)
def context_of_topic(topic: str | None, field: str) -> Context:
    """Return the context of a topic's records without headers, one for all of them."""
    return Context(topic, field)


SubjectNameStrategy = Callable[[RecordContext, str | None], str]


def topic_name(context: RecordContext, record: str | None = None) -> str:  # noqa: ARG001 - one signature for all
    """Return `<topic>-key` or `<topic>-value`: one record type for each topic.

    Raises:
        NoSubject: If the context has no topic.
        SerdeError: If the field is neither `key` nor `value`.
    """
    return f"{_topic(context)}-{_field(context)}"


def record_name(context: RecordContext, record: str | None) -> str:  # noqa: ARG001 - one signature for all
    """Return the full name of the record: one schema history over all topics.

    Raises:
        NoSubject: If the schema is not a named record.
    """
    return _record(record)


def topic_record_name(context: RecordContext, record: str | None) -> str:
    """Return `<topic>-<record>`: several record types in a topic, each with a history of its schemas there.

    Raises:
        NoSubject: If the context has no topic or the schema is not a named record.
    """
    return f"{_topic(context)}-{_record(record)}"


STRATEGIES: dict[str, SubjectNameStrategy] = {
    "TOPIC": topic_name,
    "RECORD": record_name,
    "TOPIC_RECORD": topic_record_name,
    "TopicNameStrategy": topic_name,
    "RecordNameStrategy": record_name,
    "TopicRecordNameStrategy": topic_record_name,
}
"""The strategies by name, in the spellings that the configurations of other clients use."""

ASSOCIATED = ("ASSOCIATED", "AssociatedNameStrategy")
CLUSTER = "subject.name.strategy.kafka.cluster.id"
FALLBACK = "subject.name.strategy.fallback.type"


def strategy_named(name: str, client: Registry, conf: Mapping[str, object] | None = None) -> SubjectNameStrategy:
    """Return the subject name strategy with a name.

    Args:
        name: a key of `STRATEGIES`, or one of `ASSOCIATED`.
        client: the registry, for the associated strategy.
        conf: settings of the associated strategy: `CLUSTER`, the id of the Kafka cluster, and `FALLBACK`, the strategy
            for topics without an associated subject.

    Raises:
        ValueError: If the name or a setting is unknown; the message lists what is allowed.
    """
    if name in STRATEGIES:
        return STRATEGIES[name]
    if name not in ASSOCIATED:
        allowed = ", ".join((*STRATEGIES, *ASSOCIATED))
        raise ValueError(f"unknown subject name strategy {name!r}; expected {allowed}")
    settings = {CLUSTER: "-", FALLBACK: "TOPIC", **(conf or {})}
    unknown = sorted(settings.keys() - {CLUSTER, FALLBACK})
    if unknown:
        raise ValueError(f"unknown settings {', '.join(unknown)}; expected {CLUSTER}, {FALLBACK}")
    fallback = str(settings[FALLBACK]).upper()
    if fallback not in ("TOPIC", "RECORD", "TOPIC_RECORD", "NONE"):
        raise ValueError(f"{FALLBACK}: expected TOPIC, RECORD, TOPIC_RECORD or NONE, got {settings[FALLBACK]!r}")
    return functools.partial(_associated, client, str(settings[CLUSTER]), STRATEGIES.get(fallback))


def _associated(
    client: Registry,
    cluster: str,
    fallback: SubjectNameStrategy | None,
    context: RecordContext,
    record: str | None,
) -> str:
    """Return the subject that the registry associates with the topic, else that of the fallback strategy."""
    topic, field = _topic(context), _field(context)
    try:
        associations = client.get_associated_subjects(topic, field, cluster=cluster)
    except RegistryError as error:
        if error.status != _NOT_FOUND:
            raise
        associations = []  # a registry without associations
    if len(associations) > 1:
        raise SerdeError(
            f"expected one associated subject for topic {topic}, got several: {', '.join(associations[:5])}"
        )
    if associations:
        return associations[0]
    if fallback is None:
        raise NoSubject(f"topic {topic} has no associated subject")
    return fallback(context, record)


def _topic(context: RecordContext) -> str:
    if not context.topic:
        raise NoSubject("the subject name strategy needs a topic; pass topic or ctx")
    return context.topic


def _field(context: RecordContext) -> str:
    for field in ("key", "value"):
        if context.field == field:
            return field
    raise SerdeError(f"field: expected 'key' or 'value', got {context.field!r}")


def _record(record: str | None) -> str:
    if not record:
        raise NoSubject("the subject name strategy needs a named record as schema")
    return record
