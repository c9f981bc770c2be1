"""A hot key: one value that some clients set all the time, and others read back to back on every node.

A stale read shows at once, since each value is written only once. The value is the compatibility group of a subject
without versions, an object with a sequential model, as those of `objects.py`.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from faults.kind import Kind
from faults.model import Answer, Operation, Request

__all__ = ["KINDS", "OBJECTS", "READ", "readings", "without_unseen", "writings"]

_SUBJECT = ":.hot:h"
_PATH = f"/config/{quote(_SUBJECT, safe='')}"


def _set(_value: str, request: Request) -> tuple[str, Answer]:
    return request.content, (200, request.content)


def _read(value: str, _request: Request) -> tuple[str, Answer]:
    return value, (200, value) if value else (40408, None)


def _value(content: Any) -> Any:
    return content["compatibilityGroup"]


KINDS: Mapping[str, Kind] = {
    "hot_set": Kind(_set, lambda r: ("PUT", _PATH, {"compatibilityGroup": r.content}), _value),
    "hot_read": Kind(_read, lambda _: ("GET", _PATH, None), _value, writes=False),
}
OBJECTS: Mapping[str, Any] = {"hot": ""}
READ = Request("hot_read", _SUBJECT)


def without_unseen(operations: Sequence[Operation]) -> list[Operation]:
    """Return the operations without writes whose outcome is unknown and whose value no client read.

    If an order with such a write explains the answers, the same order without it does too. The search would try both,
    for each of them.
    """
    seen = {operation.answer[1] for operation in operations if operation.answer is not None}
    return [each for each in operations if each.answer is not None or each.request.content in seen]


def readings() -> Iterator[Request]:
    """Yield reads of the value."""
    return itertools.repeat(READ)


def writings(client: str) -> Iterator[Request]:
    """Yield writes of values that no other client writes."""
    return (Request("hot_set", _SUBJECT, f"{client}-{number}") for number in itertools.count())
