"""The fold: apply entries to a State, one after the other, and return the next State.

A Fold is mutable and lives as long as one `State.apply_all`. It copies each part that it touches once, however many
entries touch it, so a replay costs microseconds per record and a State stays a value. Applying entries one by one or
all at once gives the same State; property tests check this law.

A record that cannot be read, or that contradicts the State, is set aside with its offset and reason before any of it is
applied.
"""

import json
import struct
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from strata.storage import records
from strata.storage.listing import Listing, VersionCount
from strata.storage.log import Entry
from strata.storage.record_json import RecordError, decode_key, decode_value, encode, is_tombstone, plain_schema
from strata.storage.records import (
    DEFAULT_CONTEXT,
    SchemaId,
    SchemaValue,
    Subject,
    Version,
    context_of,
    fingerprint,
    qualified,
)
from strata.storage.stored import (
    GLUE_VERSION,
    REMOVALS,
    ContextState,
    FormatCount,
    IdEntry,
    SchemaVersion,
    SetAside,
    StateData,
    StoredSchema,
    SubjectVersion,
)

if TYPE_CHECKING:
    from immutables import Map

__all__ = ["Fold"]

_S = TypeVar("_S", bound=StateData)
_K = TypeVar("_K")
_V = TypeVar("_V")

_MAX_SET_ASIDE = 1000
_NO_VERSIONS: dict[Version, SchemaVersion] = {}
_NO_CONTEXT = ContextState()
_NO_CONFIG = records.ConfigValue()
_NO_COUNT = FormatCount()
_EVER = 2  # where `FormatCount` begins to count what happened, in the order of what is
_DELETED = attrgetter("deleted")
# The parts of a State that are maps of values as they are in the log, with what in the key they are found by.
_WHOLE: Mapping[type, tuple[str, Callable[[object], object]]] = {
    records.AclKey: ("acls", lambda key: key),
    records.StandbyKey: ("standbys", attrgetter("scope")),
    records.LoweredKey: ("lowered", attrgetter("context")),
    records.ExporterKey: ("exporters", attrgetter("name")),
    records.ExportKey: ("exports", attrgetter("name")),
}
# A named tuple's own constructor is a Python function, which costs as much as the rest of making one.
_new = tuple.__new__
# Most subjects have few versions, so equal counts share one object.
_COUNTS = {(live, every): VersionCount(live, every) for every in range(17) for live in range(every + 1)}


