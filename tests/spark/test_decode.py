"""`decode` works in a Spark session, against a real registry, on every path that Spark offers."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PythonException
from pyspark.sql import Column, DataFrame, Row, SparkSession, functions

from strata.serdes.client import RegistryClient
from strata.spark_udfs import decode, install
from strata.spark_udfs.decoding.jvm_function import jvm_path
from strata.spark_udfs.decoding.paths import arrow_path, pandas_path
from strata.spark_udfs.decoding.plan import DecodePlan
from strata.spark_udfs.decoding.type_limits import UnsupportedSchema

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves them to the collector
]

MakeFrame = Callable[[int, Any, Any], bytes]

QUERY_ERRORS = (PythonException, AnalysisException, Py4JJavaError)
"""The errors of a failed query: from a Python worker, the analyser, or the executors' own code."""

PATH = "arrow" if hasattr(functions, "arrow_udf") else "pandas"
"""The path that this Spark chooses."""


def _record(name: str, *fields: tuple[Any, ...]) -> dict[str, Any]:
    """Return a record of fields (name, type) or (name, type, default)."""
    return {
        "type": "record",
        "name": name,
        "fields": [dict(zip(("name", "type", "default"), one, strict=False)) for one in fields],
    }


FLIGHT_1 = _record("Flight", ("carrier", "string"), ("delay", "int"), ("old", "string"))
FLIGHT_3 = _record("Flight", ("carrier", "string"), ("delay", "long"), ("gate", ["null", "string"], None))


def _installed(plan: DecodePlan, columns: Sequence[Column]) -> Column:
    """Return the JVM path, installed into the session on first use."""
    session = SparkSession.getActiveSession()
    assert session
    install(session, registry=plan.registry)
    return jvm_path(plan, columns)


@pytest.fixture(
    params=[_installed, arrow_path, pytest.param(pandas_path, marks=pytest.mark.slow)], ids=["jvm", "arrow", "pandas"]
)
def each_path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the test on each path, whichever this Spark would choose."""
    if request.param is arrow_path and not hasattr(functions, "arrow_udf"):
        pytest.skip("this Spark has no arrow_udf")
    if request.param is pandas_path:
        request.getfixturevalue("pandas_of_old")
    monkeypatch.setattr("strata.spark_udfs.decoding.columns.choose_path", lambda *_: request.param)


def _frames(spark: SparkSession, frames: list[bytes | None]) -> DataFrame:
    """Return a data frame as from Kafka.

    Spark would decode local rows while it plans the query; `coalesce` makes them rows of a task.
    """
    size = len(frames)
    columns = {
        "topic": pa.array(["flights"] * size),
        "partition": pa.array([0] * size),
        "offset": pa.array(range(size)),
        "value": pa.array(frames, pa.binary()),
    }
    return spark.createDataFrame(pa.table(columns)).coalesce(1)


def _decoded(df: DataFrame, **options: Any) -> DataFrame:
    return df.select("offset", decode("value", **options).alias("decoded"))


IN_SPARK = {
    "i": -1,
    "l": 2**40,
    "f": 0.5,
    "d": "NaN",
    "t": True,
    "s": "zürich",
    "b": "AP8=",
    "e": "B",
    "x": "eHk=",
    "money": -123456789012345678.90,
    "big": 1.5,
    "day": "1900-01-01",
    "ms": 1,
    "us": 2,
    "at": "0001-01-01T00:00:00.000000Z",
    "at_us": "2026-03-01T12:00:00.000005Z",
    "at_ns": 3,
    "local": "2500-01-01T00:00:00.000000",
    "uuid": "a-b",
    "il": 5,
}
"""The `to_json` text of the fields that both have."""
JSON_FORMATS = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


@pytest.mark.usefixtures("each_path")
def test_every_type(spark: SparkSession, registry: RegistryClient, frame: MakeFrame, everything: Any) -> None:
    """Every Avro type arrives as its Spark type, with its value, and Spark's own functions can read it.

    In mode PERMISSIVE, a damaged frame is null, and not a struct of nulls; so is a null.
    """
    schema, values = everything
    schema_id = registry.register("everything", json.dumps(schema)).schema_id
    good = [frame(schema_id, schema, value) for value in values]
    frames = _frames(spark, [*good, None, good[0][:-1]])

    decoded = _decoded(frames, registry=registry.settings, subject="everything", mode="PERMISSIVE")

    assert (
        "struct<i:int,l:bigint,f:float,d:double,t:boolean,s:string,b:binary,e:string,x:binary,opt:string,"
        "money:decimal(20,2),big:decimal(38,4),day:date,ms:int,us:bigint,at:timestamp,at_us:timestamp,at_ns:bigint,"
        "local:timestamp_ntz,uuid:string,il:bigint,u:struct<member0:int,member1:string,member2:binary>,"
        "tags:array<string>,by:map<string,struct<x:double,y:double>>,points:array<struct<x:double,y:double>>,"
        "nested:struct<at:timestamp>>"
    ) == decoded.schema["decoded"].dataType.simpleString()
    texts = [row[0] for row in decoded.select(functions.to_json("decoded", JSON_FORMATS)).collect()]
    points = {"by": {"k": {"x": "Infinity"}}, "points": [{"x": 1.0, "y": 2.0}]}
    assert [
        IN_SPARK | {"u": {"member1": "text"}, "tags": ["a", None], **points},
        IN_SPARK | {"opt": "o", "tags": [], "by": {}, "points": [], "nested": {"at": "9999-12-31T00:00:00.000000Z"}},
        None,
        None,
    ] == [None if text is None else json.loads(text) for text in texts]
    assert '"money":-123456789012345678.90,"big":1.5000' in texts[0]


@pytest.mark.usefixtures("each_path")
def test_equal_values_of_two_writers(spark: SparkSession, registry: RegistryClient, frame: MakeFrame) -> None:
    """Equal structs group as one, even if their writers had the fields in another order."""
    names = {"a": "first", "b": "second", "c": "third"}
    writers = [_record("Names", *((name, "string") for name in order)) for order in ("abc", "cab", "bca")]
    ids = [registry.register("names", json.dumps(one)).schema_id for one in writers]
    frames = _frames(spark, [frame(one, writer, names) for one, writer in zip(ids, writers, strict=True)])
    decoded = _decoded(frames, registry=registry.settings.urls[0], subject="names", version=1, mode="FAILFAST")

    grouped = decoded.groupBy("decoded").count().collect()

    assert [(names, 3)] == [(row["decoded"].asDict(), row["count"]) for row in grouped]


@pytest.mark.usefixtures("each_path")
def test_damaged_frame_in_failfast(spark: SparkSession, registry: RegistryClient, frame: MakeFrame) -> None:
    """The query fails with an error that names the frame's origin, its id, the reason and the field."""
    schema_id = registry.register("failing", json.dumps(FLIGHT_3)).schema_id
    good = frame(schema_id, FLIGHT_3, {"carrier": "UA", "delay": 1, "gate": "B7"})
    origin = ["topic", "partition", "offset"]

    decoded = _decoded(
        _frames(spark, [good, good, good[:-1]]),
        registry=registry.settings,
        schema_id=schema_id,
        mode="FAILFAST",
        origin=origin,
    )

    expected = rf"\(schema id {schema_id}, topic flights, partition 0, offset 2\): truncated \(at field gate"
    with pytest.raises(QUERY_ERRORS, match=expected):
        decoded.collect()


