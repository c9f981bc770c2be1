"""The parser accepts and rejects schemas as Avro Java 1.12.1 does unless the row says otherwise."""

import json
import re
from contextlib import nullcontext

import pytest

from strata.compat.avro.parser import parse
from strata.compat.schema import ResolvedReference, SchemaParseError


def _record(*fields, name="R", **more):
    return {"type": "record", "name": name, "fields": list(fields), **more}


def _field(kind, **more):
    return {"name": "a", "type": kind, **more}


E = {"type": "enum", "name": "E", "symbols": ["A"]}
F = {"type": "fixed", "name": "F", "size": 2}
Q = _record({"name": "x", "type": "int"}, name="Q")

ACCEPTED = [
    ("empty union", []),
    ("empty record", _record()),
    ("error", {"type": "error", "name": "X", "fields": []}),
    ("record called record", _record(name="record")),
    ("type called int in a namespace", _record(name="n.int")),
    ("namespace that is not text", _record(namespace=5)),
    ("doc that is not text", _record(doc=5)),
    ("fixed of no bytes", {"type": "fixed", "name": "F", "size": 0}),
    ("fixed of the largest size", {"type": "fixed", "name": "F", "size": 2**31 - 9}),
    ("enum without symbols", {"type": "enum", "name": "E", "symbols": []}),
    ("enum default that is not text", {**E, "default": 5}),
    ("logical type on the wrong base", {"type": "string", "logicalType": "date"}),
    ("decimal without precision", {"type": "bytes", "logicalType": "decimal"}),
    ("order in any case", _record(_field("int", order="Descending"))),
    ("fields differing in case", _record(_field("int"), {"name": "A", "type": "int"})),
    ("field alias of any kind", _record(_field("int", aliases=["1 é-$"]))),
    ("alias with a bad namespace", _record(aliases=["1a.B"])),
    ("alias repeated", _record(aliases=["S", "S"])),
    ("same name in two namespaces of a union", [{**E, "name": "a.E"}, {**E, "name": "b.E"}]),
    ("reference with attributes", _record(_field(E), {"name": "b", "type": {"type": "E", "x": 1}})),
    ("itself", _record(_field(["null", "R"]))),
    ("itself by full name", _record(_field(["null", "n.R"]), name="n.R")),
    ("defined later", _record(_field("E"), {"name": "b", "type": E})),
    ("defined later, in an object", _record(_field({"type": "E"}), {"name": "b", "type": E})),
    ("defined later in the namespace", _record(_field("E"), {"name": "b", "type": E}, name="n.R")),
    (
        "null namespace from inside a namespace",
        _record({"name": "b", "type": {**E, "namespace": ""}}, _field("E"), name="n.R"),
    ),
    ("defined twice alike", _record(_field(E), {"name": "b", "type": E})),
    ("defined twice but for doc", _record(_field(E), {"name": "b", "type": {**E, "doc": "x", "default": "A"}})),
    (
        "defined twice as error and record",
        _record(_field({"type": "error", "name": "X", "fields": []}), {"name": "b", "type": _record(name="X")}),
    ),
    ("attribute beyond 64 bits, which the reference refuses", _record(x=2**70)),
]
REJECTED = [
    ("number", 42),
    ("null", None),
    ("no type", {}),
    ("type is null", {"type": None}),
    ("type is an object", {"type": {"type": "string"}}),
    ("type is an array", {"type": ["int"]}),
    ("unknown", "Nope"),
    ("unknown in an object", {"type": "Nope"}),
    ("unknown inside", {"type": "array", "items": "Nope"}),
    ("primitives are lower case", "INT"),
    ("array without items", {"type": "array"}),
    ("map without values", {"type": "map"}),
    ("record without fields", {"type": "record", "name": "R"}),
    ("fields null", {"type": "record", "name": "R", "fields": None}),
    ("record without name", {"type": "record", "fields": []}),
    ("named after a primitive", _record(name="int")),
    ("field not an object", _record("a")),
    ("field without name", _record({"type": "int"})),
    ("field without type", _record({"name": "a"})),
    ("field twice", _record(_field("int"), _field("long"))),
    ("unknown order", _record(_field("int", order="ignored"))),
    ("order that is not text", _record(_field("int", order=5))),
    ("aliases not an array", _record(_field("int", aliases="b"))),
    ("alias not a string", _record(_field("int", aliases=[1]))),
    ("type aliases null", _record(aliases=None)),
    ("union in a union", ["null", ["int"]]),
    ("twice in a union", ["int", {"type": "int", "logicalType": "date"}]),
    ("two arrays in a union", [{"type": "array", "items": "int"}, {"type": "array", "items": "long"}]),
    ("name twice in a union", [E, E]),
    ("name and reference in a union", ["E", E]),
    ("enum without symbols", {"type": "enum", "name": "E"}),
    ("symbols not an array", {"type": "enum", "name": "E", "symbols": "A"}),
    ("symbol not a string", {"type": "enum", "name": "E", "symbols": [1]}),
    ("symbol twice", {"type": "enum", "name": "E", "symbols": ["A", "B", "A"]}),
    ("enum default not a symbol", {**E, "default": "B"}),
    ("fixed without size", {"type": "fixed", "name": "F"}),
    ("size below zero", {**F, "size": -1}),
    ("size as text", {**F, "size": "4"}),
    ("size with a point", {**F, "size": 4.0}),
    ("size too large", {**F, "size": 2**31 - 8}),
    ("size true", {**F, "size": True}),
    ("defined twice differently", _record(_field(E), {"name": "b", "type": {**E, "symbols": ["B"]}})),
    ("defined twice with other attributes", _record(_field(E), {"name": "b", "type": {**E, "x": 1}})),
    ("enum and fixed of one name", [E, {"type": "fixed", "name": "E", "size": 1}]),
    ("inside itself", _record(_field(_record()))),
    ("recursive twice", [_record(_field(["null", "R"])), {"type": "array", "items": _record(_field(["null", "R"]))}]),
    (
        "null namespace from inside a namespace, later",
        _record(_field("E"), {"name": "b", "type": {**E, "namespace": ""}}, name="n.R"),
    ),
    ("null namespace around a namespace", _record(_field(_record({"name": "b", "type": ["null", "R"]}, name="n.S")))),
    ("text default of a double that is not a number", _record(_field("double", default="abc"))),
]
LENIENT_ONLY = [
    ("dash in a name", _record(name="a-b")),
    ("digit first", _record(name="1R")),
    ("letters beyond ASCII", _record(name="Ré")),
    ("empty name", _record(name="")),
    ("bad namespace", _record(namespace="a-b")),
    ("hole in a namespace", _record(namespace="a..b")),
    ("namespace ending in a dot", _record(namespace="a.")),
    ("name ending in a dot", _record(name="a.")),
    ("dotted field", _record({"name": "a.b", "type": "int"})),
    ("dash in a symbol", {"type": "enum", "name": "E", "symbols": ["a-b"]}),
    ("dash in a type alias", _record(aliases=["a-b"])),
    ("default of another type", _record(_field("int", default="x"))),
    ("default of its own record", _record(_field("R", default={}))),
]
DEFAULTS = [
    ("null", "null", None, True),
    ("null, not 0", "null", 0, False),
    ("boolean", "boolean", True, True),
    ("boolean, not 1", "boolean", 1, False),
    ("int", "int", 2**31 - 1, True),
    ("int too large", "int", 2**31, False),
    ("int too small", "int", -(2**31) - 1, False),
    ("int with a point", "int", 1.0, False),
    ("int, not true", "int", True, False),
    ("long", "long", -(2**63), True),
    ("long too large", "long", 2**63, False),
    ("float of an integer", "float", 1, True),
    ("double beyond 64 bits", "double", 2**70, True),
    ("double as text", "double", "1.5", True),
    ("float as NaN", "float", "NaN", True),
    ("double, not true", "double", True, False),
    ("string", "string", "x", True),
    ("string, not 1", "string", 1, False),
    ("bytes", "bytes", "\xff", True),
    ("bytes beyond latin 1", "bytes", "€", True),
    ("bytes, not 1", "bytes", 1, False),
    ("enum, any text", E, "B", True),
    ("enum, not 0", E, 0, False),
    ("fixed of any length", F, "abc", True),
    ("array", {"type": "array", "items": "int"}, [1, 2], True),
    ("array, one bad", {"type": "array", "items": "int"}, [1, "x"], False),
    ("array, not null", {"type": "array", "items": "int"}, None, False),
    ("doubles inside are numbers only", {"type": "array", "items": "double"}, ["NaN"], False),
    ("map", {"type": "map", "values": "int"}, {"k": 1}, True),
    ("map, one bad", {"type": "map", "values": "int"}, {"k": "x"}, False),
    ("map, not a list", {"type": "map", "values": "int"}, [], False),
    ("first branch", ["null", "int"], None, True),
    ("later branch", ["null", "int"], 1, True),
    ("no branch", ["null", "int"], "x", False),
    ("union of numbers, no text", ["double", "null"], "1.5", False),
    ("empty union", [], None, False),
    ("record", Q, {"x": 1}, True),
    ("record, bad field", Q, {"x": "a"}, False),
    ("record, field missing", Q, {}, False),
    ("record, unknown field", Q, {"x": 1, "y": 2}, True),
    ("record, field's own default", _record({"name": "x", "type": "int", "default": 7}, name="Q"), {}, True),
    ("record, not a list", Q, [], False),
    ("union in a record", _record({"name": "x", "type": ["null", "int"]}, name="Q"), {"x": 1}, True),
]


