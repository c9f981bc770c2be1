"""Both paths refuse the same columns, have the same modes, validate alike, and write random rows alike."""

import json
import math
import struct
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Column, Row, SparkSession, functions
from pyspark.sql.pandas.types import to_arrow_type

from harness.avro_cases import Case
from harness.encode_rules import avro, protobuf
from harness.payload_columns import kind_of, proto
from harness.protobuf_cases import Maker, fill
from strata.serdes.client import RegistryClient, Schema
from strata.serdes.errors import EncodeError
from strata.serdes.framing import join, write_indexes
from strata.serdes.model import JSON
from strata.spark_udfs import decode, encode, encoder, install
from strata.spark_udfs.decoding.jvm_function import NotInstalled
from strata.spark_udfs.encoding.row_encoder import RowEncoder

pytestmark = [
    pytest.mark.spark,
    pytest.mark.usefixtures("installed"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves them to the collector
    pytest.mark.skipif(not hasattr(functions, "arrow_udf"), reason="this Spark has no arrow_udf"),
]

Families = Callable[[Random, int, int], list[list[Case]]]
PATHS = ("jvm", "python")
RECORD = Schema(json.dumps(avro.in_record("int")))
MISFITS = [
    *((Schema(json.dumps(avro.in_record(type_))), columns, message) for type_, columns, message in avro.COLUMNS),
    *((protobuf.SHOP, columns, message) for columns, message in protobuf.COLUMNS),
]


@pytest.fixture(scope="module")
def installed(spark: SparkSession, registry: RegistryClient) -> None:
    """Bring the JVM function for the registry into the session, once for all tests of this file."""
    install(spark, registry=registry.settings)


@pytest.mark.parametrize(("schema", "columns", "message"), MISFITS)
def test_columns_that_do_not_fit(
    spark: SparkSession, client: RegistryClient, schema: Schema, columns: str, message: str
) -> None:
    """A column of another type is an error in every mode: of the analyzer in the JVM, of the worker in Python."""
    schema_id = client.register("both columns", schema).schema_id
    options: dict[str, Any] = {"registry": client.settings, "schema_id": schema_id, "mode": "PERMISSIVE"}
    df = spark.createDataFrame([], f"r struct<{columns}>")

    with pytest.raises(AnalysisException, match=message):
        df.select(encode("r", path="jvm", **options))
    with pytest.raises(EncodeError, match=message):
        RowEncoder(encoder(**options).plan).encode(pa.nulls(2, to_arrow_type(df.schema["r"].dataType)))


def test_a_column_that_does_not_fit_fails_the_task(spark: SparkSession, client: RegistryClient) -> None:
    """The error of a worker is that of the query."""
    df = spark.createDataFrame([(("x",),)], "r struct<f: string>").coalesce(1)
    schema_id = client.register("both columns", RECORD).schema_id

    with pytest.raises(PySparkException, match=r"expected a column of int32, got string \(at field f\)"):
        df.select(encode("r", path="python", registry=client.settings, schema_id=schema_id)).collect()


@pytest.mark.parametrize("path", PATHS)
def test_modes(spark: SparkSession, client: RegistryClient, path: Any) -> None:
    """A row that does not fit is null, or an error that names the row; a null row is a null frame in every mode."""
    df = spark.createDataFrame([(0, (1,)), (1, (None,)), (2, None)], "offset int, r struct<f: int>").coalesce(1)
    schema_id = client.register("both modes", RECORD).schema_id
    frame = bytearray(b"\0" + schema_id.to_bytes(4, "big") + b"\x02")

    def encoded(mode: Any) -> list[Any]:
        column = encode("r", registry=client.settings, schema_id=schema_id, path=path, mode=mode, origin=["offset"])
        return [row["e"] for row in df.select(column.alias("e")).collect()]

    assert [frame, None, None] == encoded("PERMISSIVE")
    refused = Row(frame=None, error=Row(reason=avro.NO_VALUE, path="f"))
    assert [Row(frame=frame, error=None), refused, Row(frame=None, error=None)] == encoded("DEADLETTER")
    with pytest.raises(
        (PySparkException, Py4JJavaError),
        match=r"a row cannot be encoded \(offset 1\): expected a value, got null \(at",
    ):
        encoded("FAILFAST")


def _written(
    spark: SparkSession,
    client: RegistryClient,
    columns: Sequence[tuple[int, Sequence[bytes]]],
    shown: Callable[..., Column],
) -> Iterator[Row]:
    """Yield of each random row what both paths write and what is read from that, all of them in one query.

    Args:
        spark: the session.
        client: the registry.
        columns: a schema id each, and as many frames of rows.
        shown: makes a text of a row.
    """
    named = {f"c{number}": column for number, column in enumerate(columns)}
    options: dict[str, dict[str, Any]] = {
        name: {"registry": client.settings, "schema_id": schema_id} for name, (schema_id, _) in named.items()
    }
    df = spark.createDataFrame(pa.table({name: pa.array(frames, pa.binary()) for name, (_, frames) in named.items()}))
    rows = df.coalesce(1).select(*(decode(name, mode="PERMISSIVE", **options[name]).alias(name) for name in named))
    encoded = rows.select(
        "*",
        *(
            encode(name, path=path, mode="DEADLETTER", **options[name]).alias(f"{name}_{path}")
            for name in named
            for path in PATHS
        ),
    )
    again = encoded.select(
        "*", *(decode(f"{name}_jvm.frame", mode="FAILFAST", **options[name]).alias(f"{name}_again") for name in named)
    )
    structs = (
        functions.struct(
            *(functions.col(f"{name}_{path}").alias(path) for path in PATHS),
            shown(functions.col(name)).alias("row"),
            shown(functions.col(f"{name}_again")).alias("again"),
        ).alias(name)
        for name in named
    )
    for collected in again.select(*structs).collect():
        yield from collected


@pytest.mark.parametrize(("schemas", "each"), [(2, 20), pytest.param(50, 100, marks=pytest.mark.slow)])
def test_random_rows_of_avro(
    spark: SparkSession, client: RegistryClient, families: Families, schemas: int, each: int
) -> None:
    """Both paths write random rows to the same frames, which decode to the same rows."""
    columns = [
        (
            client.register("random rows", family[0].reader).schema_id,
            [join(client.register("random writers", one.writer).schema_id, one.payload) for one in family],
        )
        for family in families(Random(19), schemas, each)
    ]
    written, read = 0, 0
    for row in _written(spark, client, columns, lambda column: column.cast("string")):
        assert row.python == row.jvm
        assert row.again == (row.row if row.jvm.frame is not None else None)
        written += row.jvm.frame is not None
        read += row.row is not None
    assert written > read / 2 > schemas


@pytest.mark.parametrize(("schemas", "each"), [(2, 10), pytest.param(50, 100, marks=pytest.mark.slow)])
def test_random_rows_of_protobuf(spark: SparkSession, client: RegistryClient, schemas: int, each: int) -> None:
    """So it is in Protobuf, with maps in any order."""
    chance, columns = Random(23), []
    maker = Maker(chance)
    for _ in range(schemas):
        schema = proto(maker.kind().text())
        kind, schema_id = kind_of(schema), client.register("random messages", schema).schema_id
        payloads = [write_indexes((0,)) + fill(kind(), chance).SerializeToString() for _ in range(each)]
        columns.append((schema_id, [join(schema_id, payload) for payload in payloads]))
    written = 0
    for row in _written(spark, client, columns, functions.to_json):
        assert row.python == row.jvm
        if row.jvm.frame is not None:
            assert json.loads(row.again) == json.loads(row.row)
            written += 1
    assert written > schemas * each / 2


@pytest.mark.parametrize("count", [300, pytest.param(5000, marks=pytest.mark.slow)])
def test_random_rows_of_json(spark: SparkSession, client: RegistryClient, count: int) -> None:
    """Both paths write random rows to the same text."""
    chance = Random(29)

    def text() -> str:
        return "".join(chr(chance.choice([chance.randrange(128), 0xE9, 0x1F68B])) for _ in range(chance.randrange(30)))

    table = {
        "double": pa.array([_random_double(chance) for _ in range(count)]),
        "long": pa.array([chance.getrandbits(64) - 2**63 >> chance.randrange(64) for _ in range(count)]),
        "text": pa.array([text() for _ in range(count)]),
        "money": pa.array([Decimal(chance.getrandbits(60)).scaleb(-4) for _ in range(count)], pa.decimal128(24, 4)),
        "at": pa.array(
            [chance.randrange(-62_135_596_800_000_000, 253_402_300_800_000_000) for _ in range(count)],
            pa.timestamp("us", "UTC"),
        ),
    }
    rows = pa.StructArray.from_arrays(list(table.values()), names=list(table))
    df = spark.createDataFrame(pa.table([rows], names=["r"])).coalesce(1)
    options: dict[str, Any] = {"registry": client.settings, "validate": False}
    options["schema_id"] = client.register("random JSON", Schema("{}", JSON)).schema_id

    made = df.select(*(encode("r", path=path, **options).alias(path) for path in PATHS)).collect()

    assert count == len(made)
    assert [] == [(one["python"], one["jvm"]) for one in made if one["python"] != one["jvm"]][:3]


def _random_double(chance: Random) -> float:
    if chance.random() < 0.5:
        return chance.uniform(-1, 1) * 10.0 ** chance.randrange(-8, 20)
    number: float = struct.unpack("<d", chance.randbytes(8))[0]
    return number if math.isfinite(number) else 0.0


def test_json_with_validation(spark: SparkSession, client: RegistryClient) -> None:
    """Rows that the schema must allow are encoded in the JVM too; both paths refuse the others with the same words."""
    schema = {"properties": {"a": {"maximum": 3}, "b": {"type": "string"}}, "required": ["b"]}
    options: dict[str, Any] = {
        "registry": client.settings,
        "schema_id": client.register("valid JSON", Schema(json.dumps(schema), JSON)).schema_id,
    }
    rows = [(3, "x"), (4, "x"), (1, None)]
    df = spark.createDataFrame([(row,) for row in rows], "r struct<a: int, b: string>").coalesce(1)

    def encoded(mode: str) -> list[list[Any]]:
        made = df.select(*(encode("r", path=path, mode=mode, **options).alias(path) for path in PATHS)).collect()
        return [[row[path] for row in made] for path in PATHS]

    jvm, python = encoded("DEADLETTER")
    assert [None, "a", "b"] == [one["error"] and one["error"]["path"] for one in jvm]
    assert "expected a number of at most 3, got a larger one (rule properties/a/maximum)" == jvm[1]["error"]["reason"]
    assert python == jvm
    jvm, python = encoded("PERMISSIVE")
    assert [b'{"a":3,"b":"x"}', None, None] == [one and bytes(one)[5:] for one in jvm]
    assert python == jvm
    for path in PATHS:
        with pytest.raises(
            Exception, match=r"a row cannot be encoded \(r.b x\): expected a number of at most 3, got a "
        ):
            df.select(encode("r", path=path, origin=["r.b"], **options)).collect()


def test_json_with_rules_for_python_workers(spark: SparkSession, client: RegistryClient) -> None:
    """A schema with a keyword that the JVM does not know is for Python workers, and an error if the JVM must encode."""
    options: dict[str, Any] = {
        "registry": client.settings,
        "schema_id": client.register("pattern", Schema('{"properties": {"a": {"pattern": "^x.?$"}}}', JSON)).schema_id,
    }
    df = spark.createDataFrame([(("x",),), (("y",),)], "r struct<a: string>").coalesce(1)

    with pytest.raises(ValueError, match="path='jvm' does not encode JSON with validation by `pattern`"):
        encode("r", path="jvm", **options)
    rows = df.select(encode("r", mode="PERMISSIVE", **options).alias("e")).collect()
    assert [b'{"a":"x"}', None] == [row["e"] and bytes(row["e"])[5:] for row in rows]


ONLY_IN_PYTHON = [
    ('syntax = "proto2"; message M { required int32 a = 1; }', r"the required field M\.a"),
    ('syntax = "proto2"; message M { optional group G = 1 { optional int32 a = 1; } }', r"the group M\.g"),
]


@pytest.mark.parametrize(("text", "part"), ONLY_IN_PYTHON)
def test_only_in_python(spark: SparkSession, client: RegistryClient, text: str, part: str) -> None:
    """Python workers encode what the JVM does not, unless the JVM is asked for, which the error explains."""
    schema_id = client.register("only in Python", proto(text)).schema_id
    options: dict[str, Any] = {"registry": client.settings, "schema_id": schema_id}

    with pytest.raises(ValueError, match=rf"path='jvm' does not encode {part}"):
        encode("r", path="jvm", **options)
    shown = spark.sql("SELECT named_struct('a', 1) AS r").select(encode("r", **options))._jdf.toString()
    assert "encode_arrow" in shown


def test_not_installed(spark: SparkSession) -> None:
    """The JVM path is refused before anything is registered if `install` was not called for the registry."""
    with RegistryClient("http://127.0.0.1:1") as elsewhere:
        df = spark.range(1)
        with pytest.raises(NotInstalled, match="call strata"):
            df.select(encode("id", registry=elsewhere.settings, schema_id=1, path="jvm"))
