"""Texts that are read as edits of known ones: they mean what they mean when they are read whole."""

import dataclasses
import json
import random
import time

import pytest

from strata.compat.avro import known_records, parser
from strata.compat.avro.known_records import KnownFields, KnownRecords
from strata.compat.avro.model import Missing
from strata.compat.avro.parser import parse
from strata.compat.limits import DEFAULT_LIMITS, Limits
from strata.compat.schema import SchemaParseError

COLOR = {"type": "enum", "name": "Color", "symbols": ["RED"], "default": "RED"}
POINT = {"type": "record", "name": "Point", "aliases": ["P"], "fields": [{"name": "x", "type": "int"}]}
PLAIN = [
    {"name": "id", "type": "long", "doc": 'ends with "fields":[{}, {'},
    {"name": "name", "type": ["null", "string"], "default": None, "aliases": ["title"]},
    {"name": "rates", "type": {"type": "array", "items": {"type": "map", "values": "double"}}, "default": [{"a": 1e5}]},
    {"name": "size", "type": "int", "default": 7, "order": "ignore", "unit": "}, {"},
]
NAMED = [
    {"name": "at", "type": POINT, "default": {"x": 1}},
    {"name": "color", "type": COLOR},
    {"name": "more", "type": {"type": "array", "items": "Color"}},
    {"name": "parent", "type": ["null", "R"], "default": None},
    {"name": "other", "type": {"type": "fixed", "name": "b.Hash", "size": 4}},
]
SPARE = [
    {"name": "new", "type": "string"},
    {"name": "id", "type": "string"},
    {"name": "shade", "type": "Color", "default": "RED"},
    {"name": "later", "type": "Point"},
    {"name": "color", "type": {**COLOR, "symbols": ["RED", "BLUE"]}},
    {"name": "again", "type": POINT},
    {"name": "self", "type": {"type": "record", "name": "R", "fields": []}},
    {"name": "wrong", "type": "int", "default": "x"},
    {"name": "1", "type": "int"},
    {"name": "ünknown", "type": "Nothing"},
    {"name": "long", "type": "double", "default": 123456789012345678901},
    7,
]
HEADS = [
    {"type": "record", "name": "R"},
    {"type": "record", "name": "R", "namespace": "a", "doc": "fields"},
    {"type": "error", "name": "a.R"},
]
RESTS = [{}, {"doc": "last", "aliases": ["S"], "unit": {"a": [1]}}]
SEPARATORS = [(",", ":"), (", ", ": "), (" ,\n", " : ")]
SNIPPETS = (
    '"', "\\", "{", "}", "[", "]", ",", ":", "0", "1", "null", "}, {", '"fields":[', "]}", '{"name":"n","type":"int"}',
    '{"name":"n","type":"int"},', ',{"name":"n","type":"int"}', '"name":', "//", "/**/", "\ud800", "\u00fc", "\n",
)  # fmt: skip


def spelled(head, fields, rest, separators):
    """Return the text of a record."""
    return json.dumps({**head, "fields": fields, **rest}, separators=separators)


def shown(node):
    """Return a node of the model with all that it holds."""
    if isinstance(node, Missing):
        return "missing"
    if dataclasses.is_dataclass(node):
        names = [field.name for field in dataclasses.fields(node) if field.init]
        return (type(node).__name__, *(shown(getattr(node, name)) for name in names))
    if isinstance(node, tuple) and not hasattr(node, "_fields"):
        return tuple(map(shown, node))
    return repr(node)


def outcome(text, limits=DEFAULT_LIMITS, *, strict=True):
    """Return all that a text means, or the error that it causes."""
    try:
        schema = parse(text, strict=strict, limits=limits)
    except SchemaParseError as error:
        return str(error)
    names = [(name, shown(node)) for name, node in schema.names.items()]
    return schema.canonical, shown(schema.root), names, schema.external, schema.is_read_alike


