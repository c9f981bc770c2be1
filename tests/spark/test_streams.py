"""Decodes work in running streams, whatever becomes of the registry meanwhile."""

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql.streaming import StreamingQuery

from harness.registry import RegistryNode
from harness.waiting import until
from strata.serdes.client import ClientSettings, RegisteredSchema, RegistryClient
from strata.spark_udfs import decode, install, run_stream, split_dead_letters

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves them to the collector
]

MakeFrame = Callable[[int, Any, Any], bytes]

NUMBER = {"type": "record", "name": "Number", "fields": [{"name": "n", "type": "long"}]}
NAMED = {
    "type": "record",
    "name": "Number",
    "fields": [{"name": "n", "type": "long"}, {"name": "label", "type": ["null", "string"], "default": None}],
}


class Decoder:
    """`decode` on one path, installed into the session if the path needs that."""

    def __init__(self, spark: SparkSession, path: Literal["jvm", "python"]) -> None:
        self.path = path
        self._spark = spark

    def __call__(self, registry: ClientSettings, **options: Any) -> Column:
        """Decode the column of frames."""
        if self.path == "jvm":
            install(self._spark, registry=registry)
        return decode("value", registry=registry, path=self.path, **options)


def on(path: str) -> pytest.MarkDecorator:
    """Run a test on one path, and on the other in `make test-all`: both answer for the same query of Spark."""
    paths = [one if one == path else pytest.param(one, marks=pytest.mark.slow) for one in ("jvm", "python")]
    return pytest.mark.parametrize("decoder", paths, indirect=True)


@pytest.fixture
def decoder(request: pytest.FixtureRequest, spark: SparkSession) -> Decoder:
    """Run the test on each path."""
    return Decoder(spark, request.param)


