"""A stream gives the same results as a batch of the same records, decoded on both paths and encoded."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, Row, SparkSession, functions

from strata.serdes.client import RegistryClient
from strata.spark_udfs import decode, encode, install

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves them to the collector
]

MakeFrame = Callable[[int, Any, Any], bytes]

PATHS: tuple[Any, ...] = ("jvm", "python")
RECORDS = "offset long, value binary, headers array<struct<key: string, value: binary>>"


def _written(folder: Path, columns: dict[str, pa.Array]) -> str:
    folder.mkdir()
    pq.write_table(pa.table(columns), folder / "0.parquet")
    return str(folder)


def _streamed(df: DataFrame, table: str) -> list[Row]:
    """Return all rows of a streaming data frame, in order."""
    query = df.writeStream.format("memory").queryName(table).trigger(availableNow=True).start()
    try:
        assert query.awaitTermination(60)
    finally:
        query.stop()
    return df.sparkSession.table(table).orderBy("offset").collect()


@pytest.fixture
def records(
    registry: RegistryClient, frame: MakeFrame, everything: Any, tmp_path: Path
) -> tuple[str, list[tuple[str | None, bool]]]:
    """Return a folder of records of every kind, and for each its failure's reason and whether there is a record."""
    schema, values = everything
    new = registry.register("parity", json.dumps(schema))
    old = registry.register("parity, older", json.dumps({**schema, "fields": schema["fields"][:-1]})).schema_id
    assert new.guid
    guid = b"\1" + bytes.fromhex(new.guid.replace("-", ""))
    good, other = (frame(new.schema_id, schema, value) for value in values)
    # value, header, the reason of the failure
    kinds: list[tuple[bytes | None, bytes | None, str | None]] = [
        (good, None, None),
        (other, None, None),
        (
            frame(old, {**schema, "fields": schema["fields"][:-1]}, values[0]),
            None,
            "resolution: the reader's field nested",
        ),
        (guid + good[5:], None, None),
        (good[5:], guid, None),
        (None, None, None),
        (good[:-1], None, "truncated"),
        (good + b"\0", None, "trailing bytes"),
        (b"\0\x7f\xff\xff\xff" + good[5:], None, "unknown schema id"),
        (b"\3\0" + b"u" * 16 + good, None, "unknown Glue schema version"),
    ]
    headers = pa.array([one and [{"key": "__value_schema_id", "value": one}] for _, one, _ in kinds])
    folder = _written(
        tmp_path / "records",
        {"offset": pa.array(range(len(kinds))), "value": pa.array([one for one, *_ in kinds]), "headers": headers},
    )
    return folder, [(why, value is not None) for value, _, why in kinds]


def _decoded(df: DataFrame, registry: RegistryClient) -> DataFrame:
    """Return columns as texts: each mode except FAILFAST, all columns or some, on both paths."""
    install(df.sparkSession, registry=registry.settings)
    common: dict[str, Any] = {"registry": registry.settings, "subject": "parity", "headers": "headers"}
    columns = [
        decode("value", path=path, **common, **more).alias(f"{path} {name}")
        for path in PATHS
        for name, more in (("letters", {}), ("nulls", {"mode": "PERMISSIVE", "columns": ["nested", "s"]}))
    ]
    made = df.select("offset", *columns)
    return made.select("offset", *(functions.col(f"`{name}`").cast("string").alias(name) for name in made.columns[1:]))


def test_decode(
    spark: SparkSession, registry: RegistryClient, records: tuple[str, list[tuple[str | None, bool]]]
) -> None:
    """Every type, mode and framing, damage and chosen columns give the same in a batch and a stream, on both paths."""
    folder, outcomes = records

    batch = _decoded(spark.read.parquet(folder), registry).orderBy("offset").collect()
    stream = _streamed(_decoded(spark.readStream.schema(RECORDS).parquet(folder), registry), "parity")

    assert batch == stream
    for row, (why, is_there) in zip(batch, outcomes, strict=True):
        for kind in ("letters", "nulls"):
            assert row[f"jvm {kind}"] == row[f"python {kind}"]
        assert (why is None and is_there) == (row["jvm nulls"] is not None)
        assert (why or "null}") in row["jvm letters"]