@pytest.fixture(autouse=True)
def tables(monkeypatch):
    """Let no test see the records of another one; return a function that empties the tables."""

    def empty():
        monkeypatch.setattr(parser, "_KNOWN_FIELDS", {True: KnownFields(), False: KnownFields()})
        monkeypatch.setattr(parser, "_KNOWN_RECORDS", {True: KnownRecords(), False: KnownRecords()})

    empty()
    return empty


def learn(text, *, strict=True):
    """Read a text until it is known."""
    for _ in range(2):
        parse(text, strict=strict)


def compare(tables, base, edits, *, strict=True):
    """Compare the meaning of edits of a known text with what they mean by themselves.

    Return how many of them were read as edits.
    """
    tables()
    alone = [outcome(text, strict=strict) for text in edits]  # none is known: each is read whole
    count = 0
    for text, expected in zip(edits, alone, strict=True):
        tables()
        learn(base, strict=strict)
        edit = parser._KNOWN_RECORDS[strict].find(text, DEFAULT_LIMITS)
        if edit is not None:
            count += parser._read_edit(text, edit, DEFAULT_LIMITS, strict=strict) is not None
        assert expected == outcome(text, strict=strict), text
    return count


def edits_of(fields, pick):
    """Yield lists of fields that differ from a list in a few places."""
    for _ in range(3):
        at = pick.randrange(len(fields) + 1)
        yield [*fields[:at], pick.choice(SPARE), *fields[at:]]
    for _ in range(3):
        first = pick.randrange(len(fields))
        last = min(len(fields), first + pick.randrange(1, 3))
        yield fields[:first] + fields[last:]
        yield [*fields[:first], *pick.sample(SPARE, pick.randrange(1, 3)), *fields[last:]]
    yield pick.sample(fields, len(fields))
    yield []


@pytest.mark.parametrize(
    ("fields", "strict"),
    [
        pytest.param(PLAIN, True, id="plain"),
        pytest.param(NAMED, True, id="named"),
        pytest.param(PLAIN + NAMED, True, id="both"),
        pytest.param(PLAIN + NAMED, False, id="both, lenient"),
    ],
)
def test_an_edited_record_means_what_it_means_alone(tables, fields, strict):
    """Model, canonical text and errors are those of the whole text, whatever the fields, names and spelling."""
    pick = random.Random(len(fields))
    count = 0
    for head in HEADS:
        for rest in RESTS:
            separators = pick.choice(SEPARATORS)
            edits = [spelled(head, edit, rest, separators) for edit in edits_of(fields, pick)]
            count += compare(tables, spelled(head, fields, rest, separators), edits, strict=strict)
    assert 10 < count


def test_any_text_means_what_it_means_alone(tables):
    """The same holds for texts that are cut anywhere, with anything put in their place."""
    pick = random.Random(4)
    count = 0
    for fields in (PLAIN, PLAIN[:2] + NAMED):
        for head in HEADS[:2]:
            base = spelled(head, fields, RESTS[1], pick.choice(SEPARATORS))
            edits = []
            for _ in range(80):
                first = pick.randrange(len(base))
                last = min(len(base), first + pick.choice([0, 0, 1, 2, 20]))
                put = "".join(pick.choices(SNIPPETS, k=pick.randrange(3)))
                edits.append(base[:first] + put + base[last:])
            count += compare(tables, base, edits)
    assert 8 < count


@pytest.mark.parametrize(
    "base",
    [
        '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}],"fields":[]}',
        '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}],"fi\\u0065lds":[]}',
        '{"type":"record","name":"R","doc":"\\"fields\\":[{}]","fields":[{"name":"a","type":"int"}]}',
        '{"fields":[],"type":"record","name":"R","doc":"\\"fields\\":[{}]","fields":[{"name":"a","type":"int"}]}',
        '{"type":"record","name":"R","unit":{"fields":[{"name":"a","type":"int"}]},"fields":[{"name":"a","type":"int"}]}',
        '{"type":"array","items":{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}}',
        '[{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}]',
    ],
)  # fmt: skip
def test_a_text_whose_fields_are_not_certain_is_not_known(base):
    """Only the array that is the value of the last `fields` of the record at the root is compared."""
    learn(base)
    assert parser._KNOWN_RECORDS[True].find(base, DEFAULT_LIMITS) is None


