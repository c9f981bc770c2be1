"""Our parser and protoc accept the same texts and describe them alike.

The tests compare linked descriptors. They leave out what the reference's form of a descriptor omits or says otherwise:
the order of fields among oneofs, the names of map entries, custom options, implied JSON names, options of extension
ranges (which protoc keeps for itself).
"""

import gzip
import json
import re
from itertools import islice
from pathlib import Path

import google.type
import grpc_tools
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from grpc_tools import protoc

from strata.compat.protobuf.parser import parse
from strata.compat.protobuf.to_descriptor import file_to_descriptor
from strata.compat.schema import ResolvedReference, SchemaParseError

ROOTS = (Path(grpc_tools.__file__).parent / "_proto", Path(next(iter(google.type.__path__))).parents[1])
GOOGLE = sorted(
    {str(path.relative_to(root)): root for root in ROOTS for path in (root / "google").rglob("*.proto")}.items()
)
CONFORMANCE = Path(__file__).parents[2] / "conformance"
IMPORT = re.compile(r'^\s*import\s+(?:public\s+|weak\s+)?"([^"]+)"', re.MULTILINE)

KNOWN = re.compile(r"= *0[0-7]|import weak")  # The reference reads 017 as 17, and drops weak imports.

HAND_WRITTEN = {
    "labels": 'syntax = "proto3"; message A { optional int32 a = 1; repeated string b = 2; bytes c = 3; }',
    "required": 'syntax = "proto2"; message A { required A a = 1; optional int64 b = 2 [default = -5]; }',
    "string default": 'syntax = "proto2"; message A { optional string a = 1 [default = "a\\n\\"b\\x41\\101"]; }',
    "enum default": 'syntax = "proto2"; enum E { A = 1; B = 2; } message M { optional E e = 1 [default = B]; }',
    "no syntax": "message A { optional int32 a = 1; }",
    "maps": 'syntax = "proto3"; message A { map<string, A> by_name = 1; map<int32, E> es = 2; enum E { Z = 0; } }',
    "oneofs": 'syntax = "proto3"; message A { int32 x = 9; oneof o { A a = 1; string b = 2; } optional bool c = 3; }',
    "oneof group": 'syntax = "proto2"; message A { oneof o { group G = 1 { optional int32 a = 1; } string b = 2; } }',
    "groups": 'syntax = "proto2"; message A { repeated group Item = 1 { required string k = 1; optional A v = 2; } }',
    "extensions": 'syntax = "proto2"; message A { extensions 10 to 20, 100 to max; } extend A { optional B b = 10; } '
    "message B { extend A { repeated int32 c = 11; } }",
    "reserved": 'syntax = "proto3"; message A { reserved 2, 4 to 6, 1000 to max; reserved "x", "y"; int32 a = 1; }',
    "reserved in enum": 'syntax = "proto3"; enum E { Z = 0; reserved -5 to -2, 7, 10 to max; reserved "Q"; }',
    "alias": 'syntax = "proto3"; enum E { option allow_alias = true; Z = 0; Y = 0; X = 0x7f [deprecated = true]; }',
    "service": 'syntax = "proto3"; package p; message M {} service S { rpc A(M) returns (stream .p.M); '
    "rpc B(stream p.M) returns (M) { option deprecated = true; option idempotency_level = IDEMPOTENT; } }",
    "file options": 'syntax = "proto3"; option java_package = "a" "b"; option optimize_for = CODE_SIZE; '
    "option cc_enable_arenas = false; message A { option deprecated = true; "
    "repeated int32 a = 1 [json_name = 'q', packed = true]; }",
    "scopes": 'syntax = "proto3"; package a.b; message M { message M { int32 x = 1; } '
    "M m = 1; .a.b.M n = 2; b.M o = 3; }",
    "well-known": 'syntax = "proto3"; import "google/protobuf/timestamp.proto"; '
    'import public "google/type/date.proto"; '
    "message A { google.protobuf.Timestamp t = 1; google.type.Date d = 2; }",
    "comments": '/* a */ syntax = "proto3"; // b\nmessage A { // c\n int32 a /* d */ = 1; // e\n}\n// f',
    "octal tags": 'syntax = "proto3"; message A { int32 a = 0x10; string s = 7; }',
    "keywords": 'syntax = "proto3"; message message { int32 package = 1; bool syntax = 2; message rpc {} rpc to = 3; }',
    "field options": 'syntax = "proto2"; message A { '
    "optional string s = 1 [ctype = CORD, deprecated = true, lazy = false]; "
    "optional int64 j = 2 [jstype = JS_STRING]; }",
}  # fmt: skip


