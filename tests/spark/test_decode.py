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
FLIGHT_2 = _record(
    "Flight", ("carrier", "string"), ("delay", "long"), ("old", "string"), ("gate", ["null", "string"], None)
)
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
    """Every Avro type arrives as its Spark type, with its value, and Spark's own functions can read it."""
    schema, values = everything
    schema_id = registry.register("everything", json.dumps(schema)).schema_id
    frames = _frames(spark, [*(frame(schema_id, schema, value) for value in values), None])

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
    ] == [None if text is None else json.loads(text) for text in texts]
    assert '"money":-123456789012345678.90,"big":1.5000' in texts[0]


# name, schema, value, Spark type, value in Spark
WHOLE: list[tuple[str, Any, Any, str, Any]] = [
    ("string", "string", "text", "string", "text"),
    ("bytes", "bytes", None, "binary", bytearray(b"\1\2")),
    ("double", "double", float("inf"), "double", float("inf")),
    ("nullable int", ["null", "int"], None, "int", None),
    ("array", {"type": "array", "items": "int"}, [1, 2], "array<int>", [1, 2]),
    ("map", {"type": "map", "values": "long"}, {"a": 1}, "map<string,bigint>", {"a": 1}),
    ("enum", {"type": "enum", "name": "E", "symbols": ["A"]}, "A", "string", "A"),
    ("union", ["int", "string"], "a", "struct<member0:int,member1:string>", Row(member0=None, member1="a")),
]


@pytest.mark.usefixtures("each_path")
def test_top_level_types(spark: SparkSession, registry: RegistryClient, frame: MakeFrame) -> None:
    """A schema that is not a record becomes a column of its type; several columns can be decoded together."""
    frames, columns = {}, []
    for name, schema, value, _, _ in WHOLE:
        schema_id = registry.register(f"whole {name}", json.dumps(schema)).schema_id
        # Registry clients write top-level bytes without a length.
        bare = b"\0" + schema_id.to_bytes(4, "big") + b"\1\2"
        frames[name] = pa.array([bare if schema == "bytes" else frame(schema_id, schema, value)], pa.binary())
        column = functions.col(f"`{name}`")
        columns.append(decode(column, registry=registry.settings, schema_id=schema_id, mode="FAILFAST").alias(name))

    decoded = spark.createDataFrame(pa.table(frames)).select(*columns)

    assert [(name, kind) for name, _, _, kind, _ in WHOLE] == [
        (one.name, one.dataType.simpleString()) for one in decoded.schema
    ]
    assert {name: expected for name, *_, expected in WHOLE} == decoded.first().asDict()  # type: ignore[union-attr]


@pytest.mark.usefixtures("each_path")
def test_union_names(spark: SparkSession, registry: RegistryClient, frame: MakeFrame) -> None:
    """With `union_names="type"` the members of a union have the names of their types, in full where these clash."""
    one, other = (_record(f"{space}.Same", ("x", "int")) for space in ("a", "b"))
    schema = _record("Unions", ("u", ["null", "int", "string", {"type": "array", "items": "int"}, one, other]))
    schema_id = registry.register("union names", json.dumps(schema)).schema_id
    frames = _frames(spark, [frame(schema_id, schema, {"u": value}) for value in (5, "a", [1], None)])

    decoded = _decoded(frames, registry=registry.settings, schema_id=schema_id, mode="FAILFAST", union_names="type")

    assert ["struct<int:int,string:string,array:array<int>,a_Same:struct<x:int>,b_Same:struct<x:int>>"] == [
        field.dataType.simpleString() for field in decoded.select("decoded.u").schema
    ]
    rows = [
        row.u and {name: value for name, value in row.u.asDict().items() if value is not None}
        for row in decoded.select("decoded.u").collect()
    ]
    assert [{"int": 5}, {"string": "a"}, {"array": [1]}, None] == rows
    with pytest.raises(ValueError, match="union_names is 'x'; allowed are member, type"):
        decode("frame", registry=registry.settings, schema_id=schema_id, union_names="x")  # type: ignore[typeddict-item]


@pytest.mark.usefixtures("each_path")
def test_evolution(spark: SparkSession, registry: RegistryClient, frame: MakeFrame) -> None:
    """Rows of three writer schemas in one column are all read with one reader schema."""
    ids = [registry.register("flights", json.dumps(one)).schema_id for one in (FLIGHT_1, FLIGHT_2, FLIGHT_3)]
    first = frame(ids[0], FLIGHT_1, {"carrier": "UA", "delay": 2, "old": "x"})
    second = frame(ids[1], FLIGHT_2, {"carrier": "AA", "delay": 2**40, "old": "x", "gate": "B7"})
    third = frame(ids[2], FLIGHT_3, {"carrier": "B6", "delay": -1, "gate": None})
    frames = _frames(spark, [third, first, second, first])

    decoded = _decoded(frames, registry=registry.settings.urls[0], subject="flights", version=3, mode="FAILFAST")

    assert ["carrier", "delay", "gate"] == decoded.select("decoded.*").columns
    assert [("B6", -1, None), ("UA", 2, None), ("AA", 2**40, "B7"), ("UA", 2, None)] == [
        tuple(row) for row in decoded.select("decoded.*").collect()
    ]


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


