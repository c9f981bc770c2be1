"""The checker's own fold of the log, and the laws that must hold at every record, regardless of its writer.

This fold is written from the meaning of the records (storage/README.md) and is independent of
`strata.storage.state`, with which the end of a run compares it. A violation is a sentence with the offset.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from faults import rights
from faults.model import NEW, Entry, Subject, compatible, content_of, context_of
from strata.storage.log import Entry as LogEntry
from strata.storage.record_json import RecordError, decode_key, decode_value
from strata.storage.records import (
    AclKey,
    ConfigKey,
    ConfigValue,
    DeleteSubjectKey,
    HighWaterKey,
    Key,
    LoweredKey,
    LoweredValue,
    ModeKey,
    SchemaKey,
    SchemaValue,
    Value,
)

__all__ = ["Ledger", "Registration", "read_ledger"]

Registration = tuple[str, int, int, str]
"""Subject, version, schema id, content."""


@dataclass(slots=True)
class Ledger:
    """The fold of the log: current subjects and rules, every version ever registered, and the violated laws."""

    subjects: dict[str, Subject] = field(default_factory=dict)
    registered: set[Registration] = field(default_factory=set)
    broken: list[str] = field(default_factory=list)
    highest: dict[str, int] = field(default_factory=dict)
    names: dict[tuple[str, int], str] = field(default_factory=dict)
    rules: set[AclKey] = field(default_factory=set)

    def subject(self, name: str) -> Subject:
        """Return the current value of a subject."""
        return self.subjects.get(name, NEW)


def read_ledger(entries: Iterable[LogEntry], imported_contexts: Sequence[str] = ()) -> Ledger:
    """Fold a log, and list every law that it violates.

    Args:
        entries: the records of the log, by offset.
        imported_contexts: contexts in mode IMPORT, in which callers choose ids and versions.
    """
    ledger, before = Ledger(), -1
    for entry in entries:
        if entry.offset <= before:
            ledger.broken.append(f"offset {entry.offset} follows offset {before}")
        before = entry.offset
        try:
            key = decode_key(entry.key)
            _fold(ledger, entry.offset, key, decode_value(key, entry.value), imported_contexts)
        except RecordError as error:
            ledger.broken.append(f"offset {entry.offset} cannot be read: {error}")
    return ledger


def _fold(ledger: Ledger, offset: int, key: Key, value: Value, imported_contexts: Sequence[str]) -> None:
    match key, value:
        case SchemaKey(subject, version), None:
            held = ledger.subject(subject)
            # A level or a mode is removed only by its own tombstone.
            left = tuple(entry for entry in held.entries if entry.version != version)
            ledger.subjects[subject] = replace(held, entries=left)
        case SchemaKey(), SchemaValue():
            _take(ledger, value, offset, imports=context_of(value.subject) in imported_contexts)
        case DeleteSubjectKey(subject), int():
            held = ledger.subject(subject)
            ledger.subjects[subject] = held.marked(entry for entry in held.live if entry.version <= value)
        case ConfigKey(str() as subject), _:
            level = str(value.fields.get("compatibilityLevel", "")) if isinstance(value, ConfigValue) else ""
            ledger.subjects[subject] = replace(ledger.subject(subject), level=level)
        case ModeKey(str() as subject), str() | None:
            ledger.subjects[subject] = replace(ledger.subject(subject), mode=value or "")
        case HighWaterKey(context), int():
            ledger.highest[context] = max(ledger.highest.get(context, 0), value)
        case LoweredKey(context), LoweredValue(highest):
            _lower(ledger, offset, context, highest)
        case AclKey(), None:
            ledger.rules.discard(key)
        case AclKey(), _:
            ledger.rules.add(key)
        case _:
            pass


def _take(ledger: Ledger, value: SchemaValue, offset: int, *, imports: bool) -> None:
    subject, content = (
        str(value.subject),
        content_of(value.text, *(reference.version for reference in value.references)),
    )
    held = ledger.subject(subject)
    entry = Entry(value.version, content, value.schema_id, value.deleted)
    old = held.get(value.version)
    where = f"offset {offset}: subject {subject} version {value.version} id {value.schema_id} ({content!r})"
    _take_id(ledger, entry, subject, where, imports=imports)
    if held.is_read_only:
        ledger.broken.append(f"{where}: the subject is read-only")
    if subject in rights.GUARDED and not rights.may_write(ledger.rules, subject):
        ledger.broken.append(f"{where}: its user had no right to write")
    is_deletion = old is not None and old._replace(deleted=True) == entry
    if not is_deletion and not imports:
        if value.version <= held.highest():
            ledger.broken.append(f"{where}: the version is not higher than {held.highest()}")
        if not compatible(content, [e.content for e in held.live], held.level or "BACKWARD"):
            ledger.broken.append(f"{where}: not {held.level or 'BACKWARD'} with {[e.content for e in held.live]}")
    ledger.subjects[subject] = held.placed(entry)
    ledger.registered.add((subject, entry.version, entry.schema_id, content))


def _lower(ledger: Ledger, offset: int, context: str, highest: int) -> None:
    """Forget what the ids above the lowered one named; no version may use one of them."""
    used = [e.schema_id for name, held in ledger.subjects.items() if context_of(name) == context for e in held.entries]
    if max(used, default=0) > highest:
        ledger.broken.append(f"offset {offset}: the highest id became {highest}, but {max(used)} is in use")
    ledger.highest[context] = highest
    ledger.names = {
        (place, schema_id): name
        for (place, schema_id), name in ledger.names.items()
        if place != context or schema_id <= highest
    }


def _take_id(ledger: Ledger, entry: Entry, subject: str, where: str, *, imports: bool) -> None:
    context = context_of(subject)
    named = ledger.names.setdefault((context, entry.schema_id), entry.content)
    if named != entry.content and not imports:
        ledger.broken.append(f"{where}: the id named {named!r} before")
    in_context = [e for name, other in ledger.subjects.items() if context_of(name) == context for e in other.entries]
    ids = {e.schema_id for e in in_context if e.content == entry.content}
    if ids - {entry.schema_id} and not imports:
        ledger.broken.append(f"{where}: the same content has the id {ids - {entry.schema_id}} in this context")
    clash = {e.content for e in in_context if e.schema_id == entry.schema_id} - {entry.content}
    if clash:
        ledger.broken.append(f"{where}: the id names {clash} in this context")
    highest = ledger.highest.get(context, 0)
    is_new = not ids and entry.schema_id not in {e.schema_id for e in in_context}
    if is_new and not imports and entry.schema_id != highest + 1 and not _comes_back(ledger, context, entry):
        ledger.broken.append(f"{where}: the next id would have been {highest + 1}")
    ledger.highest[context] = max(highest, entry.schema_id)


def _comes_back(ledger: Ledger, context: str, entry: Entry) -> bool:
    """Return whether a schema comes back under its id after the record before removed its soft-deleted version."""
    return ledger.names.get((context, entry.schema_id)) == entry.content and entry.schema_id <= ledger.highest.get(
        context, 0
    )
