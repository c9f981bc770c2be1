"""What the difference of two Protobuf schemas says is what Google's library does with the messages."""

from random import Random

import pytest
from google.protobuf.message import DecodeError

from harness.protobuf_cases import Maker, message_class
from harness.protobuf_messages import Task, in_java, in_python
from harness.protobuf_readers import filled, same
from strata.compat.difference.compare import difference
from strata.compat.difference.outcomes import SEVERITY, Verdict
from strata.compat.formats import FORMATS
from strata.compat.schema import SchemaFormat

BREAKS, SILENT, SAFE = Verdict.BREAKS, Verdict.SILENT, Verdict.SAFE
RECORDS = 40


def three(body):
    """Return a proto3 file with a message A."""
    more = "enum E { Z = 0; Y = 1; } message M { int32 x = 1; string s = 2; }"
    return f'syntax = "proto3"; message A {{ {body} }} {more}'


def two(body):
    """Return a proto2 file with a message A."""
    return f'syntax = "proto2"; message A {{ {body} }} enum E {{ Z = 0; Y = 1; }} message M {{ optional int32 x = 1; }}'


def pair(before, after, form=three):
    """Return two files."""
    return form(before), form(after)


def types(before, after, label=""):
    """Return two files whose field has another type."""
    return pair(f"{label} {before} a = 1;", f"{label} {after} a = 1;")


