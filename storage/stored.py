"""The data of a State: schemas, the versions that use them, the ids of a context, and records that were set aside.

Rules of this file: immutable values only; `fold.py` changes them, `state.py` reads them. Values that exist once for
each record are named tuples, which are created in a quarter of the time of a frozen dataclass.
"""

import itertools
from dataclasses import dataclass, field
from typing import NamedTuple

from immutables import Map

from strata.storage.associations import Associations
from strata.storage.encryption_keys import EncryptionKeys
from strata.storage.listing import Listing
from strata.storage.log import START
from strata.storage.records import (
    DEFAULT_CONTEXT,
    AclKey,
    AclValue,
    ConfigValue,
    ExporterValue,
    ExportValue,
    Key,
    LoweredValue,
    SchemaId,
    SchemaValue,
    StandbyValue,
    Subject,
    Version,
)

__all__ = [
    "GLUE_VERSION",
    "REMOVALS",
    "ContextState",
    "FormatCount",
    "IdEntry",
    "SchemaVersion",
    "SetAside",
    "StateData",
    "StoredSchema",
    "SubjectVersion",
]

SubjectVersion = tuple[Subject, Version]


class FormatCount(NamedTuple):
    """The versions of one format: how many are live and soft-deleted, and how many became so since the replay began."""

    live: int = 0
    deleted: int = 0
    created: int = 0
    removed: int = 0


GLUE_VERSION = "glue.schema.version.id"
"""The property in the metadata of a version that has the UUID that it had in AWS Glue."""

REMOVALS = itertools.count(1)
"""The numbers for `State.removals`; each occurs once in a process."""


class StoredSchema(NamedTuple):
    """The schema that an id names in its context."""

    schema_id: SchemaId
    schema_type: str
    text: str
    fingerprint: bytes
    value: SchemaValue

    def __eq__(self, other: object) -> bool:
        """Compare by content, without the record from which it was read (`value`)."""
        return isinstance(other, StoredSchema) and self[:4] == other[:4]

    def __ne__(self, other: object) -> bool:
        """Negate `__eq__`; the tuple's own method would compare `value` too."""
        return not self == other

    def __hash__(self) -> int:
        """Hash by content."""
        return hash(self[:4])


class SchemaVersion(NamedTuple):
    """A version of a subject; `timestamp` is that of its record, in milliseconds since the epoch."""

    subject: Subject
    version: Version
    schema: StoredSchema
    timestamp: int
    deleted: bool


class IdEntry(NamedTuple):
    """A schema and the versions that use it, oldest record first."""

    schema: StoredSchema
    used_by: tuple[SubjectVersion, ...]


@dataclass(frozen=True, slots=True)
class ContextState:
    """The ids of one context; `high_water` is the highest id ever assigned, even after the context is gone.

    `ids` has the lowest id of each content; `shared` has all ids of a content that was imported under several.
    `recorded` is true if a CONTEXT record says that the context exists. `spelled` has the schema of each version for
    ids whose versions have texts that are equal only as JSON, as in topics of Karapace; the id names the oldest one's.
    """

    schemas: "Map[int, IdEntry]" = field(default_factory=Map)
    ids: "Map[tuple[str, bytes], SchemaId]" = field(default_factory=Map)
    high_water: int = 0
    recorded: bool = False
    shared: "Map[tuple[str, bytes], tuple[SchemaId, ...]]" = field(default_factory=Map)
    spelled: "Map[int, dict[SubjectVersion, StoredSchema]]" = field(default_factory=Map, compare=False)


@dataclass(frozen=True, slots=True)
class SetAside:
    """A record that the fold set aside, and why."""

    offset: int
    reason: str


@dataclass(frozen=True, slots=True)
class StateData:
    """The fields of a State, which `Fold` replaces; `State` adds what reads them.

    `records` counts the folded records. `removals` gets a new number with each replay, and with each batch that removes
    or replaces something: an answer from one State stays valid in a later State with the same number.

    `changed` is the offset of the last record besides NOOPs. After a replay it is the end, because compaction may have
    dropped records that changed something.

    The versions of a subject are in ascending order. `odd_keys` holds keys that the log spells differently from our
    encoder, such as with `"magic":0` of the first registries or another order of properties. `standbys` says which
    parts copy another registry, and `exporters` and `exports` what is copied to others and how far, by the name of the
    exporter. `lowered` says which contexts had their highest id lowered. `listing` has the names in `subjects` in
    order, and `formats` the number of versions by schema type. `of_glue` has the versions that came from AWS Glue, by
    the UUID that they had there.
    """

    offset: int = START
    subjects: "Map[Subject, dict[Version, SchemaVersion]]" = field(default_factory=Map)
    contexts: "Map[str, ContextState]" = field(default_factory=lambda: Map({DEFAULT_CONTEXT: ContextState()}))
    configs: "Map[Subject | None, ConfigValue]" = field(default_factory=Map)
    modes: "Map[Subject | None, str]" = field(default_factory=Map)
    referrers: "Map[SubjectVersion, frozenset[SubjectVersion]]" = field(default_factory=Map)
    of_glue: "Map[str, frozenset[SubjectVersion]]" = field(default_factory=Map)
    associations: Associations = field(default_factory=Associations)
    encryption_keys: EncryptionKeys = field(default_factory=EncryptionKeys)
    acls: "Map[AclKey, AclValue]" = field(default_factory=Map)
    standbys: "Map[str, StandbyValue]" = field(default_factory=Map)
    lowered: "Map[str, LoweredValue]" = field(default_factory=Map)
    exporters: "Map[str, ExporterValue]" = field(default_factory=Map)
    exports: "Map[str, ExportValue]" = field(default_factory=Map)
    odd_keys: "Map[Key, frozenset[bytes]]" = field(default_factory=Map, compare=False)
    records: int = field(default=0, compare=False)
    listing: Listing = field(default_factory=Listing, compare=False)
    removals: int = field(default_factory=REMOVALS.__next__, compare=False)
    set_aside: tuple[SetAside, ...] = field(default=(), compare=False)
    set_aside_count: int = field(default=0, compare=False)
    formats: "Map[str, FormatCount]" = field(default_factory=Map, compare=False)
    changed: int = field(default=START, compare=False)
