"""What a table must become before it can hold rows of another type, and what it cannot become.

A column keeps each value as it was written. So a column may get wider where every value of the old type is a value of
the new one and the table format can do it; everything else that would cast a value is refused, or gets a column of its
own.

Paths are tuples of names as `ALTER TABLE` takes them: `element` inside an array, `key` and `value` inside a map.

Rules of this file: types in, changes out; no session, no table.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias, get_args

from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StructField,
    StructType,
    TimestampNTZType,
)

__all__ = [
    "ELEMENT",
    "KEY",
    "VALUE",
    "AddColumn",
    "Change",
    "ChangeRefused",
    "Comparison",
    "OnChange",
    "Path",
    "Refusal",
    "RenameColumn",
    "Step",
    "TableRules",
    "WidenColumn",
    "compare_types",
    "holds",
    "path_text",
    "same_type",
]

Path: TypeAlias = tuple[str, ...]
OnChange = Literal["evolve", "refuse", "new_column"]
"""What to do with a difference: change the table unless a value is cast, never change it, or add a column instead."""

_INTEGERS: Final[tuple[type[DataType], ...]] = (ByteType, ShortType, IntegerType, LongType)
_DIGITS: Final[Mapping[type[DataType], int]] = {ByteType: 3, ShortType: 5, IntegerType: 10, LongType: 20}
"""Decimal digits that hold every value of an integer type, as Delta counts them."""
_NO_WORD: Final = re.compile(r"\W+")


class Step(str):
    """A step of a path into an array or a map, which a field of the same name is not."""

    sign: str

    def __new__(cls, name: str, sign: str) -> "Step":
        """Return a step by its name in `ALTER TABLE` and its sign for people."""
        step = super().__new__(cls, name)
        step.sign = sign
        return step


ELEMENT: Final = Step("element", "[]")
KEY: Final = Step("key", "{key}")
VALUE: Final = Step("value", "{}")


class ChangeRefused(ValueError):
    """A table that cannot hold the rows of a version without casting values; nothing was written.

    Attributes:
        refusals: what is refused, each with the ways out.
    """

    def __init__(self, table: str, refusals: "Sequence[Refusal]") -> None:
        self.refusals = tuple(refusals)
        lines = "".join(f"\n- {refusal}" for refusal in self.refusals)
        super().__init__(f"the table {table} cannot follow; nothing was written, and the checkpoint stays:{lines}")


@dataclass(frozen=True, slots=True)
class AddColumn:
    """A column, or a field inside one, that the table lacks."""

    path: Path
    type: DataType


@dataclass(frozen=True, slots=True)
class WidenColumn:
    """A column whose type gets wider."""

    path: Path
    old: DataType
    new: DataType


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """A column that gets another name and keeps its values."""

    path: Path
    name: str


Change = AddColumn | WidenColumn | RenameColumn


@dataclass(frozen=True, slots=True)
class Refusal:
    """A difference that the table does not follow."""

    path: Path
    why: str
    ways_out: tuple[str, ...]

    def __str__(self) -> str:
        """Return the sentence for people."""
        ways = "; or ".join(self.ways_out)
        return f"column {path_text(self.path)} {self.why}. Ways out: {ways}"


@dataclass(frozen=True, slots=True)
class TableRules:
    """What a table format, or one table of it, can do.

    Attributes:
        format: the name of the format, as in messages.
        widens: whether the format can change a type into another one, and `is_widening` permits it.
        is_widening: whether the table has type widening on.
        turn_on: how to turn type widening on.
        tracks_ids: whether columns can be renamed without rewriting files.
        refuses_type: returns why no column can have a type, or None.
        refuses_name: returns why no column can have a name, or None.
    """

    format: str
    widens: Callable[[DataType, DataType], bool]
    is_widening: bool = True
    turn_on: str = ""
    tracks_ids: bool = True
    refuses_type: Callable[[DataType], str | None] = lambda _type: None
    refuses_name: Callable[[str], str | None] = lambda _name: None


@dataclass(slots=True)
class Comparison:
    """How the rows' type differs from the table's.

    Attributes:
        changes: what the table must become, in order.
        refusals: what it cannot become.
        names: path of a field of the rows -> name of the table's column that gets its values, where they differ.
    """

    changes: list[Change] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    names: dict[Path, str] = field(default_factory=dict)


def compare_types(
    table: StructType,
    rows: StructType,
    rules: TableRules,
    on_change: OnChange,
    aliases: Mapping[Path, Sequence[str]] | None = None,
) -> Comparison:
    """Return what a table needs to hold rows.

    Args:
        table: the type of the table.
        rows: the type of the rows.
        rules: what the table can do.
        on_change: what to do with a difference.
        aliases: former names of the rows' fields by path.

    Raises:
        ValueError: If `on_change` is unknown.
    """
    if on_change not in get_args(OnChange):
        raise ValueError(f"on_change is {on_change!r}; allowed are {', '.join(get_args(OnChange))}")
    comparer = _Comparer(rules, on_change, aliases or {})
    comparer.compare_structs((), (), table, rows)
    return comparer.result


class _Comparer:
    def __init__(self, rules: TableRules, on_change: OnChange, aliases: Mapping[Path, Sequence[str]]) -> None:
        self._rules = rules
        self._on_change = on_change
        self._aliases = aliases
        self.result = Comparison()

    def compare_structs(self, place: Path, source: Path, table: StructType, rows: StructType) -> None:
        """Compare two structs; `place` is the path in the table, `source` the path in the rows."""
        columns = {column.name.lower(): column for column in table}
        wanted = {field.name.lower() for field in rows}
        filled: set[str] = set()
        for row_field in rows:
            column = self._column_of(place, source, row_field, columns, wanted)
            if column is None:
                self._add((*place, row_field.name), row_field.dataType)
                filled.add(row_field.name.lower())
                continue
            name = column.name.lower()
            if name in filled:
                why = "differs from another field of the schema in case only, and tables ignore case"
                self._refuse((*place, row_field.name), why, ("rename the field in the schema",))
                continue
            filled.add(name)
            self._compare_field(place, source, column, row_field, columns)
        for column in table:
            if not column.nullable and column.name.lower() not in filled:
                ways = (f"ALTER COLUMN {_sql_path((*place, column.name))} DROP NOT NULL",)
                self._refuse((*place, column.name), "is NOT NULL in the table, and the schema has no such field", ways)

    def _column_of(
        self,
        place: Path,
        source: Path,
        row_field: StructField,
        columns: Mapping[str, StructField],
        wanted: set[str],
    ) -> StructField | None:
        """Return the table's column for a field, by its name or by an alias; None if there is none."""
        column = columns.get(row_field.name.lower())
        if column is not None or not self._rules.tracks_ids:
            return column
        for alias in self._aliases.get((*source, row_field.name), ()):
            former = columns.get(alias.lower())
            if former is not None and alias.lower() not in wanted:
                if self._on_change == "refuse":
                    self._refuse((*place, former.name), f"has the name {row_field.name} in the schema", _ALTER_FIRST)
                else:
                    self.result.changes.append(RenameColumn((*place, former.name), row_field.name))
                return StructField(row_field.name, former.dataType, former.nullable)
        return None

    def _compare_field(
        self,
        place: Path,
        source: Path,
        column: StructField,
        row_field: StructField,
        columns: Mapping[str, StructField],
    ) -> None:
        path, row_path = (*place, column.name), (*source, row_field.name)
        changes, refusals = len(self.result.changes), len(self.result.refusals)
        self._compare(path, row_path, column.dataType, row_field.dataType)
        if self._on_change != "new_column" or len(self.result.refusals) == refusals:
            return
        del self.result.changes[changes:], self.result.refusals[refusals:]
        self._move_to_new_column(place, source, row_field, columns)

    def _move_to_new_column(
        self, place: Path, source: Path, row_field: StructField, columns: Mapping[str, StructField]
    ) -> None:
        """Give a field the first column named after it and its type that is free, or has its type."""
        stem = f"{row_field.name}_{_type_word(row_field.dataType)}"
        names = [stem, *(f"{stem}_{number}" for number in range(2, 100))]
        name = next(
            name
            for name in names
            if (column := columns.get(name.lower())) is None or same_type(column.dataType, row_field.dataType)
        )
        self.result.names[(*source, row_field.name)] = name
        if name.lower() not in columns:
            self._add((*place, name), row_field.dataType)

    def _compare(self, path: Path, source: Path, table: DataType, rows: DataType) -> None:
        if isinstance(table, StructType) and isinstance(rows, StructType):
            self.compare_structs(path, source, table, rows)
        elif isinstance(table, ArrayType) and isinstance(rows, ArrayType):
            self._compare((*path, ELEMENT), (*source, ELEMENT), table.elementType, rows.elementType)
        elif isinstance(table, MapType) and isinstance(rows, MapType):
            self._compare((*path, KEY), (*source, KEY), table.keyType, rows.keyType)
            self._compare((*path, VALUE), (*source, VALUE), table.valueType, rows.valueType)
        elif not holds(table, rows):
            self._widen(path, table, rows)

    def _widen(self, path: Path, table: DataType, rows: DataType) -> None:
        rules = self._rules
        ways: tuple[str, ...]
        can = not any(name is KEY for name in path) and rules.widens(table, rows)
        if can and rules.is_widening and self._on_change != "refuse":
            self.result.changes.append(WidenColumn(path, table, rows))
            return
        why = f"is {table.simpleString()} in the table and {rows.simpleString()} in the schema"
        if can and not rules.is_widening:
            ways = (rules.turn_on, *_OTHER_WAYS)
        elif can:
            ways = (f"ALTER COLUMN {_sql_path(path)} TYPE {rows.simpleString()}", "on_change='evolve'")
        else:
            why += f", and {rules.format} cannot change one into the other without casting values"
            ways = _OTHER_WAYS
        self._refuse(path, why, ways)

    def _add(self, path: Path, data_type: DataType) -> None:
        refused = _refused(path, data_type, self._rules)
        if refused is not None:
            self._refuse(*refused)
        elif self._on_change == "refuse":
            self._refuse(path, "is missing in the table", _ALTER_FIRST)
        else:
            self.result.changes.append(AddColumn(path, data_type))

    def _refuse(self, path: Path, why: str, ways_out: tuple[str, ...]) -> None:
        self.result.refusals.append(Refusal(path, why, ways_out))


