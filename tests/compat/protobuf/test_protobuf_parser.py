"""Texts and descriptors are parsed to schemas."""

import base64

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.examples import examples
from strata.compat.limits import Limits
from strata.compat.protobuf.formats import ignore_extensions, serialized
from strata.compat.protobuf.normalizer import normalize
from strata.compat.protobuf.parser import parse
from strata.compat.protobuf.rules import check
from strata.compat.schema import ResolvedReference, SchemaParseError

ACCEPTED = {
    "no messages": 'syntax = "proto3";',
    "semicolons": ";;message A {;};",
    "import that leads nowhere": 'import "nowhere.proto"; message A {}',
    "well-known type without its import": 'syntax = "proto3"; message A { google.protobuf.Any a = 1; }',
    "metadata without its import": 'syntax = "proto3"; message A { confluent.type.Decimal a = 1; }',
    "unknown map value": "message A { map<string, Unknown> a = 1; }",
    "tag twice": 'syntax = "proto3"; message A { int32 a = 1; int32 a = 1; }',
    "tag of any size": 'syntax = "proto3"; message A { int32 a = -2147483648; int32 b = 0x7FFFFFFF; }',
    "unknown option": 'option nope = { a: [1, "x", {b: c}] d { e: 1 } };',
    "group in proto3": 'syntax = "proto3"; message A { group G = 1 { int32 a = 1; } }',
    "invalid names": "message 1A { optional A-B c = 1; message A-B {} }",
    "keywords as names": 'syntax = "proto3"; message message { message message {} rpc option = 1; message rpc {} }',
    "line comment at the end": "message A {} // the end",
    "block comment as the last on its line": "message A { optional int32 a = 1; /* c */ \t\n optional int32 b = 2; }",
    "reserved at the top": "reserved 1; message A {}",
    "spaces around the dots of a type": 'syntax = "proto3"; message A { google . protobuf /**/ .Any a = 1; }',
    "semicolons between the entries of an option": "option a = { b: 1; c { d: 2 }; e: [3]; f: 4 };",
    "part of an option's name in brackets": "option (a).[b.c].(d.e) = 1;",
    "group in an extend block": "message A {} extend A { optional group G = 1 { optional int32 a = 1; } }",
    "default of bytes": 'message A { optional bytes a = 1 [default = "\\x41bc"]; }',
    "default of a string": 'message A { optional string a = 1 [default = "\\xff b\\n"]; }',
    "map of maps": 'syntax = "proto3"; message A { map<int32, map<bool, Unknown>> a = 1; }',
}


def _default(kind, value):
    return f"message A {{ optional {kind} a = 1 [default = {value}]; }}"


