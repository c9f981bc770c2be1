"""The Arrow types of an Avro schema: a tree of columns, numbered from the root down.

    null                    null                   date                 date32
    boolean, int, long      bool, int32, int64     time-millis, micros  time32[ms], time64[us]
    float, double           float32, float64       timestamp-*          timestamp[ms | us | ns, UTC]
    bytes, fixed, duration  binary                 local-timestamp-*    timestamp[ms | us | ns]
    string, enum, uuid      string                 decimal              decimal128, decimal256 beyond 38 digits
    array, map, record      list, map, struct      union with null      the rest, nullable
    int|long, float|double  int64, float64         any other union      struct<member0, member1, …>, one of them set

`Style.SPARK` differs in the types that Spark lacks: timestamps are in microseconds, times of day and nanosecond
timestamps are integers. A uuid is the text as written; it is not validated.

Rules of this file: schema nodes in, columns out; no bytes and no plan.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum as Choice

import pyarrow as pa

from strata.serdes.avro.schema import Array, Enum, Fixed, Kind, Logical, Map, Named, Node, Primitive, Record, Union
from strata.serdes.errors import SchemaError

__all__ = ["ANY_SPAN", "ERROR_TYPE", "Column", "RecursiveSchema", "Span", "Storage", "Style", "UnsupportedSchema"]
__all__ += ["layout", "sparse"]

MAX_TYPES = 10_000
"""Records nested in records multiply; no table has this many columns."""
ERROR_TYPE = pa.struct([("reason", pa.string()), ("schema_id", pa.int32()), ("position", pa.int32())])
"""The type of the column `error` next to decoded columns; encoding ignores that column."""

_I32, _I64 = 2**31, 2**63


def sparse(count: int, values: Mapping[int, Mapping[str, object]], arrow_type: pa.StructType) -> pa.StructArray:
    """Return an array of structs that is null except in some rows.

    Args:
        count: the number of rows.
        values: the values that are not null, by row.
        arrow_type: the type of the array.
    """
    return pa.array([values.get(row) for row in range(count)], arrow_type) if values else pa.nulls(count, arrow_type)


class UnsupportedSchema(SchemaError):
    """A schema without an Arrow type; `path` names the field."""

    def __init__(self, path: str, why: str, way_out: str) -> None:
        place = f"at {path}" if path else "as a whole"
        super().__init__(f"no Arrow type for the reader schema {place}: {why}; {way_out}")
        self.path, self.why, self.way_out = path, why, way_out


class RecursiveSchema(UnsupportedSchema):
    """A schema with a record that contains itself."""


class Style(Choice):
    """The systems whose types the columns can have."""

    ARROW = "arrow"
    SPARK = "spark"


class Storage:
    """The ways in which the values of a column are stored in memory."""

    NULLS = 0
    FIXED = 1
    BINARY = 2
    LIST = 3
    STRUCT = 4


@dataclass(frozen=True, slots=True)
class Span:
    """The numbers, in the schema's unit, that a column accepts, and the factor to the column's unit."""

    low: int
    high: int
    factor: int = 1


@dataclass(eq=False, slots=True)
class Column:
    """A column.

    Attributes:
        storage: one of `Storage`.
        arrow: the Arrow type.
        nullable: whether the schema allows null.
        name: the name in the enclosing struct.
        children: the items of a list, the keys and values of a map, the members of a struct.
        width: bytes per value, for FIXED.
        span: the accepted numbers, for dates and times.
        members: for a union of several types, the child for each position in the union.
        symbols: the symbols of an enum.
        number: the position among all columns; the columns of a subtree have consecutive numbers.
        size: how many columns the subtree has.
    """

    storage: int
    arrow: pa.DataType
    nullable: bool = False
    name: str = ""
    children: tuple["Column", ...] = ()
    width: int = 0
    span: Span | None = None
    members: dict[int, "Column"] | None = None
    symbols: tuple[str, ...] | None = None
    number: int = 0
    size: int = 1

    def subtree(self) -> list["Column"]:
        """Return the column and all below it, in the order of their numbers."""
        return [self, *(column for child in self.children for column in child.subtree())]

    def field(self) -> pa.Field:
        """Return the column as a field of the enclosing struct."""
        return pa.field(self.name, self.arrow, self.nullable)


def layout(schema: Node, style: Style = Style.ARROW, *, members_by_type: bool = False) -> Column:
    """Return the columns of a schema.

    Args:
        schema: the parsed schema.
        style: whether columns have Arrow's or Spark's types.
        members_by_type: whether the members of a union are named by their types, instead of `member0`, `member1`, ….

    Raises:
        UnsupportedSchema: If Arrow has no type for a part of the schema; the error names the field.
    """
    root = _Layout(style, members_by_type).column(schema, "")
    for number, column in enumerate(root.subtree()):
        column.number, column.size = number, len(column.subtree())
    return root


# The range of Python's datetime, which the deserializer has too: year 1 to year 9999.
_DAYS = Span(-719_162, 2_932_896)
_MILLIS = Span(-62_135_596_800_000, 253_402_300_799_999)
_MICROS = Span(-62_135_596_800_000_000, 253_402_300_799_999_999)
ANY_SPAN = Span(-_I64, _I64 - 1)

_FIXED: dict[Kind, tuple[pa.DataType, int]] = {
    Kind.BOOLEAN: (pa.bool_(), 1),
    Kind.INT: (pa.int32(), 4),
    Kind.LONG: (pa.int64(), 8),
    Kind.FLOAT: (pa.float32(), 4),
    Kind.DOUBLE: (pa.float64(), 8),
}
_TIMES: dict[Style, dict[str, tuple[pa.DataType, int, Span]]] = {
    Style.ARROW: {
        "date": (pa.date32(), 4, _DAYS),
        "time-millis": (pa.time32("ms"), 4, Span(0, 86_399_999)),
        "time-micros": (pa.time64("us"), 8, Span(0, 86_399_999_999)),
        "timestamp-millis": (pa.timestamp("ms", "UTC"), 8, _MILLIS),
        "timestamp-micros": (pa.timestamp("us", "UTC"), 8, _MICROS),
        "timestamp-nanos": (pa.timestamp("ns", "UTC"), 8, ANY_SPAN),
        "local-timestamp-millis": (pa.timestamp("ms"), 8, _MILLIS),
        "local-timestamp-micros": (pa.timestamp("us"), 8, _MICROS),
        "local-timestamp-nanos": (pa.timestamp("ns"), 8, ANY_SPAN),
    },
    Style.SPARK: {
        "date": (pa.date32(), 4, Span(-_I32, _I32 - 1)),
        "time-millis": (pa.int32(), 4, Span(-_I32, _I32 - 1)),
        "time-micros": (pa.int64(), 8, ANY_SPAN),
        "timestamp-millis": (pa.timestamp("us", "UTC"), 8, Span(-_I64, _I64 - 1, 1000)),
        "timestamp-micros": (pa.timestamp("us", "UTC"), 8, ANY_SPAN),
        "timestamp-nanos": (pa.int64(), 8, ANY_SPAN),
        "local-timestamp-millis": (pa.timestamp("us"), 8, Span(-_I64, _I64 - 1, 1000)),
        "local-timestamp-micros": (pa.timestamp("us"), 8, ANY_SPAN),
        "local-timestamp-nanos": (pa.int64(), 8, ANY_SPAN),
    },
}
_MOST_DIGITS = {Style.ARROW: 76, Style.SPARK: 38}
_WIDER: dict[frozenset[Kind], Kind] = {
    frozenset({Kind.INT, Kind.LONG}): Kind.LONG,
    frozenset({Kind.FLOAT, Kind.DOUBLE}): Kind.DOUBLE,
}
"""Unions of two number types that become one column."""


class _Layout:
    """The columns of one schema; it knows which records it is inside of and how many columns it has made."""

    def __init__(self, style: Style, members_by_type: bool) -> None:
        self._style, self._members_by_type = style, members_by_type
        self._inside: set[int] = set()
        self._left = MAX_TYPES

    def column(self, node: Node, path: str) -> Column:
        self._left -= 1
        if self._left < 0:
            raise UnsupportedSchema(path, f"it has more than {MAX_TYPES} types", "choose `columns`")
        match node:
            case Primitive():
                return self._primitive(node.kind, node.logical, path)
            case Fixed(logical=Logical(name="decimal") as logical):
                return self._decimal(logical, path)
            case Fixed():
                return Column(Storage.BINARY, pa.binary())
            case Enum():
                return Column(Storage.BINARY, pa.string(), symbols=node.symbols)
            case Array():
                item = self.column(node.items, f"{path}[]")
                item.name = "element"
                return Column(Storage.LIST, pa.list_(item.field()), children=(item,))
            case Map():
                return self._map(node, path)
            case Record():
                return self._record(node, path)
            case Union():
                return self._union(node, path)

    def _primitive(self, kind: Kind, logical: Logical | None, path: str) -> Column:
        if logical is not None and logical.name == "decimal":
            return self._decimal(logical, path)
        times = _TIMES[self._style]
        if logical is not None and logical.name in times:
            arrow, width, span = times[logical.name]
            return Column(Storage.FIXED, arrow, width=width, span=span)
        if kind in _FIXED:
            arrow, width = _FIXED[kind]
            return Column(Storage.FIXED, arrow, width=width)
        if kind is Kind.NULL:
            return Column(Storage.NULLS, pa.null(), nullable=True)
        return Column(Storage.BINARY, pa.string() if kind is Kind.STRING else pa.binary())

    def _decimal(self, logical: Logical, path: str) -> Column:
        precision, most = logical.precision, _MOST_DIGITS[self._style]
        if precision > most:
            raise UnsupportedSchema(
                path,
                f"a decimal of precision {precision}, and {self._style.value.title()} allows {most}",
                "give a reader schema with a smaller precision, or without the logical type to get the bytes",
            )
        if precision > 38:
            return Column(Storage.FIXED, pa.decimal256(precision, logical.scale), width=32)
        return Column(Storage.FIXED, pa.decimal128(precision, logical.scale), width=16)

    def _map(self, node: Map, path: str) -> Column:
        value = self.column(node.values, f"{path}{{}}")
        key = Column(Storage.BINARY, pa.string(), name="key")
        value.name = "value"
        return Column(Storage.LIST, pa.map_(key.field(), value.field()), children=(key, value))

    def _record(self, node: Record, path: str) -> Column:
        if id(node) in self._inside:
            way_out = "leave the field out by `columns`, or give a reader schema without it"
            raise RecursiveSchema(path, f"the record {node.name} contains itself", way_out)
        self._inside.add(id(node))
        children = []
        for field in node.fields:
            child = self.column(field.type, f"{path}.{field.name}".lstrip("."))
            child.name = field.name
            children.append(child)
        self._inside.discard(id(node))
        return _struct(children)

    def _union(self, node: Union, path: str) -> Column:
        """Return the column of a union without null: one type, the wider number type, or one member for each."""
        others = [(index, branch) for index, branch in enumerate(node.branches) if not is_null(branch)]
        nullable = len(others) < len(node.branches)
        kinds = frozenset(branch.kind for _, branch in others if isinstance(branch, Primitive))
        if not others:
            return self._primitive(Kind.NULL, None, path)
        if len(others) == 1:
            column = self.column(others[0][1], path)
        elif len(others) == 2 and kinds in _WIDER:
            column = self._primitive(_WIDER[kinds], None, path)
        else:
            column = self._members(others, path)
        column.nullable |= nullable
        return column

    def _members(self, others: list[tuple[int, Node]], path: str) -> Column:
        members = {index: self.column(branch, f"{path}|{number}") for number, (index, branch) in enumerate(others)}
        names = _type_names([branch for _, branch in others]) if self._members_by_type else []
        for number, member in enumerate(members.values()):
            member.name, member.nullable = names[number] if names else f"member{number}", True
        column = _struct(list(members.values()))
        column.members = members
        return column


def _type_names(branches: list[Node]) -> list[str]:
    """Return the name of each branch: that of its type, with its namespace if another branch has the same."""
    names = [branch.simple_name if isinstance(branch, Named) else _word(branch) for branch in branches]
    return [
        branch.name.replace(".", "_") if isinstance(branch, Named) and names.count(name) > 1 else name
        for name, branch in zip(names, branches, strict=True)
    ]


def _word(branch: Node) -> str:
    return str(branch.kind) if isinstance(branch, Primitive) else type(branch).__name__.lower()


def is_null(node: Node) -> bool:
    """Return whether a schema is the type null."""
    return isinstance(node, Primitive) and node.kind is Kind.NULL


def _struct(children: list[Column]) -> Column:
    return Column(Storage.STRUCT, pa.struct([child.field() for child in children]), children=tuple(children))
