"""What a table becomes for rows of another type, as tables of cases."""

import json
from itertools import product

import pytest
from pyspark.sql.types import StructType

from strata.compat.logical.ddl import column_type
from strata.compat.logical.tables import ENGINES
from strata.compat.logical.types import Kind, LogicalType
from strata.serdes.client import Schema
from strata.spark_udfs.tables.changes import (
    ELEMENT,
    AddColumn,
    ChangeRefused,
    Path,
    RenameColumn,
    WidenColumn,
    compare_types,
    holds,
    path_text,
)
from strata.spark_udfs.tables.formats import Delta, Iceberg
from strata.spark_udfs.tables.notes import notes_of

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]  # Spark's parser reads the types

ICEBERG = Iceberg().rules(None, None)
DELTA = Delta().rules(None, None)


def ddl(text: str) -> StructType:
    """Return the type of columns."""
    return StructType.fromDDL(text)


def told(change) -> str:
    """Return a change as text."""
    match change:
        case AddColumn():
            return f"add {path_text(change.path)} {change.type.simpleString()}"
        case WidenColumn():
            return f"widen {path_text(change.path)} {change.old.simpleString()} to {change.new.simpleString()}"
        case RenameColumn():
            return f"rename {path_text(change.path)} to {change.name}"
    raise AssertionError(change)


# name, table, rows, changes in Iceberg, changes in Delta; None: refused
CASES = [
    ("the same", "a int", "a int", [], []),
    ("a new column", "a int", "a int, b string", ["add b string"], ["add b string"]),
    ("a column that rows lack", "a int, b string", "a int", [], []),
    ("a new nested field", "s struct<a: int>", "s struct<a: int, b: int>", ["add s.b int"], ["add s.b int"]),
    ("a field in an array", "l array<struct<a: int>>", "l array<struct<a: int, b: int>>",
     ["add l[].b int"], ["add l[].b int"]),
    ("a field in a map", "m map<string, struct<a: int>>", "m map<string, struct<a: int, b: int>>",
     ["add m{}.b int"], ["add m{}.b int"]),
    ("int to long", "a int", "a bigint", ["widen a int to bigint"], ["widen a int to bigint"]),
    ("float to double", "a float", "a double", ["widen a float to double"], ["widen a float to double"]),
    ("int to double", "a int", "a double", None, ["widen a int to double"]),
    ("long to double", "a bigint", "a double", None, None),
    ("double to float", "a double", "a float", [], []),
    ("long to int", "a bigint", "a int", [], []),
    ("more digits", "a decimal(9,2)", "a decimal(12,2)",
     ["widen a decimal(9,2) to decimal(12,2)"], ["widen a decimal(9,2) to decimal(12,2)"]),
    ("more digits behind the point", "a decimal(9,2)", "a decimal(12,4)",
     None, ["widen a decimal(9,2) to decimal(12,4)"]),
    ("fewer whole digits", "a decimal(9,2)", "a decimal(9,4)", None, None),
    ("a text for a number", "a int", "a string", None, None),
    ("a number for a text", "a string", "a int", None, None),
    ("local time for time", "a timestamp", "a timestamp_ntz", None, None),
    ("an element", "l array<int>", "l array<bigint>", ["widen l[] int to bigint"], ["widen l[] int to bigint"]),
    ("a record for a number", "a int", "a struct<b: int>", None, None),
    ("a required column that rows lack", "a int not null", "b int", None, None),
    ("two fields that differ in case", "a int", "a int, A int", None, None),
    ("a field that differs from its column in case", "Delay int", "delay int", [], []),
    ("a field named as a step", "s struct<key: int>", "s struct<key: bigint>",
     ["widen s.key int to bigint"], ["widen s.key int to bigint"]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "table", "rows", "iceberg", "delta"), CASES, ids=[case[0] for case in CASES])
def test_changes(name, table, rows, iceberg, delta):
    """A table gets columns, wider columns, or nothing; what would cast a value is refused."""
    for rules, expected in ((ICEBERG, iceberg), (DELTA, delta)):
        comparison = compare_types(ddl(table), ddl(rows), rules, "evolve")

        assert (expected is None) == bool(comparison.refusals), rules.format
        if expected is not None:
            assert expected == [told(change) for change in comparison.changes]


@pytest.mark.parametrize(("name", "table", "rows", "iceberg", "delta"), CASES, ids=[case[0] for case in CASES])
def test_no_change_in_mode_refuse(name, table, rows, iceberg, delta):
    """With `refuse` a table is never changed."""
    comparison = compare_types(ddl(table), ddl(rows), DELTA, "refuse")

    assert comparison.changes == []
    assert (delta != []) == bool(comparison.refusals)


# table, rows, changes, names
NEW_COLUMNS = [
    ("a int", "a string", ["add a_string string"], {("a",): "a_string"}),
    ("a int, a_string string", "a string", [], {("a",): "a_string"}),
    ("a int, a_string binary", "a string", ["add a_string_2 string"], {("a",): "a_string_2"}),
    ("s struct<a: int>", "s struct<a: string>", ["add s.a_string string"], {("s", "a"): "a_string"}),
    ("l array<int>", "l array<string>", ["add l_array array<string>"], {("l",): "l_array"}),
    ("l array<struct<a: int>>", "l array<struct<a: string>>",
     ["add l[].a_string string"], {("l", ELEMENT, "a"): "a_string"}),
    ("a decimal(9,2)", "a decimal(12,4)", ["add a_decimal_12_4 decimal(12,4)"], {("a",): "a_decimal_12_4"}),
    ("a int", "a bigint", ["widen a int to bigint"], {}),
]  # fmt: skip


