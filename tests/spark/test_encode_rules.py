"""Every executor of Spark follows the same rules of encoding, which are rows of tables.

Payloads are those of fastavro, Google's library and orjson. The rules of a format are a query and a stream.
"""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession, functions

from harness.decode_executors import run_once, settings
from harness.encode_executors import Rows, by, by_sql
from harness.encode_rules import Rule, avro, json_schema, protobuf
from harness.spark_servers import GENERATED
from strata.serdes.client import RegistryClient
from strata.spark_udfs import install

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves them to the collector
    pytest.mark.skipif(not hasattr(functions, "arrow_udf"), reason="this Spark has no arrow_udf"),
]

RULES: dict[str, Sequence[Rule]] = {"avro": avro.RULES, "protobuf": protobuf.RULES, "json": json_schema.RULES}
WAYS = {"sql": by_sql("rules"), "python": by("python")}


def one_of_each_type(rules: Sequence[Rule]) -> list[Rule]:
    """Return one rule of a payload and one of a refusal for each type of column."""
    return list({(str(rule.column.type), type(rule.answer)): rule for rule in rules}.values())


def values_of(spark: SparkSession, rows: Rows) -> DataFrame:
    """Return the values as a data frame, in which a timestamp without a zone stays one."""
    with settings(spark, {"spark.sql.timestampType": "TIMESTAMP_NTZ"}):
        # Spark would encode local rows while it plans the query; `coalesce` makes them rows of a task.
        return spark.createDataFrame(rows.table).coalesce(1)


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    "is_whole", [pytest.param(False, marks=pytest.mark.long), pytest.param(True, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("format_", RULES)
def test_rules_in_generated_code(spark: SparkSession, client: RegistryClient, format_: str, is_whole: bool) -> None:
    """Each value has its payload, or is refused with its reason, in code that Spark generates.

    That code depends on the types of columns alone; in `make test` interpreted code follows all rules.
    """
    rules = RULES[format_] if is_whole else one_of_each_type(RULES[format_])
    rows, ways = Rows(client, rules), {"jvm": by("jvm")}
    values = values_of(spark, rows)  # before the settings, or Spark would generate code that makes the values

    with settings(spark, GENERATED):
        answers = rows.answers(rows.encoded(values, ways), ways)

    assert {"jvm": {rule.name: rule.answer for rule in rules}} == answers


@pytest.mark.parametrize("format_", RULES)
def test_rules_in_interpreted_code(spark: SparkSession, client: RegistryClient, format_: str) -> None:
    """So it is in Python workers, and by the function of SQL, where Spark generates no code."""
    install(spark, registry=client.settings, name="rules")
    rows = Rows(client, RULES[format_])

    answers = rows.answers(rows.encoded(values_of(spark, rows), WAYS), WAYS)

    expected = {rule.name: rule.answer for rule in RULES[format_]}
    assert dict.fromkeys(WAYS, expected) == answers


# One format shows that both ways run in a stream.
@pytest.mark.parametrize(
    "format_", ["protobuf", *(pytest.param(name, marks=pytest.mark.slow) for name in ("avro", "json"))]
)
def test_rules_in_a_stream(spark: SparkSession, client: RegistryClient, format_: str, tmp_path: Path) -> None:
    """So it is in a micro-batch."""
    install(spark, registry=client.settings, name="rules")
    rows = Rows(client, RULES[format_])
    spark.range(1).coalesce(1).write.parquet(str(tmp_path / "one"))
    # Parquet would change the types of some values.
    stream = spark.readStream.schema("id long").parquet(str(tmp_path / "one")).crossJoin(values_of(spark, rows))
    batches = []

    def collect(batch: DataFrame, _: int) -> None:
        batches.append(rows.answers(batch, WAYS))

    # A sink in memory would generate code that makes rows of hundreds of columns.
    run_once(rows.encoded(stream, WAYS).writeStream.foreachBatch(collect), tmp_path / "places")

    expected = {rule.name: rule.answer for rule in RULES[format_]}
    assert [dict.fromkeys(WAYS, expected)] == batches


@pytest.mark.parametrize("format_", RULES)
def test_rules_in_a_worker(client: RegistryClient, format_: str) -> None:
    """So it is in a worker's code outside Spark."""
    assert {rule.name: rule.answer for rule in RULES[format_]} == Rows(client, RULES[format_]).outside_spark()


def test_python_reads_the_texts() -> None:
    """Python's parser reads the numbers, texts and truths that were written."""
    plain = {
        rule.name: rule.column.field(0)[0].as_py()
        for rule in json_schema.RULES
        if isinstance(rule.answer, bytes) and rule.column.type.num_fields == 1
    }
    plain = {name: value for name, value in plain.items() if isinstance(value, int | float | str)}

    read = {rule.name: json.loads(rule.answer)[rule.name] for rule in json_schema.RULES if rule.name in plain}  # type: ignore[arg-type]
    assert plain == read
    assert len(plain) > 25
