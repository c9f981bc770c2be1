"""The JVM program agrees outside Spark with the Python side and with Avro's own Java library.

A small Java program reads schemas and payloads and writes values, so that thousands of cases take seconds.
"""

import json
import struct
from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from harness.avro_cases import Case, Maker
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
RunJava = Callable[[str, Sequence[Any]], list[Any]]


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


@pytest.fixture(scope="module", params=[150, pytest.param(6000, marks=pytest.mark.slow)])
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


def test_one_field_feeds_two(probe: Probe) -> None:
    """Fields that share an alias are read from the same bytes, null or not."""
    others = [{"name": f"z{n}", "type": "long"} for n in range(9)]
    optional, aliased = ["null", "long"], {"type": ["null", "long"], "aliases": ["a"]}
    writer = {"type": "record", "name": "R", "fields": [others[0], {"name": "a", "type": optional}, *others[1:]]}
    fields = [others[0], {"name": "x", **aliased}, {"name": "y", **aliased}, *others[1:]]
    # Enough bytes follow for the fast path.
    payloads = [b"\x0a\x00" + b"\x0a" * 8, b"\x0a\x02\x06" + b"\x0a" * 8]

    [(answers, _)] = probe([Task(json.dumps(writer), json.dumps({**writer, "fields": fields}), payloads)], False)

    assert [{"value": [5, None, None, *[5] * 8]}, {"value": [5, 3, 3, *[5] * 8]}] == answers


def test_a_value_too_large_where_it_is_checked(probe: Probe) -> None:
    """A value that exceeds the limit on its size is refused too where it would only be checked; the probe compares."""
    large = {"name": "large", "type": "string", "default": "x" * 200_000}
    item = {"type": "record", "name": "Item", "fields": [{"name": "n", "type": "int"}]}
    fields = [{"name": "items", "type": {"type": "array", "items": item}}, {"name": "after", "type": "int"}]
    writer = {"type": "record", "name": "R", "fields": fields}
    reader = json.loads(json.dumps(writer))
    reader["fields"][0]["type"]["items"]["fields"].append(large)
    few, many = b"\x04" + b"\2" * 2 + b"\0\2", b"\x80\x19" + b"\2" * 1600 + b"\0\2"

    [(answers, _)] = probe([Task(json.dumps(writer), json.dumps(reader), [few, many])], False)

    assert 1 == answers[0]["value"][1]
    assert {"reason": "limit"} == answers[1]


def _r(*fields: dict[str, Any], name: str = "R", **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields), **more}


def _f(name: str, kind: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **more}


def _bits(number: float) -> int:
    """Return a double as `Plain.java` prints it."""
    return int(struct.unpack("<q", struct.pack("<d", number))[0])


