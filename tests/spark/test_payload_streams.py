"""Protobuf and JSON frames work in running streams of Spark, damaged or not."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from google.protobuf.message_factory import GetMessageClass
from pyspark.sql import Column, SparkSession, functions
from pyspark.sql.streaming import StreamingQuery

from harness.waiting import until
from strata.serdes.client import RegisteredSchema, RegistryClient, Schema
from strata.serdes.framing import join
from strata.serdes.protobuf.files import find_message, link
from strata.spark_udfs import decode, run_stream, split_dead_letters

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves them to the collector
]

PROTO = (
    'syntax = "proto3"; import "google/protobuf/timestamp.proto"; import "google/protobuf/duration.proto"; '
    "message M {{ int64 n = 1; uint64 big = 2; google.protobuf.Timestamp at = 3; google.protobuf.Duration took = 4; "
    "map<string, Part> parts = 5; repeated string tags = 6; optional string note = 7; Empty empty = 9; {more} "
    "message Empty {{}} message Part {{ double x = 1; bytes raw = 2; }} }}"
)
FIRST = Schema(PROTO.format(more=""), "PROTOBUF")
SECOND = Schema(PROTO.format(more="string label = 8;"), "PROTOBUF")
DOCUMENT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "n": {"type": "integer"},
        "x": {"type": "number"},
        "parts": {"type": "object", "additionalProperties": {"properties": {"raw": {"type": "string"}}}},
        "tags": {"type": "array", "items": {"type": "string"}},
        "any": {},
    },
}
WIDER = {**DOCUMENT, "properties": {**DOCUMENT["properties"], "label": {"type": "string"}}}


def _payload(schema: Schema, **fields: Any) -> bytes:
    """Return a Protobuf payload with its path."""
    return b"\0" + bytes(GetMessageClass(find_message(link(schema, {}), (0,)))(**fields).SerializeToString())


def _protobuf_frame(schema_id: int, number: int, *, newer: bool) -> bytes:
    more = {"label": "new"} if newer else {}
    return join(schema_id, _payload(SECOND if newer else FIRST, n=number, tags=["a", "b"], **more))


def _json_frame(schema_id: int, number: int, *, newer: bool) -> bytes:
    more = {"label": "new"} if newer else {}
    return join(schema_id, json.dumps({"n": number, "tags": ["a", "b"], **more}).encode())


FORMATS: list[Any] = [
    pytest.param(FIRST, SECOND, _protobuf_frame, id="protobuf"),
    pytest.param(Schema(json.dumps(DOCUMENT), "JSON"), Schema(json.dumps(WIDER), "JSON"), _json_frame, id="json"),
]
MakeFrame = Callable[..., bytes]


@pytest.mark.parametrize(("first", "second", "frame"), FORMATS)
def test_version_registered_while_the_query_runs(
    spark: SparkSession, registry: RegistryClient, tmp_path: Path, first: Schema, second: Schema, frame: MakeFrame
) -> None:
    """A query decodes frames of a version registered after it started; damaged ones become dead letters."""
    subject = f"spark_growing_{first.format.lower()}"
    registry.set_config("NONE", subject)
    one = registry.register(subject, first).schema_id
    topic, numbers = tmp_path / "topic", count()
    topic.mkdir()

    def produce(*frames: bytes | None) -> None:
        pq.write_table(pa.table({"value": pa.array(frames, pa.binary())}), tmp_path / "unfinished")
        (tmp_path / "unfinished").rename(topic / f"{next(numbers)}.parquet")

    stream = spark.readStream.schema("value binary").option("maxFilesPerTrigger", 1).parquet(str(topic))
    decoded = stream.select(
        decode("value", registry=registry.settings, subject=subject, columns=["tags", "n"]).alias("decoded")
    )
    query = decoded.writeStream.format("memory").queryName(subject).start()
    try:
        produce(frame(one, 1, newer=False))
        query.processAllAvailable()
        two = registry.register(subject, second).schema_id
        bad = frame(two, 2, newer=True)[:-3]
        produce(frame(two, 3, newer=True), frame(one, 4, newer=False), bad)
        query.processAllAvailable()
    finally:
        query.stop()
    good, dead = split_dead_letters(spark.table(subject))

    assert one != two
    assert [(["a", "b"], number) for number in (1, 3, 4)] == sorted(tuple(row["decoded"]) for row in good.collect())
    assert [("malformed", two, bytearray(bad))] == [tuple(row) for row in dead.collect()]


LABELLED: list[Any] = [
    pytest.param(
        [
            Schema(f'syntax = "proto3"; message M {{ int64 n = 1; {more} }}', "PROTOBUF")
            for more in ("", "string l = 2;")
        ],
        [b"\0\x08\1", b"\0\x08\2\x12\1a"],
        id="protobuf",
    ),
    pytest.param(
        [
            Schema(json.dumps({"type": "object", "additionalProperties": False, "properties": one}), "JSON")
            for one in ({"n": {"type": "integer"}}, {"n": {"type": "integer"}, "l": {"type": "string"}})
        ],
        [b'{"n": 1}', b'{"n": 2, "l": "a"}'],
        id="json",
    ),
]
"""Two versions, and a payload of each."""


@pytest.mark.slow
@pytest.mark.parametrize(("schemas", "payloads"), LABELLED)
def test_restart_on_a_newer_version(
    spark: SparkSession, registry: RegistryClient, tmp_path: Path, schemas: list[Schema], payloads: list[bytes]
) -> None:
    """With evolve="restart" the fields of a newer version appear mid-stream; no record is lost or duplicated."""
    subject, topic, sink = f"spark_restarts_{schemas[0].format.lower()}", tmp_path / "topic", tmp_path / "sink"
    ids = [registry.register(subject, schemas[0]).schema_id]
    topic.mkdir()
    started: list[StreamingQuery] = []

    def produce(schema_id: int, payload: bytes) -> None:
        pq.write_table(pa.table({"value": pa.array([join(schema_id, payload)], pa.binary())}), tmp_path / "unfinished")
        (tmp_path / "unfinished").rename(topic / f"{schema_id}.parquet")

    def build(reader: RegisteredSchema) -> StreamingQuery:
        value = decode("value", registry=registry.settings, schema_id=reader.schema_id, mode="FAILFAST")
        stream = spark.readStream.schema("value binary").parquet(str(topic)).select(value.alias("m")).select("m.*")
        writer = stream.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
        started.append(writer.start(str(sink)))
        return started[-1]

    arguments: dict[str, Any] = {"registry": registry.settings, "subject": subject, "evolve": "restart", "poll": 0.1}
    with ThreadPoolExecutor(1) as threads:
        following = threads.submit(run_stream, build, **arguments)
        try:
            for number, payload in enumerate(payloads):
                if number:
                    ids.append(registry.register(subject, schemas[number]).schema_id)
                until(lambda: len(started) == len(ids) or following.done())
                produce(ids[-1], payload)
                started[-1].processAllAvailable()
        finally:
            started[-1].stop()
        assert started[-1] is following.result(60)

    rows = spark.read.option("mergeSchema", "true").parquet(str(sink))
    assert [(1, None), (2, "a")] == [tuple(row) for row in rows.select("n", "l").orderBy("n").collect()]


@pytest.mark.slow
@pytest.mark.parametrize(("first", "second", "frame"), FORMATS)
def test_damaged_frames(
    spark: SparkSession, registry: RegistryClient, first: Schema, second: Schema, frame: MakeFrame
) -> None:
    """No task fails over 20,000 damaged rows; each is a value or a dead letter with exactly the bytes sent."""
    schema_id = registry.register(f"spark-damaged-{first.format}", first).schema_id
    good = frame(schema_id, 2**40, newer=False)
    chance = Random(2026)
    damaged = [_damaged(good, chance) for _ in range(20_000)]
    rows = spark.createDataFrame(pa.table({"f": pa.array(damaged, pa.binary())})).repartition(2)
    decoded = rows.select("f", decode("f", registry=registry.settings, schema_id=schema_id).alias("d"))
    value, error = functions.col("d.value"), functions.col("d.error")

    def counted(condition: Column) -> Column:
        return functions.count_if(condition)

    faults = decoded.agg(
        functions.count("*").alias("rows"),
        counted(error.isNotNull()).alias("dead"),
        counted(value.isNull() != error.isNotNull()).alias("lost"),
        counted(error.isNotNull() & ~error["frame"].eqNullSafe(functions.col("f"))).alias("changed"),
        functions.count_distinct(error["reason"]).alias("reasons"),
    ).first()

    assert faults is not None
    assert (20_000, 0, 0) == (faults["rows"], faults["lost"], faults["changed"])
    assert 2_000 < faults["dead"] < 20_000
    assert faults["reasons"] < 30


def _damaged(good: bytes, chance: Random) -> bytes:
    """Return the frame with some bytes changed, seldom in its header, perhaps cut, perhaps longer."""
    changed = bytearray(good)
    for _ in range(chance.randrange(3)):
        changed[chance.randrange(5, len(changed))] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
    if chance.random() < 0.05:
        changed[chance.choice((0, 1))] ^= chance.choice((2, 3, 0x40))
    end = chance.choice((None, None, None, chance.randrange(len(changed))))
    return bytes(changed[:end]) + chance.choice((b"", b"", b"", b"\0"))