def test_an_edit_shares_the_fields_that_it_does_not_change():
    """Equal fields are the same objects, and the others are read."""
    base = spelled(HEADS[0], PLAIN, {}, (",", ":"))
    learn(base)
    before = parse(base, strict=True)
    after = parse(spelled(HEADS[0], [*PLAIN, SPARE[0]], {}, (",", ":")), strict=True)

    assert before.root.fields == after.root.fields[:-1]
    assert "new" == after.root.fields[-1].name


@pytest.mark.parametrize(
    "limits",
    [{"fields": 4}, {"depth": 3}, {"text": 300}, {"types": 0}, {"branches": 1}, {"number": 3}],
    ids=str,
)
def test_limits_count_as_in_a_whole_text(tables, limits):
    """A bound that the whole text exceeds refuses the edit, with the same words."""
    fields = [{"name": f"f{number}", "type": "int"} for number in range(4)]
    added = {
        "name": "new",
        "type": ["null", "string", {"type": "array", "items": "int"}],
        "size": 12345,
        "doc": "x" * 99,
    }
    text = spelled(HEADS[0], [*fields, added], {}, (",", ":"))
    tables()
    expected = outcome(text, Limits(**limits))
    learn(spelled(HEADS[0], fields, {}, (",", ":")))

    assert isinstance(expected, str)
    assert expected == outcome(text, Limits(**limits))


def test_the_tables_are_bounded(monkeypatch):
    """A text is kept from its second start on, long ones never, and the older half goes when the younger is full."""
    monkeypatch.setattr(known_records, "_MOST", 2000)
    monkeypatch.setattr(known_records, "_MOST_HEADS", 10)
    table = parser._KNOWN_RECORDS[True]
    for number in range(100):
        text = spelled({"type": "record", "name": f"R{number}"}, PLAIN, {}, (",", ":"))
        parse(text, strict=True)
        assert table.find(text, DEFAULT_LIMITS) is None
        parse(text, strict=True)
        assert table.find(text, DEFAULT_LIMITS) is not None
    long = spelled(HEADS[0], [{"name": "a", "type": "int", "doc": "x" * (64 << 10)}], {}, (",", ":"))
    learn(long)

    assert table.find(long, DEFAULT_LIMITS) is None
    assert 12 > len(table._young) + len(table._old)
    assert 10 >= len(table._waits)


def test_texts_that_differ_everywhere_are_seldom_kept():
    """To keep a text costs as much as to read it, so a start whose texts are not edits of each other must wait."""
    table, known = parser._KNOWN_RECORDS[True], []
    for number in range(100):
        fields = [{"name": f"f{place}", "type": "int", "doc": f"{number} " * 40} for place in range(20)]
        parse(spelled(HEADS[0], fields, {}, (",", ":")), strict=True)
        known += [record for record in table._young.values() if record not in known]

    assert 5 == len(known)


def test_a_known_text_follows_its_edits():
    """When texts have moved away from the known one, the next one takes its place at once."""
    table, fields = parser._KNOWN_RECORDS[True], [{"name": "a", "type": "int"}]
    learn(spelled(HEADS[0], fields, {}, (",", ":")))
    for number in range(10):
        fields = [*fields, {"name": f"f{number}", "type": "int", "doc": "x" * 500}]
        text = spelled(HEADS[0], fields, {}, (",", ":"))
        parse(text, strict=True)
        assert table.find(text, DEFAULT_LIMITS) is not None


def test_a_hostile_text_costs_no_more_than_its_length():
    """Neither a head without an end nor a text of equal parts takes time by the square of its length."""
    part = '"fields" '
    texts = ["{" + part * 200_000, '{"fields":[' + "[" * 200_000, '{"fields":[' + "0," * 200_000 + "0]}"]
    table, began = KnownRecords(), time.process_time()
    for text in texts:
        for _ in range(2):
            table.find(text, DEFAULT_LIMITS)
            known_records._starts(text[: 64 << 10])
    assert 30 > time.process_time() - began  # the square would take hours