@pytest.mark.parametrize("path", ["jvm", pytest.param("python", marks=pytest.mark.slow)])
def test_failfast(
    spark: SparkSession, registry: RegistryClient, records: tuple[str, list[tuple[str | None, bool]]], path: Any
) -> None:
    """A stream in mode FAILFAST ends at the first record without a value, and names that record."""
    folder, _ = records
    install(spark, registry=registry.settings)
    options: dict[str, Any] = {"mode": "FAILFAST", "origin": ["offset"], "headers": "headers", "path": path}
    rows = spark.readStream.schema(RECORDS).parquet(folder).where("offset = 0 OR offset > 5")

    decoded = rows.select("offset", decode("value", registry=registry.settings, subject="parity", **options))

    with pytest.raises(StreamingQueryException, match=r"\(schema id \d+, offset 6\): truncated \(at field nested"):
        _streamed(decoded, f"failing_{path}")


@pytest.mark.parametrize("path", ["jvm", pytest.param("python", marks=pytest.mark.slow)])
def test_newest_version_in_each_batch(
    spark: SparkSession, registry: RegistryClient, frame: MakeFrame, tmp_path: Path, path: Any
) -> None:
    """A decode that is made in foreachBatch takes the newest version as its reader schema, without a restart."""
    subject, topic = f"each batch {path}", tmp_path / "topic"
    fields = [{"name": "n", "type": "int"}, {"name": "label", "type": "string", "default": "none"}]
    versions = [{"type": "record", "name": "Number", "fields": fields[:count]} for count in (1, 2)]
    install(spark, registry=registry.settings)
    seen: list[dict[str, Any]] = []

    def take(batch: DataFrame, _: int) -> None:
        column = decode("value", registry=registry.settings, subject=subject, mode="FAILFAST", path=path)
        seen.extend(row["d"].asDict() for row in batch.select(column.alias("d")).collect())

    topic.mkdir()
    query = spark.readStream.schema("value binary").parquet(str(topic)).writeStream.foreachBatch(take).start()
    try:
        for number, schema in enumerate(versions):
            schema_id = registry.register(subject, json.dumps(schema)).schema_id
            value = frame(schema_id, schema, {"n": number, "label": "new"})
            pq.write_table(pa.table({"value": pa.array([value])}), tmp_path / "unfinished")
            (tmp_path / "unfinished").rename(topic / f"{number}.parquet")
            query.processAllAvailable()
    finally:
        query.stop()

    assert [{"n": 0}, {"n": 1, "label": "new"}] == seen


AVRO = json.dumps(
    {
        "type": "record",
        "name": "Number",
        "fields": [{"name": "n", "type": "int"}, {"name": "label", "type": ["null", "string"], "default": None}],
    }
)
JSON = '{"type": "object", "properties": {"n": {"type": "integer", "maximum": 2147483647}}}'
PROTOBUF = 'syntax = "proto3"; message Number { int32 n = 1; optional string label = 2; }'
ROWS: list[Any] = [{"n": 1, "label": "a"}, None, {"n": 2**31, "label": None}, {"n": 2, "label": None}]


@pytest.mark.skipif(not hasattr(functions, "arrow_udf"), reason="this Spark has no arrow_udf")
def test_encode(spark: SparkSession, registry: RegistryClient, tmp_path: Path) -> None:
    """Rows of all formats, nulls, and rows that do not fit give the same frames and dead letters in both."""
    formats: tuple[tuple[Any, str], ...] = (("AVRO", AVRO), ("JSON", JSON), ("PROTOBUF", PROTOBUF))
    kind = pa.struct([("n", pa.int64()), ("label", pa.string())])
    columns = {"offset": pa.array(range(len(ROWS))), "row": pa.array(ROWS, kind)}
    folder = _written(tmp_path / "rows", columns)
    encoded = [
        encode(
            "row", registry=registry.settings, subject=f"parity of {kind}", schema=text, format=kind, mode="DEADLETTER"
        ).alias(kind)
        for kind, text in formats
    ]

    batch = spark.read.parquet(folder).select("offset", *encoded).orderBy("offset").collect()
    stream = spark.readStream.schema("offset long, row struct<n: bigint, label: string>").parquet(folder)

    assert batch == _streamed(stream.select("offset", *encoded), "encoded")
    for row in batch:
        frames = [row[kind]["frame"] is not None for kind, _ in formats]
        errors = [row[kind]["error"] is not None for kind, _ in formats]
        assert ([row["offset"] in (0, 3)] * 3, [row["offset"] == 2] * 3) == (frames, errors)
