"""Encodes in SQL: the bytes of `encode`, in views, functions and GROUP BY, and calls that are refused."""

import json
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession, functions

from strata.serdes.avro import AvroSerializer
from strata.serdes.client import RegistryClient, Schema
from strata.serdes.model import Rule, RuleSet
from strata.spark_udfs import decode, encode, install

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves them to the collector
]

FLIGHT = {
    "type": "record",
    "name": "Flight",
    "fields": [{"name": "carrier", "type": "string"}, {"name": "delay", "type": "int"}],
}
WIDER = {**FLIGHT, "fields": [*FLIGHT["fields"], {"name": "gate", "type": ["null", "string"], "default": None}]}
VALUE = "struct(carrier, delay)"


@pytest.fixture
def rows(spark: SparkSession, registry: RegistryClient) -> DataFrame:
    """Return two flights and one whose delay is null, as the view `flights`; SQL knows the registry as `air`."""
    install(spark, registry=registry.settings, name="air")
    registry.register("departures-value", json.dumps(FLIGHT))
    df = spark.createDataFrame([("UA", 11), ("AA", -4), ("B6", None)], "carrier string, delay int").coalesce(1)
    df.createOrReplaceTempView("flights")
    return df


@pytest.fixture
def united(registry: RegistryClient) -> bytes:
    """Return the frame of the first flight, by the serializer."""
    serializer = AvroSerializer(registry, json.dumps(FLIGHT))
    return bytes(serializer({"carrier": "UA", "delay": 11}, topic="departures") or b"")


# what a query returns, of which the frame of the first flight is the only value
QUERIES = [
    f"SELECT air_encode({VALUE}, 'departures-value') FROM flights WHERE carrier = 'UA'",
    f"SELECT air_encode({VALUE}, 'departures-value?version=1&mode=PERMISSIVE') FROM flights WHERE delay > 0",
    f"SELECT air.encode.`departures-value`({VALUE}) FROM flights WHERE delay > 0",
    "SELECT e.frame FROM letters WHERE e.error IS NULL AND carrier = 'UA'",
    "SELECT framed(carrier, delay) FROM flights WHERE delay > 0 GROUP BY 1",
    f"""SELECT air_encode({VALUE}, 'departures-value') FROM flights WHERE delay > 0
    GROUP BY air_encode({VALUE}, 'departures-value')""",
]


def test_functions(rows: DataFrame, united: bytes) -> None:
    """SQL names a subject; calls work in views, SQL functions and GROUP BY, and write the serializer's bytes."""
    sql = rows.sparkSession.sql
    sql(
        "CREATE OR REPLACE TEMP VIEW letters AS "
        f"SELECT carrier, air_encode({VALUE}, 'departures-value?mode=DEADLETTER') AS e FROM flights"
    )
    sql(
        "CREATE OR REPLACE TEMPORARY FUNCTION framed(c STRING, d INT) RETURNS BINARY "
        "RETURN air_encode(struct(c AS carrier, d AS delay), 'departures-value')"
    )

    for query in QUERIES:
        assert [united] == [bytes(row[0]) for row in sql(query).collect()], query


def test_rows_that_do_not_fit(rows: DataFrame) -> None:
    """A row that does not fit is an error with reason and path: in the column, or of the query."""
    sql = rows.sparkSession.sql
    query = "SELECT air_encode(struct(carrier, delay), 'departures-value{}') AS e FROM flights WHERE delay IS NULL"

    [row] = sql(query.format("?mode=DEADLETTER")).collect()
    assert (None, "expected a value, got null", "delay") == (row["e"]["frame"], *row["e"]["error"])
    with pytest.raises(Exception, match=r"a row cannot be encoded: expected a value, got null \(at field delay\)"):
        sql(query.format("")).collect()


