"""The ids of one context while a fold applies records: what each id names, and which versions use it."""

from typing import TYPE_CHECKING

from strata.storage.records import SchemaId
from strata.storage.stored import ContextState, IdEntry, StoredSchema, SubjectVersion

if TYPE_CHECKING:
    from immutables import Map

__all__ = ["ContextIds"]

# A named tuple's own constructor is a Python function, which costs as much as the rest of making one.
_new = tuple.__new__


class ContextIds:
    """The ids of one context, under construction."""

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
        for schema_id, found in self._spelled.items():
            if found:
                spelled[schema_id] = found
            else:
                spelled.pop(schema_id, None)
        return spelled.finish()
