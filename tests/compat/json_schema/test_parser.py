"""JSON Schema texts are parsed, printed and their references resolved."""

import json
import socket
from contextlib import nullcontext

import pytest

from strata.compat.json_schema.documents import metaschema_of
from strata.compat.json_schema.parser import normalize, parse
from strata.compat.json_schema.rules import check
from strata.compat.schema import ResolvedReference, SchemaParseError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param('{ "b" : 1.0, "a": 1e5 }', '{"b":1.0,"a":1E+5}', id="order and digits kept"),
        pytest.param('{"a":-0.0,"b":0E5}', '{"a":0.0,"b":0E+5}', id="zeros"),
        pytest.param('{"a":1,"a":2}', '{"a":2}', id="last of equal keys"),
        pytest.param('{"type":"string"} rest', '{"type":"string"}', id="the rest is dropped"),
    ],
)
def test_canonical_text(text, expected):
    """The stored text is compact and keeps the order of keys and the digits of numbers."""
    assert expected == parse(text, strict=True).canonical


def test_normalized_text():
    """Normalizing sorts the keys of every object, but not arrays."""
    assert '{"a":[{"x":1,"y":2},0],"b":1}' == normalize(parse('{"b":1,"a":[{"y":2,"x":1},0]}', strict=True))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[]", id="an array"),
        pytest.param("truely", id="a word that begins like one"),
        pytest.param('{"type":"strin"}', id="an unknown type"),
        pytest.param('{"not":' * 5000 + "{}" + "}" * 5000, id="too deep"),
        pytest.param('{"pattern":"' + "(" * 5000 + '"}', id="a pattern too deep"),
        pytest.param('{"minLength":1e999999999}', id="a number out of range"),
        pytest.param('{"$ref":"file:///etc/passwd"}', id="a file"),
        pytest.param('{"$ref":"http://[::1"}', id="no URI"),
        pytest.param('{"$ref":"#/definitions/none"}', id="nothing there"),
    ],
)
def test_refused(text):
    """A text is refused if it is not a schema or refers to something unregistered."""
    with pytest.raises(SchemaParseError):
        parse(text, strict=True)


def test_reference_is_resolved_among_those_given():
    """A `$ref` resolves to the registered schema of that name."""
    other = ResolvedReference("money.json", '{"definitions":{"M":{"type":"string"}}}')

    assert '{"$ref":"money.json#/definitions/M"}' == (
        parse('{"$ref":"money.json#/definitions/M"}', strict=True, references=[other]).canonical
    )


