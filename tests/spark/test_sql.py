"""Decodes in SQL: columns are pruned, calls can be grouped by, and names last longer than a session."""

import json
from collections.abc import Callable
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession, functions

from harness.avro_cases import Maker
from strata.serdes.client import ClientSettings, RegistryClient
from strata.serdes.errors import RegistryError
from strata.spark_udfs import NotInstalled, decode, install, split_dead_letters
from strata.spark_udfs.decoding.type_limits import UnsupportedSchema

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves them to the collector
]

MakeFrame = Callable[[int, Any, Any], bytes]

FLIGHT = {
    "type": "record",
    "name": "Flight",
    "fields": [
        {"name": "carrier", "type": "string"},
        {"name": "delay", "type": "int"},
        {"name": "legs", "type": {"type": "array", "items": "long"}, "default": [1, 2]},
    ],
}
REASON = "wrong magic byte 0x64"
FLIGHTS = [("UA", 11), ("AA", -4), ("UA", 5)]


@pytest.fixture(scope="module")
def frames(spark: SparkSession, registry: RegistryClient, frame: MakeFrame) -> DataFrame:
    """Return a table of frames: three flights, a damaged one and a tombstone, in the view `frames`."""
    install(spark, registry=registry.settings, name="flights")
    number = registry.register("sql-value", json.dumps(FLIGHT)).schema_id
    values = [frame(number, FLIGHT, {"carrier": c, "delay": d, "legs": []}) for c, d in FLIGHTS]
    rows = {"n": pa.array(range(5)), "value": pa.array([*values, b"damaged", None], pa.binary())}
    df = spark.createDataFrame(pa.table(rows)).coalesce(1)
    df.createOrReplaceTempView("frames")
    return df


def _plan(df: DataFrame) -> str:
    return str(df._jdf.queryExecution().optimizedPlan())  # type: ignore[operator]


def _decoded(frames: DataFrame, registry: RegistryClient, mode: Any = "DEADLETTER") -> DataFrame:
    column = decode("value", registry=registry.settings, subject="sql-value", mode=mode, path="jvm")
    return frames.select("n", column.alias("decoded"))


# the query on a decoded column, the fields that are read (all if none is named), its rows
USES: list[tuple[str, str, list[tuple[Any, ...]]]] = [
    ("SELECT decoded.value.delay FROM v WHERE decoded.error IS NULL", "[delay]", [(-4,), (5,), (11,), (None,)]),
    ("SELECT n FROM v WHERE decoded.value.carrier = 'UA'", "[carrier]", [(0,), (2,)]),
    (
        "SELECT decoded.value.carrier, sum(decoded.value.delay) FROM v GROUP BY 1",
        "[carrier, delay]",
        [("AA", -4), ("UA", 16), (None, None)],
    ),
    ("SELECT count(*) FROM v WHERE decoded.error IS NOT NULL", "[]", [(1,)]),
    ("SELECT decoded.value.delay, decoded.error.reason FROM v WHERE n = 3", "[delay]", [(None, REASON)]),
    ("SELECT decoded.value FROM v WHERE n = 4", "", [(None,)]),
    ("SELECT count(DISTINCT decoded) FROM v", "", [(5,)]),
    ("SELECT w.delay FROM (SELECT decoded.value AS w FROM v) WHERE w.carrier = 'AA'", "[carrier, delay]", [(-4,)]),
    ("SELECT decoded.value.delay FROM v UNION ALL SELECT n FROM v WHERE n > 3", "[delay]", []),
]


@pytest.mark.parametrize(("query", "fields", "rows"), USES)
def test_only_the_fields_that_are_used(
    frames: DataFrame, registry: RegistryClient, query: str, fields: str, rows: list[tuple[Any, ...]]
) -> None:
    """A query builds the fields that it uses, and all fields if it uses the column or the value as a whole."""
    _decoded(frames, registry).createOrReplaceTempView("v")
    chosen = frames.sparkSession.sql(query)

    plan = _plan(chosen)
    assert "strata_decode[sql-value?version=1&mode=DEADLETTER" in plan
    assert (f", only {fields}]" in plan) if fields else (", only" not in plan)
    if rows:
        assert sorted(map(tuple, chosen.collect()), key=str) == sorted(rows, key=str)


