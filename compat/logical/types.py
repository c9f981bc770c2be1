"""Logical types: the SQL types in which tables of Flink and Iceberg hold the records of a schema.

A type of any format is translated into these values once, and all rules work on them. A named type (a record, an enum)
is a `REFERENCE` to an entry of `LogicalSchema.named`, so that recursion ends; whether it may be null is a property of
the reference.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from strata.compat.limits import Limits

__all__ = [
    "CONTAINERS",
    "DEEPEST",
    "UNBOUNDED",
    "Column",
    "Default",
    "Kind",
    "LogicalSchema",
    "LogicalType",
    "TranslationError",
    "array",
    "check_depth",
    "decimal",
    "enum",
    "map_key",
    "map_of",
    "reference",
    "sized",
    "struct",
    "temporal",
    "union",
]

UNBOUNDED: Final = 2**31 - 1  # the length of a VARCHAR or VARBINARY without a bound
DEEPEST: Final = 100  # nested types; the reference allows 256, which Python may not reach on every stack
_LARGEST_TIME_PRECISION: Final = 9
_BLANK: Final = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2000-\u200a\u2028\u2029\u3000]")


class TranslationError(ValueError):
    """A schema that no table can hold; the message is the reference's reason."""


class Kind(StrEnum):
    """The kinds of types, spelled as in messages."""

    BOOLEAN = "BOOLEAN"
    TINYINT = "TINYINT"
    SMALLINT = "SMALLINT"
    INT = "INT"
    BIGINT = "BIGINT"
    FLOAT = "FLOAT"
    DOUBLE = "DOUBLE"
    DECIMAL = "DECIMAL"  # precision, scale
    CHAR = "CHAR"  # length
    VARCHAR = "VARCHAR"  # length
    BINARY = "BINARY"  # length
    VARBINARY = "VARBINARY"  # length
    DATE = "DATE"
    TIME = "TIME"  # precision
    TIMESTAMP = "TIMESTAMP"  # precision
    TIMESTAMP_LTZ = "TIMESTAMP_LTZ"  # precision
    VARIANT = "VARIANT"
    ENUM = "ENUM"
    STRUCT = "STRUCT"
    UNION = "UNION"
    ARRAY = "ARRAY"
    MAP = "MAP"
    MULTISET = "MULTISET"
    REFERENCE = "REFERENCE"


CONTAINERS: Final = frozenset({Kind.ARRAY, Kind.MAP, Kind.MULTISET})


class Default(StrEnum):
    """What is known of the default of a column."""

    ABSENT = "absent"
    NULL = "null"
    VALUE = "value"


@dataclass(frozen=True, slots=True, eq=False)
class LogicalType:
    """A type; which attributes mean something depends on its kind."""

    kind: Kind
    nullable: bool = False
    numbers: tuple[int, ...] = ()  # a length, a precision, or precision and scale
    columns: "tuple[Column, ...]" = ()  # of a struct; the branches of a union
    parts: "tuple[LogicalType, ...]" = ()  # the element of an array or multiset; the key and the value of a map
    name: str = ""  # of the type to which a reference leads

    def or_null(self, nullable: bool = True) -> "LogicalType":
        """Return the same type with another flag."""
        if self.nullable is nullable:
            return self
        return LogicalType(self.kind, nullable, self.numbers, self.columns, self.parts, self.name)

    def __str__(self) -> str:
        """Return the type as messages write it."""
        if self.kind is Kind.REFERENCE:
            return f"ref({self.name})"
        numbers = f"({', '.join(map(str, self.numbers))})" if self.numbers else ""
        return f"{self.kind}{numbers}"


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """A field of a struct, or a branch of a union."""

    name: str
    type: LogicalType
    default: Default = Default.ABSENT
    doc: str = ""


@dataclass(frozen=True, slots=True)
class LogicalSchema:
    """A root type and the bodies of the named types, which are not references themselves."""

    root: LogicalType
    named: Mapping[str, LogicalType] = field(default_factory=dict)

    def resolve(self, node: LogicalType) -> LogicalType:
        """Return the body to which a reference leads; a reference without body, or another type, as it is."""
        body = self.named.get(node.name) if node.kind is Kind.REFERENCE else None
        return node if body is None else body


def check_depth(schema: LogicalSchema, limits: Limits) -> None:
    """Check that no chain of types inside types is deeper than `DEEPEST`; a cycle counts once.

    Raises:
        TranslationError: a chain is.
    """
    deepest: dict[str, int] = {}
    for name in _inner_first(schema, limits):
        deepest[name] = _depth(schema.named[name], deepest)
    if max(_depth(schema.root, deepest), *deepest.values(), 0) > DEEPEST:
        raise TranslationError(f"Schema type nesting depth exceeds the maximum of {DEEPEST}")