@pytest.mark.parametrize("keyword", ["$ref", "$schema", "$id"])
def test_nothing_is_fetched(keyword):
    """No URI in a schema causes a connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        uri = f"http://127.0.0.1:{listener.getsockname()[1]}/schema.json"
        try:
            parse(f'{{"{keyword}":"{uri}"}}', strict=True)
        except SchemaParseError:
            assert keyword == "$ref"

        with pytest.raises(BlockingIOError):
            listener.accept()


@pytest.mark.parametrize(
    "uri",
    [
        pytest.param("http://json-schema.org/draft-04/schema#", id="draft 4"),
        pytest.param("http://json-schema.org/draft-06/schema#", id="draft 6"),
        pytest.param("http://json-schema.org/draft-07/schema#", id="draft 7"),
        pytest.param("http://json-schema.org/draft-07/schema#/definitions/nonNegativeInteger", id="a part of draft 7"),
        pytest.param("https://json-schema.org/draft/2019-09/schema", id="2019-09"),
        pytest.param("https://json-schema.org/draft/2020-12/schema", id="2020-12"),
        pytest.param("https://json-schema.org/draft/2020-12/meta/core", id="a vocabulary"),
    ],
)
def test_metaschemas_are_known(uri):
    """A `$ref` to a published metaschema resolves to it, and it differs from a string."""
    schema = parse(f'{{"properties":{{"a":{{"$ref":"{uri}"}}}}}}', strict=True)
    other = parse('{"properties":{"a":{"type":"string"}}}', strict=True)

    assert [] == check(schema, schema)
    assert ["TYPE_CHANGED"] == [finding.kind for finding in check(schema, other)]


@pytest.mark.parametrize("name", ["schema", "meta/core", "meta/applicator", "meta/validation", "meta/content"])
@pytest.mark.parametrize("dialect", ["2019-09", "2020-12"])
def test_metaschemas_in_their_own_dialect(dialect, name):
    """A metaschema, whose anchors its own `$dynamicRef`s mean, can be referred to and be a schema itself."""
    own = f"https://json-schema.org/draft/{dialect}"
    _, document = metaschema_of(f"{own}/{name}")
    schema = parse(json.dumps({"$schema": f"{own}/schema", "$ref": f"{own}/{name}"}), strict=True)
    itself = parse(json.dumps(document), strict=True)

    assert [] == check(schema, schema) == check(itself, itself)


def test_undeclared_anchor():
    """An undeclared anchor means its document in the older dialects, and nothing in the newer ones."""
    text = '{"properties":{"a":{"$ref":"#nowhere"}}}'
    modern = f'{{"$schema":"https://json-schema.org/draft/2020-12/schema",{text[1:]}'

    assert text == parse(text, strict=True).canonical
    with pytest.raises(SchemaParseError, match="not found"):
        parse(modern, strict=True)


NEWER = "https://json-schema.org/draft/2020-12/schema"
NAMED = {"$id": "http://e/x"}
OTHER = {"$defs": {"q": NAMED}}
TAKEN_NAMES = [
    ("siblings", {"$defs": {"a": NAMED, "b": NAMED}}, {}, False),
    ("siblings, one under a word for values", {"$defs": {"default": NAMED, "b": NAMED}}, {}, False),
    ("one among the examples", {"$defs": {"a": NAMED}, "examples": [NAMED]}, {}, False),
    ("one in a constant", {"$defs": {"a": NAMED}, "const": NAMED}, {}, True),
    ("the whole and a part of it", {**NAMED, "$defs": {"a": NAMED}}, {}, False),
    ("a part of what it refers to", {**NAMED, "$ref": "http://e/r"}, {"http://e/r": OTHER}, False),
    ("a sibling of the $ref", {"$defs": {"a": NAMED, "b": {"$ref": "http://e/r"}}}, {"http://e/r": OTHER}, False),
    (
        "parts of two references",
        {"$defs": {"a": {"$ref": "http://e/r"}, "b": {"$ref": "http://e/s"}}},
        {"http://e/r": OTHER, "http://e/s": OTHER},
        False,
    ),
    ("the address of the reference", {"$ref": "http://e/x"}, {"http://e/x": OTHER}, False),
    ("a reference that is not used", {"$defs": {"a": NAMED}}, {"http://e/r": OTHER}, True),
]


@pytest.mark.parametrize(
    ("schema", "references", "accepted"), [row[1:] for row in TAKEN_NAMES], ids=[row[0] for row in TAKEN_NAMES]
)
def test_names_that_are_taken(schema, references, accepted):
    """In the newer dialects two schemas of the documents in use may not share a name."""
    resolved = [ResolvedReference(name, json.dumps({"$schema": NEWER, **text})) for name, text in references.items()]
    expected = nullcontext() if accepted else pytest.raises(SchemaParseError, match="Two references are named")

    with expected:
        parse(json.dumps({"$schema": NEWER, **schema}), strict=True, references=resolved)


MESSAGES = [
    ("[1]", {}, "Expected a JSON Schema (an object, true or false), got [1]"),
    ('{"required":5}', {}, "'required' must be an array, got 5 (at #)"),
    ('{"properties":{"a/b":{"items":[{"type":"strin"}]}}}', {}, "Unknown type 'strin'; expected one of array,"),
    ('{"properties":{"a/b":{"items":[{"type":5}]}}}', {}, "got 5 (at #/properties/a~1b/items/0)"),
    ('{"allOf":[{"not":7}]}', {}, "Expected a schema (an object, true or false), got 7 (at #/allOf/0)"),
    ('{"$ref":"r"}', {"r": '{"not":{"maxItems":""}}'}, "'maxItems' must be a number, got \"\" (at r#/not)"),
    ('{"$ref":"r"}', {}, "$ref 'r' not found; add a reference with that name (URLs are not fetched) (at #)"),
]


@pytest.mark.parametrize(("text", "references", "message"), MESSAGES, ids=[row[2][-40:] for row in MESSAGES])
def test_message(text, references, message):
    """The error says what is wrong, what is expected, and where."""
    with pytest.raises(SchemaParseError) as caught:
        parse(text, strict=True, references=[ResolvedReference(*reference) for reference in references.items()])

    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param('"a\\"b\\\\c\\/\\u007f\\u2028é😀"', '"a\\"b\\\\c/\x7f\u2028é😀"', id="only what must be escaped"),
        pytest.param('"\\u0001\\u001F\\n\\t\\b\\f\\r"', '"\\u0001\\u001F\\n\\t\\b\\f\\r"', id="controls in capitals"),
        pytest.param('"\\ud83d"', '"\\uD83D"', id="half a character"),
        pytest.param("[1.50, 1e3, -0.0, -0]", "[1.50,1E+3,0.0,0]", id="the digits of numbers"),
        pytest.param(
            "[18446744073709551616, 18446744073709551615]", "[18446744073709551616,18446744073709551615]", id="large"
        ),
        pytest.param('{"b": [true, null], "a": {}}', '{"b":[true,null],"a":{}}', id="the order of keys"),
    ],
)
def test_canonical_json(text, expected):
    """JSON is stored as the reference prints it."""
    assert f'{{"default":{expected}}}' == parse(f'{{"default": {text}}}', strict=True).canonical
