"""Tables of engines: the rules of `strata check --tables`, and the engines themselves beside them."""

import json

import pytest

from harness.table_cases import JUDGES, Pair, judged, leaf_pairs, recorded_pairs
from harness.table_files import Changed, differences
from strata.compat.formats import FORMATS
from strata.compat.limits import DEFAULT_LIMITS
from strata.compat.logical.ddl import column_type
from strata.compat.logical.policy import check_engines, translate
from strata.compat.logical.tables import ENGINES
from strata.compat.schema import SchemaFormat


def logical(type_, name, **more):
    """Return an Avro type with a logical type."""
    return {"type": type_, "logicalType": name, **more}


def decimal(precision, scale):
    """Return a decimal in bytes."""
    return logical("bytes", "decimal", precision=precision, scale=scale)


def line(*fields):
    """Return an array of records."""
    named = [{"name": name, "type": type_} for name, type_ in fields]
    return {"type": "array", "items": {"type": "record", "name": "Line", "fields": named}}


TEXT_MAP = {"type": "map", "values": "int"}
ENUM = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
FIXED = {"type": "fixed", "name": "F", "size": 4}
ALL = ("iceberg", "delta", "flink")
NO_CHANGE, NO_COLUMN, OTHER_KIND = "UNSUPPORTED_TYPE_CHANGE", "UNREPRESENTABLE_TYPE", "TYPE_MISMATCH"
# name, fields before, fields after, the engines that refuse it, the rule, the path, the types
ROWS = [
    ("a field more", {"a": "int"}, {"a": "int", "b": "string"}, (), "", "", ""),
    ("a field less", {"a": "int", "b": "string"}, {"a": "int"}, (), "", "", ""),
    ("fields in another order", {"a": "int", "b": "string"}, {"b": "string", "a": "int"}, (), "", "", ""),
    ("null or not", {"a": "int"}, {"a": ["null", "int"]}, (), "", "", ""),
    ("null no longer", {"a": ["null", "int"]}, {"a": "int"}, (), "", "", ""),
    ("int to long", {"a": "int"}, {"a": "long"}, (), "", "", ""),
    ("long to int", {"a": "long"}, {"a": "int"}, (), "", "", ""),
    ("float to double", {"a": "float"}, {"a": "double"}, (), "", "", ""),
    ("int to double", {"a": "int"}, {"a": "double"}, ("iceberg",), NO_CHANGE, "a", "INT to DOUBLE"),
    ("double to int", {"a": "double"}, {"a": "int"}, (), "", "", ""),
    ("int to float", {"a": "int"}, {"a": "float"}, ALL, NO_CHANGE, "a", "INT to FLOAT"),
    ("long to double", {"a": "long"}, {"a": "double"}, ALL, NO_CHANGE, "a", "BIGINT to DOUBLE"),
    ("int to string", {"a": "int"}, {"a": "string"}, ALL, NO_CHANGE, "a", "INT to STRING"),
    ("string to bytes", {"a": "string"}, {"a": "bytes"}, ALL, NO_CHANGE, "a", "STRING to B"),
    ("enum to string", {"a": ENUM}, {"a": "string"}, (), "", "", ""),
    ("symbols", {"a": ENUM}, {"a": {**ENUM, "symbols": ["B"]}}, (), "", "", ""),
    ("fixed to bytes", {"a": FIXED}, {"a": "bytes"}, (), "", "", ""),
    ("more digits", {"a": decimal(9, 2)}, {"a": decimal(12, 2)}, (), "", "", ""),
    ("fewer digits", {"a": decimal(12, 2)}, {"a": decimal(9, 2)}, (), "", "", ""),
    ("a larger scale", {"a": decimal(9, 2)}, {"a": decimal(12, 4)},
     ("iceberg", "flink"), NO_CHANGE, "a", "DECIMAL(9, 2) to DECIMAL(12, 4)"),
    ("more places for fewer digits", {"a": decimal(9, 2)}, {"a": decimal(9, 4)},
     ALL, NO_CHANGE, "a", "DECIMAL(9, 2) to DECIMAL(9, 4)"),
    ("int to decimal", {"a": "int"}, {"a": decimal(12, 2)},
     ("iceberg", "flink"), NO_CHANGE, "a", "INT to DECIMAL(12, 2)"),
    ("date to local time", {"a": logical("int", "date")}, {"a": logical("long", "local-timestamp-millis")},
     ("iceberg", "flink"), NO_CHANGE, "a", "DATE to TIMESTAMP"),
    ("date to timestamp", {"a": logical("int", "date")}, {"a": logical("long", "timestamp-millis")},
     ALL, NO_CHANGE, "a", "DATE to TIMESTAMP"),
    ("a field of an element", {"a": line(("x", "int"))}, {"a": line(("x", "int"), ("y", "int"))}, (), "", "", ""),
    ("a wider field of an element", {"a": line(("x", "int"))}, {"a": line(("x", "long"))}, (), "", "", ""),
    ("another field of an element", {"a": line(("x", "int"))}, {"a": line(("x", "string"))},
     ALL, NO_CHANGE, "a[].x", "INT to STRING"),
    ("a wider value", {"a": TEXT_MAP}, {"a": {**TEXT_MAP, "values": "long"}}, (), "", "", ""),
    ("another value", {"a": TEXT_MAP}, {"a": {**TEXT_MAP, "values": "string"}},
     ALL, NO_CHANGE, "a{}", "INT to STRING"),
    ("a scalar to an array", {"a": "int"}, {"a": {"type": "array", "items": "int"}},
     ALL, OTHER_KIND, "a", "INT to ARRAY"),
]  # fmt: skip


