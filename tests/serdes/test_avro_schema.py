"""The parser reads every schema text that a registry may hold, and refuses undecodable ones with a clear message."""

# ruff: noqa: E501 - a row of a table is a line
import json
from uuid import UUID

import pytest

from strata.serdes.avro import compile_decoder, compile_encoder
from strata.serdes.errors import SchemaError

READABLE = [
    (
        "a name before its definition",
        '{"type":"record","name":"R","fields":[{"name":"a","type":"E"},{"name":"b","type":{"type":"enum","name":"E","symbols":["A"]}}]}',
        {"a": "A", "b": "A"},
        b"\x00\x00",
    ),
    (
        "a reference with attributes of its own",
        '{"type":"record","name":"R","fields":[{"name":"a","type":{"type":"enum","name":"E","symbols":["A"]}},{"name":"b","type":{"type":"E","foo":1}}]}',
        {"a": "A", "b": "A"},
        b"\x00\x00",
    ),
    (
        "a short name out of the empty namespace",
        '{"type":"record","name":"R","namespace":"n","fields":[{"name":"a","type":{"type":"enum","name":"E","namespace":"","symbols":["A"]}},{"name":"b","type":"E"}]}',
        {"a": "A", "b": "A"},
        b"\x00\x00",
    ),
    (
        "names relative to the enclosing namespace",
        '{"type":"record","name":"x.y.R","fields":[{"name":"a","type":{"type":"fixed","name":"F","size":1}},{"name":"b","type":"x.y.F"}]}',
        {"a": b"1", "b": b"2"},
        b"12",
    ),
    (
        "a definition repeated",
        '{"type":"record","name":"R","fields":[{"name":"a","type":{"type":"enum","name":"E","symbols":["A"]}},{"name":"b","type":{"type":"enum","name":"E","symbols":["A"]}}]}',
        {"a": "A", "b": "A"},
        b"\x00\x00",
    ),
    (
        "a default that is not a uuid",
        '{"type":"record","name":"R","fields":[{"name":"a","type":{"type":"string","logicalType":"uuid"},"default":"x"}]}',
        {"a": UUID(int=0)},
        b"\x4800000000-0000-0000-0000-000000000000",
    ),
    ("comments", '// one\n{"type": /* two */ "string", "doc": "// none \\" /* */"}', "a", b"\x02a"),
    ("a type inside a type", '{"type": {"type": {"type": "int"}}}', 5, b"\x0a"),
    ("aliases as a string", '{"type":"fixed","name":"F","size":1,"aliases":"G"}', b"a", b"a"),
    ("decimal with a scale above its precision", '{"type":"array","items":{"type":"bytes","logicalType":"decimal","precision":2,"scale":3}}', [b"a"], b"\x02\x02a\x00"),
    ("decimal with a negative scale", '{"type":"array","items":{"type":"bytes","logicalType":"decimal","precision":2,"scale":-1}}', [b"a"], b"\x02\x02a\x00"),
    ("decimal with a precision in quotes", '{"type":"array","items":{"type":"bytes","logicalType":"decimal","precision":"4"}}', [b"a"], b"\x02\x02a\x00"),
    ("names that are not identifiers", '{"type":"record","name":"a-b","fields":[{"name":"1 2","type":"int"}]}', {"1 2": 1}, b"\x02"),
    ("error instead of record", '{"type":"error","name":"E","fields":[{"name":"a","type":"int"}]}', {"a": 1}, b"\x02"),
    ("a default of the wrong type", '{"type":"record","name":"R","fields":[{"name":"a","type":"int","default":"x"}]}', {"a": 1}, b"\x02"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "value", "payload"), [row[1:] for row in READABLE], ids=[row[0] for row in READABLE])
def test_odd_schemas_work(text, value, payload):
    """Odd schemas, on which other libraries fail, still encode and decode."""
    assert payload == compile_encoder(text)(value)
    assert value == compile_decoder(text)(payload)


UNREADABLE = [
    ("no JSON", "{", "the schema is not JSON"),
    ("empty", "", "the schema is not JSON"),
    ("a number", "5", "expected a type, got 5"),
    ("unknown name", '"Nope"', "the type Nope is not defined in the schema"),
    ("no type", "{}", "expected a type, got {}"),
    ("record without a name", '{"type":"record","fields":[]}', "a record without a name"),
    ("record without fields", '{"type":"record","name":"R"}', "the record R has no list of fields"),
    ("field without a type", '{"type":"record","name":"R","fields":[{"name":"a"}]}', "a field of the record R has no name or no type"),
    ("field that is not an object", '{"type":"record","name":"R","fields":["a"]}', "a field of the record R has no name or no type"),
    ("a field twice", '{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"a","type":"int"}]}', "the record R has two fields a"),
    ("enum without symbols", '{"type":"enum","name":"E"}', "the enum E has no list of symbols"),
    ("fixed of negative size", '{"type":"fixed","name":"F","size":-1}', "the fixed F has no valid size"),
    ("array without items", '{"type":"array"}', "the array has no items"),
    ("map without values", '{"type":"map"}', "the map has no values"),
    ("deeper than any schema", '{"type":"array","items":' * 150 + '"int"' + "}" * 150, "nested"),
    ("deeper than any stack", "[" * 100_000, "nested"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "says"), [row[1:] for row in UNREADABLE], ids=[row[0] for row in UNREADABLE])
def test_unusable_schemas_are_refused(text, says):
    """Decoder and encoder refuse an unusable schema with the same sentence."""
    for compile_one in (compile_decoder, compile_encoder):
        with pytest.raises(SchemaError, match=says):
            compile_one(text)


@pytest.mark.parametrize(
    "text", ["/*" * 100_000, '"\\"' * 100_000, '"' + '\\"' * 100_000, "//" * 100_000, "/" * 200_000]
)
def test_endless_comments_take_no_time(text):
    """A text that is neither JSON nor commented JSON is read once, not once for each character."""
    with pytest.raises(SchemaError, match="not JSON"):
        compile_decoder(text)


def test_unions_of_thousands():
    """A union may have thousands of branches."""
    names = [f"R{number}" for number in range(1000)]
    union = [{"type": "record", "name": name, "fields": [{"name": name, "type": "int"}]} for name in names]
    text = json.dumps(union)
    encode, decode = compile_encoder(text), compile_decoder(text)

    for position in (0, 7, 8, 500, 999):
        value = {names[position]: position}
        assert value == decode(encode((names[position], value)))


def test_types_that_multiply_without_bytes_are_refused():
    """Records nested without bytes, which would give endless values from an empty payload, are refused."""
    schema: object = "null"
    for level in range(40):
        pair = [{"name": "a", "type": schema}, {"name": "b", "type": f"R{level - 1}" if level else "null"}]
        schema = {"type": "record", "name": f"R{level}", "fields": pair}

    with pytest.raises(SchemaError, match="takes no bytes and holds too many values"):
        compile_decoder(json.dumps(schema))


def test_a_chain_of_names_deeper_than_the_stack_is_refused():
    """Types next to each other in the text may nest deeply through their names; too deep a chain is refused."""
    types = [
        {"type": "record", "name": f"R{level}", "fields": [{"name": "a", "type": f"R{level + 1}"}]}
        for level in range(900)
    ]
    last = {"type": "record", "name": "R900", "fields": [{"name": "a", "type": "int"}]}

    with pytest.raises(SchemaError, match="nested too deeply"):
        compile_decoder(json.dumps([*types, last]))