ENUMS = "enum F {{ {} }} F f = 1; repeated F g = 2; map<string, F> h = 3;"
CLOSED = "enum F {{ {} }} optional F f = 1;"
ROWS = {  # kind of edit: the previous schema and the new one, and the verdicts for readers and writers
    "field added": (*pair("int32 a = 1;", "int32 a = 1; int32 b = 2;"), SAFE, SAFE),
    "field removed": (*pair("int32 a = 1; int32 b = 2;", "int32 a = 1;"), SAFE, SILENT),
    "optional field removed": (*pair("int32 a = 1; optional int32 b = 2;", "int32 a = 1;"), SAFE, SAFE),
    "message removed": (*pair("int32 a = 1; M b = 2;", "int32 a = 1;"), SAFE, SAFE),
    "list removed": (*pair("int32 a = 1; repeated int32 b = 2;", "int32 a = 1;"), SAFE, SILENT),
    "map removed": (*pair("int32 a = 1; map<string, int32> b = 2;", "int32 a = 1;"), SAFE, SILENT),
    "field renamed": (*pair("int32 a = 1;", "int32 b = 1;"), SAFE, SAFE),
    "fields swapped": (*pair("int32 a = 1; int32 b = 2;", "int32 a = 2; int32 b = 1;"), SILENT, SILENT),
    "tag changed": (*pair("int32 a = 1;", "int32 a = 2;"), SILENT, SILENT),
    "field moved to a removed one's tag": (*pair("int32 a = 1; int32 b = 2;", "int32 b = 1;"), SILENT, SILENT),
    "order of fields": (*pair("int32 a = 1; int32 b = 2;", "int32 b = 2; int32 a = 1;"), SAFE, SAFE),
    "option": (*pair("int32 a = 1;", "int32 a = 1 [deprecated = true];"), SAFE, SAFE),
    "packed": (*pair("repeated int32 a = 1;", "repeated int32 a = 1 [packed = false];"), SAFE, SAFE),
    "reserved": (*pair("int32 a = 1;", "int32 a = 1; reserved 2;"), SAFE, SAFE),
    "unused message removed": (*pair("int32 a = 1; message U {}", "int32 a = 1;"), SAFE, SAFE),
    "package": (three("int32 a = 1;"), three("int32 a = 1;").replace(";", "; package p;", 1), SAFE, SAFE),
    "int32 to int64": (*types("int32", "int64"), SAFE, SILENT),
    "int32 to uint32": (*types("int32", "uint32"), SILENT, SILENT),
    "int32 to sint32": (*types("int32", "sint32"), SILENT, SILENT),
    "int32 to bool": (*types("int32", "bool"), SILENT, SAFE),
    "uint32 to bool": (*types("uint32", "bool"), SILENT, SAFE),
    "uint32 to int64": (*types("uint32", "int64"), SAFE, SILENT),
    "uint32 to uint64": (*types("uint32", "uint64"), SAFE, SILENT),
    "int64 to uint64": (*types("int64", "uint64"), SILENT, SILENT),
    "sint32 to sint64": (*types("sint32", "sint64"), SAFE, SILENT),
    "fixed32 to sfixed32": (*types("fixed32", "sfixed32"), SILENT, SILENT),
    "fixed64 to sfixed64": (*types("fixed64", "sfixed64"), SILENT, SILENT),
    "fixed64 to double": (*types("fixed64", "double"), SILENT, SILENT),
    "float to double": (*types("float", "double"), SILENT, SILENT),
    "int32 to fixed32": (*types("int32", "fixed32"), SILENT, SILENT),
    "int32 to string": (*types("int32", "string"), SILENT, SILENT),
    "string to bytes": (*types("string", "bytes"), SAFE, BREAKS),
    "string to message": (*types("string", "M"), BREAKS, BREAKS),
    "bytes to message": (*types("bytes", "M"), BREAKS, SILENT),
    "enum to int32": (*types("E", "int32"), SAFE, SAFE),
    "enum to int64": (*types("E", "int64"), SAFE, SILENT),
    "enum to uint32": (*pair("N a = 1; enum N { B = 0; C = -1; }", "uint32 a = 1;"), SILENT, SILENT),
    "int32 to int64 in lists": (*types("int32", "int64", "repeated"), SAFE, SILENT),
    "int32 to fixed32 in lists": (*types("int32", "fixed32", "repeated"), BREAKS, BREAKS),
    "fixed64 to fixed32 in lists": (*types("fixed64", "fixed32", "repeated"), SILENT, BREAKS),
    "int32 to string in lists": (*types("int32", "string", "repeated"), BREAKS, BREAKS),
    "list to value": (*pair("repeated int32 a = 1;", "int32 a = 1;"), SILENT, SILENT),
    "list of text to text": (*pair("repeated string a = 1;", "string a = 1;"), SILENT, SILENT),
    "optional to list": (*pair("optional string a = 1;", "repeated string a = 1;"), SAFE, SILENT),
    "message to list": (*pair("M a = 1;", "repeated M a = 1;"), SAFE, SILENT),
    "made optional": (*pair("int32 a = 1;", "optional int32 a = 1;"), SAFE, SILENT),
    "values of a map": (*pair("map<string, int32> a = 1;", "map<string, int64> a = 1;"), SAFE, SILENT),
    "keys of a map": (*pair("map<int32, int32> a = 1;", "map<uint32, int32> a = 1;"), SILENT, SILENT),
    "messages of a map": (
        *pair("map<string, N> a = 1; message N { int32 x = 1; }", "map<string, N> a = 1; message N { int64 x = 1; }"),
        *(SAFE, SILENT),
    ),
    "map to list": (
        *pair("map<string, int32> a = 1;", "repeated N a = 1; message N { string k = 1; int32 v = 2; }"),
        *(SAFE, SILENT),
    ),
    "another message of the same fields": (
        *pair("N a = 1; message N { int32 x = 1; }", "O a = 1; message O { int32 x = 1; }"),
        *(SAFE, SAFE),
    ),
    "another message of other fields": (
        *pair("N a = 1; message N { int32 x = 1; }", "O a = 1; message O { int64 x = 1; }"),
        *(SAFE, SILENT),
    ),
    "symbol added": (*pair(ENUMS.format("B = 0; C = 1;"), ENUMS.format("B = 0; C = 1; D = 2;")), SAFE, SILENT),
    "symbol renamed": (*pair(ENUMS.format("B = 0; C = 1;"), ENUMS.format("B = 0; D = 1;")), SAFE, SAFE),
    "symbols swapped": (*pair(ENUMS.format("B = 0; C = 1;"), ENUMS.format("C = 0; B = 1;")), SILENT, SILENT),
    "symbol added to a closed enum": (
        *pair(CLOSED.format("B = 1;"), CLOSED.format("B = 1; C = 2;"), two),
        SAFE,
        SILENT,
    ),
    "first symbol of a closed enum": (
        *pair(CLOSED.format("B = 1; C = 2;"), CLOSED.format("C = 2; B = 1;"), two),
        *(SILENT, SILENT),
    ),
    "int32 to a closed enum": (*pair("optional int32 a = 1;", "optional E a = 1;", two), SILENT, SAFE),
    "default": (
        *pair("optional int32 a = 1 [default = 5];", "optional int32 a = 1 [default = 7];", two),
        SILENT,
        SILENT,
    ),
    "default added": (*pair("optional int32 a = 1;", "optional int32 a = 1 [default = 7];", two), SILENT, SILENT),
    "required added": (
        *pair("optional int32 b = 2;", "optional int32 b = 2; required int32 a = 1;", two),
        BREAKS,
        SAFE,
    ),
    "made required": (*pair("optional int32 a = 1;", "required int32 a = 1;", two), BREAKS, SAFE),
    "proto2 to proto3": (
        two("optional int32 a = 1;"),
        two("optional int32 a = 1;").replace("proto2", "proto3"),
        SAFE,
        SAFE,
    ),
    "proto2 to proto3, a closed enum opened": (
        *(
            two("repeated E a = 1;"),
            two("repeated E a = 1;").replace("proto2", "proto3").replace("Y = 1;", "Y = 1; X = 2;"),
        ),
        *(SAFE, SILENT),
    ),
    "group to message": (
        *pair("optional group G = 1 { optional int32 x = 1; }", "optional M a = 1;", two),
        *(SILENT, SILENT),
    ),
    "inside a group": (
        *pair("optional group G = 1 { optional int32 x = 1; }", "optional group G = 1 { optional int64 x = 1; }", two),
        *(SAFE, SILENT),
    ),
    "moved into a new oneof": (*pair("int32 a = 1;", "oneof o { int32 a = 1; }"), SAFE, SILENT),
    "several moved into a oneof": (
        *pair("optional int32 a = 1; optional int32 b = 2;", "oneof o { int32 a = 1; int32 b = 2; }"),
        *(SILENT, SAFE),
    ),
    "field added to a oneof": (
        *pair("oneof o { int32 a = 1; }", "oneof o { int32 a = 1; int32 b = 2; }"),
        *(SAFE, SAFE),
    ),
}


