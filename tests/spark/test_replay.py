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


CHANGES: dict[str, tuple[Any, Any, Any, Any, str, str, str]] = {
    # what: type of the writer, of the reader, a value that stays, one that changes, path, written as, read as
    "rounded": ("long", "double", 2**53, 2**53 + 1, "f", "9007199254740993", "9.007199254740992E15"),
    "the largest": ("long", "double", -(2**63), 2**63 - 1, "f", "9223372036854775807", "9.223372036854776E18"),
    "in a float": ("int", "float", 2**24, 2**24 + 1, "f", "16777217", "1.6777216E7"),
    "an item": (
        {"type": "array", "items": "long"}, {"type": "array", "items": "double"},
        [1, 2], [1, 2**53 + 1], "f[]", "9007199254740993", "9.007199254740992E15",
    ),
    "in a map": (
        {"type": "map", "values": "long"}, {"type": "map", "values": ["null", "double"]},
        {"a": 1}, {"a": 2**53 + 1}, "f{}", "9007199254740993", "9.007199254740992E15",
    ),
    "in a union": (
        ["null", "long"], ["null", "double"], None, 2**53 + 1, "f", "9007199254740993", "9.007199254740992E15",
    ),
    "renamed": ("long", "double", 2**53, 2**53 + 1, "g", "9007199254740993", "9.007199254740992E15"),
    "beyond a float": ("long", "float", 2**24, 2**53 + 1, "f", "9007199254740993", "9.0071993E15"),
    "a symbol": (CARRIER, {**CARRIER, "symbols": ["UA"], "default": "UA"}, "UA", "AA", "f", "AA", "UA"),
    "a time": ("long", {"type": "long", "logicalType": "timestamp-millis"}, None, 1000, "f", "1000", "1000000"),
}  # fmt: skip


@pytest.mark.usefixtures("installed")
def test_values_that_change(spark: SparkSession, registry: RegistryClient, frame: MakeFrame) -> None:
    """A value that the candidate reads as another without an error is shown as it was written and as it is read."""
    for what, (writer, reader, same, other, path, written, read) in CHANGES.items():
        before, after = (
            {"type": "record", "name": "R", "fields": [{"name": "f", "type": one}, {"name": "s", "type": "string"}]}
            for one in (writer, reader)
        )
        if what == "renamed":
            after["fields"].reverse()
            after["fields"][1] |= {"name": "g", "aliases": ["f"]}
        schema_id = registry.register(f"changes-{what}", json.dumps(before)).schema_id
        values = [other, other] if what == "a time" else [same, other, other]
        df = spark.createDataFrame(
            rows_of([frame(schema_id, before, {"f": value, "s": "é"}) for value in values]), f"value binary, {PLACES}"
        )
        outcomes = {row.reason: row for row in replay(df, json.dumps(after), registry=registry.settings).collect()}

        changed = outcomes["another value is read"]
        assert (path, written, read) == (changed.path, changed.written_as, changed.read_as), what
        assert (schema_id, 2, len(values) - 2) == (changed.schema_id, changed["count"], changed.first.offset), what
        assert outcomes.keys() == {None, "another value is read"}
        assert len(values) == outcomes[None]["count"], what


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
    """Documents are judged by all keywords of the candidate, and compared by the numbers that it makes doubles of."""
    text = json.dumps({"type": "object", "properties": {"n": {"type": "integer"}}})
    schema_id = registry.register("documents", Schema(text, "JSON")).schema_id
    frames = [
        b"\0" + schema_id.to_bytes(4, "big") + json.dumps({"n": number}).encode() for number in (5, 50, 2**53 + 1)
    ]
    df = spark.createDataFrame(rows_of(frames), f"value binary, {PLACES}")

    outcomes = replay(
        df, text.replace('"integer"', '"integer", "maximum": 9'), registry=registry.settings, format="JSON"
    )

    assert told(outcomes) == {(None, None): (1, 0, 0), ("invalid value", "n"): (2, 1, 2)}

    row = {
        row.reason: row
        for row in replay(df, text.replace("integer", "number"), registry=registry.settings, format="JSON").collect()
    }
    changed = row["another value is read"]
    assert row.keys() == {None, "another value is read"}
    assert (3, 0, 2, None) == (row[None]["count"], row[None].first.offset, row[None].last.offset, row[None].frame)
    assert ("n", schema_id, 1, 2) == (changed.path, changed.schema_id, changed["count"], changed.first.offset)
    assert ("9007199254740993", "9007199254740992.0") == (changed.written_as, changed.read_as)
    assert frames[2] == bytes(changed.frame)
