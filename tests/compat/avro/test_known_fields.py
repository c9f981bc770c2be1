"""Fields that are read once: what they may not change in a schema, in a check and in a comparison."""

import json
import tracemalloc

import pytest

from strata.compat.avro import known_records, parser
from strata.compat.avro.equivalence import equivalent
from strata.compat.avro.known_records import KnownFields, plain_field
from strata.compat.avro.parser import parse
from strata.compat.avro.rules import check
from strata.compat.limits import Limits
from strata.compat.schema import SchemaParseError


def record(*fields, name="R", namespace="a"):
    """Return the text of a record."""
    return json.dumps({"type": "record", "name": name, "namespace": namespace, "fields": fields})


def outcome(text, *, strict):
    """Return what the fields of a record are, or the error that it causes."""
    try:
        schema = parse(text, strict=strict)
    except SchemaParseError as error:
        return str(error)
    fields = [
        (f.name, f.doc, f.default, f.order, f.aliases, dict(f.properties), f.text, f.types, f.type.kind)
        for f in schema.root.fields
    ]
    branches = [[branch.kind for branch in getattr(f.type, "branches", ())] for f in schema.root.fields]
    return schema.canonical, fields, branches


def optional(name, of="string", **more):
    """Return a field that may be null."""
    return {"name": name, "type": ["null", of], "default": None, **more}


def fields_of(text, *, strict=True):
    """Return the fields of a record."""
    return parse(text, strict=strict).root.fields


def test_equal_fields_are_read_once():
    """Two schemas with other names share a field whose type has no names."""
    (first,), (second,) = fields_of(record(optional("a"))), fields_of(record(optional("a"), name="S", namespace="b"))

    assert first is second
    assert '{"name":"a","type":["null","string"],"default":null}' == first.text


ENUM = {"type": "enum", "name": "E", "symbols": ["X"]}
POINT = {"type": "record", "name": "Point", "fields": [{"name": "x", "type": "int"}, {"name": "e", "type": ENUM}]}


def test_a_field_that_uses_a_name_is_read_each_time():
    """A short name means another type in another namespace."""
    fields = [{"name": "a", "type": ENUM}, {"name": "b", "type": "E"}]
    first, second = (fields_of(record(*fields, namespace=namespace)) for namespace in ("a", "b"))

    assert [True, False] * 2 == [field.text is not None for field in (*first, *second)]
    assert ["a.E", "b.E"] == [fields[1].type.full for fields in (first, second)]
    assert first[0] is not second[0]


def test_a_field_that_defines_its_names_is_read_once_in_a_namespace():
    """Such a field brings the types that it defines along, whatever the name of its record."""
    field = {"name": "a", "type": POINT}
    first, second = (parse(record(field, name=name), strict=True) for name in ("R", "S"))
    other = parse(record(field, namespace="b"), strict=True)

    assert first.root.fields[0] is second.root.fields[0]
    assert ["a.E", "a.Point", "a.S"] == sorted(second.names)
    assert ["b.E", "b.Point", "b.R"] == sorted(other.names)
    assert first.canonical.replace('"R"', '"S"') == second.canonical
    assert second.canonical == parse(second.canonical, strict=False).canonical


def test_a_name_that_is_taken_is_refused_or_printed_once():
    """What a field defines depends on what came before it, so a known field is not trusted then."""
    parse(record({"name": "a", "type": POINT}), strict=True)
    other = {"type": "enum", "name": "E", "symbols": ["Y"]}
    with pytest.raises(SchemaParseError, match=r"Type a\.E is defined twice"):
        parse(record({"name": "b", "type": other}, {"name": "a", "type": POINT}), strict=True)

    again = parse(record({"name": "b", "type": ENUM}, {"name": "a", "type": POINT}), strict=True)
    assert 1 == again.canonical.count("symbols")


def test_a_type_is_printed_where_it_is_used_first():
    """A use before the definition takes the definition, also from a known field."""
    field = {"name": "a", "type": POINT}
    parse(record(field), strict=True)
    canonical = parse(record({"name": "before", "type": "E"}, field), strict=True).canonical

    assert canonical.index("symbols") < canonical.index("Point")
    assert '{"name":"e","type":"E"}' in canonical


