"""Schemas have canonical and normalized texts, equivalence, and the texts of `format=`."""

import base64

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from strata.compat.formats import FORMATS
from strata.compat.protobuf.equivalence import equivalent
from strata.compat.protobuf.formats import serialized
from strata.compat.protobuf.normalizer import normalize
from strata.compat.protobuf.parser import parse
from strata.compat.schema import SchemaFormat

TEXT = """
package p;
import "google/protobuf/descriptor.proto";
import public "google/protobuf/any.proto";
option java_package = 'x\\ty';
extend google.protobuf.FieldOptions { optional float weight = 50000; }
enum E { B = 1; A = 0; reserved 7 to max, -3; reserved "q"; }
message A {
  extensions 200 to max, 100;
  enum Inner { I = 0; }
  message Nested { oneof none {} }
  optional E e = 3 [json_name = "X", default = B, (weight) = 1.50, deprecated = true];
  optional group G = 9 { optional Inner i = 1; }
  oneof o { string s = 8; Nested n = 2; }
  map<string, Inner> m = 1;
}
"""
CANONICAL = r"""
package p;

import "google/protobuf/descriptor.proto";
import public "google/protobuf/any.proto";

option java_package = "x\ty";

message A {
  optional E e = 3 [
    (weight) = 1.50,
    deprecated = true,
    default = B,
    json_name = "X"
  ];
  map<string, Inner> m = 1;

  oneof o {
    string s = 8;
    Nested n = 2;
  }

  optional group G = 9 {
    optional Inner i = 1;
  }

  extensions 200 to max, 100;

  message Nested {
    oneof none {}
  }
  enum Inner {
    I = 0;
  }
}
enum E {
  reserved 7 to max, -3;
  reserved "q";
  B = 1;
  A = 0;
}

extend google.protobuf.FieldOptions {
  optional float weight = 50000;
}
"""
NORMALIZED = r"""
message A {
  map<string, .p.A.Inner> m = 1;
  optional .p.E e = 3 [
    default = B,
    deprecated = true,
    json_name = "X",
    (p.weight) = 1.5
  ];

  oneof o {
    .p.A.Nested n = 2;
    string s = 8;
  }

  optional group G = 9 {
    optional .p.A.Inner i = 1;
  }

  extensions 100;
  extensions 200 to max;

  message Nested {
  }
  enum Inner {
    I = 0;
  }
}
enum E {
  reserved -3;
  reserved 7 to max;
  reserved "q";
  A = 0;
  B = 1;
}
"""


def test_canonical_text():
    """Statements are in blocks by kind, and keep their order otherwise."""
    assert CANONICAL.removeprefix("\n") == parse(TEXT, strict=True).canonical


def test_normalized_text():
    """Types have their full names, and everything whose order has no meaning is sorted."""
    assert NORMALIZED in normalize(parse(TEXT, strict=True))


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        pytest.param('import "a//b/./c.proto";', 'import "a/b/c.proto";', id="same folder"),
        pytest.param('import "./a.proto";', 'import "a.proto";', id="same folder first"),
        pytest.param('import "../a/../b.proto";', 'import "../a/../b.proto";', id="folder above"),
        pytest.param('import "/../a.proto";', 'import "/a.proto";', id="nothing is above the root"),
        pytest.param('import public "a\\\\b.proto";', 'import public "a/b.proto";', id="backslash"),
        pytest.param('import "a/";', 'import "a";', id="slash at the end"),
        pytest.param('import "";', 'import ".";', id="nothing"),
    ],
)
def test_paths_of_imports(statement, expected):
    """The path of an import is printed in its simplest form."""
    assert f"\n{expected}\n" == parse(statement, strict=True).canonical


@pytest.mark.parametrize(
    ("kind", "written", "expected"),
    [
        pytest.param("bytes", '"ab"', "ab", id="bytes"),
        pytest.param("string", "ab", '"ab"', id="string"),
        pytest.param("string", "5", '"5"', id="string from a number"),
        pytest.param("int32", '"5"', "5", id="number from a string"),
        pytest.param("bool", '"true"', "true", id="boolean from a string"),
        pytest.param("E", '"Z"', "Z", id="enum from a string"),
        pytest.param("double", "-inf", "-inf", id="no number"),
    ],
)
def test_defaults(kind, written, expected):
    """The type of a field decides the form of its default; only a string's is in quotes."""
    schema = parse(f"message A {{ optional {kind} a = 1 [default = {written}]; }} enum E {{ Z = 0; }}", strict=True)

    assert f" a = 1 [default = {expected}];" in schema.canonical
    assert f" a = 1 [default = {expected}];" in normalize(schema)


