"""Frames of AWS Glue are decoded on every path like ours, in one column with others."""

import json
import zlib
from collections.abc import Sequence
from random import Random
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from harness.glue_frames import VECTORS, Vector, glue_with, register
from strata.serdes.client import ClientSettings, Metadata, RegistryClient, Rule, RuleSet, Schema
from strata.serdes.framing import MAX_INFLATED, join
from strata.spark_udfs import NotInstalled, decode, install, split_dead_letters
from strata.spark_udfs.arguments import Mode
from strata.spark_udfs.decoding.avro_decoder import avro_decoder
from strata.spark_udfs.decoding.paths import pandas_path
from strata.spark_udfs.decoding.payload_decoder import payload_decoder
from strata.spark_udfs.decoding.plan import ReaderSource, plan_decode
from strata.spark_udfs.decoding.ruled_decoder import ruled_decoder

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves them to the collector
]

UNKNOWN = UUID("00000000-0000-4000-8000-000000000001")
SHOWN = {
    "Avro": {"id": 7, "name": "seven", "tags": ["a", "b"]},
    "JSON": {"id": 7, "name": "sieben ü"},
    "a message": {"id": 9},
    "a message with a map": {"id": 7, "by_sku": {"x": 2}, "lines": [{"sku": "x"}]},
    "a nested message": {"sku": "x"},
}
MESSAGES = {(): None, (0,): "shop.Order", (1,): "shop.Cancel", (0, 0): "shop.Order.Line"}


@pytest.fixture(params=["jvm", "python", pytest.param("pandas", marks=pytest.mark.slow)])
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run the test on both paths, and on the pandas path as on Spark 4.0."""
    if request.param == "pandas":
        request.getfixturevalue("pandas_of_old")
        monkeypatch.setattr("strata.spark_udfs.decoding.columns.choose_path", lambda *_: pandas_path)
        return "python"
    return request.param


@pytest.fixture(scope="module")
def migrated(registry: RegistryClient) -> ClientSettings:
    """Return the settings of a registry into which the versions were migrated."""
    register(registry)
    return ClientSettings.of(registry.settings.urls, missing_ttl=600.0)


def _decoded(
    spark: SparkSession, settings: ClientSettings, path: Any, vector: Vector, rows: Sequence[bytes | None]
) -> DataFrame:
    if path == "jvm":
        install(spark, registry=settings)
    df = spark.createDataFrame(pa.table({"value": pa.array(rows, pa.binary())})).coalesce(1)
    options = {"message": MESSAGES[vector.message]} if vector.message else {}
    column = decode("value", registry=settings, reader_schema=vector.schema.schema, path=path, **options)
    return df.withColumn("decoded", column)


QUICK = ("Avro", "JSON", "a message with a map")


@pytest.mark.parametrize(
    "vector",
    [pytest.param(one, marks=() if one.name.startswith(QUICK) else pytest.mark.slow) for one in VECTORS[::2]],
    ids=lambda one: one.name,
)
def test_columns_of_mixed_frames(
    spark: SparkSession, registry: RegistryClient, migrated: ClientSettings, path: Any, vector: Vector
) -> None:
    """Frames of Glue, compressed or not, have the values that AWS framed; frames with an id are decoded beside them."""
    plain, packed = _pair(vector)
    named, data = b"\3\0" + vector.schema.version.bytes, plain[18:]
    ours = join(registry.register(f"glue-{vector.schema.name}", vector.schema.schema).schema_id, b"")
    if vector.message:
        data = data[1:]
        ours += {(0,): b"\0", (1,): b"\2\2", (0, 0): b"\4\0\0"}[vector.message]
    bomb = b"\3\5" + vector.schema.version.bytes + zlib.compress(bytes(MAX_INFLATED + 1))
    value = SHOWN[vector.name.rpartition(" ")[0]]
    rows: list[tuple[bytes | None, Any]] = [
        (plain, value),
        (ours + data, value),
        (packed, value),
        (None, None),
        (packed[:-1], "the compressed payload is damaged"),
        (packed + b"!", "the compressed payload is damaged"),
        (b"\3\5" + vector.schema.version.bytes, "the compressed payload is damaged"),
        (bomb, f"the payload has more than {MAX_INFLATED} bytes when it is inflated"),
        (b"\3\1" + plain[2:], "unknown compression 0x01 in a frame of AWS Glue"),
        (b"\4\0" + plain[2:], "wrong magic byte 0x04"),
        (named[:-1], "frame too short"),
        (b"\3\0" + UNKNOWN.bytes + data, "unknown Glue schema version"),
        (b"\1" + vector.schema.version.bytes + data, "unknown schema guid"),
        (packed, value),
    ]
    if vector.message:
        rows += [
            (named, "frame too short"),
            (named + b"\4", "invalid index"),
            (named + b"\2", "message is shop.Order.BySkuEntry"),
        ]

    df = _decoded(spark, migrated, path, vector, [frame for frame, _ in rows])
    found = [one["decoded"] for one in df.collect()]

    shown = [one["error"]["reason"] if one["error"] else one["value"] and one["value"].asDict(True) for one in found]
    assert [expected for _, expected in rows] == [_known(one, value) for one in shown]
    assert [frame for frame, expected in rows if isinstance(expected, str)] == [
        bytes(one["error"]["frame"]) for one in found if one["error"]
    ]


def _pair(vector: Vector) -> tuple[bytes, bytes]:
    """Return the frame of a vector, and the same compressed."""
    plain, packed = (one.frame for one in VECTORS if (one.schema, one.message) == (vector.schema, vector.message))
    return plain, packed


def _known(shown: Any, value: dict[str, Any]) -> Any:
    """Return a value without the fields that the frames do not have, or a reason."""
    return {name: one for name, one in shown.items() if name in value} if isinstance(shown, dict) else shown


def _damaged(frame: bytes, chance: Random) -> bytes:
    """Return a frame with a few bytes changed, left out or added; not in the UUID, where each change is a request."""
    data = bytearray(frame)
    for _ in range(chance.randint(1, 3)):
        at = chance.choice([0, 1, *range(18, len(data))] if len(data) > 18 else [0])
        change = chance.choice([bytes([chance.randrange(256)]), b"", b"\0", bytes([chance.randrange(256), 5])])
        data[at : at + 1] = change
    return bytes(data) if chance.random() < 0.7 else bytes(data[: chance.randrange(len(data) + 1)])


@pytest.mark.parametrize(
    "vector",
    [
        pytest.param(one, marks=() if one.name.startswith("Avro") else pytest.mark.slow)
        for one in VECTORS
        if one.name.startswith(QUICK) and one.frame[1]
    ],
    ids=lambda one: one.name,
)
def test_both_paths_say_the_same_of_damage(spark: SparkSession, migrated: ClientSettings, vector: Vector) -> None:
    """A damaged frame, compressed or not, has the same value or reason in the JVM and in Python workers."""
    chance = Random(vector.name)
    rows = [_damaged(chance.choice(_pair(vector)), chance) for _ in range(150)]

    jvm, python = (_decoded(spark, migrated, path, vector, rows).collect() for path in ("jvm", "python"))

    assert [row["decoded"].asDict(True) for row in python] == [row["decoded"].asDict(True) for row in jvm]
    reasons = {row["decoded"]["error"]["reason"] for row in jvm if row["decoded"]["error"]}
    assert {"the compressed payload is damaged", "frame too short"} < reasons


def test_inflated_records_are_in_parts(
    spark: SparkSession, migrated: ClientSettings, path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many compressed records that grow much are decoded, row for row."""
    (vector,) = (one for one in VECTORS if one.name == "JSON NONE")
    head = b"\3\5" + vector.schema.version.bytes
    rows = [
        head + zlib.compress(json.dumps({"id": number, "name": "x" * 200_000}).encode()) if number % 10 else head
        for number in range(60)
    ]

    df = _decoded(spark, migrated, path, vector, rows)
    good, letters = split_dead_letters(df, "decoded")

    numbers = [(one["decoded"]["id"], len(one["decoded"]["name"])) for one in good.collect()]
    assert [(number, 200_000) for number in range(60) if number % 10] == numbers
    assert 6 == letters.count()