def test_fields_of_a_value_without_errors(frames: DataFrame, registry: RegistryClient) -> None:
    """In mode PERMISSIVE, the fields of the column itself are pruned."""
    delays = _decoded(frames, registry, "PERMISSIVE").select("decoded.delay")

    assert ", only [delay]]" in _plan(delays)
    assert [11, -4, 5, None, None] == [row["delay"] for row in delays.collect()]


def test_pruning_switched_off(frames: DataFrame, registry: RegistryClient) -> None:
    """With `spark.strata.prune` false, whole values are decoded."""
    frames.sparkSession.conf.set("spark.strata.prune", "false")
    try:
        assert ", only" not in _plan(_decoded(frames, registry).select("decoded.value.delay"))
    finally:
        frames.sparkSession.conf.unset("spark.strata.prune")


def test_parts_of_a_split_are_pruned(frames: DataFrame, registry: RegistryClient) -> None:
    """The good part builds the fields that are selected; the other part builds none, and its letters are complete."""
    good, dead = split_dead_letters(_decoded(frames, registry))

    assert ", only [carrier]]" in _plan(good.select("decoded.carrier"))
    assert ", only []]" in _plan(dead)
    assert [(3, REASON, None, b"damaged")] == [tuple(row) for row in dead.collect()]


def test_calls_in_clauses(frames: DataFrame, registry: RegistryClient) -> None:
    """A decode can be grouped and sorted by where it is called, decoding each record once."""
    column = decode("value", registry=registry.settings, subject="sql-value", path="jvm")
    grouped = frames.groupBy(column["value"]["carrier"].alias("carrier")).agg(functions.count("n").alias("count"))
    by_value = frames.groupBy(column).count()
    ordered = frames.orderBy(column["value"]["delay"], "n").select("n")

    assert {("UA", 2), ("AA", 1), (None, 2)} == set(map(tuple, grouped.collect()))
    assert 5 == by_value.count()
    assert [3, 4, 1, 2, 0] == [row["n"] for row in ordered.collect()]
    for df in (grouped, by_value, ordered):
        assert 1 == _plan(df).count("strata_decode")


# what a query says, its rows
QUERIES: list[tuple[str, list[tuple[Any, ...]]]] = [
    ("SELECT flights_decode(value, 'sql-value').value.delay AS d FROM frames WHERE n < 2", [(11,), (-4,)]),
    ("SELECT flights_decode(value, 'sql-value?version=1').error.reason AS r FROM frames WHERE n = 3", [(REASON,)]),
    ("SELECT flights_decode(value, 'sql-value?mode=PERMISSIVE').carrier AS c FROM frames WHERE n = 1", [("AA",)]),
    ("SELECT flights.decode.`sql-value`(value).value.legs AS l FROM frames WHERE n = 0", [([],)]),
    (
        """SELECT flights_decode(value, 'sql-value').value.carrier AS c, count(*) FROM frames
        GROUP BY flights_decode(value, 'sql-value').value.carrier""",
        [("UA", 2), ("AA", 1), (None, 2)],
    ),
    (
        """SELECT error.reason, count(*) FROM (SELECT flights_decode(value, 'sql-value') AS d FROM frames)
        LATERAL VIEW explode(array(d.error)) AS error WHERE d.error IS NOT NULL GROUP BY 1""",
        [(REASON, 1)],
    ),
    ("SELECT n, reason, schema_id FROM flights_dead_letters('decoded_frames', 'd')", [(3, REASON, None)]),
    ("SELECT from_json(flights_schema('sql-value'), 'name STRING').name AS name", [("Flight",)]),
    ("SELECT carrier_of(value) AS c, count(*) FROM frames GROUP BY 1", [("UA", 2), ("AA", 1), (None, 2)]),
]


