"""Where the reading of a topic begins.

Rules of this file: text in, a value out; no Kafka.
"""

from dataclasses import dataclass
from datetime import UTC, datetime

from strata.gitops.errors import GitopsError

__all__ = ["Start", "start_of"]


@dataclass(frozen=True, slots=True)
class Start:
    """Where reading begins: at the first record, at a time in milliseconds, or so many records before the end."""

    time_ms: int | None = None
    last: int | None = None


def start_of(text: str) -> Start:
    """Return what `--from` says.

    Raises:
        GitopsError: If it is neither `earliest` nor a time nor a negative number.
    """
    if text == "earliest":
        return Start()
    if text.startswith("-") and text[1:].isdecimal():
        return Start(last=int(text[1:]))
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise GitopsError(
            f"expected earliest, a time such as 2026-11-01T00:00, or -N for the last N records of each partition, "
            f"got {text!r}"
        ) from None
    when = when if when.tzinfo else when.replace(tzinfo=UTC)
    return Start(time_ms=int(when.timestamp() * 1000))
