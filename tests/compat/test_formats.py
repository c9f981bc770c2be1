"""The table of formats."""

import pytest

from compat.formats import FORMATS
from compat.schema import ParsedSchema, SchemaFormat


def test_every_format_has_a_row():
    """A format is named only once it works."""
    assert set(SchemaFormat) == set(FORMATS)


def test_a_row_takes_only_its_own_format():
    """A schema of another format is a mistake of the caller, and told as one."""
    other = ParsedSchema("OTHER", "{}")

    with pytest.raises(TypeError, match="OTHER"):
        FORMATS[SchemaFormat.AVRO].normalize(other)


def test_a_format_does_what_its_names_say():
    """Parse, normalize, check and equivalent work through the table."""
    avro = FORMATS[SchemaFormat.AVRO]
    schema = avro.parse('{"type":"int","b":1,"a":2}', strict=True)
    other = avro.parse('{"type":"int","a":2,"b":1}', strict=True)

    assert (SchemaFormat.AVRO, '{"type":"int","b":1,"a":2}') == (schema.format, schema.canonical)
    assert other.canonical == avro.normalize(schema)
    assert avro.equivalent(schema, other)
    assert () == tuple(avro.check(schema, other))
