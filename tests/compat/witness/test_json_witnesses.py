"""Each proof of a JSON Schema finding is what two validators do with the document."""

import json
from collections import Counter
from itertools import islice
from random import Random

import pytest

from harness.json_judges import judges, refused, rounded, verdict
from harness.json_pairs import PairMaker
from harness.proof_cases import Pair, proofs, random_pairs, recorded_pairs
from strata.compat.check import Previous, check
from strata.compat.formats import FORMATS
from strata.compat.json_schema.containment import rounding
from strata.compat.json_schema.containment.decision import Containment
from strata.compat.levels import Level
from strata.compat.limits import Limits
from strata.compat.proofs import LARGEST_WITNESS, Altered, NoWitness, Refused, RuleOnly, Witness
from strata.compat.schema import SchemaFormat, SchemaParseError
from strata.compat.witness.search import budget_within, silent_changes

JSON = FORMATS[SchemaFormat.JSON]
SEVENTH = "http://json-schema.org/draft-07/schema#"
STRING, NUMBER, INTEGER = ({"type": name} for name in ("string", "number", "integer"))


def parsed(schema):
    """Parse a schema."""
    return JSON.parse(json.dumps({"$schema": SEVENTH} | schema), strict=False)


def held(properties, *required, **more):
    """Return the schema of an object."""
    return {"type": "object", "properties": properties, "required": list(required), **more}


