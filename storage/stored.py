"""What a State holds: schemas, the versions that use them, the ids of a context, and what was set aside.

Rules of this file: immutable values only; how they change is `fold.py`, how they are asked is `state.py`.
"""

from dataclasses import dataclass, field

from immutables import Map

from storage.fingerprint import guid_of
from storage.records import SchemaId, SchemaValue, Subject, Version

__all__ = ["ContextState", "IdEntry", "Place", "SchemaVersion", "SetAside", "StoredSchema"]

Place = tuple[Subject, Version]


@dataclass(frozen=True, slots=True)
class StoredSchema:
    """What a schema id names within its context."""

    schema_id: SchemaId
    schema_type: str
    text: str
    fingerprint: bytes
    value: SchemaValue = field(compare=False, repr=False)

    @property
    def guid(self) -> str:
        """The identity of this content in every context."""
        return guid_of(self.fingerprint)


@dataclass(frozen=True, slots=True)
class SchemaVersion:
    """A version of a subject: `timestamp` (milliseconds since the epoch) is that of its record."""

    subject: Subject
    version: Version
    schema: StoredSchema
    timestamp: int
    deleted: bool


@dataclass(frozen=True, slots=True)
class IdEntry:
    """A schema and the versions that use it, in the order in which they came."""

    schema: StoredSchema
    used_by: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class ContextState:
    """The ids of one context; `high_water` is the highest ever given."""

    schemas: "Map[int, IdEntry]" = field(default_factory=Map)
    ids: "Map[tuple[str, bytes], SchemaId]" = field(default_factory=Map)
    high_water: int = 0


@dataclass(frozen=True, slots=True)
class SetAside:
    """A record that did not become part of the State, and why."""

    offset: int
    reason: str