def test_functions(frames: DataFrame) -> None:
    """SQL names a subject; calls work in views, SQL functions and GROUP BY."""
    sql = frames.sparkSession.sql
    frames.selectExpr("n", "flights_decode(value, 'sql-value') AS d").createOrReplaceTempView("decoded_frames")
    sql(
        "CREATE OR REPLACE TEMPORARY FUNCTION carrier_of(frame BINARY) RETURNS STRING "
        "RETURN flights_decode(frame, 'sql-value').value.carrier"
    )

    for query, rows in QUERIES:
        assert sorted(rows, key=str) == sorted(map(tuple, sql(query).collect()), key=str), query


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ("flights_decode(value, 'none')", "no reader schema from none version latest: .*not found"),
        ("flights_decode(value, 'sql-value?version=7')", "no reader schema from sql-value version 7: .*not found"),
        ("flights_decode(value, '?id=x')", "id is x; expected a number"),
        ("flights_decode(value, 'sql-value?mode=LOUD')", "mode is LOUD; allowed are .DEADLETTER, PERMISSIVE, FAILFAST"),
        ("flights_decode(value, 'sql-value?modus=x')", "unknown option modus; allowed are version, id, mode, origin"),
        ("flights_decode(value, 'sql-value?x')", "expected NAME=VALUE after the question mark"),
        ("flights_decode(value)", "expected flights_decode.FRAMES, 'SUBJECT'."),
        ("flights_decode(value, upper(value))", "expected a text in quotes"),
        ("flights_decode(n, 'sql-value')", "expected a binary column of frames, got bigint"),
        (
            "flights_decode(value, 'sql-recursive')",
            "no Spark type for the reader schema at next: the record R contains",
        ),
    ],
)
def test_calls_that_are_refused(frames: DataFrame, registry: RegistryClient, call: str, told: str) -> None:
    """The error says what is wrong with a call."""
    recursive = {"type": "record", "name": "R", "fields": [{"name": "next", "type": ["null", "R"], "default": None}]}
    registry.register("sql-recursive", json.dumps(recursive))

    with pytest.raises(Exception, match=told):
        frames.sparkSession.sql(f"SELECT {call} FROM frames")


def test_a_view_of_another_session(frames: DataFrame, registry: RegistryClient) -> None:
    """A view outlives the session that made it: another one reads it after `install` under the same name."""
    first = frames.sparkSession
    frames.write.mode("overwrite").saveAsTable("sql_frames")
    first.sql("CREATE OR REPLACE VIEW sql_flights AS SELECT n, flights.decode.`sql-value`(value) AS d FROM sql_frames")
    other = first.newSession()
    install(other, registry=registry.settings, name="flights")

    carriers = other.sql("SELECT d.value.carrier FROM sql_flights WHERE d.error IS NULL")

    assert ["AA", "UA", "UA", "None"] == sorted(
        (str(row[0]) for row in carriers.collect()), key=lambda one: (len(one), one)
    )
    assert ", only [carrier]]" in _plan(carriers)
    first.sql("DROP VIEW sql_flights")
    first.sql("DROP TABLE sql_frames")


def test_types_and_defaults_are_those_of_python(spark: SparkSession, registry: RegistryClient) -> None:
    """A reader schema that SQL names has the type, and its defaults the values, that `decode` gives it."""
    install(spark, registry=registry.settings, name="flights")
    chance, maker, columns, frames = Random(19), Maker(Random(7)), [], {}
    while len(frames) < 12:
        family = maker.family(6)
        name = f"f{len(frames)}"
        try:
            known = decode("value", registry=registry.settings, reader_schema=family[0].reader, path="jvm")
            reader = registry.register(f"sql-{name}", family[0].reader).schema_id
            writers = [registry.register(f"sql-writer-{chance.random()}", one.writer).schema_id for one in family]
        except (UnsupportedSchema, RegistryError):
            continue
        frames[name] = [
            b"\0" + writer.to_bytes(4, "big") + one.payload for writer, one in zip(writers, family, strict=True)
        ]
        known = decode(name, registry=registry.settings, schema_id=reader, path="python")
        columns += [known.alias(f"{name}_python"), functions.expr(f"flights_decode({name}, '?id={reader}')")]
    rows = spark.createDataFrame(pa.table({name: pa.array(one, pa.binary()) for name, one in frames.items()}))

    decoded = rows.coalesce(1).select(*columns)

    types = [one.dataType for one in decoded.schema]
    assert types[::2] == types[1::2]
    for row in decoded.select(*(functions.col(f"`{name}`").cast("string") for name in decoded.columns)).collect():
        assert row[::2] == row[1::2]


def test_names(spark: SparkSession, scripted_registry: Any) -> None:
    """The second registry has its own name, a given name is kept, and new settings replace those of a name."""
    first, second = (ClientSettings.of(scripted_registry.url, timeout=timeout) for timeout in (5, 6))
    install(spark, registry=first, name="airline")
    install(spark, registry=second, name="airline")

    decode("value", registry=second, reader_schema='"int"', path="jvm")
    with pytest.raises(NotInstalled):
        decode("value", registry=first, reader_schema='"int"', path="jvm")
    with pytest.raises(ValueError, match="name is 'a-b'; allowed are letters"):
        install(spark, registry=first, name="a-b")