ROWS = {  # change: the writer's schema, the reader's, and the document and error of each finding
    "required and narrower": (
        held({"a": INTEGER, "b": STRING}, "a"),
        held({"a": INTEGER, "b": {"type": "string", "maxLength": 1}}, "a", "b"),
        [
            ({"a": 0}, '"b" is a required property'),
            ({"a": 0, "b": "aa"}, '"aa" is longer than 1 character (at /b)'),
        ],
    ),
    "an item of an array": (
        held({"a": {"type": "array", "items": NUMBER}}),
        held({"a": {"type": "array", "items": INTEGER}}),
        [({"a": [0.5]}, '0.5 is not of type "integer" (at /a/0)')],
    ),
    "a branch": (
        {"oneOf": [held({"k": {"const": "a"}}, "k"), held({"k": {"const": "b"}}, "k")]},
        {"oneOf": [held({"k": {"const": "a"}}, "k"), held({"k": {"const": "c"}}, "k")]},
        [({"k": "b"}, '{"k":"b"} is not valid under any of the schemas listed in the \'oneOf\' keyword')],
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_the_document_that_shows_it(name):
    """The document fits everywhere but at the place of the finding; the error is that of the place."""
    writer, reader, expected = ROWS[name]
    found = [proof for _, proof in proofs(Pair("", parsed(reader), parsed(writer)))]

    assert [(one.record, one.outcome) for one in found] == [(record, Refused(error)) for record, error in expected]
    assert [json.loads(one.payload) for one in found] == [record for record, _ in expected]


def test_a_rule_that_no_document_needs():
    """A finding without a document says why: nothing is refused at all, or nothing at its place."""
    writer, wider = held({"a": {"enum": [1, 2]}}), held({"a": INTEGER})
    reader = held({"a": INTEGER, "b": STRING})
    reasons = [proof for _, proof in proofs(Pair("", parsed(wider), parsed(writer)))]
    mixed = {finding.path: proof for finding, proof in proofs(Pair("", parsed(reader), parsed(writer)))}

    assert reasons == [RuleOnly("The reader schema allows every document that the writer schema allows.")]
    assert [type(mixed[path]) for path in ("#/properties/a", "#/properties/b")] == [RuleOnly, Witness]


def test_a_document_that_breaks_where_no_rule_looks():
    """If no finding is at the place where documents break, the document stands for the findings that there are."""
    writer = held({"old": INTEGER, "neu": STRING}, additionalProperties={})
    reader = held({"old": INTEGER}, patternProperties={"^zz": STRING})
    found = proofs(Pair("", parsed(reader), parsed(writer)))

    assert found
    assert {type(proof) for _, proof in found} == {Witness}


def test_changes_that_the_rules_accept():
    """Integers that are read as doubles, and keywords that no rule compares, are found with documents."""
    previous = held({"n": INTEGER, "small": INTEGER | {"maximum": 9, "minimum": 0}, "t": {"type": "array"}})
    new = held(
        {"n": NUMBER, "small": NUMBER | {"maximum": 9, "minimum": 0}, "t": {"type": "array", "contains": NUMBER}}
    )
    new["title"], new["properties"]["n"]["default"] = "Renamed", 1
    found = silent_changes(parsed(new), [Previous(1, parsed(previous))], Level.BACKWARD, (), budget_within(Limits()))

    assert {one.path: one.proof.outcome for one in found} == {
        "#/properties/n": Altered(2**53 + 1, float(2**53)),
        "#/properties/t/minContains": Refused("None of [] are valid under the given schema (at /t)"),
    }
    assert check(parsed(new), [Previous(1, parsed(previous))], Level.BACKWARD).compatible


def roundings_of(previous, new):
    """Return path and proof of each change of values that the rules accept."""
    found = silent_changes(parsed(new), [Previous(1, parsed(previous))], Level.BACKWARD, (), budget_within(Limits()))
    return [(one.path, one.proof) for one in found]


def test_each_place_of_a_rounded_number():
    """Places with the same types are found each, also if the first of them can have no number."""
    previous, new = (
        held({"a": held({"x": inner}, maxProperties=0), "b": held({"x": inner}), "c": held({"x": inner})})
        for inner in (INTEGER, NUMBER)
    )

    assert ["#/properties/b/properties/x", "#/properties/c/properties/x"] == [
        path for path, _ in roundings_of(previous, new)
    ]


def test_a_search_for_rounded_numbers_that_ends_early(monkeypatch):
    """If not all places could be searched, a finding says so."""
    monkeypatch.setattr(rounding, "_MOST_PLACES", 3)
    previous, new = (held(dict.fromkeys("abcdef", inner)) for inner in (INTEGER, NUMBER))
    found = roundings_of(previous, new)

    assert ["#/properties/a", "#/properties/b", "#"] == [path for path, _ in found]
    assert NoWitness("time") == found[-1][1]


def check_pairs(pairs, rounds):
    """Check the proofs of pairs with two judges; return how many there are of which type."""
    counts = Counter()
    for number, pair in enumerate(pairs):
        writes, reads = judges(pair.writer), judges(pair.reader)
        found = proofs(pair)
        for finding, proof in found:
            counts[type(proof)] += 1
            if isinstance(proof, Witness):
                said = verdict(writes, proof.record), verdict(reads, proof.record)
                assert said == (True, False), (pair.name, finding.kind, finding.path, proof)
                assert len(proof.payload) <= LARGEST_WITNESS
        if found and all(isinstance(proof, RuleOnly) for _, proof in found):
            counts["rule only"] += 1
            assert refused(pair.writer, pair.reader, rounds, number) == [], pair.name
    return counts


def is_decided(counts):
    """Return whether at least 95 % of the findings are decided."""
    return counts[NoWitness] <= 0.05 * sum(counts[one] for one in (Witness, RuleOnly, NoWitness))


def test_a_sample_of_pairs():
    """Two judges confirm the documents of recorded and of random pairs; random documents contradict no rule-only."""
    counts = check_pairs(
        [
            *recorded_pairs(SchemaFormat.JSON, 60),
            *islice(random_pairs(SchemaFormat.JSON, Random(7)), 20),
        ],
        10,
    )

    assert is_decided(counts)
    assert counts[Witness] > 15
    assert counts["rule only"] > 1


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_all_recorded_pairs():
    """The same for all recorded pairs."""
    assert is_decided(check_pairs(recorded_pairs(SchemaFormat.JSON), 200))


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("portion", range(10))
def test_many_random_pairs(portion):
    """The same for 10,000 random pairs, in portions."""
    drawn = random_pairs(SchemaFormat.JSON, Random(8))

    assert is_decided(check_pairs(islice(drawn, portion * 1000, portion * 1000 + 1000), 60))


@pytest.mark.parametrize(("size", "documents"), [(10, 10), pytest.param(400, 1000, marks=pytest.mark.slow)])
@pytest.mark.timeout(3600)
def test_no_document_changes_without_a_finding(size, documents):
    """A compatible pair without a silent change refuses no document and rounds no number of it."""
    quiet = 0
    for number, pair in enumerate(islice(random_pairs(SchemaFormat.JSON, Random(2029)), size)):
        previous = [Previous(1, pair.writer)]
        if not check(pair.reader, previous, Level.BACKWARD).compatible:
            continue
        if not silent_changes(pair.reader, previous, Level.BACKWARD, (), budget_within(Limits())):
            quiet += 1
            assert refused(pair.writer, pair.reader, documents, number) == [], pair.name
            assert rounded(pair.writer, pair.reader, documents, number) == [], pair.name
    assert quiet > 0


def number_pairs(chance):
    """Yield pairs without end that differ in the types of some numbers."""
    maker = PairMaker(chance)
    while True:
        schema, edited = maker.pair()
        other = json.loads(json.dumps(chance.choice([schema, schema, edited])))
        integers = [place for place in places(other) if place.get("type") == "integer"]
        if not integers:
            continue
        for place in chance.sample(integers, chance.randrange(1, len(integers) + 1)):
            changed = dict(place)
            place.clear()
            place.update(
                chance.choice(
                    [
                        changed | {"type": "number"},
                        changed | {"type": ["number", "null"]},
                        {"anyOf": [changed | {"type": "number"}, {"type": "string"}]},
                        {"anyOf": [changed, {"type": "number", "maximum": 5}]},
                        {"allOf": [changed, {"type": "number"}]},
                    ]
                )
            )
        try:
            yield tuple(JSON.parse(json.dumps(one), strict=False) for one in (schema, other))
        except SchemaParseError:
            continue


def places(value):
    """Yield the objects inside a JSON value."""
    if isinstance(value, dict):
        yield value
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from places(one)


@pytest.mark.parametrize(("size", "documents"), [(10, 10), pytest.param(1000, 1000, marks=pytest.mark.slow)])
@pytest.mark.timeout(3600)
def test_no_number_is_rounded_without_a_finding(size, documents):
    """Integers that become numbers have a finding with a document, or no random document is rounded or refused."""
    found = Counter()
    for number, (writer, reader) in enumerate(islice(number_pairs(Random(2033)), size)):
        changes = silent_changes(reader, [Previous(1, writer)], Level.BACKWARD, (), budget_within(Limits()))
        altered = [one.proof for one in changes if isinstance(getattr(one.proof, "outcome", None), Altered)]
        for proof in altered:
            said = verdict(judges(writer), proof.record), verdict(judges(reader), proof.record)
            assert said == (True, True), (writer.canonical, reader.canonical)
            assert proof.outcome.written_as != proof.outcome.read_as == float(proof.outcome.written_as)
            numbers = [number for _, number in Containment(writer, reader).rounded_numbers(proof.record)]
            assert proof.outcome.written_as in numbers
        found[bool(altered)] += 1
        if not changes:
            assert rounded(writer, reader, documents, number) == [], (writer.canonical, reader.canonical)

    assert min(found.values()) >= size / 10
