"""What the difference of two Protobuf schemas says is what Google's library does with the messages."""

from random import Random

import pytest
from google.protobuf.message import DecodeError

from harness.protobuf_cases import Maker, message_class
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


NUMBERS = {
    "int32": [0, 1, -1, 2**31 - 1, -(2**31)],
    "int64": [0, 1, -1, 2**53 + 1, 2**63 - 1, -(2**63)],
    "uint32": [0, 1, 2**32 - 1],
    "uint64": [0, 1, 2**53 + 1, 2**64 - 1],
    "double": [0.0, 1.5, 1e300],
    "float": [0.0, 1.5, -0.25],
    "bool": [True, False],
}
KINDS = {1: "int32", 2: "int64", 3: "uint32", 4: "uint64", 5: "double", 6: "float", 7: "bool"}


def scalar(field, chance):
    """Return a random value for a field."""
    if field.enum_type is not None:
        return chance.choice(field.enum_type.values).number
    if field.type == field.TYPE_BYTES:
        return chance.choice([b"", b"a", b"\xff", b"\x08\x96\x01", b"\x0a"])
    if field.type == field.TYPE_STRING:
        return chance.choice(["", "a", "é", "\x08\x96", "text of more than eight bytes"])
    return chance.choice(NUMBERS[KINDS[field.cpp_type]])


def filled(message, chance, depth=3):
    """Set random fields of a message; return it."""
    for field in message.DESCRIPTOR.fields:
        if not field.is_required and (depth == 0 or chance.random() < 0.25):
            continue
        inner = field.message_type
        if is_map(field):
            key, value = inner.fields
            for _ in range(chance.randrange(3)):
                held, name = getattr(message, field.name), scalar(key, chance)
                if value.message_type is None:
                    held[name] = scalar(value, chance)
                else:
                    filled(held[name], chance, depth - 1)
        elif field.is_repeated:
            held = getattr(message, field.name)
            for _ in range(chance.randrange(4)):
                held.append(scalar(field, chance)) if inner is None else filled(held.add(), chance, depth - 1)
        elif inner is not None:
            getattr(message, field.name).SetInParent()
            filled(getattr(message, field.name), chance, depth - 1)
        else:
            setattr(message, field.name, scalar(field, chance))
    return message


def is_map(field):
    """Return whether a field is a map."""
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def same(before, after, is_new):
    """Return whether a reader has what was written, by name; a pure renaming is no change.

    A field that the writer lacks has its default, which stands for what was written before the field existed (the
    reader is new), or differs from every written value.
    """
    held, tags = before.DESCRIPTOR.fields_by_name, before.DESCRIPTOR.fields_by_number
    names = after.DESCRIPTOR.fields_by_name
    for field in after.DESCRIPTOR.fields:
        source = held.get(field.name)
        if source is None and field.number in tags and tags[field.number].name not in names:
            source = tags[field.number]
        if source is None:
            if not is_new and (not field.has_presence or after.HasField(field.name)):
                return False
        elif not same_field(before, source, after, field, is_new):
            return False
    return True


def same_field(before, source, after, field, is_new):
    """Return whether one field has the value, and is set if it was set."""
    value, other = getattr(before, source.name), getattr(after, field.name)
    if source.has_presence and not before.HasField(source.name):
        if field.is_repeated:
            return not other
        if not field.has_presence or after.HasField(field.name):
            return False
        return field.message_type is not None or same_value(source, value, field, other, is_new)
    if source.has_presence and field.has_presence and not after.HasField(field.name):
        return False
    if is_map(source) or is_map(field):
        value, other = entries(source, value), entries(field, other)
        kinds = [one.message_type.fields if one.message_type is not None else [one] * 2 for one in (source, field)]
        return len(value) == len(other) and all(
            same_value(kinds[0][0], one[0], kinds[1][0], two[0], is_new)
            and same_value(kinds[0][1], one[1], kinds[1][1], two[1], is_new)
            for one, two in zip(value, other, strict=True)
        )
    values = list(value) if source.is_repeated else [value]
    others = list(other) if field.is_repeated else [other]
    if source.is_repeated and not field.is_repeated and not values:
        return field.has_presence and not after.HasField(field.name)
    return len(values) == len(others) and all(
        same_value(source, one, field, two, is_new) for one, two in zip(values, others, strict=True)
    )


def entries(field, value):
    """Return the entries of a map, or of a list of messages that stand for them, sorted by their keys."""
    if is_map(field):
        found = [(key, value[key]) for key in value]
    elif field.is_repeated and field.message_type is not None and len(field.message_type.fields) > 1:
        found = [tuple(getattr(one, inner.name) for inner in field.message_type.fields[:2]) for one in value]
    else:
        return []
    return sorted(found, key=lambda pair: str(pair[0]))


def same_value(source, value, field, other, is_new):
    """Return whether two values are the same one."""
    if source.message_type is not None or field.message_type is not None:
        both = source.message_type is not None and field.message_type is not None
        return both and same(value, other, is_new)
    if source.enum_type is not None and field.enum_type is not None:
        return same_symbol(source.enum_type, value, field.enum_type, other)
    raw = [one.encode() if isinstance(one, str) else one for one in (value, other)]
    return isinstance(raw[0], bytes) == isinstance(raw[1], bytes) and raw[0] == raw[1]


def same_symbol(source, value, enum, other):
    """Return whether two symbols have one name, or one of them is a renaming of the other."""
    if other not in enum.values_by_number:
        return False
    names = source.values_by_number[value].name, enum.values_by_number[other].name
    is_renamed = names[0] not in enum.values_by_name and names[1] not in source.values_by_name
    return names[0] == names[1] or (is_renamed and value == other)


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


@pytest.mark.parametrize("size", [60, pytest.param(2000, marks=pytest.mark.slow)])
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
