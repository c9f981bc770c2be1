"""Fields that are read once: what they may not change in a schema, in a check and in a comparison."""

import json
import tracemalloc

import pytest

from strata.compat.avro import known_fields
from strata.compat.avro.equivalence import equivalent
from strata.compat.avro.known_fields import KnownFields
from strata.compat.avro.parser import parse
from strata.compat.avro.rules import check
from strata.compat.schema import SchemaParseError


def record(*fields, name="R", namespace="a"):
    """Return the text of a record."""
    return json.dumps({"type": "record", "name": name, "namespace": namespace, "fields": fields})


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


def test_a_field_with_a_name_in_its_type_is_read_each_time():
    """A short name means another type in another namespace."""
    enum = {"type": "enum", "name": "E", "symbols": ["X"]}
    fields = [{"name": "a", "type": enum}, {"name": "b", "type": "E"}]
    first, second = (fields_of(record(*fields, namespace=namespace)) for namespace in ("a", "b"))

    assert [None] * 4 == [field.text for field in (*first, *second)]
    assert ["a.E", "b.E"] == [fields[1].type.full for fields in (first, second)]


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


def test_the_table_is_bounded(monkeypatch):
    """The older half goes when the younger one is full, except for what was asked for since."""
    monkeypatch.setattr(known_fields, "_MOST_BYTES", 100)
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
