"""Rows go to a real Kafka topic and back by encode, Kafka's sink and source, and decode, as batch and stream."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from pyspark.sql import DataFrame, Row, SparkSession, functions
from pyspark.sql.types import StringType, StructType

from harness.decode_executors import run_once
from harness.kafka import KafkaBroker
from strata.serdes.avro import AvroDeserializer, AvroSerializer
from strata.serdes.client import RegistryClient
from strata.serdes.json_schema import JsonDeserializer
from strata.serdes.protobuf import ProtobufDeserializer
from strata.serdes.subject_name_strategies import Context
from strata.spark_udfs import decode, encode, encoder, install, split_dead_letters

pytestmark = [
    pytest.mark.spark,
    pytest.mark.kafka,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves them to the collector
]

_numbers = count()

ORDER = (
    "id bigint not null, note string, at timestamp, price decimal(12,2), tags array<string>, "
    "by map<string,int>, place struct<x: double, y: double>"
)
ROWS = [
    (1, "zürich", datetime(2026, 3, 1, 12, 30, 0, 5), Decimal("12.50"), ["a", None], {"k": 1}, Row(x=0.5, y=None)),  # noqa: DTZ001
    (2, None, None, None, None, None, None),
]
_finish = partial(run_once, timeout_s=120)
PATHS: tuple[Any, ...] = ("jvm", "python")
KEYED = [("k1", Row(*ROWS[0])), ("k2", Row(*ROWS[1])), ("k3", None)]


@pytest.fixture
def topic() -> str:
    """Return the name of a new topic of one partition, which its first record creates."""
    return f"round-trip-{next(_numbers)}"


@pytest.fixture
def written(spark: SparkSession, kafka_broker: KafkaBroker, topic: str) -> Callable[[DataFrame], DataFrame]:
    """Return a function that writes a data frame to the topic, and reads the topic."""

    def write_and_read(df: DataFrame) -> DataFrame:
        options = {"kafka.bootstrap.servers": kafka_broker.bootstrap}
        df.write.format("kafka").options(**options).option("topic", topic).save()
        reading = {**options, "subscribe": topic, "startingOffsets": "earliest", "includeHeaders": "true"}
        return spark.read.format("kafka").options(**reading).load()

    return write_and_read


def _orders(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(KEYED, f"key string, value struct<{ORDER}>").coalesce(1)


@pytest.mark.slow
@pytest.mark.parametrize("framing", ["prefix", "guid", "header"])
def test_avro(
    spark: SparkSession, registry: RegistryClient, topic: str, written: Callable[[DataFrame], DataFrame], framing: Any
) -> None:
    """Keys and values of derived schemas come back unchanged, on both paths, in every framing."""
    df, settings = _orders(spark), registry.settings
    install(spark, registry=settings)
    options: dict[str, Any] = {"registry": settings, "framing": framing}
    key = encoder(subject=f"{topic}-key", schema=StringType(), key=True, **options)
    value = encoder(subject=f"{topic}-value", schema=StructType.fromDDL(ORDER), **options)

    back = written(
        df.select(
            key("key").alias("key"),
            value("value").alias("value"),
            functions.concat(key.headers, value.headers).alias("headers"),
        )
    )

    reading: dict[str, Any] = {"registry": settings, "headers": "headers", "mode": "FAILFAST"}
    decoded = back.select(
        "*",
        *(decode("key", subject=f"{topic}-key", key=True, path=one, **reading).alias(f"{one}_key") for one in PATHS),
        *(decode("value", subject=f"{topic}-value", path=one, **reading).alias(f"{one}_value") for one in PATHS),
    )
    rows = decoded.collect()
    for path in PATHS:
        assert df.dtypes == decoded.select(f"{path}_key", f"{path}_value").toDF("key", "value").dtypes
        assert KEYED == [(row[f"{path}_key"], row[f"{path}_value"]) for row in rows]
    [first, *_] = rows
    deserialize = AvroDeserializer(registry)
    headers = [(one["key"], bytes(one["value"])) for one in first["headers"] or ()]
    sent = deserialize(bytes(first["value"]), topic=topic, headers=headers)
    assert "k1" == deserialize(bytes(first["key"]), topic=topic, field="key", headers=headers)
    assert (1, datetime(2026, 3, 1, 12, 30, 0, 5, UTC), {"x": 0.5, "y": None}) == (
        sent["id"],
        sent["at"],
        sent["place"],
    )


@pytest.mark.slow
def test_json(
    spark: SparkSession, registry: RegistryClient, topic: str, written: Callable[[DataFrame], DataFrame]
) -> None:
    """JSON keeps integers, texts, lists and structs; an instant arrives as a text, a decimal as a double."""
    df, settings = _orders(spark), registry.settings
    options: dict[str, Any] = {"registry": settings, "subject": f"{topic}-value", "format": "JSON"}

    back = written(
        df.select(
            encode("key", registry=settings, subject=f"{topic}-key", schema=StringType(), format="JSON").alias("key"),
            encode("value", schema=StructType.fromDDL(ORDER), **options).alias("value"),
        )
    )

    [*rows] = back.select(
        functions.col("value").alias("frame"),
        decode("key", registry=settings, subject=f"{topic}-key", mode="FAILFAST").alias("key"),
        decode("value", registry=settings, subject=f"{topic}-value", mode="FAILFAST", validate=True).alias("value"),
    ).collect()
    assert ["k1", "k2", "k3"] == [row["key"] for row in rows]
    place = {"x": 0.5, "y": None}
    first = rows[0]["value"].asDict(recursive=True)
    assert {
        "id": 1,
        "note": "zürich",
        "at": "2026-03-01T12:30:00.000005Z",
        "price": 12.5,
        "tags": ["a", None],
        "by": {"k": 1},
        "place": place,
    } == first
    assert {"id": 2} == {name: one for name, one in rows[1]["value"].asDict().items() if one is not None}
    assert rows[2]["value"] is None
    sent = JsonDeserializer(registry)(bytes(rows[0]["frame"]), topic=topic)
    assert {**first, "place": {"x": 0.5}} == sent


PROTO = """
syntax = "proto3";
package acme;
import "google/protobuf/timestamp.proto";
message Key { string id = 1; }
message Order {
  int64 id = 1;
  optional string note = 2;
  google.protobuf.Timestamp at = 3;
  uint64 price = 4;
  repeated string tags = 5;
  map<string, int32> by = 6;
  Place place = 7;
  message Place { optional double x = 1; optional double y = 2; }
}
"""


@pytest.mark.slow
def test_protobuf(
    spark: SparkSession, registry: RegistryClient, topic: str, written: Callable[[DataFrame], DataFrame]
) -> None:
    """Messages of one file as keys and values come back unchanged, with their schema and message named in headers."""
    kind = ORDER.replace("price decimal(12,2)", "price decimal(20,0)")
    rows = [
        (Row("k1"), Row(*ROWS[0][:3], Decimal(2**64 - 1), ["a", "b"], {"k": 1}, Row(0.5, None))),
        (Row("k2"), Row(2, None, None, Decimal(0), [], {}, None)),
        (Row("k3"), None),
    ]
    df = spark.createDataFrame(rows, f"key struct<id: string>, value struct<{kind}>").coalesce(1)
    options: dict[str, Any] = {"registry": registry.settings, "subject": f"{topic}-value", "schema": PROTO}
    options |= {"format": "PROTOBUF", "framing": "header"}
    key, value = encoder(message="acme.Key", key=True, **options), encoder(message="acme.Order", **options)

    back = written(
        df.select(
            key("key").alias("key"),
            value("value").alias("value"),
            functions.concat(key.headers, value.headers).alias("headers"),
        )
    )

    reading: dict[str, Any] = {"registry": registry.settings, "subject": f"{topic}-value", "mode": "FAILFAST"}
    reading["headers"] = "headers"
    decoded = back.select(
        functions.col("value").alias("payload"),
        decode("key", message="acme.Key", key=True, **reading).alias("key"),
        decode("value", message="acme.Order", **reading).alias("value"),
    ).collect()
    assert rows == [(row["key"], row["value"]) for row in decoded]
    headers = [one for one in (key.header, value.header) if one]
    sent = ProtobufDeserializer(registry, as_dict=True)(bytes(decoded[0]["payload"]), topic=topic, headers=headers)
    assert (str(2**64 - 1), {"x": 0.5}) == (sent["price"], sent["place"])


NUMBER = json.dumps({"type": "record", "name": "Number", "fields": [{"name": "n", "type": "int"}]})


@pytest.mark.slow
def test_streams(
    spark: SparkSession, registry: RegistryClient, kafka_broker: KafkaBroker, topic: str, tmp_path: Path
) -> None:
    """A stream writes records with the schema in a header, and another one reads them among other producers' records.

    A row that does not fit is a dead letter of the writing query, and goes to no topic.
    """
    settings, servers = registry.settings, {"kafka.bootstrap.servers": kafka_broker.bootstrap}
    install(spark, registry=settings)
    to_value = encoder(registry=settings, subject=f"{topic}-value", schema=NUMBER, framing="header", mode="DEADLETTER")
    folder = tmp_path / "in"
    spark.createDataFrame([(1,), (2**40,), (3,)], "n bigint").coalesce(1).write.json(str(folder))
    rows = spark.readStream.schema("n bigint").json(str(folder))
    encoded = rows.select("n", to_value(functions.struct("n")).alias("value"))

    def write(batch: DataFrame, _: int) -> None:
        batch.persist()
        good, dead = split_dead_letters(batch, "value")
        sink = good.select("value", to_value.headers.alias("headers")).write.format("kafka").options(**servers)
        sink.option("topic", topic).save()
        dead.write.parquet(str(tmp_path / "dead"))
        batch.unpersist()

    _finish(encoded.writeStream.foreachBatch(write), tmp_path / "writing")
    headers: list[tuple[str, bytes | None]] = []
    other = AvroSerializer(registry, NUMBER, conf={"schema.id.serializer": "header"})(
        {"n": 4}, Context(topic, "value", headers)
    )
    framed = AvroSerializer(registry, NUMBER)({"n": 5}, topic=topic)
    _produce(kafka_broker, topic, [(other, headers), (framed, []), (b"\x08", [])])

    source = spark.readStream.format("kafka").options(**servers, subscribe=topic, startingOffsets="earliest")
    records = source.option("includeHeaders", "true").load()
    decoded = records.select(
        "offset", decode("value", registry=settings, subject=f"{topic}-value", headers="headers").alias("decoded")
    )
    _finish(decoded.writeStream.format("parquet").option("path", str(tmp_path / "out")), tmp_path / "reading")

    numbers, letters = split_dead_letters(spark.read.parquet(str(tmp_path / "out")))
    assert [1, 3, 4, 5] == [row["n"] for row in numbers.select("decoded.n").orderBy("n").collect()]
    assert [("frame too short", bytearray(b"\x08"))] == [(row["reason"], row["frame"]) for row in letters.collect()]
    [lost] = spark.read.parquet(str(tmp_path / "dead")).collect()
    assert (2**40, "n") == (lost["n"], lost["path"])
    assert [(1, [to_value.header]), (1, [to_value.header])] == [
        (len(value), given) for value, given in _consumed(kafka_broker, topic, 2)
    ]


@pytest.mark.slow
def test_stream_from_topic_to_topic(
    spark: SparkSession, registry: RegistryClient, kafka_broker: KafkaBroker, topic: str, tmp_path: Path
) -> None:
    """A stream decodes one topic and encodes into another; it continues from its checkpoint, also on the other path."""
    settings, servers = registry.settings, {"kafka.bootstrap.servers": kafka_broker.bootstrap}
    install(spark, registry=settings)
    serialize, to = AvroSerializer(registry, NUMBER), f"{topic}-out"

    for path, numbers in zip(PATHS, ([1, 2], [3]), strict=True):
        _produce(kafka_broker, topic, [*((serialize({"n": n}, topic=topic), []) for n in numbers), (b"\0\0", [])])
        source = spark.readStream.format("kafka").options(**servers, subscribe=topic, startingOffsets="earliest")
        column = decode("value", registry=settings, subject=f"{topic}-value", path=path)
        good, _ = split_dead_letters(source.load().select(column.alias("decoded")))
        value = encode(functions.struct("decoded.n"), registry=settings, subject=f"{to}-value", schema=NUMBER)
        _finish(good.select(value.alias("value")).writeStream.format("kafka").options(**servers, topic=to), tmp_path)

    read = AvroDeserializer(registry)
    assert [1, 2, 3] == [read(value, topic=to)["n"] for value, _ in _consumed(kafka_broker, to, 3)]


def _produce(kafka_broker: KafkaBroker, topic: str, records: list[tuple[bytes | None, Any]]) -> None:
    producer = Producer({"bootstrap.servers": kafka_broker.bootstrap, "enable.idempotence": True})  # in order
    for value, headers in records:
        producer.produce(topic, value, headers=headers)
    assert producer.flush(90) == 0


def _consumed(kafka_broker: KafkaBroker, topic: str, number: int) -> list[tuple[bytes, Any]]:
    """Return the first records of a topic, as another client sees them."""
    consumer = Consumer(
        {"bootstrap.servers": kafka_broker.bootstrap, "group.id": topic, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    try:
        messages = consumer.consume(number, timeout=60)
    finally:
        consumer.close()
    return [(one.value() or b"", one.headers()) for one in messages]
