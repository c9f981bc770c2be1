"""The normal form of files with custom options is a fixed point and keeps the meaning that protoc gives the text."""

import base64
from pathlib import Path
from random import Random

import grpc_tools
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_tools import protoc
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from harness.examples import examples
from harness.proto_texts import Maker
from strata.compat.protobuf.custom_options import with_metadata
from strata.compat.protobuf.formats import serialized
from strata.compat.protobuf.normalizer import normalize
from strata.compat.protobuf.parser import parse
from strata.compat.schema import ResolvedReference, SchemaParseError

GOOGLE = Path(grpc_tools.__file__).parent / "_proto"
DECLARED = """syntax = "proto2"; package p;
import "google/protobuf/descriptor.proto";
message V {
  optional int32 i = 1; repeated string s = 2; optional V v = 3; optional E e = 4; repeated V vs = 5;
  oneof o { V a = 6; bool b = 7; } repeated E es = 8; extensions 100 to max;
  extend V { optional V inner = 100; }
}
enum E { Z = 0; Y = 1; }
extend V { repeated int32 outer = 101; }
extend google.protobuf.FileOptions { optional V file = 50001; repeated int32 numbers = 50002; }
message Holder {
  extend google.protobuf.FileOptions { optional V held = 50003; repeated V many = 50004; optional E one = 50005; }
}
"""
SCALARS = {
    "i": st.integers(-9, 9).map(str),
    "s": st.lists(st.sampled_from(['"a"', '"b"', '"c"']), min_size=1, max_size=3, unique=True),
    "e": st.sampled_from(["Z", "Y"]),
    "b": st.sampled_from(["true", "false"]),
    "es": st.lists(st.sampled_from(["Z", "Y"]), min_size=1, max_size=2, unique=True),
    "[p.outer]": st.lists(st.integers(0, 3).map(str), min_size=1, max_size=3, unique=True),
}


def _few(values):
    return st.lists(values, min_size=1, max_size=2, unique_by=str)


# Values of V: maps of fields to words, lists of words, maps, and lists of maps.
VALUES = st.recursive(
    st.fixed_dictionaries({}, optional=SCALARS),
    lambda inner: st.fixed_dictionaries({}, optional={**SCALARS, "v": inner, "[p.V.inner]": inner, "vs": _few(inner)}),
    max_leaves=6,
)
HEAD = 'syntax = "proto2"; package q; import "declared.proto"; '


def _text(value):
    """Return the value in braces."""
    if isinstance(value, list):
        return f"[{', '.join(map(_text, value))}]"
    if isinstance(value, dict):
        return f"{{{' '.join(f'{key}: {_text(inner)}' for key, inner in value.items())}}}"
    return value


def _statements(draw, name, value):
    """Return the statements that set an option: dotted down to some level, in braces from there."""
    if not isinstance(value, dict) or not value or draw(st.booleans()):
        return [f"option {name} = {_text(item)};" for item in (value if isinstance(value, list) else [value])]
    parts = (_statements(draw, f"{name}.{key.replace('[', '(').replace(']', ')')}", value[key]) for key in value)
    return [statement for part in parts for statement in part]


