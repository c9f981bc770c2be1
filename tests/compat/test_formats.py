"""The table of formats has a working row for each format."""

from strata.compat.formats import FORMATS
from strata.compat.schema import SchemaFormat


def test_every_format_has_a_row():
    """A format is in the table only if it works."""
    assert set(SchemaFormat) == set(FORMATS)


def test_a_format_does_what_its_names_say():
    """Parsing, normalizing, checking and comparing work through the table."""
    avro = FORMATS[SchemaFormat.AVRO]
    schema = avro.parse('{"type":"int","b":1,"a":2}', strict=True)
    other = avro.parse('{"type":"int","a":2,"b":1}', strict=True)

    assert (SchemaFormat.AVRO, '{"type":"int","b":1,"a":2}') == (schema.format, schema.canonical)
    assert other.canonical == avro.normalize(schema)
    assert avro.equivalent(schema, other)
    assert () == tuple(avro.check(schema, other))