def observed(writer, reader, chance, *, is_new, number=RECORDS):
    """Return the worst that happens to random messages."""
    worst = SAFE
    for _ in range(number):
        message, read = filled(writer(), chance), reader()
        try:
            read.ParseFromString(message.SerializeToString())
            verdict = BREAKS if not read.IsInitialized() else SAFE if same(message, read, is_new) else SILENT
        except (DecodeError, UnicodeDecodeError):
            verdict = BREAKS
        worst = min(worst, verdict, key=SEVERITY.index)
    return worst


def said(previous, new):
    """Return the verdicts of the difference for readers and writers."""
    parse = FORMATS[SchemaFormat.PROTOBUF].parse
    found = difference(parse(previous, strict=False), parse(new, strict=False))
    return found.readers, found.writers


@pytest.mark.parametrize("name", ROWS)
def test_the_verdict_is_what_readers_do(name):
    """Each kind of edit breaks, changes values or is safe in each direction as a real reader shows it."""
    previous, new, *expected = ROWS[name]
    old, young = message_class(previous), message_class(new)
    chance = Random(28)

    assert [
        observed(old, young, chance, is_new=True), observed(young, old, chance, is_new=False),
    ] == expected  # fmt: skip
    assert tuple(expected) == said(previous, new)


@pytest.mark.parametrize("size", [25, pytest.param(2000, marks=pytest.mark.slow)])
def test_no_random_message_fares_worse_than_said(size):
    """A random pair never breaks a message that is called readable, nor changes a value that is called safe."""
    maker, chance, seen = Maker(Random(31)), Random(31), set()
    for _ in range(size):
        kind = maker.kind()
        previous, new = kind.text(), maker.changed(kind).text()
        old, young = message_class(previous), message_class(new)
        found = (
            observed(old, young, chance, is_new=True, number=6),
            observed(young, old, chance, is_new=False, number=6),
        )
        verdicts = said(previous, new)
        seen |= set(verdicts)
        assert all(
            SEVERITY.index(verdict) <= SEVERITY.index(one) for verdict, one in zip(verdicts, found, strict=True)
        ), (previous, new, verdicts, found)
    assert {SILENT, SAFE} <= seen


def without_maps(task, answer):
    """Return what was read but the maps.

    Of an entry whose key or value does not fit, Java makes one with a default, and Python an unknown field. The
    verdict is the same: the value changes.
    """
    fields = task.type.fields
    maps = {field.number for field in fields if field.message_type and field.message_type.GetOptions().map_entry}
    return [field for field in answer["value"] if field[0] not in maps] if "value" in answer else "error"


def test_java_reads_what_python_reads(run_library):
    """Google's Java library reads each message as its Python library does, so both bear out the same verdicts."""
    maker, chance = Maker(Random(5)), Random(28)
    kinds = [maker.kind() for _ in range(20)]
    pairs = [row[:2] for row in ROWS.values()] + [(kind.text(), maker.changed(kind).text()) for kind in kinds]
    tasks = []
    for previous, new in pairs:
        old, young = message_class(previous), message_class(new)
        for writer, reader in ((old, young), (young, old)):
            tasks += [Task(reader.DESCRIPTOR, filled(writer(), chance).SerializeToString()) for _ in range(4)]
    python, java = list(map(in_python, tasks)), in_java(run_library, tasks)

    assert {True, False} == {"value" in answer for answer in python}
    assert [*map(without_maps, tasks, python)] == [*map(without_maps, tasks, java)]
