"""Whether a JSON Schema allows all that another allows: a document that shows that it does not, or a proof."""

import json
from random import Random

import pytest

from harness.json_judges import judges, refused, verdict
from harness.json_pairs import PairMaker
from strata.compat.formats import FORMATS
from strata.compat.json_schema.containment.decision import Contained, Containment, Counterexample, Undecided
from strata.compat.json_schema.containment.languages import Languages
from strata.compat.json_schema.containment.patterns import language_of
from strata.compat.json_schema.containment.rounding import Rounding
from strata.compat.json_schema.patterns import found_in
from strata.compat.limits import DEFAULT_LIMITS, Limits, OutOfTime
from strata.compat.schema import SchemaFormat, SchemaParseError

SEVENTH, NEWEST = "http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema"
FOURTH = "http://json-schema.org/draft-04/schema#"
STRING, NUMBER, INTEGER, NULL = ({"type": name} for name in ("string", "number", "integer", "null"))
PROOF = "proof"


def closed(**properties):
    """Return the schema of an object with these properties and no others."""
    return {"type": "object", "properties": properties, "additionalProperties": False}


def required(name, schema):
    """Return the schema of an object that has a property."""
    return {"type": "object", "properties": {name: schema}, "required": [name]}


def tree(leaf):
    """Return a schema that contains itself."""
    inner = {"type": "object", "properties": {"leaf": leaf, "next": {"$ref": "#/definitions/t"}}, "required": ["leaf"]}
    return {"definitions": {"t": inner}, "$ref": "#/definitions/t"}