class _ContextIds:
    """The ids of one context under construction: what each id names, and which versions use it."""

    def __init__(self, base: ContextState) -> None:
        self.schemas, self._ids, self._shared = base.schemas.mutate(), base.ids.mutate(), base.shared.mutate()
        self._high_water, self.recorded = base.high_water, base.recorded
        # The users of ids that several versions use, or that lost one; `schemas` has those of the other ids.
        self._users: dict[int, dict[SubjectVersion, None]] = {}
        self._base_spelled = base.spelled
        self._spelled: dict[int, dict[SubjectVersion, StoredSchema]] = {}

    def users(self, entry: IdEntry) -> dict[SubjectVersion, None]:
        """Return the mutable collection of the versions that use an id, oldest record first."""
        schema_id = entry.schema.schema_id
        users = self._users.get(schema_id)
        if users is None:
            users = self._users[schema_id] = dict.fromkeys(entry.used_by)
        return users

    def link(self, held: IdEntry, schema: StoredSchema, pair: SubjectVersion) -> StoredSchema:
        """Record that one more version uses an id, and return the schema of that version."""
        self.users(held)[pair] = None
        if schema is held.schema and not self._has_spellings():
            return held.schema
        spelled = self._spellings(held.schema.schema_id)
        if schema == held.schema:
            schema = held.schema
        else:
            if not spelled:
                spelled.update(dict.fromkeys(self.users(held), held.schema))
            self._identify(schema)
        if spelled:
            spelled[pair] = schema
        return schema

    def _has_spellings(self) -> bool:
        return bool(self._spelled or self._base_spelled)

    def _spellings(self, schema_id: SchemaId) -> dict[SubjectVersion, StoredSchema]:
        spelled = self._spelled.get(schema_id)
        if spelled is None:
            spelled = self._spelled[schema_id] = dict(self._base_spelled.get(schema_id, ()))
        return spelled

    def add(self, schema: StoredSchema, pair: SubjectVersion) -> StoredSchema:
        """Record that a version uses an id that named nothing, and return the schema."""
        schema_id = schema.schema_id
        self.schemas[schema_id] = _new(IdEntry, (schema, (pair,)))
        self._identify(schema)
        if schema_id > self._high_water:
            self._high_water = schema_id
        return schema

    def _identify(self, schema: StoredSchema) -> None:
        schema_id, schema_type, _, digest, _ = schema
        identity = (schema_type, digest)
        known = self._ids.get(identity)
        if known is None:
            self._ids[identity] = schema_id
        elif known != schema_id:
            self._name(identity, *{*self._shared.get(identity, (known,)), schema_id})

    def unlink(self, schema: StoredSchema, pair: SubjectVersion) -> None:
        """Record that a version no longer uses an id."""
        schema_id = schema.schema_id
        users = self.users(self.schemas[schema_id])
        users.pop(pair, None)
        spelled = self._spellings(schema_id) if self._has_spellings() else {}
        spelled.pop(pair, None)
        if spelled:
            self.schemas[schema_id] = self.schemas[schema_id]._replace(schema=spelled[next(iter(users))])
        if not users:
            del self._users[schema_id], self.schemas[schema_id]
        if not users or (spelled and schema not in spelled.values()):
            self._forget(schema)

    def _forget(self, schema: StoredSchema) -> None:
        identity = (schema.schema_type, schema.fingerprint)
        self._name(identity, *(other for other in self._shared.get(identity, ()) if other != schema.schema_id))

    def _name(self, identity: tuple[str, bytes], *ids: SchemaId) -> None:
        """Record the ids of a content; the lowest one counts, in whatever order the records are read."""
        self._shared.pop(identity, None)
        if not ids:
            self._ids.pop(identity, None)
            return
        self._ids[identity] = min(ids)
        if len(ids) > 1:
            self._shared[identity] = tuple(sorted(ids))

    def mark(self, schema_id: int) -> None:
        """Record that an id has been assigned."""
        if schema_id > self._high_water:
            self._high_water = schema_id

    def lower(self, schema_id: int) -> None:
        """Record that ids above one may be assigned again, except those that are in use."""
        schemas = self.schemas.finish()
        self.schemas = schemas.mutate()
        self._high_water = max(schema_id, max(schemas, default=0))

    def finish(self) -> ContextState:
        """Return the ids as a value."""
        for schema_id, users in self._users.items():
            self.schemas[schema_id] = IdEntry(self.schemas[schema_id].schema, tuple(users))
        return ContextState(
            self.schemas.finish(),
            self._ids.finish(),
            self._high_water,
            self.recorded,
            self._shared.finish(),
            self._finished_spellings(),
        )

    def _finished_spellings(self) -> "Map[int, dict[SubjectVersion, StoredSchema]]":
        spelled = self._base_spelled.mutate()
        for schema_id, spellings in self._spelled.items():
            if spellings:
                spelled[schema_id] = spellings
            else:
                spelled.pop(schema_id, None)
        return spelled.finish()