OPTIONS = """
import "google/protobuf/descriptor.proto";
message O {
  optional S s = 1; repeated S t = 2; oneof o { S u = 3; E e = 4; } optional int32 n = 5; map<string, S> m = 6;
  repeated int32 i = 7; extensions 10 to 20;
}
message S { optional int32 max = 1; optional int32 min = 2; extend O { optional S z = 11; } }
extend O { optional S y = 10; }
enum E { Y = 0; Z = 1; }
extend google.protobuf.FileOptions { optional O o = 50000; repeated O many = 50001; optional string text = 50002; }
"""


PARTS = {
    "one part": ("(o).n = 1", "(o) = {n: 1}"),
    "a part of a part": ("(.o).s = {min: 1, max: 2}", "(o) = {s: {max: 2, min: 1}}"),
    "two parts": ("(o).t.max = 1, (o).n = 2", "(o) = {n: 2, t: {max: 1}}"),
    "message": ("(o).s.min = 1, (o).s.max = 2", "(o) = {s: {max: 2, min: 1}}"),
    "whole and part": ("(o) = {n: 1, s {max: 1}}, (o).s.min = 2", "(o) = {n: 1, s: {max: 1, min: 2}}"),
    "message twice in braces": ("(o) = {s {min: 1} s {max: 2}}", "(o) = {s: {max: 2, min: 1}}"),
    "member of a oneof": ("(o).u.min = 1, (o) = {u {max: 2}}", "(o) = {u: {max: 2, min: 1}}"),
    "repeated message": ("(o).t.min = 1, (o).t.max = 2", "(o) = {t: [{min: 1}, {max: 2}]}"),
    "equal items": ("(o).t.min = 1, (o).t.min = 2, (o).t.min = 1", "(o) = {t: [{min: 1}, {min: 2}]}"),
    "equal items in another spelling": ("(o).i = 2, (o).i = 01, (o).i = 1", "(o) = {i: [2, 1]}"),
    "one item": ("(o).i = 1, (o).n = 2", "(o) = {i: 1, n: 2}"),
    "list of one statement": ("(o).i = [2, 1, 2]", "(o) = {i: [2, 1, 2]}"),
    "list beside another statement": ("(o).n = 1, (o).i = [2, 1, 2]", "(o) = {i: [2, 1, 2], n: 1}"),
    "list of one item": ("(o) = {i: [1], t: [{i: [2]}]}", "(o) = {i: 1, t: {i: 2}}"),
    "list without items": ("(o) = {i: [], s: {x: []}}", "(o) = {s: {}}"),
    "map": ("(o).m.key = b, (o).m.key = a", "(o) = {m: [{key: b}, {key: a}]}"),
    "last number": ("(o).n = 1, (o).n = 3, (o).n = 2", "(o) = {n: 2}"),
    "last constant": ("(o).e = Y, (o).e = Z", "(o) = {e: Z}"),
    "unknown field": ("(o).x = 1, (o).x = [2, 3]", "(o) = {x: [1, 2, 3]}"),
    "unknown option": ("(p).s.min = 1, (p).s = {max: [2], min: []}", "(p).s.min = 1, (p).s = {max: 2}"),
    "unknown option in braces": ("(p) = {s: {min: 1}}, (p) = {s: [{}]}", "(p) = {s: {min: 1}}, (p) = {s: {}}"),
    "unknown option with an empty list": ("(p).s = []", "(p).s = []"),
    "unknown option without parts": ("(p) = 2, (p) = 1", "(p) = 2, (p) = 1"),
    "repeated option": ("(many).n = 2, (many).n = 1", "(many) = {n: 2}, (many) = {n: 1}"),
    "repeated option by its name": ('(text) = "", (many) = {}', '(many) = {}, (text) = ""'),
    "repeated option beside parts": ("(many) = {}, (o).n = 1, (many) = {}", "(many) = {}, (many) = {}, (o) = {n: 1}"),
    "repeated option beside merged parts": ("(o).n = 1, (o).e = Y, (many) = {}", "(many) = {}, (o) = {e: Y, n: 1}"),
    "last string": ('(text) = "b", (text) = "a"', '(text) = "a"'),
    "extensions in the path": ("(o).[y].max = 1, (o).(.y).min = 2", "(o) = {[y]: {max: 1, min: 2}}"),
    "extension in the path": ("(o).(.y).max = 1", "(o) = {[y]: {max: 1}}"),
    "extension in a message": ("(o).[S.z].min = 1, (o) = {[S.z] {max: 2}}", "(o) = {[S.z]: {max: 2, min: 1}}"),
    "unknown extension": ("(o).[x].min = 1, (o).[x].max = 2", "(o) = {[x]: [{min: 1}, {max: 2}]}"),
}


@pytest.mark.parametrize(("statements", "expected"), PARTS.values(), ids=PARTS.keys())
def test_parts_of_one_option(statements, expected):
    """The statements of one option are merged as its message says, and merging them again changes nothing."""

    def text(options):
        return OPTIONS + "".join(f"option ({option};" for option in options.removeprefix("(").split(", ("))

    normalized = normalize(parse(text(statements), strict=True))

    assert _file_options(parse(text(expected), strict=True).canonical) == _file_options(normalized)
    assert normalized == normalize(parse(normalized, strict=True))