def test_the_driver_fixes_the_id(rows: DataFrame, registry: RegistryClient, united: bytes) -> None:
    """A query that has been made keeps writing its id; one that is made after a registration writes the newer one."""
    query = f"SELECT air_encode({VALUE}, 'departures-value') AS f FROM flights WHERE delay > 0"
    before = rows.sparkSession.sql(query)
    newer = registry.register("departures-value", json.dumps(WIDER)).schema_id
    try:
        after = rows.sparkSession.sql(query)
        assert [united] == [bytes(row["f"]) for row in before.collect()]
        assert [b"\0" + newer.to_bytes(4, "big") + b"\x04UA\x16\0"] == [bytes(row["f"]) for row in after.collect()]
    finally:
        registry.delete_subject("departures-value")


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ("air_encode(delay, 'none')", "no writer schema from none version latest: .*not found"),
        ("air_encode(delay, '?id=x')", "id is x; expected a number"),
        ("air_encode(delay, 'departures-value?mode=LOUD')", "mode is LOUD; allowed are"),
        ("air_encode(delay, 'departures-value?origin=x')", "unknown option origin; allowed are version, id, mode"),
        ("air_encode(delay)", "expected air_encode.VALUES, 'SUBJECT'."),
        ("air_encode(delay, 'departures-value')", "expected a struct, got int"),
        ("air_encode(struct(delay), 'departures-value')", r"null is not allowed \(at field carrier\)"),
        ("air.encode.`departures-value`(delay, carrier)", "expected a column of values and 0 of their origin"),
        (
            "air_encode(delay, 'departures-number')",
            "SQL does not encode JSON with validation by `multipleOf` with a fraction: add validate=false, or make",
        ),
        (
            "air_encode(delay, 'departures-ruled')",
            r"schema id \d+ has rules for writing \(no-ssn\), which SQL does not run: make the column by strata",
        ),
        ("air_encode(delay, 'departures-recursive')", "no Spark type for the writer schema at next: the record R"),
    ],
)
def test_calls_that_are_refused(rows: DataFrame, registry: RegistryClient, call: str, told: str) -> None:
    """The error says what is wrong with a call; rules for writing, which only Python runs, are not passed over."""
    registry.register("departures-number", Schema('{"multipleOf": 0.1}', "JSON"))
    rule = Rule(name="no-ssn", type="CEL", kind="CONDITION", mode="WRITE", expr="true")
    registry.register("departures-ruled", Schema('"int"', rule_set=RuleSet(domain_rules=(rule,))))
    recursive = {"type": "record", "name": "R", "fields": [{"name": "next", "type": ["null", "R"], "default": None}]}
    registry.register("departures-recursive", json.dumps(recursive))

    with pytest.raises(PySparkException, match=told):
        rows.sparkSession.sql(f"SELECT {call} FROM flights")


def test_rules_of_other_sides(rows: DataFrame, registry: RegistryClient) -> None:
    """Rules for readers, disabled rules and rules of the service do not matter."""
    rules = {
        "read": RuleSet(domain_rules=(Rule(name="r", type="CEL", mode="READ", expr="true"),)),
        "disabled": RuleSet(domain_rules=(Rule(name="r", type="CEL", expr="true", disabled=True),)),
        "service": RuleSet(domain_rules=(Rule(name="r", type="CEL", expr="true"),), enable_at="SERVER"),
    }
    for name, rule_set in rules.items():
        registry.register(f"departures-{name}", Schema('"int"', rule_set=rule_set))
        encoded = rows.sparkSession.sql(f"SELECT air_encode(delay, 'departures-{name}') AS f FROM flights LIMIT 1")
        assert b"\x16" == bytes(encoded.collect()[0]["f"])[5:]


def test_a_view_of_another_session(rows: DataFrame, registry: RegistryClient, united: bytes) -> None:
    """A view over the catalog's function outlives the session: another one reads it after `install`."""
    first = rows.sparkSession
    rows.write.mode("overwrite").saveAsTable("departed")
    first.sql(
        f"CREATE OR REPLACE VIEW framed_flights AS SELECT air.encode.`departures-value`({VALUE}) AS f FROM departed"
    )
    other = first.newSession()
    install(other, registry=registry.settings, name="air")

    assert united in [
        row["f"] and bytes(row["f"]) for row in other.sql("SELECT * FROM framed_flights LIMIT 2").collect()
    ]
    first.sql("DROP VIEW framed_flights")
    first.sql("DROP TABLE departed")


def test_names(rows: DataFrame, registry: RegistryClient) -> None:
    """Without an alias a column is named by its call, and plans say what is decoded and encoded."""
    common: dict[str, Any] = {"registry": registry.settings, "subject": "departures-value", "path": "jvm"}
    made = rows.select(encode(functions.struct("carrier", "delay"), version="latest", **common).alias("value"))
    names = [
        rows.sparkSession.sql(f"SELECT air_encode({VALUE}, 'departures-value') FROM flights"),
        rows.sparkSession.sql(
            f"SELECT air_decode(air_encode({VALUE}, 'departures-value'), 'departures-value') FROM flights"
        ),
        rows.select(encode(functions.struct("carrier", "delay"), version="latest", **common)),
        made.select(decode("value", **common)),
        made.select(decode(functions.col("value"), **common)["value"]["carrier"]),
    ]

    call = "encode(struct(carrier, delay))"
    assert [
        [f"air_{call}"],
        [f"air_decode(air_{call})"],
        [f"air_{call}"],
        ["air_decode(value)"],
        ["air_decode(value).value.carrier"],
    ] == [one.columns for one in names]
    plan = str(made._jdf.queryExecution().optimizedPlan())  # type: ignore[operator]
    assert (
        f"strata_encode[departures-value?id={registry.get_version('departures-value').schema_id}&mode=FAILFAST]" in plan
    )
