"""A JSON Schema reader is checked against a writer."""

import json

import pytest

from strata.compat.json_schema import rules
from strata.compat.json_schema.comparison import Comparison
from strata.compat.json_schema.parser import parse
from strata.compat.json_schema.patterns import found_in
from strata.compat.json_schema.rules import check
from strata.compat.json_schema.wording import explain, wire_message
from strata.compat.levels import Policy
from strata.compat.limits import Limits

TREE = '{"properties":{"v":{"type":"%s"},"kids":{"type":"array","items":{"$ref":"#"}}}}'


def _kinds(reader, writer, **settings):
    return [one.kind for one in check(parse(reader, strict=True), parse(writer, strict=True), **settings)]


@pytest.mark.parametrize(
    ("reader", "writer", "expected"),
    [
        pytest.param(
            '{"properties":{"a":{"type":"string"}}}',
            '{"properties":{}}',
            ["OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL"],
            id="added to an open model",
        ),
        pytest.param(
            '{"properties":{"a":{"type":"string"}},"additionalProperties":false}',
            '{"properties":{},"additionalProperties":false}',
            [],
            id="added to a closed model",
        ),
        pytest.param('{"type":["string","null"]}', '{"type":"string"}', [], id="a type more"),
        pytest.param('{"type":"string"}', '{"type":["string","null"]}', ["TYPE_CHANGED"], id="a type less"),
        pytest.param('{"multipleOf":4}', '{"multipleOf":2}', ["MULTIPLE_OF_EXPANDED"], id="a coarser multiple"),
        pytest.param(
            '{"exclusiveMaximum":5,"maximum":100}',
            '{"exclusiveMaximum":10,"maximum":100}',
            ["EXCLUSIVE_MAXIMUM_DECREASED"],
            id="a tighter exclusive maximum",
        ),
        pytest.param(
            '{"anyOf":[{"type":"string"},{"type":"string"}]}', '{"type":"string"}', [], id="one of two, alike"
        ),
        pytest.param(
            '{"type":"string"}',
            '{"anyOf":[{"type":"string"},{"type":"string"}]}',
            ["TYPE_CHANGED"],
            id="two that are alike are two",
        ),
        pytest.param(
            '{"anyOf":[{"const":1},{"const":2}]}',
            '{"anyOf":[{"const":1},{"const":3}]}',
            ["COMBINED_TYPE_SUBSCHEMAS_CHANGED"],
            id="constants differ",
        ),
        pytest.param(TREE % "string", TREE % "string", [], id="the same recursion"),
        pytest.param(TREE % "string", TREE % "integer", ["TYPE_CHANGED"] * 3, id="a change inside recursion"),
    ],
)
def test_rules(reader, writer, expected):
    """The check reports harmful differences and no harmless ones."""
    assert expected == _kinds(reader, writer)


_DRAFT_4, _DRAFT_7 = (f"http://json-schema.org/draft-0{number}/schema#" for number in (4, 7))


def _of_property(schema, **around):
    return json.dumps({**around, "properties": {"a": schema}})


@pytest.mark.parametrize(
    ("reader", "writer", "expected"),
    [
        pytest.param(
            _of_property({"$ref": "#/definitions/d"}, definitions={"d": {"type": "string"}}),
            _of_property({"$ref": "#/definitions/d"}, definitions={"d": {"type": "integer"}}),
            ["TYPE_CHANGED"],
            id="one reference to two schemas",
        ),
        pytest.param(
            _of_property({"items": {"$ref": "#/definitions/d"}}, definitions={"d": {"type": "string"}}),
            _of_property({"items": {"$ref": "#/definitions/d"}}, definitions={"d": {"type": "integer"}}),
            ["TYPE_CHANGED"],
            id="inside an equal schema",
        ),
        pytest.param(
            _of_property({"const": 1}, **{"$schema": _DRAFT_7}),
            _of_property({"const": 1}, **{"$schema": _DRAFT_4}),
            ["TYPE_CHANGED"],
            id="a keyword that one dialect lacks",
        ),
        pytest.param(
            _of_property({"const": 1}),
            _of_property({"const": True}),
            ["ENUM_ARRAY_CHANGED"],
            id="1 is not true",
        ),
        pytest.param(
            _of_property({"const": "1.5"}),
            _of_property({"const": 1.5}),
            ["ENUM_ARRAY_CHANGED"],
            id="a number is not its text",
        ),
    ],
)
def test_equal_json_counts_only_where_it_means_the_same(reader, writer, expected):
    """What equal parts refer to, and the dialect that reads them, may have changed."""
    assert expected == _kinds(reader, writer)


def _judged_pairs(reader, writer, room):
    """Return how many pairs a comparison judges."""
    pairs = []
    reader, writer = parse(reader, strict=True), parse(writer, strict=True)

    def judge(*arguments):
        pairs.append(arguments[1:3])
        rules._judge(*arguments)

    assert [] == Comparison(judge, Policy.STRICT, Limits(), room=room).run(reader.root, writer.root)
    return len(pairs)


@pytest.mark.parametrize(
    ("part", "room", "expected"),
    [
        pytest.param({"type": ["string", "null"], "maxLength": 9}, 1000, 1, id="equal"),
        pytest.param({"type": "number", "multipleOf": 0.5}, 1000, 1, id="with a fraction"),
        pytest.param({"type": "integer", "maximum": 2**64}, 1000, 2, id="with a number that has no bytes"),
        pytest.param({"type": "string", "default": "\ud800"}, 1000, 2, id="with a text that has no bytes"),
        pytest.param({"type": "string", "$comment": "c"}, 1000, 2, id="with a keyword that may be a reference"),
        pytest.param({"type": "string"}, 0, 2, id="no room to look"),
    ],
)
def test_equal_parts_are_not_judged(part, room, expected):
    """Two versions have most of their parts in common."""
    schema = _of_property(part)

    assert expected == _judged_pairs(schema, schema, room)


