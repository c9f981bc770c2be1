"""The JVM side by itself, outside Spark: against the Python side, and against Avro's own Java library.

A small Java program reads schemas and payloads and writes values, so that thousands of cases take seconds.
"""

import json
import shutil
import struct
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from harness import spark_jar
from harness.avro_cases import Case, Maker
from serdes.client import Schema
from spark_udfs.catalog import function_name
from spark_udfs.executor import BatchDecoder
from spark_udfs.plan import Mode, Plan, ReaderSource, plan, settings_of
from spark_udfs.types import UnsupportedSchema

pytestmark = pytest.mark.spark

Answers = list[dict[str, Any]]
"""For each payload `{"value": …}` or `{"reason": …}`."""

_HEADER = b"\0\0\0\0\1"
_JAVA = Path(__file__).parent / "java"


class Task(NamedTuple):
    """Payloads of one writer schema."""

    writer: str
    reader: str
    payloads: Sequence[bytes]

    @property
    def plan(self) -> Plan:
        """As `decode` makes it."""
        return plan(settings_of("http://nowhere"), ReaderSource(self.reader), mode=Mode.DEADLETTER)


Probe = Callable[[Sequence[Task], bool], list[tuple[Answers, Answers]]]
"""Tasks, and whether to ask Avro too, give our answers and Avro's."""


@pytest.fixture(scope="session")
def probe(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Probe]:
    """Runs tasks in a JVM."""
    jar = spark_jar.build()
    classes = tmp_path_factory.mktemp("probe")
    spark_jar.compile_java(sorted(_JAVA.rglob("*.java")), classes, jar)
    class_path = f"{classes}:{jar}:{spark_jar.spark_class_path()}"
    options = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "--add-opens=java.base/java.nio=ALL-UNNAMED"]
    command = [shutil.which("java") or "java", *options, "-cp", class_path, "strata.spark.Probe"]

    def run(tasks: Sequence[Task], with_avro: bool) -> list[tuple[Answers, Answers]]:
        lines = "".join(json.dumps(_line(task, with_avro)) + "\n" for task in tasks)
        done = subprocess.run(command, input=lines.encode(), capture_output=True, timeout=250, check=False)
        assert done.returncode == 0, done.stderr.decode()[-3000:]
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        return [(answer["ours"], answer["avro"]) for answer in answers]

    yield run
    shutil.rmtree(classes)


def _line(task: Task, with_avro: bool) -> dict[str, Any]:
    line = {
        "plan": function_name(task.plan),
        "writer": task.writer,
        "payloads": [payload.hex() for payload in task.payloads],
    }
    return line | ({"reader": task.reader} if with_avro else {})


class _OneSchema:
    """A registry with one schema, whatever the id."""

    def __init__(self, text: str) -> None:
        self._schema = Schema(text)

    def get_schema(self, schema_id: int) -> Schema:
        return self._schema


def _in_python(task: Task) -> Answers:
    decoder = BatchDecoder(task.plan, _OneSchema(task.writer))  # type: ignore[arg-type]
    decoded = decoder.decode(pa.array([_HEADER + payload for payload in task.payloads], pa.binary()))
    errors = decoded.field("error").to_pylist()
    values = _plain(decoded.field("value"))
    return [{"reason": e["reason"]} if e else {"value": v} for e, v in zip(errors, values, strict=True)]


def _plain(array: pa.Array) -> list[Any]:
    """What `Plain.java` makes of values."""
    kind = array.type
    if pa.types.is_struct(kind):
        columns = [_plain(array.field(index)) for index in range(kind.num_fields)]
        rows: list[Any] = [list(row) for row in zip(*columns, strict=True)] if columns else [[] for _ in array]
    elif pa.types.is_list(kind):
        rows = [items[a:b] for items in [_plain(array.values)] for a, b in _extents(array)]
    elif pa.types.is_map(kind):
        pairs = list(zip(_plain(array.keys), _plain(array.items), strict=True))
        rows = [dict(pairs[a:b]) for a, b in _extents(array)]
    else:
        return [None if one is None else _scalar(one, kind) for one in _numbers(array).to_pylist()]
    return [row if valid else None for row, valid in zip(rows, array.is_valid().to_pylist(), strict=True)]


def _extents(array: pa.Array) -> list[tuple[int, int]]:
    offsets = array.offsets.to_pylist()
    return list(zip(offsets, offsets[1:], strict=False))


def _numbers(array: pa.Array) -> pa.Array:
    if pa.types.is_timestamp(array.type):
        return array.cast(pa.int64())
    return array.cast(pa.int32()) if pa.types.is_date(array.type) else array


def _scalar(one: Any, kind: pa.DataType) -> Any:
    if pa.types.is_floating(kind):
        size, number = ("fi", "qd")[kind == pa.float64()], one
        if kind == pa.float64():
            return struct.unpack("<q", struct.pack("<d", float("nan") if number != number else number))[0]  # noqa: PLR0124
        return struct.unpack("<i", struct.pack("<f", float("nan") if number != number else number))[0]  # noqa: PLR0124
    if pa.types.is_decimal(kind):
        return f"{one:f}"
    return one.hex() if isinstance(one, bytes) else one


def _cases(seed: int, count: int) -> list[Case]:
    """Cases whose reader schema Spark can express."""
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


COUNTS = [400, pytest.param(6000, marks=pytest.mark.slow)]


@pytest.mark.parametrize("count", COUNTS)
def test_both_paths_agree(probe: Probe, count: int) -> None:
    """A value of any writer schema is the same on both paths, or is refused for the same reason."""
    cases = _cases(1, count)

    answers = probe([_task(case) for case in cases], False)

    differing = [
        (case, ours, python)
        for case, (ours, _) in zip(cases, answers, strict=True)
        if ours != (python := _in_python(_task(case)))
    ]
    assert [] == differing
    outcomes = Counter(next(iter(ours[0])) for ours, _ in answers)
    assert outcomes["value"] > outcomes["reason"] > count / 50
