"""The JVM program agrees outside Spark with the Python side and with Avro's own Java library.

A small Java program reads schemas and payloads and writes values, so that thousands of cases take seconds.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from harness.avro_cases import Case, Maker
from harness.java_probes import RunJava
from harness.plain_values import plain
from strata.serdes.client import Schema
from strata.spark_udfs.arguments import Mode, settings_of
from strata.spark_udfs.decoding.avro_decoder import AvroDecoder
from strata.spark_udfs.decoding.jvm_function import function_name
from strata.spark_udfs.decoding.plan import DecodePlan, ReaderSource, plan_decode
from strata.spark_udfs.decoding.type_limits import UnsupportedSchema

pytestmark = pytest.mark.spark

Answers = list[dict[str, Any]]
"""`{"value": …}` or `{"reason": …}` for each payload."""

_HEADER = b"\0\0\0\0\1"


class Task(NamedTuple):
    """Payloads of one writer schema, to be read with a reader schema."""

    writer: str
    reader: str
    payloads: Sequence[bytes]

    @property
    def plan(self) -> DecodePlan:
        """Return the plan as `decode` makes it."""
        return plan_decode(settings_of("http://nowhere"), ReaderSource(self.reader), mode=Mode.DEADLETTER)


Probe = Callable[[Sequence[Task], bool], list[tuple[Answers, Answers]]]
"""Takes tasks, and whether to run Avro too; returns our answers and Avro's."""


@pytest.fixture(scope="module")
def probe(run_java: RunJava) -> Probe:
    """Return a function that runs tasks in a JVM."""

    def run(tasks: Sequence[Task], with_avro: bool) -> list[tuple[Answers, Answers]]:
        answers = run_java("strata.spark.Probe", [_line(task, with_avro) for task in tasks])
        return [(answer["ours"], answer["avro"]) for answer in answers]

    return run


def _line(task: Task, with_avro: bool) -> dict[str, Any]:
    line = {
        "plan": function_name(task.plan),
        "writer": task.writer,
        "payloads": [payload.hex() for payload in task.payloads],
    }
    return line | ({"reader": task.reader} if with_avro else {})


class _OneSchema:
    """A registry with one schema under every id."""

    def __init__(self, text: str) -> None:
        self._schema = Schema(text)

    def get_schema(self, schema_id: int, *, subject: str | None = None) -> Schema:
        return self._schema


def _in_python(task: Task) -> Answers:
    decoder = AvroDecoder(task.plan, _OneSchema(task.writer))  # type: ignore[arg-type]
    decoded = decoder.decode(pa.array([_HEADER + payload for payload in task.payloads], pa.binary()))
    errors = decoded.field("error").to_pylist()
    values = plain(decoded.field("value"))
    return [{"reason": e["reason"]} if e else {"value": v} for e, v in zip(errors, values, strict=True)]


def _cases(seed: int, count: int) -> list[Case]:
    """Return cases whose reader schema Spark can express."""
    maker = Maker(Random(seed))
    cases: list[Case] = []
    while len(cases) < count:
        case = maker.case()
        try:
            function_name(_task(case).plan)
        except UnsupportedSchema:
            continue
        cases.append(case)
    return cases


def _task(case: Case) -> Task:
    return Task(case.writer, case.reader, [case.payload])


Answered = list[tuple[Case, dict[str, Any], dict[str, Any]]]
"""Cases, our answers and Avro's."""


@pytest.fixture(scope="module", params=[80, pytest.param(6000, marks=pytest.mark.slow)])
def answered(request: pytest.FixtureRequest, probe: Probe) -> Answered:
    """Return random cases, read by our program and by Avro."""
    cases = _cases(2026, request.param)
    answers = probe([_task(case) for case in cases], True)
    return [(case, ours[0], avro[0]) for case, (ours, avro) in zip(cases, answers, strict=True)]


def test_both_paths_agree(answered: Answered) -> None:
    """A value of any writer schema is the same on both paths, or is refused for the same reason."""
    differing = [(case, ours, python) for case, ours, _ in answered if ours != (python := _in_python(_task(case))[0])]

    assert [] == differing
    outcomes = Counter(next(iter(ours)) for _, ours, _ in answered)
    assert outcomes["value"] > outcomes["reason"] > len(answered) / 50