DAMAGED: list[tuple[str, Callable[[bytes], bytes], str, bool]] = [
    ("wrong magic byte", lambda good: b"\x02" + good[1:], "wrong magic byte 0x02", False),
    ("glue", lambda good: b"\x03\0" + b"u" * 16 + good, "unknown Glue schema version", False),
    ("empty", lambda good: b"", "frame too short", False),
    ("too short", lambda good: good[:4], "frame too short", False),
    ("unknown id", lambda good: b"\0\x7f\xff\xff\xff" + good[5:], "unknown schema id", False),
    (
        "id beyond 31 bits",
        lambda good: b"\0\xff\xff\xff\xff" + good[5:],
        "schema id 4294967295 is outside 0 to 2147483647",
        False,
    ),
    ("truncated", lambda good: good[:-1], "truncated", True),
    ("header alone", lambda good: good[:5], "truncated", True),
    ("trailing bytes", lambda good: good + b"\0", "trailing bytes", True),
    ("invalid UTF-8", lambda good: good.replace(b"UA", b"\xc3\x28"), "invalid utf-8", True),
    ("negative length", lambda good: good[:5] + b"\x03" + good[6:], "negative length", True),
    ("union index", lambda good: good[:-4] + b"\x08" + good[-3:], "invalid index", True),
]
"""Name, damage to a frame, the reason, and whether its schema id is that of the good frame."""


@pytest.fixture
def damaged_flights(spark: SparkSession, registry: RegistryClient, frame: MakeFrame) -> tuple[DataFrame, int, bytes]:
    """Return good frames with a damaged one after each, the schema id, and the good frame."""
    schema_id = registry.register("damaged", json.dumps(FLIGHT_3)).schema_id
    good = frame(schema_id, FLIGHT_3, {"carrier": "UA", "delay": 1, "gate": "B7"})
    frames = [one for _, damage, _, _ in DAMAGED for one in (good, damage(good))]
    return _frames(spark, frames), schema_id, good


@pytest.mark.usefixtures("each_path")
def test_damaged_frames_in_deadletter(damaged_flights: tuple[DataFrame, int, bytes], registry: RegistryClient) -> None:
    """Each damaged frame has its reason, its id if it can be read and its bytes; its neighbours have their values."""
    frames, schema_id, good = damaged_flights

    rows = _decoded(frames, registry=registry.settings, subject="damaged").collect()

    assert [(Row(carrier="UA", delay=1, gate="B7"), None)] * len(DAMAGED) == [
        tuple(row["decoded"]) for row in rows[::2]
    ]
    assert [(name, None) for name, *_ in DAMAGED] == [
        (case[0], row["decoded"]["value"]) for case, row in zip(DAMAGED, rows[1::2], strict=True)
    ]
    unknown = {"unknown id": 2**31 - 1}
    expected = [
        (name, reason, schema_id if is_known else unknown.get(name), damage(good))
        for name, damage, reason, is_known in DAMAGED
    ]
    assert expected == [
        (case[0], error["reason"], error["schema_id"], bytes(error["frame"]))
        for case, error in zip(DAMAGED, (row["decoded"]["error"] for row in rows[1::2]), strict=True)
    ]


@pytest.mark.usefixtures("each_path")
def test_damaged_frames_in_permissive(damaged_flights: tuple[DataFrame, int, bytes], registry: RegistryClient) -> None:
    """Each damaged frame is NULL, and not a struct of nulls."""
    frames, _, _ = damaged_flights

    decoded = _decoded(frames, registry=registry.settings, subject="damaged", mode="PERMISSIVE")

    is_null = [row[0] for row in decoded.select(functions.col("decoded").isNull()).collect()]
    assert [False, True] * len(DAMAGED) == is_null


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


@pytest.mark.usefixtures("each_path")
def test_null_frames(spark: SparkSession, registry: RegistryClient) -> None:
    """A null frame, such as a tombstone, is a null value and no error."""
    decoded = _decoded(_frames(spark, [None, None]), registry=registry.settings, reader_schema=json.dumps(FLIGHT_1))

    assert [(None, None), (None, None)] == [tuple(row["decoded"]) for row in decoded.collect()]


@pytest.mark.usefixtures("each_path")
def test_columns(spark: SparkSession, registry: RegistryClient, frame: MakeFrame) -> None:
    """With `columns` the value has only those, in their order; the other fields need not even be decodable."""
    schema_id = registry.register("chosen", json.dumps(FLIGHT_1)).schema_id
    broken = frame(schema_id, FLIGHT_1, {"carrier": "UA", "delay": 7, "old": "AA"}).replace(b"UA", b"\xc3\x28")

    decoded = _decoded(
        _frames(spark, [broken]),
        registry=registry.settings,
        subject="chosen",
        columns=["old", "delay"],
        mode="FAILFAST",
    )

    assert [Row(old="AA", delay=7)] == [row["decoded"] for row in decoded.collect()]


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