@st.composite
def _options(draw):
    """Draw statements of options, a list for each option."""
    held = draw(VALUES)
    options = [_statements(draw, "(p.file)", draw(VALUES)), _statements(draw, "(.p.Holder.held)", held)]
    options.append([f"option (p.numbers) = {number};" for number in draw(st.lists(st.integers(0, 3), max_size=3))])
    options.append([f"option (p.Holder.many) = {_text(value)};" for value in draw(st.lists(VALUES, max_size=2))])
    options.append([f"option (p.Holder.one) = {draw(SCALARS['e'])};", 'option java_package = "a";'])
    return options


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return the folder that protoc reads and writes, with the file that declares the options."""
    path = tmp_path_factory.mktemp("protos")
    (path / "declared.proto").write_text(DECLARED)
    return path


def _meaning(folder, text):
    """Return the options of a file as protoc understands them, in bytes."""
    (folder / "a.proto").write_text(text)
    arguments = ["protoc", f"-I{folder}", f"-I{GOOGLE}", f"-o{folder}/out", "--include_imports", "a.proto"]
    assert 0 == protoc.main(arguments), text
    files = FileDescriptorSet.FromString((folder / "out").read_bytes()).file
    pool = DescriptorPool()
    for file in files:
        pool.AddSerializedFile(file.SerializeToString())
    options = GetMessageClass(pool.FindMessageTypeByName("google.protobuf.FileOptions"))
    return options.FromString(files[-1].options.SerializeToString()).SerializeToString(deterministic=True)


def _parsed(text):
    reference = ResolvedReference("declared.proto", DECLARED, "declared 1")
    return parse(text, strict=True, references=[reference])


STEADY = settings(
    max_examples=examples(40),
    phases=[Phase.generate],
    deadline=None,
    suppress_health_check=list(HealthCheck),
    derandomize=True,
)


@STEADY
@given(options=_options())
def test_the_normal_form_means_the_same(folder, options):
    """The statements and their normal form are the same options to protoc."""
    text = HEAD + "".join(statement for statements in options for statement in statements)

    assert _meaning(folder, text) == _meaning(folder, normalize(_parsed(text)))


@STEADY
@given(options=_options(), random=st.randoms(use_true_random=False))
def test_the_normal_form_is_a_fixed_point(options, random):
    """Normal and stored form normalize to one text, wherever each statement of an option is."""
    text = HEAD + "".join(statement for statements in options for statement in statements)
    schema = _parsed(text)
    normalized = normalize(schema)
    order = [number for number, statements in enumerate(options) for _ in statements]
    random.shuffle(order)
    left = [iter(statements) for statements in options]

    assert normalized == normalize(_parsed(normalized))
    assert normalized == normalize(_parsed(schema.canonical))
    assert normalized == normalize(_parsed(HEAD + "".join(next(left[number]) for number in order)))


def _dense(text):
    """Return the text without spaces: the blank line of a oneof without members is in the normal form only."""
    return "".join(text.split())


def test_the_normal_form_of_random_texts_is_a_fixed_point():
    """Every text that can be read has one normal form, and that can be read too."""
    maker = Maker(Random(2028))
    read = 0
    for text in (maker.text() for _ in range(examples(3000))):
        try:
            normalized = normalize(parse(text, strict=False))
        except SchemaParseError:
            continue
        read += 1
        assert _dense(normalized) == _dense(normalize(parse(normalized, strict=False)))

    assert examples(500) < read


def test_stored_and_normal_form_have_one_descriptor():
    """Merged or not, the options of a descriptor are read as the same metadata."""
    text = """syntax = "proto3"; package p; import "confluent/meta.proto"; message A {
    string a = 1 [(confluent.field_meta).doc = "d", (confluent.field_meta).tags = "T", deprecated = true];
    option (confluent.message_meta).params = {key: "k", value: "v"}; option (confluent.message_meta).doc = "m"; }"""
    schema = parse(text, strict=True)

    def descriptor(read):
        return with_metadata(FileDescriptorProto.FromString(base64.b64decode(serialized(read))))

    assert descriptor(schema) == descriptor(parse(normalize(schema), strict=True))


EXTENDING = """syntax = "proto2";
package p;
import "google/protobuf/descriptor.proto";
message A {
  optional B b = 2 [(C.size).max = 1, (C.size).min = 2, (.p.A.note) = "n"];
  extend B { optional A b = 3; optional B a = 2; }
  extend google.protobuf.FieldOptions { optional string note = 50001; }
  message B { extensions 2 to 9; }
}
message C {
  extend google.protobuf.FieldOptions { optional C size = 50000; }
  optional int32 min = 1;
  optional int32 max = 2;
}
extend A.B { optional A x = 5 [(A.note) = "x"]; optional C y = 4; }
"""
EXTENDED = """package p;

import "google/protobuf/descriptor.proto";

message A {
  optional .p.A.B b = 2 [
    (p.A.note) = "n",
    (p.C.size) = {
      max: 1,
      min: 2
    }
  ];

  extend .p.A.B {
    optional .p.A.B a = 2;
    optional .p.A b = 3;
  }
  extend .google.protobuf.FieldOptions {
    optional string note = 50001;
  }

  message B {
    extensions 2 to 9;
  }
}
message C {
  optional int32 min = 1;
  optional int32 max = 2;

  extend .google.protobuf.FieldOptions {
    optional .p.C size = 50000;
  }
}

extend .p.A.B {
  optional .p.C y = 4;
  optional .p.A x = 5 [(p.A.note) = "x"];
}
"""


def test_extensions_in_messages_and_extend_blocks():
    """Extensions in messages get their full names; blocks keep their order, their fields are sorted by number."""
    normalized = normalize(parse(EXTENDING, strict=True))

    assert EXTENDED == normalized == normalize(parse(normalized, strict=True))
