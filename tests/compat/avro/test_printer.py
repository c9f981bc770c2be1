"""Schemas are printed as canonical text, as Avro Java 1.12.1 prints them."""

# ruff: noqa: E501 - a schema is easier to read on one line

import pytest

from strata.compat.avro.parser import parse

SAME = [
    "[]",
    '["null","int"]',
    '{"type":"fixed","name":"F","size":2}',
    '{"type":"error","name":"X","fields":[]}',
    '{"type":"record","name":"R","doc":"","fields":[{"name":"a","type":"int","doc":""}]}',
    '{"type":"record","name":"R","fields":[{"name":"a","type":"int","default":0,"order":"ignore","aliases":["b"],"x":1}]}',
    '{"type":"enum","name":"E","namespace":"n","doc":"d","symbols":["A"],"default":"A","x":1,"aliases":["B","m.C"]}',
    '{"type":"record","name":"int","namespace":"n","fields":[{"name":"a","type":["null","n.int"]}]}',
    '{"type":"record","name":"record","namespace":"n","fields":[{"name":"a","type":["null","n.record"]}]}',
    (
        '{"type":"record","name":"C","namespace":"p","fields":[{"name":"d","type":{"type":"record","name":"D","namespace":"",'
        '"fields":[]}},{"name":"e","type":["null","D"]}]}'
    ),
    '{"type":"record","name":"R","fields":[{"name":"a","type":"double","default":"NaN"}]}',
]
CHANGED = [
    ("primitive without attributes", '{"type":"int"}', '"int"'),
    ("primitive with attributes", '{"x":1,"type":"int"}', '{"type":"int","x":1}'),
    (
        "words of other kinds go",
        '{"type":"int","items":1,"name":"x","size":2,"default":3}',
        '{"type":"int","default":3}',
    ),
    ("order of attributes", '{"z":1,"items":"int","type":"array","a":2}', '{"type":"array","items":"int","z":1,"a":2}'),
    (
        "dotted name",
        '{"type":"fixed","name":"a.b.C","namespace":"z","size":1}',
        '{"type":"fixed","name":"C","namespace":"a.b","size":1}',
    ),
    ("leading dot", '{"type":"fixed","name":".C","namespace":"z","size":1}', '{"type":"fixed","name":"C","size":1}'),
    (
        "empty namespace outside",
        '{"type":"fixed","name":"C","namespace":"","size":1}',
        '{"type":"fixed","name":"C","size":1}',
    ),
    (
        "namespace repeated",
        '{"type":"record","name":"p.C","fields":[{"name":"d","type":{"type":"fixed","name":"D","namespace":"p","size":1}},{"name":"e","type":"p.D"}]}',
        '{"type":"record","name":"C","namespace":"p","fields":[{"name":"d","type":{"type":"fixed","name":"D","size":1}},{"name":"e","type":"D"}]}',
    ),
    (
        "ascending goes, others in lower case",
        '{"type":"record","name":"R","fields":[{"name":"a","type":"int","order":"ASCENDING"},{"name":"b","type":"int","order":"Ignore"}]}',
        '{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"b","type":"int","order":"ignore"}]}',
    ),
    (
        "aliases once, relative to the namespace",
        '{"type":"fixed","name":"n.F","size":1,"aliases":["A","n.A","m.A","n.B"]}',
        '{"type":"fixed","name":"F","namespace":"n","size":1,"aliases":["A","m.A","B"]}',
    ),
    ("empty aliases go", '{"type":"fixed","name":"F","size":1,"aliases":[]}', '{"type":"fixed","name":"F","size":1}'),
    (
        "numbers in defaults and attributes",
        '{"type":"record","name":"R","fields":[{"name":"a","type":"double","default":1e5,"x":[1,1.10,-0,-0.0,1E400]},{"name":"b","type":"double","default":1}]}',
        '{"type":"record","name":"R","fields":[{"name":"a","type":"double","default":100000.0,"x":[1,1.1,0,-0.0,"Infinity"]},{"name":"b","type":"double","default":1}]}',
    ),
    (
        "text default of a double",
        '{"type":"record","name":"R","fields":[{"name":"a","type":"float","default":" 0x1p3 "},{"name":"b","type":["double"],"default":1}]}',
        '{"type":"record","name":"R","fields":[{"name":"a","type":"float","default":8.0},{"name":"b","type":["double"],"default":1}]}',
    ),
    (
        "defined where first met",
        '{"type":"record","name":"n.R","fields":[{"name":"a","type":"m.E"},{"name":"b","type":{"type":"enum","name":"m.E","symbols":["A"],"x":1}}]}',
        '{"type":"record","name":"R","namespace":"n","fields":[{"name":"a","type":{"type":"enum","name":"E","namespace":"m","symbols":["A"],"x":1}},{"name":"b","type":"m.E"}]}',
    ),
    (
        "second definition becomes a name",
        '[{"type":"enum","name":"E","symbols":["A"]},{"type":"array","items":{"type":"enum","name":"E","symbols":["A"],"doc":"d"}}]',
        '[{"type":"enum","name":"E","symbols":["A"]},{"type":"array","items":"E"}]',
    ),
    (
        "reference with attributes loses them",
        '[{"type":"fixed","name":"F","size":1},{"type":"map","values":{"type":"F","x":1}}]',
        '[{"type":"fixed","name":"F","size":1},{"type":"map","values":"F"}]',
    ),
    (
        "attributes that are not text count as absent",
        '{"type":"fixed","name":"F","size":1,"doc":5,"namespace":7}',
        '{"type":"fixed","name":"F","size":1}',
    ),
    (
        "an enum has no attribute default",
        '{"type":"enum","name":"E","symbols":[],"default":5}',
        '{"type":"enum","name":"E","symbols":[]}',
    ),
    ("characters", r'{"type":"int","x":"\u00e9\u0001\/\u007f\u2028"}', '{"type":"int","x":"é\\u0001/\x7f\u2028"}'),
    ("comments and blanks", ' /* a */ { "type" : // b\n "int" } ', '"int"'),
]


@pytest.mark.parametrize("text", SAME)
def test_canonical_text_stays(text):
    """Text in Avro's own form is printed unchanged."""
    assert text == parse(text, strict=True).canonical


@pytest.mark.parametrize(("text", "expected"), [row[1:] for row in CHANGED], ids=[row[0] for row in CHANGED])
def test_canonical_text(text, expected):
    """Every spelling of a schema becomes Avro's own, and reading it again does not change it."""
    canonical = parse(text, strict=True).canonical

    assert expected == canonical
    assert canonical == parse(canonical, strict=False).canonical