def schema(fields):
    """Return a parsed record."""
    named = [{"name": name, "type": type_} for name, type_ in fields.items()]
    text = json.dumps({"type": "record", "name": "R", "fields": named})
    return FORMATS[SchemaFormat.AVRO].parse(text, strict=True)


def verdicts(before, after, engines=ALL):
    """Return the findings of each engine that has some."""
    checks = check_engines(schema(after), [(1, schema(before), "")], engines, DEFAULT_LIMITS)
    return {check.rules.name: check.findings for check in checks}


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_changes(row):
    """Each engine's tables follow a change or not, and a refusal names the rule, the column and both types."""
    _, before, after, engines, rule, path, types = row

    found = verdicts(before, after)

    assert set(engines) == set(found)
    for findings in found.values():
        assert [(rule, path)] == [(finding.rule, finding.path) for finding in findings]
        assert f"{findings[0].before} to {findings[0].after}".startswith(types)


# name, the fields, the engines whose tables cannot hold it, the rule
HOLDS = [
    ("two names of one column", {"a": "int", "A": "int"}, ("iceberg", "delta"), "FIELD_NAME_CASE_COLLISION"),
    ("a union", {"a": ["int", "string"]}, ("flink",), NO_COLUMN),
    ("a time in microseconds", {"a": logical("long", "time-micros")}, ("flink",), NO_COLUMN),
    ("too many digits", {"a": decimal(39, 2)}, ALL, "PRECISION_OUT_OF_RANGE"),
    ("a record in itself", {"a": ["null", "R"]}, ALL, "CYCLIC_TYPE"),
]


@pytest.mark.parametrize("row", HOLDS, ids=[row[0] for row in HOLDS])
def test_types(row):
    """What an engine's tables cannot hold is refused for a first version too."""
    _, fields, engines, rule = row

    checks = check_engines(schema(fields), [], ALL, DEFAULT_LIMITS)

    assert {engine: [rule] for engine in engines} == {
        check.rules.name: [finding.rule for finding in check.findings] for check in checks
    }


