"""Whether a table that holds the records of one schema can follow the change to another one.

One walk over two logical types, original and update, for two consumers. Where the consumers differ, the rule names
them. Source of the rules: the policy LOGICAL of the Confluent Schema Registry 8.5, from its answers.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from strata.compat.limits import Limits
from strata.compat.logical.types import CONTAINERS, UNBOUNDED, Column, Default, Kind, LogicalSchema, LogicalType

__all__ = ["Consumer", "TableFinding", "compare"]


class Consumer(StrEnum):
    """What reads the tables, in the order of their findings."""

    FLINK = "FLINK"
    ICEBERG = "ICEBERG_V2"


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


_ADDED: Final = {
    Consumer.FLINK: "added column is neither nullable nor defaulted, so rows written before it existed have no value "
    "for it",
    Consumer.ICEBERG: "added field is neither nullable nor defaulted, so pre-existing rows have no value for it; "
    "format-version 2 cannot store a column default",
}
_NOW_REQUIRED: Final = {
    Consumer.FLINK: "column was nullable and is now NOT NULL; pre-existing rows may hold nulls",
    Consumer.ICEBERG: "field was nullable and is now non-nullable; pre-existing rows may hold nulls",
}
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


def compare(original: LogicalSchema, update: LogicalSchema, consumer: Consumer, limits: Limits) -> list[TableFinding]:
    """Return why tables of a consumer cannot follow a change from one schema to another, depth first."""
    walk = _Walk(original, update, consumer, limits)
    return list(walk.types(original.root, update.root, ""))


class _Walk:
    """One comparison; a pair of types is compared once, at the first path that reaches it."""

    def __init__(self, original: LogicalSchema, update: LogicalSchema, consumer: Consumer, limits: Limits) -> None:
        self._original, self._update, self._consumer, self._limits = original, update, consumer, limits
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
            yield _changed("TYPE_MISMATCH", *named, path)
        elif shapes[0] is None:
            yield from self._primitives(before, after, path)
        elif (id(before), id(after)) not in self._seen:
            if shapes[0] is Kind.STRUCT:
                self._seen.add((id(before), id(after)))
            yield from _PARTS[shapes[0]](self, before, after, path)

    def _shaped(self, node: LogicalType) -> LogicalType:
        """Return the type as the consumer holds it: Iceberg has no multiset."""
        if self._consumer is Consumer.ICEBERG and node.kind is Kind.MULTISET:
            return replace(node, kind=Kind.MAP, parts=(*node.parts, _COUNT))
        return node

    def _structs(self, original: LogicalType, update: LogicalType, path: str) -> Iterator[TableFinding]:
        places = {column.name: place for place, column in enumerate(original.columns)}
        latest = -1
        for column in update.columns:
            here = f"{path}.{column.name}" if path else column.name
            place = places.get(column.name)
            if place is None:
                yield from self._added(column, here)
                continue
            if place < latest and self._consumer is Consumer.ICEBERG:
                yield TableFinding("FIELD_REORDERED", _MOVED, here)
            latest = place
            before = original.columns[place]
            yield from self._columns(before, column, here)
            yield from self.types(before.type, column.type, here)
        if self._consumer is Consumer.ICEBERG:
            kept = {column.name for column in update.columns}
            for column in original.columns:
                if column.name not in kept:
                    yield TableFinding("FIELD_DELETED", _DELETED, f"{path}.{column.name}" if path else column.name)

    def _added(self, column: Column, path: str) -> Iterator[TableFinding]:
        has_default = column.default is Default.VALUE
        fits = has_default and (self._consumer is Consumer.FLINK or self._is_container(column.type))
        if not column.type.nullable and not fits:
            yield TableFinding("REQUIRED_FIELD_ADDED", _ADDED[self._consumer], path)

    def _columns(self, before: Column, after: Column, path: str) -> Iterator[TableFinding]:
        flink = self._consumer is Consumer.FLINK
        defaulted = not flink and after.default is Default.VALUE and self._is_container(after.type)
        if before.type.nullable and not after.type.nullable and not defaulted:
            yield TableFinding("NULLABLE_TO_NON_NULLABLE", _NOW_REQUIRED[self._consumer], path)
        is_required = not before.type.nullable and not after.type.nullable
        if flink and is_required and before.default is Default.VALUE and after.default is not Default.VALUE:
            yield TableFinding("NON_NULLABLE_DEFAULT_REMOVED", _DEFAULT_LOST, path)

    def _is_container(self, node: LogicalType) -> bool:
        return self._update.resolve(node).kind in CONTAINERS

    def _arrays(self, original: LogicalType, update: LogicalType, path: str) -> Iterator[TableFinding]:
        return self._children(original.parts[0], update.parts[0], f"{path}[]")

    def _maps(self, original: LogicalType, update: LogicalType, path: str) -> Iterator[TableFinding]:
        (key, value), (new_key, new_value) = original.parts, update.parts
        if self._consumer is Consumer.FLINK:
            yield from self._children(key, new_key, f"{path}{{key}}")
        elif not self._is_same(key, new_key, set()):
            yield TableFinding(
                "MAP_KEY_TYPE_MISMATCH", f"map key type changed from {key} to {new_key}", path,
                str(key), str(new_key),
            )  # fmt: skip
        yield from self._children(value, new_value, f"{path}{{}}")

    def _multisets(self, original: LogicalType, update: LogicalType, path: str) -> Iterator[TableFinding]:
        return self._children(original.parts[0], update.parts[0], f"{path}[]")

    def _children(self, before: LogicalType, after: LogicalType, path: str) -> Iterator[TableFinding]:
        if self._consumer is Consumer.FLINK and before.nullable and not after.nullable:
            yield TableFinding("NULLABLE_TO_NON_NULLABLE", _CHILD_NOW_REQUIRED, path)
        yield from self.types(before, after, path)

    def _is_same(self, original: LogicalType, update: LogicalType, seen: set[tuple[str, str]]) -> bool:
        """Return whether two keys of maps are the same type to Iceberg; pairs in `seen` count as such."""
        self._limits.look_at_clock()
        if original.kind is update.kind is Kind.REFERENCE:
            if (original.name, update.name) in seen:
                return True
            seen.add((original.name, update.name))
        before, after = self._shaped(self._original.resolve(original)), self._shaped(self._update.resolve(update))
        if _is_unresolved(before, after) or _iceberg(before) != _iceberg(after):
            return False
        if [column.name for column in before.columns] != [column.name for column in after.columns]:
            return False
        ours, theirs = ([*(column.type for column in node.columns), *node.parts] for node in (before, after))
        return all(self._is_same(*pair, seen) for pair in zip(ours, theirs, strict=True))

    def _primitives(self, before: LogicalType, after: LogicalType, path: str) -> Iterator[TableFinding]:
        if before.kind is after.kind and before.numbers == after.numbers:
            return
        reason = (_flink_change if self._consumer is Consumer.FLINK else _iceberg_change)(before, after)
        if reason is not None:
            yield _changed("UNSUPPORTED_TYPE_CHANGE", before, after, path, reason)


_PARTS: Final[Mapping[Kind, Callable[[_Walk, LogicalType, LogicalType, str], Iterator[TableFinding]]]] = {
    Kind.STRUCT: _Walk._structs,
    Kind.ARRAY: _Walk._arrays,
    Kind.MAP: _Walk._maps,
    Kind.MULTISET: _Walk._multisets,
}


def _is_unresolved(before: LogicalType, after: LogicalType) -> bool:
    references = [node for node in (before, after) if node.kind is Kind.REFERENCE]
    return bool(references) and not (len(references) == 2 and before.name == after.name)


def _changed(rule: str, before: LogicalType, after: LogicalType, path: str, reason: str = "") -> TableFinding:
    text = f"type changed from {before} to {after}{reason}"
    return TableFinding(rule, text, path, str(before), str(after))


# Changes of primitive types. A change returns None if it is allowed, else the end of its message.

_SHRINKS: Final = " (length may not shrink)"
_FIXED: Final = " (a fixed-length type cannot change length)"
_FIXED_BINARY: Final = " (fixed-length binary cannot change length)"
_UNIT: Final = " (precision selects the unit of the stored value and cannot change)"
_SCALE: Final = " (decimal scale must be unchanged and precision may not shrink)"
_RANGE: Final = " (target cannot represent the full range of the source)"

_WIDER: Final[Mapping[Kind, frozenset[Kind]]] = {
    Kind.TINYINT: frozenset({Kind.SMALLINT, Kind.INT, Kind.BIGINT, Kind.FLOAT, Kind.DOUBLE}),
    Kind.SMALLINT: frozenset({Kind.INT, Kind.BIGINT, Kind.FLOAT, Kind.DOUBLE}),
    Kind.INT: frozenset({Kind.BIGINT, Kind.DOUBLE}),
    Kind.FLOAT: frozenset({Kind.DOUBLE}),
}
_DIGITS: Final[Mapping[Kind, int]] = {Kind.TINYINT: 3, Kind.SMALLINT: 5, Kind.INT: 10, Kind.BIGINT: 19}
_TEMPORAL: Final = frozenset({Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMP_LTZ})
_TEXTS: Final = frozenset({Kind.CHAR, Kind.VARCHAR, Kind.ENUM})
_BYTES: Final = frozenset({Kind.BINARY, Kind.VARBINARY})
_FIXED_LENGTH: Final = frozenset({Kind.CHAR, Kind.BINARY})


def _flink_change(before: LogicalType, after: LogicalType) -> str | None:
    kinds = before.kind, after.kind
    if kinds == (Kind.DECIMAL, Kind.DECIMAL):
        return _decimal_change(before, after)
    if before.kind in _DIGITS and after.kind is Kind.DECIMAL:
        precision, scale = after.numbers
        return None if precision - scale >= _DIGITS[before.kind] else _RANGE
    if after.kind in _WIDER.get(before.kind, ()):
        return None
    if before.kind is after.kind and before.kind in _TEMPORAL:
        return _UNIT
    for family in (_TEXTS, _BYTES):
        if before.kind in family and after.kind in family:
            return _length_change(before, after)
    return ""


def _length_change(before: LogicalType, after: LogicalType) -> str | None:
    """Return what is wrong with a change within texts or within bytes; an enum is a text without a bound."""
    fixed = before.kind in _FIXED_LENGTH, after.kind in _FIXED_LENGTH
    if fixed == (False, True):
        return ""
    lengths = [UNBOUNDED if node.kind is Kind.ENUM else node.numbers[0] or UNBOUNDED for node in (before, after)]
    if fixed == (True, True):
        return None if lengths[0] == lengths[1] else _FIXED
    return None if lengths[1] >= lengths[0] else _SHRINKS


def _decimal_change(before: LogicalType, after: LogicalType) -> str | None:
    grows = before.numbers[1] == after.numbers[1] and after.numbers[0] >= before.numbers[0]
    return None if grows else _SCALE


def _iceberg_change(before: LogicalType, after: LogicalType) -> str | None:
    ours, theirs = _iceberg(before), _iceberg(after)
    if ours == theirs or (ours[0], theirs[0]) in _ICEBERG_WIDER:
        return None
    if before.kind is after.kind is Kind.DECIMAL:
        return _decimal_change(before, after)
    return _FIXED_BINARY if before.kind is after.kind is Kind.BINARY else ""


_ICEBERG_WIDER: Final = frozenset({("int", "long"), ("float", "double")})
_ICEBERG_NAMES: Final[Mapping[Kind, str]] = {
    Kind.TINYINT: "int", Kind.SMALLINT: "int", Kind.INT: "int", Kind.BIGINT: "long",
    Kind.FLOAT: "float", Kind.DOUBLE: "double",
    Kind.CHAR: "string", Kind.VARCHAR: "string", Kind.ENUM: "string", Kind.VARBINARY: "binary",
    Kind.STRUCT: "struct", Kind.UNION: "struct",
}  # fmt: skip
_NANOS: Final = 6  # digits of a second above which Iceberg stores nanoseconds


def _iceberg(node: LogicalType) -> tuple[object, ...]:
    """Return the type of Iceberg that holds a type: its name, and the parameters that tell it from others."""
    name = _ICEBERG_NAMES.get(node.kind)
    if name is not None:
        return (name,)
    if node.kind is Kind.TIME:
        return (node.kind,)
    if node.kind in _TEMPORAL:
        return (node.kind, node.numbers[0] > _NANOS)
    return (node.kind, *node.numbers)
