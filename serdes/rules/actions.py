"""The actions after a rule: NONE does nothing, ERROR raises, DLQ sends the record to a dead-letter topic and raises.

Rules of this file: a dead letter has no value that the schema's rules would have encrypted.
"""

import json
import struct
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

from strata.serdes.errors import RuleError
from strata.serdes.rules.executors import RuleContext
from strata.serdes.serde_settings import SerdeSettings

__all__ = ["ACTIONS", "NAME_HEADER", "header"]

_PREFIX = "__rule."
NAME_HEADER = _PREFIX + "name"
"""The header of a dead letter with the name of the rule that failed."""


def header(headers: Any, name: str) -> str | None:
    """Return the last header with a name as text; None if it is missing or not text."""
    if not headers:
        return None
    named = None
    for key, value in headers.items() if isinstance(headers, Mapping) else headers:
        if key == name:
            named = value
    if isinstance(named, bytes | bytearray):
        return bytes(named).decode(errors="replace")
    return named if isinstance(named, str) else None


def _nothing(settings: SerdeSettings, context: RuleContext, value: object, error: Exception | None) -> None:
    pass


def _error(settings: SerdeSettings, context: RuleContext, value: object, error: Exception | None) -> None:  # noqa: ARG001
    raise error or RuleError("the rule's action is ERROR")


def _dead_letter(settings: SerdeSettings, context: RuleContext, value: object, error: Exception | None) -> None:  # noqa: ARG001
    """Send the original record to the dead-letter topic of the rule, the metadata or the settings, then raise."""
    topic, producer = context.parameter("dlq.topic") or settings.dlq_topic, settings.dlq_producer
    if not topic or producer is None:
        missing = "dlq.producer" if topic else "dlq.topic"
        raise RuleError(f"cannot send the record to the dead-letter topic: {missing} is not set") from error
    try:
        producer.produce(
            topic,
            key=_bytes(context.original_key, context.redact if context.is_key else None),
            value=_bytes(context.original_value, context.redact),
            headers=_headers(context, error),
        )
        if settings.dlq_auto_flush:
            producer.flush()
        elif hasattr(producer, "poll"):
            producer.poll(0)
    except Exception as failure:
        reason = f"{error or 'the rule failed'}; sending the record to the dead-letter topic {topic} failed, too"
        raise RuleError(reason) from failure
    raise error or RuleError("the rule's action is DLQ")


ACTIONS: Mapping[str, Callable[[SerdeSettings, RuleContext, object, Exception | None], None]] = {
    "NONE": _nothing,
    "ERROR": _error,
    "DLQ": _dead_letter,
}
"""The built-in actions by name."""


def _headers(context: RuleContext, error: Exception | None) -> list[tuple[str, bytes | None]]:
    came = context.headers or ()
    headers = [(name, _header(value)) for name, value in (came.items() if isinstance(came, Mapping) else came)]
    about = {
        "name": context.rule.name,
        "mode": context.mode,
        "subject": context.subject,
        "topic": context.topic,
        "exception": None if error is None else str(error),
    }
    headers += [(_PREFIX + name, _header(value)) for name, value in about.items() if name != "exception" or value]
    return headers


def _header(value: object) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    return bytes(value) if isinstance(value, bytearray | memoryview) else str(value).encode()


def _bytes(value: object, redact: Callable[[object], object] | None) -> bytes | None:
    """Return the bytes of an original key or value: as read, or as JSON; simple values as Kafka's serializers do."""
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    shown = value if redact is None else redact(value)
    match shown:
        case bool():
            pass
        case str() | UUID():
            return str(shown).encode()
        case int() if -(2**63) <= shown < 2**63:
            return struct.pack(">q", shown)
        case float():
            return struct.pack(">d", shown)
    return json.dumps(shown, default=_shown).encode()


def _shown(value: object) -> object:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).decode("latin-1")
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, datetime | date | time | Decimal | UUID):
        return str(value)
    raise TypeError(f"expected a JSON value, got {type(value).__name__}")