class Fold(Generic[_S]):
    """A State under construction."""

    def __init__(self, base: _S) -> None:
        self._base = base
        self._offset, self._records, self._has_removals = base.offset, base.records, False
        self._changed = base.changed
        self._set_aside_count = base.set_aside_count
        self._set_aside = deque(base.set_aside, _MAX_SET_ASIDE)
        self._configs, self._modes = base.configs.mutate(), base.modes.mutate()
        self._associations, self._keys = base.associations, base.encryption_keys
        self._odd_keys = base.odd_keys
        self._whole: dict[str, Map[Any, Any]] = {name: getattr(base, name) for name, _ in _WHOLE.values()}
        # What was added to the counts of each format, in the order of `FormatCount`.
        self._formats: dict[str, list[int]] = {}
        # Copies of the parts of the base that entries touch.
        self._subjects: dict[Subject, dict[Version, SchemaVersion]] = {}
        self._out_of_order: set[Subject] = set()
        self._contexts: dict[str, _ContextIds] = {}
        self._referrers: dict[SubjectVersion, set[SubjectVersion]] = {}
        self._of_glue: dict[str, set[SubjectVersion]] = {}

    def apply(self, entry: Entry) -> str | None:
        """Apply one entry; return the reason if it was set aside, otherwise None.

        An entry at or before the current offset changes nothing.
        """
        offset, timestamp, key_bytes, value_bytes = entry
        if offset <= self._offset:
            return None
        self._offset = offset
        self._records += 1
        try:
            plain = plain_schema(key_bytes, value_bytes)
            if plain is not None:
                self._put(plain, timestamp)
                self._changed = offset
            else:
                key = decode_key(key_bytes)
                if not isinstance(key, records.NoopKey):
                    self._changed = offset
                self._change(key, decode_value(key, value_bytes), timestamp)
                if key_bytes is not None and key_bytes != encode(key).key:
                    self._note_spelling(key, key_bytes, gone=is_tombstone(value_bytes))
        except RecordError as error:
            self._set_aside.append(SetAside(offset, str(error)))
            self._set_aside_count += 1
            self._changed = offset
            return str(error)
        return None

    def finish(self) -> _S:
        """Return the new State; the Fold cannot be used afterwards."""
        base = self._base
        if self._offset == base.offset:
            return base
        return replace(
            base,
            offset=self._offset,
            changed=self._changed if base.records else self._offset,
            records=self._records,
            subjects=_updated(base.subjects, self._finished_versions()),
            listing=self._finished_listing(),
            contexts=_updated(base.contexts, self._finished_contexts()),
            configs=self._configs.finish(),
            modes=self._modes.finish(),
            referrers=_with_sets(base.referrers, self._referrers),
            of_glue=_with_sets(base.of_glue, self._of_glue),
            associations=self._associations,
            encryption_keys=self._keys,
            **self._whole,
            odd_keys=self._odd_keys,
            removals=next(REMOVALS) if self._has_removals else base.removals,
            set_aside=tuple(self._set_aside),
            set_aside_count=self._set_aside_count,
            formats=_updated(base.formats, self._finished_formats()),
        )

    def _change(self, key: records.Key, value: records.Value, timestamp: int) -> None:
        match key, value:
            case records.SchemaKey(), SchemaValue():
                self._put(value, timestamp)
            case records.SchemaKey(subject, version), None:
                self._drop(subject, version)
            case records.DeleteSubjectKey(subject), int():
                self._soft_delete(subject, value)
            case records.ClearSubjectKey(subject), _:
                self._clear(subject)
            case records.ConfigKey(subject), records.ConfigValue() | None:
                self._configure(subject, value)
            case records.ModeKey(subject), str() | None:
                self._set_mode(subject, value)
            case records.ContextKey(context), _:
                self._ids(context).recorded = value is not None
            case records.AssociationKey(), records.AssociationValue() | None:
                self._associations = self._associations.after(key, value, timestamp)
            case records.KekKey() | records.DekKey(), records.KekValue() | records.DekValue() | None:
                self._keys = self._keys.after(key, value)
            case _ if type(key) in _WHOLE:
                self._note_whole(key, value)
            case records.HighWaterKey(context), int():
                self._ids(context).mark(value)
            case _:  # NOOP, and tombstones of records whose change is already applied
                pass

    def _configure(self, subject: Subject | None, value: records.ConfigValue | None) -> None:
        before = self._configs.pop(subject, _NO_CONFIG)
        # A changed alias changes the answers for this subject name.
        self._has_removals |= before.get("alias") != (value or _NO_CONFIG).get("alias")
        if value is not None:
            self._configs[subject] = value

    def _set_mode(self, subject: Subject | None, value: str | None) -> None:
        self._modes.pop(subject, None)
        if value is not None:
            self._modes[subject] = value

    def _note_whole(self, key: records.Key, value: records.Value) -> None:
        """Take over a record about the registry as a whole."""
        name, place = _WHOLE[type(key)]
        self._whole[name] = _updated(self._whole[name], ((place(key), value),))
        if isinstance(key, records.LoweredKey) and isinstance(value, records.LoweredValue):
            self._ids(key.context).lower(value.highest)

    def _note_spelling(self, key: records.Key, spelling: bytes, *, gone: bool) -> None:
        if isinstance(key, records.NoopKey):  # later releases may write any number of NOOP keys of other kinds
            return
        before = self._odd_keys.get(key, frozenset())
        self._odd_keys = self._odd_keys.set(key, before - {spelling} if gone else before | {spelling})

    # --- versions

    def _put(self, value: SchemaValue, timestamp: int) -> None:
        subject, number, schema_id = value[:3]
        pair = (subject, number)
        context = context_of(subject) if subject.startswith(":") else DEFAULT_CONTEXT
        ids = self._contexts.get(context) or self._ids(context)
        held = ids.schemas.get(schema_id)
        schema = _schema_of(value) if held is None or not _is_copy(held.schema.value, value) else held.schema
        if (
            held is not None
            and held.schema != schema
            and ids.users(held) != {pair: None}
            and not _is_respelled(held.schema.value, value)
        ):
            raise RecordError(
                f"id {schema_id} of context {context_of(subject)} already names a schema other than that of "
                f"subject {subject!r} version {number}"
            )
        versions = self._subjects.get(subject)
        if versions is None:
            versions = self._versions(subject)
        old = versions.get(number)
        if old is not None:
            self._unlink(old)
            self._has_removals = True
            held = ids.schemas.get(schema_id)
        elif versions:
            if number < next(reversed(versions)):
                self._out_of_order.add(subject)
            # If the subject already uses the id, look-ups by id now show this version.
            self._has_removals |= held is not None and any(
                entry.schema.schema_id == schema_id for entry in versions.values()
            )
        schema = ids.add(schema, pair) if held is None else ids.link(held, schema, pair)
        versions[number] = _new(SchemaVersion, (subject, number, schema, timestamp, value.deleted))
        counts = self._formats.get(schema.schema_type) or self._counts(schema.schema_type)
        if old is not None:
            self._counts(old.schema.schema_type)[old.deleted] -= 1
        counts[value.deleted] += 1
        if old is None or old.deleted != value.deleted:
            counts[_EVER + value.deleted] += 1
        if schema.value.references:
            for target in _targets(schema.value):
                _copied(self._referrers, self._base.referrers, target).add(pair)
        if schema.value.metadata and (uuid := _glue_version(schema.value)):
            _copied(self._of_glue, self._base.of_glue, uuid).add(pair)

    def _drop(self, subject: Subject, number: Version) -> None:
        self._has_removals = True
        old = self._versions(subject).pop(number, None)
        if old is not None:
            self._counts(old.schema.schema_type)[old.deleted] -= 1
            self._unlink(old)

    def _soft_delete(self, subject: Subject, up_to: int) -> None:
        versions = self._versions(subject)
        self._has_removals |= bool(versions)
        for number, entry in versions.items():
            if number <= up_to and not entry.deleted:
                versions[number] = entry._replace(deleted=True)
                counts = self._counts(entry.schema.schema_type)
                counts[False] -= 1
                counts[True] += 1
                counts[_EVER + True] += 1

    def _clear(self, scope: Subject | None) -> None:
        for subject in self._within(scope):
            for number, entry in tuple(self._versions(subject).items()):
                if entry.deleted:
                    self._drop(subject, number)

    def _within(self, scope: Subject | None) -> set[Subject]:
        if scope is not None and scope != f":{context_of(scope)}:":
            return {scope}
        known = {*self._base.subjects, *self._subjects}
        return {subject for subject in known if scope in (None, subject, f":{context_of(subject)}:")}

    def _unlink(self, old: SchemaVersion) -> None:
        """Remove a version from the users of its id; an id without users no longer resolves."""
        pair = (old.subject, old.version)
        for target in _targets(old.schema.value):
            _copied(self._referrers, self._base.referrers, target).discard(pair)
        if uuid := _glue_version(old.schema.value):
            _copied(self._of_glue, self._base.of_glue, uuid).discard(pair)
        self._ids(context_of(old.subject)).unlink(old.schema, pair)

    # --- copies of what is touched

    def _counts(self, schema_type: str) -> list[int]:
        return self._formats.setdefault(schema_type, [0, 0, 0, 0])

    def _finished_formats(self) -> Iterator[tuple[str, FormatCount | None]]:
        for schema_type, added in self._formats.items():
            before = self._base.formats.get(schema_type, _NO_COUNT)
            yield schema_type, FormatCount(*map(sum, zip(before, added, strict=True)))

    def _versions(self, subject: Subject) -> dict[Version, SchemaVersion]:
        versions = self._subjects.get(subject)
        if versions is None:
            versions = self._subjects[subject] = dict(self._base.subjects.get(subject, _NO_VERSIONS))
        return versions

    def _ids(self, name: str) -> _ContextIds:
        ids = self._contexts.get(name)
        if ids is None:
            ids = self._contexts[name] = _ContextIds(self._base.contexts.get(name, _NO_CONTEXT))
        return ids

    def _finished_versions(self) -> Iterator[tuple[Subject, dict[Version, SchemaVersion] | None]]:
        for subject, versions in self._subjects.items():
            ordered = dict(sorted(versions.items())) if subject in self._out_of_order else versions
            yield subject, ordered or None

    def _finished_listing(self) -> Listing:
        changes: dict[Subject, VersionCount] = {}
        for subject, versions in self._subjects.items():
            deleted = sum(map(_DELETED, versions.values()))
            count = len(versions) - deleted, len(versions)
            changes[subject] = _COUNTS.get(count) or VersionCount._make(count)
        return self._base.listing.after(changes)

    def _finished_contexts(self) -> Iterator[tuple[str, ContextState | None]]:
        for name, ids in self._contexts.items():
            context = ids.finish()
            # A record that was set aside creates no context.
            yield name, context if context != _NO_CONTEXT or name == DEFAULT_CONTEXT else None