@pytest.mark.parametrize("bound", [{"types": 2}, {"fields": 2}], ids=str)
def test_a_known_field_counts(bound):
    """The types and fields inside a known field count towards the limits."""
    text = record({"name": "a", "type": POINT})
    parse(text, strict=True)
    with pytest.raises(SchemaParseError, match="More than the 2"):
        parse(text, strict=True, limits=Limits(**bound))


def test_deep_fields_are_not_kept_at_each_level():
    """A field that defines many types has no text of its own, so a deep schema does not take memory by the square."""
    node = "int"
    for number in range(20):
        node = {"type": "record", "name": f"N{number}", "fields": [{"name": "inner", "type": node}]}
    schema = parse(record({"name": "outer", "type": node}), strict=True)
    texts = [schema.root.fields[0].text, *(schema.names[f"a.N{number}"].fields[0].text for number in range(20))]

    assert 9 == sum(text is not None for text in texts)
    assert schema.canonical == parse(schema.canonical, strict=False).canonical


def test_the_first_fault_counts():
    """A repeated name is reported before what is wrong with a later field, at its place."""
    inner = {"type": "record", "name": "I", "fields": [optional("a"), optional("a"), {"name": "b", "type": 1}]}
    with pytest.raises(SchemaParseError, match=r"I has two fields called a; rename one \(in field outer\)$"):
        parse(record({"name": "outer", "type": inner}), strict=True)


@pytest.mark.parametrize(
    ("namespace", "aliases", "kinds"),
    [
        ("a", [], []),
        ("b", [], []),
        ("a", ["y"], ["AMBIGUOUS_FIELD"]),
    ],
    ids=["same namespace", "other namespace", "alias"],
)
def test_equal_fields_with_names_are_compared_alike(namespace, aliases, kinds):
    """Equal fields are skipped only where a comparison of their types would find nothing."""
    point = {**POINT, "fields": [optional("x", aliases=aliases), optional("y")]}
    new = parse(record({"name": "p", "type": point}, optional("more")), strict=True)
    old = parse(record({"name": "p", "type": point}, namespace=namespace), strict=False)

    assert kinds == [found.kind for found in check(new, old)]


@pytest.mark.parametrize("default", ["1", "1.0", "true", '"1"', "[1]", "[true]", '{"a":1}', '{"a":1.0}'])
def test_values_that_python_takes_for_equal_stay_apart(default):
    """The key of a field tells 1, 1.0 and true apart."""
    text = f'{{"type":"record","name":"R","fields":[{{"name":"a","type":"int","x":{default}}}]}}'

    assert text == parse(text, strict=True).canonical


def test_an_infinite_number_is_no_null():
    """A number that no double holds is infinite; the writer of keys would write it as null."""
    text = '{{"type":"record","name":"R","fields":[{{"name":"a","type":"int","x":{}}}]}}'
    parse(text.format("null"), strict=True)

    assert text.format('"Infinity"') == parse(text.format("1e400"), strict=True).canonical
    assert text.format("null") == parse(text.format("null"), strict=True).canonical


def test_a_stored_schema_shares_the_fields_of_a_new_one():
    """A field that is legal in a new schema reads the same once it is stored."""
    (new,), (stored,) = fields_of(record(optional("shared"))), fields_of(record(optional("shared")), strict=False)

    assert new is stored


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ([optional("a"), {"name": "p", "type": POINT}], True),
        ([{"name": "p", "type": ENUM}, {"name": "q", "type": "E"}], False),
        ([{"name": "before", "type": "E"}, {"name": "p", "type": ENUM}], False),
    ],
    ids=["settled", "name used", "name used before its definition"],
)
def test_a_canonical_text_gives_the_same_model(fields, expected):
    """A record whose fields are settled is the same after it was stored."""
    new = parse(record(*fields), strict=True)
    stored = parse(new.canonical, strict=False)

    assert expected == new.is_read_alike
    assert not expected or (repr(new.root), repr(new.names)) == (repr(stored.root), repr(stored.names))