REFUSED = {
    "edition": ('edition = "2023"; message A {}', "Editions are not supported; write syntax", "line 1, column 1"),
    "syntax": ('syntax = "proto4";', 'Unknown syntax "proto4"; expected "proto2" or "proto3"', "column 1"),
    "syntax later": ('message A {} syntax = "proto3";', "Move the syntax statement to the beginning", "column 14"),
    "syntax twice": ('syntax = "proto3"; syntax = "proto3";', "The syntax is given twice", "column 20"),
    "no label": ("message A { int32 a = 1; }", "Expected optional, required or repeated before a field", "column 13"),
    "required in proto3": ('syntax = "proto3"; message A { required int32 a = 1; }', "cannot be required", "column 32"),
    "labelled map": ("message A { repeated map<string, string> a = 1; }", "A map cannot be repeated", "column 13"),
    "map key": (
        "message A { map<double, string> a = 1; }",
        "Expected an integer, a bool or a string as key of a map",
        "field A.a",
    ),
    "unknown type": ("message A { optional B b = 1; }", "Unknown type B; define it", "field A.b"),
    "unknown type of a oneof": ("message A { oneof o { B b = 1; } }", "Unknown type B", "field A.b"),
    "unknown type of a method": (
        "message A {} service S { rpc F(A) returns (B); }",
        "type B",
        "response of method S.F",
    ),
    "scalar as a request": (
        "message A {} service S { rpc F(int32) returns (A); }",
        "Expected a message, got int32",
        "request of method S.F",
    ),
    "scalar as a response": (
        "message A {} service S { rpc F(A) returns (stream bytes); }",
        "Expected a message, got bytes",
        "response of method S.F",
    ),
    "map as a response": (
        "message A {} service S { rpc F(A) returns (map<string, A>); }",
        "Expected a message, got map<string, A>",
        "response of method S.F",
    ),
    "scalar extended": ("extend string { optional int32 a = 1; }", "Expected a message, got string", "extend block"),
    "unknown extended type": ("extend B { optional int32 a = 1; }", "Unknown type B", "extend block"),
    "nested type from outside": ("message A { message B {} } message C { optional B b = 1; }", "type B", "field C.b"),
    "message twice": ("message A {} enum A {}", "A is defined twice", "column 23"),
    "comment before more": (
        "message A { optional int32 a = 1; /* c */ optional int32 b = 2; }",
        "A block comment after a statement must end its line",
        "column 43",
    ),
    "key of a map in a map": ("message A { map<string, map<float, A>> a = 1; }", "got float", "field A.a"),
    "default of bytes with a high byte": (_default("bytes", '"\\xff"'), "default of bytes must be one", "field A.a"),
    "default of bytes with a space": (_default("bytes", '"a b"'), "default of bytes must be one word", "field A.a"),
    "default of bytes without any": (_default("bytes", '""'), "default of bytes must be one word", "field A.a"),
    "default of a number in words": (_default("int32", '"a b"'), "default of int32 must be one word", "field A.a"),
    "default of several values": (_default("int32", "[1, 2]"), "default takes a single value", "column 34"),
    "JSON name with parts": (
        "message A { optional int32 a = 1 [json_name = {b: 1}]; }",
        "json_name takes a single value",
        "column 34",
    ),
    "name with a dot in front": ('syntax = "proto3"; message A { int32 .b = 1; }', "Expected a name", "column 41"),
    "name with a dot in parentheses": (
        "message A { optional int32 (.a) = 1; }",
        "must not begin with a dot",
        "field A..a",
    ),
    "name with a digit in front": ("message A { optional int32 1b = 1; }", "must begin with a letter", "column 28"),
    "dots in a row": ("option (a)..b = 1;", "Expected a name or a number, got '.'", "column 12"),
    "reserved at the end": ("message A {} reserved 1;", "The text ends right after a statement", "column 25"),
    "slash": ("message A {} / message B {}", "A comment begins with '//' or '/*'", "column 14"),
    "slash behind a field": ("message A { optional int32 a = 1; / }", "A comment begins with", "column 35"),
    "tag too large": (
        'syntax = "proto3";\nmessage A { int32 a = 2147483648; }',
        "Expected a 32-bit integer, got 2147483648",
        "line 2, column 33",
    ),
    "group in a group": (
        "message A { optional group G = 1 { optional group H = 2 {} } }",
        "A group may hold only fields",
        "column 36",
    ),
    "statement in a service": ("service S { message A {} }", "message does not begin a statement here", "column 13"),
    "response": ("service S { rpc F(A) return (A); }", "Method F has no response type", "column 13"),
    "colon": ("option a = {b 1};", "is missing after the key b", "column 15"),
    "equals sign": ("option (a).b 1;", "'=' is missing after the option name a.b", "column 14"),
    "semicolon": ("message A { optional int32 a = 1 }", "';' is missing before '}'", "column 34"),
    "parenthesis": ("option (a b) = 1;", "')' is missing after a", "column 11"),
    "range": ("message A { reserved 1 till 2; }", "Expected 'to' after the first number of a range", "column 28"),
    "escape": ('option a = "\\xg";', "needs one or two hexadecimal digits", "column 15"),
    "import": ("import all 'a.proto';", "An import needs a path in quotes", "column 1"),
    "open string": ('option a = "b', "A quoted string is not closed", "column 12"),
    "open comment": ("/* a", "A comment is not closed", "column 1"),
    "open message": ("message A {", "The text ends too early", "column 12"),
    "blank": (" \n", "The schema is empty", "expected a .proto file"),
    "JSON": ('{"type": "string"}', "Expected a name or a number, got '{'", "column 1"),
    "base64 of something else": (
        "aGVsbG8gd29ybGQh",
        "does not begin a statement here",
        "expected enum, extend, import",
    ),
}
HOSTILE = {
    "messages": "message A {" * 100_000,
    "braces": "option a = " + "{a:" * 100_000,
    "brackets": "option a = " + "[" * 100_000,
    "maps": "message A { " + "map<string," * 100_000,
    "groups": "message A {" + "optional group G = 1 {" * 100_000,
    "messages and braces": "message A {" * 150 + "option a = " + "{a:" * 150 + "1" + "}" * 150 + ";" + "}" * 150,
    "blanks": " " * 200_000 + "?",
    "slashes": "/" * 200_000 + "\n?",
    "comments": "/**/" * 40_000 + "?",
    "quotes": "option a = " + '"' * 40_001,
    "digits": "message A { optional int32 a = " + "9" * 200_000 + "; }",
    "parts of a package": "package " + "a." * 20_000 + "a; message A {}",
    "path of an import": 'import "' + "/.." * 60_000 + '"?',
    "parts of a name with spaces": "message A { optional " + "a . " * 20_000 + "a b = 1; }",
    "parts of an option's name": "option a" + " .a" * 20_000 + " = 1;",
    "semicolons in an option": "option a = {" + "a:1;" * 10_000 + "?",
    "parts of a name": "message A { optional " + "a." * 20_000 + "a b = 1; }",
}


