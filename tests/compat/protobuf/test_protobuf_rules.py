"""A reader is checked against a writer; these are the cases that the recorded ones do not reach."""

import pytest

from strata.compat.check import Previous, check, explain
from strata.compat.formats import FORMATS
from strata.compat.levels import Level
from strata.compat.limits import Limits
from strata.compat.protobuf import rules
from strata.compat.protobuf.parser import parse
from strata.compat.protobuf.wording import Difference
from strata.compat.schema import ResolvedReference, SchemaFormat

HEAD = 'syntax = "proto3"; '


def _schema(body, *references):
    return parse(HEAD + body, strict=True, references=references)


def _found(writer, reader):
    return {f"{found.difference} {found.path}" for found in rules.differences(reader, writer)}


DIFFERENCES = {
    "well-known type against another": (
        "message A { google.protobuf.Any a = 1; }",
        "message A { google.protobuf.Empty a = 1; }",
        {"FIELD_NAMED_TYPE_CHANGED #/A/1"},
    ),
    "map against its entries": (
        "message A { map<string, A> m = 1; }",
        "message A { repeated MEntry m = 1; message MEntry { option map_entry = true; string key = 1; A value = 2; } }",
        set(),
    ),
    "value of a map": (
        "message A { map<string, int32> m = 1; }",
        "message A { map<string, string> m = 1; }",
        {"FIELD_SCALAR_KIND_CHANGED #/A/1"},
    ),
    "member moved into a oneof that lost its own": (
        "message A { oneof o { int32 a = 1; } int32 b = 2; }",
        "message A { oneof o { int32 b = 2; } }",
        {"ONEOF_FIELD_REMOVED #/A/o/1"},
    ),
    "nested message and its enum": (
        "message A { message B { enum E { Z = 0; } } }",
        "message A { enum F { Y = 0; } }",
        {"MESSAGE_REMOVED #/A/B", "ENUM_ADDED #/A/F"},
    ),
}


@pytest.mark.parametrize(("writer", "reader", "expected"), DIFFERENCES.values(), ids=DIFFERENCES.keys())
def test_differences(writer, reader, expected):
    """The check reports what changed, and where."""
    assert expected == _found(_schema(writer), _schema(reader))


def test_recursion_through_references_ends():
    """Messages of references that refer to themselves are compared once."""
    old = ResolvedReference("d.proto", HEAD + "message D { D d = 1; int32 a = 2; }", "d/1")
    new = ResolvedReference("d.proto", HEAD + "message D { D d = 1; string a = 2; }", "d/2")
    text = "message A { D d = 1; }"

    assert {"FIELD_SCALAR_KIND_CHANGED #/D/2", "FIELD_NAMED_TYPE_CHANGED #/A/1"} == _found(
        _schema(text, old), _schema(text, new)
    )
    assert set() == _found(_schema(text, old), _schema(text, old))


SHAPES = {
    "twice as much at each of forty levels": (40, "message M{n} {{ M{next} a = 1; M{next} b = 2; }} "),
    "deeper than the stack": (1500, "message M{n} {{ M{next} a = 1; }} "),
    "everything from everywhere": (300, "message M{n} {{ M{next} a = 1; M0 b = 2; M150 c = 3; }} "),
}


@pytest.mark.parametrize(("levels", "text"), SHAPES.values(), ids=SHAPES.keys())
def test_each_pair_of_referenced_messages_is_compared_once(levels, text):
    """The work and the findings grow with the number of messages, not with the paths between them."""
    middle = "".join(text.format(n=n, next=n + 1) for n in range(levels))
    schemas = [
        _schema("message A { M0 m = 1; }", ResolvedReference("d.proto", f"{HEAD}{middle}message M{levels} {end}", end))
        for end in ("{ int32 a = 1; }", "{ int32 b = 1; }", "{ string a = 1; }")
    ]

    assert [] == rules.check(schemas[0], schemas[1], limits=Limits(comparisons=20 * levels))
    assert rules.check(schemas[0], schemas[2], limits=Limits(comparisons=20 * levels))


def test_a_comparison_beyond_the_limit_is_given_up():
    """The check ends, and its verdict is incompatible."""
    schema = _schema("".join(f"message M{n} {{ M{n} a = 1; }} " for n in range(100)))

    (finding,) = rules.check(schema, schema, limits=Limits(comparisons=100))
    assert Difference.TOO_COMPLEX == finding.kind


def test_findings_are_bounded():
    """The check keeps no more findings than the limit."""
    writer = _schema("message A {" + "".join(f"int32 a{n} = {n};" for n in range(1, 100)) + "}")
    reader = _schema("message A {" + "".join(f"string a{n} = {n};" for n in range(1, 100)) + "}")

    assert 5 == len(rules.check(reader, writer, limits=Limits(incompatibilities=5)))


def _message(kind, description):
    return f'{{errorType:"{kind}", description:"{description}"}}'


def test_messages():
    """Every incompatible difference has its words, for the wire and for people."""
    new = _schema("package b; message A { oneof o { int32 a = 1; int32 b = 2; } int32 c = 3; }")
    old = _schema("package a; message A { int32 a = 1; int32 b = 2; int32 c = 3; } message B {}")
    result = check(new, [Previous(4, old)], Level.BACKWARD)

    assert {
        _message(
            "PACKAGE_CHANGED", "The package at '#/' in the new schema does not match the package in the old schema"
        ),
        _message("MESSAGE_REMOVED", "The new schema is missing a MESSAGE type at path '#/B' in the old schema"),
        _message(
            "MULTIPLE_FIELDS_MOVED_TO_ONEOF",
            "Multiple fields in the oneof at path '#/A/o' in the new schema are outside a oneof in the old schema",
        ),
        "{oldSchemaVersion: 4}",
        f"{{oldSchema: '{old.canonical}'}}",
    } == set(result.messages)
    told = [explain(finding) for finding in result.incompatibilities]
    assert (
        "Message B is in version 4 but not in the new schema. Keep the message, even if nothing uses it any more."
        in told
    )


def test_explain_forward():
    """In the forward direction the previous version is the reader."""
    new = _schema("message A {}")
    old = _schema("message A {} message B {}")
    result = check(old, [Previous(1, new)], Level.FORWARD)

    assert [
        (
            "Message B is in the new schema but not in version 1. Remove the message: the check treats a new message "
            "as one that version 1 cannot read."
        )
    ] == [explain(finding) for finding in result.incompatibilities]


def test_another_format_is_another_type():
    """A Protobuf schema is never checked against an Avro one."""
    avro = FORMATS[SchemaFormat.AVRO].parse('"string"', strict=True)
    result = check(_schema("message A {}"), [Previous(1, avro)], Level.BACKWARD)

    assert ("Incompatible because of different schema type",) == result.messages


def test_explain_names_the_field():
    """The explanation names the field by name and tag, and says what to do."""
    new = _schema("message A { message B { string price = 3; } }")
    old = _schema("message A { message B { int32 price = 3; } }")
    (finding,) = check(new, [Previous(2, old)], Level.BACKWARD).incompatibilities
    told = explain(finding)

    assert told.startswith("The types of field A.B.price (tag 3) in the new schema and version 2 differ on the wire")
    assert told.endswith("or use a new tag.")
