"""Differences as the rules note them: a kind, and the steps that lead to it from the schema being compared."""

from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from compat.json_schema.model import Node

__all__ = ["Comparer", "Difference", "Findings", "TooComplexError"]


class TooComplexError(Exception):
    """Comparing takes more work than is allowed."""


class Difference(NamedTuple):
    """One difference, compatible or not."""

    kind: str
    steps: tuple[str, ...] = ()


@dataclass(slots=True)
class Findings:
    """What was found of a pair, and whether the reader accepts all that the writer writes."""

    found: list[Difference] = field(default_factory=list)
    compatible: bool = True


class Comparer(Protocol):
    """What the rules of one kind of schema need of the whole."""

    def note(self, into: Findings, kind: str, *steps: str) -> None:
        """Note a difference."""

    def compare(self, reader: Node | None, writer: Node | None) -> Findings:
        """Compare two schemas."""

    def descend(self, into: Findings, reader: Node | None, writer: Node | None, *steps: str) -> bool:
        """Compare two schemas further down, and keep what is found; true if they are compatible."""

    def take(self, into: Findings, findings: Findings, *steps: str) -> None:
        """Keep what was found further down."""

    def charge(self, amount: int = 1) -> None:
        """Count work, and give up when it is too much."""

    def matches(self, pattern: str, name: str) -> bool:
        """Whether a pattern is found in a property name."""
