"""Whether a table that holds the records of one schema can follow the change to another one.

One walk over two logical types, original and update, for each kind of table; `tables` says where these differ.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from strata.compat.limits import Limits
from strata.compat.logical.tables import TableRules
from strata.compat.logical.types import Column, Default, Kind, LogicalSchema, LogicalType

__all__ = ["TableFinding", "compare"]


@dataclass(frozen=True, slots=True)
class TableFinding:
    """A reason why a table cannot hold a schema, or not follow a change."""

    rule: str
    text: str
    path: str = ""  # names joined by dots; [] an element, {} a value and {key} a key of a map; empty at the root
    before: str = ""  # the type in the original, if the rule compares types
    after: str = ""

    def __str__(self) -> str:
        """Return the finding in the reference's words."""
        return f"{self.rule} at '{self.path}': {self.text}" if self.path else f"{self.rule}: {self.text}"


_CHILD_NOW_REQUIRED: Final = "container child was nullable and is now NOT NULL; existing collections may hold nulls"
_DEFAULT_LOST: Final = "NOT NULL column lost its default; rows that omitted the column have no value to read"
_DELETED: Final = "field present in the original schema is missing from the update"
_MOVED: Final = "field moved ahead of a field that preceded it in the original schema"

# Kinds that compare with each other by their parts.
_SHAPE: Final = {
    Kind.STRUCT: Kind.STRUCT,
    Kind.UNION: Kind.STRUCT,
    Kind.ARRAY: Kind.ARRAY,
    Kind.MAP: Kind.MAP,
    Kind.MULTISET: Kind.MULTISET,
}
_COUNT: Final = LogicalType(Kind.INT)


def compare(original: LogicalSchema, update: LogicalSchema, rules: TableRules, limits: Limits) -> list[TableFinding]:
    """Return why tables of a kind cannot follow a change from one schema to another, depth first."""
    walk = _Walk(original, update, rules, limits)
    return list(walk.types(original.root, update.root, ""))


