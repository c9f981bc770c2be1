"""Each dialect accepts and reads keywords as its loader does."""

import json

import pytest

from strata.compat.json_schema.parser import parse
from strata.compat.json_schema.rules import check
from strata.compat.schema import ResolvedReference, SchemaParseError

DRAFT_4 = "http://json-schema.org/draft-04/schema#"
DRAFT_6 = "http://json-schema.org/draft-06/schema#"
DRAFT_7 = "http://json-schema.org/draft-07/schema#"
DRAFT_2020 = "https://json-schema.org/draft/2020-12/schema"


def _text(dialect, schema):
    return json.dumps({"$schema": dialect, **schema})


@pytest.mark.parametrize(
    ("dialect", "schema"),
    [
        pytest.param(DRAFT_7, {"maxLength": 2**31}, id="a count beyond 32 bits"),
        pytest.param(DRAFT_7, {"minItems": -(2**31) - 1}, id="a negative count beyond 32 bits"),
        pytest.param(DRAFT_7, {"multipleOf": 0}, id="a multiple of nothing"),
        pytest.param(DRAFT_4, {"multipleOf": 10**400}, id="a multiple beyond a double"),
        pytest.param(DRAFT_7, {"pattern": "("}, id="an invalid pattern"),
        pytest.param(DRAFT_2020, {"pattern": "("}, id="an invalid pattern, newer dialect"),
        pytest.param(DRAFT_7, {"patternProperties": {"[a": {}}}, id="an invalid pattern of names"),
        pytest.param(DRAFT_6, {"propertyNames": 5}, id="no schema of names"),
        pytest.param(DRAFT_2020, {"propertyNames": {"type": "foo"}}, id="names of an unknown type"),
        pytest.param(DRAFT_7, {"readOnly": "yes"}, id="readOnly that is not a boolean"),
        pytest.param(DRAFT_2020, {"writeOnly": None}, id="writeOnly that is not a boolean"),
        pytest.param(DRAFT_2020, {"deprecated": 1}, id="deprecated that is not a boolean"),
        pytest.param(DRAFT_4, {"items": True}, id="boolean items in draft 4"),
        pytest.param(DRAFT_4, {"dependencies": {"a": True}}, id="a boolean dependency in draft 4"),
        pytest.param(DRAFT_2020, {"$defs": 5}, id="$defs that are not an object"),
        pytest.param(DRAFT_2020, {"definitions": {"a": 5}}, id="a definition that is not a schema, newer dialect"),
        pytest.param(DRAFT_2020, {"$dynamicAnchor": 5}, id="an anchor that is not a string"),
        pytest.param(DRAFT_2020, {"$dynamicRef": "#none"}, id="a dynamic reference to nothing"),
        pytest.param(DRAFT_2020, {"$id": "#frag"}, id="a name with a fragment"),
        pytest.param(DRAFT_2020, {"$anchor": "a b"}, id="an anchor that is not a fragment"),
        pytest.param(
            DRAFT_2020, {"properties": {"a": {"$anchor": "x"}, "b": {"$anchor": "x"}}}, id="an anchor given twice"
        ),
        pytest.param(DRAFT_7, {"$id": "a b"}, id="a name that is not a URI"),
        pytest.param(DRAFT_7, {"$ref": "#a b"}, id="a reference that is not a URI"),
        pytest.param(DRAFT_7, {"$ref": "#a/b"}, id="a way from an anchor to nothing"),
        pytest.param(5, {}, id="$schema that is not a string"),
    ],
)
def test_refused(dialect, schema):
    """A value that the dialect's loader rejects is refused."""
    with pytest.raises(SchemaParseError):
        parse(_text(dialect, schema), strict=True)


@pytest.mark.parametrize(
    ("dialect", "schema"),
    [
        pytest.param(DRAFT_7, {"maxLength": 2**31 - 1}, id="a count of 32 bits"),
        pytest.param(DRAFT_2020, {"multipleOf": 0}, id="a multiple of nothing, newer dialect"),
        pytest.param(DRAFT_7, {"pattern": "(?<n>a)\\k<n>"}, id="a pattern of Java"),
        pytest.param(DRAFT_4, {"propertyNames": 5}, id="names in draft 4"),
        pytest.param(DRAFT_6, {"readOnly": "yes"}, id="readOnly before draft 7"),
        pytest.param(DRAFT_7, {"deprecated": 1}, id="deprecated in draft 7"),
        pytest.param(DRAFT_7, {"definitions": 5}, id="definitions that are not an object, draft 7"),
        pytest.param(DRAFT_2020, {"definitions": 5}, id="definitions that are not an object, newer dialect"),
        pytest.param(DRAFT_2020, {"properties": {"p": {"definitions": []}}}, id="the same inside"),
        pytest.param(DRAFT_7, {"minContains": "x"}, id="minContains in draft 7"),
        pytest.param(DRAFT_2020, {"minContains": "x"}, id="minContains without contains"),
        pytest.param(DRAFT_2020, {"then": 5}, id="then without if"),
        pytest.param(DRAFT_7, {"properties": {"$id": 5}}, id="a name among the properties"),
        pytest.param(DRAFT_4, {"properties": {"id": 5}}, id="a name among the properties, draft 4"),
        pytest.param(DRAFT_7, {"$ref": "#/"}, id="a way that ends at once"),
        pytest.param(DRAFT_7, {"$ref": "#/definitions/a%2Fb", "definitions": {"a/b": {}}}, id="an escaped slash"),
        pytest.param(DRAFT_7, {"$ref": "#/definitions/a+b", "definitions": {"a b": {}}}, id="a blank as a plus"),
        pytest.param(
            DRAFT_2020,
            {"$dynamicRef": "#x", "$defs": {"a": {"$dynamicAnchor": "x"}, "b": {"$dynamicAnchor": "x"}}},
            id="a dynamic anchor given twice",
        ),
    ],
)
def test_accepted(dialect, schema):
    """A value that the dialect's loader does not look at is not checked."""
    text = _text(dialect, schema)

    assert json.loads(text) == json.loads(parse(text, strict=True).canonical)