def _verdict(schema, *, strict):
    try:
        parse(json.dumps(schema), strict=strict)
    except SchemaParseError:
        return False
    return True


@pytest.mark.parametrize("schema", [row[1] for row in ACCEPTED], ids=[row[0] for row in ACCEPTED])
def test_accepted(schema):
    """The parser accepts these as new schemas and as stored ones."""
    assert (True, True) == (_verdict(schema, strict=True), _verdict(schema, strict=False))


@pytest.mark.parametrize("schema", [row[1] for row in REJECTED], ids=[row[0] for row in REJECTED])
def test_rejected(schema):
    """The parser rejects these even as stored schemas, since no version of Avro could have stored them."""
    assert (False, False) == (_verdict(schema, strict=True), _verdict(schema, strict=False))


@pytest.mark.parametrize("schema", [row[1] for row in LENIENT_ONLY], ids=[row[0] for row in LENIENT_ONLY])
def test_lenient_only(schema):
    """The parser reads these as stored schemas, but rejects them as new ones."""
    assert (False, True) == (_verdict(schema, strict=True), _verdict(schema, strict=False))


@pytest.mark.parametrize(("kind", "value", "legal"), [row[1:] for row in DEFAULTS], ids=[row[0] for row in DEFAULTS])
def test_defaults(kind, value, legal):
    """A new schema's default must fit the type, at every depth."""
    assert legal == _verdict(_record(_field(kind, default=value)), strict=True)


