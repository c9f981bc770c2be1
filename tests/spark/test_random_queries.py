"""Random queries on random damage give the same rows in the JVM, in the JVM without pruning, and in Python workers."""

import shutil
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession, functions

from harness.damaged_topics import TOPICS, Topic
from strata.serdes.client import RegistryClient
from strata.spark_udfs import decode, install, split_dead_letters

pytestmark = [
    pytest.mark.spark,
    pytest.mark.usefixtures("generated_code"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves them to the collector
]

WAYS = ("jvm", "whole", "python")
PRUNES = "spark.strata.prune"
FAILS = ["a frame cannot be decoded"]

FIELDS = ("id", "name", "kind", "tags", "places", "inner", "inner.note", "inner.size", "ok")
# on the columns n, of every row, and those of `{v}`, the value
CONDITIONS = (
    "{v}.id > 3",
    "{v}.name IS NULL",
    "{v}.kind = 'A'",
    "{v}.inner.note IS NOT NULL",
    "size({v}.tags) > 1",
    "{v} IS NULL",
    "{v} IS NOT NULL",
    "n % 2 = 0",
)
CONDITIONS_ON_ERRORS = ("d.error IS NULL", "d.error IS NOT NULL", "d.error.reason LIKE 'inv%'", "d IS NOT NULL")


class Query(NamedTuple):
    """A query as Hypothesis draws and prints it."""

    mode: str
    part: str  # of a split: whole, good or dead
    filters: tuple[str, ...]
    shape: str
    fields: tuple[str, str]
    by: str  # how it runs: plain, cache, view or stream


def _shapes() -> dict[str, Callable[[DataFrame, str, str, str], DataFrame]]:
    """Return by name: what is made of the rows, from two columns and a condition."""

    def text(column: str) -> str:
        return f"CAST({column} AS STRING) AS `{column}`"

    return {
        "project": lambda df, a, b, _: df.selectExpr("n", text(a), f"CAST({b} AS STRING) AS other"),
        "numbers": lambda df, *_: df.select("n"),
        "count": lambda df, *_: df.agg(functions.count("*")),
        "count_if": lambda df, a, _, condition: df.agg(functions.expr(f"count_if({condition})"), functions.count(a)),
        "group": lambda df, a, b, _: df.groupBy(functions.expr(text(a))).agg(functions.max("n"), functions.count(b)),
        "distinct": lambda df, a, *_: df.selectExpr(text(a)).distinct(),
        "join": lambda df, a, b, _: df.selectExpr("n", text(a)).join(
            df.selectExpr("n", f"CAST({b} AS STRING) AS x"), "n"
        ),
        "outer join": lambda df, a, b, condition: df.select("n").join(
            df.where(condition).selectExpr("n AS m", text(b)), functions.expr("n = m"), "left"
        ),
        "union": lambda df, a, b, _: df.selectExpr("n", text(a)).union(df.selectExpr("n", text(b))),
        "limit": lambda df, a, *_: df.orderBy("n").limit(3).selectExpr("n", text(a)),
        "first": lambda df, *_: df.limit(1).agg(functions.count("*")),
        "window": lambda df, a, *_: df.selectExpr("n", f"count({a}) OVER (PARTITION BY n % 2) AS c"),
        "in": lambda df, a, b, condition: (
            df.where(functions.expr(condition)).select("n").exceptAll(df.where(f"{b} IS NULL").select("n"))
        ),
    }


SHAPES = _shapes()
STREAMED = {"project": "append", "numbers": "append", "count": "complete", "count_if": "complete", "group": "complete"}
"""The shapes that a stream can have, and the output mode of each."""


@st.composite
def queries(draw: st.DrawFn) -> Query:
    """Draw a query that Spark accepts."""
    mode = draw(st.sampled_from(["DEADLETTER", "DEADLETTER", "PERMISSIVE", "FAILFAST"]))
    part = draw(st.sampled_from(["whole", "good", "dead"])) if mode == "DEADLETTER" else "whole"
    by = draw(st.sampled_from(["plain", "plain", "plain", "cache", "view", "stream"]))
    # Where few rows are asked for, workers in Python have decoded a batch: another row may have failed.
    shapes = [
        name
        for name in SHAPES
        if (by != "stream" or name in STREAMED) and (mode != "FAILFAST" or name not in ("limit", "first"))
    ]
    if part == "dead":
        value, fields, conditions = "", ["reason", "schema_id", "frame", "n"], ["n % 2 = 0", "reason LIKE 'inv%'"]
    else:
        value = "d.value" if mode == "DEADLETTER" and part == "whole" else "d"
        fields = [value, *(f"{value}.{name}" for name in FIELDS)]
        conditions = [one.format(v=value) for one in CONDITIONS]
        if value == "d.value":
            fields += ["d.error.reason", "d"]
            conditions += CONDITIONS_ON_ERRORS
    field, condition = st.sampled_from(fields), st.sampled_from(conditions)
    filters = draw(st.lists(condition, max_size=2))
    return Query(mode, part, (*filters, draw(condition)), draw(st.sampled_from(shapes)), (draw(field), draw(field)), by)


# the record, and what happens to its bytes: a place and a new byte, or a cut
DAMAGE = st.tuples(st.integers(0, 250), st.sampled_from([-1, 0, 1, 2, 3, 0x22, 0x7F, 0x80, 0xC3, 0xFF, 0xFF, 0xFF]))
RECORDS = st.lists(st.tuples(st.integers(0, 15), st.none() | DAMAGE), min_size=1, max_size=12)


def _damaged(frame: bytes, damage: tuple[int, int] | None) -> bytes:
    if damage is None:
        return frame
    place = 5 + damage[0] % (len(frame) - 5)
    return frame[:place] if damage[1] < 0 else frame[:place] + bytes([damage[1]]) + frame[place + 1 :]


class Runner:
    """Runs queries on frames in a folder, each way."""

    def __init__(self, spark: SparkSession, registry: RegistryClient, topic: Topic, folder: Path) -> None:
        self.topic = topic
        self._spark, self._registry, self._folder = spark, registry, folder
        self._numbers = count()

    def rows(self, query: Query, frames: Sequence[bytes]) -> dict[str, list[str]]:
        """Return the rows of the query each way, as sorted texts."""
        folder = self._folder / str(next(self._numbers))
        folder.mkdir()
        table = pa.table({"n": pa.array(range(len(frames)), pa.int64()), "value": pa.array(frames, pa.binary())})
        pq.write_table(table, folder / "frames.parquet")
        try:
            return {way: self._run(query, folder, way) for way in WAYS}
        finally:
            shutil.rmtree(folder)

    def _run(self, query: Query, folder: Path, way: str) -> list[str]:
        self._spark.conf.set(PRUNES, str(way != "whole").lower())
        try:
            df = SHAPES[query.shape](self._part(query, folder, way), *query.fields, query.filters[-1])
            rows = self._streamed(df, STREAMED[query.shape]) if query.by == "stream" else df.collect()
            return sorted(str(tuple(row)) for row in rows)
        except (PySparkException, Py4JJavaError) as error:
            if query.mode != "FAILFAST" or FAILS[0] not in str(error):
                raise
            return FAILS
        finally:
            self._spark.conf.unset(PRUNES)
            self._spark.catalog.clearCache()

    def _part(self, query: Query, folder: Path, way: str) -> DataFrame:
        reader = self._spark.readStream.schema("n long, value binary") if query.by == "stream" else self._spark.read
        df = self._decoded(reader.parquet(str(folder)), query, "python" if way == "python" else "jvm")
        if query.part != "whole":
            good, dead = split_dead_letters(df, "d")
            df = good if query.part == "good" else dead
        for condition in query.filters[:-1]:
            df = df.where(condition)
        return df

    def _decoded(self, df: DataFrame, query: Query, path: Any) -> DataFrame:
        subject, mode = self.topic.subject, query.mode
        column = decode("value", registry=self._registry.settings, subject=subject, mode=mode, path=path)  # type: ignore[arg-type]
        if query.by == "view" and path == "jvm":
            column = functions.expr(f"random_decode(value, '{subject}?mode={mode}')")
        decoded = df.select("n", column.alias("d"))
        if query.by == "cache":
            return decoded.cache()
        if query.by == "view":
            decoded.createOrReplaceTempView("random_view")
            return self._spark.sql("SELECT * FROM random_view")
        return decoded

    def _streamed(self, df: DataFrame, mode: str) -> list[Any]:
        name = f"random_{next(self._numbers)}"
        query = df.writeStream.format("memory").queryName(name).outputMode(mode).trigger(availableNow=True).start()
        try:
            assert query.awaitTermination(300)
            return self._spark.table(name).collect()
        finally:
            query.stop()
            self._spark.catalog.dropTempView(name)


EXAMPLES = {"AVRO": 60, "PROTOBUF": 40, "JSON": 25}
"""An example is three Spark jobs, one of which starts from Python workers; those of JSON take twice as long."""


@pytest.mark.parametrize(
    ("name", "examples"),
    [("AVRO", 1), *(pytest.param(*item, marks=pytest.mark.slow) for item in EXAMPLES.items())],
)
def test_random_queries(spark: SparkSession, client: RegistryClient, tmp_path: Path, name: str, examples: int) -> None:
    """What a query reads, and where it runs, changes neither its rows nor whether it fails."""
    install(spark, registry=client.settings, name="random")
    runner = Runner(spark, client, TOPICS[name](client), tmp_path)
    frames = [*runner.topic.good, *runner.topic.damaged.values()]

    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
    @given(queries(), RECORDS)
    def hold(query: Query, records: list[tuple[int, tuple[int, int] | None]]) -> None:
        damaged = [_damaged(frames[number % len(frames)], damage) for number, damage in records]
        rows = runner.rows(query, damaged)
        assert rows["python"] == rows["whole"], query
        assert rows["python"] == rows["jvm"], query

    hold()
