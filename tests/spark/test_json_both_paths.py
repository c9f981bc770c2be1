"""Both paths decode the same JSON frames alike in one Spark job; `test_json_program.py` has many more values."""

import json
import logging
from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import Column, DataFrame, SparkSession, functions

from harness.decode_rules.json_schema import GOOD, RICH
from harness.json_payloads import damaged
from harness.payload_columns import FrameRefused, json_column
from strata.serdes.client import ClientSettings, Reference, RegistryClient, Schema
from strata.serdes.framing import join
from strata.serdes.json_schema import JsonSerializer
from strata.spark_udfs import decode, install
from strata.spark_udfs.arguments import Mode
from strata.spark_udfs.decoding.path_choice import _log_once

pytestmark = [
    pytest.mark.spark,
    pytest.mark.usefixtures("installed", "generated_code"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves them to the collector
]

INT = {"type": "integer"}


def _columns(registry: ClientSettings, name: str, reader: Schema) -> list[Column]:
    """Return the frames' column decoded on each path."""
    return [
        decode(name, registry=registry, reader_schema=reader, path=path).alias(f"{path}_{name}")
        for path in ("jvm", "python")
    ]


def _compared(decoded: DataFrame, name: str) -> list[tuple[Any, Any]]:
    return [(_plain(row[f"jvm_{name}"]), _plain(row[f"python_{name}"])) for row in decoded.collect()]


def _plain(value: Any) -> Any:
    if hasattr(value, "asDict"):
        return {name: _plain(inner) for name, inner in value.asDict().items()}
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, float):
        return value.hex()
    return [_plain(one) for one in value] if isinstance(value, list) else value


def _schema(document: Any, *references: Reference) -> Schema:
    return Schema(json.dumps(document), "JSON", references)


def _frames(spark: SparkSession, frames: Sequence[bytes | None]) -> DataFrame:
    return spark.createDataFrame(pa.table({"f": pa.array(frames, pa.binary())})).coalesce(1)


@pytest.mark.parametrize("count", [800, pytest.param(40_000, marks=pytest.mark.slow)])
def test_damaged_frames(spark: SparkSession, client: RegistryClient, count: int) -> None:
    """No task fails; each frame is a value or a dead letter with exactly its bytes, the same on both paths."""
    chance = Random(2026)
    good = join(client.register("json-paths", _schema(RICH)).schema_id, json.dumps(GOOD).encode())
    frames = [
        damaged(good, chance) if chance.random() < 0.1 else good[:5] + damaged(good[5:], chance) for _ in range(count)
    ]
    patience = ClientSettings.of(client.settings.urls[0], missing_ttl=600)
    install(spark, registry=patience)

    compared = _compared(_frames(spark, frames).select(*_columns(patience, "f", _schema(RICH))), "f")

    assert [] == [one for one in compared if one[0] != one[1]][:3]
    dead = [jvm for jvm, _ in compared if jvm["error"] is not None]
    assert all(jvm["value"] is None for jvm in dead)
    assert not Counter(bytes(jvm["error"]["frame"]) for jvm in dead) - Counter(frames)
    assert count / 10 < len(dead) < count


def test_frames(spark: SparkSession, client: RegistryClient) -> None:
    """Ids, GUIDs and references, whether they are needed or not, mean the same on both paths."""
    schema_id = client.register("json-paths", _schema(RICH)).schema_id
    unit = client.register("json-paths-unit", _schema({"enum": ["m"]})).version
    reference = Reference("unit.json", "json-paths-unit", unit or 0)
    user = _schema({"properties": {"id": INT, "unit": {"$ref": "unit.json"}}}, reference)
    guid = JsonSerializer(client, json.dumps(RICH), conf={"schema.id.serializer": "guid"})
    frames = [
        join(schema_id, b'{"id":1}'),
        guid({"id": 2}, topic="json-paths-guid"),
        join(client.register("json-paths-user", user).schema_id, b'{"id":3,"unit":"m"}'),
    ]
    columns = [
        functions.struct(*_columns(client.settings, "f", reader)).alias(name)
        for name, reader in (("rich", _schema(RICH)), ("user", user))
    ]

    rows = _frames(spark, frames).select(*columns).collect()

    for row in rows:
        assert [row[name]["jvm_f"] for name in ("rich", "user")] == [row[name]["python_f"] for name in ("rich", "user")]
    assert [1, 2, 3] == [row["rich"]["jvm_f"]["value"]["id"] for row in rows]
    assert [(1, None), (2, None), (3, "m")] == [tuple(row["user"]["jvm_f"]["value"]) for row in rows]


# payload, the error's message
FAILFAST = {
    '{"by":{"a":"x"}}': "invalid value: expected integer, got string (at field by{})",
    '{"many":[9223372036854775808]}': "out of range (at field many[])",
    '{"id":1e400}': "out of range: a number beyond doubles (near byte 6)",
}


@pytest.mark.parametrize(("payload", "says"), FAILFAST.items())
def test_failfast(spark: SparkSession, client: RegistryClient, payload: str, says: str) -> None:
    """FAILFAST says the same on both paths, and never the value."""
    frame = join(client.register("json-paths", _schema(RICH)).schema_id, payload.encode())
    expected = f"a frame cannot be decoded (schema id {int.from_bytes(frame[1:5], 'big')}): {says}"
    column = decode("f", registry=client.settings, reader_schema=_schema(RICH), mode="FAILFAST", path="jvm")

    with pytest.raises(Exception, match="a frame cannot be decoded") as in_spark:
        _frames(spark, [frame]).select(column).collect()
    with pytest.raises(FrameRefused) as in_a_worker:
        json_column(client, RICH, mode=Mode.FAILFAST).read(frame)

    assert expected in str(in_spark.value)
    assert expected == str(in_a_worker.value)


def test_validation_stays_in_python(
    spark: SparkSession, client: RegistryClient, caplog: pytest.LogCaptureFixture
) -> None:
    """The JVM path is refused if requested by name; by default the call takes Python workers, and says why."""
    options: dict[str, Any] = {"registry": client.settings, "reader_schema": _schema(RICH), "validate": True}

    with pytest.raises(ValueError, match="path='jvm' does not decode JSON payloads with validate=True"):
        decode("value", **options, path="jvm")
    _log_once.cache_clear()
    with caplog.at_level(logging.INFO, "strata.spark_udfs"):
        decode("value", **options)

    assert "the JVM path does not decode JSON payloads with validate=True" in caplog.text