def _depth(node: LogicalType, deepest: Mapping[str, int]) -> int:
    """Return how many levels a type has, given those of the named types that are known."""
    if node.kind is Kind.REFERENCE:
        return deepest.get(node.name, 0)
    return 1 + max((_depth(part, deepest) for part in _parts(node)), default=0)


def _inner_first(schema: LogicalSchema, limits: Limits) -> Iterator[str]:
    """Yield the names of the named types, each after those that it refers to, except in a cycle."""
    begun: set[str] = set()
    todo = [(name, False) for name in schema.named]
    while todo:
        limits.look_at_clock()
        name, is_done = todo.pop()
        if is_done:
            yield name
        elif name not in begun:
            begun.add(name)
            todo.append((name, True))
            todo += [(inner, False) for inner in _references(schema.named[name]) if inner in schema.named]


def _references(node: LogicalType) -> Iterator[str]:
    todo = [node]
    while todo:
        part = todo.pop()
        if part.kind is Kind.REFERENCE:
            yield part.name
        todo += _parts(part)


def _parts(node: LogicalType) -> list[LogicalType]:
    return [*(column.type for column in node.columns), *node.parts]


def sized(kind: Kind, length: int = UNBOUNDED) -> LogicalType:
    """Return a type of a length."""
    return LogicalType(kind, numbers=(length,))


def decimal(precision: int, scale: int) -> LogicalType:
    """Return a decimal type."""
    return LogicalType(Kind.DECIMAL, numbers=(precision, scale))


def temporal(kind: Kind, precision: int) -> LogicalType:
    """Return a type of times of a precision, in digits of a second.

    Raises:
        TranslationError: no such precision exists.
    """
    if not 0 <= precision <= _LARGEST_TIME_PRECISION:
        raise TranslationError(f"{kind} precision must be in [0, {_LARGEST_TIME_PRECISION}], got {precision}")
    return LogicalType(kind, numbers=(precision,))


def enum(symbols: Iterator[str]) -> LogicalType:
    """Return an enum; its symbols are checked, and matter to no rule.

    Raises:
        TranslationError: a symbol occurs twice, or is not a name.
    """
    _check_names("Enum symbol", "enum symbol", symbols)
    return LogicalType(Kind.ENUM)


def struct(columns: list[Column]) -> LogicalType:
    """Return a struct.

    Raises:
        TranslationError: a field occurs twice, or its name is not a name.
    """
    _check_names("Field", "field", (column.name for column in columns))
    return LogicalType(Kind.STRUCT, columns=tuple(columns))


def union(branches: list[tuple[str, LogicalType]], *, nullable: bool) -> LogicalType:
    """Return a union of named branches, which are nullable columns.

    Raises:
        TranslationError: a branch occurs twice, or its name is not a name.
    """
    _check_names("Union branch", "union branch", (name for name, _ in branches))
    return LogicalType(Kind.UNION, nullable, columns=tuple(Column(name, node.or_null()) for name, node in branches))


def array(element: LogicalType) -> LogicalType:
    """Return an array."""
    return LogicalType(Kind.ARRAY, parts=(element,))


def map_key(properties: Mapping[str, object]) -> LogicalType:
    """Return the type of the keys of a map whose keys are texts in its format."""
    length = properties.get("logical.key.length")
    if not isinstance(length, int) or isinstance(length, bool):
        return sized(Kind.VARCHAR)
    text_kind = Kind.CHAR if properties.get("logical.key.type") == "CHAR" else Kind.VARCHAR
    return sized(text_kind, length)


def map_of(key: LogicalType, value: LogicalType, flink_type: object = None) -> LogicalType:
    """Return a map, or the multiset that a format writes as a map from the element to its count.

    Args:
        key: the type of the keys.
        value: the type of the values.
        flink_type: what the schema says under `flink.type`.

    Raises:
        TranslationError: the count of a multiset is not an INT.
    """
    if flink_type != "multiset":
        return LogicalType(Kind.MAP, parts=(key, value))
    if value.kind is not Kind.INT:
        raise TranslationError(f"Unexpected value type for a MULTISET type: {_ddl(value)}")
    return LogicalType(Kind.MULTISET, parts=(key,))


def reference(name: str, *, nullable: bool = False) -> LogicalType:
    """Return a reference to a named type."""
    return LogicalType(Kind.REFERENCE, nullable, name=name)


def _ddl(node: LogicalType) -> str:
    name = f"`{node.name}`" if node.kind is Kind.REFERENCE else str(node)
    return name if node.nullable else f"{name} NOT NULL"


def _check_names(what: str, duplicate: str, names: Iterator[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if not name:
            raise TranslationError(f"{what} name must not be empty")
        if _BLANK.search(name):
            raise TranslationError(f"{what} name must not contain whitespace or control characters; got: '{name}'")
        if name in seen:
            raise TranslationError(f"Duplicate {duplicate}: {name}")
        seen.add(name)
