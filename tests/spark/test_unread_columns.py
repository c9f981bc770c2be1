"""Which rows are good, dead or failing does not depend on the columns that a query reads."""

from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession, functions

from harness.damaged_topics import TOPICS, Topic
from strata.serdes.client import RegistryClient
from strata.spark_udfs import decode, install, split_dead_letters

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves them to the collector
]


class Records(NamedTuple):
    """The frames of a topic as a data frame with the columns n and value, good ones first."""

    topic: Topic
    df: DataFrame
    dead: list[int]

    def decoded(self, registry: RegistryClient, mode: Any = "DEADLETTER") -> DataFrame:
        """Return the columns n and d."""
        options: dict[str, Any] = {"subject": self.topic.subject, "mode": mode, "path": "jvm"}
        return self.df.select("n", decode("value", registry=registry.settings, **options).alias("d"))


# No column of the other formats is pruned.
@pytest.fixture(params=["AVRO", *(pytest.param(name, marks=pytest.mark.slow) for name in TOPICS if name != "AVRO")])
def records(request: pytest.FixtureRequest, spark: SparkSession, client: RegistryClient) -> Records:
    """Return frames of one format, in the view `frames`; the damaged ones are whole in the field id."""
    install(spark, registry=client.settings, name="unread")
    topic = TOPICS[request.param](client)
    frames = [*topic.good, *topic.damaged.values()]
    table = pa.table({"n": pa.array(range(len(frames))), "value": pa.array(frames, pa.binary())})
    df = spark.createDataFrame(table).coalesce(1)
    df.createOrReplaceTempView("frames")
    return Records(topic, df, list(range(len(topic.good), len(frames))))


def _numbers(df: DataFrame) -> list[int]:
    return sorted(row["n"] for row in df.collect())


def test_the_damage_is_real(records: Records) -> None:
    """The format's own library reads the good frames, and none of the damaged ones."""
    assert [] == [frame for frame in records.topic.good if not records.topic.judge(frame)]
    assert [] == [name for name, frame in records.topic.damaged.items() if records.topic.judge(frame)]


def test_split(records: Records, registry: RegistryClient) -> None:
    """Each row is in one of the two parts, whatever is read of them."""
    good, dead = split_dead_letters(records.decoded(registry), "d")

    assert len(records.dead) == dead.count()
    assert not dead.isEmpty()
    assert records.dead == _numbers(dead.select("n"))
    assert records.dead == _numbers(dead.select("n", "reason"))
    assert len(records.topic.good) == good.count()
    assert list(range(len(records.topic.good))) == _numbers(good.select("n"))
    assert list(range(len(records.topic.good))) == _numbers(good.select("n", "d.id"))


# what a query says of the view `decoded`, whether it counts the dead ones
QUERIES: list[tuple[str, bool]] = [
    ("SELECT count_if(d.error IS NOT NULL) FROM decoded", True),
    ("SELECT count_if(d.error IS NULL) FROM decoded", False),
    ("SELECT count(*) FROM decoded WHERE d.error IS NOT NULL", True),
    ("SELECT count(d.value.id) FROM decoded", False),
    ("SELECT count(*) FROM decoded WHERE d.value IS NULL", True),
    ("SELECT count(*) FROM unread_dead_letters('decoded', 'd')", True),
    ("SELECT count(DISTINCT n) FROM unread_dead_letters('decoded', 'd')", True),
]


def test_sql(records: Records) -> None:
    """SQL over a view counts the same good rows and dead letters, whatever each part of a query reads."""
    sql = records.df.sparkSession.sql
    subject = records.topic.subject
    sql(f"CREATE OR REPLACE TEMP VIEW decoded AS SELECT n, unread_decode(value, '{subject}') AS d FROM frames")

    counts = sql(" UNION ALL ".join(f"SELECT {n} AS n, ({query}) AS c" for n, (query, _) in enumerate(QUERIES)))

    good, dead = len(records.topic.good), len(records.dead)
    expected = {query: dead if counts_dead else good for query, counts_dead in QUERIES}
    assert expected == {QUERIES[n][0]: count for n, count in counts.collect()}


def test_values_without_errors(records: Records, registry: RegistryClient) -> None:
    """In mode PERMISSIVE, a damaged record has no value, whichever of its fields is read."""
    decoded = records.decoded(registry, "PERMISSIVE")

    assert records.dead == _numbers(decoded.where("d IS NULL"))
    assert records.dead == _numbers(decoded.where("d.id IS NULL"))
    assert [(len(records.topic.good),)] == decoded.agg(functions.count("d.id")).collect()


@pytest.mark.parametrize("mode", ["DEADLETTER", "PERMISSIVE", "FAILFAST"])
def test_a_column_that_is_not_used(records: Records, registry: RegistryClient, mode: str) -> None:
    """A query that uses nothing of the column counts all rows in every mode."""
    assert len(records.topic.good) + len(records.dead) == records.decoded(registry, mode).count()


def test_failing_queries(records: Records, registry: RegistryClient) -> None:
    """In mode FAILFAST, a query of one field fails at a record that is damaged in another."""
    decoded = records.decoded(registry, "FAILFAST")

    for n in records.dead:
        with pytest.raises(Exception, match="a frame cannot be decoded"):
            decoded.where(f"n = {n}").select("d.id").collect()
