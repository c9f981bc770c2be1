"""What the difference of two JSON Schemas says is what two validators do with documents."""

import json
from random import Random

import jsonschema
import jsonschema_rs
import pytest

from harness.json_judges import Binding, refused
from harness.json_pairs import PairMaker
from strata.compat.difference.compare import difference
from strata.compat.difference.outcomes import SEVERITY, Cause, Verdict
from strata.compat.formats import FORMATS
from strata.compat.schema import SchemaFormat, SchemaParseError

BREAKS, SILENT, SAFE, UNKNOWN = Verdict.BREAKS, Verdict.SILENT, Verdict.SAFE, Verdict.UNKNOWN
SEVENTH, NEWEST = "http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema"
STRING, NUMBER, INTEGER, ANY = {"type": "string"}, {"type": "number"}, {"type": "integer"}, {}


def held(properties, **more):
    """Return the schema of an object."""
    return {"type": "object", "properties": properties, **more}


def a(before, after):
    """Return two objects whose property a has another schema."""
    return held({"a": before}), held({"a": after})


def word(schema, **changes):
    """Return two schemas, the second one with further keywords."""
    return a(schema, schema | changes)


ARRAY, OBJECT = {"type": "array"}, {"type": "object"}
CLOSED = {"additionalProperties": False}
ROWS = {  # kind of edit: the previous schema and the new one, and the verdicts for readers and writers
    "property added to an open object": (held({}), held({"b": STRING}), BREAKS, SAFE),
    "property added to a closed object": (held({}, **CLOSED), held({"b": STRING}, **CLOSED), SAFE, BREAKS),
    "property removed from a closed object": (held({"b": STRING}, **CLOSED), held({}, **CLOSED), BREAKS, SAFE),
    "property removed from an open object": (held({"b": STRING}), held({}), SAFE, BREAKS),
    "property required": (*a(STRING, STRING)[:1], held({"a": STRING}, required=["a"]), BREAKS, SAFE),
    "object closed": (held({"a": STRING}), held({"a": STRING}, **CLOSED), BREAKS, SAFE),
    "title and default": (*word(STRING, title="A", default=""), SAFE, SAFE),
    "unknown keyword": (*word(STRING, x=1), SAFE, SAFE),
    "content encoding": (*word(STRING, contentMediaType="text/html"), SAFE, SAFE),
    "text in base64": (*word(STRING, contentEncoding="base64"), BREAKS, SAFE),
    "text of JSON": (*word(STRING, contentMediaType="application/json"), BREAKS, SAFE),
    "text of JSON in base64": (
        *word(STRING | {"contentEncoding": "base64"}, contentMediaType="application/json"),
        *(BREAKS, SAFE),
    ),
    "integer to number": (*a(INTEGER, NUMBER), SILENT, BREAKS),
    "integer to number or text": (*a(INTEGER, {"anyOf": [NUMBER, STRING]}), SILENT, BREAKS),
    "integer to number in a branch": (*a({"oneOf": [INTEGER, STRING]}, {"oneOf": [NUMBER, STRING]}), SILENT, BREAKS),
    "integers to a property that is a number": (
        *(held({}, additionalProperties=INTEGER), held({"a": NUMBER}, additionalProperties=INTEGER)),
        *(SILENT, BREAKS),
    ),
    "integer to numbers of a pattern": (
        *(held({"a": INTEGER}, **CLOSED), held({}, patternProperties={"^a": NUMBER}, **CLOSED)),
        *(SILENT, BREAKS),
    ),
    "number to an integer that is one": (*a(NUMBER, {"allOf": [INTEGER, NUMBER]}), BREAKS, SILENT),
    "integer that is a number too": (*a(INTEGER, {"allOf": [INTEGER, NUMBER]}), SAFE, SAFE),
    "a few integers to number": (*a({"enum": [1, 2]}, NUMBER), SAFE, BREAKS),
    "a large integer to number": (*a({"enum": [2**53 + 1]}, NUMBER), SILENT, BREAKS),
    "integer to anything": (*a(INTEGER, ANY), SAFE, BREAKS),
    "integer to integer or text": (*a(INTEGER, {"type": ["integer", "string"]}), SAFE, BREAKS),
    "string to integer": (*a(STRING, INTEGER), BREAKS, BREAKS),
    "anything to string": (*a(ANY, STRING), BREAKS, SAFE),
    "maxLength": (*word(STRING, maxLength=1), BREAKS, SAFE),
    "minLength": (*word(STRING, minLength=1), BREAKS, SAFE),
    "pattern": (*word(STRING, pattern="^x"), BREAKS, SAFE),
    "pattern changed": (*a(STRING | {"pattern": "^x"}, STRING | {"pattern": "^ab"}), BREAKS, BREAKS),
    "maximum": (*word(NUMBER, maximum=1), BREAKS, SAFE),
    "exclusiveMinimum": (*word(NUMBER, exclusiveMinimum=0), BREAKS, SAFE),
    "multipleOf": (*word(NUMBER, multipleOf=2), BREAKS, SAFE),
    "enum": (*word(STRING, enum=["ab", "x"]), BREAKS, SAFE),
    "enum value removed": (*a({"enum": ["ab", "x"]}, {"enum": ["ab"]}), BREAKS, SAFE),
    "const": (*a({"const": "ab"}, {"const": "x"}), BREAKS, BREAKS),
    "maxItems": (*word(ARRAY, maxItems=1), BREAKS, SAFE),
    "uniqueItems": (*word(ARRAY, uniqueItems=True), BREAKS, SAFE),
    "items": (*word(ARRAY, items=STRING), BREAKS, SAFE),
    "items to number": (*a(ARRAY | {"items": INTEGER}, ARRAY | {"items": NUMBER}), SILENT, BREAKS),
    "contains": (*word(ARRAY, contains=STRING), BREAKS, SAFE),
    "contains changed": (*a(ARRAY | {"contains": STRING}, ARRAY | {"contains": NUMBER}), BREAKS, BREAKS),
    "maxProperties": (*word(OBJECT, maxProperties=1), BREAKS, SAFE),
    "propertyNames": (*word(OBJECT, propertyNames={"maxLength": 1}), BREAKS, SAFE),
    "patternProperties": (*word(OBJECT, patternProperties={"^a": STRING}), BREAKS, SAFE),
    "dependencies": (*word(OBJECT, dependencies={"a": ["b"]}), BREAKS, SAFE),
    "additionalProperties": (*word(OBJECT, additionalProperties=STRING), BREAKS, SAFE),
    "not": (*a(ANY, {"not": STRING}), BREAKS, SAFE),
    "if": (*a(ANY, {"if": STRING, "then": {"maxLength": 1}}), BREAKS, SAFE),
    "then changed": (
        *a({"if": STRING, "then": {"maxLength": 2}}, {"if": STRING, "then": {"maxLength": 1}}),
        *(BREAKS, SAFE),
    ),
    "branch added": (*a({"oneOf": [STRING]}, {"oneOf": [STRING, INTEGER]}), SAFE, BREAKS),
    "format": (*word(STRING, format="date"), BREAKS, SAFE),
    "format changed": (*a(STRING | {"format": "date"}, STRING | {"format": "ipv4"}), BREAKS, BREAKS),
    "a format without a meaning": (*word(STRING, format="tongue"), SAFE, SAFE),
    "a property called like a keyword": (held({"if": STRING}), held({"if": INTEGER}), BREAKS, BREAKS),
}
SCALARS = [None, True, 0, 1, 2, -1, 1.5, 2**53 + 1, "", "x", "ab", "2024-02-03", "10.0.0.1"]
NAMES = ["a", "b", "ab", "if"]


