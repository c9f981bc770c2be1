"""Each level checks its versions of a history in its directions, and reports its findings."""

import json

import pytest

from strata.compat.check import Previous, check, explain
from strata.compat.formats import FORMATS
from strata.compat.levels import LEVELS, Direction, Level
from strata.compat.result import Incompatibility
from strata.compat.schema import ParsedSchema, SchemaFormat

AVRO = FORMATS[SchemaFormat.AVRO]


def _record(*fields):
    fields = [{"name": name, "type": kind, **more} for name, kind, more in fields]
    return AVRO.parse(json.dumps({"type": "record", "name": "R", "fields": fields}), strict=True)


A = _record(("a", "int", {}))
A_LONG = _record(("a", "long", {}))
A_B = _record(("a", "int", {}), ("b", "int", {}))
A_B_DEFAULT = _record(("a", "int", {}), ("b", "int", {"default": 0}))
NOTHING = _record()

VERDICTS = [
    # new, previous versions, the levels under which it is incompatible
    ("no history", A, [], ""),
    ("same", A, [A], ""),
    ("promoted", A_LONG, [A], "FORWARD FORWARD_TRANSITIVE FULL FULL_TRANSITIVE"),
    ("demoted", A, [A_LONG], "BACKWARD BACKWARD_TRANSITIVE FULL FULL_TRANSITIVE"),
    ("field added", A_B, [A], "BACKWARD BACKWARD_TRANSITIVE FULL FULL_TRANSITIVE"),
    ("field added with default", A_B_DEFAULT, [A], ""),
    ("field removed", A, [A_B], "FORWARD FORWARD_TRANSITIVE FULL FULL_TRANSITIVE"),
    ("fits the latest only, backward", A_B, [A, A_B_DEFAULT], "BACKWARD_TRANSITIVE FULL_TRANSITIVE"),
    ("fits the latest only, forward", A, [A_B, A_B_DEFAULT], "FORWARD_TRANSITIVE FULL_TRANSITIVE"),
    ("fits the first only", A_B, [A_B, A], "BACKWARD BACKWARD_TRANSITIVE FULL FULL_TRANSITIVE"),
]


def _history(schemas):
    return [Previous(number, schema) for number, schema in enumerate(schemas, start=1)]


@pytest.mark.parametrize(("new", "old", "refused"), [row[1:] for row in VERDICTS], ids=[row[0] for row in VERDICTS])
def test_verdicts(new, old, refused):
    """Each level asks for its directions, of the latest version or of all."""
    verdicts = {level: check(new, _history(old), level).compatible for level in Level}

    assert {level: level.value not in refused.split() for level in Level} == verdicts


def test_a_compatible_schema_has_no_messages():
    """A compatible schema has no messages."""
    result = check(A_B_DEFAULT, _history([A]), Level.FULL_TRANSITIVE)

    assert (True, (), ()) == (result.compatible, result.messages, result.incompatibilities)


BACKWARD_MESSAGE = (
    "{errorType:'READER_FIELD_MISSING_DEFAULT_VALUE', description:'The field 'b' at path '/fields/1' in the new "
    "schema has no default value and is missing in the old schema', additionalInfo:'b'}"
)
FORWARD_MESSAGE = (
    "{errorType:'TYPE_MISMATCH', description:'The type (path '/fields/0/type') of a field in the old schema does not "
    "match with the new schema', additionalInfo:'reader type: INT not compatible with writer type: LONG'}"
)
OLD = "{oldSchema: '" + A.canonical + "'}"
A_LONG_B = _record(("a", "long", {}), ("b", "int", {}))
MESSAGES = [
    (Level.BACKWARD, A_B, (BACKWARD_MESSAGE, "{oldSchemaVersion: 1}", OLD)),
    (Level.FORWARD, A_LONG, (FORWARD_MESSAGE, "{oldSchemaVersion: 1}", OLD)),
    (Level.FULL, A_LONG_B, (FORWARD_MESSAGE, BACKWARD_MESSAGE, "{oldSchemaVersion: 1}", OLD)),
    (Level.FULL, A_B, (BACKWARD_MESSAGE, "{oldSchemaVersion: 1}", OLD)),
    (Level.FULL, A_LONG, (FORWARD_MESSAGE,)),
]


@pytest.mark.parametrize(("level", "new", "expected"), MESSAGES)
def test_messages(level, new, expected):
    """Forward comes first; the lines on the previous version follow the direction checked last, if it failed."""
    assert expected == check(new, _history([A]), level).messages


def test_transitive_stops_at_the_first_incompatible_version():
    """A transitive check goes back from the latest version and reports only the first one that does not fit."""
    result = check(A_B, _history([NOTHING, A, A_B_DEFAULT]), Level.BACKWARD_TRANSITIVE)

    assert "{oldSchemaVersion: 2}" in result.messages
    assert 3 == len(result.messages)