LATER = {"name": "b", "type": Q}
DEFAULTS_AND_NAMES = [
    ("of a record defined later", _record(_field("Q", default={"x": 1}), LATER), True),
    ("of a record defined later, bad", _record(_field("Q", default={"x": "s"}), LATER), False),
    ("of an enum defined later", _record(_field("E", default="A"), {"name": "b", "type": E}), False),
    (
        "of a union with an enum defined later",
        _record(_field(["null", "E"], default=None), {"name": "b", "type": E}),
        True,
    ),
    (
        "text, in a union with an enum defined later",
        _record(_field(["E", "string"], default="A"), {"name": "b", "type": E}),
        True,
    ),
    ("null for itself", _record(_field(["null", "R"], default=None)), True),
    ("null for itself, second", _record(_field(["R", "null"], default=None)), True),
    ("an object for itself", _record(_field(["null", "R"], default={"a": None})), False),
    ("without end", _record(_field("R", default={})), False),
    (
        "null for what is around",
        _record(_field(_record({"name": "b", "type": ["null", "R"], "default": None}, name="S"))),
        True,
    ),
]


@pytest.mark.parametrize(
    ("schema", "legal"), [row[1:] for row in DEFAULTS_AND_NAMES], ids=[row[0] for row in DEFAULTS_AND_NAMES]
)
def test_defaults_and_names(schema, legal):
    """The position of a default decides which types it may fit."""
    assert legal == _verdict(schema, strict=True)