def _updated(base: "Map[_K, _V]", changes: Iterable[tuple[_K, _V | None]]) -> "Map[_K, _V]":
    """Return a map with new values; None removes a key."""
    changed = base.mutate()
    for key, value in changes:
        if value is None:
            changed.pop(key, None)
        else:
            changed[key] = value
    return changed.finish()


def _copied(copies: dict[_K, set[_V]], base: "Map[_K, frozenset[_V]]", key: _K) -> set[_V]:
    """Return the copy of a set of the base, which is made when it is first touched."""
    copy = copies.get(key)
    if copy is None:
        copy = copies[key] = set(base.get(key, ()))
    return copy


def _with_sets(base: "Map[_K, frozenset[_V]]", copies: Mapping[_K, set[_V]]) -> "Map[_K, frozenset[_V]]":
    """Return a map with copied sets in the place of those of the base; an empty one goes."""
    return _updated(base, ((key, frozenset(copy) or None) for key, copy in copies.items()))


def _glue_version(value: SchemaValue) -> str | None:
    """Return the UUID that a version had in AWS Glue, from its metadata."""
    uuid = ((value.metadata or {}).get("properties") or {}).get(GLUE_VERSION)
    return uuid if isinstance(uuid, str) else None


def _is_copy(held: SchemaValue, value: SchemaValue) -> bool:
    """Return whether two values certainly hold the same content; they may do so even if this returns false."""
    return (
        held.text == value.text
        and held.schema_type == value.schema_type
        and not (held.references or value.references)
        and not (held.metadata or value.metadata or held.rule_set or value.rule_set)
    )