def document(chance, depth=2):
    """Return a random document."""
    kind = chance.random()
    if depth == 0 or kind < 0.5:
        return chance.choice(SCALARS)
    if kind < 0.7:
        return [document(chance, depth - 1) for _ in range(chance.randrange(3))]
    return {name: document(chance, depth - 1) for name in chance.sample(NAMES, chance.randrange(4))}


def documents():
    """Return documents, most of them objects; each scalar is a property and an item of one."""
    chance = Random(28)
    small = [[one] for one in SCALARS] + [[one, one] for one in SCALARS]
    return (
        [{name: one} for name in NAMES for one in SCALARS]
        + [{"a": one} for one in small]
        + [{name: document(chance) for name in chance.sample(NAMES, chance.randrange(3))} for _ in range(50)]
    )


DOCUMENTS = documents()


def validators(schema):
    """Return two functions that say whether a document is valid."""
    fast = jsonschema_rs.validator_for(schema, validate_formats=True)
    kind = jsonschema.validators.validator_for(schema)
    slow = kind(schema, format_checker=jsonschema.FormatChecker(["date", "ipv4"]))
    return fast.is_valid, slow.is_valid


def observed(writer, reader):
    """Return the worst that happens to the documents that the writer's schema allows."""
    worst, allowed = SAFE, 0
    writes, reads = validators(writer), validators(reader)
    written, read = Binding(writer), Binding(reader)
    for one in DOCUMENTS:
        if not all(is_valid(one) for is_valid in writes):
            continue
        allowed += 1
        if not all(is_valid(one) for is_valid in reads):
            return BREAKS
        if written.read(one) != read.read(one):
            worst = SILENT
    assert allowed
    return worst


