"""Streams from a real topic survive a minute without the registry."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import pytest
from confluent_kafka import Producer
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from harness.kafka import KafkaBroker
from harness.registry import RegistryNode
from strata.serdes.client import ClientSettings, RegistryClient
from strata.spark_udfs import decode, install, run_stream, split_dead_letters

pytestmark = [
    pytest.mark.spark,
    pytest.mark.kafka,
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves them to the collector
]

NUMBER = {"type": "record", "name": "Number", "fields": [{"name": "n", "type": "long"}]}
NAMED = {**NUMBER, "fields": [*NUMBER["fields"], {"name": "label", "type": "string", "default": ""}]}
OUTAGE_S = 60
KNOWN_S = 20
"""For this long only known ids arrive."""


class Numbers:
    """A topic of one partition whose records are the numbers from 0 on, each at its offset."""

    def __init__(self, spark: SparkSession, kafka: KafkaBroker, name: str) -> None:
        self.count = 0
        self._spark = spark
        self._options = {"kafka.bootstrap.servers": kafka.bootstrap, "subscribe": name, "startingOffsets": "earliest"}
        self._name = name
        self._producer = Producer({"bootstrap.servers": kafka.bootstrap})

    def produce(self, make: Callable[[int], bytes]) -> None:
        """Add a record with the next number."""
        self._producer.produce(self._name, make(self.count))
        self._producer.flush()
        self.count += 1

    def stream(self) -> DataFrame:
        """Return the stream of the topic."""
        return self._spark.readStream.format("kafka").options(**self._options).load()


class Sink:
    """Parquet files that a query on the numbers writes, by one path and with the given patience."""

    def __init__(self, spark: SparkSession, numbers: Numbers, folder: Path, path: Literal["jvm", "python"]) -> None:
        self._spark, self._numbers, self._folder, self._path = spark, numbers, folder, path

    @contextmanager
    def running(self, settings: ClientSettings) -> Iterator[StreamingQuery]:
        """Run the query, from its checkpoint if there is one."""
        query = self._start(settings, processingTime="0 seconds")
        try:
            yield query
        finally:
            query.stop()

    def _start(self, settings: ClientSettings, **trigger: Any) -> StreamingQuery:
        if self._path == "jvm":
            install(self._spark, registry=settings)
        decoded = decode("value", registry=settings, subject="numbers", version=1, path=self._path)
        values, _ = split_dead_letters(self._numbers.stream().select("offset", decoded.alias("decoded")))
        writer = values.select("offset", "decoded.n").writeStream.format("parquet")
        writer = writer.option("checkpointLocation", f"{self._folder}.checkpoint").trigger(**trigger)
        return writer.start(str(self._folder))

    def catch_up(self, settings: ClientSettings) -> None:
        """Run the query until it has read every record, by `run_stream`, which knows SPARK-55271."""
        run_stream(lambda _: self._start(settings, availableNow=True), registry=settings, subject="numbers")

    def rows(self) -> list[tuple[int, int]]:
        """Return offset and number of the committed rows, in order, with duplicates."""
        return sorted((row["offset"], row["n"]) for row in self._spark.read.parquet(str(self._folder)).collect())


@pytest.mark.parametrize("path", ["jvm", "python"])
def test_a_minute_without_the_registry(
    spark: SparkSession, kafka_broker: KafkaBroker, frame: Any, tmp_path: Path, path: Literal["jvm", "python"]
) -> None:
    """Known ids continue; a new one waits, or ends a query with less patience; no record is lost or duplicated."""
    numbers = Numbers(spark, kafka_broker, f"numbers-{path}")
    waiting, ending = (Sink(spark, numbers, tmp_path / name, path) for name in ("waiting", "ending"))
    with RegistryNode(f"sqlite:///{tmp_path / 'registry.db'}") as node:
        patient = ClientSettings.of(node.url, retries=1000, backoff=0.1, max_backoff=0.2)
        impatient = ClientSettings.of(node.url, retries=5, backoff=0.1, max_backoff=0.2)
        with RegistryClient.from_settings(patient) as client:
            old, new = (client.register("numbers", json.dumps(one)).schema_id for one in (NUMBER, NAMED))

        def known(n: int) -> bytes:
            return frame(old, NUMBER, {"n": n})  # type: ignore[no-any-return]

        def not_met(n: int) -> bytes:
            return frame(new, NAMED, {"n": n, "label": "x"})  # type: ignore[no-any-return]

        numbers.produce(known)
        with waiting.running(patient) as one:
            with ending.running(impatient) as other:
                one.processAllAvailable()
                other.processAllAvailable()
                node.kill()
                killed = time.monotonic()
                while time.monotonic() < killed + KNOWN_S:
                    numbers.produce(known)
                    one.processAllAvailable()
                    other.processAllAvailable()
                until_then = [(n, n) for n in range(numbers.count)]
                assert [until_then, until_then] == [waiting.rows(), ending.rows()]

                numbers.produce(not_met)
                numbers.produce(known)
                reason = f"schema id {new} could not be looked up: {node.url} does not answer"
                with pytest.raises(StreamingQueryException, match=reason):
                    other.processAllAvailable()
            numbers.produce(known)
            time.sleep(max(0.0, killed + OUTAGE_S - time.monotonic()))
            assert [until_then, until_then] == [waiting.rows(), ending.rows()]
            assert one.isActive

            node.restart()
            numbers.produce(not_met)
            one.processAllAvailable()
            ending.catch_up(impatient)

    assert numbers.count > len(until_then)
    assert [(n, n) for n in range(numbers.count)] == waiting.rows() == ending.rows()
