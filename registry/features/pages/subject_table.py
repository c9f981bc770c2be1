"""The subjects with what a list of them is filtered and sorted by, kept from State to State.

The names of a State are in chunks of a few hundred that later States share (`storage/listing.py`), so only the chunks
that have changed are read again. A filter skips chunks as a whole. A chunk does not show that a version was replaced by
another; after removals and replacements, the versions of each row are compared with those of the State, by identity.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple

from strata.storage.records import Subject, Version
from strata.storage.state import SchemaVersion, State

__all__ = ["SORTS", "Block", "Row", "SubjectTable"]


class Row(NamedTuple):
    """A subject.

    Attributes:
        name: its name.
        folded: its name without differences of case.
        schema_type: the format of its latest version.
        is_live: whether it has a version that is not deleted.
        versions: how many versions it has, deleted ones included.
        changed: when its newest version was registered, in milliseconds since the epoch.
        held: its versions.
    """

    name: Subject
    folded: str
    schema_type: str
    is_live: bool
    versions: int
    changed: int
    held: Mapping[Version, SchemaVersion]


class Block(NamedTuple):
    """Some subjects that follow each other, with all their names in one text."""

    names: tuple[Subject, ...]
    folded: str
    schema_types: frozenset[str]
    rows: tuple[Row, ...]


class _Sort(NamedTuple):
    label: str
    key: Callable[[Row], str | int] | None
    descends: bool


SORTS: Final = {
    "": _Sort("name", None, descends=False),
    "name-down": _Sort("name, descending", lambda row: row.name, descends=True),
    "changed": _Sort("newest version first", lambda row: row.changed, descends=True),
    "versions": _Sort("most versions first", lambda row: row.versions, descends=True),
}
"""The orders of the list."""


class SubjectTable:
    """The rows of the last State that was asked for; threads may use it at once, and then some work is done twice."""

    def __init__(self) -> None:
        self._blocks: tuple[int, dict[int, Block]] = (0, {})
        self._ordered: dict[str, tuple[State, Sequence[Row]]] = {}

    def blocks(self, state: State) -> Iterable[Block]:
        """Return all subjects of a State, in the order of their names."""
        removals, known = self._blocks
        blocks: dict[int, Block] = {}
        for names in state.listing.chunks():
            block = known.get(id(names))  # the block keeps its names alive, so no others have their id
            is_current = block is not None and (removals == state.removals or _is_current(state, block))
            blocks[id(names)] = block if block is not None and is_current else _block(state, names)
        self._blocks = state.removals, blocks
        return blocks.values()

    def rows(self, state: State, order: str) -> Sequence[Row]:
        """Return all subjects of a State in one of the orders of `SORTS` that is not the first."""
        made = self._ordered.get(order)
        if made is None or made[0] is not state:
            rows = chain.from_iterable(block.rows for block in self.blocks(state))
            sort = SORTS[order]
            made = self._ordered[order] = state, sorted(rows, key=sort.key, reverse=sort.descends)
        return made[1]


def _is_current(state: State, block: Block) -> bool:
    subjects = state.subjects
    return all(subjects[row.name] is row.held for row in block.rows)


def _block(state: State, names: tuple[Subject, ...]) -> Block:
    rows = tuple(_row(state, name) for name in names)
    return Block(names, "\n".join(row.folded for row in rows), frozenset(row.schema_type for row in rows), rows)


def _row(state: State, name: Subject) -> Row:
    versions = state.subjects[name]
    newest = next(reversed(versions.values()))
    latest = newest if not newest.deleted else state.latest(name)
    shown = latest or newest
    facts = shown.schema.schema_type, latest is not None, len(versions), newest.timestamp
    return Row(name, name.casefold(), *facts, versions)