def _conformance():
    for name in ("canonical", "parse", "history"):
        with gzip.open(CONFORMANCE / f"protobuf_{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
            for case in map(json.loads, lines):
                if "references" not in case["new"]:
                    yield case["id"], case["new"]["schema"]


def _compile(path, roots, tmp_path):
    """Return protoc's descriptors of a file and all its imports; None if protoc refuses it."""
    target = tmp_path / "descriptors"
    arguments = ["protoc", *(f"-I{root}" for root in roots), f"-o{target}", "--include_imports", path]
    if protoc.main(arguments) != 0:
        return None
    return FileDescriptorSet.FromString(target.read_bytes()).file


def _linked(file, others):
    """Return a descriptor with the names in it resolved."""
    pool = DescriptorPool()
    for other in others:
        pool.AddSerializedFile(other.SerializeToString())
    pool.AddSerializedFile(file.SerializeToString())
    linked = FileDescriptorProto()
    pool.FindFileByName(file.name).CopyToProto(linked)
    return linked


def _plain(file):
    """Return a descriptor without the parts that the comparison leaves out."""
    for message in file.message_type:
        _plain_message(message)
    _sort(file.extension, "number")
    for field in file.extension:
        field.ClearField("json_name")
    file.ClearField("weak_dependency")
    if file.syntax == "proto2":
        file.ClearField("syntax")
    file.DiscardUnknownFields()
    return _without_empty_options(file)


def _plain_message(message):
    entries = {}
    for nested in message.nested_type:
        _plain_message(nested)
    for field in message.field:
        field.ClearField("json_name")
        short = field.type_name.rpartition(".")[2]
        for nested in message.nested_type:
            if nested.name == short and nested.options.map_entry:
                entries[nested.name] = f"{field.number}Entry"
                field.type_name = f"Entry{field.number}"
    for nested in message.nested_type:
        nested.name = entries.get(nested.name, nested.name)
    for field in message.extension:
        field.ClearField("json_name")
    for extension_range in message.extension_range:
        extension_range.ClearField("options")
    _sort(message.field, "number")
    _sort(message.extension, "number")
    _sort(message.nested_type, "name")


def _sort(items, key):
    copies = sorted(items, key=lambda item: getattr(item, key))
    del items[:]
    items.extend(copies)


def _without_empty_options(message):
    for field, value in list(message.ListFields()):
        if (
            field.is_extension
        ):  # a custom option is unknown, unless another test has imported the module that declares it
            message.ClearExtension(field)
            continue
        if field.message_type is None:
            continue
        for item in value if field.is_repeated else (value,):
            _without_empty_options(item)
        if field.name == "options" and value.ByteSize() == 0:
            message.ClearField("options")
    return message


def _ours(text, name, others):
    """Return our descriptor of a text, whose references are the files that protoc read."""
    references = [ResolvedReference(other.name, _text(other.name), other.name) for other in others]
    schema = parse(text, strict=True, references=references)
    descriptor = file_to_descriptor(schema.file, schema.names)
    descriptor.name = name
    return descriptor


def _text(path):
    return next((root / path).read_text(encoding="utf-8") for root in ROOTS if (root / path).exists())


def _compare(text, files):
    *others, theirs = files
    ours = _ours(text, theirs.name, others)
    return _plain(_linked(theirs, others)), _plain(_linked(ours, others))


@pytest.mark.parametrize(
    ("path", "root"),
    [
        pytest.param(*row, id=row[0], marks=[pytest.mark.slow] if number % 3 and "descriptor" not in row[0] else [])
        for number, row in enumerate(GOOGLE)
    ],
)
def test_files_of_google(path, root, tmp_path):
    """Google's own files, which use nearly every feature of the language, have the descriptors of protoc."""
    expected, actual = _compare((root / path).read_text(encoding="utf-8"), _compile(path, ROOTS, tmp_path))

    assert expected == actual


@pytest.mark.parametrize("text", HAND_WRITTEN.values(), ids=HAND_WRITTEN.keys())
def test_hand_written_files(text, tmp_path):
    """Hand-written files, one for each part of the language, have the descriptors of protoc."""
    (tmp_path / "a.proto").write_text(text)
    files = _compile("a.proto", (tmp_path, *ROOTS), tmp_path)
    expected, actual = _compare(text, files)

    assert expected == actual


def _refused(text):
    """Return whether the reference refuses the text for its comments, which protoc does not."""
    try:
        parse(text, strict=True)
    except SchemaParseError as error:
        return "A block comment after a statement" in str(error)
    return False


@pytest.mark.parametrize("step", [8, pytest.param(1, marks=pytest.mark.slow)])
def test_recorded_files(tmp_path, step):
    """Recorded schemas have the descriptors of protoc, if both protoc and the reference accept them."""
    compared = 0
    for name, text in islice(_conformance(), 0, None, step):
        if not text or "confluent/" in text or KNOWN.search(text):
            continue
        (tmp_path / "a.proto").write_text(text, encoding="utf-8")
        files = _compile("a.proto", (tmp_path, *ROOTS), tmp_path)
        if files is None or _refused(text):
            continue
        expected, actual = _compare(text, files)
        compared += 1
        assert (name, expected) == (name, actual)

    assert compared > 200 / step