# Known differences from Avro's own reader: a condition on case, ours, Avro's.
DIFFERENCES: list[tuple[str, Callable[[Case, Any, Any], bool]]] = [
    ("Avro takes the number of another scale as it stands", lambda case, *_: "scale of a decimal" in case.changes),
    ("Avro takes the number of another unit as it stands", lambda case, *_: "unit of time" in case.changes),
    ("registry clients write top-level bytes bare", lambda case, *_: "a top-level bytes" in case.changes),
    (
        "Avro puts question marks for what is not UTF-8",
        lambda _, ours, avro: ours.get("reason") == "invalid utf-8" and "value" in avro,
    ),
    ("Avro tells names in unions apart by their namespace", lambda case, *_: "namespace" in case.changes),
    (
        "Avro cannot write an array as the default of a union",
        lambda _, __, avro: avro.get("reason", "").startswith("AvroRuntimeException: Not an array"),
    ),
    (
        "Avro holds the writer's own default against renamed fields",
        lambda _, __, avro: avro.get("reason", "").startswith("AvroTypeException: Invalid default"),
    ),
    (
        "Avro looks for a field's alias in a record of the same name only",
        lambda case, *_: case.changes >= {"name", "alias of a field"},
    ),
]


def test_avro_agrees(answered: Answered) -> None:
    """Avro's own library reads the same value, or refuses too, except for known differences."""
    differing = [one for one in answered if _outcome(one[1]) != _outcome(one[2])]

    explained = [[name for name, applies in DIFFERENCES if applies(*one)] for one in differing]

    assert [] == [one for one, names in zip(differing, explained, strict=True) if not names]
    if len(answered) > 1000:
        assert {name for name, _ in DIFFERENCES} == {name for names in explained for name in names}


def _outcome(answer: dict[str, Any]) -> Any:
    return answer.get("value", "refused")


# Known differences between Python and the JVM on damage: a condition on task, ours, Python's.
DAMAGED_DIFFERENCES: list[tuple[str, Callable[[Task, Any, Any], bool]]] = [
    (
        "of two faults Python finds first what does not resolve, then what is missing or out of range",
        lambda _, ours, python: (
            ours.get("reason") in ("truncated", "out of range") and python.get("reason", "").startswith("resolution")
        ),
    ),
    (
        "of a key that comes twice in a map Python looks at the last value only",
        lambda task, ours, python: (
            ours.get("reason") == "out of range" and "value" in python and '"type": "map"' in task.writer
        ),
    ),
]


@pytest.mark.parametrize(
    ("count", "each"), [(30, 20), pytest.param(4000, 50, marks=pytest.mark.slow)], ids=["600", "200000"]
)
def test_damaged_payloads(probe: Probe, count: int, each: int) -> None:
    """Any bytes give the same value or the same reason on both paths."""
    chance = Random(7)
    cases = _cases(11, count)
    tasks = [Task(case.writer, case.reader, [_damaged(case.payload, chance) for _ in range(each)]) for case in cases]

    answers = probe(tasks, False)

    told = [
        (task, payload, ours, python)
        for task, (given, _) in zip(tasks, answers, strict=True)
        for payload, ours, python in zip(task.payloads, given, _in_python(task), strict=True)
    ]
    differing = [one for one in told if one[2] != one[3]]
    assert [] == [
        (task, payload, ours, python)
        for task, payload, ours, python in differing
        if not any(applies(task, ours, python) for _, applies in DAMAGED_DIFFERENCES)
    ]
    assert len(differing) < len(told) / 200
    assert len(told) / 20 < sum("reason" in ours for *_, ours, _ in told) < len(told)


def _damaged(good: bytes, chance: Random) -> bytes:
    """Return the payload with some bytes changed, perhaps cut, perhaps longer."""
    changed = bytearray(good)
    for _ in range(chance.randrange(4) if good else 0):
        changed[chance.randrange(len(changed))] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
    end = chance.choice((None, None, None, chance.randint(0, len(changed))))
    return bytes(changed[:end]) + chance.choice((b"", b"", b"", b"\0", b"\xff" * 10))
