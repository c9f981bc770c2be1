"""State: what a log adds up to. `State.apply` is the only way to the next State; the rest are indexes and reads.

A State is an immutable value (persistent maps, docs/decisions/0002): whoever holds one reads a consistent snapshot
without a lock, on any thread, and a writer tries a decision's records on a draft that is just another State.

Laws, each a property test: live State = State after replay = State after replay of the compacted log; ids are never
given twice, not even after hard delete and compaction; versions grow.

Rules of this file: no I/O, no clock, no look inside a schema. A record that cannot be read, or that contradicts what
stands, is set aside with its offset and reason, and never stops the fold.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from immutables import Map

from storage.associations import Associations
from storage.fingerprint import fingerprint, guid_of
from storage.log import START, Entry, Record
from storage.records import (
    DEFAULT_CONTEXT,
    AssociationKey,
    AssociationValue,
    ClearSubjectKey,
    ConfigKey,
    ConfigValue,
    ContextKey,
    DeleteSubjectKey,
    HighWaterKey,
    Key,
    ModeKey,
    RecordError,
    SchemaId,
    SchemaKey,
    SchemaValue,
    Subject,
    Value,
    Version,
    context_of,
    decode_key,
    decode_value,
    qualified,
)

__all__ = ["ContextState", "SchemaVersion", "SetAside", "State", "StoredSchema"]

_MAX_SET_ASIDE = 1000


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
    used_by: "tuple[Place, ...]"


@dataclass(frozen=True, slots=True)
class ContextState:
    """The ids of one context; `high_water` is the highest ever given, also when the context is gone.

    `recorded`: the log says that the context exists.
    """

    schemas: "Map[int, IdEntry]" = field(default_factory=Map)
    ids: "Map[tuple[str, bytes], SchemaId]" = field(default_factory=Map)
    high_water: int = 0
    recorded: bool = False


@dataclass(frozen=True, slots=True)
class SetAside:
    """A record that did not become part of the State, and why."""

    offset: int
    reason: str


Place = tuple[Subject, Version]
_NO_VERSIONS: Mapping[Version, SchemaVersion] = {}
_K = TypeVar("_K")
_V = TypeVar("_V")
_NO_CONTEXT = ContextState()
_NO_CONFIG = ConfigValue()


@dataclass(frozen=True, slots=True)
class State:
    """The fold of a log up to `offset`; `removals` counts the changes that took back something told before."""

    offset: int = START
    subjects: "Map[Subject, Mapping[Version, SchemaVersion]]" = field(default_factory=Map)
    contexts: "Map[str, ContextState]" = field(default_factory=lambda: Map({DEFAULT_CONTEXT: ContextState()}))
    configs: "Map[Subject | None, ConfigValue]" = field(default_factory=Map)
    modes: "Map[Subject | None, str]" = field(default_factory=Map)
    referrers: "Map[Place, frozenset[Place]]" = field(default_factory=Map)
    associations: Associations = field(default_factory=Associations)
    removals: int = field(default=0, compare=False)
    set_aside: tuple[SetAside, ...] = field(default=(), compare=False)
    set_aside_count: int = field(default=0, compare=False)

    # --- the fold

    def apply(self, entry: Entry) -> "State":
        """Return the State after one more entry; an entry at or before `offset` changes nothing."""
        if entry.offset <= self.offset:
            return self
        try:
            key = decode_key(entry.key)
            after = self._fold(key, decode_value(key, entry.value), entry)
        except RecordError as error:
            after = self._set_aside(entry.offset, str(error))
        return replace(after, offset=entry.offset)

    def apply_all(self, entries: Iterable[Entry]) -> "State":
        """Return the State after some entries, in order."""
        state = self
        for entry in entries:
            state = state.apply(entry)
        return state

    def _fold(self, key: Key, value: Value, entry: Entry) -> "State":
        match key, value:
            case SchemaKey(subject, version), None:
                return self._without(subject, version)
            case SchemaKey(), SchemaValue():
                return self._with(value, entry.timestamp)
            case DeleteSubjectKey(subject), int():
                return self._soft_deleted(subject, value)
            case ClearSubjectKey(subject), _:
                return self._cleared(subject)
            case ConfigKey(subject), ConfigValue() | None:
                return self._configured(subject, value)
            case ModeKey(subject), str():
                return replace(self, modes=self.modes.set(subject, value))
            case ModeKey(subject), None:
                return replace(self, modes=_dropped(self.modes, subject))
            case ContextKey(context), _:
                return self._with_context(context, replace(self.context(context), recorded=value is not None))
            case HighWaterKey(context), int():
                return self._marked(context, value)
            case AssociationKey(), AssociationValue() | None:
                return replace(self, associations=self.associations.after(key, value, entry.timestamp))
            case _:  # NOOP, and tombstones of records that stand for a change already made
                return self

    def _with(self, value: SchemaValue, timestamp: int) -> "State":
        schema = _stored(value)
        context_name = context_of(value.subject)
        held = self.context(context_name).schemas.get(schema.schema_id)
        place = (value.subject, value.version)
        if held and held.schema != schema and held.used_by != (place,):
            raise RecordError(
                f"id {schema.schema_id} of context {context_name} already names another schema than that of "
                f"subject {value.subject!r} version {value.version}"
            )
        before = self._unlinked(value.subject, value.version)
        held = before.context(context_name).schemas.get(schema.schema_id)
        if held:
            schema = held.schema  # one copy of the text, however many versions use it
        version = SchemaVersion(value.subject, value.version, schema, timestamp, value.deleted)
        versions = {**before.subjects.get(value.subject, _NO_VERSIONS), value.version: version}
        linked = before._linked(context_name, schema, place)
        return replace(
            linked,
            subjects=linked.subjects.set(value.subject, versions),
            referrers=_referring(before.referrers, value, place),
            removals=self.removals + (before is not self),
        )

    def _without(self, subject: Subject, version: Version) -> "State":
        after = replace(self._unlinked(subject, version), removals=self.removals + 1)
        rest = {v: entry for v, entry in self.subjects.get(subject, _NO_VERSIONS).items() if v != version}
        if rest:
            return replace(after, subjects=after.subjects.set(subject, rest))
        return replace(after, subjects=_dropped(after.subjects, subject))

    def _soft_deleted(self, subject: Subject, up_to: int) -> "State":
        versions = self.subjects.get(subject)
        if not versions:
            return self
        marked = {v: replace(entry, deleted=True) if v <= up_to else entry for v, entry in versions.items()}
        return replace(self, subjects=self.subjects.set(subject, marked), removals=self.removals + 1)

    def _cleared(self, scope: Subject | None) -> "State":
        state = self
        for subject, versions in self.subjects.items():
            if scope in (None, subject, f":{context_of(subject)}:"):
                for version, entry in versions.items():
                    state = state._without(subject, version) if entry.deleted else state
        return state

    def _linked(self, name: str, schema: StoredSchema, place: tuple[Subject, Version]) -> "State":
        context = self.context(name)
        held = context.schemas.get(schema.schema_id)
        used_by = (*held.used_by, place) if held else (place,)
        return self._with_context(
            name,
            replace(
                context,
                schemas=context.schemas.set(schema.schema_id, IdEntry(schema, used_by)),
                ids=context.ids if held else _claimed(context, schema),
                high_water=max(context.high_water, schema.schema_id),
            ),
        )

    def _unlinked(self, subject: Subject, version: Version) -> "State":
        """Take a version's use off its id; an id that nobody uses any more is resolvable no longer."""
        old = self.subjects.get(subject, _NO_VERSIONS).get(version)
        if old is None:
            return self
        if old.schema.value.references:
            referrers = _referring_no_more(self.referrers, old.schema.value, (subject, version))
            return replace(self, referrers=referrers)._off_its_id(old)
        return self._off_its_id(old)

    def _off_its_id(self, old: SchemaVersion) -> "State":
        subject, version = old.subject, old.version
        name = context_of(subject)
        context = self.context(name)
        schema_id = old.schema.schema_id
        left = tuple(place for place in context.schemas[schema_id].used_by if place != (subject, version))
        if left:
            schemas = context.schemas.set(schema_id, IdEntry(old.schema, left))
            return self._with_context(name, replace(context, schemas=schemas))
        ids = context.ids
        if ids.get(_identity(old.schema)) == schema_id:
            ids = ids.delete(_identity(old.schema))
        return self._with_context(name, replace(context, schemas=context.schemas.delete(schema_id), ids=ids))

    def _marked(self, name: str, high_water: int) -> "State":
        context = self.context(name)
        return self._with_context(name, replace(context, high_water=max(context.high_water, high_water)))

    def _configured(self, subject: Subject | None, value: ConfigValue | None) -> "State":
        """A changed alias takes back what was told under the name."""
        before = self.configs.get(subject, _NO_CONFIG).get("alias")
        configs = _dropped(self.configs, subject) if value is None else self.configs.set(subject, value)
        changed = before != (value or _NO_CONFIG).get("alias")
        return replace(self, configs=configs, removals=self.removals + changed)

    def _with_context(self, name: str, context: ContextState) -> "State":
        if context == _NO_CONTEXT and name != DEFAULT_CONTEXT:
            return replace(self, contexts=_dropped(self.contexts, name))
        return replace(self, contexts=self.contexts.set(name, context))

    def _set_aside(self, offset: int, reason: str) -> "State":
        kept = (*self.set_aside, SetAside(offset, reason))[-_MAX_SET_ASIDE:]
        return replace(self, set_aside=kept, set_aside_count=self.set_aside_count + 1)

    def drafted(self, records: Iterable[Record], timestamp: int) -> "State":
        """Return the State that some records would make, were they appended next."""
        state = self
        for record in records:
            state = state.apply(Entry(state.offset + 1, timestamp, record.key, record.value))
        return state

    # --- reads

    def context(self, name: str) -> ContextState:
        """Return the ids of a context, an empty one when it does not exist."""
        return self.contexts.get(name, _NO_CONTEXT)

    def context_names(self) -> list[str]:
        """Return the contexts that exist: the default one, and those with a record or a schema; sorted."""
        return sorted(
            name
            for name, context in self.contexts.items()
            if name == DEFAULT_CONTEXT or context.recorded or context.schemas
        )

    def versions(self, subject: str, *, include_deleted: bool) -> list[SchemaVersion]:
        """Return the versions of a subject, oldest first."""
        entries = self.subjects.get(Subject(subject), _NO_VERSIONS)
        return [entries[v] for v in sorted(entries) if include_deleted or not entries[v].deleted]

    def version(self, subject: str, version: int) -> SchemaVersion | None:
        """Return one version of a subject, soft-deleted or not."""
        return self.subjects.get(Subject(subject), _NO_VERSIONS).get(Version(version))

    def latest(self, subject: str, *, include_deleted: bool = False) -> SchemaVersion | None:
        """Return the highest version of a subject."""
        versions = self.versions(subject, include_deleted=include_deleted)
        return versions[-1] if versions else None

    def next_version(self, subject: str) -> Version:
        """Return the version number that the subject's next schema gets."""
        return Version(max(self.subjects.get(Subject(subject), _NO_VERSIONS), default=0) + 1)

    def schema(self, context: str, schema_id: int) -> IdEntry | None:
        """Return what an id names in a context."""
        return self.context(context).schemas.get(schema_id)

    def id_of(self, context: str, schema_type: str, digest: bytes) -> SchemaId | None:
        """Return the id under which a context holds a schema of this type and fingerprint."""
        return self.context(context).ids.get((schema_type, digest))

    def referred_by(self, subject: str, version: int) -> list[SchemaVersion]:
        """Return the versions that refer to a version, soft-deleted ones included, by subject and version."""
        places = self.referrers.get((Subject(subject), Version(version)), frozenset())
        return [self.subjects[name][number] for name, number in sorted(places)]

    def subject_names(self) -> Iterator[Subject]:
        """Return the names of all subjects, in no order."""
        return iter(self.subjects)