@pytest.mark.parametrize("text", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_accepted(text):
    """Texts that the reference accepts are accepted, and their canonical text is a fixed point."""
    canonical = parse(text, strict=True).canonical

    assert canonical == parse(canonical, strict=True).canonical


@pytest.mark.parametrize(("text", "message", "place"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(text, message, place):
    """Texts that the reference refuses are refused, with the place and the reason."""
    with pytest.raises(SchemaParseError) as caught:
        parse(text, strict=True)

    assert message in str(caught.value)
    assert place in str(caught.value)


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile(text):
    """Too much depth or length is refused with a sentence, and never with another exception."""
    with pytest.raises(SchemaParseError):
        parse(text, strict=True)


@pytest.mark.parametrize(
    ("limits", "text"),
    [
        (Limits(text=10), "message A {}"),
        (Limits(types=1), "message A {} message B {}"),
        (Limits(fields=1), 'syntax = "proto3"; message A { int32 a = 1; int32 b = 2; }'),
        (Limits(symbols=1), "enum E { A = 0; B = 1; }"),
        (Limits(depth=2), "message A { message B { message C {} } }"),
    ],
    ids=["text", "types", "fields", "symbols", "depth"],
)
def test_limits(limits, text):
    """Every bound is one of the limits."""
    assert parse(text, strict=True)
    with pytest.raises(SchemaParseError):
        parse(text, strict=True, limits=limits)


class Clock(Limits):
    """Limits that count how often the clock is read."""

    looks = 0

    def look_at_clock(self):
        """Count, and never expire."""
        Clock.looks += 1


def test_the_clock_is_looked_at_inside_of_an_option():
    """The parser reads the clock for each value, since one option may be as long as a schema."""
    before = Clock.looks
    text = "option (o) = {" + "b: [1, {c: 2}]," * 100 + "};"

    assert parse(text, strict=True, limits=Clock())
    assert 400 < Clock.looks - before


def test_indentation_is_bounded_before_there_is_a_text():
    """A short text is refused if its many lines deep inside an option would print as a long text."""
    text = "option o = " + "{a:" * 150 + "{" + "n: 1," * 2_000 + "}" + "}" * 150 + ";"

    with pytest.raises(SchemaParseError, match="The printed schema has more than 100000 characters"):
        parse(text, strict=True, limits=Limits(text=100_000))


def test_the_printed_form_of_dotted_names_is_bounded():
    """A short text is refused if merging the parts of its long dotted names would make a long text."""
    declared = "message O {} extend google.protobuf.FileOptions { optional O o = 50000; }\n"
    text = declared + "".join(f"option (o){'.a' * 190} = {number};" for number in range(30))

    assert parse(text, strict=True)
    with pytest.raises(SchemaParseError, match="printed"):
        normalize(parse(text, strict=True), limits=Limits(text=300_000))


def test_the_deepest_schema_is_usable():
    """A schema that is not too deep to be read is not too deep for any other operation."""
    text = "message A {" * 100 + "option a = " + "{a:" * 90 + "1" + "}" * 90 + ";" + "}" * 100
    schema = parse(text, strict=True)

    assert schema.canonical == parse(schema.canonical, strict=True).canonical
    assert normalize(schema)
    assert ignore_extensions(schema)
    assert serialized(schema)
    assert [] == check(schema, schema)


def test_references_stand_for_imports():
    """The types of references are known, directly named or not, and keep their own package."""
    references = (
        ResolvedReference("deep.proto", 'syntax = "proto3"; package deep; message D {}', "s/1"),
        ResolvedReference("dep.proto", 'syntax = "proto3"; package dep; message M { deep.D d = 1; }', "t/1"),
    )
    text = 'syntax = "proto3"; package own; import "dep.proto"; message A { dep.M m = 1; deep.D d = 2; }'

    assert ".deep.D d = 2;" in normalize(parse(text, strict=True, references=references))
    with pytest.raises(SchemaParseError, match=r"Unknown type dep\.M"):
        parse(text, strict=True)


def test_a_stored_schema_may_lack_a_type():
    """A stored schema stays readable without the definition of a type."""
    assert parse("message A { optional B b = 1; }", strict=False).canonical
    assert parse("", strict=False).canonical == ""


def test_descriptor_in_base64():
    """A descriptor becomes text, with its Confluent metadata, even where a library has registered its own."""
    import confluent_kafka.schema_registry.confluent.meta_pb2  # noqa: F401 - what it does is done by importing it

    text = (
        'syntax = "proto3"; package p; import "confluent/meta.proto"; message A { '
        'optional string a = 1 [(confluent.field_meta) = { params: [{key: "z", value: "1"}, {key: "b"}] }]; '
        "repeated A many = 2 [deprecated = true]; oneof o { E e = 3; } reserved 7 to 9; } enum E { Z = 0; }"
    )
    schema = parse(text, strict=True)

    assert schema.canonical == parse(serialized(schema), strict=True).canonical


@pytest.mark.parametrize("written", ["CgdhLnByb3RvIgMKAUE=", "CgdhLnByb3RvIgMKAUE"], ids=["padded", "not padded"])
def test_padding_of_base64(written):
    """A descriptor may come with or without the padding of its base64."""
    assert "message A {}" in parse(written, strict=True).canonical


def test_editions_are_refused_as_descriptors_too():
    """The syntax of a descriptor is checked as well."""
    descriptor = FileDescriptorProto(name="a", syntax="editions")
    text = base64.b64encode(descriptor.SerializeToString()).decode()

    with pytest.raises(SchemaParseError, match="editions"):
        parse(text, strict=True)


WORDS = """
    syntax = "proto3" message A { } enum E oneof o map<string, int32> group reserved 1 to max extensions extend option
    (a).b [ ] ( ) , ; "x" \\xff ' /* */ // int32 a 0x1 -5 1e9 default json_name rpc returns stream
"""
PIECES = st.lists(st.sampled_from([*WORDS.split(), "\n"]), max_size=40).map(" ".join)


@given(st.one_of(st.text(max_size=200), PIECES))
@settings(max_examples=examples(400), deadline=None)
def test_only_one_exception(text):
    """Any input gives a usable schema or a SchemaParseError."""
    try:
        schema = parse(text, strict=False)
    except SchemaParseError:
        return
    normalize(schema)
    serialized(schema)
    ignore_extensions(schema)

    assert schema.canonical == parse(schema.canonical, strict=False).canonical
