"""Both paths encode the same rows alike in one Spark job: the bytes of `serdes`, or the same refusal."""

import json
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from random import Random
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, Row, SparkSession, functions
from pyspark.sql.pandas.types import to_arrow_type

from harness.avro_cases import Case
from harness.payload_columns import proto
from strata.serdes.avro import AvroSerializer
from strata.serdes.client import RegistryClient, Schema
from strata.serdes.errors import EncodeError
from strata.serdes.model import JSON
from strata.spark_udfs import decode, encode, encoder
from strata.spark_udfs.decoding.jvm_function import NotInstalled
from strata.spark_udfs.encoding.row_encoder import RowEncoder

pytestmark = [
    pytest.mark.spark,
    pytest.mark.usefixtures("installed", "generated_code"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves them to the collector
    pytest.mark.skipif(not hasattr(functions, "arrow_udf"), reason="this Spark has no arrow_udf"),
]

Families = Callable[[Random, int, int], list[list[Case]]]
PATHS = ("jvm", "python")
NAIVE = datetime(1969, 12, 31, 23, 59, 59, 999_000)  # noqa: DTZ001 - a local timestamp has no zone
INSTANT = datetime(2026, 3, 1, 12, 30, 0, 5000, UTC)


class Given(NamedTuple):
    """A value of the schema's field `f`, as Spark's column holds it."""

    name: str
    schema: Any
    kind: pa.DataType
    value: Any


def _logical(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


def _decimal(precision: int, scale: int, **more: Any) -> dict[str, Any]:
    return _logical("bytes", "decimal", precision=precision, scale=scale) | more


INSTANTS, LOCALS = pa.timestamp("us", "UTC"), pa.timestamp("us")
ENUM = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
POINT = {"type": "record", "name": "P", "fields": [{"name": "x", "type": "int"}, {"name": "y", "type": "string"}]}
POINTS = pa.struct([("y", pa.string()), ("x", pa.int32())])
FIXED_3, FIXED_9 = {"type": "fixed", "name": "X", "size": 3}, {"type": "fixed", "name": "Y", "size": 9}
AVRO: list[Given] = [
    *(Given(f"int {n}", "int", pa.int32(), n) for n in (0, -1, 63, 64, -(2**31), 2**31 - 1)),
    *(Given(f"long {n}", "long", pa.int64(), n) for n in (2**62, -(2**63), 2**63 - 1)),
    Given("int from a byte", "int", pa.int8(), -128),
    Given("long from a short", "long", pa.int16(), 300),
    Given("int from a long", "int", pa.int64(), 2**31 - 1),
    Given("float", "float", pa.float32(), -0.5),
    Given("double", "double", pa.float64(), 0.1),
    Given("minus zero", "double", pa.float64(), -0.0),
    Given("infinity", "float", pa.float32(), float("-inf")),
    Given("double from a float", "double", pa.float32(), 0.5),
    Given("double from an int", "double", pa.int32(), 3),
    Given("boolean", "boolean", pa.bool_(), True),
    Given("string", "string", pa.string(), "zürich \U0001f68b"),
    Given("no string", "string", pa.string(), ""),
    Given("long string", "string", pa.string(), "x" * 5000),
    Given("bytes", "bytes", pa.binary(), b"\0\xff"),
    Given("fixed", FIXED_3, pa.binary(), b"abc"),
    Given("enum", ENUM, pa.string(), "B"),
    Given("uuid", _logical("string", "uuid"), pa.string(), "00000000-0000-0000-0000-00000000000a"),
    *(
        Given(f"decimal {text}", _decimal(18, 2), pa.decimal128(18, 2), Decimal(text))
        for text in ("0.00", "1.27", "1.28", "-1.29", "9999999999999999.99", "-9999999999999999.99")
    ),
    Given("wide decimal", _decimal(38, 4), pa.decimal128(38, 4), Decimal("-1234567890123456789012345678901234.5678")),
    Given("decimal of another scale", _decimal(10, 3), pa.decimal128(5, 1), Decimal("12.5")),
    Given("fixed decimal", FIXED_9 | _decimal(9, 2, type="fixed"), pa.decimal128(9, 2), Decimal("-1.29")),
    Given("wide fixed decimal", FIXED_9 | _decimal(20, 0, type="fixed"), pa.decimal128(20, 0), Decimal(-(10**19))),
    Given("date", _logical("int", "date"), pa.date32(), date(1900, 1, 1)),
    Given("timestamp-millis", _logical("long", "timestamp-millis"), INSTANTS, INSTANT),
    Given("timestamp-micros", _logical("long", "timestamp-micros"), INSTANTS, datetime(1, 1, 1, tzinfo=UTC)),
    Given("local-timestamp-millis", _logical("long", "local-timestamp-millis"), LOCALS, NAIVE),
    Given("local-timestamp-micros", _logical("long", "local-timestamp-micros"), LOCALS, NAIVE),
    Given("null", ["null", "string"], pa.string(), None),
    Given("not null", ["null", "string"], pa.string(), "a"),
    Given("null last", ["string", "null"], pa.string(), None),
    Given("only null", "null", pa.int32(), None),
    Given("void", ["null", "int"], pa.null(), None),
    Given("int or long", ["null", "int", "long"], pa.int64(), 2**40),
    Given("array", {"type": "array", "items": ["null", "int"]}, pa.list_(pa.int32()), [1, None, -3]),
    Given("no items", {"type": "array", "items": "int"}, pa.list_(pa.int32()), []),
    Given("record", POINT, POINTS, {"x": 1, "y": "b"}),
    Given("records", {"type": "array", "items": POINT}, pa.list_(POINTS), [{"x": 1, "y": "b"}, {"x": 2, "y": ""}]),
    Given("optional record", ["null", POINT], POINTS, None),
]
MAPS = pa.map_(pa.string(), pa.int32())
UNION = ["null", "int", {"type": "array", "items": "string"}]
MEMBERS = pa.struct([("member1", pa.list_(pa.string())), ("member0", pa.int32())])
# what Python's types cannot hold in the same form, or the serializer writes in more bytes
ONLY_SPARK: list[Given] = [
    Given("decimal -1.28", _decimal(18, 2), pa.decimal128(18, 2), Decimal("-1.28")),
    Given("int from a double", "int", pa.float64(), 7.0),
    Given("long from a decimal", "long", pa.decimal128(20, 2), Decimal("7.00")),
    Given("decimal from an int", _decimal(12, 2), pa.int32(), 7),
    Given("map", {"type": "map", "values": ["null", "int"]}, MAPS, [("b", 1), ("a", None)]),
    Given("first member", UNION, MEMBERS, {"member0": 5, "member1": None}),
    Given("second member", UNION, MEMBERS, {"member0": None, "member1": ["a"]}),
    Given("no member", UNION, MEMBERS, None),
    Given("missing member", UNION, pa.struct([("member1", pa.list_(pa.string()))]), {"member1": []}),
    Given("NaN", "double", pa.float64(), float("nan")),
    Given("time-millis from a timestamp", _logical("int", "time-millis"), LOCALS, NAIVE),
    Given("time-micros from a timestamp", _logical("long", "time-micros"), LOCALS, NAIVE),
    Given("time-millis", _logical("int", "time-millis"), pa.int32(), 86_399_999),
    Given("timestamp-nanos", _logical("long", "timestamp-nanos"), INSTANTS, INSTANT),
    Given("instant from a date", _logical("long", "timestamp-millis"), pa.date32(), date(1900, 1, 1)),
    Given("date from a timestamp", _logical("int", "date"), LOCALS, NAIVE),
    Given("long from an interval", "long", pa.duration("us"), 1500),
    Given("string from bytes", "string", pa.binary(), b"a"),
    Given("bytes from a string", "bytes", pa.string(), "zürich"),
]
NO_VALUE, NOT_NULL, RANGE = "expected a value, got null", "expected null, got a value", "a value is out of range"
NO_SYMBOL, ONE_MEMBER = "expected a symbol of the enum", "expected one member of the union, got"
# field, reason, path
MISFITS: list[tuple[Given, str, str]] = [
    (Given("null", "int", pa.int32(), None), NO_VALUE, "f"),
    (Given("void", "int", pa.null(), None), NO_VALUE, "f"),
    (Given("null item", {"type": "array", "items": "int"}, pa.list_(pa.int32()), [1, None]), NO_VALUE, "f[]"),
    (Given("null in a map", {"type": "map", "values": "int"}, MAPS, [("a", None)]), NO_VALUE, "f{}"),
    (Given("null in a record", POINT, POINTS, {"x": None, "y": "a"}), NO_VALUE, "f.x"),
    (Given("no null", "null", pa.int32(), 1), NOT_NULL, "f"),
    (Given("long", "int", pa.int64(), 2**31), "a value does not fit int32", "f"),
    (Given("fraction", "int", pa.float64(), 1.5), "a value does not fit int32", "f"),
    (Given("NaN", "long", pa.float64(), float("nan")), "a value does not fit int64", "f"),
    (Given("2**63", "long", pa.float64(), 2.0**63), "a value does not fit int64", "f"),
    (Given("cents", "long", pa.decimal128(9, 2), Decimal("1.50")), "a value does not fit int64", "f"),
    (Given("2**53 + 1", "double", pa.int64(), 2**53 + 1), "a value does not fit double", "f"),
    (Given("2**24 + 1", "float", pa.int32(), 2**24 + 1), "a value does not fit float", "f"),
    (Given("symbol", ENUM, pa.string(), "C"), NO_SYMBOL, "f"),
    (Given("optional symbol", ["null", ENUM], pa.string(), "C"), NO_SYMBOL, "f"),
    (Given("no symbol", ENUM, pa.string(), None), NO_SYMBOL, "f"),
    (Given("short fixed", FIXED_3, pa.binary(), b"ab"), "expected bytes of another size", "f"),
    (
        Given("scale", _decimal(5, 1), pa.decimal128(5, 2), Decimal("1.25")),
        "a value does not fit decimal128(5, 1)",
        "f",
    ),
    (
        Given("digits", _decimal(4, 2), pa.decimal128(9, 2), Decimal(100)),
        "a value does not fit decimal128(4, 2)",
        "f",
    ),
    (Given("not UTF-8", "string", pa.binary(), b"\xff"), "a value does not fit string", "f"),
    (
        Given("micros", _logical("long", "timestamp-millis"), LOCALS, datetime(2026, 3, 1, 0, 0, 0, 1)),  # noqa: DTZ001
        "a value does not fit timestamp[ms, tz=UTC]",
        "f",
    ),
    (Given("year 10000", _logical("int", "date"), pa.int32(), 2_932_897), RANGE, "f"),
    (Given("negative time", _logical("int", "time-millis"), pa.int32(), -1), RANGE, "f"),
    (Given("no members", UNION, MEMBERS, {"member0": None, "member1": None}), f"{ONE_MEMBER} none", "f"),
    (Given("two members", UNION, MEMBERS, {"member0": 1, "member1": []}), f"{ONE_MEMBER} several", "f"),
    (Given("in a member", UNION, MEMBERS, {"member0": None, "member1": [None]}), NO_VALUE, "f|1[]"),
    (
        Given(
            "what cannot be converted goes first", POINT, pa.struct([("x", pa.int32()), ("y", pa.binary())]), None
        )._replace(value={"x": None, "y": b"\xff"}),
        "a value does not fit string",
        "f.y",
    ),
]
# schema, type, message
MISFIT_COLUMNS: list[tuple[Any, str, str]] = [
    ("int", "f string", r"expected a column of int32, got string \(at field f\)"),
    ("boolean", "f int", r"expected a column of bool, got int32 \(at field f\)"),
    ("float", "f double", r"expected a column of float, got double \(at field f\)"),
    ("string", "f array<int>", r"expected a column of string, got list<element: int32> \(at field f\)"),
    (_decimal(5, 2), "f int", r"expected a column of decimal128\(5, 2\), got int32 \(at field f\)"),
    (POINT, "f int", r"expected a struct, got int32 \(at field f\)"),
    (POINT, "f struct<x: int>", r"no such column, and null is not allowed \(at field f.y\)"),
    (POINT, "f struct<x: int, y: string, zebra: int>", r"the schema has no such field \(at field f.zebra\)"),
    (
        {"type": "array", "items": "int"},
        "f map<string, int>",
        r"expected a list, got map<string, int32> \(at field f\)",
    ),
    ({"type": "map", "values": "int"}, "f array<int>", r"expected a map, got list<element: int32> \(at field f\)"),
    ({"type": "map", "values": "int"}, "f map<int, int>", r"expected a column of string, got int32 \(at field f\{\}\)"),
    ("long", "f timestamp, g date", r"the schema has no such field \(at field g\)"),
]


def _record(field: Any) -> str:
    return json.dumps({"type": "record", "name": "R", "fields": [{"name": "f", "type": field}]})


def _rows(spark: SparkSession, columns: dict[str, pa.Array]) -> DataFrame:
    """Return a data frame in which each column is a struct of the field f."""
    structs = [pa.StructArray.from_arrays([one], names=["f"]) for one in columns.values()]
    return spark.createDataFrame(pa.table(structs, names=list(columns))).coalesce(1)


def _encoded(df: DataFrame, options: dict[str, dict[str, Any]]) -> list[dict[str, Row]]:
    """Return what each path makes of each column, by path and name of the column."""
    made = [
        encode(name, path=path, **given).alias(f"{path} {name}")  # type: ignore[arg-type]
        for name, given in options.items()
        for path in PATHS
    ]
    [row] = df.select(*made).collect()
    return [{name: row[f"{path} {name}"] for name in options} for path in PATHS]


def _letters(spark: SparkSession, client: RegistryClient, table: Sequence[Given]) -> list[dict[str, Row]]:
    """Return frame and error of each case on each path."""
    options = {
        f"c{place}": {
            "registry": client.settings,
            "subject": f"both paths {place}",
            "schema": _record(one.schema),
            "mode": "DEADLETTER",
        }
        for place, one in enumerate(table)
    }
    columns = {f"c{place}": pa.array([one.value], one.kind) for place, one in enumerate(table)}
    made = _encoded(_rows(spark, columns), options)
    return [{one.name: path[f"c{place}"] for place, one in enumerate(table)} for path in made]


def test_values_of_avro(spark: SparkSession, client: RegistryClient) -> None:
    """Both paths write the bytes of the serializer."""
    jvm, python = _letters(spark, client, [*AVRO, *ONLY_SPARK])

    assert [] == [name for name, one in jvm.items() if one["error"] is not None]
    assert python == jvm
    frames = {
        one.name: AvroSerializer(client, _record(one.schema))({"f": one.value}, topic="both-paths") for one in AVRO
    }
    assert frames == {one.name: bytes(jvm[one.name]["frame"]) for one in AVRO}


def test_values_that_do_not_fit_avro(spark: SparkSession, client: RegistryClient) -> None:
    """Each refusal has the same reason and path on both paths."""
    jvm, python = _letters(spark, client, [one for one, *_ in MISFITS])

    expected = {one.name: Row(frame=None, error=Row(reason=reason, path=path)) for one, reason, path in MISFITS}
    assert expected == jvm
    assert expected == python


@pytest.mark.parametrize(("schema", "kind", "message"), MISFIT_COLUMNS)
def test_columns_that_do_not_fit_avro(
    spark: SparkSession, client: RegistryClient, schema: Any, kind: str, message: str
) -> None:
    """A column of another type is an error in every mode: of the analyzer in the JVM, of the worker in Python."""
    options: dict[str, Any] = {
        "registry": client.settings,
        "schema_id": client.register("both columns", _record(schema)).schema_id,
        "mode": "PERMISSIVE",
    }
    df = spark.createDataFrame([], f"r struct<{kind}>")

    with pytest.raises(AnalysisException, match=message):
        df.select(encode("r", path="jvm", **options))
    with pytest.raises(EncodeError, match=message):
        RowEncoder(encoder(**options).plan).encode(pa.nulls(2, to_arrow_type(df.schema["r"].dataType)))


def test_a_column_that_does_not_fit_fails_the_task(spark: SparkSession, client: RegistryClient) -> None:
    """The error of a worker is that of the query."""
    df = spark.createDataFrame([(("x",),)], "r struct<f: string>").coalesce(1)
    schema_id = client.register("both columns", _record("int")).schema_id

    with pytest.raises(PySparkException, match=r"expected a column of int32, got string \(at field f\)"):
        df.select(encode("r", path="python", registry=client.settings, schema_id=schema_id)).collect()


@pytest.mark.parametrize("path", PATHS)
def test_modes(spark: SparkSession, client: RegistryClient, path: Any) -> None:
    """A row that does not fit is null, or an error that names the row; a null row is a null frame in every mode."""
    df = spark.createDataFrame([(0, (1,)), (1, (None,)), (2, None)], "offset int, r struct<f: int>").coalesce(1)
    schema_id = client.register("both modes", _record("int")).schema_id
    frame = bytearray(b"\0" + schema_id.to_bytes(4, "big") + b"\x02")

    def encoded(mode: Any) -> list[Any]:
        column = encode("r", registry=client.settings, schema_id=schema_id, path=path, mode=mode, origin=["offset"])
        return [row["e"] for row in df.select(column.alias("e")).collect()]

    assert [frame, None, None] == encoded("PERMISSIVE")
    refused = Row(frame=None, error=Row(reason=NO_VALUE, path="f"))
    assert [Row(frame=frame, error=None), refused, Row(frame=None, error=None)] == encoded("DEADLETTER")
    with pytest.raises(
        (PySparkException, Py4JJavaError),
        match=r"a row cannot be encoded \(offset 1\): expected a value, got null \(at",
    ):
        encoded("FAILFAST")


def test_single_values(spark: SparkSession, client: RegistryClient) -> None:
    """A column that is not a struct is written as a schema that is not a record; bytes as a whole have no length."""
    df = spark.sql("SELECT 5 AS number, array('a') AS items, X'00FF' AS data, 1.5BD AS money").coalesce(1)
    schemas = {"number": "int", "items": {"type": "array", "items": "string"}, "data": "bytes", "money": _decimal(2, 1)}
    options = {
        name: {"registry": client.settings, "subject": f"single {name}", "schema": json.dumps(one)}
        for name, one in schemas.items()
    }

    jvm, python = _encoded(df, options)

    assert {"number": b"\x0a", "items": b"\x02\x02a\0", "data": b"\0\xff", "money": b"\x0f"} == {
        name: bytes(frame)[5:] for name, frame in jvm.items()
    }
    assert python == jvm


def test_timestamps_without_zone(spark: SparkSession, client: RegistryClient) -> None:
    """A timestamp without a zone is written as if it were in UTC, in JSON without Z."""
    df = spark.sql("SELECT named_struct('f', timestamp_ntz'1969-12-31 23:59:59.000005') AS r").coalesce(1)
    local = {"name": "f", "type": {"type": "long", "logicalType": "local-timestamp-micros"}}
    time = 'import "google/protobuf/timestamp.proto"; message M { google.protobuf.Timestamp f = 1; }'
    schemas = {
        Schema(json.dumps({"type": "record", "name": "R", "fields": [local]})): "f5887a",
        proto(f'syntax = "proto3"; {time}'): "000a0e08ffffffffffffffffff01108827",
        Schema("{}", JSON): b'{"f":"1969-12-31T23:59:59.000005"}'.hex(),
    }
    for schema, payload in schemas.items():
        schema_id = client.register("without zone", schema).schema_id
        options: dict[str, Any] = {"registry": client.settings, "schema_id": schema_id, "validate": False}
        [row] = df.select(*(encode("r", path=path, **options).alias(path) for path in PATHS)).collect()
        assert (payload, payload) == (bytes(row["jvm"])[5:].hex(), bytes(row["python"])[5:].hex())


@pytest.mark.parametrize(("schemas", "each"), [(8, 40), pytest.param(50, 100, marks=pytest.mark.slow)])
def test_random_rows_of_avro(
    spark: SparkSession, client: RegistryClient, families: Families, schemas: int, each: int
) -> None:
    """Both paths write random rows to the same frames, which decode to the same rows."""
    written, read = 0, 0
    for family in families(Random(19), schemas, each):
        schema_id = client.register("random rows", family[0].reader).schema_id
        frames = [
            b"\0" + client.register("random writers", one.writer).schema_id.to_bytes(4, "big") + one.payload
            for one in family
        ]
        settings = client.settings
        df = spark.createDataFrame(pa.table({"value": pa.array(frames, pa.binary())})).coalesce(1)
        row = decode("value", registry=settings, schema_id=schema_id, mode="PERMISSIVE")
        options: dict[str, Any] = {"registry": settings, "schema_id": schema_id, "mode": "DEADLETTER"}
        made = df.select(row.alias("row")).select(
            "row", *(encode("row", path=path, **options).alias(path) for path in PATHS)
        )
        again = decode("jvm.frame", registry=settings, schema_id=schema_id, mode="FAILFAST")
        texts = made.select("*", again.alias("again")).select(
            "jvm", "python", *(functions.col(name).cast("string") for name in ("row", "again"))
        )
        for one in texts.collect():
            assert one["python"] == one["jvm"]
            assert one["again"] == (one["row"] if one["jvm"]["frame"] is not None else None)
            written += one["jvm"]["frame"] is not None
            read += one["row"] is not None
    assert written > read / 2 > schemas


def test_not_installed(spark: SparkSession) -> None:
    """The JVM path is refused before anything is registered if `install` was not called for the registry."""
    with RegistryClient("http://127.0.0.1:1") as elsewhere:
        df = spark.range(1)
        with pytest.raises(NotInstalled, match="call strata"):
            df.select(encode("id", registry=elsewhere.settings, schema_id=1, path="jvm"))
