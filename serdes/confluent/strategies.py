"""Subject name strategies by confluent-kafka's names.

Rules of this file: functions of context and record name; asking the registry belongs to the engine.
"""

import inspect
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

from strata.serdes.errors import did_you_mean
from strata.serdes.subject_name_strategies import RecordContext

__all__ = [
    "FALLBACK_TYPE",
    "KAFKA_CLUSTER_ID",
    "STRATEGY_TYPE_MAP",
    "SubjectNameStrategyType",
    "engine_strategy",
    "record_subject_name_strategy",
    "reference_subject_name_strategy",
    "topic_record_subject_name_strategy",
    "topic_subject_name_strategy",
]

KAFKA_CLUSTER_ID = "subject.name.strategy.kafka.cluster.id"
FALLBACK_TYPE = "subject.name.strategy.fallback.type"
_PLAIN_PARAMETERS = 2


class SubjectNameStrategyType(str, Enum):  # noqa: UP042 - its text is that of confluent-kafka
    """The strategies by name."""

    NONE = "NONE"
    TOPIC = "TOPIC"
    RECORD = "RECORD"
    TOPIC_RECORD = "TOPIC_RECORD"
    ASSOCIATED = "ASSOCIATED"


def _topic(ctx: RecordContext | None, name: str) -> str:
    if ctx is None or ctx.topic is None:
        raise ValueError(f"{name} needs a SerializationContext with a topic")
    return str(ctx.topic)


def _text(field: object) -> str:
    return str(getattr(field, "value", field))


def topic_subject_name_strategy(ctx: RecordContext | None, record_name: str | None) -> str | None:  # noqa: ARG001
    """Return `<topic>-key` or `<topic>-value`.

    Raises:
        ValueError: If there is no context.
    """
    topic = _topic(ctx, "topic_subject_name_strategy")
    return f"{topic}-{_text(ctx.field if ctx is not None else None)}"


def topic_record_subject_name_strategy(ctx: RecordContext | None, record_name: str | None) -> str | None:
    """Return `<topic>-<record>`; None without a record name.

    Raises:
        ValueError: If there is no context.
    """
    topic = _topic(ctx, "topic_record_subject_name_strategy")
    return None if record_name is None else f"{topic}-{record_name}"


def record_subject_name_strategy(ctx: RecordContext | None, record_name: str | None) -> str | None:  # noqa: ARG001
    """Return the full name of the record; None without one."""
    return record_name


def reference_subject_name_strategy(ctx: RecordContext | None, schema_ref: Any) -> str | None:  # noqa: ARG001
    """Return the name of a reference as its subject."""
    return None if schema_ref is None else str(schema_ref.name)


STRATEGY_TYPE_MAP = {
    SubjectNameStrategyType.TOPIC: topic_subject_name_strategy,
    SubjectNameStrategyType.RECORD: record_subject_name_strategy,
    SubjectNameStrategyType.TOPIC_RECORD: topic_record_subject_name_strategy,
}
"""The strategies that need no registry, by type."""


def engine_strategy(conf: Mapping[str, Any], client: object) -> dict[str, Any]:
    """Return the engine's settings for a subject name strategy.

    Args:
        conf: the settings of a serializer or deserializer.
        client: what a strategy of four parameters gets as its third.

    Raises:
        ValueError: If the strategy is not a function, or its type is unknown.
    """
    settings = conf.get("subject.name.strategy.conf")
    strategy = conf.get("subject.name.strategy")
    if strategy is not None:
        if not callable(strategy):
            raise ValueError("subject.name.strategy must be callable; for a name set subject.name.strategy.type")
        for kind, function in STRATEGY_TYPE_MAP.items():
            if strategy is function:
                return {"subject.name.strategy": kind.value}
        if _parameters(strategy) > _PLAIN_PARAMETERS:
            return {"subject.name.strategy": lambda ctx, record: strategy(ctx, record, client, settings)}
        return {"subject.name.strategy": strategy}
    kind = conf.get("subject.name.strategy.type") or SubjectNameStrategyType.ASSOCIATED
    name = _text(kind)
    allowed = [strategy_type.value for strategy_type in SubjectNameStrategyType]
    if name not in allowed:
        raise ValueError(
            f"subject.name.strategy.type: expected {', '.join(allowed)}, got {name!r}{did_you_mean(name, allowed)}"
        )
    if name == SubjectNameStrategyType.NONE.value:
        return {"subject.name.strategy": record_subject_name_strategy}
    known = (KAFKA_CLUSTER_ID, FALLBACK_TYPE)
    chosen = {key: _text(value) for key, value in (settings or {}).items() if key in known}
    return {"subject.name.strategy": name, "subject.name.strategy.conf": chosen}


def _parameters(function: Callable[..., object]) -> int:
    """Return how many arguments a function needs."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return _PLAIN_PARAMETERS
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(
        parameter.kind in positional and parameter.default is inspect.Parameter.empty for parameter in parameters
    )
