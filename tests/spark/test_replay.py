"""What a candidate makes of a data frame of frames, counted by reason: batch and stream."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from strata.serdes.client import RegistryClient, Schema
from strata.spark_udfs import replay

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves them to the collector
]
MakeFrame = Callable[[int, Any, Any], bytes]
CARRIER = {"type": "enum", "name": "Carrier", "symbols": ["UA", "AA"]}
FLIGHT = {"type": "record", "name": "Flight", "fields": [{"name": "carrier", "type": CARRIER}]}
NARROW = json.dumps(FLIGHT).replace(', "AA"', "")
PLACES = "topic string, partition int, offset bigint"


def rows_of(frames: Sequence[bytes | None]) -> list[tuple[bytes | None, str, int, int]]:
    """Return frames with their places."""
    return [(frame, "flights", 0, offset) for offset, frame in enumerate(frames)]


@pytest.fixture
def frames(registry: RegistryClient, frame: MakeFrame) -> list[bytes | None]:
    """Return frames that the candidate reads, does not read, and cannot know."""
    schema_id = registry.register("replayed", json.dumps(FLIGHT)).schema_id
    written = [frame(schema_id, FLIGHT, {"carrier": carrier}) for carrier in ("UA", "AA", "UA", "AA")]
    return [*written, b"junk", b"\0\0\x0f\x42\x40rest", None]


def told(outcomes: DataFrame) -> dict[tuple[str | None, str | None], tuple[int, int, int]]:
    """Return outcomes as a dict: beginning of the reason and path -> count, first and last offset."""
    return {
        (row.reason and row.reason.partition(":")[0], row.path): (row["count"], row.first.offset, row.last.offset)
        for row in outcomes.collect()
    }


EXPECTED = {
    (None, None): (3, 0, 6),
    ("resolution", "carrier"): (2, 1, 3),
    ("frame too short", None): (1, 4, 4),
    ("unknown schema id", None): (1, 5, 5),
}


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("path", ["jvm", "python"])
def test_outcomes(spark: SparkSession, registry: RegistryClient, frames: list[bytes | None], path: Any) -> None:
    """Each reason is a row with its count, the path in the record, and the first and last place."""
    df = spark.createDataFrame(rows_of(frames), f"value binary, {PLACES}")

    assert told(replay(df, NARROW, registry=registry.settings, path=path)) == EXPECTED
    with pytest.raises(ValueError, match="no column frame; it has value, topic, partition, offset"):
        replay(df, NARROW, registry=registry.settings, value="frame")


@pytest.mark.usefixtures("installed")
def test_a_stream(spark: SparkSession, registry: RegistryClient, frames: list[bytes | None], tmp_path: Path) -> None:
    """The outcomes of a stream are counted on from batch to batch."""
    schema = f"value binary, {PLACES}"
    rows = rows_of(frames)
    for number, part in enumerate((rows[:3], rows[3:])):
        spark.createDataFrame(part, schema).coalesce(1).write.parquet(str(tmp_path / f"in/{number}"))
    stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in/*"))

    outcomes = replay(stream, NARROW, registry=registry.settings)
    query = outcomes.writeStream.format("memory").queryName("replayed").outputMode("complete")
    query.trigger(availableNow=True).start().awaitTermination()

    assert told(spark.table("replayed")) == EXPECTED


def test_documents(spark: SparkSession, registry: RegistryClient) -> None:
    """Documents are judged by all keywords of the candidate, with the place in the document."""
    text = json.dumps({"type": "object", "properties": {"n": {"type": "integer"}}})
    schema_id = registry.register("documents", Schema(text, "JSON")).schema_id
    frames = [b"\0" + schema_id.to_bytes(4, "big") + json.dumps({"n": number}).encode() for number in (5, 50, 50)]
    df = spark.createDataFrame(rows_of(frames), f"value binary, {PLACES}")

    outcomes = replay(
        df, text.replace('"integer"', '"integer", "maximum": 9'), registry=registry.settings, format="JSON"
    )

    assert told(outcomes) == {(None, None): (1, 0, 0), ("invalid value", "n"): (2, 1, 2)}
