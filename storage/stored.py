"""What a State holds: schemas, the versions that use them, the ids of a context, and what was set aside.

Rules of this file: immutable values only; how they change is `fold.py`, how they are asked is `state.py`. What there
is one of for each record is a named tuple, which is made in a quarter of the time of a frozen dataclass.
"""

import itertools
from dataclasses import dataclass, field
from typing import NamedTuple

from immutables import Map

from storage.fingerprint import guid_of
from storage.records import SchemaId, SchemaValue, Subject, Version

__all__ = ["REMOVALS", "ContextState", "IdEntry", "Place", "SchemaVersion", "SetAside", "StoredSchema"]

Place = tuple[Subject, Version]

REMOVALS = itertools.count(1)
"""The numbers of `State.removals`; each is given once in a process."""


class StoredSchema(NamedTuple):
    """What a schema id names within its context."""

    schema_id: SchemaId
    schema_type: str
    text: str
    fingerprint: bytes
    value: SchemaValue

    def __eq__(self, other: object) -> bool:
        """Compare by content: the record from which it was read (`value`) does not count."""
        return isinstance(other, StoredSchema) and self[:4] == other[:4]

    def __ne__(self, other: object) -> bool:
        """The opposite: a tuple brings its own, which would compare the record too."""
        return not self == other

    def __hash__(self) -> int:
        """Hash by content."""
        return hash(self[:4])

    @property
    def guid(self) -> str:
        """The identity of this content in every context."""
        return guid_of(self.fingerprint)


class SchemaVersion(NamedTuple):
    """A version of a subject: `timestamp` (milliseconds since the epoch) is that of its record."""

    subject: Subject
    version: Version
    schema: StoredSchema
    timestamp: int
    deleted: bool


class IdEntry(NamedTuple):
    """A schema and the versions that use it, in the order in which they came."""

    schema: StoredSchema
    used_by: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class ContextState:
    """The ids of one context; `high_water` is the highest ever given, also when the context is gone.

    `ids` has the lowest id of each content, `shared` all ids of those that imports brought under several. `recorded`:
    the log says that the context exists.
    """

    schemas: "Map[int, IdEntry]" = field(default_factory=Map)
    ids: "Map[tuple[str, bytes], SchemaId]" = field(default_factory=Map)
    high_water: int = 0
    recorded: bool = False
    shared: "Map[tuple[str, bytes], tuple[SchemaId, ...]]" = field(default_factory=Map)


@dataclass(frozen=True, slots=True)
class SetAside:
    """A record that did not become part of the State, and why."""

    offset: int
    reason: str
