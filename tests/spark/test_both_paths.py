"""Both paths decode the same frames alike in one Spark job: what is not a row of `harness/decode_rules`.

`test_jvm_program.py` and `test_json_program.py` compare them on random schemas and damage outside Spark.
"""

import json
import logging
from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import Column, DataFrame, SparkSession, functions

from harness.decode_rules import json_schema, protobuf
from harness.payload_columns import FrameRefused, json_column, kind_of, proto
from harness.protobuf_cases import Kind, Maker, fill
from strata.serdes.client import ClientSettings, Reference, RegistryClient, Schema
from strata.serdes.framing import join, write_indexes
from strata.serdes.json_schema import JsonSerializer
from strata.spark_udfs import decode, install
from strata.spark_udfs.arguments import Mode
from strata.spark_udfs.decoding.path_choice import _log_once

pytestmark = [
    pytest.mark.spark,
    pytest.mark.usefixtures("installed"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves them to the collector
]

INT = {"type": "integer"}
BUT_TIMES = [name for name in kind_of(protobuf.RICH).DESCRIPTOR.fields_by_name if name != "t"]
"""Python's years end at 9999."""


def _columns(registry: ClientSettings, name: str, reader: Schema, columns: Sequence[str] | None = None) -> list[Column]:
    """Return the frames' column decoded on each path."""
    return [
        decode(name, registry=registry, reader_schema=reader, columns=columns, path=path).alias(f"{path}_{name}")
        for path in ("jvm", "python")
    ]


def _frame(client: RegistryClient, schema: Schema, payload: bytes) -> bytes:
    return join(client.register("protobuf-paths", schema).schema_id, write_indexes((0,)) + payload)


def _sorted(decoded: DataFrame, names: Sequence[str]) -> list[tuple[Any, ...]]:
    """Return the values of both paths, name by name, as Python values whose maps compare by content."""
    rows = decoded.collect()
    return [(_plain(row[f"jvm_{name}"]), _plain(row[f"python_{name}"])) for name in names for row in rows]


def _plain(value: Any) -> Any:
    if hasattr(value, "asDict"):
        return {name: _plain(inner) for name, inner in value.asDict().items()}
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list) else value


def _families(chance: Random, readers: int, writers: int) -> list[tuple[Kind, list[Kind]]]:
    maker = Maker(chance)
    kinds = [maker.kind() for _ in range(readers)]
    return [(kind, [kind, *(maker.changed(kind) for _ in range(writers - 1))]) for kind in kinds]


def _payloads(kind: Kind, chance: Random, count: int) -> list[bytes]:
    message = kind_of(proto(kind.text()))
    return [fill(message(), chance).SerializeToString() for _ in range(count)]


@pytest.mark.slow
def test_random_messages(spark: SparkSession, client: RegistryClient) -> None:
    """Both paths decode messages of several writer schemas for each reader schema to the same columns."""
    chance, readers, each = Random(7), 40, 40
    families = _families(chance, readers, 4)
    names = [f"f{index}" for index in range(readers)]
    table = {}
    for name, (_, writers) in zip(names, families, strict=True):
        frames = [
            _frame(client, proto(one.text()), payload) for one in writers for payload in _payloads(one, chance, each)
        ]
        table[name] = pa.array(frames, pa.binary())
    rows = spark.createDataFrame(pa.table(table)).coalesce(1)

    decoded = rows.select(
        *(
            column
            for name, (reader, _) in zip(names, families, strict=True)
            for column in _columns(client.settings, name, proto(reader.text()))
        )
    )

    kinds = [kind for _, kind in decoded.dtypes]
    assert kinds[::2] == kinds[1::2]
    compared = _sorted(decoded, names)
    assert readers * 4 * each == len(compared)
    assert [] == [one for one in compared if one[0] != one[1]][:3]
    assert 0.5 < sum(one[0]["error"] is None for one in compared) / len(compared) < 1


@pytest.mark.slow
def test_damaged_messages(spark: SparkSession, client: RegistryClient) -> None:
    """No task fails; each frame is a value or a dead letter with exactly its bytes, the same on both paths."""
    chance, count = Random(2026), 200_000
    message = kind_of(protobuf.RICH)
    good = [_frame(client, protobuf.RICH, fill(message(), chance).SerializeToString()) for _ in range(50)]
    for start in range(0, count, 20_000):
        damaged = [_damaged(chance.choice(good), chance) for _ in range(min(20_000, count - start))]
        rows = spark.createDataFrame(pa.table({"f": pa.array(damaged, pa.binary())})).repartition(2)
        patience = ClientSettings.of(client.settings.urls[0], missing_ttl=600)
        install(spark, registry=patience)
        compared = _sorted(rows.select(*_columns(patience, "f", protobuf.RICH, BUT_TIMES)), ["f"])

        assert [] == [one for one in compared if one[0] != one[1]][:3]
        dead = [jvm for jvm, _ in compared if jvm["error"] is not None]
        assert all(jvm["value"] is None for jvm in dead)
        assert not Counter(bytes(jvm["error"]["frame"]) for jvm in dead) - Counter(damaged)
        assert len(damaged) / 10 < len(dead) < len(damaged)