def test_recursive_schema_by_columns(spark: SparkSession, registry: RegistryClient, frame: MakeFrame) -> None:
    """A schema that Spark cannot express is refused before anything runs; without the field at fault it decodes."""
    node = _record("Node", ("value", "int"), ("next", ["null", "Node"], None))
    schema_id = registry.register("nodes", json.dumps(node)).schema_id
    frames = _frames(spark, [frame(schema_id, node, {"value": 1, "next": {"value": 2, "next": None}})])

    with pytest.raises(UnsupportedSchema, match="at next: the record Node contains itself"):
        decode("value", registry=registry.settings, subject="nodes")

    decoded = _decoded(frames, registry=registry.settings, subject="nodes", columns=["value"], mode="PERMISSIVE")
    assert [Row(value=1)] == [row["decoded"] for row in decoded.collect()]


def test_explain_tells_the_path_and_no_secret(
    spark: SparkSession, registry: RegistryClient, capsys: pytest.CaptureFixture[str]
) -> None:
    """The query's plan names the function of the path, and shows neither password nor user."""
    url = registry.settings.urls[0].replace("http://", "http://ann:s3cret@")
    decoded = _decoded(_frames(spark, [None]), registry=url, reader_schema=json.dumps(FLIGHT_1))

    decoded.explain(extended=True)

    shown = capsys.readouterr().out
    assert f"decode_{PATH}(" in shown
    assert "s3cret" not in shown
    assert "ann" not in shown


def test_registry_that_is_down(spark: SparkSession, scripted_registry: Any, frame: MakeFrame) -> None:
    """An unreachable registry fails the query and makes no dead letters."""
    frames = _frames(spark, [frame(1, FLIGHT_1, {"carrier": "UA", "delay": 7, "old": "AA"})])
    scripted_registry.status = 503
    impatient = RegistryClient(scripted_registry.url, retries=1, backoff=0.01).settings

    decoded = _decoded(frames, registry=impatient, reader_schema=json.dumps(FLIGHT_1))

    with pytest.raises(PythonException, match="schema id 1 could not be looked up: the registry keeps answering"):
        decoded.collect()


@pytest.mark.usefixtures("each_path")
def test_text_column(spark: SparkSession, registry: RegistryClient) -> None:
    """A column that is not binary fails the query with an error that names its type."""
    df = spark.range(1).selectExpr("'a' AS value", "id AS offset")

    with pytest.raises(QUERY_ERRORS, match="expected a binary column of frames, got string"):
        _decoded(df, registry=registry.settings, reader_schema='"int"').collect()


@pytest.mark.usefixtures("each_path")
def test_column_of_nothing_but_nulls(spark: SparkSession, registry: RegistryClient) -> None:
    """A column of nulls, which has no type, gives nulls."""
    df = spark.range(2).select("id", functions.lit(None).alias("value")).coalesce(1)

    decoded = df.select(decode("value", registry=registry.settings, reader_schema='"int"', mode="FAILFAST"))

    assert [(None,), (None,)] == [tuple(row) for row in decoded.collect()]
