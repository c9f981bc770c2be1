"""A reader checked against a writer gets the verdicts, kinds, places and details of Avro Java 1.12.1."""

import json
from collections import Counter

import pytest

from strata.compat.avro.parser import parse
from strata.compat.avro.rules import check
from strata.compat.limits import Limits


def _record(*fields, name="R", **more):
    return {"type": "record", "name": name, "fields": list(fields), **more}


def _field(name, kind, **more):
    return {"name": name, "type": kind, **more}


def _enum(*symbols, name="E", **more):
    return {"type": "enum", "name": name, "symbols": list(symbols), **more}


def _fixed(size, name="F", **more):
    return {"type": "fixed", "name": name, "size": size, **more}


def _array(items):
    return {"type": "array", "items": items}


def _mapping(values):
    return {"type": "map", "values": values}


def _mismatch(path, reader, writer):
    return ("TYPE_MISMATCH", path, f"reader type: {reader} not compatible with writer type: {writer}")


def _lacking(path, writer):
    return ("MISSING_UNION_BRANCH", path, f"reader union lacking writer type: {writer}")


def _renamed(path, writer):
    return ("NAME_MISMATCH", path, f"expected: {writer}")


def _missing(path, name):
    return ("READER_FIELD_MISSING_DEFAULT_VALUE", path, name)


INT, LONG = _record(_field("a", "int")), _record(_field("a", "long"))
PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
READS = {
    "long": {"int"},
    "float": {"int", "long"},
    "double": {"int", "long", "float"},
    "bytes": {"string"},
    "string": {"bytes"},
}

