"""Every executor of Spark follows the same rules of decoding, which are rows of tables.

The rules of a format are one query in each executor, however many they are.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import Column, DataFrame, SparkSession, functions
from pyspark.sql.pandas.types import from_arrow_schema

from harness.decode_executors import Answers, Frames, run_once, settings
from harness.decode_judges import has_columns, read_by_json, read_by_protobuf
from harness.decode_rules import Rule, avro, framed, json_schema, protobuf
from harness.java_probes import RunJava
from harness.spark_servers import GENERATED, INTERPRETED
from strata.serdes.client import RegistryClient
from strata.spark_udfs import decode, install
from strata.spark_udfs.decoding.avro_decoder import avro_decoder
from strata.spark_udfs.decoding.jvm_function import function_name
from strata.spark_udfs.decoding.paths import pandas_path
from strata.spark_udfs.decoding.payload_decoder import payload_decoder
from strata.spark_udfs.decoding.payload_reader import OnlyInPython

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves them to the collector
]

Executor: TypeAlias = Callable[[Sequence[Rule]], Answers]
"""Takes rules, and returns what became of their frames."""

RULES: dict[str, Sequence[Rule]] = {"avro": avro.RULES, "protobuf": protobuf.RULES, "json": json_schema.RULES}


# Executors


@pytest.fixture
def generated(spark: SparkSession, client: RegistryClient, installed: None) -> Executor:
    """Run the expression of the JVM in code that Spark generates."""
    return lambda rules: _collected(spark, Frames(client, rules), _by(client, "jvm"), GENERATED)


@pytest.fixture
def interpreted(spark: SparkSession, client: RegistryClient, installed: None) -> Executor:
    """Run the expression of the JVM where Spark generates no code."""
    return lambda rules: _collected(spark, Frames(client, rules), _by(client, "jvm"))


@pytest.fixture
def sql(spark: SparkSession, client: RegistryClient) -> Executor:
    """Run the function of SQL where Spark generates no code, or what SQL does not have by `decode`."""
    install(spark, registry=client.settings, name="rules")
    by_decode = _by(client, "jvm")

    def column(name: str, rule: Rule) -> Column:
        if rule.not_in_sql:
            return by_decode(name, rule)
        options = {"id": str(client.register("readers", rule.reader).schema_id)} | {
            name: value if isinstance(value, str) else ",".join(value) for name, value in rule.options.items()
        }
        call = "&".join(f"{name}={value}" for name, value in options.items())
        return functions.expr(f"rules_decode({name}, '?{call}')")

    return lambda rules: _collected(spark, Frames(client, rules), column)


@pytest.fixture
def stream(spark: SparkSession, client: RegistryClient, installed: None, tmp_path: Path) -> Executor:
    """Run the expression of the JVM in a micro-batch."""
    return lambda rules: _streamed(spark, Frames(client, rules), _by(client, "jvm"), tmp_path)


@pytest.fixture
def worker(client: RegistryClient) -> Executor:
    """Run the decoders of Python workers outside Spark."""

    def decoded(frames: pa.Array, rule: Rule) -> pa.Array:
        plan = rule.plan_for(client.settings)
        return (avro_decoder(plan) if plan.payload is None else payload_decoder(plan)).decode(frames)

    return lambda rules: Frames(client, rules).answers_by(decoded)


@pytest.fixture
def arrow(spark: SparkSession, client: RegistryClient) -> Executor:
    """Run Python workers by an `arrow_udf`."""
    return lambda rules: _collected(spark, Frames(client, rules), _by(client, "python"))


@pytest.fixture
def pandas(
    spark: SparkSession, client: RegistryClient, pandas_of_old: None, monkeypatch: pytest.MonkeyPatch
) -> Executor:
    """Run Python workers by a `pandas_udf`."""
    monkeypatch.setattr("strata.spark_udfs.decoding.columns.choose_path", lambda *_: pandas_path)
    return lambda rules: _collected(spark, Frames(client, rules), _by(client, "python"))


def _by(client: RegistryClient, path: Any) -> Callable[[str, Rule], Column]:
    def decoded(name: str, rule: Rule) -> Column:
        options: dict[str, Any] = {"reader_schema": rule.reader, **rule.options}
        return decode(name, registry=client.settings, path=path, **options)

    return decoded


def _collected(
    spark: SparkSession, frames: Frames, decoded: Callable[[str, Rule], Column], code: Mapping[str, str] = INTERPRETED
) -> Answers:
    # Spark would decode local rows while it plans the query; `coalesce` makes them rows of a task. It would also
    # generate code that makes these rows.
    rows = spark.createDataFrame(frames.table).coalesce(1)
    with settings(spark, code):
        return frames.answers(frames.decoded(rows, decoded))


def _streamed(spark: SparkSession, frames: Frames, decoded: Callable[[str, Rule], Column], folder: Path) -> Answers:
    table = frames.table
    (folder / "frames").mkdir()
    pq.write_table(table, folder / "frames" / "0.parquet")
    rows = spark.readStream.schema(from_arrow_schema(table.schema)).parquet(str(folder / "frames"))
    batches: list[Answers] = []

    def collect(batch: DataFrame, _: int) -> None:
        batches.append(frames.answers(batch))

    # A sink in memory would generate code that makes rows of hundreds of columns.
    run_once(frames.decoded(rows, decoded).writeStream.foreachBatch(collect), folder / "places")
    [answers] = batches
    return answers


def one_of_each_type(rules: Sequence[Rule]) -> list[Rule]:
    """Return the rules of one column for each type of Spark, and those of frames that the header spoils."""
    columns: dict[str, object] = {}
    for rule in sorted(rules, key=lambda rule: rule.frame is framed):
        columns.setdefault(rule.read_type.simpleString(), rule.column)
    return [rule for rule in rules if rule.column == columns[rule.read_type.simpleString()]]


# `sql` runs the same expression as the slow ones, of which `test_each_type` runs a part, also what Spark generates.
IN_JVM = ["sql", *(pytest.param(name, marks=pytest.mark.slow) for name in ("generated", "interpreted", "stream"))]
# `test_rules_in_a_worker` runs the same decoders, and `test_each_type` the columns that Spark makes of their values.
IN_PYTHON = [pytest.param(name, marks=pytest.mark.slow) for name in ("arrow", "pandas")]


# A test of an executor names the session, so that it runs in the process that has it.
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(
    ("executor", "format_"),
    [
        ("arrow", "json"),
        ("stream", "json"),
        *(pytest.param("arrow", name, marks=pytest.mark.long) for name in ("avro", "protobuf")),
        *(pytest.param("generated", name, marks=pytest.mark.long) for name in RULES),
    ],
)
def test_each_type(request: pytest.FixtureRequest, format_: str, executor: str) -> None:
    """Each frame of columns of each type has its answer: what code Spark makes around a decoder depends on these."""
    rules = RULES[format_] if executor == "arrow" else _for_the_jvm(format_)
    _require(request, executor, one_of_each_type(rules))


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("format_", RULES)
@pytest.mark.parametrize("executor", IN_JVM)
def test_rules_in_the_jvm(request: pytest.FixtureRequest, format_: str, executor: str) -> None:
    """Each frame has the answer of its rule, unless only Python decodes the schema."""
    _require(request, executor, _for_the_jvm(format_))


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("format_", RULES)
@pytest.mark.parametrize("executor", IN_PYTHON)
def test_rules_in_python(request: pytest.FixtureRequest, format_: str, executor: str) -> None:
    """Each frame has the answer of its rule."""
    _require(request, executor, RULES[format_])


def _for_the_jvm(format_: str) -> list[Rule]:
    return [rule for rule in RULES[format_] if not rule.only_python]


@pytest.mark.parametrize("format_", RULES)
def test_rules_in_a_worker(request: pytest.FixtureRequest, format_: str) -> None:
    """Each frame has the answer of its rule without Spark, too."""
    _require(request, "worker", RULES[format_])


PAYLOADS: dict[str, Sequence[Rule]] = {
    "resolution": avro.RESOLUTION,
    "others": [
        *(
            rule
            for rule in avro.RULES
            if rule.frame is framed and rule.writer.format == "AVRO" and rule not in avro.RESOLUTION
        ),
        *avro.LIMITED,
    ],
}


@pytest.fixture(scope="module")
def probed(run_java: RunJava) -> Callable[[str], dict[str, Any]]:
    """Return what the program of the JVM makes of payloads outside Spark, and for resolution what Avro's library does.

    The probe itself compares nodes, code made for the schemas, and, for resolution, programs for some of the columns.
    """

    @cache
    def probe(part: str) -> dict[str, Any]:
        lines = [
            {
                "plan": function_name(rule.plan),
                "writer": rule.writer.text,
                "payloads": [payload.hex() for payload in rule.payloads],
                **({"reader": rule.reader.text} if part == "resolution" else {}),
            }
            for rule in PAYLOADS[part]
        ]
        answers = run_java("strata.spark.Probe", lines)
        return {rule.name: answer for rule, answer in zip(PAYLOADS[part], answers, strict=True)}

    return probe


@pytest.mark.parametrize("part", PAYLOADS)
def test_rules_of_payloads(probed: Callable[[str], dict[str, Any]], part: str) -> None:
    """Each payload of Avro has the answer of its rule, whether nodes or generated code read it, and how many fields."""
    answers = probed(part)
    assert {rule.name: rule.expected for rule in PAYLOADS[part]} == {name: it["ours"] for name, it in answers.items()}


@cache
def _expected(format_: str) -> Answers:
    return {rule.name: rule.expected for rule in RULES[format_]}


def _require(request: pytest.FixtureRequest, executor: str, rules: Sequence[Rule]) -> None:
    run: Executor = request.getfixturevalue(executor)
    expected = _expected(request.node.callspec.params["format_"])
    assert {rule.name: expected[rule.name] for rule in rules} == run(rules)


@pytest.mark.parametrize("format_", RULES)
def test_types(format_: str) -> None:
    """Each type has its name, also where the executors have nothing to read."""
    typed = [rule for rule in RULES[format_] if rule.type is not None]

    assert [(rule.name, rule.type) for rule in typed] == [(rule.name, rule.read_type.simpleString()) for rule in typed]


def test_what_only_python_decodes() -> None:
    """The JVM refuses the schemas of these rules when a query is made."""
    for rule in (rule for rule in protobuf.RULES if rule.only_python):
        with pytest.raises(OnlyInPython):
            function_name(rule.plan)


# Judges


def test_avro_follows_the_rules_of_resolution(probed: Callable[[str], dict[str, Any]]) -> None:
    """Avro's own library gives the same values or refuses too, except that it accepts a decimal that is too wide."""
    answers = probed("resolution")
    differing = [
        rule.name
        for rule in avro.RESOLUTION
        if rule.answers[0].get("value", "refused") != answers[rule.name]["avro"][0].get("value", "refused")
    ]
    assert ["decimal too wide"] == differing