ROWS = {  # the writer's schema, the reader's, and the smallest document between them, or that there is none
    "equal": (STRING, STRING, PROOF),
    "everything into nothing": ({}, False, 0),
    "nothing into anything": (False, STRING, PROOF),
    "integer into number": (INTEGER, NUMBER, PROOF),
    "number into integer": (NUMBER, INTEGER, 0.5),
    "whole numbers into integer": ({"type": "number", "multipleOf": 1}, INTEGER, PROOF),
    "bounds inside bounds": ({"type": "integer", "minimum": 2, "maximum": 3}, {"exclusiveMinimum": 1}, PROOF),
    "bounds beyond bounds": ({"type": "integer", "minimum": 2}, {"maximum": 10}, 11),
    "an interval without integers": (
        {"type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 2},
        STRING,
        PROOF,
    ),
    "multiples of a multiple": ({"type": "number", "multipleOf": 6}, {"multipleOf": 3}, PROOF),
    "multiples of another number": ({"type": "number", "multipleOf": 4}, {"multipleOf": 6}, 4),
    "multiples of both": ({"allOf": [{"multipleOf": 4}, {"multipleOf": 6}]}, {"multipleOf": 12}, PROOF),
    "enum into type": ({"enum": ["a", 1]}, {"type": ["string", "integer"]}, PROOF),
    "enum value gone": ({"enum": ["a", "b"]}, {"enum": ["a"]}, "b"),
    "a decimal at its bound": ({"enum": [0.1]}, {"maximum": 0.1}, PROOF),
    "a decimal beyond its bound": ({"enum": [0.1, 0.2]}, {"exclusiveMaximum": 0.2}, 0.2),
    "const in enum": ({"const": {"a": [1]}}, {"enum": [2, {"a": [1.0]}]}, PROOF),
    "not an enum": ({"type": "array", "items": INTEGER}, {"not": {"enum": [[1]]}}, [1]),
    "all arrays but one": ({"type": "array"}, {"enum": [[]]}, [0]),
    "longer text": ({"type": "string"}, {"maxLength": 2}, "aaa"),
    "a pattern in a pattern": ({"type": "string", "pattern": "^ab+$"}, {"pattern": "^a[a-c]*$"}, PROOF),
    "a pattern beyond a pattern": ({"type": "string", "pattern": "^a[bc]$"}, {"pattern": "b$"}, "ac"),
    "a pattern of short text": ({"type": "string", "pattern": "^\\d{2}$"}, {"maxLength": 2, "minLength": 2}, PROOF),
    "a date is ten characters": ({"type": "string", "format": "date"}, {"maxLength": 10}, PROOF),
    "text that is not a date": (STRING, {"format": "date"}, ""),
    "property required": (closed(a=STRING), {"required": ["a"]}, {}),
    "property gone from a closed object": (closed(a=STRING, b=STRING), closed(a=STRING), {"b": ""}),
    "property that cannot be": (closed(a=STRING, b=False), closed(a=STRING), PROOF),
    "property added to a closed object": (closed(a=STRING), closed(a=STRING, b=STRING), PROOF),
    "property added to an open object": (
        {"type": "object"},
        {"properties": {"b": STRING}},
        {"b": 0},
    ),
    "property beside patternProperties": (
        {"type": "object", "patternProperties": {"^a": STRING}},
        {"type": "object", "patternProperties": {"^a": STRING}, "properties": {"ab": {"minLength": 1}}},
        {"ab": ""},
    ),
    "pattern of names beside a property": (
        closed(ab=INTEGER),
        {"type": "object", "patternProperties": {"^a": STRING}},
        {"ab": 0},
    ),
    "names": ({"type": "object"}, {"propertyNames": {"pattern": "^a"}}, {"b": 0}),
    "names of the properties": (closed(ab=INTEGER), {"propertyNames": {"pattern": "^a"}}, PROOF),
    "few properties": (closed(a=NULL, b=NULL), {"maxProperties": 1}, {"a": None, "b": None}),
    "as many as there are": (closed(a=NULL, b=NULL), {"maxProperties": 2}, PROOF),
    "more properties": ({"type": "object", "minProperties": 1}, {"minProperties": 2}, {"a": 0}),
    "dependency": (closed(a=NULL, b=NULL), {"dependencies": {"a": ["b"]}}, {"a": None}),
    "dependency met": (
        {"type": "object", "required": ["b"]},
        {"dependencies": {"a": ["b"]}},
        PROOF,
    ),
    "items": ({"type": "array", "items": INTEGER}, {"items": {"minimum": 1}}, [0]),
    "items that cannot be": ({"type": "array", "items": False}, {"items": STRING}, PROOF),
    "first item": ({"type": "array"}, {"items": [STRING]}, [0]),
    "second item, when there is one": (
        {"type": "array", "items": STRING, "maxItems": 1},
        {"items": [STRING, INTEGER]},
        PROOF,
    ),
    "contains": ({"type": "array", "items": INTEGER}, {"contains": {"minimum": 1}}, []),
    "contains what all are": ({"type": "array", "items": INTEGER, "minItems": 1}, {"contains": NUMBER}, PROOF),
    "equal items": ({"type": "array", "items": {"enum": [1, 2]}}, {"uniqueItems": True}, [1, 1]),
    "more items than values": (
        {"type": "array", "items": {"enum": [1, 2]}, "uniqueItems": True},
        {"maxItems": 2},
        PROOF,
    ),
    "branch gone": ({"anyOf": [STRING, NULL]}, {"anyOf": [STRING]}, None),
    "branches apart": ({"anyOf": [STRING, NULL]}, {"type": ["null", "string"]}, PROOF),
    "branches that overlap": ({"type": "integer"}, {"oneOf": [INTEGER, {"minimum": 5}]}, 5),
    "branches that do not overlap": (INTEGER, {"oneOf": [{"maximum": 4}, {"exclusiveMinimum": 4}]}, PROOF),
    "many constants": (
        {"oneOf": [{"const": n} for n in range(300)]},
        {"oneOf": [{"const": n} for n in range(299)]},
        299,
    ),
    "tagged branches": (
        {"oneOf": [required("t", {"const": "a"}), required("t", {"const": "b"})]},
        {"oneOf": [required("t", {"enum": ["a"]}), required("t", {"enum": ["b", "c"]})]},
        PROOF,
    ),
    "not": ({"not": STRING}, {"type": ["null", "boolean", "object", "array", "number"]}, PROOF),
    "not a part": ({"type": "integer"}, {"not": {"minimum": 3, "maximum": 3}}, 3),
    "condition": ({"type": "string"}, {"if": {"minLength": 2}, "then": {"pattern": "b"}}, "aa"),
    "condition that holds": (
        {"type": "string", "pattern": "b"},
        {"if": {"minLength": 2}, "then": {"pattern": "b"}},
        PROOF,
    ),
    "recursion": (tree(INTEGER), tree(NUMBER), PROOF),
    "recursion beyond": (tree(NUMBER), tree(INTEGER), {"leaf": 0.5}),
    "a tree without an end": (
        {"definitions": {"t": required("next", {"$ref": "#/definitions/t"})}, "$ref": "#/definitions/t"},
        STRING,
        PROOF,
    ),
    "a pattern with look-ahead": ({"type": "string", "pattern": "^(?=a)"}, {"type": "integer"}, "a"),
}
NEWER_ROWS = {
    "prefixItems": ({"type": "array"}, {"prefixItems": [STRING]}, [0]),
    "minContains": ({"type": "array", "contains": NUMBER}, {"contains": NUMBER, "minContains": 2}, [0]),
    "maxContains": ({"type": "array", "items": NUMBER, "minItems": 1}, {"contains": NUMBER, "maxContains": 1}, [0, 0]),
    "contains that need not be": ({"type": "array"}, {"contains": STRING, "minContains": 0}, PROOF),
    "dependentSchemas": (closed(a=INTEGER), {"dependentSchemas": {"a": {"required": ["b"]}}}, {"a": 0}),
    "unevaluatedProperties": (
        {"type": "object"},
        {"allOf": [{"properties": {"a": True}}], "unevaluatedProperties": False},
        {"b": 0},
    ),
    "unevaluatedProperties of a closed object": (
        closed(a=INTEGER),
        {"allOf": [{"properties": {"a": True}}], "unevaluatedProperties": False},
        PROOF,
    ),
    "unevaluatedItems": ({"type": "array"}, {"prefixItems": [True], "unevaluatedItems": False}, [0, 0]),
    "a format that need not count": (STRING, {"format": "date"}, Undecided("undecided")),
}


def parsed(schema, dialect=SEVENTH):
    """Return a parsed schema."""
    text = json.dumps({"$schema": dialect} | schema if isinstance(schema, dict) else schema)
    return FORMATS[SchemaFormat.JSON].parse(text, strict=False)


def decided(writer, reader, dialect=SEVENTH):
    """Return what a decision about two schemas comes to: a document, a proof, or why neither."""
    decision = Containment(parsed(writer, dialect), parsed(reader, dialect)).decide()
    if isinstance(decision, Counterexample):
        return decision.document
    return PROOF if isinstance(decision, Contained) else decision


@pytest.mark.parametrize("name", ROWS)
def test_the_smallest_document_or_a_proof(name):
    """Each keyword has a smallest document that shows a difference, or a proof that there is none."""
    writer, reader, expected = ROWS[name]

    assert decided(writer, reader) == expected


@pytest.mark.parametrize("name", NEWER_ROWS)
def test_the_keywords_of_the_newest_dialect(name):
    """The keywords that the older dialects lack are decided too."""
    writer, reader, expected = NEWER_ROWS[name]

    assert decided(writer, reader, NEWEST) == expected


def test_an_integer_of_draft_4_is_written_as_one():
    """In draft 4, 1.0 is not an integer."""
    assert [type(decided({"multipleOf": 1, "type": "number"}, INTEGER, dialect)) for dialect in (FOURTH, SEVENTH)] == [
        float,
        str,
    ]


FOCUSED = [  # the steps of a path in the reader's schema, and the document that it refuses there
    (("properties", "a", "type"), {"a": 0, "c": 0}),
    (("properties", "b", "maxLength"), {"b": "aaa", "c": 0}),
    (("required", "c"), {}),
    (("properties", "d"), PROOF),
]


@pytest.mark.parametrize(("steps", "expected"), FOCUSED)
def test_a_document_for_a_place(steps, expected):
    """A path restricts where the reader's schema has to refuse the document, which fits everywhere else if it can."""
    properties = {"a": STRING, "b": {"type": "string", "maxLength": 2}, "d": INTEGER}
    writer = {"type": "object", "properties": {"b": STRING, "d": INTEGER}}
    reader = {"type": "object", "properties": properties, "required": ["c"]}
    decision = Containment(parsed(writer), parsed(reader)).decide(steps)

    assert expected == (decision.document if isinstance(decision, Counterexample) else PROOF)


ROUNDED = [  # the bounds of an integer, and the number that a double rounds
    ({}, 2**53 + 1),
    ({"maximum": 2**53}, -(2**53) - 1),
    ({"maximum": 2**53, "minimum": -(2**53)}, None),
    ({"minimum": 2**60}, 2**60 + 1),
    ({"multipleOf": 3}, 2**53 + 1),
    ({"maximum": 0}, -(2**53) - 1),
    ({"multipleOf": 10}, 72057594037927950),
    ({"multipleOf": 1024, "maximum": 2**63}, None),
]


@pytest.mark.parametrize(("bounds", "expected"), ROUNDED)
def test_an_integer_that_a_double_rounds(bounds, expected):
    """A document has an integer beyond 2^53 where a schema reads numbers, if the writer's schema allows one."""
    writer = required("n", INTEGER | bounds)
    reader = {"type": "object", "properties": {"n": NUMBER, "b": STRING}, "required": ["n", "b"]}
    found, is_whole = Containment(parsed(writer), parsed(reader)).roundings()

    assert is_whole
    assert found == [Rounding("#/properties/n", {"n": expected, "b": ""}, expected)] * (expected is not None)


def check_decision(writer, reader, rounds, seed):
    """Check a decision with two judges; return what it is."""
    decision = Containment(writer, reader).decide()
    if isinstance(decision, Undecided):
        return decision.why
    if isinstance(decision, Counterexample):
        verdicts = [verdict(judges(one), decision.document) for one in (writer, reader)]
        assert verdicts == [True, False], (writer.canonical, reader.canonical, decision)
        return "document"
    assert refused(writer, reader, rounds, seed) == [], (writer.canonical, reader.canonical)
    return PROOF


def check_random(number, rounds, seed):
    """Check the decisions about random pairs in both directions; return how many came to what."""
    maker, counts = PairMaker(Random(seed)), {}
    for place in range(number):
        try:
            pair = [parsed(schema) for schema in maker.pair()]
        except SchemaParseError:  # an edit need not make a schema
            continue
        for writer, reader in (pair, pair[::-1]):
            found = check_decision(writer, reader, rounds, place)
            counts[found] = counts.get(found, 0) + 1
    return counts


def test_random_pairs():
    """Two judges confirm each document, and random documents contradict no proof; few pairs are left undecided."""
    counts = check_random(16, 10, 6)

    assert counts["document"] > 7
    assert counts[PROOF] > 7
    assert counts.get("undecided", 0) + counts.get("time", 0) < 0.05 * sum(counts.values())


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_many_random_pairs():
    """The same for 10,000 directions."""
    counts = check_random(5_000, 100, 31)

    assert counts.get("undecided", 0) + counts.get("time", 0) < 0.05 * sum(counts.values())


def wide(number):
    """Return a schema with many branches of several properties each."""
    return {"oneOf": [closed(**{f"p{place}_{n}": INTEGER for n in range(4)}) for place in range(number)]}


def deep(number, inner):
    """Return a schema nested so deep."""
    for _ in range(number):
        inner = {"properties": {"a": inner}}
    return inner


def nested_value(number):
    """Return an object nested so deep."""
    return {"a": nested_value(number - 1)} if number else {"b": 1}


def many_trees(number):
    """Return a schema of so many kinds of objects that contain one of them."""
    kinds = [required(f"p{place}", {"$ref": "#"}) for place in range(number)]
    return {"definitions": {"t": {"anyOf": kinds}}, "$ref": "#/definitions/t"}


HOSTILE = {
    "many branches": (wide(400), wide(399)),
    "branches of branches": (
        {"allOf": [{"anyOf": [{"multipleOf": n}, {"multipleOf": n + 1}]} for n in range(2, 40)]},
        {"allOf": [{"anyOf": [{"multipleOf": n}, {"multipleOf": n + 2}]} for n in range(2, 40)]},
    ),
    "a pattern with many states": (
        {"type": "string", "pattern": "^(a|b)*a(a|b){60}$"},
        {"pattern": "^(a|b)*b(a|b){59}$"},
    ),
    "many patterns of names": (
        {"type": "object", "patternProperties": {f"{n}a": STRING for n in range(40)}},
        {"type": "object", "patternProperties": {f"{n}b": STRING for n in range(40)}},
    ),
    "a large number of items": (
        {"type": "array", "minItems": 10**9},
        {"type": "array", "uniqueItems": True, "items": INTEGER},
    ),
    "long text": ({"type": "string", "minLength": 10**6}, {"type": "string", "pattern": "^b"}),
    "nested deeply": (deep(90, STRING), deep(90, INTEGER)),
    "a wide recursion": (many_trees(30), many_trees(29)),
    "a nested value under nested branches": (
        {"enum": [nested_value(40), 1]},
        {"anyOf": [{"properties": {"a": {"$ref": "#"}}}, {"type": "object", "properties": {"a": {"$ref": "#"}}}]},
    ),
    "a reference to itself": ({"$ref": "#"}, STRING),
    "numbers beyond doubles": ({"type": "number", "minimum": 1e300}, {"maximum": 1e301, "multipleOf": 7e299}),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_schemas_end(name):
    """The search for a hostile schema ends within its work, with a true answer or none."""
    writer, reader = (parsed(schema) for schema in HOSTILE[name])
    decision = Containment(writer, reader).decide(seconds=0.05)

    if isinstance(decision, Counterexample):
        assert [verdict(judges(one), decision.document) for one in (writer, reader)] == [True, False]
    else:
        assert isinstance(decision, Contained | Undecided)


def test_the_deadline_of_the_request_ends_a_search():
    """A search raises OutOfTime after the deadline of its limits, whatever its own time is."""
    containment = Containment(parsed(wide(60)), parsed(wide(59)), DEFAULT_LIMITS)
    containment._limits = Limits().ending_in(0)

    with pytest.raises(OutOfTime):
        containment.decide(seconds=100)


def test_patterns_as_languages():
    """The set of strings of a pattern has exactly the strings in which the validator finds the pattern."""
    chance = Random(3)
    tokens = [*"ab.^$|()*+?[]-\\d,", "[a-z]", "[^a]", "{2}", "{1,3}", "\\w", "(?:", "(a|b)", "^", "$"]
    understood = 0
    for _ in range(500):
        pattern = "".join(chance.choices(tokens, k=chance.randint(1, 8)))
        languages = Languages()
        language = language_of(pattern, languages)
        if language is None:
            continue
        understood += 1
        for text in ("".join(chance.choices("ab1 -", k=chance.randint(0, 5))) for _ in range(4)):
            assert languages.contains(language, text) == found_in(pattern, text), (pattern, text)
        member, other = languages.shortest(language), languages.shortest(languages.complement(language))
        assert member is None or found_in(pattern, member), (pattern, member)
        assert other is None or not found_in(pattern, other), (pattern, other)
    assert understood > 60