_ALTER_FIRST: Final = ("change the table first", "on_change='evolve'")
_OTHER_WAYS: Final = (
    "on_change='new_column' writes the values to a column of their own",
    "write to a new table with a new checkpoint",
    "register a version in which the field has its former type",
)


def _refused(path: Path, data_type: DataType, rules: TableRules) -> tuple[Path, str, tuple[str, ...]] | None:
    """Return where and why no column can have a type or a name, and what to do."""
    if not isinstance(path[-1], Step) and (why := rules.refuses_name(path[-1])):
        return path, why, ("rename the field in the schema, with its former name as an alias",)
    if why := rules.refuses_type(data_type):
        return path, why, ("leave the field out with columns=", "change its type in the schema")
    if isinstance(data_type, StructType):
        lowered = [nested.name.lower() for nested in data_type]
        for place, nested in enumerate(data_type):
            if lowered.index(nested.name.lower()) != place:
                return (*path, nested.name), "differs from another field in case only", ("rename the field",)
    children = _children(data_type)
    refusals = (_refused((*path, name), child, rules) for name, child in children)
    return next((refusal for refusal in refusals if refusal is not None), None)


def _children(data_type: DataType) -> list[tuple[str, DataType]]:
    if isinstance(data_type, StructType):
        return [(nested.name, nested.dataType) for nested in data_type]
    if isinstance(data_type, ArrayType):
        return [(ELEMENT, data_type.elementType)]
    if isinstance(data_type, MapType):
        return [(KEY, data_type.keyType), (VALUE, data_type.valueType)]
    return []


