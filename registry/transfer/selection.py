"""A part of a registry: chosen subjects, with everything that they need.

Rules of this file: pure.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from difflib import get_close_matches

from strata.registry.transfer.copies import Copy, TransferError, copy_of_records, missing_marks
from strata.storage.record_json import RecordError, decode_key
from strata.storage.records import (
    AssociationKey,
    ClearSubjectKey,
    ConfigKey,
    ContextKey,
    DekKey,
    DeleteSubjectKey,
    HighWaterKey,
    KekKey,
    Key,
    ModeKey,
    SchemaKey,
    context_of,
    qualified,
)
from strata.storage.state import State

__all__ = ["only_context", "part_of", "referred_to"]


def part_of(copy: Copy, subjects: Sequence[str], contexts: Sequence[str]) -> Copy:
    """Return a copy of chosen subjects, the subjects that they refer to, and the settings in force for them.

    Args:
        copy: the copy of the whole registry.
        subjects: names; a trailing `*` matches any rest.
        contexts: names such as `.staging`, `:.staging:` or `.`, which choose all of their subjects.

    Raises:
        TransferError: if a name matches nothing in the copy.
    """
    chosen = {name for pattern in subjects for name in _named_by(pattern, copy.state)}
    chosen |= {name for context in contexts for name in _within(context, copy.state)}
    wanted = chosen | referred_to(chosen, copy.state)
    keks = {kek for kek, series in copy.state.encryption_keys.deks.items() if any(s in wanted for s, _ in series)}
    kept = {context_of(subject) for subject in wanted} | {_context(name) for name in contexts}
    records = [record for record in copy.records if _belongs(_key(record.key), wanted, kept, keks)]
    marks = missing_marks(copy.state, copy_of_records(copy.source, records).state, kept)
    more = sorted(wanted - chosen)
    notes = (f"also includes the subjects that the chosen ones refer to: {', '.join(more)}",) if more else ()
    if copy.state.acls:
        notes = (*notes, f"left out {len(copy.state.acls)} rules of access, which belong to the whole registry")
    if copy.state.exporters:
        notes = (*notes, f"left out {len(copy.state.exporters)} exporters, which belong to the whole registry")
    part = copy_of_records(copy.source, [*records, *marks])
    return replace(part, end=copy.end, over_rest=copy.over_rest, unlisted=copy.unlisted, notes=notes)


def only_context(copy: Copy, name: str) -> Copy:
    """Return a copy of one context alone, without what is set for others."""
    records = [record for record in copy.records if _is_in(_key(record.key), name)]
    part = copy_of_records(copy.source, records)
    return replace(part, end=copy.end, over_rest=copy.over_rest, unlisted=copy.unlisted, notes=copy.notes)


def _is_in(key: Key | None, name: str) -> bool:
    match key:
        case SchemaKey() | DeleteSubjectKey() | AssociationKey() | DekKey() | ConfigKey() | ModeKey():
            return key.subject is not None and context_of(key.subject) == name
        case ClearSubjectKey():
            return key.subject is None or context_of(key.subject) == name
        case HighWaterKey(context) | ContextKey(context):
            return context == name
        case _:
            return False


def _named_by(pattern: str, state: State) -> set[str]:
    start = pattern.removesuffix("*")
    subjects: set[str] = {
        name for name in state.subjects if name == pattern or (start != pattern and name.startswith(start))
    }
    if not subjects:
        raise TransferError(f"no subject is called {pattern!r}{_nearest(pattern, state.subjects)}")
    return subjects


def _within(context: str, state: State) -> set[str]:
    name = _context(context)
    if name not in state.contexts and not any(context_of(subject) == name for subject in state.subjects):
        raise TransferError(f"no context is called {context!r}{_nearest(name, state.contexts)}")
    return {subject for subject in state.subjects if context_of(subject) == name}


def _context(text: str) -> str:
    name = text.strip(":")
    return name if name.startswith(".") else f".{name}"


def _nearest(name: str, known: Iterable[str]) -> str:
    close = get_close_matches(name, known, 1)
    return f"; did you mean {close[0]!r}?" if close else ""


def referred_to(subjects: set[str], state: State) -> set[str]:
    """Return all subjects that versions of some subjects refer to, directly or not."""
    targets: set[str] = set()
    waiting = list(subjects)
    while waiting:
        subject = waiting.pop()
        for entry in state.versions(subject, include_deleted=True):
            for reference in entry.schema.value.references:
                target = qualified(reference.subject, context_of(subject))
                if target in state.subjects and target not in targets:
                    targets.add(target)
                    waiting.append(target)
    return targets


def _key(data: bytes) -> Key | None:
    try:
        return decode_key(data)
    except RecordError:
        return None


def _belongs(key: Key | None, subjects: set[str], contexts: set[str], keks: set[str]) -> bool:
    match key:
        case SchemaKey() | DeleteSubjectKey() | AssociationKey() | DekKey():
            return key.subject in subjects
        case ConfigKey() | ModeKey() | ClearSubjectKey():
            return key.subject is None or key.subject in subjects or key.subject.strip(":") in {*contexts, ".__GLOBAL"}
        case HighWaterKey() | ContextKey():
            return key.context in contexts
        case KekKey():
            return key.name in keks
        case _:
            return False
