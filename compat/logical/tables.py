"""The kinds of tables: what each can hold, and how far its columns can change. A kind of table is a row of a table.

`POLICY` are the two kinds of the policy LOGICAL of the Confluent Schema Registry 8.5, from its answers. `ENGINES` are
the tables that `table_statement` makes, by the rules of the engines themselves: `harness/table_judges.py` asks them.

A table of an engine stays as it is where its columns hold the new values as they are, and widens where the engine can
do that. Its columns may be null, so that it keeps a column that a later version lacks.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from strata.compat.logical.ddl import column_type, counted_unit
from strata.compat.logical.types import CONTAINERS, UNBOUNDED, Kind, LogicalType

__all__ = ["ENGINES", "FLINK", "ICEBERG", "POLICY", "TableRules"]

_Change = Callable[[LogicalType, LogicalType], str | None]
_Key = Callable[[LogicalType], tuple[object, ...]]
_KINDS: Final = frozenset(Kind)
_NO_KINDS: Final[frozenset[Kind]] = frozenset()


def _as_written(name: str) -> str:
    return name


def _anything(_node: LogicalType) -> str:
    return ""


@dataclass(frozen=True, slots=True, eq=False)
class TableRules:
    """What tables of one kind can hold, and how they can change.

    Attributes:
        name: as messages write it.
        label: as advice writes it.
        change: returns None if a column can change from one type without parts into another, else why not, as the end
            of the message; an empty text says no more.
        refused: returns why no column can have a type without parts, else an empty text.
        word: returns how messages write a type.
        column_name: returns what names of the same column share.
        key: returns what keys of maps that count as one type share; None if keys change like other types.
        has_multisets: whether a multiset is a type, not a map from the element to its count.
        is_case_blind: whether names that differ in case only are one name to it, and a struct needs a field.
        columns_not_null: whether columns can be NOT NULL; otherwise every column may be null.
        elements_not_null: whether elements, keys and values can be NOT NULL.
        added_text: what a new column that is NOT NULL lacks.
        now_required_text: what a column lacks that becomes NOT NULL.
        fills_added: the kinds of columns whose default fills rows that were written before they were added.
        fills_nulls: the kinds of columns whose default stands for a null.
        keeps_defaults: whether a default may not go.
        keeps_columns: whether a column may neither go nor move.
    """

    name: str
    label: str
    change: _Change
    refused: Callable[[LogicalType], str] = _anything
    word: Callable[[LogicalType], str] = str
    column_name: Callable[[str], str] = _as_written
    key: _Key | None = None
    has_multisets: bool = True
    is_case_blind: bool = False
    columns_not_null: bool = True
    elements_not_null: bool = False
    added_text: str = ""
    now_required_text: str = ""
    fills_added: frozenset[Kind] = _NO_KINDS
    fills_nulls: frozenset[Kind] = _NO_KINDS
    keeps_defaults: bool = False
    keeps_columns: bool = False


# Changes of primitive types under the policy.

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
_TIMESTAMPS: Final = frozenset({Kind.TIMESTAMP, Kind.TIMESTAMP_LTZ})
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
_MILLIS: Final = 3
_MICROS: Final = 6  # digits of a second above which Iceberg stores nanoseconds


def _iceberg(node: LogicalType) -> tuple[object, ...]:
    """Return the type of Iceberg that holds a type: its name, and the parameters that tell it from others."""
    name = _ICEBERG_NAMES.get(node.kind)
    if name is not None:
        return (name,)
    if node.kind is Kind.TIME:
        return (node.kind,)
    if node.kind in _TEMPORAL:
        return (node.kind, node.numbers[0] > _MICROS)
    return (node.kind, *node.numbers)


_NO_VARIANT: Final = "VARIANT needs Iceberg's variant type, which arrived in format-version 3"


def _not_in_iceberg(node: LogicalType) -> str:
    if node.kind is Kind.VARIANT:
        return _NO_VARIANT
    if node.kind in _TIMESTAMPS and node.numbers[0] > _MICROS:
        return f"{node} needs Iceberg's nanosecond timestamp types, which arrived in format-version 3"
    return ""


FLINK: Final = TableRules(
    "FLINK",
    "Flink",
    _flink_change,
    elements_not_null=True,
    added_text="added column is neither nullable nor defaulted, so rows written before it existed have no value for it",
    now_required_text="column was nullable and is now NOT NULL; pre-existing rows may hold nulls",
    fills_added=_KINDS,
    keeps_defaults=True,
)
ICEBERG: Final = TableRules(
    "ICEBERG_V2",
    "Iceberg (format version 2)",
    _iceberg_change,
    refused=_not_in_iceberg,
    key=_iceberg,
    has_multisets=False,
    is_case_blind=True,
    added_text="added field is neither nullable nor defaulted, so pre-existing rows have no value for it; "
    "format-version 2 cannot store a column default",
    now_required_text="field was nullable and is now non-nullable; pre-existing rows may hold nulls",
    fills_added=CONTAINERS,
    fills_nulls=CONTAINERS,
    keeps_columns=True,
)
POLICY: Final = (FLINK, ICEBERG)
"""The kinds of tables of the policy LOGICAL, in the order of its findings."""


# Tables of engines: how the types of columns change, by their words in the engine's SQL.

_Pairs = frozenset[tuple[str, str]]
_EXACT: Final[_Pairs] = frozenset(
    {
        ("TINYINT", "SMALLINT"), ("TINYINT", "INT"), ("TINYINT", "BIGINT"), ("TINYINT", "FLOAT"), ("TINYINT", "DOUBLE"),
        ("SMALLINT", "INT"), ("SMALLINT", "BIGINT"), ("SMALLINT", "FLOAT"), ("SMALLINT", "DOUBLE"),
        ("INT", "BIGINT"), ("INT", "DOUBLE"), ("FLOAT", "DOUBLE"), ("DATE", "TIMESTAMP_NTZ"),
    }
)  # fmt: skip
"""The pairs of types of which the second has each value of the first as it is."""
_WHOLE_DIGITS: Final = {"TINYINT": 3, "SMALLINT": 5, "INT": 10, "BIGINT": 20}  # as Delta counts them
_FEWEST_DIGITS: Final = 10  # of a decimal that an integer column of Delta can become


@dataclass(frozen=True, slots=True)
class _Columns:
    """How the columns of an engine change.

    Attributes:
        dialect: the dialect of its statements.
        widens: the pairs of types of which it can change the first into the second.
        widens_scale: whether a decimal can get a larger scale, and an integer become a decimal.
        keeps_scale: whether a column can take no decimals of another scale, and no integers if it is a decimal.
        same: the word for kinds whose types are one type to it.
    """

    dialect: str
    widens: _Pairs
    widens_scale: bool = False
    keeps_scale: bool = False
    same: Mapping[Kind, str] = field(default_factory=dict)

    def word(self, node: LogicalType) -> str:
        """Return how messages write a type."""
        return column_type(node, self.dialect)

    def change(self, before: LogicalType, after: LogicalType) -> str | None:
        """Return why a column cannot take values of another type in addition to those that it has."""
        words = self._stored(before), self._stored(after)
        units = counted_unit(before, words[0]), counted_unit(after, words[1])
        if units[0] and units[1] and units[0] != units[1]:
            return f" (the column counts {units[0]}, the new values count {units[1]})"
        if words[0] == words[1] or words in self.widens or words[::-1] in _EXACT:
            return None
        if self._has_all(before, after) or (self._has_all(after, before) and self._can_become(before, after)):
            return None
        if before.kind is after.kind is Kind.DECIMAL:
            return _SCALE if not self.widens_scale else " (neither type has every value of the other)"
        wider = sorted(wide for narrow, wide in self.widens if narrow == words[0])
        return f" ({words[0]} can become {' or '.join(wider)})" if wider else ""

    def _stored(self, node: LogicalType) -> str:
        return self.same.get(node.kind) or self.word(node)

    def _has_all(self, column: LogicalType, values: LogicalType) -> bool:
        """Return whether a decimal column has each of other numbers as it is."""
        if column.kind is not Kind.DECIMAL:
            return False
        precision, scale = column.numbers
        if values.kind is not Kind.DECIMAL:
            digits = _WHOLE_DIGITS.get(self.word(values))
            return not self.keeps_scale and digits is not None and precision - scale >= digits
        most, places = values.numbers
        has_places = scale == places if self.keeps_scale else scale >= places
        return has_places and precision - scale >= most - places

    def _can_become(self, before: LogicalType, after: LogicalType) -> bool:
        """Return whether the engine can make a column a decimal that has all of its values."""
        if before.kind is not Kind.DECIMAL:
            return self.widens_scale and after.numbers[0] - after.numbers[1] >= _FEWEST_DIGITS
        return self.widens_scale or before.numbers[1] == after.numbers[1]

    def rules(
        self,
        label: str,
        refused: Callable[[LogicalType], str] = _anything,
        *,
        is_case_blind: bool = True,
        keeps_keys: bool = False,
    ) -> TableRules:
        """Return the rules of the engine's tables."""
        return TableRules(
            self.dialect,
            label,
            self.change,
            refused=refused,
            word=self.word,
            column_name=str.lower if is_case_blind else _as_written,
            key=self._key if keeps_keys else None,
            has_multisets=False,
            is_case_blind=is_case_blind,
            columns_not_null=False,
        )

    def _key(self, node: LogicalType) -> tuple[object, ...]:
        return (_ICEBERG_NAMES.get(node.kind, node.kind) if node.columns or node.parts else self._stored(node),)