@pytest.mark.parametrize("dialect", [SEVENTH, NEWEST])
@pytest.mark.parametrize("name", ROWS)
def test_the_verdict_is_what_readers_do(name, dialect):
    """Each kind of edit breaks, changes values or is safe in each direction, or is called not judged."""
    previous, new, *expected = ROWS[name]
    previous, new = ({"$schema": dialect} | one for one in (previous, new))
    parse = FORMATS[SchemaFormat.JSON].parse
    found = difference(*(parse(json.dumps(one), strict=False) for one in (previous, new)))
    said = [found.readers, found.writers]
    seen = [observed(previous, new), observed(new, previous)]

    assert [one for one in said if one is not UNKNOWN] == [
        one for one, other in zip(seen, said, strict=True) if other is not UNKNOWN
    ]
    if dialect == SEVENTH:
        assert expected == said
    assert UNKNOWN not in expected or BREAKS in seen
    assert all(one in SEVERITY for one in said)


def has_document(effects):
    """Return whether an effect names a document that breaks."""
    return any(one.cause is Cause.DOCUMENT_REFUSED for effect in effects for one in effect.outcomes)


def check_random(number, rounds, seed):
    """Check what is said about random edits, in both directions; return how often which verdict was given."""
    maker, parse, said = PairMaker(Random(seed)), FORMATS[SchemaFormat.JSON].parse, []
    for place in range(number):
        try:
            previous, new = (parse(json.dumps(one), strict=False) for one in maker.pair())
        except SchemaParseError:  # an edit need not make a schema
            continue
        found = difference(previous, new)
        sides = [
            (found.readers, [one.readers for one in found.changes], previous, new),
            (found.writers, [one.writers for one in found.changes], new, previous),
        ]
        for verdict, effects, writer, reader in sides:
            said.append("opinion" if verdict is BREAKS and not has_document(effects) else verdict)
            if verdict in (SAFE, SILENT):
                assert refused(writer, reader, rounds, place) == [], (writer.canonical, reader.canonical)
    return said


def test_random_edits():
    """No direction is called safe that a document breaks, and nearly each one that breaks shows a document."""
    said = check_random(18, 10, 11)

    assert said.count(SAFE) > 10
    assert said.count(BREAKS) > 10
    assert said.count("opinion") + said.count(UNKNOWN) < 0.05 * len(said)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_many_random_edits():
    """The same for 10,000 directions."""
    said = check_random(5_000, 60, 12)

    assert said.count("opinion") + said.count(UNKNOWN) < 0.05 * len(said)
