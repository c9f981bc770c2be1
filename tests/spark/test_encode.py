"""Columns are encoded to frames of the three formats: schemas, values, modes, framings."""

import io
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PythonException
from pyspark.sql import DataFrame, Row, SparkSession, functions
from pyspark.sql.types import ArrayType, IntegerType, StringType, StructField, StructType

from strata.serdes.avro import AvroDeserializer
from strata.serdes.client import RegistryClient, Schema
from strata.serdes.errors import EncodeError
from strata.serdes.model import JSON, PROTOBUF, Reference
from strata.spark_udfs import decode, encode, encoder, split_dead_letters
from strata.spark_udfs.encoding.row_encoder import RowEncoder, RowRefused

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves them to the collector
]

in_spark = pytest.mark.skipif(not hasattr(functions, "arrow_udf"), reason="this Spark has no arrow_udf")


def _frames(registry: RegistryClient, values: pa.Array, **options: Any) -> list[Any]:
    """Return a worker's frames of an array."""
    plan = encoder(registry=registry.settings, **options).plan
    made: list[Any] = RowEncoder(plan).encode(values).to_pylist()
    return made


def _avro(name: str, *fields: tuple[Any, ...]) -> str:
    """Return a record of fields (name, type) or (name, type, default)."""
    made = [dict(zip(("name", "type", "default"), one, strict=False)) for one in fields]
    return json.dumps({"type": "record", "name": name, "fields": made})


