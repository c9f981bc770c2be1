"""The JVM decoders read hostile payloads of every format: each gives a whole row or a reason, and nothing else."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import pytest

from harness.avro_cases import Maker as AvroMaker
from harness.java_probes import RunJava
from harness.json_payloads import Maker as JsonMaker
from harness.payload_columns import kind_of, proto
from harness.protobuf_cases import Maker as ProtobufMaker
from harness.protobuf_cases import fill
from harness.registry import RegistryNode
from strata.compat.protobuf.formats import serialized
from strata.compat.protobuf.parser import parse
from strata.serdes.client import RegistryClient, Schema
from strata.serdes.framing import write_indexes
from strata.serdes.model import JSON, PROTOBUF
from strata.spark_udfs.arguments import Mode, settings_of
from strata.spark_udfs.decoding.jvm_function import function_name
from strata.spark_udfs.decoding.plan import ReaderSource, plan_decode
from strata.spark_udfs.decoding.type_limits import UnsupportedSchema

pytestmark = pytest.mark.spark

MOST_BYTES_OF_A_ROW = 32 * 1024 * 1024


def _task(reader: str | Schema, writer: Sequence[str], payloads: Sequence[bytes]) -> dict[str, Any]:
    plan = plan_decode(settings_of("http://nowhere"), ReaderSource(reader), mode=Mode.DEADLETTER)
    return {"plan": function_name(plan), "writer": list(writer), "payloads": [one.hex() for one in payloads]}


def _avro(chance: Random) -> dict[str, Any]:
    maker = AvroMaker(chance)
    while True:
        case = chance.choice(maker.family(4))
        try:
            return _task(case.reader, [case.writer], [case.payload])
        except UnsupportedSchema:
            continue


def _protobuf(chance: Random) -> dict[str, Any]:
    maker = ProtobufMaker(chance)
    reader = maker.kind()
    writer = maker.changed(reader).text()
    message = kind_of(proto(writer))
    payloads = [write_indexes((0,)) + fill(message(), chance).SerializeToString() for _ in range(10)]
    return _task(Schema(reader.text(), PROTOBUF), [serialized(parse(writer, strict=False))], payloads)


def _json(chance: Random) -> dict[str, Any]:
    maker = JsonMaker(chance)
    reader = maker.schema()
    payloads = [maker.text(maker.value(maker.changed(reader))) for _ in range(10)]
    return _task(Schema(json.dumps(reader), JSON), [], payloads)


@pytest.mark.parametrize(("schemas", "count"), [(20, 5_000), pytest.param(40, 1_000_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("make", [_avro, _protobuf, _json])
def test_hostile_payloads(
    run_java: RunJava, make: Callable[[Random], dict[str, Any]], schemas: int, count: int
) -> None:
    """No payload crashes a decoder, breaks a limit or is lost; rows have only bytes that can be read."""
    chance = Random(19)
    tasks = [make(chance) | {"count": count // schemas, "seed": seed} for seed in range(schemas)]

    answers = run_java("strata.spark.Hostile", tasks)

    assert [] == [(task["plan"], one) for task, one in zip(tasks, answers, strict=True) if "defect" in one]
    assert max(one["widest"] for one in answers) < MOST_BYTES_OF_A_ROW
    outcomes: Counter[str] = sum((Counter(one["outcomes"]) for one in answers), Counter())
    assert count == outcomes.total()
    assert count / 50 < outcomes["value"] < count * 0.9


WRITTEN = """{"type": "record", "name": "R", "fields": [
    {"name": "n", "type": "long"}, {"name": "t", "type": {"type": "array", "items": "string"}},
    {"name": "c", "type": {"type": "enum", "name": "C", "symbols": ["A", "B"]}}, {"name": "s", "type": "string"}]}"""
MESSAGE = 'syntax = "proto3"; message A { int32 a = 1; repeated string t = 2; }'
REPLAYED = [  # schema, candidate, and the payload of a good frame, in hexadecimal
    (Schema(WRITTEN), Schema(WRITTEN.replace('"long"', '"double"').replace(', "B"', "")),
     "828080808080802004026104c3a900000a68656c6c6f"),
    (Schema(MESSAGE, PROTOBUF), Schema(MESSAGE.replace("int32", "bool"), PROTOBUF), "0008051201611202c3a9"),
]  # fmt: skip


@pytest.mark.parametrize(("written", "candidate", "payload"), REPLAYED, ids=["avro", "protobuf"])
def test_hostile_frames_of_replay(run_java: RunJava, written: Schema, candidate: Schema, payload: str) -> None:
    """Frames are judged where Spark's row has them as they are when they are copied, and so are their places."""
    chance = Random(31)
    with RegistryNode("memory:") as node, RegistryClient(node.url) as client:
        schema_id = client.register("hostile", written).schema_id
        good = b"\0" + schema_id.to_bytes(4, "big") + bytes.fromhex(payload)
        frames = [good[:size] for size in range(len(good) + 1)]
        for _ in range(400):
            changed = bytearray(
                chance.choice((good, good, chance.choice(frames))) + chance.randbytes(chance.choice((0, 0, 1, 9)))
            )
            for _ in range(chance.choice((0, 1, 1, 2)) if changed else 0):
                changed[chance.randrange(len(changed))] = chance.choice(
                    (0, 1, 2, 5, 127, 128, 255, chance.randrange(256))
                )
            frames.append(bytes(changed))
        plan = plan_decode(settings_of(node.url), ReaderSource(candidate), mode=Mode.DEADLETTER)
        task = {"url": node.url, "plan": function_name(plan), "frames": [frame.hex() for frame in frames]}
        [outcomes] = run_java("strata.spark.JudgeProbe", [task])

    reasons = Counter((reason or "").partition(":")[0] for record in outcomes for reason, *_ in record)
    assert {"", "another value is read", "frame too short", "wrong magic byte 0x80"} < reasons.keys()
    assert reasons["another value is read"] > 20
