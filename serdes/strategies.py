"""Subject name strategies: under which subject the schema of a record is registered.

A strategy is any callable `(context, record_name) -> subject`; the context needs only `.topic` and `.field`, so the
`SerializationContext` of confluent-kafka fits, and a function written for its clients fits here.
"""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from serdes.client import RegistryClient
from serdes.errors import NoSubject, RegistryError, SerdeError

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
    """Where a value goes to or came from."""

    @property
    def topic(self) -> str | None:
        """The topic."""

    @property
    def field(self) -> str | None:
        """`key` or `value`."""


@dataclass(frozen=True, slots=True)
class Context:
    """The plain context of a call without a Kafka client; the key is that of a value, for dead letters."""

    topic: str | None = None
    field: str = "value"
    headers: list[tuple[str, Any]] | dict[str, Any] | None = None
    key: Any = None


SubjectNameStrategy = Callable[[RecordContext, str | None], str]


def topic_name(context: RecordContext, record: str | None = None) -> str:  # noqa: ARG001 - one signature for all
    """`<topic>-key` or `<topic>-value`: one kind of record in each topic."""
    return f"{_topic(context)}-{_field(context)}"


def record_name(context: RecordContext, record: str | None) -> str:  # noqa: ARG001 - one signature for all
    """The full name of the record: one history of it over all topics."""
    return _record(record)


def topic_record_name(context: RecordContext, record: str | None) -> str:
    """`<topic>-<record>`: several kinds of record in a topic, each with its own history there."""
    return f"{_topic(context)}-{_record(record)}"


STRATEGIES: dict[str, SubjectNameStrategy] = {
    "TOPIC": topic_name,
    "RECORD": record_name,
    "TOPIC_RECORD": topic_record_name,
    "TopicNameStrategy": topic_name,
    "RecordNameStrategy": record_name,
    "TopicRecordNameStrategy": topic_record_name,
}
"""The spellings that configurations of other clients use."""

ASSOCIATED = ("ASSOCIATED", "AssociatedNameStrategy")
CLUSTER = "subject.name.strategy.kafka.cluster.id"
FALLBACK = "subject.name.strategy.fallback.type"


def strategy_named(name: str, client: RegistryClient, conf: Mapping[str, Any] | None = None) -> SubjectNameStrategy:
    """The strategy of a name; `conf` is for the associated one: `CLUSTER` and `FALLBACK`."""
    if name in STRATEGIES:
        return STRATEGIES[name]
    if name not in ASSOCIATED:
        allowed = ", ".join((*STRATEGIES, *ASSOCIATED))
        raise ValueError(f"the subject name strategy {name!r} is unknown; allowed are {allowed}")
    given = {CLUSTER: "-", FALLBACK: "TOPIC", **(conf or {})}
    unknown = sorted(given.keys() - {CLUSTER, FALLBACK})
    if unknown:
        raise ValueError(f"unknown settings {', '.join(unknown)}; allowed are {CLUSTER}, {FALLBACK}")
    fallback = str(given[FALLBACK]).upper()
    if fallback not in ("TOPIC", "RECORD", "TOPIC_RECORD", "NONE"):
        raise ValueError(f"{FALLBACK} is {given[FALLBACK]!r}; allowed are TOPIC, RECORD, TOPIC_RECORD and NONE")
    return functools.partial(_associated, client, str(given[CLUSTER]), STRATEGIES.get(fallback))


def _associated(
    client: RegistryClient,
    cluster: str,
    fallback: SubjectNameStrategy | None,
    context: RecordContext,
    record: str | None,
) -> str:
    """The subject that the registry associates with the topic, else what another strategy says."""
    topic, field = _topic(context), _field(context)
    try:
        found = client.get_associated_subjects(topic, field, cluster=cluster)
    except RegistryError as error:
        if error.status != _NOT_FOUND:
            raise
        found = []  # a registry without associations
    if len(found) > 1:
        raise SerdeError(f"the topic {topic} has several associated subjects: {', '.join(found[:5])}")
    if found:
        return found[0]
    if fallback is None:
        raise NoSubject(f"the topic {topic} has no associated subject")
    return fallback(context, record)


def _topic(context: RecordContext) -> str:
    if not context.topic:
        raise NoSubject("the subject name strategy needs a topic, and the call gave none")
    return context.topic


def _field(context: RecordContext) -> str:
    for field in ("key", "value"):
        if context.field == field:
            return field
    raise SerdeError(f"the field of a record is 'key' or 'value', not {context.field!r}")


def _record(record: str | None) -> str:
    if not record:
        raise NoSubject("the subject name strategy needs a named record as schema")
    return record