class Topic:
    """A folder of Parquet files that a stream reads like a topic."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.folder = folder
        self._spark = spark
        self._files = count()
        self._offsets = count()
        folder.mkdir()

    def produce(self, *frames: bytes | None) -> None:
        """Add frames, which makes a micro-batch."""
        offsets = [next(self._offsets) for _ in frames]
        table = pa.table({"offset": pa.array(offsets, pa.int64()), "value": pa.array(frames, pa.binary())})
        unfinished = self.folder / ".unfinished"
        pq.write_table(table, unfinished)
        unfinished.rename(self.folder / f"{next(self._files):04}.parquet")

    def stream(self) -> DataFrame:
        """Return the stream of the topic, one file in each batch."""
        reader = self._spark.readStream.schema("offset long, value binary").option("maxFilesPerTrigger", 1)
        return reader.parquet(str(self.folder))


@pytest.fixture
def topic(spark: SparkSession, tmp_path: Path) -> Topic:
    """Return an empty topic."""
    return Topic(spark, tmp_path / "topic")


@contextmanager
def _running(df: DataFrame, table: str) -> Iterator[StreamingQuery]:
    """Run a query that fills a table in memory."""
    query = df.writeStream.format("memory").queryName(table).start()
    try:
        yield query
    finally:
        query.stop()


@contextmanager
def _writing(df: DataFrame, sink: Path) -> Iterator[StreamingQuery]:
    """Start a query that writes Parquet, with its checkpoint next to it."""
    writer = df.writeStream.format("parquet").option("checkpointLocation", f"{sink}.checkpoint")
    query = writer.start(str(sink))
    try:
        yield query
    finally:
        query.stop()


def _in_order(df: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in df.collect())


@pytest.mark.parametrize("decoder", ["jvm", "python"], indirect=True)
def test_version_registered_while_the_query_runs(
    spark: SparkSession, registry: RegistryClient, frame: MakeFrame, topic: Topic, decoder: Decoder
) -> None:
    """A query decodes frames of a version registered after it started, without a restart."""
    subject = f"growing_{decoder.path}"
    first = registry.register(subject, json.dumps(NUMBER)).schema_id
    decoded = topic.stream().withColumn("decoded", decoder(registry.settings, subject=subject))
    values, _ = split_dead_letters(decoded)

    with _running(values.select("offset", "decoded.*"), subject) as query:
        topic.produce(frame(first, NUMBER, {"n": 1}))
        query.processAllAvailable()
        second = registry.register(subject, json.dumps(NAMED)).schema_id
        topic.produce(frame(second, NAMED, {"n": 2, "label": "new"}), frame(first, NUMBER, {"n": 3}))
        query.processAllAvailable()

        assert query.exception() is None

    assert first != second
    assert [(0, 1), (1, 2), (2, 3)] == _in_order(spark.table(subject))


@on("jvm")
def test_failfast(
    spark: SparkSession, registry: RegistryClient, frame: MakeFrame, topic: Topic, decoder: Decoder
) -> None:
    """A stream in mode FAILFAST ends at the first record without a value, and names that record."""
    schema_id = registry.register("failing-stream", json.dumps(NUMBER)).schema_id
    good = frame(schema_id, NUMBER, {"n": 7})
    topic.produce(good, None, good[:-1], b"")
    column = decoder(registry.settings, subject="failing-stream", mode="FAILFAST", origin=["offset"])

    with (
        pytest.raises(StreamingQueryException, match=r"\(schema id \d+, offset 2\): truncated \(at field n"),
        _running(topic.stream().select("offset", column), f"failing_{decoder.path}") as query,
    ):
        query.processAllAvailable()


@on("jvm")
def test_newest_version_in_each_batch(
    registry: RegistryClient, frame: MakeFrame, topic: Topic, decoder: Decoder
) -> None:
    """A decode that is made in foreachBatch takes the newest version as its reader schema, without a restart."""
    subject = f"each batch {decoder.path}"
    seen: list[dict[str, Any]] = []

    def take(batch: DataFrame, _: int) -> None:
        column = decoder(registry.settings, subject=subject, mode="FAILFAST")
        seen.extend(row["d"].asDict() for row in batch.select(column.alias("d")).collect())

    query = topic.stream().writeStream.foreachBatch(take).start()
    try:
        for number, schema in enumerate((NUMBER, NAMED)):
            schema_id = registry.register(subject, json.dumps(schema)).schema_id
            topic.produce(frame(schema_id, schema, {"n": number, "label": "new"}))
            query.processAllAvailable()
    finally:
        query.stop()

    assert [{"n": 0}, {"n": 1, "label": "new"}] == seen


@on("jvm")
def test_two_sinks(
    spark: SparkSession, registry: RegistryClient, frame: MakeFrame, topic: Topic, decoder: Decoder
) -> None:
    """Good rows and dead letters of one stream go to two sinks, each frame to exactly one of them."""
    schema_id = registry.register("sinks", json.dumps(NUMBER)).schema_id
    decoded = topic.stream().withColumn("decoded", decoder(registry.settings, subject="sinks"))
    values, dead = split_dead_letters(decoded.drop("value"))
    good = frame(schema_id, NUMBER, {"n": 7})
    topic.produce(good, good + b"\0")
    topic.produce(good[:-1], good)

    with _running(values, "values_sink") as one, _running(dead, "dead_sink") as other:
        one.processAllAvailable()
        other.processAllAvailable()

    assert [(0, Row(n=7)), (3, Row(n=7))] == _in_order(spark.table("values_sink"))
    assert [
        (1, "trailing bytes", schema_id, bytearray(good + b"\0")),
        (2, "truncated", schema_id, bytearray(good[:-1])),
    ] == _in_order(spark.table("dead_sink"))


@on("jvm")
def test_for_each_batch(
    spark: SparkSession, registry: RegistryClient, frame: MakeFrame, topic: Topic, decoder: Decoder
) -> None:
    """In foreachBatch a persisted batch is split into both."""
    schema_id = registry.register("batches", json.dumps(NUMBER)).schema_id
    decoded = topic.stream().withColumn("decoded", decoder(registry.settings, subject="batches"))
    topic.produce(frame(schema_id, NUMBER, {"n": 7}), b"\1")
    seen: list[tuple[str, int]] = []

    def take(batch: DataFrame, _: int) -> None:
        batch.persist()
        values, dead = split_dead_letters(batch)
        seen.extend(("good", row["decoded"]["n"]) for row in values.collect())
        seen.extend((row["reason"], row["offset"]) for row in dead.collect())
        batch.unpersist()

    query = decoded.writeStream.foreachBatch(take).start()
    query.processAllAvailable()
    query.stop()

    assert [("good", 7), ("frame too short", 1)] == seen


@pytest.mark.long
@on("python")
def test_registry_outage(spark: SparkSession, frame: MakeFrame, topic: Topic, tmp_path: Path, decoder: Decoder) -> None:
    """Without the registry known ids continue, and a new one stops the query, which loses nothing when restarted."""
    with RegistryNode(f"sqlite:///{tmp_path / 'registry.db'}") as node:
        client = RegistryClient(node.url, retries=1, backoff=0.01)
        first = client.register("outage", json.dumps(NUMBER)).schema_id
        second = client.register("outage", json.dumps(NAMED)).schema_id
        # Two concurrent tasks have a Python worker each, of which one has not met the first id.
        decoded = (
            topic.stream().repartition(2).withColumn("decoded", decoder(client.settings, subject="outage", version=1))
        )
        values, _ = split_dead_letters(decoded)
        sink = tmp_path / "values"
        with _writing(values.select("offset", "decoded.*"), sink) as query:
            topic.produce(frame(first, NUMBER, {"n": 1}))
            query.processAllAvailable()
            node.kill()
            topic.produce(frame(first, NUMBER, {"n": 2}), frame(first, NUMBER, {"n": 3}))
            query.processAllAvailable()
            topic.produce(frame(first, NUMBER, {"n": 4}), frame(second, NAMED, {"n": 5, "label": None}))
            with pytest.raises(
                StreamingQueryException, match=r"schema id \d could not be looked up: .*does not answer"
            ):
                query.processAllAvailable()
        assert [(0, 1), (1, 2), (2, 3)] == _in_order(spark.read.parquet(str(sink)))
        node.restart()
        with _writing(values.select("offset", "decoded.*"), sink) as query:
            query.processAllAvailable()

    assert [(n - 1, n) for n in range(1, 6)] == _in_order(spark.read.parquet(str(sink)))


class DeadPort:
    """A port that accepts and drops connections, as a registry that shuts down does, and counts them."""

    def __init__(self, port: int) -> None:
        self.attempts = 0
        self._socket = socket.create_server(("127.0.0.1", port))
        self._thread = threading.Thread(target=self._drop)
        self._thread.start()

    def _drop(self) -> None:
        with contextlib.suppress(OSError):  # the socket is closed
            while True:
                self._socket.accept()[0].close()
                self.attempts += 1

    def close(self) -> None:
        """Release the port."""
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()


@on("jvm")
def test_short_outage(frame: MakeFrame, topic: Topic, tmp_path: Path, decoder: Decoder, spark: SparkSession) -> None:
    """A record of a new id waits out an outage that is shorter than the retries; the query never stops."""
    with RegistryNode(f"sqlite:///{tmp_path / 'registry.db'}") as node:
        client = RegistryClient(node.url, retries=600, backoff=0.05, max_backoff=0.1)
        schema_id = client.register("short-outage", json.dumps(NUMBER)).schema_id
        decoded = topic.stream().withColumn("decoded", decoder(client.settings, subject="short-outage"))
        values, _ = split_dead_letters(decoded)
        table = f"short_outage_{decoder.path}"
        node.kill()
        dead = DeadPort(node.port)
        with _running(values.select("offset", "decoded.*"), table) as query:
            topic.produce(frame(schema_id, NUMBER, {"n": 1}))
            until(lambda: dead.attempts > 3)
            dead.close()
            node.restart()
            query.processAllAvailable()

            assert query.exception() is None

    assert [(0, 1)] == _in_order(spark.table(table))


class Build:
    """Builder of a query that writes Parquet, with the given reader schema."""

    def __init__(self, topic: Topic, sink: Path, decoder: Decoder, settings: ClientSettings) -> None:
        self.versions: list[int | None] = []
        self.query: StreamingQuery | None = None
        self.refuses: int | None = None
        self._topic, self._sink, self._decoder, self._settings = topic, sink, decoder, settings

    def __call__(self, reader: RegisteredSchema) -> StreamingQuery:
        """Start the query of a reader schema."""
        if reader.version == self.refuses:
            raise ValueError("not this one")
        column = self._decoder(self._settings, schema_id=reader.schema_id)
        values, _ = split_dead_letters(self._topic.stream().withColumn("decoded", column))
        writer = values.select("offset", "decoded.*").writeStream.format("parquet")
        self.query = writer.option("checkpointLocation", f"{self._sink}.checkpoint").start(str(self._sink))
        self.versions.append(reader.version)
        return self.query


@contextmanager
def _following(build: Build, settings: ClientSettings, subject: str) -> Iterator[None]:
    """Run `run_stream` in a thread, until the query is stopped."""
    arguments: dict[str, Any] = {"registry": settings, "subject": subject, "evolve": "restart", "poll": 0.1}
    with ThreadPoolExecutor(1) as threads:
        following = threads.submit(run_stream, build, **arguments)
        until(lambda: build.query is not None or following.done())
        try:
            if not following.done():
                yield
        finally:
            if build.query is not None:
                build.query.stop()
        assert build.query is following.result()


@pytest.mark.long
@on("jvm")
def test_restart_on_a_newer_version(
    spark: SparkSession, registry: RegistryClient, frame: MakeFrame, topic: Topic, tmp_path: Path, decoder: Decoder
) -> None:
    """With evolve="restart" the fields of a newer version appear mid-stream; no record is lost or duplicated."""
    subject, sink = f"restarts_{decoder.path}", tmp_path / "sink"
    first = registry.register(subject, json.dumps(NUMBER)).schema_id
    build = Build(topic, sink, decoder, registry.settings)

    with _following(build, registry.settings, subject):
        topic.produce(frame(first, NUMBER, {"n": 1}))
        build.query.processAllAvailable()
        for n in range(2, 5):
            topic.produce(frame(first, NUMBER, {"n": n}))
        second = registry.register(subject, json.dumps(NAMED)).schema_id
        topic.produce(frame(second, NAMED, {"n": 5, "label": "in between"}))
        until(lambda: build.versions == [1, 2])
        topic.produce(frame(second, NAMED, {"n": 6, "label": "after"}), frame(first, NUMBER, {"n": 7}))
        build.query.processAllAvailable()

    rows = spark.read.option("mergeSchema", "true").parquet(str(sink))
    assert [(n - 1, n) for n in range(1, 8)] == _in_order(rows.select("offset", "n"))
    assert ["after"] == [row["label"] for row in rows.where("n = 6").collect()]


def test_versions_that_are_passed_over(
    spark: SparkSession, frame: MakeFrame, topic: Topic, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The query continues unchanged with a version that it cannot take up, and while the registry is away."""
    decoder = Decoder(spark, "jvm")
    with RegistryNode(f"sqlite:///{tmp_path / 'registry.db'}") as node:
        client = RegistryClient(node.url, retries=0)
        client.set_config("NONE")
        client.register("passed", json.dumps(NUMBER))
        build = Build(topic, tmp_path / "sink", decoder, client.settings)
        build.refuses = 3
        with _following(build, client.settings, "passed"):
            client.register("passed", json.dumps({**NUMBER, "fields": [{"name": "n", "type": "string"}]}))
            until(lambda: "skipping version 2 of passed" in caplog.text)
            client.register("passed", json.dumps({**NAMED, "doc": "refused"}))
            until(lambda: "skipping version 3 of passed: not this one" in caplog.text)
            until(lambda: build.versions == [1, 1])
            node.kill()
            until(lambda: "could not look for a newer version of passed" in caplog.text)
            node.restart()
            client.register("passed", json.dumps(NAMED))
            until(lambda: build.versions == [1, 1, 4])