@pytest.mark.parametrize(
    ("dialect", "one", "other"),
    [
        pytest.param(DRAFT_7, {"dependencies": {"a": []}}, {"dependencies": {}}, id="an empty dependency"),
        pytest.param(DRAFT_2020, {"dependentRequired": {"a": []}}, {"properties": {}}, id="the same, newer dialect"),
        pytest.param(DRAFT_7, {"propertyNames": {}}, {"properties": {}}, id="names make an object"),
        pytest.param(DRAFT_4, {"propertyNames": {}}, {}, id="not in draft 4"),
        pytest.param(DRAFT_4, {"contains": {}}, {}, id="contains is unknown in draft 4"),
        pytest.param(DRAFT_7, {"maxContains": 2}, {}, id="maxContains alone is unknown in draft 7"),
        pytest.param(
            DRAFT_7,
            {"type": ["array", "null"], "maxContains": 2},
            {"type": ["array", "null"]},
            id="maxContains counts where the array is all",
        ),
        pytest.param(DRAFT_2020, {"maxContains": 2}, {}, id="maxContains alone says nothing"),
        pytest.param(DRAFT_2020, {"minLength": 1.5}, {"minLength": 1}, id="what stands behind the point"),
        pytest.param(DRAFT_2020, {"dependencies": {"a": ["b"]}}, {}, id="dependencies are unknown"),
        pytest.param(DRAFT_2020, {"else": {}}, {}, id="else without if"),
        pytest.param(DRAFT_7, {"properties": {"$id": True}}, {"properties": {}}, id="a name among the properties"),
        pytest.param(
            DRAFT_2020,
            {"$dynamicRef": "#x", "$defs": {"a": {"$dynamicAnchor": "x", "type": "string"}}},
            {"$ref": "#/$defs/a", "$defs": {"a": {"type": "string"}}},
            id="a dynamic reference leads to its anchor",
        ),
    ],
)
def test_read_as_the_same(dialect, one, other):
    """Two texts that the loader reads as one schema are compatible both ways."""
    left, right = (parse(_text(dialect, schema), strict=True) for schema in (one, other))

    assert ([], []) == (check(left, right), check(right, left))


@pytest.mark.parametrize("dialect", [DRAFT_4, DRAFT_7, DRAFT_2020])
def test_a_property_without_a_name(dialect):
    """A property whose name is empty is one like any other, even with `true` or `false` as its schema."""
    reader = parse(_text(dialect, {"type": "object", "properties": {"": False}}), strict=True)
    writer = parse(_text(dialect, {"type": "object", "properties": {"": {"type": "string"}}}), strict=True)

    assert [""] == list(reader.root.properties)
    assert ["TYPE_CHANGED"] == [finding.kind for finding in check(reader, writer)]


@pytest.mark.parametrize(
    ("referring", "referred", "kinds"),
    [
        pytest.param({}, {"exclusiveMinimum": 5}, ["EXCLUSIVE_MINIMUM_ADDED"], id="draft 7 by default"),
        pytest.param({"$schema": DRAFT_4}, {"exclusiveMinimum": True}, [], id="draft 4 as who refers"),
        pytest.param(
            {"$schema": DRAFT_2020}, {"prefixItems": [{}], "minimum": 1}, ["TYPE_CHANGED"], id="2020-12 as who refers"
        ),
        pytest.param({"$schema": DRAFT_2020}, {"$schema": DRAFT_4, "const": 1}, ["TYPE_CHANGED"], id="only 2020-12"),
        pytest.param({"$schema": DRAFT_7}, {"$schema": DRAFT_4, "const": 1}, [], id="its own, if older"),
        pytest.param({"$schema": DRAFT_7}, {"$schema": DRAFT_2020, "prefixItems": [{}]}, [], id="not if newer"),
    ],
)
def test_dialect_of_what_is_referred_to(referring, referred, kinds):
    """A referenced document is read by the loader of the schema that refers to it."""
    reference = ResolvedReference("a.json", json.dumps(referred))
    reader = parse(json.dumps({**referring, "$ref": "a.json"}), strict=True, references=[reference])
    writer = parse(json.dumps({**referring, "type": "number"}), strict=True)

    assert kinds == [finding.kind for finding in check(reader, writer)]


@pytest.mark.parametrize("name", ["http://h.test/x/a.json", "./a.json", "/x/a.json", "../x/a.json#"])
def test_names_are_joined(name):
    """A reference is looked up under its name and under that name resolved against the schema's own."""
    reference = ResolvedReference("a.json", '{"type":"string"}')
    text = _text(DRAFT_7, {"$id": "http://h.test/x/root.json", "properties": {"p": {"$ref": name}}})

    assert parse(text, strict=True, references=[reference]).canonical == text.replace(": ", ":").replace(", ", ",")
