"""What a candidate makes of a data frame of frames, counted by reason: batch and stream."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from google.protobuf.message_factory import GetMessageClass
from pyspark.sql import DataFrame, Row, SparkSession, functions

from harness.proof_cases import random_pairs
from harness.protobuf_readers import filled
from strata.compat.limits import Limits
from strata.compat.schema import SchemaFormat
from strata.compat.witness.protobuf_types import message_types
from strata.gitops.replay.judges import judge_of
from strata.gitops.replay.outcome import CHANGED, UNREADABLE, Outcome
from strata.gitops.replay.topic import Batch
from strata.serdes.client import RegistryClient, Schema
from strata.serdes.framing import write_indexes
from strata.serdes.protobuf.files import indexes_of
from strata.spark_udfs import replay
from strata.spark_udfs.decoding.jvm_function import a_catalog_of

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


def rows_in(spark: SparkSession, frames: Sequence[bytes | None]) -> DataFrame:
    """Return frames with their places as rows of one task."""
    return spark.createDataFrame(rows_of(frames), f"value binary, {PLACES}").coalesce(1)


def collected(parts: Mapping[str, DataFrame]) -> dict[str, list[Row]]:
    """Return the rows of each data frame, all of them from one query."""
    named = [outcomes.withColumn("part", functions.lit(name)) for name, outcomes in parts.items()]
    rows = reduce(DataFrame.unionByName, named).collect()
    return {name: [row for row in rows if row.part == name] for name in parts}


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


PLACED = {  # what: the column of frames, and those of the place
    "the columns of Kafka": ("value", ["topic", "partition", "offset"]),
    "another order": ("value", ["offset", "topic"]),
    "times": ("value", ["day", "moment", "local", "partition"]),
    "compared by Spark": ("value", ["price", "ratio", "offset"]),
    "a literal": ("value", ["'flights' as topic", "offset"]),
    "computed": ("value", ["offset % 5 as rest", "partition"]),
    "frames behind an expression": ("substring(value, 1)", ["offset", "topic"]),
    "a struct of frame and header": ("named_struct('value', value, 'header', cast(null as binary))", ["offset"]),
    "a column of such structs": ("record", ["offset"]),
}


@pytest.fixture
def placed(spark: SparkSession, frames: list[bytes | None]) -> DataFrame:
    """Return frames that are read, and frames that are not, with columns of all types, in several partitions."""
    chance = Random(31)
    rows = [(frames[chance.randrange(2)], *(chance.choice([None, *range(9)]) for _ in range(5))) for _ in range(300)]
    numbers = spark.createDataFrame(rows, "value binary, a int, b int, c int, d int, e int")
    df = numbers.selectExpr(
        "value",
        "named_struct('value', value, 'header', cast(null as binary)) as record",
        "concat('flights', a) as topic",
        "b as partition",
        "cast(c * 1000 as bigint) as offset",
        "date_add('2026-11-27', d) as day",
        "timestamp_seconds(e) as moment",
        "timestamp_ntz '2026-11-27 00:00:00' as local",
        "cast(d / 3 as decimal(38, 2)) as price",
        "-e / 7e0 as ratio",
    )
    df = df.repartition(2).localCheckpoint()  # or each query would compute them again, once for each row of `PLACED`
    assert df.rdd.getNumPartitions() > 1
    return df


Ends = dict[str, list[tuple[Any, ...]]]


def ends_in_spark(df: DataFrame, good: bytes | None) -> Ends:
    """Return whether records are good, their number, the least and the greatest place, and a bad record."""
    places = [f"struct({', '.join(columns)})" for _, columns in PLACED.values()]
    ends = [functions.expr(f"cast({end}({place}) as string)") for place in places for end in ("min", "max")]
    bad = functions.expr("any_value(if(good, null, value))")
    groups = df.withColumn("good", functions.col("value") == functions.lit(good)).groupBy("good")
    rows = sorted(groups.agg(functions.count("*"), bad, *ends).collect())
    return {
        what: [(row[0], row[1], row[3 + 2 * number], row[4 + 2 * number], row[2]) for row in rows]
        for number, what in enumerate(PLACED)
    }


def ends_in_sql(df: DataFrame, call: str) -> Ends:
    """Return the same of the outcomes of a call, for all places in one query."""
    catalog = a_catalog_of(df.sparkSession)
    calls = (
        call.format(catalog=catalog, frame=frame, place=f"struct({', '.join(columns)})")
        for frame, columns in PLACED.values()
    )
    ends = "isnull(one.reason), one.count, cast(one.first as string), cast(one.last as string), one.frame"
    [row] = df.selectExpr(*(f"transform({call}, one -> struct({ends}))" for call in calls)).collect()
    return {what: sorted(map(tuple, outcomes)) for what, outcomes in zip(PLACED, row, strict=True)}


def ends_of_replay(df: DataFrame, registry: RegistryClient, *names: str) -> Ends:
    """Return the same of `replay`, for some places."""
    ends = [functions.col(name).cast("string") for name in ("first", "last")]
    parts = {}
    for what in names:
        frame, columns = PLACED[what]
        place = [column.rpartition(" ")[2] for column in columns]
        rows = df.selectExpr(f"{frame} as value", *columns)
        outcomes = replay(rows, NARROW, registry=registry.settings, place=place)
        parts[what] = outcomes.select(functions.isnull("reason"), "count", *ends, "frame")
    return {what: sorted(tuple(row)[:-1] for row in rows) for what, rows in collected(parts).items()}


@pytest.mark.usefixtures("installed")
def test_places(registry: RegistryClient, frames: list[bytes | None], placed: DataFrame) -> None:
    """The first and the last place are the least and the greatest struct of Spark, whatever the columns and call."""
    registry.register("narrow", NARROW)
    told = ends_in_spark(placed, frames[0])

    assert told == ends_in_sql(placed, "{catalog}_replay({frame}, 'narrow', {place})")
    assert told == ends_in_sql(placed, "{catalog}.replay.`narrow`({frame}, {place})")
    some = ("another order", "frames behind an expression", "a column of such structs")
    assert {what: told[what] for what in some} == ends_of_replay(placed, registry, *some)


@pytest.mark.usefixtures("installed", "generated_code")
def test_groups(spark: SparkSession, registry: RegistryClient, placed: DataFrame) -> None:
    """In SQL, outcomes are counted by group; no frames have no outcomes."""
    registry.register("narrow", NARROW)
    call = f"size({a_catalog_of(spark)}_replay(value, 'narrow', struct(offset))) as outcomes"
    groups = placed.groupBy("partition").agg(functions.expr(call))

    assert {(None, 2), *((number, 2) for number in range(9))} == {*map(tuple, groups.collect())}
    assert [] == replay(placed.where("value is null"), NARROW, registry=registry.settings).collect()


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
    ids, parts = {}, {}
    for what, (writer, reader, same, other, *_) in CHANGES.items():
        before, after = (
            {"type": "record", "name": "R", "fields": [{"name": "f", "type": one}, {"name": "s", "type": "string"}]}
            for one in (writer, reader)
        )
        if what == "renamed":
            after["fields"].reverse()
            after["fields"][1] |= {"name": "g", "aliases": ["f"]}
        ids[what] = registry.register(f"changes-{what}", json.dumps(before)).schema_id
        values = [other, other] if what == "a time" else [same, other, other]
        frames = [frame(ids[what], before, {"f": value, "s": "é"}) for value in values]
        parts[what] = replay(rows_in(spark, frames), json.dumps(after), registry=registry.settings)

    for what, rows in collected(parts).items():
        *_, path, written, read = CHANGES[what]
        size = 2 if what == "a time" else 3
        outcomes = {row.reason: row for row in rows}
        changed = outcomes["another value is read"]
        assert (path, written, read) == (changed.path, changed.written_as, changed.read_as), what
        assert (ids[what], 2, size - 2) == (changed.schema_id, changed["count"], changed.first.offset), what
        assert outcomes.keys() == {None, "another value is read"}
        assert size == outcomes[None]["count"], what


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


def grouped(seen: Iterable[tuple[str, str, int, int]]) -> dict[tuple[str, str], tuple[int, int]]:
    """Return count and first place for each kind and path; the words of reasons are those of each parser."""
    groups: dict[tuple[str, str], tuple[int, int]] = {}
    for kind, path, count, first in seen:
        before, least = groups.get((kind, path), (0, first))
        groups[kind, path] = before + count, min(least, first)
    return groups


def seen_by_replay(
    client: RegistryClient, candidate: Schema, frames: Sequence[bytes]
) -> dict[tuple[str, str], tuple[int, int]]:
    """Return what `strata replay` finds."""
    outcome = Outcome()
    sizes = np.array([*map(len, frames)])
    batch = Batch(0, np.frombuffer(b"".join(frames), np.uint8), sizes, np.arange(len(frames)))
    judge_of(candidate, client, writes=False).judge(batch, outcome)
    return grouped(
        (key.kind, key.path, finding.count, finding.first[0].offset) for key, finding in outcome.findings.items()
    )


def seen_by_spark(outcomes: Iterable[Row]) -> dict[tuple[str, str], tuple[int, int]]:
    """Return the same of `replay` in Spark, without what only a decode refuses."""
    return grouped(
        (
            CHANGED if row.reason == "another value is read" else UNREADABLE,
            row.path or "",
            row["count"],
            row.first.offset,
        )
        for row in outcomes
        if row.reason is not None and not is_of_decode(row.reason)
    )


def is_of_decode(reason: str) -> bool:
    """Return whether a column cannot hold what a parser reads: another type, or too large a number."""
    return reason.startswith(("resolution: the reader schema has", "out of range"))


MESSAGES = {  # change: the writer's fields, the candidate's, and messages as their bytes
    "signs": ("int32 a = 1; string s = 2;", "uint32 a = 1; string s = 2;", ["", "0805", "08ffffffffffffffffff01"]),
    "a bool": ("int32 a = 1;", "bool a = 1;", ["", "0801", "0805"]),
    "cut": ("int64 a = 1;", "int32 a = 1;", ["0805", "088080808080808001"]),
    "symbols": ("E a = 1;", "F a = 1;", ["0801", "0802", "0803", ""]),
    "presence": ("optional int32 a = 1;", "int32 a = 1;", ["", "0800", "0805"]),
    "a wire type": ("int32 a = 1;", "string a = 1;", ["", "0805"]),
    "reused": ("int32 a = 1;", "int32 b = 1; int32 a = 2;", ["0805", ""]),
    "a oneof": ("int32 a = 1; int32 b = 2;", "oneof o { int32 a = 1; int32 b = 2; }", ["0801", "08011002", "1002"]),
    "inside": (
        "repeated E a = 1; map<string, int32> b = 2; M m = 3;",
        "repeated F a = 1; map<string, uint32> b = 2; N m = 3;",
        ["0a020102", "0a0100", "12040a01611005", "120d0a016110ffffffffffffffffff01", "1a0b08ffffffffffffffffff01"],
    ),
    "a file that no registry gives": (
        *2 * ("google.protobuf.UInt64Value a = 1; map<bool, google.protobuf.UInt64Value> b = 2;",),
        ["0a020805", "1206080012020805"],
    ),
    "damage": ("int32 a = 1; string s = 2;", "uint32 a = 1; string s = 2;", ["0a", "1205", "1201ff", "08"]),
}  # fmt: skip
IMPORT = 'import "google/protobuf/wrappers.proto";'
MORE = """message M { int32 n = 1; } message N { uint32 n = 1; }
    enum E { Z = 0; EA = 1; EB = 2; } enum F { FZ = 0; FA = 1; FC = 3; }"""


@pytest.fixture(scope="module")
def judged(registry: RegistryClient) -> dict[str, tuple[Schema, list[bytes], dict[tuple[str, str], tuple[int, int]]]]:
    """Return by change: the candidate, frames, and what `strata replay` finds in them."""
    judged = {}
    for what, (writer, reader, payloads) in MESSAGES.items():
        written, candidate = (
            Schema(f'syntax = "proto3"; {IMPORT} message A {{ {fields} }} {MORE}', "PROTOBUF")
            for fields in (writer, reader)
        )
        schema_id = registry.register(f"messages-{what}", written).schema_id
        frames = [b"\0" + schema_id.to_bytes(4, "big") + b"\0" + bytes.fromhex(payload) for payload in payloads]
        judged[what] = candidate, frames, seen_by_replay(registry, candidate, frames)
    return judged


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("path", ["jvm", pytest.param("python", marks=pytest.mark.long)])
def test_messages_that_change(spark: SparkSession, registry: RegistryClient, judged: Any, path: Any) -> None:
    """The values of Protobuf that a candidate has otherwise are those that `strata replay` finds, on both paths."""
    parts = {
        what: replay(rows_in(spark, frames), candidate, registry=registry.settings, path=path)
        for what, (candidate, frames, _) in judged.items()
    }

    assert {what: seen for what, (*_, seen) in judged.items()} == {
        what: seen_by_spark(rows) for what, rows in collected(parts).items()
    }


def random_frames(registry: RegistryClient, seed: int, size: int) -> Iterator[tuple[Schema, list[bytes]]]:
    """Yield candidates of Protobuf, with random frames of another schema."""
    chance = Random(seed)
    for number, pair in enumerate(islice(random_pairs(SchemaFormat.PROTOBUF, chance), size)):
        kind = message_types(pair.writer, Limits())[0]["M"]
        schema_id = registry.register(f"random-{number}", Schema(pair.writer.canonical, "PROTOBUF")).schema_id
        payloads = [filled(GetMessageClass(kind)(), chance).SerializeToString() for _ in range(30)]
        yield (
            Schema(pair.reader.canonical, "PROTOBUF"),
            [b"\0" + schema_id.to_bytes(4, "big") + write_indexes(indexes_of(kind)) + payload for payload in payloads],
        )


@pytest.mark.usefixtures("installed")
@pytest.mark.slow  # `test_message_changes` covers the rule without Spark
@pytest.mark.parametrize("size", [60])
def test_random_messages(spark: SparkSession, registry: RegistryClient, size: int) -> None:
    """Random messages of random pairs are judged in the JVM as `strata replay` judges them."""
    found = 0
    for candidate, frames in random_frames(registry, 77, size):
        df = rows_in(spark, frames)
        outcomes = replay(df, candidate, registry=registry.settings, message="shop.M", path="jvm").collect()
        expected = seen_by_replay(registry, candidate, frames)
        found += len(expected)
        seen = seen_by_spark(outcomes)
        # A record that `decode` refuses has one reason in Spark, and a parser's complaint about it is not told as well.
        is_refused = any(is_of_decode(row.reason or "") for row in outcomes)
        told = {key for key in expected if not (is_refused and key[0] == UNREADABLE)}
        only_refused = {key for key in seen if key[0] == UNREADABLE} - told
        assert {key: expected[key] for key in told} == {
            key: group for key, group in seen.items() if key not in only_refused
        }, candidate
    assert found > 0


@pytest.mark.usefixtures("installed")
def test_a_stream_of_messages(spark: SparkSession, registry: RegistryClient, tmp_path: Path) -> None:
    """On a stream, too, a value of Protobuf that changes is found."""
    text = 'syntax = "proto3"; message A { int32 a = 1; }'
    schema_id = registry.register("streamed-messages", Schema(text, "PROTOBUF")).schema_id
    frames = [b"\0" + schema_id.to_bytes(4, "big") + b"\0" + payload for payload in (b"", b"\x08\x05")]
    schema = f"value binary, {PLACES}"
    spark.createDataFrame(rows_of(frames), schema).coalesce(1).write.parquet(str(tmp_path / "in/0"))
    stream = spark.readStream.schema(schema).parquet(str(tmp_path / "in/*"))

    candidate = Schema(text.replace("int32", "bool"), "PROTOBUF")
    outcomes = replay(stream, candidate, registry=registry.settings)
    query = outcomes.writeStream.format("memory").queryName("replayed_messages").outputMode("complete")
    query.trigger(availableNow=True).start().awaitTermination()

    assert {(CHANGED, "a"): (1, 1)} == seen_by_spark(spark.table("replayed_messages").collect())


@pytest.mark.usefixtures("installed")
def test_avro_and_json_as_strata_replay(spark: SparkSession, registry: RegistryClient, frame: MakeFrame) -> None:
    """In Avro and JSON, too, both find the same: values that change, and records that the candidate refuses."""
    before, after = (
        {"type": "record", "name": "R", "fields": [{"name": "n", "type": type_}, {"name": "c", "type": carrier}]}
        for type_, carrier in (("long", CARRIER), ("double", {**CARRIER, "symbols": ["UA"]}))
    )
    avro_id = registry.register("same-avro", json.dumps(before)).schema_id
    text = json.dumps({"type": "object", "properties": {"n": {"type": "integer"}}})
    json_id = registry.register("same-json", Schema(text, "JSON")).schema_id
    cases = [
        (Schema(json.dumps(after)), [frame(avro_id, before, {"n": n, "c": c}) for n, c in
                                     ((1, "UA"), (2**53 + 1, "UA"), (2**53 + 3, "UA"), (5, "AA"))]),
        (Schema(text.replace('"integer"', '"number", "minimum": 0'), "JSON"),
         [b"\0" + json_id.to_bytes(4, "big") + json.dumps({"n": n}).encode() for n in (1, 2**53 + 1, -1, 2**60 + 1)]),
    ]  # fmt: skip
    for candidate, frames in cases:
        df = rows_in(spark, frames)
        outcomes = replay(df, candidate, registry=registry.settings)
        assert seen_by_replay(registry, candidate, frames) == seen_by_spark(outcomes.collect())
