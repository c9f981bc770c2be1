"""From a real Kafka topic through Spark: the raw source, our decode on top of it, and `from_avro` on top of it."""

import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from confluent_kafka import Producer
from pyspark.sql import Column, SparkSession
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.functions import col, expr

from bench.orders import frames, schema_text
from bench.report import table
from bench.spark_session import Job, Rate, best, in_turn, ratio, session
from harness.jars import spark_avro_jars, spark_kafka_jars
from harness.kafka import KafkaBroker
from harness.registry import RegistryNode
from strata.serdes.client import RegistryClient
from strata.serdes.model import Schema
from strata.spark_udfs import decode, install

__all__ = ["run"]

ROWS = 600_000
PARTITIONS = 2
ROUNDS = 9
WARM_UPS = 14
"""The JVM's compiler keeps improving each way for about ten seconds."""
_READER = 2
_RAW = "raw source, value only"
_OURS = "`decode` in the JVM, 3 writer schemas"
_POLLS = {"kafka.max.poll.records": "5000"}
"""After each poll, by default of 500 records, Spark's source asks for both ends of the partition, and waits."""
_HEAD = ["way", "rows/s", "CPU µs a row, broker included", "to raw"]
_TOPICS = {"mixed": (1, 2, 3), "one": (_READER,)}


def run() -> str:
    """Fill the topics, read them in each way in turn, and return the table."""
    with (
        tempfile.TemporaryDirectory() as folder,
        RegistryNode("memory:") as node,
        RegistryClient(node.url) as client,
        KafkaBroker(config={"num.partitions": str(PARTITIONS)}) as broker,
    ):
        client.set_config("NONE", subject="orders-value")
        ids = {n: client.register("orders-value", Schema(schema_text(n))).schema_id for n in (1, 2, 3)}
        for topic, versions in _TOPICS.items():
            _fill(broker.bootstrap, topic, {n: ids[n] for n in versions})
        spark = session(Path(folder), [*spark_avro_jars(), *spark_kafka_jars()])
        try:
            install(spark, registry=node.url)
            rates = in_turn(_jobs(spark, broker.bootstrap, node.url, ids[_READER]), WARM_UPS, ROUNDS)
        finally:
            spark.stop()
    rows = [_row(name, each, rates[_RAW]) for name, each in rates.items()]
    scale = (
        f"{ROWS:,} records of some 200 bytes in {PARTITIONS} partitions, local[2], "
        f"{ROUNDS} rounds in turn after {WARM_UPS} to warm up: the best of each, and the median "
        "of its ratio to the raw source in the same round"
    )
    return f"{scale}.\n\n{table(_HEAD, rows)}"


def _row(name: str, rates: list[Rate], raw: list[Rate]) -> list[str]:
    top = best(rates)
    return [name, f"{top.rows_per_second:,.0f}", f"{top.cpu_microseconds:.2f}", f"{ratio(rates, raw):.2f}"]


def _jobs(spark: SparkSession, bootstrap: str, url: str, reader: int) -> dict[str, Job]:
    def of(topic: str, column: Column, more: Mapping[str, str] = MappingProxyType({})) -> Job:
        options = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic, **more}
        source = spark.read.format("kafka").options(**options).load()
        return Job(source.select(column.alias("order")), ROWS)

    ours = decode("value", registry=url, schema_id=reader, path="jvm")
    return {
        _RAW: of("mixed", col("value")),
        _OURS: of("mixed", ours),
        "`from_avro(substring(value, 6))`, one schema": of(
            "one", from_avro(expr("substring(value, 6)"), schema_text(reader))
        ),
        f"{_RAW}, 5,000 records a poll": of("mixed", col("value"), _POLLS),
        f"{_OURS}, 5,000 records a poll": of("mixed", ours, _POLLS),
    }


def _fill(bootstrap: str, topic: str, ids: dict[int, int]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "queue.buffering.max.messages": ROWS + 1})
    for number, frame in enumerate(frames(ids, ROWS)):
        producer.produce(topic, frame, partition=number % PARTITIONS)
    if producer.flush(300):
        sys.exit("the broker did not accept all records within 300 s")
