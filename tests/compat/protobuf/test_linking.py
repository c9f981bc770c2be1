"""A file that protoc refuses is refused by our linker, with the rule and the line; one that protoc takes is not."""

import gzip
import json
import os
import time
from pathlib import Path

import google.type
import grpc_tools
import pytest
from grpc_tools import protoc

from strata.compat.formats import FORMATS
from strata.compat.limits import Limits, OutOfTime
from strata.compat.protobuf.confluent_files import CONFLUENT_FILES
from strata.compat.protobuf.formats import serialized
from strata.compat.protobuf.linking import refusals
from strata.compat.protobuf.parser import parse
from strata.compat.schema import ResolvedReference, SchemaFormat, SchemaParseError

ROOTS = (Path(grpc_tools.__file__).parent / "_proto", Path(next(iter(google.type.__path__))).parents[1])
CONFORMANCE = Path(__file__).parents[2] / "conformance"
CLOSED = 'syntax = "proto2"; enum E2 { X = 0; }'
LENIENT = {  # what the tree does not hold: quotes of defaults, mixed `reserved`; and statements of parts of one option
    "Value must be quoted string for string option",
    "Expected string for field default value",
    "Expected field number range",
    "was already set",
}

EXTENDED = 'import "google/protobuf/descriptor.proto"; / extend google.protobuf.FileOptions { / int32 x = 50000; / }'

