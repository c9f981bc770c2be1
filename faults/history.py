"""The requests and answers of a run's clients: one JSON object per line."""

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from faults.model import Answer, Operation, Request

__all__ = ["from_line", "load", "save", "to_line"]


def to_line(operation: Operation) -> str:
    """Return an operation as one line of JSON."""
    return json.dumps(asdict(operation), separators=(",", ":"))


def from_line(line: str) -> Operation:
    """Read an operation from its line."""
    fields = json.loads(line)
    return Operation(**{**fields, "request": Request(**fields["request"]), "answer": _answer(fields["answer"])})


def save(operations: Iterable[Operation], path: Path) -> None:
    """Write a history to a file."""
    path.write_text("".join(f"{to_line(operation)}\n" for operation in operations))


def load(path: Path) -> list[Operation]:
    """Read a history from a file."""
    return [from_line(line) for line in path.read_text().splitlines()]


def _answer(value: Any) -> Answer | None:
    return None if value is None else (value[0], _frozen(value[1]))


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value