def test_a_long_previous_schema_is_cut():
    """A message quotes no more than the first 10240 UTF-16 units of a schema."""
    doc = "😀" * 10240
    old = AVRO.parse(f'{{"type":"record","name":"R","doc":"{doc}","fields":[]}}', strict=True)
    *_, line = check(A, _history([old]), Level.BACKWARD).messages
    quoted = line.removeprefix("{oldSchema: <truncated> '").removesuffix("...'}")

    assert line == f"{{oldSchema: <truncated> '{quoted}...'}}"
    assert old.canonical.startswith(quoted)
    assert 10240 - 1 <= len(quoted.encode("utf-16-le")) // 2 <= 10240


def test_another_format_is_incompatible():
    """Schemas of two formats are incompatible and are not compared further."""
    other = ParsedSchema("OTHER", "{}")

    assert ("Incompatible because of different schema type",) == check(A, _history([other]), Level.FULL).messages
    assert check(A, _history([other]), Level.NONE).compatible


def test_an_exception_of_the_reference_is_a_message():
    """Where the reference fails with an exception, the message is the exception's text."""
    new = _record(("b", "int", {"aliases": ["a"]}), ("a", "int", {"aliases": ["b"]}))
    old = _record(("a", "int", {}), ("b", "int", {}))
    first, *_ = check(new, _history([old]), Level.BACKWARD).messages

    assert first == (
        "Unexpected exception during compatibility check: Reader record field b type:INT pos:0 matches multiple "
        "fields in writer record schema " + old.canonical
    )


def test_findings_know_direction_and_version():
    """Findings are values, each with the reader's side and the version compared."""
    result = check(A_LONG_B, _history([A, A]), Level.FULL)

    assert [
        ("TYPE_MISMATCH", "/fields/0/type", Direction.FORWARD, 2),
        ("READER_FIELD_MISSING_DEFAULT_VALUE", "/fields/1", Direction.BACKWARD, 2),
    ] == [(finding.kind, finding.path, finding.direction, finding.version) for finding in result.incompatibilities]


def _explained(new, old, level):
    result = check(
        AVRO.parse(json.dumps(new), strict=True), _history([AVRO.parse(json.dumps(old), strict=True)]), level
    )
    return [explain(finding) for finding in result.incompatibilities]


def _enum(*symbols):
    return {"type": "enum", "name": "E", "symbols": list(symbols)}


def _fixed(size, name="F"):
    return {"type": "fixed", "name": name, "size": size}


def _holding(kind):
    return {"type": "record", "name": "R", "fields": [{"name": "x", "type": kind}]}


EMPTY = {"type": "record", "name": "R", "fields": []}
EXPLAINED = [
    ("field", _holding("int"), EMPTY, "Add a default to field 'x'.", "Keep field 'x'."),
    (
        "type",
        _holding("int"),
        _holding("long"),
        "Use a type that can: long, float, double, or a union with one of them.",
        "Use a type that it can read: int.",
    ),
    ("branch", _holding(["null"]), _holding(["null", "int"]), "Keep int among the branches", "Leave int out"),
    ("symbols", _enum("A"), _enum("A", "B", "C"), "wrote: B, C", "Leave them out."),
    ("size", _fixed(1), _fixed(2), "Keep size 2.", "has size 2"),
    ("name", _fixed(1, "n.G"), _fixed(1), "add the alias 'F' to fixed n.G.", "Keep the name"),
]


@pytest.mark.parametrize(
    ("reader", "writer", "backward", "forward"), [row[1:] for row in EXPLAINED], ids=[row[0] for row in EXPLAINED]
)
def test_explanations(reader, writer, backward, forward):
    """The explanation names the place, the versions and a change that would make the new schema acceptable."""
    (told_backward,) = _explained(reader, writer, Level.BACKWARD)
    (told_forward,) = _explained(writer, reader, Level.FORWARD)

    for told in (told_backward, told_forward):
        assert "version 1" in told
        assert ("Field 'x'" in told) == (reader["type"] == "record")
    assert backward.replace("wrote: ", "written: ") in told_backward
    assert forward in told_forward


def test_an_explanation_in_full():
    """A refused producer gets this full sentence."""
    assert [
        (
            "Field 'b' is in the new schema but not in version 1, and it has no default, so what version 1 wrote could "
            "not be read. Add a default to field 'b'."
        )
    ] == [explain(finding) for finding in check(A_B, _history([A]), Level.BACKWARD).incompatibilities]


def test_every_kind_can_be_explained_before_a_level_check():
    """A finding straight from a format's check, without direction or version, has an explanation too."""
    finding = Incompatibility(SchemaFormat.AVRO, "TOO_COMPLEX", "/", "", detail="too many")

    assert "the previous version" in explain(finding)


def test_every_level_has_a_rule():
    """Every level has a rule, and only NONE checks nothing."""
    assert set(Level) == set(LEVELS)
    assert [Level.NONE] == [level for level, rule in LEVELS.items() if not rule.directions]
    assert all(level.value.endswith("_TRANSITIVE") == rule.transitive for level, rule in LEVELS.items())