def _file_options(text):
    return text[: text.index("message")].partition("option")[2]


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("message A { optional A a = 1; }", "message A { optional .A a = 1; }", True),
        ("message A {}", 'syntax = "proto2"; message A {}', True),
        ("message A { map<string, A> m = 1; }", "@serialized", True),
        ("message A { oneof o { string s = 1; } optional A a = 2; enum E { Z = 0; } }", "@serialized", True),
        ("message A {}", 'syntax = "proto3"; message A {}', False),
        ("enum E { A = 0; B = 1; }", "enum E { B = 1; A = 0; }", False),
        ("message A { optional int32 a = 1; }", "message A { optional int32 b = 1; }", False),
        ("message A { optional int32 a = 1; }", "message A { optional int64 a = 1; }", False),
    ],
)
def test_equivalent(one, other, expected):
    """Two texts are one version if they agree in content and order, however types and maps are spelled."""
    left = parse(one, strict=True)
    right = parse(serialized(left) if other == "@serialized" else other, strict=True)

    assert expected == equivalent(left, right) == equivalent(right, left)


@pytest.mark.parametrize(
    "options",
    [
        '(confluent.field_meta).doc = "d"',
        '(confluent.field_meta).tags = "PII"',
        '(confluent.field_meta).tags = "b", (confluent.field_meta).tags = "a", (confluent.field_meta).tags = "b"',
        '(confluent.field_meta) = {params: {key: "k", value: "v"} tags: "a" doc: "d"}',
    ],
)
def test_metadata_of_a_text_and_of_its_descriptor(options):
    """With dots or in braces, a text with metadata and its descriptor are one version."""
    text = f'syntax = "proto3"; import "confluent/meta.proto"; message A {{ string a = 1 [{options}]; }}'
    schema = parse(text, strict=True)
    described = parse(serialized(schema), strict=True)

    assert equivalent(schema, described)
    assert equivalent(described, schema)


@pytest.mark.parametrize("tags", [(1, 0), (0, 2), (2, 3)])
def test_what_is_no_entry_of_a_map_is_not_folded(tags):
    """A message that only calls itself a map entry stays a message."""
    entry = f"option map_entry = true; optional string key = {tags[0]}; optional string value = {tags[1]};"
    schema = parse(f"message A {{ repeated E e = 1; message E {{ {entry} }} }}", strict=True)

    assert "repeated .A.E e = 1;" in normalize(schema)


def test_extensions_inside_an_option():
    """An extension in brackets gets its full name and the last of its values; an unknown name is kept as it is."""
    text = """package p; message O { extensions 1 to 9; message I { extend O { optional int32 x = 1; } } }
    message A { option (o) = { [I.x]: 1, [O.I.x]: 2, [.p.O.I.x]: 3, [y]: { [p.O.I.x]: 4 } }; }"""
    normalized = normalize(parse(text, strict=True))

    assert ["[I.x]: 1", "[p.O.I.x]: 3", "[y]: {", "[p.O.I.x]: 4"] == [
        line.strip(" ,") for line in normalized.splitlines() if "[" in line
    ]


def test_texts_of_format():
    """The table of formats names every text of `format=`."""
    assert {"serialized", "ignore_extensions"} == set(FORMATS[SchemaFormat.PROTOBUF].printed_as)
    assert {"resolved"} == set(FORMATS[SchemaFormat.AVRO].printed_as)


def test_ignore_extensions():
    """`format=ignore_extensions` leaves out custom options, `extend` blocks and extension ranges."""
    schema = parse(TEXT, strict=True)
    text = FORMATS[SchemaFormat.PROTOBUF].printed_as["ignore_extensions"](schema)

    assert "weight" not in text
    assert "exten" not in text
    assert "reserved 7 to max, -3;" in text


@pytest.mark.parametrize("request_streams", [False, True])
@pytest.mark.parametrize("response_streams", [False, True])
def test_streams_of_methods(request_streams, response_streams):
    """Both directions of a method are written out, and parse to the same schema."""
    types = [f"({'stream ' if streams else ''}A)" for streams in (request_streams, response_streams)]
    schema = parse(f"message A {{}} service S {{ rpc F{types[0]} returns {types[1]}; }}", strict=True)
    descriptor = FileDescriptorProto.FromString(base64.b64decode(serialized(schema)))
    (method,) = descriptor.service[0].method

    assert ["name", "input_type", "output_type", "client_streaming", "server_streaming"] == [
        field.name for field, _ in method.ListFields()
    ]
    assert (request_streams, response_streams) == (method.client_streaming, method.server_streaming)
    assert schema.canonical == parse(serialized(schema), strict=True).canonical
