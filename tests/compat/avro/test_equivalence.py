"""Equivalent schemas of one subject count as one version though their texts differ."""

import pytest

from strata.compat.avro.equivalence import equivalent
from strata.compat.avro.parser import parse

EQUAL = [
    ("order of attributes", '{"type":"int","a":1,"b":{"x":1,"y":2}}', '{"b":{"y":2,"x":1},"a":1,"type":"int"}'),
    (
        "order of aliases",
        '{"type":"fixed","name":"F","size":1,"aliases":["A","B"]}',
        '{"type":"fixed","name":"F","size":1,"aliases":["B","A"]}',
    ),
    (
        "order of field aliases and of keys in a default",
        '{"type":"record","name":"R","fields":[{"name":"a","type":{"type":"map","values":"int"},"default":{"x":1,"y":2},"aliases":["p","q"]}]}',
        '{"type":"record","name":"R","fields":[{"name":"a","type":{"type":"map","values":"int"},"default":{"y":2,"x":1},"aliases":["q","p"]}]}',
    ),
    ("record and error", '{"type":"error","name":"R","fields":[]}', '{"type":"record","name":"R","fields":[]}'),
    (
        "recursive",
        '{"type":"record","name":"R","fields":[{"name":"n","type":["null","R"],"x":1,"y":2}]}',
        '{"type":"record","name":"R","fields":[{"name":"n","type":["null","R"],"y":2,"x":1}]}',
    ),
    (
        "defined in another place",
        '[{"type":"fixed","name":"F","size":1},{"type":"array","items":"F"}]',
        '[{"type":"fixed","name":"F","size":1},{"type":"array","items":{"type":"fixed","name":"F","size":1}}]',
    ),
]
DIFFERENT = [
    ("kind", '"int"', '"long"'),
    ("attribute", '{"type":"int","a":1}', '"int"'),
    ("value of an attribute", '{"type":"int","a":1}', '{"type":"int","a":1.0}'),
    ("order in an attribute's list", '{"type":"int","a":[1,2]}', '{"type":"int","a":[2,1]}'),
    ("items", '{"type":"array","items":"int"}', '{"type":"array","items":"long"}'),
    ("values", '{"type":"map","values":"int"}', '{"type":"map","values":"long"}'),
    ("order of branches", '["null","int"]', '["int","null"]'),
    ("number of branches", '["null","int"]', '["null"]'),
    ("name", '{"type":"fixed","name":"F","size":1}', '{"type":"fixed","name":"G","size":1}'),
    ("namespace", '{"type":"fixed","name":"F","size":1}', '{"type":"fixed","name":"n.F","size":1}'),
    ("size", '{"type":"fixed","name":"F","size":1}', '{"type":"fixed","name":"F","size":2}'),
    ("alias", '{"type":"fixed","name":"F","size":1,"aliases":["A"]}', '{"type":"fixed","name":"F","size":1}'),
    (
        "order of symbols",
        '{"type":"enum","name":"E","symbols":["A","B"]}',
        '{"type":"enum","name":"E","symbols":["B","A"]}',
    ),
    (
        "enum default",
        '{"type":"enum","name":"E","symbols":["A"],"default":"A"}',
        '{"type":"enum","name":"E","symbols":["A"]}',
    ),
    ("doc", '{"type":"record","name":"R","fields":[],"doc":""}', '{"type":"record","name":"R","fields":[]}'),
    ("enum doc", '{"type":"enum","name":"E","symbols":[],"doc":"x"}', '{"type":"enum","name":"E","symbols":[]}'),
]
FIELDS = [
    ("name", '{"name":"a","type":"int"}', '{"name":"b","type":"int"}'),
    ("type", '{"name":"a","type":"int"}', '{"name":"a","type":"long"}'),
    ("doc", '{"name":"a","type":"int","doc":"x"}', '{"name":"a","type":"int"}'),
    ("order", '{"name":"a","type":"int","order":"ignore"}', '{"name":"a","type":"int"}'),
    ("default or none", '{"name":"a","type":"null","default":null}', '{"name":"a","type":"null"}'),
    ("1 and 1.0", '{"name":"a","type":"double","default":1}', '{"name":"a","type":"double","default":1.0}'),
    ("the two zeros", '{"name":"a","type":"double","default":0.0}', '{"name":"a","type":"double","default":-0.0}'),
    ("alias", '{"name":"a","type":"int","aliases":["b"]}', '{"name":"a","type":"int"}'),
    ("attribute", '{"name":"a","type":"int","x":null}', '{"name":"a","type":"int"}'),
    ("one more", '{"name":"a","type":"int"}', '{"name":"a","type":"int"},{"name":"b","type":"int"}'),
]


def _same(left, right):
    return equivalent(parse(left, strict=False), parse(right, strict=False))


@pytest.mark.parametrize(("left", "right"), [row[1:] for row in EQUAL], ids=[row[0] for row in EQUAL])
def test_equal(left, right):
    """Order without a meaning does not count."""
    assert _same(left, right)
    assert _same(right, left)


@pytest.mark.parametrize(("left", "right"), [row[1:] for row in DIFFERENT], ids=[row[0] for row in DIFFERENT])
def test_different(left, right):
    """Everything in the text counts."""
    assert _same(left, left)
    assert not _same(left, right)
    assert not _same(right, left)


@pytest.mark.parametrize(("left", "right"), [row[1:] for row in FIELDS], ids=[row[0] for row in FIELDS])
def test_different_fields(left, right):
    """Every attribute of a field counts."""
    whole = '{"type":"record","name":"R","fields":[%s]}'

    assert _same(whole % left, whole % left)
    assert not _same(whole % left, whole % right)


def test_deep_schemas_do_not_overflow():
    """The check compares a chain of types that is longer than the stack is deep."""
    fields = ['{"name":"f0","type":{"type":"record","name":"T0","fields":[]}}']
    fields += [
        f'{{"name":"f{n}","type":{{"type":"record","name":"T{n}","fields":[{{"name":"x","type":"T{n - 1}"}}]}}}}'
        for n in range(1, 1500)
    ]
    text = f'{{"type":"record","name":"R","fields":[{",".join(fields)}]}}'

    assert _same(text, text)