WRONG = [  # the rule, its line, the syntax and the statements, of which each after a slash has a line of its own
    pytest.param("FIELD_NUMBER_TWICE", 4, "proto3", "message M { / int32 a = 1; / int32 b = 1; / }", id="number twice"),
    pytest.param(
        "FIELD_NUMBER_TWICE",
        5,
        "proto3",
        "message M { / int32 a = 1; / oneof o { / int32 b = 1; / } / }",
        id="number twice oneof",
    ),
    pytest.param(
        "FIELD_NUMBER_TWICE",
        4,
        "proto3",
        "message M { / int32 a = 1; / map<string,int32> b = 1; / }",
        id="number twice map",
    ),
    pytest.param(
        "FIELD_NUMBER_TWICE",
        4,
        "proto2",
        "message M { / optional int32 a = 1; / optional group G = 1 {} / }",
        id="number twice group",
    ),
    pytest.param("NAME_TWICE", 4, "proto3", "message M { / int32 a = 1; / int32 a = 2; / }", id="name twice"),
    pytest.param(
        "NAME_TWICE",
        5,
        "proto3",
        "message M { / int32 a = 1; / oneof o { / int32 a = 2; / } / }",
        id="name twice oneof",
    ),
    pytest.param(
        "NAME_TWICE",
        6,
        "proto3",
        "message M { / oneof o { / int32 a = 1; / } / oneof o { / int32 b = 2; / } / }",
        id="oneof twice",
    ),
    pytest.param(
        "NAME_TWICE",
        4,
        "proto3",
        "message M { / int32 o = 3; / oneof o { / int32 a = 1; / } / }",
        id="oneof named like field",
    ),
    pytest.param(
        "NAME_TWICE", 4, "proto3", "message M { / int32 N = 1; / message N {} / }", id="field named like nested"
    ),
    pytest.param(
        "FIELD_NUMBER_RESERVED", 4, "proto3", "message M { / reserved 1; / int32 a = 1; / }", id="reserved number"
    ),
    pytest.param(
        "FIELD_NUMBER_RESERVED", 4, "proto3", "message M { / reserved 1 to 3; / int32 a = 2; / }", id="reserved range"
    ),
    pytest.param(
        "FIELD_NAME_RESERVED", 4, "proto3", 'message M { / reserved "a"; / int32 a = 1; / }', id="reserved name"
    ),
    pytest.param(
        "FIELD_NUMBER_RESERVED",
        4,
        "proto3",
        "message M { / reserved 100 to max; / int32 a = 1000; / }",
        id="reserved max",
    ),
    pytest.param("ENUM_FIRST_VALUE", 3, "proto3", "enum E { / A = 1; / }", id="enum first"),
    pytest.param("ENUM_EMPTY", 2, "proto3", "enum E { / }", id="enum empty"),
    pytest.param("ENUM_EMPTY", 2, "proto2", "enum E { / }", id="enum empty 2"),
    pytest.param("ENUM_NUMBER_TWICE", 4, "proto3", "enum E { / A = 0; / B = 0; / }", id="enum alias"),
    pytest.param("ENUM_NUMBER_TWICE", 4, "proto2", "enum E { / A = 1; / B = 1; / }", id="enum alias 2"),
    pytest.param(
        "ENUM_ALIAS_UNUSED",
        2,
        "proto3",
        "enum E { / option allow_alias = true; / A = 0; / B = 1; / }",
        id="enum useless alias",
    ),
    pytest.param("NAME_TWICE", 4, "proto3", "enum E { / A = 0; / A = 1; / }", id="enum value twice"),
    pytest.param("NAME_TWICE", 6, "proto3", "enum E { / A = 0; / } / enum F { / A = 0; / }", id="enum value elsewhere"),
    pytest.param("NAME_TWICE", 5, "proto3", "enum E { / A = 0; / } / message A {}", id="enum value like message"),
    pytest.param(
        "ENUM_NUMBER_RESERVED", 4, "proto3", "enum E { / A = 0; / B = 5; / reserved 4 to 6; / }", id="enum reserved"
    ),
    pytest.param("ENUM_NAME_RESERVED", 3, "proto3", 'enum E { / A = 0; / reserved "A"; / }', id="enum reserved name"),
    pytest.param("FIELD_NUMBER_OUT_OF_RANGE", 3, "proto3", "message M { / int32 a = 0; / }", id="zero"),
    pytest.param("FIELD_NUMBER_OUT_OF_RANGE", 3, "proto3", "message M { / int32 a = -1; / }", id="negative"),
    pytest.param("FIELD_NUMBER_OUT_OF_RANGE", 3, "proto3", "message M { / int32 a = 19001; / }", id="19001"),
    pytest.param("FIELD_NUMBER_OUT_OF_RANGE", 3, "proto3", "message M { / int32 a = 536870912; / }", id="too large"),
    pytest.param("IMPORT_MISSING", 2, "proto3", 'import "nowhere.proto"; / message M {}', id="missing import"),
    pytest.param("IMPORT_OF_ITSELF", 2, "proto3", 'import "a.proto"; / message M {}', id="import self"),
    pytest.param(
        "IMPORT_TWICE",
        3,
        "proto3",
        'import "google/protobuf/any.proto"; / import "google/protobuf/any.proto"; / message M {}',
        id="import twice",
    ),
    pytest.param(
        "TYPE_NOT_IMPORTED", 3, "proto3", "message M { / google.protobuf.Timestamp t = 1; / }", id="type without import"
    ),
    pytest.param("TYPE_UNKNOWN", 3, "proto3", "message M { / map<string, X> t = 1; / }", id="map value unknown"),
    pytest.param("DEFAULT_IN_PROTO3", 3, "proto3", "message M { / int32 a = 1 [default = 3]; / }", id="proto3 default"),
    pytest.param(
        "GROUP_IN_PROTO3", 3, "proto3", "message M { / optional group G = 1 { / int32 a = 1; / } / }", id="proto3 group"
    ),
    pytest.param("EXTENSIONS_IN_PROTO3", 3, "proto3", "message M { / extensions 4 to 5; / }", id="proto3 extensions"),
    pytest.param(
        "EXTENSION_IN_PROTO3", 3, "proto3", "message M {} / extend M { / int32 a = 1; / }", id="proto3 extend"
    ),
    pytest.param(
        "DESCRIPTOR_INVALID",
        6,
        "proto2",
        "message M { / extensions 4 to 5; / } / extend M { / optional int32 a = 6; / }",
        id="extend out of range",
    ),
    pytest.param(
        "FIELD_NUMBER_TWICE",
        7,
        "proto2",
        "message M { / extensions 4 to 5; / } / extend M { / optional int32 a = 4; / optional int32 b = 4; / }",
        id="extend number twice",
    ),
    pytest.param(
        "EXTENSION_REQUIRED",
        6,
        "proto2",
        "message M { / extensions 4 to 5; / } / extend M { / required int32 a = 4; / }",
        id="extend required",
    ),
    pytest.param(
        "RANGES_OVERLAP",
        4,
        "proto2",
        "message M { / extensions 4 to 5; / extensions 5 to 7; / }",
        id="extension range overlaps",
    ),
    pytest.param(
        "RANGES_OVERLAP",
        3,
        "proto2",
        "message M { / extensions 4 to 5; / reserved 5; / }",
        id="extension range reserved",
    ),
    pytest.param(
        "FIELD_NUMBER_OF_EXTENSIONS",
        4,
        "proto2",
        "message M { / extensions 4 to 5; / optional int32 a = 4; / }",
        id="field in extension range",
    ),
    pytest.param(
        "RANGES_OVERLAP", 4, "proto3", "message M { / reserved 1 to 3; / reserved 2; / }", id="reserved overlap"
    ),
    pytest.param("NAME_RESERVED_TWICE", 3, "proto3", 'message M { / reserved "a", "a"; / }', id="reserved name twice"),
    pytest.param("ONEOF_EMPTY", 3, "proto3", "message M { / oneof o {} / }", id="empty oneof"),
    pytest.param(
        "DESCRIPTOR_INVALID",
        4,
        "proto3",
        "message M { / int32 foo_bar = 1; / int32 fooBar = 2; / }",
        id="json conflict",
    ),
    pytest.param(
        "DESCRIPTOR_INVALID",
        4,
        "proto3",
        'message M { / int32 a = 1; / int32 b = 2 [json_name = "a"]; / }',
        id="json name conflict",
    ),
    pytest.param(
        "NAME_TWICE",
        4,
        "proto3",
        "message M { / map<string, int32> foo = 1; / message FooEntry {} / }",
        id="map entry clash",
    ),
    pytest.param(
        "METHOD_TYPE", 6, "proto3", "enum E { / A = 0; / } / service S { / rpc f(E) returns (E); / }", id="rpc enum"
    ),
    pytest.param(
        "DESCRIPTOR_INVALID",
        6,
        "proto2",
        "enum E { / A = 0; / } / extend E { / optional int32 a = 1; / }",
        id="extend enum",
    ),
    pytest.param(
        "NAME_TWICE",
        5,
        "proto3",
        "message M {} / service S { / rpc f(M) returns (M); / rpc f(M) returns (M); / }",
        id="method twice",
    ),
    pytest.param("NAME_TWICE", 3, "proto3", "message M {} / service M {}", id="service like message"),
    pytest.param(
        "DESCRIPTOR_INVALID",
        6,
        "proto2",
        "enum E { / A = 0; / } / message M { / optional E e = 1 [default = B]; / }",
        id="default wrong enum",
    ),
    pytest.param(
        "DESCRIPTOR_INVALID",
        3,
        "proto2",
        "message M { / optional int32 e = 1 [default = x]; / }",
        id="default wrong int",
    ),
    pytest.param(
        "DESCRIPTOR_INVALID",
        3,
        "proto2",
        "message M { / optional int32 e = 1 [default = 3000000000]; / }",
        id="default too big",
    ),
    pytest.param(
        "DESCRIPTOR_INVALID",
        3,
        "proto2",
        "message M { / optional uint32 e = 1 [default = -1]; / }",
        id="default negative",
    ),
    pytest.param(
        "DEFAULT_OF_REPEATED",
        3,
        "proto2",
        "message M { / repeated int32 e = 1 [default = 1]; / }",
        id="default repeated",
    ),
    pytest.param(
        "DESCRIPTOR_INVALID", 3, "proto2", "message M { / optional M e = 1 [default = 1]; / }", id="default message"
    ),
    pytest.param(
        "DESCRIPTOR_INVALID", 3, "proto2", "message M { / optional bool e = 1 [default = 1]; / }", id="default bool"
    ),
    pytest.param("OPTION_UNKNOWN", 2, "proto3", "option foo = 1; / message M {}", id="option unknown"),
    pytest.param("OPTION_UNKNOWN", 3, "proto3", "message M { / int32 a = 1 [foo = 1]; / }", id="field option unknown"),
    pytest.param(
        "OPTION_UNKNOWN", 3, "proto3", "message M { / int32 a = 1 [(foo) = 1]; / }", id="custom option unknown"
    ),
    pytest.param("OPTION_VALUE", 2, "proto3", "option java_package = 1; / message M {}", id="option wrong type"),
    pytest.param(
        "OPTION_TWICE",
        3,
        "proto3",
        'option java_package = "a"; / option java_package = "b"; / message M {}',
        id="option twice",
    ),
    pytest.param("OPTION_VALUE", 2, "proto3", "option optimize_for = FAST; / message M {}", id="option enum"),
    pytest.param("FIELD_PACKED", 3, "proto3", "message M { / string a = 1 [packed = true]; / }", id="packed"),
    pytest.param("NAME_INVALID", 2, "proto3", "message 1A {}", id="name digits"),
    pytest.param("NAME_INVALID", 2, "proto3", "message A-B {}", id="name hyphen"),
    pytest.param("NAME_INVALID", 3, "proto3", "message A { / int32 a-b = 1; / }", id="field hyphen"),
    pytest.param("PACKAGE_TWICE", 3, "proto3", "package a; / package b; / message M {}", id="package twice"),
    pytest.param(
        "ENUM_OF_PROTO2", 4, "proto3", 'import "e2.proto"; / message M { / E2 e = 1; / }', id="proto3 closed enum"
    ),
    pytest.param(
        "NAME_TWICE",
        4,
        "proto3",
        'package google; / import "google/protobuf/any.proto"; / message protobuf {}',
        id="message named like package",
    ),
    pytest.param(
        "TYPE_SHADOWED",
        5,
        "proto3",
        'package a.google; / import "google/protobuf/any.proto"; / message M { / google.protobuf.Any x = 1; / }',
        id="type shadowed",
    ),
    pytest.param(
        "OPTION_UNKNOWN", 3, "proto3", "message M { / option message_set_wire_format = true; / }", id="message set"
    ),
    pytest.param("RANGE_INVALID", 3, "proto3", "message M { / reserved 5 to 3; / }", id="range reversed"),
    pytest.param("RANGE_INVALID", 3, "proto3", "message M { / reserved 0; / }", id="reserved zero"),
    pytest.param("RANGE_INVALID", 3, "proto2", "message M { / extensions 5 to 536870912; / }", id="range too large"),
    pytest.param(
        "EXTENSION_JSON_NAME",
        6,
        "proto2",
        'message M { / extensions 4; / } / extend M { / optional int32 a = 4 [json_name = "x"]; / }',
        id="extension json_name",
    ),
    pytest.param("ENUM_NAMES_ALIKE", 4, "proto3", "enum E { / A = 0; / a = 1; / }", id="enum names alike"),
    pytest.param(
        "OPTION_UNKNOWN",
        4,
        "proto3",
        "message M { / message N { / option map_entry = true; / string key = 1; / string value = 2; / } / }",
        id="map entry by hand",
    ),
    pytest.param(
        "OPTION_TWICE",
        7,
        "proto3",
        f"{EXTENDED} / option (x) = 1; / option (x) = 2;",
        id="custom twice",
    ),
    pytest.param(
        "OPTION_UNKNOWN",
        7,
        "proto3",
        f"{EXTENDED.replace('extend', 'message H { extend')} / }} / option (x) = 1;",
        id="custom in another message",
    ),
    pytest.param("GROUP_NAME", 3, "proto2", "message M { / optional group g = 1 { / } / }", id="group name"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with the files that tests import."""
    path = tmp_path_factory.mktemp("protos")
    for name, text in {**CONFLUENT_FILES, "e2.proto": CLOSED}.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(text)
    return path


def _error_of_protoc(folder, text):
    """Return what protoc says against a file; empty if it takes the file."""
    (folder / "a.proto").write_text(text, encoding="utf-8")
    kept, said = os.dup(2), os.open(folder / "said", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    os.dup2(said, 2)
    try:
        status = protoc.main(
            ["protoc", f"-I{folder}", *(f"-I{root}" for root in ROOTS), f"-o{folder / 'out'}", "a.proto"]
        )
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(said)
    return (folder / "said").read_text() or "refused" if status else ""


@pytest.mark.parametrize(("rule", "line", "syntax", "statements"), WRONG)
def test_what_protoc_refuses(folder, rule, line, syntax, statements):
    """The linker refuses what protoc refuses, and says which rule the file breaks, and where."""
    text = f'syntax = "{syntax}";\n' + statements.replace(" / ", "\n")
    references = [ResolvedReference("e2.proto", CLOSED, "e2 1")] if "e2.proto" in text else []
    refused = refusals(parse(text, strict=True, references=references), path="folder/a.proto")

    assert _error_of_protoc(folder, text)
    assert (rule, line) == (refused[0].rule, refused[0].line)


def _recorded():
    for name in ("canonical", "history", "options", "parse"):
        with gzip.open(CONFORMANCE / f"protobuf_{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
            yield from (case["new"]["schema"] for case in map(json.loads, lines) if "references" not in case["new"])


@pytest.mark.parametrize("step", [32, pytest.param(1, marks=pytest.mark.slow)])
def test_recorded_files(folder, step):
    """Of hundreds of recorded files, right and wrong ones, the linker refuses those that protoc refuses."""
    agreed = {True: 0, False: 0}
    for text in list(dict.fromkeys(_recorded()))[::step]:
        try:
            refused = refusals(parse(text, strict=True), path="a.proto")
        except SchemaParseError:
            continue
        if not text or " " not in text:  # a descriptor in base64, which protoc does not read
            continue
        error = _error_of_protoc(folder, text)
        if not any(lenient in error for lenient in LENIENT):
            assert (text, bool(error)) == (text, bool(refused)), (error, refused)
            agreed[bool(error)] += 1

    assert agreed[True] > 60 / step / 2
    assert agreed[False] > 500 / step / 2


@pytest.mark.parametrize("root", ROOTS)
def test_files_of_google(root):
    """Google's own files, which use nearly every feature of the language, are not refused."""
    paths = sorted((root / "google").rglob("*.proto"))
    read = 0
    for path in paths:
        text = path.read_text(encoding="utf-8")
        if "edition =" not in text and "google/api" not in text:
            assert (path, []) == (path, list(refusals(parse(text, strict=True))))
            read += 1
    assert read > 5


def test_an_import_is_public_or_own():
    """A type is seen through a public import, and not through another one."""
    inner = ResolvedReference("inner.proto", 'syntax = "proto3"; message Inner {}', "1")
    shown = ResolvedReference("outer.proto", 'syntax = "proto3"; import public "inner.proto";', "2")
    hidden = ResolvedReference("outer.proto", 'syntax = "proto3"; import "inner.proto";', "2")
    text = 'syntax = "proto3"; import "outer.proto"; message M { Inner a = 1; }'

    assert [] == refusals(parse(text, strict=True, references=[inner, shown]))
    (refused,) = refusals(parse(text, strict=True, references=[inner, hidden]))
    expected = (
        '"Inner" is defined in "inner.proto", which the file does not import (line 1, column 60, TYPE_NOT_IMPORTED)'
    )
    assert expected == str(refused)


def test_an_import_that_protobuf_refuses():
    """An import that cannot be linked is named."""
    wrong = ResolvedReference("wrong.proto", 'syntax = "proto3"; message W { int32 a = 1; int32 b = 1; }', "1")
    (refused,) = refusals(parse('syntax = "proto3";\nimport "wrong.proto";', strict=True, references=[wrong]))

    assert ("IMPORT_INVALID", 2) == (refused.rule, refused.line)
    assert 'Protobuf refuses "wrong.proto": ' in refused.message


def test_a_descriptor_has_no_lines():
    """A schema that came as a descriptor is refused without a line."""
    schema = parse('syntax = "proto3"; message M { int32 a = 0; }', strict=True)
    (refused,) = refusals(parse(serialized(schema), strict=True))

    assert 0 == refused.line
    assert str(refused).endswith("(FIELD_NUMBER_OUT_OF_RANGE)")


def test_the_work_is_bounded():
    """A file of many mistakes gives a hundred; a deadline ends the work."""
    schema = parse('syntax = "proto3"; message M {' + "int32 a = 1;" * 1_000 + "}", strict=True)

    assert 100 == len(refusals(schema))
    with pytest.raises(OutOfTime):
        refusals(schema, limits=Limits(ends=time.thread_time() - 1, earliest=0))


def test_the_other_formats_refuse_nothing():
    """Avro and JSON Schema have no such rules: their parsers refuse all that their tools refuse."""
    assert () == FORMATS[SchemaFormat.AVRO].refusals(FORMATS[SchemaFormat.AVRO].parse('"int"', strict=True))
    assert () == FORMATS[SchemaFormat.JSON].refusals(FORMATS[SchemaFormat.JSON].parse("{}", strict=True))