A, B = _f("a", "int"), _f("b", "int")
ENUM = {"type": "enum", "name": "E", "symbols": ["X", "Y"]}
SHORT_ENUM = {**ENUM, "symbols": ["X"]}
INTS = {"type": "array", "items": "int"}
INT_MAP = {"type": "map", "values": "int"}
MONEY = {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 2}
WIDE = {"type": "fixed", "name": "W", "size": 16, "logicalType": "decimal", "precision": 38, "scale": 0}
MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
DEFAULTS = _r(
    _f("i", "int", default=1),
    _f("d", "double", default=0.5),
    _f("t", "boolean", default=True),
    _f("s", "string", default="é"),
    _f("y", "bytes", default="\u00ff"),
    _f("e", ENUM, default="Y"),
    _f("x", {"type": "fixed", "name": "X", "size": 1}, default="\u0001"),
    _f("n", ["null", "int"], default=None),
    _f("u", ["string", "int"], default="first"),
    _f("l", INTS, default=[1, 2]),
    _f("m", INT_MAP, default={"k": 3}),
    _f("r", _r(_f("in", _r(_f("z", "int"), name="Z")), name="In"), default={"in": {"z": 4}}),
    _f("c", MONEY, default="\u0064"),
    _f("at", MILLIS, default=5),
)
DEFAULTED = [1, _bits(0.5), True, "é", "ff", "Y", "01", None, ["first", None], [1, 2], {"k": 3}, [[4]], "1.00", 5000]
MISSING = "resolution: the reader's field b of R is not in the writer schema and has no default"
NO_SYMBOL = "resolution: the reader's enum has no symbol Y and no default"
OTHER = "resolution: the reader schema has int where the writer schema has"
# writer, reader, payload, value or, as a text, the reason
RESOLVED: list[Any] = [
    pytest.param(_r(A, B), _r(B, A), b"\2\4", [2, 1], id="fields that changed places"),
    pytest.param(_r(A), _r(_f("b", "int", aliases=["a"])), b"\2", [1], id="alias of a field"),
    pytest.param(_r(A), _r(A, name="Other", aliases=["R"]), b"\2", [1], id="alias of a record"),
    pytest.param(_r(A), _r(A, name="Other"), b"\2", [1], id="another name of the record"),
    pytest.param(_r(), DEFAULTS, b"", DEFAULTED, id="defaults"),
    pytest.param(_r(A), _r(A, B), b"\2", MISSING, id="no default"),
    pytest.param(_r(_f("e", ENUM)), _r(_f("e", {**SHORT_ENUM, "default": "X"})), b"\2", ["X"], id="enum with default"),
    pytest.param(_r(_f("e", ENUM)), _r(_f("e", SHORT_ENUM)), b"\2", NO_SYMBOL, id="enum without default"),
    pytest.param(_r(_f("e", ENUM)), _r(_f("e", SHORT_ENUM)), b"\0", ["X"], id="enum, the symbol that both have"),
    pytest.param(INTS, INTS, b"\3\4\2\4\2\6\0", [1, 2, 3], id="array in blocks, one with its size"),
    pytest.param(INT_MAP, INT_MAP, b"\1\6\2j\2\2\2k\4\0", {"j": 1, "k": 2}, id="map in blocks, one with its size"),
    pytest.param(_r(A), _r(_f("a", "long")), b"\2", [1], id="int to long"),
    pytest.param(_r(A), _r(_f("a", "double")), b"\2", [_bits(1)], id="int to double"),
    pytest.param(_r(_f("a", "long")), _r(_f("a", "double")), b"\2", [_bits(1)], id="long to double"),
    pytest.param(_r(_f("a", "float")), _r(_f("a", "double")), b"\0\0\0?", [_bits(0.5)], id="float to double"),
    pytest.param(_r(_f("a", "string")), _r(_f("a", "bytes")), b"\2a", ["61"], id="string to bytes"),
    pytest.param(_r(_f("a", "bytes")), _r(_f("a", "string")), b"\2a", ["a"], id="bytes to string"),
    pytest.param(_r(_f("a", "long")), _r(A), b"\2", f"{OTHER} long", id="long to int"),
    pytest.param(["null", _r(A)], ["null", _r(A)], b"\0", None, id="nullable record as a whole, null"),
    pytest.param(["null", _r(A)], ["null", _r(A)], b"\2\2", [1], id="nullable record as a whole"),
    pytest.param(_r(_f("a", ["int", "string"])), _r(A), b"\0\2", [1], id="branch that fits"),
    pytest.param(_r(_f("a", ["int", "string"])), _r(A), b"\2\2x", f"{OTHER} string", id="branch that does not fit"),
    pytest.param(_r(A), _r(_f("a", ["string", "int"])), b"\2", [[None, 1]], id="into a union"),
    pytest.param(_r(_f("a", ["int", "long"])), _r(_f("a", ["int", "long"])), b"\0\2", [1], id="int or long"),
    pytest.param(_r(_f("a", MONEY)), _r(_f("a", MONEY)), b"\4\xff\x38", ["-2.00"], id="decimal in bytes"),
    pytest.param(
        _r(_f("a", MONEY)), _r(_f("a", MONEY)), b"\x14\x7f" + b"\xff" * 9, "out of range", id="decimal too wide"
    ),
    pytest.param(_r(_f("a", WIDE)), _r(_f("a", WIDE)), b"\xff" * 16, ["-1"], id="decimal in a fixed"),
    pytest.param(_r(_f("a", MILLIS)), _r(_f("a", MILLIS)), b"\3", [-2000], id="milliseconds to Spark's microseconds"),
]


def test_named_cases(probe: Probe) -> None:
    """Both paths and Avro follow each rule of resolution, except that Avro accepts a decimal that is too wide."""
    tasks = [Task(json.dumps(writer), json.dumps(reader), [payload]) for writer, reader, payload, _ in _rows(RESOLVED)]
    names = [row.id for row in RESOLVED]

    answers = probe(tasks, True)

    expected = [{"reason" if isinstance(one, str) else "value": one} for *_, one in _rows(RESOLVED)]
    assert list(zip(names, expected, strict=True)) == [
        (name, ours[0]) for name, (ours, _) in zip(names, answers, strict=True)
    ]
    assert list(zip(names, expected, strict=True)) == [
        (name, _in_python(task)[0]) for name, task in zip(names, tasks, strict=True)
    ]
    differing = [
        name
        for name, one, (_, avro) in zip(names, expected, answers, strict=True)
        if _outcome(one) != _outcome(avro[0])
    ]
    assert ["decimal too wide"] == differing


