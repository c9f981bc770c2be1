"""Whether a table of a kind can hold the records of a schema at all.

Source of the rules that all tables share: the policy LOGICAL of the Confluent Schema Registry 8.5, from its answers.
"""

from collections.abc import Iterator
from typing import Final

from strata.compat.limits import Limits
from strata.compat.logical.comparison import TableFinding
from strata.compat.logical.tables import TableRules
from strata.compat.logical.types import Kind, LogicalSchema, LogicalType

__all__ = ["validate"]

_LARGEST_PRECISION: Final = 38
_UNKNOWN_SCALE: Final = -1
_SHORTEST: Final = {Kind.CHAR: 1, Kind.BINARY: 1, Kind.VARCHAR: 0, Kind.VARBINARY: 0}


def validate(schema: LogicalSchema, rules: TableRules, limits: Limits) -> list[TableFinding]:
    """Return why tables of a kind cannot hold a schema: of a struct first, then of its fields, depth first."""
    walk = _Walk(schema, rules, limits)
    return list(walk.type(schema.root, ""))


class _Walk:
    """One validation; a named type is walked once, at the first path that reaches it."""

    def __init__(self, schema: LogicalSchema, rules: TableRules, limits: Limits) -> None:
        self._schema, self._rules, self._limits = schema, rules, limits
        self._walked: set[str] = set()
        self._cyclic: dict[str, bool] = {}

    def type(self, node: LogicalType, path: str) -> Iterator[TableFinding]:
        """Yield the findings of a type and of its parts."""
        self._limits.look_at_clock()
        if node.kind is Kind.REFERENCE:
            yield from self._reference(node.name, path)
        elif node.kind in (Kind.STRUCT, Kind.UNION):
            if self._rules.is_case_blind:
                yield from _struct(node, path)
            yield from self._refused(node, path)
            for column in node.columns:
                here = f"{path}.{column.name}" if path else column.name
                yield from self.type(column.type, here)
        elif node.kind is Kind.MAP:
            key, value = node.parts
            yield from self._refused(node, path)
            yield from self.type(key, f"{path}{{key}}")
            yield from self.type(value, f"{path}{{}}")
        elif node.kind in (Kind.ARRAY, Kind.MULTISET):
            yield from self._refused(node, path)
            yield from self.type(node.parts[0], f"{path}[]")
        else:
            yield from self._leaf(node, path)

    def _reference(self, name: str, path: str) -> Iterator[TableFinding]:
        body = self._schema.named.get(name)
        if body is None:
            yield TableFinding("UNRESOLVED_TYPE_REF", f"named type '{name}' is referenced but not defined", path)
        elif self._reaches_itself(name):
            text = f"named type '{name}' refers to itself, and cannot be represented by a non-recursive type system"
            yield TableFinding("CYCLIC_TYPE", text, path)
        elif name not in self._walked:
            self._walked.add(name)
            yield from self.type(body, path)

    def _reaches_itself(self, name: str) -> bool:
        if name not in self._cyclic:
            self._cyclic[name] = name in self._reached(name)
        return self._cyclic[name]

    def _reached(self, name: str) -> set[str]:
        """Return the names to which the body of a named type leads."""
        reached: set[str] = set()
        todo = [self._schema.named[name]]
        while todo:
            self._limits.look_at_clock()
            node = todo.pop()
            if node.kind is Kind.REFERENCE:
                body = self._schema.named.get(node.name)
                if node.name not in reached and body is not None:
                    todo.append(body)
                reached.add(node.name)
            todo += [column.type for column in node.columns]
            todo += node.parts
        return reached

    def _leaf(self, node: LogicalType, path: str) -> Iterator[TableFinding]:
        if node.kind is Kind.DECIMAL:
            precision, scale = node.numbers
            yield from _decimal(precision, scale, path)
        elif node.kind in _SHORTEST:
            length, least = node.numbers[0], _SHORTEST[node.kind]
            if length < least:
                text = f"{node.kind} length {length} is below the minimum of {least}"
                yield TableFinding("LENGTH_OUT_OF_RANGE", text, path)
        yield from self._refused(node, path)

    def _refused(self, node: LogicalType, path: str) -> Iterator[TableFinding]:
        if reason := self._rules.refused(node):
            yield TableFinding("UNREPRESENTABLE_TYPE", reason, path)


def _decimal(precision: int, scale: int, path: str) -> Iterator[TableFinding]:
    if not 1 <= precision <= _LARGEST_PRECISION:
        text = f"DECIMAL precision {precision} is outside the supported range 1 to {_LARGEST_PRECISION}"
        yield TableFinding("PRECISION_OUT_OF_RANGE", text, path)
    if (scale < 0 and scale != _UNKNOWN_SCALE) or scale > precision:
        text = f"DECIMAL scale {scale} is outside the supported range 0 to the precision {precision}"
        yield TableFinding("SCALE_OUT_OF_RANGE", text, path)


def _struct(node: LogicalType, path: str) -> Iterator[TableFinding]:
    if not node.columns:
        what = "struct" if node.kind is Kind.STRUCT else "union"
        yield TableFinding("EMPTY_STRUCT", f"a {what} must have at least one field", path)
    first: dict[str, str] = {}
    told: set[str] = set()
    for column in node.columns:
        lower = column.name.lower()
        other = first.setdefault(lower, column.name)
        if other != column.name and lower not in told:
            told.add(lower)
            text = f"field names '{other}' and '{column.name}' differ only in case, which Iceberg's case-insensitive "
            text += "name index cannot distinguish"
            yield TableFinding("FIELD_NAME_CASE_COLLISION", text, path)