# why Google's library does not follow these rules
NOT_AS_GOOGLE = {
    "a number wraps around": {"evolution: int32 to uint32"},
    "fields that are not chosen are parsed": {"some columns of odd: a packed number cut short"},
    "a field of another wire type is unknown": {
        "odd: a map entry whose key has another wire type",
        "odd: a number as a text",
        "odd: a text as a number",
        "odd: a message as a number",
        "odd: fixed as packed",
        "some columns of odd: a map entry whose key has another wire type",
        "some columns of odd: a text as a number",
        "some columns of odd: a message as a number",
    },
}


def test_google_follows_the_rules() -> None:
    """Google's own library reads the same values, and refuses what is malformed, with a few exceptions."""
    differing = {
        rule.name
        for rule in protobuf.RULES
        if not rule.only_python and "message" not in rule.options and rule.frame is framed and is_judged(rule)
        for payload, value in zip(rule.payloads, rule.values or ["malformed"], strict=True)
        if read_by_protobuf(rule.reader, payload, rule.options.get("columns")) != value
    }

    assert set().union(*NOT_AS_GOOGLE.values()) == differing


def is_judged(rule: Rule) -> bool:
    """Return whether a rule gives values, or refuses payloads that no library may read."""
    return bool(rule.values) or rule.answers[0].get("reason") in ("malformed", "invalid utf-8")


# what Python's parser reads, although it is malformed
READ_BY_PYTHON = {
    "damage: NaN",
    *(
        f"{kind}: {name}"
        for kind in ("odd", "some columns of odd")
        for name in (
            "a lone high surrogate",
            "a lone low surrogate",
            "two high surrogates",
            "a lone surrogate in an unknown property",
            "not a number",
            "a byte order mark",
        )
    ),
}


def test_python_follows_the_rules_of_json() -> None:
    """Python's own parser reads the same values, and refuses what is malformed, with a few exceptions.

    How deep it reads depends on the process.
    """
    differing = {
        rule.name
        for rule in json_schema.RULES
        if rule.frame is framed and rule.writer.format == "JSON" and is_judged(rule) and "too deep" not in rule.name
        for payload, value in zip(rule.payloads, rule.values or ["malformed"], strict=True)
        if not has_columns(read_by_json(payload), value)
    }

    assert READ_BY_PYTHON == differing