@pytest.mark.parametrize(
    "field", [optional("no name"), {"name": "a", "type": "int", "default": "x"}], ids=["name", "default"]
)
def test_strict_mode_trusts_no_lenient_reading(field):
    """A field that was accepted as stored is still refused as new."""
    assert parse(record(field), strict=False)
    with pytest.raises(SchemaParseError):
        parse(record(field), strict=True)


def test_findings_in_equal_types_have_their_own_paths():
    """Two fields that share a type, and differ from the writer's in the same way, are both reported at their place."""
    new = parse(record(optional("a"), optional("b")), strict=True)
    old = parse(record(optional("a", "int"), optional("b", "int")), strict=False)

    assert ["/fields/0/type/1", "/fields/1/type/1"] == [found.path for found in check(new, old)]


def test_a_field_with_an_alias_of_another_field_is_ambiguous():
    """A schema that cannot read itself is not skipped because both sides are equal."""
    schema = parse(record(optional("a", aliases=["b"]), optional("b")), strict=True)

    assert ["AMBIGUOUS_FIELD"] == [found.kind for found in check(schema, schema)]


def test_another_spelling_of_a_field_is_equivalent():
    """The order of attributes, and a type written as an object, make another field object but no other field."""
    one = parse(record(optional("a"), {"name": "b", "type": "int", "doc": "d"}), strict=True)
    other = parse(record(optional("a"), {"doc": "d", "type": {"type": "int"}, "name": "b"}), strict=False)

    assert one.outline == other.outline
    assert equivalent(one, other)
    assert not equivalent(one, parse(record(optional("a"), {"name": "b", "type": "int"}), strict=True))


@pytest.mark.parametrize("strict", [True, False])
def test_a_plain_field_means_what_its_full_reading_finds(monkeypatch, strict):
    """Model, canonical text and error are the same for plain fields, and for those that are nearly plain."""
    names = [{"name": "a"}, {"name": "\u00fc"}, {"name": 'q"\n'}, {"name": ""}, {"name": 1}, {}]
    types = ["int", "null", "float", "R", "Unknown", 7, None, ["null", "string"], ["string", "null"], ["int", "int"],
             ["null", "R"], ["null"], ["null", 1], [[], "int"], {"type": "int"}, ["null", "int", "long"]]  # fmt: skip
    more = [{}, {"default": None}, {"default": "1.5"}, {"default": 0}, {"doc": "d"}, {"doc": 1}, {"doc": 'a"b'},
            {"default": None, "doc": ""}, {"order": "ignore"}, {"aliases": ["b"]}, {"unit": "m"}]  # fmt: skip
    texts = [
        record({**name, "type": type_, **extra}, {"name": "z", "type": "int"})
        for number, name in enumerate(names)
        for type_ in types
        for extra in (more if number < 2 else more[:3])
    ]
    texts += [record({"name": "a"}), record("a"), record(None)]

    def outcomes():
        monkeypatch.setattr(parser, "_KNOWN_FIELDS", {True: KnownFields(), False: KnownFields()})
        return [outcome(text, strict=strict) for text in texts]

    shortly, plain = outcomes(), []
    monkeypatch.setattr(parser, "plain_field", lambda json, strict: plain.append(plain_field(json, strict=strict)))
    assert outcomes() == shortly
    assert len(plain) > 100 > len([field for field in plain if field is not None]) > 10


def test_the_table_is_bounded(monkeypatch):
    """The older half goes when the younger one is full, except for what was asked for since."""
    monkeypatch.setattr(known_records, "_MOST_KEYS", 100)
    field = fields_of(record(optional("a")))[0]
    table = KnownFields()
    table.put(b"kept", field)
    for number in range(100):
        table.put(str(number).encode() * 10, field)
        assert field is table.get(b"kept")

    assert table.get(b"0" * 10) is None
    assert 40 > len(table._young) + len(table._old)


def test_a_key_takes_hardly_more_than_its_bytes():
    """The table does not keep the buffers into which its keys were written."""
    field, table = fields_of(record(optional("a")))[0], KnownFields()
    tracemalloc.start()
    try:
        for number in range(500):
            table.put(KnownFields.key({"name": f"field_{number}", "type": "int"}), field)
        assert 500 * 500 > tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