def _not_in_flink(node: LogicalType) -> str:
    if node.kind is Kind.UNION:
        return "Flink's Avro format cannot read a union of several types"
    if node.kind is Kind.VARIANT:
        return "Flink's Avro format cannot read VARIANT"
    if node.kind in (Kind.MAP, Kind.MULTISET) and node.parts[0].kind not in _TEXTS:
        return f"Flink's Avro format reads maps by text, not by {node.parts[0].kind}"
    if node.kind in _TEMPORAL and node.numbers[0] > _MILLIS:
        return f"Flink's Avro format reads {node.kind} with a precision of at most {_MILLIS}"
    return ""


def _variant(node: LogicalType) -> str:
    return _NO_VARIANT if node.kind is Kind.VARIANT else ""


ENGINES: Final[Mapping[str, TableRules]] = {
    "iceberg": _Columns("iceberg", frozenset({("INT", "BIGINT"), ("FLOAT", "DOUBLE")})).rules(
        "Iceberg (format version 2)", _variant, keeps_keys=True
    ),
    "delta": _Columns(
        "delta",
        _EXACT - {("TINYINT", "FLOAT"), ("SMALLINT", "FLOAT")},
        widens_scale=True,
    ).rules("Delta with type widening"),
    "flink": _Columns(
        "flink",
        _EXACT,
        keeps_scale=True,
        same={
            **dict.fromkeys(_TEXTS, "STRING"),
            **dict.fromkeys(_BYTES, "BYTES"),
            **{kind: str(kind) for kind in _TEMPORAL},
        },
    ).rules("Flink", _not_in_flink, is_case_blind=False),
}
"""The tables of engines by the name of their dialect, with columns that may be null."""