def _damaged(frame: bytes, chance: Random) -> bytes:
    """Return a frame that is cut, or of which some bytes are changed, doubled or lost."""
    made = bytearray(frame)
    for _ in range(chance.randint(1, 3)):
        place = chance.randrange(len(made)) if chance.random() < 0.2 else chance.randrange(5, len(made))
        what = chance.randrange(4)
        if what == 0:
            made[place] = chance.randrange(256)
        elif what == 1:
            del made[place:]
        elif what == 2:
            made[place:place] = made[place : place + chance.randint(1, 9)]
        else:
            del made[place : place + chance.randint(1, 3)]
        if len(made) < 7:
            break
    return bytes(made)


def test_parts_that_only_python_decodes(client: RegistryClient) -> None:
    """A reader schema with such a part is refused for the JVM, and says which part it is."""
    schema = proto(
        'syntax = "proto3"; package shop; import "google/protobuf/struct.proto"; '
        "message M { int32 n = 1; google.protobuf.Struct s = 2; }"
    )
    says = r"path='jvm' does not decode the google\.protobuf\.Struct shop\.M\.s"

    with pytest.raises(ValueError, match=says):
        decode("f", registry=client.settings, reader_schema=schema, path="jvm")
    decode("f", registry=client.settings, reader_schema=schema, columns=["n"], path="jvm")


def _schema(document: Any, *references: Reference) -> Schema:
    return Schema(json.dumps(document), "JSON", references)


def _frames(spark: SparkSession, frames: Sequence[bytes | None]) -> DataFrame:
    return spark.createDataFrame(pa.table({"f": pa.array(frames, pa.binary())})).coalesce(1)


def test_frames_of_json(spark: SparkSession, client: RegistryClient) -> None:
    """Ids, GUIDs and references, whether they are needed or not, mean the same on both paths."""
    schema_id = client.register("json-paths", _schema(json_schema.RICH)).schema_id
    unit = client.register("json-paths-unit", _schema({"enum": ["m"]})).version
    reference = Reference("unit.json", "json-paths-unit", unit or 0)
    user = _schema({"properties": {"id": INT, "unit": {"$ref": "unit.json"}}}, reference)
    guid = JsonSerializer(client, json.dumps(json_schema.RICH), conf={"schema.id.serializer": "guid"})
    frames = [
        join(schema_id, b'{"id":1}'),
        guid({"id": 2}, topic="json-paths-guid"),
        join(client.register("json-paths-user", user).schema_id, b'{"id":3,"unit":"m"}'),
    ]
    columns = [
        functions.struct(*_columns(client.settings, "f", reader)).alias(name)
        for name, reader in (("rich", _schema(json_schema.RICH)), ("user", user))
    ]

    rows = _frames(spark, frames).select(*columns).collect()

    for row in rows:
        assert [row[name]["jvm_f"] for name in ("rich", "user")] == [row[name]["python_f"] for name in ("rich", "user")]
    assert [1, 2, 3] == [row["rich"]["jvm_f"]["value"]["id"] for row in rows]
    assert [(1, None), (2, None), (3, "m")] == [tuple(row["user"]["jvm_f"]["value"]) for row in rows]


def test_failfast_of_json(spark: SparkSession, client: RegistryClient) -> None:
    """FAILFAST says the same on both paths, and never the value."""
    payload, says = '{"by":{"a":"x"}}', "invalid value: expected integer, got string (at field by{})"
    frame = join(client.register("json-paths", _schema(json_schema.RICH)).schema_id, payload.encode())
    expected = f"a frame cannot be decoded (schema id {int.from_bytes(frame[1:5], 'big')}): {says}"
    column = decode("f", registry=client.settings, reader_schema=_schema(json_schema.RICH), mode="FAILFAST", path="jvm")

    with pytest.raises(Exception, match="a frame cannot be decoded") as in_spark:
        _frames(spark, [frame]).select(column).collect()
    with pytest.raises(FrameRefused) as in_a_worker:
        json_column(client, json_schema.RICH, mode=Mode.FAILFAST).read(frame)

    assert expected in str(in_spark.value)
    assert expected == str(in_a_worker.value)


def test_validation_stays_in_python(
    spark: SparkSession, client: RegistryClient, caplog: pytest.LogCaptureFixture
) -> None:
    """The JVM path is refused if requested by name; by default the call takes Python workers, and says why."""
    options: dict[str, Any] = {
        "registry": client.settings,
        "reader_schema": _schema(json_schema.RICH),
        "validate": True,
    }

    with pytest.raises(ValueError, match="path='jvm' does not decode JSON payloads with validate=True"):
        decode("value", **options, path="jvm")
    _log_once.cache_clear()
    with caplog.at_level(logging.INFO, "strata.spark_udfs"):
        decode("value", **options)

    assert "the JVM path does not decode JSON payloads with validate=True" in caplog.text
