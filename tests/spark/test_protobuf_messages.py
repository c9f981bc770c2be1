"""The JVM plans the encode of a message alike from the descriptors of the driver and from those of the registry."""

import json
from base64 import b64encode
from random import Random
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto

from harness.java_probes import RunJava
from harness.payload_columns import proto
from harness.protobuf_cases import Maker
from strata.compat.protobuf.formats import serialized
from strata.compat.protobuf.parser import parse
from strata.compat.schema import ResolvedReference
from strata.serdes.client import Schema
from strata.serdes.framing import SchemaId
from strata.serdes.protobuf.files import indexes_of, link, message_named
from strata.spark_udfs.arguments import Mode, settings_of
from strata.spark_udfs.decoding.payload_reader import OnlyInPython
from strata.spark_udfs.encoding.plan import EncodePlan, Target
from strata.spark_udfs.encoding.protobuf_jvm import inputs_of

pytestmark = pytest.mark.spark

MONEY = (
    'syntax = "proto2"; package shop; enum Currency { EUR = 1; DKK = -2; } '
    "message Money { optional int64 units = 1 [default = 3]; optional Currency currency = 2; "
    "repeated int32 packed = 4 [packed = true]; repeated Currency others = 5; "
    "oneof one { string note = 6; bytes proof = 7; } }"
)
ORDER = (
    'syntax = "proto3"; package shop; import "shop/money.proto"; import "google/type/money.proto"; '
    'import "google/protobuf/struct.proto"; import "google/protobuf/timestamp.proto"; '
    'import "google/protobuf/wrappers.proto"; import "google/type/dayofweek.proto"; '
    "message Head { Order order = 1; } message Order { message Line { Line next = 2; optional sint32 count = 1; "
    "enum State { NEW = 0; OLD = 0; option allow_alias = true; } repeated State states = 3; } "
    "map<string, Line> lines = 9; map<int32, Line.State> states = 8; Money price = 1; google.type.Money other = 2; "
    "google.protobuf.Struct more = 3; google.protobuf.Timestamp at = 4; google.protobuf.StringValue note = 5; "
    "repeated fixed32 plain = 6 [packed = false]; google.type.DayOfWeek day = 7; "
    "oneof choice { int32 a = 20; Line b = 19; } oneof single { int32 c = 18; } }"
)
# text, references by import path, full name of the message
CASES: list[tuple[str, dict[str, str], str]] = [
    *((Maker(Random(seed)).kind().text(), {}, "shop.M") for seed in range(200)),
    *((ORDER, {"shop/money.proto": MONEY}, f"shop.{name}") for name in ("Head", "Order", "Order.Line")),
    (MONEY, {}, "shop.Money"),
    ('syntax = "proto2"; message M { required int32 a = 1; }', {}, "M"),
    ('syntax = "proto2"; message M { optional group G = 1 { optional int32 a = 1; } }', {}, "M"),
    (
        'syntax = "proto3"; import "e.proto"; message M { R r = 1; }',
        {"e.proto": 'syntax = "proto2"; message R { required int32 a = 1; }'},
        "M",
    ),
]


def _by_python(text: str, references: dict[str, str], name: str) -> dict[str, Any]:
    named = {path: proto(one) for path, one in references.items()}
    message: Any = message_named(link(proto(text), named), name)
    identity = SchemaId(1, None, indexes_of(message))
    target = Target(Schema(text, "PROTOBUF"), tuple(named.items()), identity)
    plan = EncodePlan(settings_of("http://nowhere"), target, None, b"", Mode.FAILFAST)
    answer: dict[str, Any] = {"indexes": list(identity.message_indexes)}
    try:
        return answer | {"inputs": inputs_of(plan)}
    except OnlyInPython as part:
        return answer | {"refused": f"SQL does not encode {part}; make the column by strata.spark_udfs.encode"}


def _descriptors(text: str, references: dict[str, str]) -> list[str]:
    files = [ResolvedReference(path, one) for path, one in references.items()]
    parsed = [parse(one, strict=False, references=files if one == text else []) for one in (*references.values(), text)]
    return [serialized(one) for one in parsed]


def _lowered(answer: Any) -> Any:
    """Return an answer in small letters: only protoc capitalizes the names of map entries, which no frame holds."""
    return json.loads(json.dumps(answer).lower())


def test_messages(run_java: RunJava) -> None:
    """Presence, packing, oneofs, enums and labels are the same, and so are the indexes and the parts that are refused.

    An edition is refused too, which other registries may have.
    """
    lines = [{"files": _descriptors(text, references), "name": name} for text, references, name in CASES]
    edition = FileDescriptorProto(syntax="editions", message_type=[DescriptorProto(name="M")]).SerializeToString()
    ours = [_by_python(*case) for case in CASES]
    sent = [{"files": one["inputs"]["files"], "name": one["inputs"]["message"]} for one in ours if "inputs" in one]

    every = run_java(
        "strata.spark.MessageProbe", [*lines, *sent, {"files": [b64encode(edition).decode()], "name": "M"}]
    )
    answers, by_driver, last = every[: len(lines)], iter(every[len(lines) : -1]), every[-1]

    assert "SQL does not encode an edition of Protobuf (M); make the column by" in last["refused"]
    for one, answer in zip(ours, answers, strict=True):
        assert one["indexes"] == answer["indexes"]
        if "refused" in one:
            assert _lowered(one["refused"]) == _lowered(answer["refused"])
        else:
            assert _lowered(answer["written"]) == _lowered(next(by_driver)["written"])
    assert 3 == sum("refused" in one for one in answers)
