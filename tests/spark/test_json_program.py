"""The JVM's JSON program agrees outside Spark with the Python side and with Jackson, on random and on damaged payloads.

A small Java program reads payloads and writes values, so that thousands of cases take seconds.
"""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from harness.java_probes import RunJava
from harness.json_payloads import Maker, damaged
from harness.plain_values import plain
from strata.serdes.client import Schema
from strata.spark_udfs.arguments import Mode, settings_of
from strata.spark_udfs.decoding.jvm_function import function_name
from strata.spark_udfs.decoding.payload_decoder import PayloadDecoder
from strata.spark_udfs.decoding.payload_formats import reader_of
from strata.spark_udfs.decoding.plan import DecodePlan, ReaderSource, plan_decode

pytestmark = pytest.mark.spark

Answers = list[dict[str, Any]]
"""`{"value": …}` or `{"reason": …}` for each payload."""

_HEADER = b"\0\0\0\0\1"


class Task(NamedTuple):
    """Payloads to be read with a reader schema."""

    reader: Any
    payloads: Sequence[bytes]

    @property
    def plan(self) -> DecodePlan:
        """Return the plan as `decode` makes it."""
        source = ReaderSource(json.dumps(self.reader), format="JSON")
        return plan_decode(settings_of("http://nowhere"), source, mode=Mode.DEADLETTER)


Told = list[tuple[Task, bytes, dict[str, Any], dict[str, Any], str]]
"""A task, one of its payloads, our answer in the JVM, Python's, and Jackson's opinion on ours."""


class _AnySchema:
    """A registry with a JSON Schema under every id."""

    def get_schema(self, schema_id: int, *, subject: str | None = None) -> Schema:
        return Schema("true", "JSON")


def _in_python(task: Task) -> Answers:
    payload = task.plan.payload
    assert payload is not None
    decoder = PayloadDecoder(task.plan, reader_of(payload), _AnySchema())  # type: ignore[arg-type]
    decoded = decoder.decode(pa.array([_HEADER + one for one in task.payloads], pa.binary()))
    errors = decoded.field("error").to_pylist()
    values = plain(decoded.field("value"))
    return [{"reason": e["reason"]} if e else {"value": v} for e, v in zip(errors, values, strict=True)]


def _tell(run_java: RunJava, tasks: Sequence[Task]) -> Told:
    lines = [{"plan": function_name(task.plan), "payloads": [one.hex() for one in task.payloads]} for task in tasks]
    answers = run_java("strata.spark.JsonProbe", lines)
    return [
        (task, payload, ours, python, jackson)
        for task, answer in zip(tasks, answers, strict=True)
        for payload, ours, python, jackson in zip(
            task.payloads, answer["ours"], _in_python(task), answer["jackson"], strict=True
        )
    ]


def _tasks(seed: int, readers: int, writers: int, change: Callable[[bytes, Random], bytes] | None = None) -> list[Task]:
    """Return random reader schemas, each with payloads of several versions of it."""
    chance = Random(seed)
    maker = Maker(chance)
    tasks = []
    for _ in range(readers):
        reader = maker.schema()
        versions = [reader, *(maker.changed(reader) for _ in range(writers - 1))]
        payloads = [maker.text(maker.value(one)) for one in versions]
        tasks.append(Task(reader, payloads if change is None else [change(one, chance) for one in payloads]))
    return tasks


@pytest.mark.parametrize("readers", [100, pytest.param(2000, marks=pytest.mark.slow)], ids=["500", "10000"])
def test_random_values(run_java: RunJava, readers: int) -> None:
    """A value of any writer schema is the same on both paths and for Jackson, or is refused for the same reason."""
    told = _tell(run_java, _tasks(2026, readers, 5))

    assert [] == [one for one in told if one[2] != one[3]][:3]
    assert [] == [one for one in told if "value" in one[2] and one[4] != "same"][:3]
    assert 5 * readers == len(told)
    outcomes = Counter(next(iter(ours)) for _, _, ours, _, _ in told)
    assert outcomes["value"] > outcomes["reason"] > len(told) / 50


@pytest.mark.parametrize(
    ("readers", "each"), [(60, 20), pytest.param(2000, 100, marks=pytest.mark.slow)], ids=["1200", "200000"]
)
def test_damaged_payloads(run_java: RunJava, readers: int, each: int) -> None:
    """Any bytes give the same value or the same reason on both paths; Jackson never reads another value than ours."""
    told = _tell(run_java, _tasks(7, readers, each, damaged))

    assert [] == [one for one in told if one[2] != one[3]][:3]
    assert [] == [one for one in told if "value" in one[2] and one[4] != "same"][:3]
    reasons = Counter(ours.get("reason", "value").partition(":")[0] for _, _, ours, _, _ in told)
    assert {"malformed", "out of range", "invalid value", "value"} == set(reasons)
    assert min(reasons.values()) > len(told) / 500
