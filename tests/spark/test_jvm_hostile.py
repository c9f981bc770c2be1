"""The JVM decoders read hostile payloads of every format: each gives a whole row or a reason, and nothing else."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import pytest

from harness.avro_cases import Maker as AvroMaker
from harness.json_payloads import Maker as JsonMaker
from harness.payload_columns import kind_of, proto
from harness.protobuf_cases import Maker as ProtobufMaker
from harness.protobuf_cases import fill
from strata.compat.protobuf.formats import serialized
from strata.compat.protobuf.parser import parse
from strata.serdes.client import Schema
from strata.serdes.framing import write_indexes
from strata.serdes.model import JSON, PROTOBUF
from strata.spark_udfs.arguments import Mode, settings_of
from strata.spark_udfs.decoding.jvm_function import function_name
from strata.spark_udfs.decoding.plan import ReaderSource, plan_decode
from strata.spark_udfs.decoding.type_limits import UnsupportedSchema

pytestmark = pytest.mark.spark

RunJava = Callable[[str, Sequence[Any]], list[Any]]
SCHEMAS = 40
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


@pytest.mark.parametrize("count", [20_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("make", [_avro, _protobuf, _json])
def test_hostile_payloads(run_java: RunJava, make: Callable[[Random], dict[str, Any]], count: int) -> None:
    """No payload crashes a decoder, breaks a limit or is lost; rows have only bytes that can be read."""
    chance = Random(19)
    tasks = [make(chance) | {"count": count // SCHEMAS, "seed": seed} for seed in range(SCHEMAS)]

    answers = run_java("strata.spark.Hostile", tasks)

    assert [] == [(task["plan"], one) for task, one in zip(tasks, answers, strict=True) if "defect" in one]
    assert max(one["widest"] for one in answers) < MOST_BYTES_OF_A_ROW
    outcomes: Counter[str] = sum((Counter(one["outcomes"]) for one in answers), Counter())
    assert count == outcomes.total()
    assert count / 50 < outcomes["value"] < count * 0.9