@pytest.mark.parametrize(("table", "rows", "changes", "names"), NEW_COLUMNS)
def test_new_columns(table, rows, changes, names):
    """With `new_column` values that a column cannot hold go to a column named after their type."""
    comparison = compare_types(ddl(table), ddl(rows), ICEBERG, "new_column")

    assert comparison.refusals == []
    assert changes == [told(change) for change in comparison.changes]
    assert names == comparison.names


def test_renames():
    """An alias renames a column where the format tracks columns by id, unless the schema still has the old name."""
    aliases: dict[Path, tuple[str, ...]] = {("code",): ("currency",)}
    renamed = compare_types(ddl("currency string"), ddl("code string"), ICEBERG, "evolve", aliases)
    kept = compare_types(ddl("currency string"), ddl("code string, currency string"), ICEBERG, "evolve", aliases)
    untracked = compare_types(ddl("currency string"), ddl("code string"), DELTA, "evolve", aliases)

    assert ["rename currency to code"] == [told(change) for change in renamed.changes]
    assert ["add code string"] == [told(change) for change in kept.changes]
    assert ["add code string"] == [told(change) for change in untracked.changes]


def test_a_refusal_says_what_to_do():
    """A refusal names the column, both types and the ways out."""
    comparison = compare_types(ddl("o struct<delay: int>"), ddl("o struct<delay: double>"), ICEBERG, "evolve")

    text = str(ChangeRefused("lake.flights", comparison.refusals))

    assert "column o.delay is int in the table and double in the schema" in text
    assert "on_change='new_column'" in text
    assert "nothing was written" in text


def test_what_a_column_holds():
    """A value is put into a wider column only if it stays the same value."""
    pairs = {"bigint <- int": True, "double <- int": True, "double <- bigint": False, "float <- int": False}
    pairs |= {"decimal(20,0) <- bigint": True, "decimal(10,2) <- int": False, "int <- bigint": False}
    pairs |= {"timestamp_ntz <- date": True, "timestamp <- date": False, "string <- int": False}

    for pair, expected in pairs.items():
        table, rows = (ddl(f"a {text}")["a"].dataType for text in pair.split(" <- "))
        assert expected == holds(table, rows), pair


def test_notes():
    """A schema says what its columns mean, what they were called, and how older records are read."""
    number = {"name": "n", "type": ["int", "null"], "default": 5, "aliases": ["m"], "doc": "A number"}
    day = {"name": "day", "type": {"type": "int", "logicalType": "date"}, "default": 1}
    none = {"name": "none", "type": ["null", "int"], "default": None}
    enum = {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["A"]}, "default": "A"}
    inner = {"type": "array", "items": {"type": "record", "name": "L", "fields": [number]}}
    fields = [number, day, none, enum, {"name": "l", "type": inner, "default": []}]

    notes = notes_of(Schema(json.dumps({"type": "record", "name": "R", "fields": fields})))

    assert {("n",): "A number", ("l", ELEMENT, "n"): "A number"} == notes.docs
    assert {("n",): ("m",), ("l", ELEMENT, "n"): ("m",)} == notes.aliases
    assert {("n",): 5, ("e",): "A", ("l", ELEMENT, "n"): 5} == notes.defaults


SIMPLE = [
    *map(LogicalType, (Kind.BOOLEAN, Kind.TINYINT, Kind.SMALLINT, Kind.INT, Kind.BIGINT, Kind.FLOAT, Kind.DOUBLE)),
    *map(LogicalType, (Kind.ENUM, Kind.DATE, Kind.VARBINARY), (False,) * 3, ((), (), (8,))),
    *(LogicalType(kind, numbers=(6,)) for kind in (Kind.TIMESTAMP, Kind.TIMESTAMP_LTZ)),
    *(LogicalType(Kind.DECIMAL, numbers=n) for n in ((9, 2), (12, 2), (12, 4), (9, 4), (12, 0), (20, 0), (22, 2))),
]


@pytest.mark.parametrize("format", ["iceberg", "delta"])
def test_follow_and_check_agree(format):  # noqa: A002 - the option
    """A table follows a change of one type into another exactly where `strata check --tables` lets it pass."""
    rules = {"iceberg": ICEBERG, "delta": DELTA}[format]

    def refusals(before: LogicalType, after: LogicalType) -> int:
        table, rows = (ddl(f"a {column_type(node, format)}") for node in (before, after))
        return len(compare_types(table, rows, rules, "evolve").refusals)

    pairs = list(product(SIMPLE, SIMPLE))
    allowed = [(str(b), str(a)) for b, a in pairs if ENGINES[format].change(b, a) is None]
    assert allowed == [(str(b), str(a)) for b, a in pairs if not refusals(b, a)]
    assert 0 < len(allowed) < len(pairs)