NOT_VALID = "resolution: the default of the reader's field a of R is not valid: "
OUT_OF_RANGE = "resolution: a default of the reader schema is out of range"
SMALL_MONEY = {**MONEY, "precision": 3}
FIXED = {"type": "fixed", "name": "F", "size": 1}
MANY = {"k": ["é'", None, True, 1e16, 0.5, -7], "l": "x" * 60}
MANY_SHOWN = """{'k': ["é'", None, True, 1e+16, 0.5, -7], 'l': 'xxxxxxxxxxxx"""
NO_BYTE = "'latin-1' codec can't encode"
# type, default, value or, as a text, the reason
DEFAULT_VALUES: list[tuple[Any, Any, Any]] = [
    ("int", 1.0, 1),
    ("int", 1.5, f"{NOT_VALID}expected int, got 1.5"),
    ("int", True, f"{NOT_VALID}expected int, got True"),
    ("int", "x", f"{NOT_VALID}expected int, got 'x'"),
    ("int", MANY, f"{NOT_VALID}expected int, got {MANY_SHOWN}"),
    ("int", 2**31, OUT_OF_RANGE),
    ("int", float("inf"), f"{NOT_VALID}cannot convert float infinity to integer"),
    ("long", -(2**63), -(2**63)),
    ("long", float("nan"), f"{NOT_VALID}cannot convert float NaN to integer"),
    ("double", 2**70, _bits(2**70)),
    ("double", float("-inf"), _bits(float("-inf"))),
    ("double", 10**400, f"{NOT_VALID}int too large to convert to float"),
    ("double", "1.5", f"{NOT_VALID}expected double, got '1.5'"),
    ("float", "one", f"{NOT_VALID}expected float, got 'one'"),
    ("null", 0, f"{NOT_VALID}expected null, got 0"),
    ("bytes", "\u0100", rf"{NOT_VALID}{NO_BYTE} character '\u0100' in position 0: ordinal not in range(256)"),
    ("bytes", "a\u0100🚋", f"{NOT_VALID}{NO_BYTE} characters in position 1-2: ordinal not in range(256)"),
    ({"type": "int", "logicalType": "date"}, "x", f"{NOT_VALID}expected int, got 'x'"),
    (SMALL_MONEY, "\u0003\u00e7", "9.99"),
    (SMALL_MONEY, "", "0.00"),
    (SMALL_MONEY, "\u0003\u00e8", f"{NOT_VALID}a decimal has more than 3 digits"),
    (FIXED, "ab", f"{NOT_VALID}expected fixed F, got 'ab'"),
    (ENUM, "Z", f"{NOT_VALID}expected enum E, got 'Z'"),
    (INTS, [1, "2"], f"{NOT_VALID}expected int, got '2'"),
    (INTS, {}, f"{NOT_VALID}expected array, got {{}}"),
    (INTS, [0] * 10_000, f"{NOT_VALID}the default holds too many values"),
    (INT_MAP, {"k": 2**40}, OUT_OF_RANGE),
    (_r(B, name="In"), {}, f"{NOT_VALID}the default has no value for b"),
    (_r(_f("b", "int", default=7), name="In"), {"c": 1}, [7]),
    (["null", "int"], 5, 5),
    (["int", "null"], None, None),
    (["string", INTS], [1], [None, [1]]),
    (["string", "int"], None, f"{NOT_VALID}expected union of string, int, got None"),
    (["string", _r(B, name="In")], {"b": "c"}, f"{NOT_VALID}expected union of string, record In, got {{'b': 'c'}}"),
    (["int", "string"], 2**31, OUT_OF_RANGE),
]


def test_defaults(probe: Probe) -> None:
    """Both paths read defaults of each type alike, and refuse those that are not valid for the same reason."""
    tasks = [
        Task(json.dumps(_r()), json.dumps(_r(_f("a", kind, default=one))), [b""]) for kind, one, _ in DEFAULT_VALUES
    ]

    answers = probe(tasks, False)

    expected = [
        {"reason": one} if str(one).startswith("resolution") else {"value": [one]} for *_, one in DEFAULT_VALUES
    ]
    named = [(kind, one) for kind, one, _ in DEFAULT_VALUES]
    assert list(zip(named, expected, strict=True)) == [
        (name, ours[0]) for name, (ours, _) in zip(named, answers, strict=True)
    ]
    assert list(zip(named, expected, strict=True)) == [
        (name, _in_python(task)[0]) for name, task in zip(named, tasks, strict=True)
    ]


def _rows(params: Sequence[Any]) -> list[Any]:
    return [one.values for one in params]


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
    ("count", "each"), [(60, 20), pytest.param(4000, 50, marks=pytest.mark.slow)], ids=["1200", "200000"]
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
