"""What a reader of a Protobuf message has otherwise than it was written."""

from itertools import islice
from random import Random

import pytest
from google.protobuf.message import DecodeError as ParseError
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.text_format import Parse

from harness.proof_cases import random_pairs
from harness.protobuf_readers import filled, same
from strata.compat.limits import Limits
from strata.compat.schema import SchemaFormat
from strata.compat.witness.protobuf_types import message_types
from strata.serdes.client import RegistryClient, Schema
from strata.serdes.errors import DecodeError, SchemaError
from strata.serdes.model import PROTOBUF
from strata.serdes.protobuf.differences import differences
from strata.serdes.protobuf.files import link
from strata.serdes.protobuf.readings import Readings

SYMBOLS = "enum E {{ Z = 0; {} }}"
ROWS = {  # change: a field or fields of the writer's message, of the reader's, the message, and path, written, read
    "a number without a sign": ("int32 a = 1;", "uint32 a = 1;", "a: -1", ("a", -1, 2**32 - 1)),
    "a small number": ("int32 a = 1;", "uint32 a = 1;", "a: 1", None),
    "a number as a bool": ("int32 a = 1;", "bool a = 1;", "a: 5", ("a", 5, True)),
    "a number that is cut": ("int64 a = 1;", "int32 a = 1;", "a: 4294967297", ("a", 2**32 + 1, 1)),
    "another wire type": ("int32 a = 1;", "string a = 1;", "a: 5", ("a", 5, "")),
    "a symbol that the reader lacks": ("E a = 1;", "E a = 1;", "a: B", ("a", "B", 1)),
    "a renamed field": ("int32 a = 1;", "int32 b = 1;", "a: 1", None),
    "a field at another number": ("int32 a = 1;", "int32 a = 2;", "a: 1", ("a", 1, 0)),
    "fields swapped": ("int32 a = 1; int32 b = 2;", "int32 b = 1; int32 a = 2;", "a: 1", ("b", 0, 1), ("a", 1, 0)),
    "a number reused": ("int32 a = 1;", "int32 b = 1; int32 a = 2;", "a: 1", ("b", None, 1), ("a", 1, 0)),
    "presence": ("optional int32 a = 1;", "int32 a = 1;", "", ("a", None, 0)),
    "several fields in a oneof": (
        *("int32 a = 1; int32 b = 2;", "oneof o { int32 a = 1; int32 b = 2; }"),
        *("a: 1 b: 2", ("a", 1, 0)),
    ),
    "a list as one value": ("repeated string a = 1;", "string a = 1;", "a: 'x' a: 'y'", ("a", ["x", "y"], ["y"])),
    "inside a list": ("repeated M a = 1;", "repeated N a = 1;", "a { n: 1 } a { n: -1 }", ("a[].n", -1, 2**32 - 1)),
    "inside a map": ("map<string, int32> a = 1;", "map<string, uint32> a = 1;", "a { key: 'k' value: -1 }",
                     ("a{}", -1, 2**32 - 1)),
}  # fmt: skip
INSIDE = "message M { int32 n = 1; } message N { uint32 n = 1; }"


def message_class(fields, symbols=""):
    """Return the class of a message A with some fields."""
    text = f'syntax = "proto3"; message A {{ {fields} }} {INSIDE} {SYMBOLS.format(symbols)}'
    return GetMessageClass(link(Schema(text, PROTOBUF), {}).message_types_by_name["A"])


@pytest.mark.parametrize("name", ROWS)
def test_a_changed_value(name):
    """The path in the reader's message, what was written and what is read."""
    fields, others, text, *expected = ROWS[name]
    written = Parse(text, message_class(fields, "B = 1;")())
    read = message_class(others).FromString(written.SerializeToString())

    assert [one for one in expected if one] == [tuple(one) for one in differences(written, read)]


@pytest.mark.parametrize("label", ["", "repeated"])
@pytest.mark.parametrize(
    "value",
    ["repeated int32 value = 2;", "map<string, int32> value = 2;", "M value = 2;", "repeated M value = 2;"],
)
def test_entries_of_one_key_are_compared_whatever_they_are(value, label):
    """Messages that stand for a map may have equal keys and values without an order; the reader keeps the last."""
    entries = {"M": "key: 'k' value { n: %d }", "map": "key: 'k' value { key: 'a' value: %d }"}
    entry = entries.get(value.removeprefix("repeated ").partition("<")[0].split()[0], "key: 'k' value: %d")
    map_type = "map<string, M>" if "M value" in value else "map<string, int32>"
    items = f"message L {{ {label} string key = 1; {value} }} repeated L a = 1;"
    written = Parse(" ".join(f"a {{ {entry % number} }}" for number in (2, 1)), message_class(items)())
    read = message_class(f"{map_type} a = 1;").FromString(written.SerializeToString())

    assert ["a"] == [one.path for one in differences(written, read)]


def test_what_the_judge_of_witnesses_says():
    """Random messages of random pairs differ where the judge of silent changes says so, and nowhere else."""
    chance, seen = Random(41), {False: 0, True: 0}
    for pair in islice(random_pairs(SchemaFormat.PROTOBUF, Random(2035)), 80):
        readers, writers = (message_types(side, Limits())[0] for side in (pair.reader, pair.writer))
        for name in sorted(readers.keys() & writers.keys()):
            for _ in range(3):
                written, read = filled(GetMessageClass(writers[name])(), chance), GetMessageClass(readers[name])()
                try:
                    read.ParseFromString(written.SerializeToString())
                except ParseError:
                    continue
                is_same = same(written, read, is_new=True)
                seen[is_same] += 1
                assert is_same == (list(differences(written, read)) == []), (pair.name, name, written)
    assert min(seen.values()) > 50


def test_bytes_that_the_candidate_refuses():
    """A missing required field, bytes that do not parse and a message that the candidate lacks are errors."""
    client = RegistryClient("mock://")
    optional = Schema('syntax = "proto2"; message A { optional A a = 1; optional int32 n = 2; } message B {}', PROTOBUF)
    required = Schema(optional.text.replace("optional int32", "required int32").replace("message B {}", ""), PROTOBUF)
    readings = Readings(required, client)

    assert [] == readings.read(optional, 1, (0,), b"\x10\x05").differences
    with pytest.raises(DecodeError, match="lacks a required field") as missing:
        readings.read(optional, 1, (0,), b"\x0a\x00\x10\x05")
    assert "a.n" == missing.value.path
    with pytest.raises(DecodeError, match="not a A"):
        readings.read(optional, 1, (0,), b"\x0a\x05")
    with pytest.raises(SchemaError, match="the candidate has no message B"):
        readings.read(optional, 1, (1,), b"")
