"""A schema from a descriptor has the same custom options as one from its text."""

import base64
from pathlib import Path

import grpc_tools
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from grpc_tools import protoc
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from harness.examples import examples
from strata.compat.protobuf.normalizer import normalize
from strata.compat.protobuf.parser import parse
from strata.compat.schema import ResolvedReference

GOOGLE = Path(grpc_tools.__file__).parent / "_proto"
DECLARED = """
package p;
import "google/protobuf/descriptor.proto";
message V {
  optional int32 i = 1; repeated string s = 2; optional V v = 3; optional E e = 4; optional bytes b = 5;
  optional float f = 6; optional double d = 7; optional bool t = 8; repeated V vs = 9; map<string, Item> m = 10;
  optional uint64 u = 11; repeated E es = 12;
}
message Item { optional int64 n = 1; }
enum E { Z = 0; Y = 1; }
extend google.protobuf.FileOptions { V file = 50001; }
extend google.protobuf.MessageOptions { V message = 50001; repeated int32 numbers = 50002; }
extend google.protobuf.FieldOptions { V field = 50001; repeated E enums = 50002; bytes raw = 50003; }
extend google.protobuf.EnumOptions { V enum = 50001; }
extend google.protobuf.EnumValueOptions { double constant = 50001; }
extend google.protobuf.OneofOptions { string oneof = 50001; }
extend google.protobuf.ServiceOptions { bool service = 50001; }
extend google.protobuf.MethodOptions { V method = 50001; }
"""
USES = """
option (p.file) = FILE;
message M {
  option (p.message) = MESSAGE; option (p.numbers) = 7; option (p.numbers) = -1;
  int32 x = 1 [deprecated = true, (p.field) = FIELD, (p.enums) = Y, (p.enums) = Z, (p.raw) = "\\001a"];
  oneof o { option (p.oneof) = "of M"; string y = 2; }
}
enum N { option (p.enum) = ENUM; A = 0 [(p.constant) = 0.25]; }
service S { option (p.service) = true; rpc R(M) returns (M) { option (p.method) = METHOD; } }
"""


def _texts(shortest=0):
    letters = st.characters(codec="ascii", exclude_categories=["C"])
    return st.text(letters, min_size=shortest, max_size=5).map(_quoted)


def _quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("'", "\\'") + '"'


def _without_plus(number):
    return str(number).replace("e+", "e")  # The reference does not read a plus.


def _entry(pair):
    return f"{{key: {pair[0]}, value: {{n: {pair[1]}}}}}"


def _listed(values):
    return st.lists(values, min_size=1, max_size=3).map(lambda items: f"[{', '.join(items)}]")


# A `float` keeps six digits.
SINGLES = st.tuples(st.integers(-999_999, 999_999), st.integers(-30, 30)).map(lambda pair: f"{pair[0]}e{pair[1]}")
ENUMS = st.sampled_from(["Z", "Y"])
SCALARS = {
    "i": st.integers(-(2**31), 2**31 - 1).map(str),
    "s": _listed(_texts()),
    "e": ENUMS,
    "b": _texts(),
    "f": st.sampled_from(["0.1", "-2.5", "16777216", "3.4e38", "1e-3"]) | SINGLES,
    "d": st.floats(allow_nan=False, allow_infinity=False, min_value=-1e300, max_value=1e300).map(_without_plus),
    "t": st.sampled_from(["true", "false"]),
    "m": _listed(st.tuples(_texts(1), st.integers(-9, 9)).map(_entry)),
    "u": st.integers(0, 2**64 - 1).map(str),
    "es": _listed(ENUMS),
}


def _written(fields):
    return "{" + ", ".join(f"{name}: {value}" for name, value in fields.items()) + "}"


VALUES = st.recursive(
    st.fixed_dictionaries({}, optional=SCALARS).map(_written),
    lambda inner: st.fixed_dictionaries({}, optional={**SCALARS, "v": inner, "vs": _listed(inner)}).map(_written),
    max_leaves=4,
)
PLACES = ["FILE", "MESSAGE", "FIELD", "ENUM", "METHOD"]


def _descriptor(folder, text):
    """Return protoc's descriptor of `a.proto` in base64, without the JSON names that it adds."""
    (folder / "a.proto").write_text(text)
    assert 0 == protoc.main(["protoc", f"-I{folder}", f"-I{GOOGLE}", f"-o{folder}/out", "a.proto"])
    (file,) = FileDescriptorSet.FromString((folder / "out").read_bytes()).file
    for message in file.message_type:
        _clear_json_names(message)
    for field in file.extension:
        field.ClearField("json_name")
    return base64.b64encode(file.SerializeToString()).decode()


def _clear_json_names(message):
    for field in message.field:
        field.ClearField("json_name")
    for nested in message.nested_type:
        _clear_json_names(nested)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return the folder that protoc reads and writes."""
    return tmp_path_factory.mktemp("protos")


@settings(max_examples=examples(25), phases=[Phase.generate], deadline=None, suppress_health_check=list(HealthCheck))
@given(values=st.fixed_dictionaries(dict.fromkeys(PLACES, VALUES)))
def test_a_descriptor_has_the_options_of_its_text(folder, values):
    """Text and descriptor normalize to the same text, since normalizing spells names and numbers in one way."""
    text = 'syntax = "proto3";' + DECLARED + USES
    for place, value in values.items():
        text = text.replace(f"= {place};", f"= {value};").replace(f"= {place},", f"= {value},")

    expected = normalize(parse(text, strict=True))

    assert expected == normalize(parse(_descriptor(folder, text), strict=True))


def test_options_declared_in_a_reference(tmp_path):
    """Declarations of an import come from the reference of its name; without it, its options are ignored."""
    declared = 'syntax = "proto3";' + DECLARED
    (tmp_path / "declared.proto").write_text(declared)
    text = 'syntax = "proto3"; package q; import "declared.proto"; message M { option (p.numbers) = 3; p.V v = 1; }'
    descriptor = _descriptor(tmp_path, text)
    reference = ResolvedReference("declared.proto", declared, "declared 1")

    assert "option (p.numbers) = 3;" in parse(descriptor, strict=True, references=[reference]).canonical
    assert "option" not in parse(descriptor, strict=False).canonical


DAMAGED = [
    pytest.param(lambda file: file.extension.pop(), id="not declared"),
    pytest.param(lambda file: file.dependency.append("nowhere.proto"), id="an import that leads nowhere"),
    pytest.param(lambda file: file.message_type[0].field.add(name="f", type=5), id="a field without a number"),
]


@pytest.mark.parametrize("damage", DAMAGED)
def test_options_that_nobody_declares_are_passed_over(tmp_path, damage):
    """A schema with undeclared options can still be read."""
    text = (
        'syntax = "proto3"; package p; import "google/protobuf/descriptor.proto"; message M { option (a) = 3; } '
        "extend google.protobuf.MessageOptions { int32 a = 50001; }"
    )
    file = FileDescriptorSet().file.add()
    file.ParseFromString(base64.b64decode(_descriptor(tmp_path, text)))
    damage(file)

    assert "option" not in parse(base64.b64encode(file.SerializeToString()).decode(), strict=False).canonical