MESSAGES = [
    (_record(_field("int", default="x")), 'The default must be of the type "int", got "x" (in field a)'),
    (
        _record(_field(Q, default={})),
        f"The default must be of the type {json.dumps(Q, separators=(',', ':'))}, got {{}} (in field a)",
    ),
    (_record(_field("n.X")), "Unknown type n.X: define it here, or refer to the schema that does (in field a)"),
    (
        _record(_field({"type": 5})),
        'A type written as an object needs a "type" that is a string: {"type":5} (in field a)',
    ),
    (
        _record(_field(_record({"name": "b", "type": ["int", "int"]}, name="S"))),
        "The union has two branches of type int; keep one (in field a.b)",
    ),
    (
        _record(name="1R"),
        "Name '1R' is invalid: it must start with a letter (A-Z, a-z) or _ and go on with letters, digits and _",
    ),
    (
        _record(_field(E), {"name": "b", "type": {**E, "x": 1}}),
        "Type E is defined twice, in different ways; rename one, or repeat only the name (in field b)",
    ),
]


@pytest.mark.parametrize(("schema", "message"), MESSAGES, ids=[row[1][:40] for row in MESSAGES])
def test_message(schema, message):
    """The error says what is wrong, and in which field."""
    with pytest.raises(SchemaParseError) as caught:
        parse(json.dumps(schema), strict=True)

    assert message == str(caught.value)


def test_names_lead_to_the_first_definition():
    """Each name leads to the first definition of its type."""
    schema = parse(json.dumps(_record(_field(E), {"name": "b", "type": E}, name="n.R")), strict=True)

    assert ["n.E", "n.R"] == list(schema.names)
    assert schema.root is schema.names["n.R"]
    assert schema.root.fields[0].type is schema.names["n.E"]
    assert schema.root.fields[1].type is not schema.names["n.E"]


def test_schemas_are_equal_by_their_text():
    """Parsed schemas can be compared and kept in sets."""
    one, other = parse('{"type":"int"}', strict=True), parse('"int"', strict=False)

    assert one == other
    assert {one} == {other}


KIDS = {"name": "kids", "type": {"type": "array", "items": "T"}}
TREE = {"type": "record", "name": "T", "doc": "first", "fields": [KIDS]}
LATER_E = _record(_field("E"), {"name": "b", "type": E}, name="n.L")
BESIDE = [
    ("it again, recursive", TREE, _record(_field({**TREE, "doc": "again"})), None),
    (
        "it again, otherwise",
        TREE,
        _record(_field({**TREE, "fields": []})),
        "Type T is defined twice, in different ways; rename one, or repeat only the name (in field a)",
    ),
    (
        "an inner type again, recursive",
        _record(_field(["null", TREE]), name="O"),
        _record(_field(TREE), {"name": "b", "type": "O"}),
        None,
    ),
    ("a default of a type that it defines later", LATER_E, _record(_field("n.L", default={"a": "A", "b": "A"})), None),
]


@pytest.mark.parametrize(("referred", "schema", "fault"), [row[1:] for row in BESIDE], ids=[row[0] for row in BESIDE])
def test_types_of_references_are_complete(referred, schema, fault):
    """A schema may repeat a type that its reference defines, but not change it."""
    reference = ResolvedReference("r", json.dumps(referred), "r/1")
    expected = pytest.raises(SchemaParseError, match=re.escape(fault)) if fault else nullcontext()

    with expected:
        parse(json.dumps(schema), strict=True, references=[reference])


@pytest.mark.parametrize(
    ("referred", "canonical"),
    [
        pytest.param(TREE, '"T"', id="of a reference"),
        pytest.param(_record(_field(TREE)), json.dumps(TREE, separators=(",", ":")), id="inside a reference"),
    ],
)
def test_a_schema_that_is_a_type_of_its_reference(referred, canonical):
    """A schema that its reference already defines has the text of that definition."""
    reference = ResolvedReference("r", json.dumps(referred), "r/1")
    schema = parse(json.dumps({**TREE, "doc": "again"}), strict=True, references=[reference])

    assert canonical == schema.canonical
