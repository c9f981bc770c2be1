"""What a replay has found so far: counts, and where each kind of finding was first seen.

Rules of this file: it counts; it reads nothing.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final, NamedTuple

__all__ = ["Finding", "Key", "Kind", "Outcome", "Place"]

_FIRST: Final = 5
_MOST_FINDINGS: Final = 10_000
"""Different findings; further ones are counted under one that has no path."""

Kind = str
UNREADABLE: Final[Kind] = "unreadable"
CHANGED: Final[Kind] = "changed"
NOT_WRITABLE: Final[Kind] = "not writable"
UNKNOWN_SCHEMA: Final[Kind] = "unknown schema"


class Place(NamedTuple):
    """Where a record is."""

    partition: int
    offset: int


class Key(NamedTuple):
    """What findings are grouped by."""

    kind: Kind
    path: str
    reason: str
    schema: str


@dataclass(slots=True)
class Finding:
    """A group of records.

    Attributes:
        count: how many there are.
        first: where the first of them are.
        example: what was written and what is read, for the first one whose value changes.
    """

    count: int = 0
    first: list[Place] = field(default_factory=list)
    example: tuple[str, str] | None = None


@dataclass(slots=True)
class Outcome:
    """The counts of a replay.

    Attributes:
        records: the records that were read, those without value included.
        empty: the records without value.
        schemas: the records of each writer schema, by its name in frames.
        findings: what was found.
        planned: how many offsets there are to read; some may hold no record.
        passed: how many of these have been passed.
    """

    records: int = 0
    empty: int = 0
    planned: int = 0
    passed: int = 0
    schemas: Counter[str] = field(default_factory=Counter)
    findings: dict[Key, Finding] = field(default_factory=dict)

    def add(self, key: Key, place: Place, example: tuple[str, str] | None = None) -> None:
        """Count a record."""
        if key not in self.findings and len(self.findings) >= _MOST_FINDINGS:
            key = Key(key.kind, "", "further reasons", "")
        finding = self.findings.setdefault(key, Finding())
        finding.count += 1
        if len(finding.first) < _FIRST:
            finding.first.append(place)
        if finding.example is None:
            finding.example = example

    def records_with(self, kind: Kind) -> int:
        """Return how often something of a kind was found; a record with two changed values counts twice."""
        return sum(finding.count for key, finding in self.findings.items() if key.kind == kind)