class _Walk:
    """One comparison; a pair of types is compared once, at the first path that reaches it."""

    def __init__(self, original: LogicalSchema, update: LogicalSchema, rules: TableRules, limits: Limits) -> None:
        self._original, self._update, self._rules, self._limits = original, update, rules, limits
        self._seen: set[tuple[object, object]] = set()

    def types(self, original: LogicalType, update: LogicalType, path: str) -> Iterator[TableFinding]:
        """Yield the findings of a pair of types; whether they may be null is the caller's question."""
        self._limits.look_at_clock()
        if original.kind is update.kind is Kind.REFERENCE:
            if (original.name, update.name) in self._seen:
                return
            self._seen.add((original.name, update.name))
        named = self._original.resolve(original), self._update.resolve(update)
        before, after = map(self._shaped, named)
        shapes = _SHAPE.get(before.kind), _SHAPE.get(after.kind)
        if shapes[0] is not shapes[1] or _is_unresolved(before, after):
            yield self._changed("TYPE_MISMATCH", *named, path)
        elif shapes[0] is None:
            yield from self._primitives(before, after, path)
        elif (id(before), id(after)) not in self._seen:
            if shapes[0] is Kind.STRUCT:
                self._seen.add((id(before), id(after)))
            yield from _PARTS[shapes[0]](self, before, after, path)

    def _shaped(self, node: LogicalType) -> LogicalType:
        """Return the type as the table holds it."""
        if node.kind is Kind.MULTISET and not self._rules.has_multisets:
            return replace(node, kind=Kind.MAP, parts=(*node.parts, _COUNT))
        return node

    def _structs(self, original: LogicalType, update: LogicalType, path: str) -> Iterator[TableFinding]:
        same_name = self._rules.column_name
        places = {same_name(column.name): place for place, column in enumerate(original.columns)}
        latest = -1
        for column in update.columns:
            here = f"{path}.{column.name}" if path else column.name
            place = places.get(same_name(column.name))
            if place is None:
                yield from self._added(column, here)
                continue
            if place < latest and self._rules.keeps_columns:
                yield TableFinding("FIELD_REORDERED", _MOVED, here, *self._words(original.columns[place], column))
            latest = place
            before = original.columns[place]
            if before is column:  # versions share columns without named types
                continue
            yield from self._columns(before, column, here)
            yield from self.types(before.type, column.type, here)
        if self._rules.keeps_columns:
            kept = {column.name for column in update.columns}
            for column in original.columns:
                if column.name not in kept:
                    here = f"{path}.{column.name}" if path else column.name
                    yield TableFinding("FIELD_DELETED", _DELETED, here, *self._words(column, None))

    def _added(self, column: Column, path: str) -> Iterator[TableFinding]:
        fits = column.type.nullable or self._has_default(column, self._rules.fills_added)
        if self._rules.columns_not_null and not fits:
            yield TableFinding("REQUIRED_FIELD_ADDED", self._rules.added_text, path, *self._words(None, column))

    def _words(self, before: Column | None, after: Column | None) -> tuple[str, str]:
        """Return the types of a column before and after, with what may be null; an empty text where it is not."""
        sides = (self._original, before), (self._update, after)
        ours, theirs = ("" if column is None else self._word(schema, column) for schema, column in sides)
        return ours, theirs

    def _word(self, schema: LogicalSchema, column: Column) -> str:
        word = self._rules.word(schema.resolve(column.type))
        return word if column.type.nullable or not self._rules.columns_not_null else f"{word} NOT NULL"

    def _columns(self, before: Column, after: Column, path: str) -> Iterator[TableFinding]:
        if not self._rules.columns_not_null:
            return
        is_filled = self._has_default(after, self._rules.fills_nulls)
        if before.type.nullable and not after.type.nullable and not is_filled:
            text = self._rules.now_required_text
            yield TableFinding("NULLABLE_TO_NON_NULLABLE", text, path, *self._words(before, after))
        is_lost = before.default is Default.VALUE and after.default is not Default.VALUE
        if self._rules.keeps_defaults and not (before.type.nullable or after.type.nullable) and is_lost:
            yield TableFinding("NON_NULLABLE_DEFAULT_REMOVED", _DEFAULT_LOST, path, *self._words(before, after))

    def _has_default(self, column: Column, kinds: frozenset[Kind]) -> bool:
        return column.default is Default.VALUE and self._update.resolve(column.type).kind in kinds

    def _arrays(self, original: LogicalType, update: LogicalType, path: str) -> Iterator[TableFinding]:
        return self._children(original.parts[0], update.parts[0], f"{path}[]")

    def _maps(self, original: LogicalType, update: LogicalType, path: str) -> Iterator[TableFinding]:
        (key, value), (new_key, new_value) = original.parts, update.parts
        if self._rules.key is None:
            yield from self._children(key, new_key, f"{path}{{key}}")
        elif not self._is_same(self._rules.key, key, new_key, set()):
            words = self._rules.word(key), self._rules.word(new_key)
            yield TableFinding(
                "MAP_KEY_TYPE_MISMATCH", f"map key type changed from {words[0]} to {words[1]}", path, *words
            )
        yield from self._children(value, new_value, f"{path}{{}}")

    def _multisets(self, original: LogicalType, update: LogicalType, path: str) -> Iterator[TableFinding]:
        return self._children(original.parts[0], update.parts[0], f"{path}[]")

    def _children(self, before: LogicalType, after: LogicalType, path: str) -> Iterator[TableFinding]:
        if self._rules.elements_not_null and before.nullable and not after.nullable:
            yield TableFinding("NULLABLE_TO_NON_NULLABLE", _CHILD_NOW_REQUIRED, path)
        yield from self.types(before, after, path)

    def _is_same(
        self,
        key: Callable[[LogicalType], tuple[object, ...]],
        original: LogicalType,
        update: LogicalType,
        seen: set[tuple[str, str]],
    ) -> bool:
        """Return whether two keys of maps are the same type to the table; pairs in `seen` count as such."""
        self._limits.look_at_clock()
        if original.kind is update.kind is Kind.REFERENCE:
            if (original.name, update.name) in seen:
                return True
            seen.add((original.name, update.name))
        before, after = self._shaped(self._original.resolve(original)), self._shaped(self._update.resolve(update))
        if _is_unresolved(before, after) or key(before) != key(after):
            return False
        if [column.name for column in before.columns] != [column.name for column in after.columns]:
            return False
        ours, theirs = ([*(column.type for column in node.columns), *node.parts] for node in (before, after))
        return all(self._is_same(key, *pair, seen) for pair in zip(ours, theirs, strict=True))

    def _primitives(self, before: LogicalType, after: LogicalType, path: str) -> Iterator[TableFinding]:
        if before.kind is after.kind and before.numbers == after.numbers:
            return
        reason = self._rules.change(before, after)
        if reason is not None:
            yield self._changed("UNSUPPORTED_TYPE_CHANGE", before, after, path, reason)

    def _changed(self, rule: str, before: LogicalType, after: LogicalType, path: str, reason: str = "") -> TableFinding:
        words = self._rules.word(before), self._rules.word(after)
        return TableFinding(rule, f"type changed from {words[0]} to {words[1]}{reason}", path, *words)


_PARTS: Final[Mapping[Kind, Callable[[_Walk, LogicalType, LogicalType, str], Iterator[TableFinding]]]] = {
    Kind.STRUCT: _Walk._structs,
    Kind.ARRAY: _Walk._arrays,
    Kind.MAP: _Walk._maps,
    Kind.MULTISET: _Walk._multisets,
}


def _is_unresolved(before: LogicalType, after: LogicalType) -> bool:
    references = [node for node in (before, after) if node.kind is Kind.REFERENCE]
    return bool(references) and not (len(references) == 2 and before.name == after.name)