def same_type(left: DataType, right: DataType) -> bool:
    """Return whether two types are equal but for what may be null, and comments."""
    return left.simpleString() == right.simpleString()


def holds(table: DataType, rows: DataType) -> bool:
    """Return whether a column has every value of another type, as the same value.

    Args:
        table: the type of the column.
        rows: the type of the values.
    """
    if same_type(table, rows):
        return True
    old, new = type(rows), type(table)
    if old in _INTEGERS:
        if new in _INTEGERS:
            return _INTEGERS.index(new) > _INTEGERS.index(old)
        if isinstance(table, DecimalType):
            return table.precision - table.scale >= _DIGITS[old]
        return (new is DoubleType and old is not LongType) or (new is FloatType and old in (ByteType, ShortType))
    if isinstance(rows, FloatType):
        return new is DoubleType
    if isinstance(rows, DecimalType) and isinstance(table, DecimalType):
        whole = table.precision - table.scale >= rows.precision - rows.scale
        return whole and table.scale >= rows.scale
    return isinstance(rows, DateType) and new is TimestampNTZType


def path_text(path: Path) -> str:
    """Return a path as people write it, such as `lines[].price`."""
    text = ""
    for name in path:
        text += name.sign if isinstance(name, Step) else f".{name}"
    return text.removeprefix(".")


def _sql_path(path: Path) -> str:
    return ".".join(f"`{name.replace('`', '``')}`" if _NO_WORD.search(name) else name for name in path)


def _type_word(data_type: DataType) -> str:
    """Return a word for a type that may stand in a column's name."""
    if isinstance(data_type, StructType | ArrayType | MapType):
        return data_type.typeName()
    return _NO_WORD.sub("_", data_type.simpleString()).strip("_")
