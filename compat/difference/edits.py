"""Edits: what differs between two schemas, before the checker has said what it means.

An edit has an address in each schema, in the form that the findings of its format use, so that a finding can be
attached to it. Addresses and values come from strangers' schemas: both are cut to a bounded length here.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

__all__ = ["DOC_LIKE", "Edit", "EditKind", "Edits", "below", "changed", "cut"]

_LONGEST_VALUE: Final = 1000
_LONGEST_PATH: Final = 2000
_LONGEST_STEP: Final = 200
_MOST_EDITS: Final = 50_000


class EditKind(StrEnum):
    """What happened to a part of a schema."""

    FORMAT_CHANGED = "FORMAT_CHANGED"
    TYPE_ADDED = "TYPE_ADDED"
    TYPE_REMOVED = "TYPE_REMOVED"
    TYPE_RENAMED = "TYPE_RENAMED"
    NAMESPACE_CHANGED = "NAMESPACE_CHANGED"
    FIELD_ADDED = "FIELD_ADDED"
    FIELD_REMOVED = "FIELD_REMOVED"
    FIELD_RENAMED = "FIELD_RENAMED"
    TYPE_CHANGED = "TYPE_CHANGED"
    LOGICAL_TYPE_CHANGED = "LOGICAL_TYPE_CHANGED"
    BRANCH_ADDED = "BRANCH_ADDED"
    BRANCH_REMOVED = "BRANCH_REMOVED"
    SYMBOL_ADDED = "SYMBOL_ADDED"
    SYMBOL_REMOVED = "SYMBOL_REMOVED"
    SYMBOL_RENAMED = "SYMBOL_RENAMED"
    DEFAULT_ADDED = "DEFAULT_ADDED"
    DEFAULT_REMOVED = "DEFAULT_REMOVED"
    DEFAULT_CHANGED = "DEFAULT_CHANGED"
    REQUIRED_CHANGED = "REQUIRED_CHANGED"  # required or not; for Protobuf the label
    CONSTRAINT_CHANGED = "CONSTRAINT_CHANGED"  # a size, a bound, a pattern, a oneof
    CHANGED = "CHANGED"  # a finding that no other change explains
    ALIASES_CHANGED = "ALIASES_CHANGED"
    ORDER_CHANGED = "ORDER_CHANGED"
    ATTRIBUTE_CHANGED = "ATTRIBUTE_CHANGED"  # an attribute or option that no rule of compatibility knows
    DOC_CHANGED = "DOC_CHANGED"
    TAGS_CHANGED = "TAGS_CHANGED"


# Edits that no rule of compatibility looks at: no finding is ever attached to them.
DOC_LIKE: Final = frozenset(
    {EditKind.DOC_CHANGED, EditKind.TAGS_CHANGED, EditKind.ATTRIBUTE_CHANGED, EditKind.ORDER_CHANGED}
)


@dataclass(frozen=True, slots=True)
class Edit:
    """One difference: its place in the new schema (or in the previous one if it is gone), and both values as text."""

    kind: EditKind
    path: str
    name: str = ""  # the attribute, keyword, symbol or branch, if the edit is about a part of the place
    before: str | None = None
    after: str | None = None
    old_at: tuple[str, ...] = ()  # the addresses that findings use if the previous schema is the reader
    new_at: tuple[str, ...] = ()  # the same if the new schema is the reader


@dataclass(slots=True)
class Edits:
    """The edits of a walk, and the places where a pair of types is met again, with the place of its first meeting."""

    kept: list[Edit] = field(default_factory=list)
    again_new: dict[str, str] = field(default_factory=dict)
    again_old: dict[str, str] = field(default_factory=dict)
    more: int = 0  # edits beyond the first 50,000, which are only counted

    def add(
        self,
        kind: EditKind,
        old: str | None,
        new: str | None,
        name: str = "",
        before: str | None = None,
        after: str | None = None,
    ) -> None:
        """Add an edit.

        Args:
            kind: What happened.
            old: The address in the previous schema, or None.
            new: The address in the new schema, or None.
            name: The part of the place that the edit is about.
            before: What the previous schema has.
            after: What the new schema has.
        """
        if len(self.kept) >= _MOST_EDITS:
            self.more += 1
            return
        path = (new if new is not None else old) or ""
        old_at, new_at = (() if at is None else (at,) for at in (old, new))
        was, becomes = (None if text is None else cut(text) for text in (before, after))
        self.kept.append(Edit(kind, cut(path), cut(name), was, becomes, old_at, new_at))

    def attributes(self, previous: Mapping[str, str], new: Mapping[str, str], old_at: str, new_at: str) -> None:
        """Add an edit for each attribute that two places have differently."""
        for name, before, after in changed(previous, new):
            self.add(EditKind.ATTRIBUTE_CHANGED, old_at, new_at, name, before, after)

    def default(self, before: str | None, after: str | None, old_at: str, new_at: str) -> None:
        """Add an edit if two places have different defaults, which are texts."""
        if before == after:
            return
        added, removed = before is None, after is None
        change = EditKind.DEFAULT_ADDED if added else EditKind.DEFAULT_CHANGED
        self.add(EditKind.DEFAULT_REMOVED if removed else change, old_at, new_at, "", before, after)


def changed(previous: Mapping[str, str], new: Mapping[str, str]) -> Iterator[tuple[str, str | None, str | None]]:
    """Yield each name under which two mappings differ, with both values."""
    names: Iterable[str] = dict.fromkeys((*previous, *new))
    for name in names:
        before, after = previous.get(name), new.get(name)
        if before != after:
            yield name, before, after


def below(path: str, step: str) -> str:
    """Return the path of a part below another one; replace the beginning of a path that is too long by a digest."""
    if len(step) > _LONGEST_STEP:
        step = f"{step[:_LONGEST_STEP]}…{_digest(step)}"
    if len(path) > _LONGEST_PATH:
        path = f"…{_digest(path)}"
    return path + step


def cut(text: str) -> str:
    """Return a text of bounded length that UTF-8 can encode."""
    shown = text if len(text) <= _LONGEST_VALUE else text[:_LONGEST_VALUE] + "…"
    return shown.encode(errors="replace").decode()


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=8).hexdigest()
