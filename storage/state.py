"""State: the fold of a log. Only `State.apply` and `apply_all` make the next State; the rest are indexes and reads.

A State is an immutable value (persistent maps, docs/decisions/0002). A State is a consistent snapshot that any thread
reads without a lock. A writer tests a decision's records on a draft, which is just another State.

`fold.py` defines what an entry changes. Property tests check these laws: live State = State after replay = State after
replay of the compacted log; an id is never assigned twice, not even after hard delete and compaction; versions grow.

Rules of this file: no I/O, no clock, no look inside a schema (only if an id has two texts does the fold compare them as
JSON). A record that cannot be read, or that contradicts the
State, is set aside with its offset and reason, and never stops the fold.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from strata.storage.fold import Fold
from strata.storage.log import Entry, Record
from strata.storage.record_json import decode_key
from strata.storage.records import DEFAULT_CONTEXT, SchemaId, Subject, Version
from strata.storage.stored import ContextState, FormatCount, IdEntry, SchemaVersion, SetAside, StateData, StoredSchema

__all__ = ["ContextState", "FormatCount", "IdEntry", "SchemaVersion", "SetAside", "State", "StoredSchema"]

_NO_VERSIONS: dict[Version, SchemaVersion] = {}
_NO_CONTEXT = ContextState()


@dataclass(frozen=True, slots=True)
class State(StateData):
    """The fold of a log up to `offset`; see `StateData` for its fields."""

    # --- the fold

    def apply(self, entry: Entry) -> "State":
        """Return the State after one more entry; an entry at or before `offset` changes nothing."""
        return self.apply_all((entry,))

    def apply_all(self, entries: Iterable[Entry]) -> "State":
        """Return the State after some entries, in order."""
        fold = Fold(self)
        for entry in entries:
            fold.apply(entry)
        return fold.finish()

    def drafted(self, records: Iterable[Record], timestamp: int) -> "State":
        """Return the State after some records, as if they were appended next.

        Args:
            records: The records, in order.
            timestamp: Their time, in milliseconds since the epoch.
        """
        return self.apply_all(
            Entry(offset, record.time(timestamp), record.key, record.value)
            for offset, record in enumerate(records, self.offset + 1)
        )

    def tombstones_besides(self, records: Iterable[Record]) -> list[Record]:
        """Return the further tombstones that the tombstones among some records need.

        Compaction compares keys as bytes: a record under another spelling of a key would come back once compaction has
        dropped our own tombstone.

        Raises:
            RecordError: A record has no valid key.
        """
        if not self.odd_keys:
            return []
        # The last record of a key counts: a mode that is removed with its subject's last version may be set again.
        last = {decode_key(record.key): record.value for record in records}
        gone = [key for key, value in last.items() if value is None]
        return [Record(spelling, None) for key in gone for spelling in sorted(self.odd_keys.get(key, ()))]

    # --- reads

    def context(self, name: str) -> ContextState:
        """Return a context, or an empty one if it does not exist."""
        return self.contexts.get(name, _NO_CONTEXT)

    def context_names(self) -> list[str]:
        """Return the names of the contexts, sorted: the default one, and those with a CONTEXT record or a schema."""
        return sorted(
            name
            for name, context in self.contexts.items()
            if name == DEFAULT_CONTEXT or context.recorded or context.schemas
        )

    def versions(self, subject: str, *, include_deleted: bool) -> list[SchemaVersion]:
        """Return the versions of a subject, oldest first."""
        entries = self.subjects.get(Subject(subject), _NO_VERSIONS).values()
        return [entry for entry in entries if include_deleted or not entry.deleted]

    def version(self, subject: str, version: int) -> SchemaVersion | None:
        """Return one version of a subject, soft-deleted or not, or None if there is no such version."""
        return self.subjects.get(Subject(subject), _NO_VERSIONS).get(Version(version))

    def latest(self, subject: str, *, include_deleted: bool = False) -> SchemaVersion | None:
        """Return the highest version of a subject, or None if it has no version."""
        for entry in reversed(self.subjects.get(Subject(subject), _NO_VERSIONS).values()):
            if include_deleted or not entry.deleted:
                return entry
        return None

    def next_version(self, subject: str) -> Version:
        """Return the version number for the subject's next schema."""
        return Version(next(reversed(self.subjects.get(Subject(subject), _NO_VERSIONS)), 0) + 1)

    def next_id(self, context: str) -> SchemaId:
        """Return the id for the context's next new schema: one above the highest that it has ever assigned."""
        return SchemaId(self.context(context).high_water + 1)

    def schema(self, context: str, schema_id: int) -> IdEntry | None:
        """Return the schema of an id in a context and the versions that use it, or None for an unknown id."""
        return self.context(context).schemas.get(schema_id)

    def id_of(self, context: str, schema_type: str, digest: bytes) -> SchemaId | None:
        """Return the id of the schema with this type and fingerprint in a context, or None if the context lacks it."""
        return self.context(context).ids.get((schema_type, digest))

    def referred_by(self, subject: str, version: int) -> list[SchemaVersion]:
        """Return the versions that refer to a version, soft-deleted ones included, sorted by subject and version."""
        places = self.referrers.get((Subject(subject), Version(version)), frozenset())
        return [self.subjects[name][number] for name, number in sorted(places)]

    def subject_names(self) -> Iterator[Subject]:
        """Return an iterator over the names of all subjects, unordered."""
        return iter(self.subjects)
