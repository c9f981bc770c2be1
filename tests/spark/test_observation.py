"""The numbers of rows and dead letters show in the progress of a streaming query, and in a batch's `Observation`."""

import json
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import Observation, SparkSession, functions

from strata.serdes import AvroSerializer
from strata.serdes.client import RegistryClient
from strata.spark_udfs import decode, encode, install, observe_dead_letters, split_dead_letters

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves them to the collector
]

NUMBER = json.dumps({"type": "record", "name": "N", "fields": [{"name": "n", "type": "long"}]})
UNKNOWN = b"\0\x7f\xff\xff\xf0\2"


@pytest.fixture
def frames(registry: RegistryClient) -> tuple[list[bytes | None], dict[str, int]]:
    """Return frames, good and damaged, and what is to be counted of them."""
    good = AvroSerializer(registry, NUMBER)({"n": 7}, topic="observed")
    assert good is not None
    given = [good, good, good, None, good[:-1], good + b"x", UNKNOWN, UNKNOWN, b"{oops", b""]
    counts = {"rows": 10, "values": 3, "dead_letters": 6, "dead_truncated": 1, "dead_trailing_bytes": 1}
    return given, {**counts, "dead_unknown_schema": 2, "dead_other": 2}


@pytest.mark.parametrize("path", ["jvm", pytest.param("python", marks=pytest.mark.slow)])
def test_a_stream_shows_the_numbers_of_each_batch(
    spark: SparkSession, registry: RegistryClient, tmp_path: Path, frames: Any, path: Literal["jvm", "python"]
) -> None:
    """The progress of a query has the rows, values and dead letters by reason of its batch."""
    given, expected = frames
    install(spark, registry=registry.settings)
    topic = tmp_path / "topic"
    topic.mkdir()
    pq.write_table(pa.table({"value": pa.array(given, pa.binary())}), topic / "0.parquet")
    stream = spark.readStream.schema("value binary").parquet(str(topic))
    decoded = stream.select(
        decode("value", registry=registry.settings, subject="observed-value", path=path).alias("decoded")
    )
    good, _ = split_dead_letters(observe_dead_letters(decoded))
    query = good.writeStream.format("noop").trigger(availableNow=True).start()
    query.awaitTermination(120)
    [metrics] = [one["observedMetrics"]["strata"] for one in query.recentProgress if one["numInputRows"]]
    numbers = metrics.asDict()
    waits = [numbers.pop("registry_wait_ms"), numbers.pop("registry_retries")]

    assert expected == {name: number for name, number in numbers.items() if number}
    assert [path == "python"] * 2 == [one is None for one in waits]


def test_a_batch_has_an_observation(spark: SparkSession, registry: RegistryClient, frames: Any) -> None:
    """An `Observation` gets the same numbers of a batch query."""
    given, expected = frames
    numbers = Observation("numbers")
    df = spark.createDataFrame([(frame,) for frame in given], "value binary")
    decoded = df.select(decode("value", registry=registry.settings, subject="observed-value").alias("decoded"))
    rows = observe_dead_letters(decoded, name=numbers).collect()

    assert len(given) == len(rows)
    assert expected == {name: number for name, number in numbers.get.items() if number and "registry" not in name}


def test_an_encode_is_counted_too(spark: SparkSession, registry: RegistryClient) -> None:
    """Of an encode there are rows, frames and dead letters."""
    numbers = Observation("encoded")
    df = spark.range(3).select(functions.when(functions.col("id") > 0, functions.col("id")).alias("n"))
    encoded = df.select(
        encode(
            functions.struct("n"),
            registry=registry.settings,
            subject="observed-value",
            schema=NUMBER,
            mode="DEADLETTER",
        ).alias("e")
    )
    observe_dead_letters(encoded, "e", numbers).collect()

    assert {"rows": 3, "frames": 2, "dead_letters": 1} == numbers.get


@pytest.mark.parametrize(("column", "words"), [("other", "no column other"), ("value", "in mode DEADLETTER")])
def test_other_columns_are_refused(spark: SparkSession, column: str, words: str) -> None:
    """A column that is missing, or not a result of mode DEADLETTER, is an error before the query runs."""
    with pytest.raises(ValueError, match=words):
        observe_dead_letters(spark.createDataFrame([(b"",)], "value binary"), column)
