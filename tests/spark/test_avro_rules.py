"""The JVM and Python follow the same rules of reading Avro, outside Spark."""

import json
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import DataType

from harness.avro_rules import RESOLUTION, RULES, Rule
from harness.plain_values import plain
from strata.serdes.avro.schema import parse
from strata.serdes.client import Schema
from strata.spark_udfs.arguments import Mode, settings_of
from strata.spark_udfs.decoding.avro_decoder import AvroDecoder
from strata.spark_udfs.decoding.avro_types import type_of
from strata.spark_udfs.decoding.jvm_function import function_name
from strata.spark_udfs.decoding.plan import DecodePlan, ReaderSource, plan_decode

pytestmark = pytest.mark.spark

Answers: TypeAlias = list[tuple[str, list[dict[str, Any]]]]
"""The name of each rule, and `{"value": …}` or `{"reason": …}` for each of its payloads."""
Executor: TypeAlias = Callable[[], Answers]
RunJava: TypeAlias = Callable[[str, Sequence[Any]], list[Any]]

HEADER = b"\0\0\0\0\1"


def plan_of(rule: Rule) -> DecodePlan:
    """Return the plan as `decode` makes it."""
    source = ReaderSource(json.dumps(rule.reader))
    return plan_decode(settings_of("http://nowhere"), source, mode=Mode.DEADLETTER)


def read_type(rule: Rule) -> DataType:
    """Return the type of a rule's reader schema."""
    return type_of(parse(json.dumps(rule.reader)))


def expected(rule: Rule) -> list[dict[str, Any]]:
    """Return the answers of a rule."""
    values = plain(pa.array(rule.values, to_arrow_type(read_type(rule))))
    return [*rule.answers, *({"value": value} for value in values)]


def answers_of(decoded: pa.Array, count: int) -> list[dict[str, Any]]:
    """Return what a column of values and errors says of the first payloads."""
    errors, values = decoded.field("error").to_pylist(), plain(decoded.field("value"))
    pairs = list(zip(errors, values, strict=True))[:count]
    return [{"reason": error["reason"]} if error else {"value": value} for error, value in pairs]


# Executors


@pytest.fixture
def program(run_java: RunJava) -> Executor:
    """Return the program of the JVM, outside Spark."""

    def run() -> Answers:
        answers = run_java("strata.spark.Probe", [_line(rule) for rule in RULES])
        return [(rule.name, answer["ours"]) for rule, answer in zip(RULES, answers, strict=True)]

    return run


def _line(rule: Rule, **more: Any) -> dict[str, Any]:
    payloads = [payload.hex() for payload in rule.payloads]
    return {"plan": function_name(plan_of(rule)), "writer": json.dumps(rule.writer), "payloads": payloads, **more}


class _OneSchema:
    """A registry with one schema under every id."""

    def __init__(self, text: str) -> None:
        self._schema = Schema(text)

    def get_schema(self, schema_id: int, *, subject: str | None = None) -> Schema:
        return self._schema


@pytest.fixture
def worker() -> Executor:
    """Return the decoder of Python workers, outside Spark."""

    def run() -> Answers:
        answers: Answers = []
        for rule in RULES:
            decoder = AvroDecoder(plan_of(rule), _OneSchema(json.dumps(rule.writer)))  # type: ignore[arg-type]
            decoded = decoder.decode(pa.array([HEADER + payload for payload in rule.payloads], pa.binary()))
            assert to_arrow_type(read_type(rule)) == decoded.field("value").type, rule.name
            answers.append((rule.name, answers_of(decoded, len(rule.payloads))))
        return answers

    return run


EXECUTORS = ["program", "worker"]


@pytest.mark.parametrize("executor", EXECUTORS)
def test_rules(request: pytest.FixtureRequest, executor: str) -> None:
    """Each rule has its answer, and each type its name."""
    run: Executor = request.getfixturevalue(executor)

    assert [(rule.name, expected(rule)) for rule in RULES] == run()


def test_avro_follows_the_rules_of_resolution(run_java: RunJava) -> None:
    """Avro's own library gives the same values or refuses too, except that it accepts a decimal that is too wide."""
    answers = run_java("strata.spark.Probe", [_line(rule, reader=json.dumps(rule.reader)) for rule in RESOLUTION])

    differing = [
        rule.name
        for rule, answer in zip(RESOLUTION, answers, strict=True)
        if rule.answers[0].get("value", "refused") != answer["avro"][0].get("value", "refused")
    ]
    assert ["decimal too wide"] == differing


def test_types_without_payloads() -> None:
    """Each type has its name, also where the executors have nothing to read."""
    assert [rule.type for rule in RULES if rule.type] == [read_type(rule).simpleString() for rule in RULES if rule.type]
