"""Both paths decode the same frames alike in one Spark job, with random pairs of schemas and damage."""

import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import Column, DataFrame, Row, SparkSession, functions

from harness.avro_cases import Case
from strata.serdes.client import ClientSettings
from strata.spark_udfs import decode, install

pytestmark = [
    pytest.mark.spark,
    pytest.mark.usefixtures("generated_code"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves them to the collector
]

MakeFrame = Callable[[int, Any, Any], bytes]

Families = Callable[[Random, int, int], list[list[Case]]]
BATCH = 4000
NO_FAULTS = {"rows": BATCH, "lost": 0, "changed": 0, "other_value": 0, "other_reason": 0}


def _both(spark: SparkSession, registry: ClientSettings, name: str, reader: str) -> list[Column]:
    """Return the frames' column decoded on each path."""
    install(spark, registry=registry)
    return [
        decode(name, registry=registry, reader_schema=reader, path="jvm").alias(f"jvm_{name}"),
        decode(name, registry=registry, reader_schema=reader, path="python").alias(f"python_{name}"),
    ]


@pytest.mark.parametrize("readers", [1, pytest.param(6, marks=pytest.mark.slow)])
def test_random_schemas(spark: SparkSession, scripted_registry: Any, families: Families, readers: int) -> None:
    """Both paths decode frames of fifty writer schemas for each reader schema to the same columns of the same type."""
    registry = ClientSettings.of(scripted_registry.url)
    made = families(Random(5), readers, 50)
    names = [f"f{index}" for index in range(len(made))]
    frames = {
        name: pa.array(
            [b"\0" + scripted_registry.add_text(case.writer, {}).to_bytes(4, "big") + case.payload for case in family],
            pa.binary(),
        )
        for name, family in zip(names, made, strict=True)
    }
    rows = spark.createDataFrame(pa.table(frames)).coalesce(1)
    columns = [
        one for name, family in zip(names, made, strict=True) for one in _both(spark, registry, name, family[0].reader)
    ]

    decoded = rows.select(*columns)
    texts = decoded.select(*(functions.col(name).cast("string") for name in decoded.columns)).collect()

    types = decoded.dtypes
    assert [kind for _, kind in types[::2]] == [kind for _, kind in types[1::2]]
    for name in names:
        assert [row[f"python_{name}"] for row in texts] == [row[f"jvm_{name}"] for row in texts]
    assert 50 * readers == sum(scripted_registry.asked.values()) / 2


def test_damaged_frames(spark: SparkSession, scripted_registry: Any, frame: MakeFrame, everything: Any) -> None:
    """No task fails; each frame is a value or a dead letter with exactly its bytes, the same on both paths."""
    schema, values = everything
    schema_id = scripted_registry.add(schema)
    good = [frame(schema_id, schema, value) for value in values]

    faults = _faults_of(spark, scripted_registry.url, schema, _all_damaged(good, Random(2026)))

    assert NO_FAULTS == {name: faults[name] for name in NO_FAULTS}
    assert BATCH / 10 < faults["dead"] < BATCH


@pytest.mark.slow
def test_damaged_frames_of_any_seed(
    spark: SparkSession, scripted_registry: Any, frame: MakeFrame, everything: Any
) -> None:
    """The same holds for 200,000 frames that hypothesis chooses."""
    schema, values = everything
    schema_id = scripted_registry.add(schema)
    good = [frame(schema_id, schema, value) for value in values]

    @settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.randoms(use_true_random=True))
    def hold(chance: Random) -> None:
        faults = _faults_of(spark, scripted_registry.url, schema, _all_damaged(good, chance))
        assert NO_FAULTS == {name: faults[name] for name in NO_FAULTS}

    hold()


def _all_damaged(good: Sequence[bytes], chance: Random) -> list[bytes]:
    return [_damaged(chance.choice(good), chance) for _ in range(BATCH)]


def _faults_of(spark: SparkSession, url: str, schema: Any, damaged: Sequence[bytes]) -> Row:
    rows = spark.createDataFrame(pa.table({"f": pa.array(damaged, pa.binary())})).repartition(2)
    patience = ClientSettings.of(url, missing_ttl=600)
    faults = _faults(rows.select("f", *_both(spark, patience, "f", json.dumps(schema)))).first()
    assert faults is not None
    return faults


def _faults(decoded: DataFrame) -> DataFrame:
    """Return how many rows are wrong, by kind."""
    jvm, python = functions.col("jvm_f"), functions.col("python_f")
    told = jvm["error"]["reason"]

    def counted(condition: Column) -> Column:
        return functions.count_if(condition)

    return decoded.agg(
        functions.count("*").alias("rows"),
        counted(jvm["error"].isNotNull()).alias("dead"),
        counted(jvm["value"].isNull() != jvm["error"].isNotNull()).alias("lost"),
        counted(jvm["error"].isNotNull() & (jvm["error"]["frame"] != functions.col("f"))).alias("changed"),
        counted(~jvm["value"].cast("string").eqNullSafe(python["value"].cast("string"))).alias("other_value"),
        counted(~told.eqNullSafe(python["error"]["reason"])).alias("other_reason"),
    )


def _damaged(good: bytes, chance: Random) -> bytes:
    """Return the frame with some bytes changed, seldom in its header, perhaps cut, perhaps longer."""
    changed = bytearray(good)
    for _ in range(chance.randrange(4)):
        changed[chance.randrange(5, len(changed))] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
    if chance.random() < 0.05:
        changed[chance.choice((0, 4))] ^= chance.choice((1, 2, 3))
    end = chance.choice((None, None, None, chance.randrange(len(changed))))
    return bytes(changed[:end]) + chance.choice((b"", b"", b"", b"\0"))