@pytest.mark.parametrize(
    "vector", [one for one in VECTORS if one.name in ("Avro NONE", "JSON ZLIB")], ids=lambda one: one.name
)
def test_workers_ask_glue(vector: Vector) -> None:
    """With the setting `glue_region`, a worker looks versions up in Glue itself."""
    settings = ClientSettings.of("http://nowhere.invalid", glue_region="eu-west-1")
    plan = plan_decode(settings, ReaderSource(vector.schema.schema), mode=Mode.DEADLETTER)
    decoder = avro_decoder(plan) if plan.payload is None else payload_decoder(plan)

    with glue_with(vector.schema) as version:
        heads = (vector.frame[:2] + one.bytes for one in (version, UNKNOWN))
        good, unknown = decoder.decode(pa.array([head + vector.frame[18:] for head in heads])).to_pylist()

    assert (7, "unknown Glue schema version") == (good["value"]["id"], unknown["error"]["reason"])


def test_rules_run_over_records_of_glue(registry: RegistryClient, migrated: ClientSettings) -> None:
    """A subject that has the version of Glue, with its properties, runs its rules over Glue's records."""
    (vector,) = (one for one in VECTORS if one.name == "Avro ZLIB")
    text = vector.schema.schema.text.replace('"Order", ', '"Order", "doc": "2", ')
    small = Rule(name="small", type="CEL", kind="CONDITION", mode="READ", expr="message.id < 7")
    registry.register("glue-ruled-value", registry.get_version(f":.glue:{vector.schema.name}").schema)
    ruled = Schema(text, metadata=Metadata(properties={"stage": "2"}), rule_set=RuleSet(domain_rules=(small,)))
    registry.register("glue-ruled-value", ruled)
    plan = plan_decode(migrated, ReaderSource(subject="glue-ruled-value"), mode=Mode.DEADLETTER, rules={})

    (row,) = ruled_decoder(plan).decode(pa.array([vector.frame])).to_pylist()

    assert ("rule small: the condition does not hold: message.id < 7", vector.frame) == (
        row["error"]["reason"],
        row["error"]["frame"],
    )


def test_the_jvm_does_not_ask_glue(spark: SparkSession, migrated: ClientSettings) -> None:
    """Only Python workers ask Glue itself; `install` says so."""
    with pytest.raises(NotInstalled, match="does not support the setting glue_region"):
        install(spark, registry=ClientSettings.of(migrated.urls, glue_region="eu-west-1"))