def test_what_is_not_a_record():
    """A schema without fields is not a table."""
    text = FORMATS[SchemaFormat.AVRO].parse('"string"', strict=True)

    assert ["NO_TABLE"] == [
        finding.rule for check in check_engines(text, [], ["delta"], DEFAULT_LIMITS) for finding in check.findings
    ]


def test_units_of_times():
    """A column that counts milliseconds does not get microseconds, although the engine would widen its type."""
    found = verdicts({"a": logical("int", "time-millis")}, {"a": logical("long", "time-micros")}, ["iceberg"])

    assert "counts milliseconds, the new values count microseconds" in found["iceberg"][0].text


def test_all_versions_count():
    """A table keeps the columns of old versions, so a type that came back after a gap is compared with these."""
    versions = [(1, schema({"a": "int", "b": "string"}), ""), (2, schema({"a": "int"}), "")]

    (check,) = check_engines(schema({"a": "int", "b": "int"}), versions, ["delta"], DEFAULT_LIMITS)

    assert (1, "b") == (check.version, check.findings[0].path)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("engine", ALL)
def test_the_engines_on_the_rows(engine):
    """Each engine has the opinion on the changes above that its rules have."""
    pairs = [Pair(row[0], *(translate(schema(fields), "", DEFAULT_LIMITS) for fields in row[1:3])) for row in ROWS]

    tally = judged(JUDGES[f"--tables {engine}"], pairs)

    assert ({}, {}, {}) == (tally.ours, tally.theirs, tally.unheld)
    assert len(ROWS) == tally.total


# judge, our rules that refuse alone, the reasons of the engine that refuses alone; docs/compatibility.md explains them
DIFFERING = [
    ("LOGICAL, ICEBERG_V2", {"FIELD_DELETED", "FIELD_REORDERED", "FIELD_DELETED and FIELD_REORDERED"},
     {"Incompatible change", "Cannot change column nullability"}),
    ("LOGICAL, FLINK", {NO_CHANGE, "NON_NULLABLE_DEFAULT_REMOVED"},
     {"missing required field", "Found int, expecting union", "Found int, expecting bytes",
      "Found long, expecting union", "Found long, expecting bytes"}),
    ("--tables iceberg", {NO_CHANGE}, set()),
    ("--tables delta", {NO_CHANGE}, set()),
    ("--tables flink", {NO_CHANGE}, set()),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("name", "ours", "theirs"), DIFFERING, ids=[row[0] for row in DIFFERING])
def test_the_engines_on_all_pairs(name, ours, theirs):
    """The verdicts on thousands of pairs are those of the engines, but for the documented differences."""
    tally = judged(JUDGES[name], [*recorded_pairs(), *leaf_pairs()])

    assert (ours, theirs) == (set(tally.ours), set(tally.theirs))
    assert tally.total > 3500
    assert tally.agreed - tally.refused > 500
    assert tally.refused > 2000


def changed_columns(dialect):
    """Return the changes of one column that `--tables` accepts, each pair of types once."""
    words = {}
    for pair in leaf_pairs():
        before, after = (side.root.columns[0].type for side in (pair.before, pair.after))
        if ENGINES[dialect].change(before, after) is None:
            words[column_type(before, dialect), column_type(after, dialect)] = None
    return [Changed(f"c{place}", *pair) for place, pair in enumerate(words) if pair[0] != pair[1]]


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("dialect", "fewest"), [("delta", 150), ("iceberg", 70)])
def test_files(dialect, fewest, tmp_path):
    """Real tables take every accepted change of a column, and read old and new rows as they were written."""
    columns = changed_columns(dialect)

    assert len(columns) >= fewest
    assert [] == differences(columns, dialect, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_files_show_a_lost_value(tmp_path):
    """The judge of files sees a value that a column cannot hold."""
    (difference,) = differences([Changed("c0", "DOUBLE", "BIGINT"), Changed("c1", "INT", "BIGINT")], "delta", tmp_path)

    assert difference.startswith("DOUBLE to BIGINT")
