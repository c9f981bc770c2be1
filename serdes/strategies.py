"""Subject name strategies: under which subject the schema of a record is registered.

A strategy is any callable `(context, record_name) -> subject`; the context needs only `.topic` and `.field`, so the
`SerializationContext` of confluent-kafka fits, and a function written for its clients fits here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from serdes.errors import SerdeError

__all__ = [
    "STRATEGIES",
    "Context",
    "RecordContext",
    "SubjectNameStrategy",
    "record_name",
    "topic_name",
    "topic_record_name",
]


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
    """The plain context of a call without a Kafka client."""

    topic: str | None = None
    field: str = "value"


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


def _topic(context: RecordContext) -> str:
    if not context.topic:
        raise SerdeError("the subject name strategy needs a topic, and the call gave none")
    return context.topic


def _field(context: RecordContext) -> str:
    for field in ("key", "value"):
        if context.field == field:
            return field
    raise SerdeError(f"the field of a record is 'key' or 'value', not {context.field!r}")


def _record(record: str | None) -> str:
    if not record:
        raise SerdeError("the subject name strategy needs a named record as schema")
    return record