CASES = [
    ("logical types do not count", {"type": "int", "logicalType": "date"}, "int", []),
    (
        "decimals do not count",
        {"type": "bytes", "logicalType": "decimal", "precision": 4},
        {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
        [],
    ),
    ("fixed is not bytes", _fixed(4), "bytes", [_mismatch("/", "FIXED", "BYTES")]),
    ("bytes are not fixed", "bytes", _fixed(4), [_mismatch("/", "BYTES", "FIXED")]),
    ("string is not an enum", _enum("A"), "string", [_mismatch("/", "ENUM", "STRING")]),
    ("array items", _array("int"), _array("long"), [_mismatch("/items", "INT", "LONG")]),
    ("map values", _mapping("int"), _mapping("long"), [_mismatch("/values", "INT", "LONG")]),
    (
        "array of maps",
        _array(_mapping("int")),
        _array(_mapping("string")),
        [_mismatch("/items/values", "INT", "STRING")],
    ),
    ("array is not a map", _array("int"), _mapping("int"), [_mismatch("/", "ARRAY", "MAP")]),
    # names
    ("namespace does not count", _fixed(4, name="a.F"), _fixed(4, name="b.F"), []),
    ("fixed renamed", _fixed(4, name="G"), _fixed(4, name="n.F"), [_renamed("/name", "n.F")]),
    (
        "fixed renamed and resized",
        _fixed(3, name="G"),
        _fixed(4),
        [
            _renamed("/name", "F"),
            ("FIXED_SIZE_MISMATCH", "/size", "expected: 4, found: 3"),
        ],
    ),
    ("reader's alias", _fixed(4, name="G", aliases=["F"]), _fixed(4), []),
    ("reader's full alias", _fixed(4, name="m.G", aliases=["n.F"]), _fixed(4, name="n.F"), []),
    (
        "alias of another namespace",
        _fixed(4, name="m.G", aliases=["F"]),
        _fixed(4, name="n.F"),
        [_renamed("/name", "n.F")],
    ),
    ("alias without a namespace", _fixed(4, name="G", aliases=[".F"]), _fixed(4), []),
    (
        "alias without a namespace, inside one",
        _fixed(4, name="m.G", aliases=[".F"]),
        _fixed(4),
        [_renamed("/name", "F")],
    ),
    ("writer's alias does not count", _fixed(4), _fixed(4, name="G", aliases=["F"]), [_renamed("/name", "G")]),
    # enums
    ("symbols added", _enum("A", "B"), _enum("A"), []),
    ("symbols in another order", _enum("B", "A"), _enum("A", "B"), []),
    ("symbols removed", _enum("A"), _enum("C", "A", "B"), [("MISSING_ENUM_SYMBOLS", "/symbols", "[B, C]")]),
    ("symbols removed, with a default", _enum("A", default="A"), _enum("A", "B"), []),
    (
        "the writer's default does not help",
        _enum("A"),
        _enum("A", "B", default="B"),
        [("MISSING_ENUM_SYMBOLS", "/symbols", "[B]")],
    ),
    (
        "a field default is not an enum default",
        _record(_field("a", _enum("A"), default="A")),
        _record(_field("a", _enum("A", "B"))),
        [("MISSING_ENUM_SYMBOLS", "/fields/0/type/symbols", "[B]")],
    ),
    # records
    ("field removed", _record(), INT, []),
    ("field added with default", _record(_field("a", "int"), _field("b", "int", default=1)), INT, []),
    ("field added with default null", _record(_field("a", "int"), _field("b", ["null", "int"], default=None)), INT, []),
    ("field of type null without default", _record(_field("b", "null")), _record(), [_missing("/fields/0", "b")]),
    ("field added without default", _record(_field("a", "int"), _field("b", "int")), INT, [_missing("/fields/1", "b")]),
    (
        "fields in another order",
        _record(_field("b", "int"), _field("a", "int")),
        _record(_field("a", "int"), _field("b", "int")),
        [],
    ),
    ("field renamed by alias", _record(_field("b", "long", aliases=["x", "a"])), INT, []),
    (
        "writer's field alias does not count",
        INT,
        _record(_field("b", "int", aliases=["a"])),
        [_missing("/fields/0", "a")],
    ),
    ("type of a field", INT, LONG, [_mismatch("/fields/0/type", "INT", "LONG")]),
    (
        "everything at once",
        _record(_field("a", "int"), _field("b", "string"), _field("c", _enum("A")), name="S"),
        _record(_field("a", "long"), _field("c", _enum("A", "B"))),
        [
            _renamed("/name", "R"),
            _mismatch("/fields/0/type", "INT", "LONG"),
            _missing("/fields/1", "b"),
            ("MISSING_ENUM_SYMBOLS", "/fields/2/type/symbols", "[B]"),
        ],
    ),
    (
        "enum with default as a new field",
        _record(_field("a", _enum("A", default="A"))),
        _record(),
        [_mismatch("/fields/0/type", "ENUM", "RECORD")],
    ),
    (
        "name and alias both match",
        _record(_field("b", "int", aliases=["a"]), _field("a", "string")),
        _record(_field("a", "int"), _field("b", "string")),
        [
            (
                "AMBIGUOUS_FIELD",
                "/fields/0",
                (
                    "Reader record field b type:INT pos:0 matches multiple fields in writer record schema "
                    '{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"b","type":"string"}]}'
                ),
            )
        ],
    ),
    (
        "its own name as alias",
        _record(_field("a", "int", aliases=["a"])),
        INT,
        [
            (
                "AMBIGUOUS_FIELD",
                "/fields/0",
                (
                    "Reader record field a type:INT pos:0 matches multiple fields in writer record schema "
                    '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'
                ),
            )
        ],
    ),
    # unions
    ("into a union", ["null", "int"], "int", []),
    ("into a union by promotion", ["null", "long"], "int", []),
    ("into a union without it", ["null", "string"], "int", [_lacking("/", "INT")]),
    ("into an empty union", [], "int", [_lacking("/", "INT")]),
    ("out of an empty union", "int", [], []),
    ("out of a union, all readable", "long", ["int", "long"], []),
    (
        "out of a union",
        "int",
        ["null", "int", "long"],
        [_mismatch("/0", "INT", "NULL"), _mismatch("/2", "INT", "LONG")],
    ),
    ("branches added", ["null", "int", "string"], ["int", "null"], []),
    ("branches removed", ["null"], ["null", "int", _array("int")], [_lacking("/1", "INT"), _lacking("/2", "ARRAY")]),
    ("branch changed inside", ["null", INT], ["null", LONG], [_lacking("/1", "RECORD")]),
    (
        "branch of another name",
        ["null", INT],
        ["null", _record(_field("a", "int"), name="S")],
        [_lacking("/1", "RECORD")],
    ),
    (
        "union in a field",
        _record(_field("a", ["null", "int"])),
        _record(_field("a", ["null", "long"])),
        [_lacking("/fields/0/type/1", "LONG")],
    ),
    (
        "record out of a union",
        INT,
        ["null", LONG],
        [_mismatch("/0", "RECORD", "NULL"), _mismatch("/1/fields/0/type", "INT", "LONG")],
    ),
    # one type in several places
    (
        "a pair is judged once and told at its first place",
        _record(_field("x", LONG), _field("y", _array("R2")), _field("z", _record(name="R2")), name="Top"),
        _record(_field("x", LONG), _field("y", _array("R2")), _field("z", _record(name="R2")), name="Top"),
        [],
    ),
    (
        "a type used twice gives two findings, at its first place",
        _record(_field("x", _record(_field("a", "int"), name="In")), _field("y", "In")),
        _record(_field("x", _record(_field("a", "long"), name="In")), _field("y", "In")),
        [_mismatch("/fields/0/type/fields/0/type", "INT", "LONG")] * 2,
    ),
    (
        "met first inside a union, told as if at the root",
        _record(_field("x", ["null", _record(_field("a", "int"), name="In")]), _field("y", "In")),
        _record(_field("x", ["null", _record(_field("a", "long"), name="In")]), _field("y", "In")),
        [_lacking("/fields/0/type/1", "RECORD"), _mismatch("/fields/0/type", "INT", "LONG")],
    ),
    # recursion
    (
        "list",
        _record(_field("v", "long"), _field("next", ["null", "R"])),
        _record(_field("v", "int"), _field("next", ["null", "R"])),
        [],
    ),
    (
        "list of something else",
        _record(_field("v", "int"), _field("next", ["null", "R"])),
        _record(_field("v", "long"), _field("next", ["null", "R"])),
        [_mismatch("/fields/0/type", "INT", "LONG")],
    ),
    (
        "tree renamed by alias",
        _record(_field("kids", _array("T")), name="T", aliases=["R"]),
        _record(_field("kids", _array("R"))),
        [],
    ),
]


def _found(reader, writer, **more):
    findings = check(parse(json.dumps(reader), strict=False), parse(json.dumps(writer), strict=False), **more)
    return [(finding.kind, finding.path, finding.detail) for finding in findings]


@pytest.mark.parametrize(("reader", "writer", "expected"), [row[1:] for row in CASES], ids=[row[0] for row in CASES])
def test_findings(reader, writer, expected):
    """Every incompatibility is found, with its kind, its place and what was expected there."""
    assert Counter(expected) == Counter(_found(reader, writer))


@pytest.mark.parametrize("reader", PRIMITIVES)
def test_promotions(reader):
    """A primitive reads its own kind and those that promote to it."""
    readable = {writer for writer in PRIMITIVES if not _found(reader, writer)}

    assert {reader, *READS.get(reader, ())} == readable


def test_places_are_told_by_field_names_too():
    """The place names fields even through unions, arrays and maps, where the path starts again."""
    inner = _record(_field("code", "int"), name="Airport")
    other = _record(_field("code", "string"), name="Airport")
    reader = _record(_field("legs", _array(_mapping(_record(_field("origin", inner), name="Leg")))))
    writer = _record(_field("legs", _array(_mapping(_record(_field("origin", other), name="Leg")))))
    finding = check(parse(json.dumps(reader), strict=True), parse(json.dumps(writer), strict=True))[0]

    assert "legs[]{}.origin.code" == finding.where
    assert ("int", "string") == (finding.reader, finding.writer)


def chain(length, last):
    """Return types that each use the one before twice: 2**length leaves as a tree."""
    fields = [_field("t0", _record(_field("x", last), name="T0"))]
    for number in range(1, length):
        before = f"T{number - 1}"
        fields.append(_field(f"t{number}", _record(_field("x", before), _field("y", before), name=f"T{number}")))
    return _record(*fields)


def ring(length, last):
    """Return a ring of records, each holding the next one."""
    return _record(
        *(
            _field(f"f{here}", _record(_field("next", f"C{(here + 1) % length}"), _field("v", last), name=f"C{here}"))
            for here in range(length)
        )
    )


def test_exponential_schemas_end():
    """Each pair is compared once, and findings that double with every level are kept up to a bound."""
    assert [] == _found(chain(150, "long"), chain(150, "int"))
    assert 1000 == len(_found(chain(150, "int"), chain(150, "long")))


def test_rings_of_coprime_length_do_not_overflow():
    """Two rings meet in as many pairs as the product of their lengths, each inside the one before."""
    kinds = {kind for kind, _, _ in _found(ring(26, "long"), ring(27, "int"))}

    assert {"NAME_MISMATCH"} == kinds


def test_too_much_to_compare_is_incompatible():
    """A check that stops early says so instead of calling the schemas compatible."""
    findings = _found(
        [_fixed(1, name=f"F{number}") for number in range(9)], [_fixed(1, name="G")], limits=Limits(comparisons=5)
    )

    assert [("TOO_COMPLEX", "/", "more than 5 pairs of types to compare")] == findings