def test_stream_that_keeps_its_version(
    spark: SparkSession, registry: RegistryClient, frame: MakeFrame, topic: Topic
) -> None:
    """By default the query is built once, and `run_stream` ends with it."""
    schema_id = registry.register("kept", json.dumps(NUMBER)).schema_id
    topic.produce(frame(schema_id, NUMBER, {"n": 1}))
    versions = []

    def build(reader: RegisteredSchema) -> StreamingQuery:
        versions.append(reader.version)
        column = decode("value", registry=registry.settings, schema_id=reader.schema_id, path="python")
        writer = topic.stream().select(column["value"]["n"].alias("n")).writeStream.format("memory").queryName("kept")
        return writer.trigger(availableNow=True).start()

    query = run_stream(build, registry=registry.settings, subject="kept")

    assert not query.isActive
    assert ([1], [(1,)]) == (versions, _in_order(spark.table("kept")))


def _unused(_: RegisteredSchema) -> StreamingQuery:
    raise AssertionError("nothing is started")


@pytest.mark.parametrize(
    ("build", "options", "message"),
    [
        pytest.param(_unused, {"evolve": "never"}, "allowed are keep, restart", id="evolve"),
        pytest.param(_unused, {"evolve": "restart", "poll": 0}, "poll is 0; expected more than 0", id="poll"),
        pytest.param(_unused, {"patience": -1}, "patience is -1; expected 0 or more", id="patience"),
        pytest.param(
            lambda _: None, {}, "expected build to return the query that it started, got NoneType", id="build"
        ),
    ],
)
def test_run_stream_refuses(registry: RegistryClient, build: Any, options: dict[str, Any], message: str) -> None:
    """Wrong arguments are refused before a query is started, or as soon as they can be known."""
    registry.register("refused", json.dumps(NUMBER))

    with pytest.raises((ValueError, TypeError), match=message):
        run_stream(build, registry=registry.settings, subject="refused", **options)