def _stored(value: SchemaValue) -> StoredSchema:
    references = [(r.name, r.subject, r.version) for r in value.references]
    try:
        digest = fingerprint(value.text, references, value.metadata, value.rule_set)
    except (AttributeError, TypeError, ValueError) as error:
        raise RecordError(f"the schema's identity cannot be computed: {error}") from None
    return StoredSchema(value.schema_id, value.schema_type, value.text, digest, value)


def _referring(
    referrers: "Map[Place, frozenset[Place]]", value: SchemaValue, place: Place
) -> "Map[Place, frozenset[Place]]":
    for target in _targets(value):
        referrers = referrers.set(target, referrers.get(target, frozenset()) | {place})
    return referrers


def _referring_no_more(
    referrers: "Map[Place, frozenset[Place]]", value: SchemaValue, place: Place
) -> "Map[Place, frozenset[Place]]":
    for target in _targets(value):
        left = referrers.get(target, frozenset()) - {place}
        referrers = referrers.set(target, left) if left else _dropped(referrers, target)
    return referrers


def _targets(value: SchemaValue) -> Iterator[Place]:
    """The versions that a schema refers to; a plain subject is one of the schema's own context."""
    for reference in value.references:
        yield Subject(qualified(reference.subject, context_of(value.subject))), Version(reference.version)


def _identity(schema: StoredSchema) -> tuple[str, bytes]:
    return (schema.schema_type, schema.fingerprint)


def _claimed(context: ContextState, schema: StoredSchema) -> "Map[tuple[str, bytes], SchemaId]":
    """Bind an identity to an id; the first id keeps it when a log holds one content under two ids."""
    identity = _identity(schema)
    return context.ids if identity in context.ids else context.ids.set(identity, schema.schema_id)


def _dropped(mapping: "Map[_K, _V]", key: _K) -> "Map[_K, _V]":
    return mapping.delete(key) if key in mapping else mapping