def _is_respelled(held: SchemaValue, value: SchemaValue) -> bool:
    """Return whether two values differ only in the spelling of a text that is JSON: spaces and the order of names."""
    if value._replace(text=held.text, subject=held.subject, version=held.version, deleted=held.deleted) != held:
        return False
    try:
        return _sorted_json(held.text) == _sorted_json(value.text)
    except (ValueError, RecursionError):
        return False


def _sorted_json(text: str) -> str:
    return json.dumps(json.loads(text), sort_keys=True)  # unlike equal values, 1 and 1.0 differ


def _schema_of(value: SchemaValue) -> StoredSchema:
    try:
        references = [(r.name, r.subject, r.version) for r in value.references] if value.references else ()
        digest = fingerprint(value.text, references, value.metadata, value.rule_set)
    except (AttributeError, TypeError, ValueError, struct.error) as error:
        raise RecordError(f"cannot compute the fingerprint of the schema: {error}") from None
    return _new(StoredSchema, (value.schema_id, value.schema_type, value.text, digest, value))


def _targets(value: SchemaValue) -> Iterator[SubjectVersion]:
    """Yield the versions that a schema refers to; an unqualified subject belongs to the schema's own context."""
    for reference in value.references:
        yield Subject(qualified(reference.subject, context_of(value.subject))), Version(reference.version)
