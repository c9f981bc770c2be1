"""From a real Kafka topic through Spark: the raw source, our decode on top of it, and `from_avro` on top of it."""

import sys
import tempfile
import time
from pathlib import Path

from confluent_kafka import Producer
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.functions import col, expr

from bench.orders import frames, schema_text
from bench.report import table
from bench.spark_session import cpu_seconds, session
from harness.jars import spark_avro_jars, spark_kafka_jars
from harness.kafka import KafkaBroker
from harness.registry import RegistryNode
from serdes.client import RegistryClient
from serdes.model import Schema
from spark_udfs import decode, install

__all__ = ["run"]

ROWS = 600_000
PARTITIONS = 2
ROUNDS = 5
WARM_UPS = 6
"""The compiler of the JVM goes on improving what runs for some ten seconds each."""
_READER = 2
_TOPICS = {"mixed": (1, 2, 3), "one": (_READER,)}


def run() -> str:
    """Fill the topics, read them in each way, turn by turn, and return the table."""
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
            rates = _interleaved(_ways(spark, broker.bootstrap, node.url, ids[_READER]))
        finally:
            spark.stop()
    raw = rates["raw source, value only"]
    rows = [[name, f"{rate:,.0f}", f"{cpu:.2f}", f"{rate / raw[0]:.2f}"] for name, (rate, cpu) in rates.items()]
    scale = (
        f"{ROWS:,} records of some 200 bytes in {PARTITIONS} partitions, local[2], "
        f"best of {ROUNDS} rounds in turn after {WARM_UPS} to warm up"
    )
    return f"{scale}.\n\n{table(['way', 'rows/s', 'CPU µs a row, broker included', 'to raw'], rows)}"


def _ways(spark: SparkSession, bootstrap: str, url: str, reader: int) -> dict[str, DataFrame]:
    def of(topic: str, column: Column) -> DataFrame:
        source = spark.read.format("kafka").option("kafka.bootstrap.servers", bootstrap).option("subscribe", topic)
        return source.load().select(column.alias("order"))

    ours = decode("value", registry=url, schema_id=reader, path="jvm")
    return {
        "raw source, value only": of("mixed", col("value")),
        "`decode` in the JVM, 3 writer schemas": of("mixed", ours),
        "`from_avro(substring(value, 6))`, one schema": of(
            "one", from_avro(expr("substring(value, 6)"), schema_text(reader))
        ),
    }


def _interleaved(ways: dict[str, DataFrame]) -> dict[str, tuple[float, float]]:
    """Rows a second and µs of CPU a row, the best of some rounds after some to warm up."""
    for _ in range(WARM_UPS):
        for rows in ways.values():
            _rate(rows)
    rates = [{name: _rate(rows) for name, rows in ways.items()} for _ in range(ROUNDS)]
    return {name: (max(each[name][0] for each in rates), min(each[name][1] for each in rates)) for name in ways}


def _rate(rows: DataFrame) -> tuple[float, float]:
    cpu, started = cpu_seconds(), time.perf_counter()
    rows.write.format("noop").mode("overwrite").save()
    seconds, cpu = time.perf_counter() - started, cpu_seconds() - cpu
    return ROWS / seconds, cpu / ROWS * 1e6


def _fill(bootstrap: str, topic: str, ids: dict[int, int]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "queue.buffering.max.messages": ROWS + 1})
    for number, frame in enumerate(frames(ids, ROWS)):
        producer.produce(topic, frame, partition=number % PARTITIONS)
    if producer.flush(300):
        sys.exit("the broker did not take all records in 300 s")