def test_the_search_for_equal_parts_is_bounded():
    """Each level of a deep schema holds all below it, so the search ends when it has written a few times the whole."""
    new, old = {"type": "string"}, {"type": ["string", "null"]}
    for _ in range(50):
        new, old = {"properties": {"a": new}}, {"properties": {"a": old}}
    new, old = json.dumps(new), json.dumps(old)
    comparison = Comparison(rules._judge, Policy.STRICT, Limits(), room=len(new))
    comparison.run(parse(old, strict=True).root, parse(new, strict=True).root)

    assert -len(new) < comparison._room <= 0


@pytest.mark.parametrize(
    ("dialect", "levels"),
    [
        pytest.param("http://json-schema.org/draft-07/schema#", 3, id="the older loader reads the root twice"),
        pytest.param("https://json-schema.org/draft/2020-12/schema", 2, id="the newer one shares its parts"),
    ],
)
def test_changes_on_a_cycle(dialect, levels):
    """A change on a cycle is found once for each array that the loader makes of it, and one time more."""
    old = {"$schema": dialect, "type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#"}}}}
    new = {**old, "properties": {"kids": {**old["properties"]["kids"], "maxItems": 9}}}

    assert ["MAX_ITEMS_ADDED"] * levels == _kinds(json.dumps(new), json.dumps(old))


def test_lenient_policy():
    """Under LENIENT an optional property may be added to an open model."""
    assert [] == _kinds('{"properties":{"a":{"type":"string"}}}', '{"properties":{}}', policy=Policy.LENIENT)


def test_message_and_explanation():
    """The wire message is the reference's to the letter; the explanation names place, rule and remedy."""
    finding = check(parse('{"minLength":2}', strict=True), parse('{"minLength":1}', strict=True))[0]

    assert (
        '{errorType:"MIN_LENGTH_INCREASED", description:"The value at path \'#/minLength\' in the new schema '
        "is more than its value in the old schema'}"
    ) == wire_message(finding, reader="new", writer="old")
    assert all(word in explain(finding) for word in ("#/minLength", "MIN_LENGTH_INCREASED", "Set it to 1 or lower"))


_STRING = {"type": "string"}
_TUPLE = {"items": [_STRING]}
_REQUIRED = {"properties": {"a": _STRING}, "required": ["a"]}
_ACCEPTED = [
    pytest.param(_REQUIRED, {}, "LENIENT", {"properties": {"a": _STRING}}, Policy.LENIENT, id="optional and LENIENT"),
    pytest.param(
        _REQUIRED, {}, "an empty schema", {**_REQUIRED, "properties": {"a": {}}}, Policy.STRICT, id="any value"
    ),
    pytest.param(
        {"items": [_STRING] * 2}, _TUPLE, "an empty schema", {"items": [_STRING, {}]}, Policy.STRICT, id="any item"
    ),
]


@pytest.mark.parametrize(("new", "old", "advice", "followed", "policy"), _ACCEPTED)
def test_advice_on_open_models_holds(new, old, advice, followed, policy):
    """A schema changed as the advice on open models says is accepted, and LENIENT alone is never the advice."""
    model = old or {"properties": {}}
    strict, lenient = (
        check(parse(json.dumps(new), strict=True), parse(json.dumps(model), strict=True), policy=one)
        for one in (Policy.STRICT, Policy.LENIENT)
    )

    assert [finding.kind for finding in strict] == [finding.kind for finding in lenient] != []
    assert advice in explain(strict[0])
    assert "or choose the compatibility policy LENIENT" not in explain(strict[0])
    assert [] == _kinds(json.dumps(followed), json.dumps(model), policy=policy)


def test_work_is_bounded():
    """A check that would take too much work ends with a finding that says so."""
    many = json.dumps({"oneOf": [{"type": "string", "title": str(number)} for number in range(100)]})

    assert ["TOO_COMPLEX"] == _kinds(many, many.replace("title", "description"), limits=Limits(comparisons=1000))


def test_long_chain_of_references():
    """A chain of references too long for the stack is checked to its end, and a change there is found."""
    changed = _chain({"type": "string", "maxLength": 5})

    assert [] == _kinds(_chain({"type": "string"}), changed)
    assert ["MAX_LENGTH_ADDED"] == _kinds(changed, _chain({"type": "string"}))


def test_long_cycle_of_references():
    """The check of a cycle of references too long for the stack ends, and finds a change in it."""
    cycle = _chain({"properties": {"a": {"$ref": "#/definitions/d0"}}})
    changed = _chain({"properties": {"a": {"$ref": "#/definitions/d0"}, "b": {"type": "string", "maxLength": 5}}})

    assert [] == _kinds(cycle, cycle)
    assert "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL" in _kinds(changed, cycle)


def _chain(last, count=500):
    definitions = {f"d{n}": {"properties": {"a": {"$ref": f"#/definitions/d{n + 1}"}}} for n in range(count)}
    return json.dumps({"$ref": "#/definitions/d0", "definitions": {**definitions, f"d{count}": last}})


@pytest.mark.parametrize(
    ("pattern", "name", "expected"),
    [
        pytest.param("^ne", "neu", True, id="found"),
        pytest.param("^(a+)+$", "a" * 5000 + "!", False, id="catastrophic"),
        pytest.param("(a|aa)+\\1$", "a" * 500 + "!", False, id="catastrophic with a back-reference"),
        pytest.param("(", "a", False, id="no pattern"),
    ],
)
def test_patterns(pattern, name, expected):
    """A pattern may match anywhere in a name, and no pattern hangs."""
    assert expected == found_in(pattern, name)
