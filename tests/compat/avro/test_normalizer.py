"""Normalized text; an asterisk marks rows where the reference damages the schema and Strata does not."""

import pytest

from strata.compat.avro.normalizer import normalize
from strata.compat.avro.parser import parse
from strata.compat.limits import Limits
from strata.compat.schema import SchemaParseError


def _with_default(kind, default):
    return f'{{"type":"record","name":"R","fields":[{{"name":"a","type":{kind},"default":{default}}}]}}'


DEFAULTS = [
    ("double", '"double"', "1", "1.0"),
    ("float", '"float"', "16777217", "1.6777216E7"),
    ("float too large", '"float"', "1e39", '"Infinity"'),
    ("int stays", '"int"', "1", "1"),
    ("text stays", '"string"', '"b"', '"b"'),
    ("bytes beyond latin 1", '"bytes"', '"é€😀"', '"é??"'),
    ("array", '{"type":"array","items":"double"}', "[1,2.5]", "[1.0,2.5]"),
    ("map", '{"type":"map","values":"float"}', '{"b":1,"a":2}', '{"a":2.0,"b":1.0}'),
    (
        "record",
        '{"type":"record","name":"Q","fields":[{"name":"y","type":"long"},{"name":"x","type":"double"}]}',
        '{"y":1,"x":2}',
        '{"x":2.0,"y":1}',
    ),
    (
        "unknown key",
        '{"type":"record","name":"Q","fields":[]}',
        '{"z":{"b":1,"a":1}}',
        '{"z":{"a":1,"b":1}}',
    ),
    ("too large inside an array *", '{"type":"array","items":"float"}', "[1,1e39]", "[1.0,1.0E39]"),
    ("too large in a union *", '["float","null"]', "1e39", "1.0E39"),
    ("null", '["null","double"]', "null", "null"),
    ("first branch", '["double","null"]', "1", "1.0"),
    ("later branch *", '["null","double"]', "1", "1.0"),
    ("beyond 64 bits *", '"double"', "100000000000000000000", "1.0E20"),
    ("beyond all doubles *", '"double"', "1" + "0" * 400, '"Infinity"'),
]
CHANGED = [
    (
        "attributes",
        '{"type":"int","z":1,"a":[2,{"y":1,"b":2}],"m":null}',
        '{"type":"int","a":[2,{"b":2,"y":1}],"m":null,"z":1}',
    ),
    ("unknown logical type", '{"type":"int","logicalType":"zork","k":1}', '{"type":"int","k":1,"logicalType":"zork"}'),
    (
        "known logical type first",
        '{"type":"int","a":1,"logicalType":"date"}',
        '{"type":"int","logicalType":"date","a":1}',
    ),
    (
        "known for another type",
        '{"type":"long","logicalType":"date","a":1}',
        '{"type":"long","a":1,"logicalType":"date"}',
    ),
    (
        "decimal first, scale if not zero",
        '{"type":"bytes","a":1,"scale":2,"logicalType":"decimal","precision":4}',
        '{"type":"bytes","logicalType":"decimal","precision":4,"scale":2,"a":1}',
    ),
    (
        "scale zero is an attribute like others",
        '{"type":"bytes","scale":0,"z":1,"a":1,"logicalType":"decimal","precision":4}',
        '{"type":"bytes","logicalType":"decimal","precision":4,"a":1,"scale":0,"z":1}',
    ),
    (
        "invalid decimal",
        '{"type":"bytes","logicalType":"decimal","precision":"4"}',
        '{"type":"bytes","logicalType":"decimal","precision":"4"}',
    ),
    (
        "decimal too long for its fixed",
        '{"type":"fixed","name":"F","size":2,"precision":5,"logicalType":"decimal","a":1}',
        '{"type":"fixed","name":"F","size":2,"a":1,"logicalType":"decimal","precision":5}',
    ),
    (
        "decimal that fits",
        '{"type":"fixed","name":"F","size":2,"precision":4,"logicalType":"decimal","a":1}',
        '{"type":"fixed","name":"F","size":2,"logicalType":"decimal","precision":4,"a":1}',
    ),
    (
        "decimal too long for a long fixed",
        '{"type":"fixed","name":"F","size":200,"precision":482,"logicalType":"decimal","a":1}',
        '{"type":"fixed","name":"F","size":200,"a":1,"logicalType":"decimal","precision":482}',
    ),
    (
        "decimal that fits a long fixed",
        '{"type":"fixed","name":"F","size":200,"precision":481,"logicalType":"decimal","a":1}',
        '{"type":"fixed","name":"F","size":200,"logicalType":"decimal","precision":481,"a":1}',
    ),
    (
        "known, but with a class of Java's",
        '{"type":"string","avro.java.string":"String","logicalType":"uuid"}',
        '{"type":"string","avro.java.string":"String","logicalType":"uuid"}',
    ),
    (
        "a class of Java's that is not text",
        '{"type":"string","avro.java.string":1,"logicalType":"uuid"}',
        '{"type":"string","logicalType":"uuid","avro.java.string":1}',
    ),
    (
        "duration of twelve bytes only",
        '[{"type":"fixed","name":"F","size":12,"a":1,"logicalType":"duration"},{"type":"fixed","name":"G","size":11,"logicalType":"duration","a":1}]',
        '[{"type":"fixed","name":"F","size":12,"logicalType":"duration","a":1},{"type":"fixed","name":"G","size":11,"a":1,"logicalType":"duration"}]',
    ),
    (
        "aliases by full name",
        '{"type":"fixed","name":"z.F","size":1,"aliases":["y","n.a","A"]}',
        '{"type":"fixed","name":"F","namespace":"z","size":1,"aliases":["n.a","A","y"]}',
    ),
    (
        "aliases without a namespace, inside one",
        '{"type":"fixed","name":"z.F","size":1,"aliases":["a.B",".b","b",".array"]}',
        '{"type":"fixed","name":"F","namespace":"z","size":1,"aliases":["a.B","z.array","b"]}',
    ),
    (
        "aliases without a namespace, outside of any",
        '{"type":"fixed","name":"F","size":1,"aliases":[".b","a.B","b"]}',
        '{"type":"fixed","name":"F","size":1,"aliases":["a.B","b"]}',
    ),
    (
        "field",
        '{"type":"record","name":"R","fields":[{"name":"a","type":"int","doc":"","aliases":["q","b"],"zeta":1,"alpha":2}]}',
        '{"type":"record","name":"R","fields":[{"name":"a","type":"int","doc":"","aliases":["b","q"],"alpha":2,"zeta":1}]}',
    ),
    (
        "empty doc of a type",
        '{"type":"record","name":"R","doc":"","fields":[]}',
        '{"type":"record","name":"R","fields":[]}',
    ),
    ("error", '{"type":"error","name":"X","fields":[]}', '{"type":"record","name":"X","fields":[]}'),
    (
        "empty namespace inside another *",
        '{"type":"record","name":"p.C","fields":[{"name":"d","type":{"type":"fixed","name":"D","namespace":"","size":1}}]}',
        '{"type":"record","name":"C","namespace":"p","fields":[{"name":"d","type":{"type":"fixed","name":"D","namespace":"","size":1}}]}',
    ),
    (
        "attribute beyond 64 bits *",
        '{"type":"int","a":100000000000000000000}',
        '{"type":"int","a":100000000000000000000}',
    ),
    (
        "inside arrays, maps and unions",
        '{"type":"array","items":["null",{"type":"map","values":{"type":"int","b":1,"a":1},"d":1,"c":1}],"f":1,"e":1}',
        '{"type":"array","items":["null",{"type":"map","values":{"type":"int","a":1,"b":1},"c":1,"d":1}],"e":1,"f":1}',
    ),
    (
        "defined later",
        '{"type":"record","name":"R","fields":[{"name":"a","type":"E"},{"name":"b","type":{"type":"enum","name":"E","symbols":["B","A"],"z":1,"y":1}}]}',
        '{"type":"record","name":"R","fields":[{"name":"a","type":{"type":"enum","name":"E","symbols":["B","A"],"y":1,"z":1}},{"name":"b","type":"E"}]}',
    ),
]


def _normalized(text, *, strict=True):
    return normalize(parse(text, strict=strict))


@pytest.mark.parametrize(("kind", "value", "expected"), [row[1:] for row in DEFAULTS], ids=[row[0] for row in DEFAULTS])
def test_defaults(kind, value, expected):
    """A default is written as a value of its type, and no default is lost."""
    kept = _normalized(_with_default(kind, value)).rpartition('"default":')[2].removesuffix("}]}")

    assert expected == kept


@pytest.mark.parametrize(("text", "expected"), [row[1:] for row in CHANGED], ids=[row[0] for row in CHANGED])
def test_normalized(text, expected):
    """Different spellings get one order."""
    assert expected == _normalized(text)


def test_default_of_a_stored_schema_that_does_not_fit():
    """A bad default of an old schema is kept as it is."""
    assert _with_default('"int"', '{"a":1,"b":"x"}') == _normalized(
        _with_default('"int"', '{"b":"x","a":1}'), strict=False
    )


def test_bounds_hold():
    """Text beyond the bounds is refused, since it could not be read back."""
    with pytest.raises(SchemaParseError, match="more than the 10 allowed"):
        normalize(parse('{"type":"int","x":1}', strict=True), limits=Limits(text=10))