@pytest.fixture(params=[pytest.param("column", marks=in_spark), "data frame"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run the test with the column that `encode` returns, and over a data frame, as on Spark 4.0."""
    if request.param == "data frame":
        monkeypatch.delattr(functions, "arrow_udf", raising=False)
    return str(request.param)


def _encoded(
    df: DataFrame, name: str, column: Any, *, way: str, origin: Sequence[str] = (), **options: Any
) -> DataFrame:
    """Return the data frame with a column of frames, by Python workers."""
    options["path"] = "python"
    if way == "column":
        return df.withColumn(name, encode(column, origin=origin, **options))
    return encoder(**options).with_column(df, name, column, origin=origin)


def test_every_type_of_avro(
    spark: SparkSession, registry: RegistryClient, frame: Any, everything: Any, way: str
) -> None:
    """Decoded values are encoded to frames that fastavro reads as the first values."""
    schema, values = everything
    schema_id = registry.register("encode everything", json.dumps(schema)).schema_id
    frames = pa.array([*(frame(schema_id, schema, value) for value in values), None], pa.binary())
    df = spark.createDataFrame(pa.table({"value": frames})).coalesce(1)
    decoded = df.select(decode("value", registry=registry.settings, schema_id=schema_id, mode="FAILFAST").alias("d"))

    made = _encoded(decoded, "value", "d", way=way, registry=registry.settings, schema_id=schema_id)
    encoded = made.select("value").collect()

    assert [one[:5] if one else None for one in frames.to_pylist()] == [
        row["value"] and bytes(row["value"][:5]) for row in encoded
    ]
    # fastavro accepts only well-formed uuids
    parsed = fastavro.parse_schema(json.loads(json.dumps(schema).replace('"uuid"}', '"none"}')))
    read = [fastavro.schemaless_reader(io.BytesIO(row["value"][5:]), parsed, None) for row in encoded[:-1]]
    sent = [fastavro.schemaless_reader(io.BytesIO(one[5:]), parsed, None) for one in frames.to_pylist()[:-1]]
    assert repr(sent) == repr(read)


NUMBER = _avro("Number", ("n", "int"), ("label", ["null", "string"], None))
JSON_NUMBER = json.dumps(
    {
        "type": "object",
        "properties": {"n": {"type": "integer", "maximum": 100}, "label": {"type": "string"}},
        "required": ["n"],
    }
)
PROTO_NUMBER = 'syntax = "proto3"; message Number { optional int32 n = 1; optional string label = 2; }'
MISFITS: list[tuple[str, str, pa.DataType, list[Any], list[tuple[int, str, str]]]] = [
    (
        "AVRO",
        NUMBER,
        pa.int64(),
        [1, 2**31, None, 2],
        [
            (1, "a value does not fit int32", "n"),
            (2, "expected a value, got null", "n"),
        ],
    ),
    (
        "JSON",
        JSON_NUMBER,
        pa.int64(),
        [1, 101, None, 2],
        [
            (1, "expected a number of at most 100, got a larger one (rule properties/n/maximum)", "n"),
            (2, "expected an integer, got null (rule properties/n/type)", "n"),
        ],
    ),
    ("PROTOBUF", PROTO_NUMBER, pa.int64(), [1, 2**31, 3, 2], [(1, "out of range", "n")]),
]
"""Format, schema, type of n, its values, and row, reason and path of those that do not fit."""


@pytest.mark.parametrize(("kind", "schema", "arrow", "numbers", "misfits"), MISFITS, ids=["AVRO", "JSON", "PROTOBUF"])
def test_modes(
    registry: RegistryClient, kind: str, schema: str, arrow: Any, numbers: list[Any], misfits: list[Any]
) -> None:
    """A row that does not fit is null, a dead letter with reason and path, or an error; its neighbours are kept."""
    rows = pa.StructArray.from_arrays([pa.array(numbers, arrow), pa.array(["a", "b", "c", "d"])], names=["n", "label"])
    options: dict[str, Any] = {"subject": f"modes {kind}", "schema": schema, "format": kind}
    bad = [row for row, _, _ in misfits]

    permissive = _frames(registry, rows, mode="PERMISSIVE", **options)
    letters = _frames(registry, rows, mode="DEADLETTER", **options)

    assert bad == [row for row, one in enumerate(permissive) if one is None]
    assert permissive == [one["frame"] for one in letters]
    assert misfits == [
        (row, one["error"]["reason"], one["error"]["path"]) for row, one in enumerate(letters) if one["error"]
    ]
    plan = replace(encoder(registry=registry.settings, **options).plan, origin=("offset",))
    with pytest.raises(RowRefused, match=r"a row cannot be encoded \(offset 11\): .*\(at field n\)"):
        RowEncoder(plan).encode(rows, [pa.array([10, 11, 12, 13])])


def test_rows_that_do_not_fit_among_many(registry: RegistryClient) -> None:
    """Rows that do not fit are refused wherever they are and whichever column is wrong, and no others."""
    count = 1500
    bad_n, bad_m = {0, 3, 4, 255, 256, 700, 1499}, {1, 3, 5, 700, 1000}
    rows = pa.StructArray.from_arrays(
        [
            pa.array([2**40 if n in bad_n else n for n in range(count)]),
            pa.array([None if n in bad_m else n for n in range(count)]),
        ],
        names=["n", "m"],
        mask=pa.array([n % 7 == 6 for n in range(count)]),
    )
    schema = _avro("Pair", ("n", "int"), ("m", "long"))

    frames = _frames(registry, rows, subject="pairs", schema=schema, mode="PERMISSIVE")

    gone = {n for n in range(count) if n % 7 == 6 or n in bad_n | bad_m}
    assert gone == {n for n, one in enumerate(frames) if one is None}
    read = AvroDeserializer(registry)
    assert [{"n": n, "m": n} for n in range(count) if n not in gone] == [read(one) for one in frames if one]


# format, schema, column, message
MISFIT_COLUMNS: list[tuple[str, str, pa.Array, str]] = [
    ("AVRO", NUMBER, pa.array([1]), "expected a struct, got int64"),
    ("AVRO", NUMBER, pa.array([{"n": b"1"}]), r"expected a column of int32, got binary \(at field n\)"),
    ("JSON", JSON_NUMBER, pa.array([{"n": [timedelta(1)]}]), r"JSON has no type for duration\[us\] \(at field n\[\]\)"),
    ("PROTOBUF", PROTO_NUMBER, pa.array([{"n": 1, "m": 1}]), r"the schema has no such field \(at field m\)"),
]


@pytest.mark.parametrize(("kind", "schema", "column", "message"), MISFIT_COLUMNS)
def test_columns_that_do_not_fit(
    registry: RegistryClient, kind: Any, schema: str, column: pa.Array, message: str
) -> None:
    """A column of another type, or with another field, fails the task in every mode."""
    with pytest.raises(EncodeError, match=message):
        _frames(registry, column, subject=f"columns {kind}", schema=schema, format=kind, mode="PERMISSIVE")


NAN = pa.array([{"n": 1, "label": float("nan")}])


def test_json_without_validation(registry: RegistryClient) -> None:
    """Without validation the schema is not checked, but values that are not JSON are refused anyway."""
    options: dict[str, Any] = {"subject": "free", "schema": JSON_NUMBER, "format": "JSON", "validate": False}

    [frame] = _frames(registry, pa.array([{"n": 101}]), **options)

    assert b'{"n":101}' == frame[5:]
    with pytest.raises(RowRefused, match=r"expected a finite number, got NaN or infinity \(at field label\)"):
        _frames(registry, NAN, **options)


def test_framings(spark: SparkSession, registry: RegistryClient) -> None:
    """Frames have the id or GUID before the payload, or the payload alone with the GUID in the record's headers."""
    registered = registry.register("framings-value", NUMBER)
    guid = bytes.fromhex(str(registered.guid).replace("-", ""))
    payload = b"\x02\x00"
    rows = pa.array([{"n": 1}])
    expected = {
        "prefix": b"\0" + registered.schema_id.to_bytes(4, "big") + payload,
        "guid": b"\1" + guid + payload,
        "header": payload,
    }

    for source in ({"schema": NUMBER}, {"version": 1}, {"schema_id": registered.schema_id}):
        options: dict[str, Any] = {"subject": "framings-value", **source}
        assert expected == {one: _frames(registry, rows, framing=one, **options)[0] for one in expected}

    made = [
        encoder(registry=registry.settings, subject="framings-value", version=1, framing=framing, key=key).headers
        for framing, key in (("header", False), ("header", True), ("prefix", False))
    ]
    [row] = spark.range(1).select(functions.concat(*made).alias("headers")).collect()
    assert [("__value_schema_id", b"\1" + guid), ("__key_schema_id", b"\1" + guid)] == [
        (one["key"], bytes(one["value"])) for one in row["headers"]
    ]


def test_avro_with_references(registry: RegistryClient) -> None:
    """Referenced schemas are fetched when the column is made."""
    registry.register("encode point", _avro("geo.Point", ("x", "int")))
    line = Schema(_avro("geo.Line", ("to", "geo.Point")), references=(Reference("geo.Point", "encode point", 1),))

    [frame] = _frames(registry, pa.array([{"to": {"x": 5}}]), subject="encode line", schema=line)

    assert {"to": {"x": 5}} == AvroDeserializer(registry)(frame)


def test_json_with_references(registry: RegistryClient) -> None:
    """A part of a schema in another subject is validated too."""
    registry.register("encode part", Schema('{"type": "integer", "maximum": 9}', JSON))
    whole = Schema(
        '{"type": "object", "properties": {"n": {"$ref": "part.json"}}}',
        JSON,
        (Reference("part.json", "encode part", 1),),
    )

    frames = _frames(registry, pa.array([{"n": 9}, {"n": 10}]), subject="encode whole", schema=whole, mode="PERMISSIVE")

    assert [b'{"n":9}', None] == [one and one[5:] for one in frames]


# name of the message, row, frame without its header
MESSAGES: list[tuple[str | None, dict[str, Any], str]] = [
    (None, {}, "00"),
    ("acme.Other.Inner", {"x": 7}, "0400000807"),
    (
        "acme.Order",
        {"weight": float("inf"), "price": {"cents": 5}, "inner": {"x": 0}},
        "020209000000000000f07f120208051a020800",
    ),
]


def test_messages_with_references(registry: RegistryClient) -> None:
    """A message is the first or the named one, its path is in the frame, and its file may import another subject."""
    money = 'syntax = "proto3"; package acme; message Money { int32 cents = 1; }'
    registry.register("acme/money.proto", Schema(money, PROTOBUF))
    text = """syntax = "proto3"; package acme; import "acme/money.proto";
    message Other { message Inner { int32 x = 1; } } message Order { double weight = 1; Money price = 2;
    Inner inner = 3; message Inner { optional int32 x = 1; } }"""
    schema = Schema(text, PROTOBUF, (Reference("acme/money.proto", "acme/money.proto", 1),))

    for message, row, expected in MESSAGES:
        [frame] = _frames(registry, pa.array([row]), subject="orders", schema=schema, message=message)
        assert expected == frame[5:].hex()


def test_in_a_query(spark: SparkSession, registry: RegistryClient, way: str) -> None:
    """A derived schema, a null row and a row that does not fit work in Spark itself."""
    df = spark.createDataFrame([(0, 1, "a"), (1, None, "b"), (2, 3, None)], "offset int, n int, label string").coalesce(
        1
    )
    kind = StructType([StructField("n", IntegerType(), False), StructField("label", StringType())])
    row = functions.when(functions.col("offset") != 2, functions.struct("n", "label"))
    options: dict[str, Any] = {"registry": registry.settings, "subject": "com.acme.Query-value", "schema": kind}

    encoded = _encoded(df, "e", row, way=way, mode="DEADLETTER", **options)
    failing = _encoded(df, "e", row, way=way, origin=["offset"], **options)

    schema_id = registry.get_version("com.acme.Query-value").schema_id
    assert [
        Row(frame=bytearray(b"\0" + schema_id.to_bytes(4, "big") + b"\x02\x02\x02a"), error=None),
        Row(frame=None, error=Row(reason="expected a value, got null", path="n")),
        Row(frame=None, error=None),
    ] == [row["e"] for row in encoded.orderBy("offset").collect()]
    derived = json.loads(registry.get_version("com.acme.Query-value").schema.text)
    assert ("com.acme", "Query") == (derived.get("namespace"), derived["name"])
    with pytest.raises(PythonException, match=r"a row cannot be encoded \(offset 1\): expected a value, got null"):
        failing.collect()


@in_spark
def test_credentials_are_hidden(spark: SparkSession, registry: RegistryClient, capsys: Any) -> None:
    """The query's plan does not show credentials."""
    settings = replace(registry.settings, username="ann", password="s3cret")
    df = spark.range(1).select(encode("id", registry=settings, subject="ids-key", schema=ArrayType(IntegerType())))

    df.explain(extended=True)

    assert "encode_arrow" in (shown := capsys.readouterr().out)
    assert "s3cret" not in shown + repr(encoder(registry=settings, subject="ids-key", version=1))


@pytest.mark.usefixtures("spark")
def test_spark_without_arrow_udf(registry: RegistryClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """On Spark 4.0 the call is refused with an error that names the required version and the alternative."""
    monkeypatch.delattr(functions, "arrow_udf", raising=False)

    with pytest.raises(
        NotImplementedError, match=r"needs Spark 4\.1 or later.*encoder\(…\)\.with_column\(df, name, column\)"
    ):
        encode("id", registry=registry.settings, subject="old-key", schema=IntegerType(), path="python")


def test_with_column(spark: SparkSession, registry: RegistryClient, way: str) -> None:
    """The other columns stay, a column of the same name is replaced, and a null struct is a null frame."""
    options: dict[str, Any] = {"registry": registry.settings, "subject": "with column", "schema": NUMBER}
    df = spark.sql(
        "SELECT * FROM VALUES (1L, named_struct('n', 1, 'label', 'a'), array(1, null), timestamp '0001-01-01'),"
        " (2L, null, null, null) AS t(`a.b`, Value, tags, at)"
    ).coalesce(1)

    encoded = _encoded(df, "value", "value", way=way, **options)
    letters = _encoded(df.drop("at"), "e", "value", way=way, mode="DEADLETTER", **options)

    schema_id = registry.get_version("with column").schema_id
    frame = bytearray(b"\0" + schema_id.to_bytes(4, "big") + b"\x02\x02\x02a")
    assert [("a.b", "bigint"), ("value", "binary"), ("tags", "array<int>"), ("at", "timestamp")] == encoded.dtypes
    text = encoded.withColumn("at", functions.col("at").cast("string"))
    assert [(1, frame, [1, None], "0001-01-01 00:00:00"), (2, None, None, None)] == [
        tuple(row) for row in text.collect()
    ]
    good, dead = split_dead_letters(letters, "e")
    assert ([frame, None], 0) == ([row["e"] for row in good.collect()], dead.count())


def test_with_column_of_nothing(spark: SparkSession, registry: RegistryClient, way: str) -> None:
    """An empty data frame gets the column too; the error names a missing origin column."""
    options: dict[str, Any] = {"registry": registry.settings, "subject": "with column", "schema": NUMBER, "way": way}
    df = spark.sql("SELECT 1 AS n, 'a' AS label").where("n > 1")

    encoded = _encoded(df, "value", functions.struct("n", "label"), **options)

    assert (["n", "label", "value"], []) == (encoded.columns, encoded.collect())
    with pytest.raises(AnalysisException, match="offset"):
        _encoded(df, "value", functions.struct("n", "label"), origin=["offset"], **options).collect()
