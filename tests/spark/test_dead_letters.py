"""Dead letters are split from good rows."""

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from strata.serdes.client import RegistryClient
from strata.spark_udfs import decode, install, split_dead_letters

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves them to the collector
]

MakeFrame = Callable[[int, Any, Any], bytes]

NUMBER = {"type": "record", "name": "Number", "fields": [{"name": "n", "type": "long"}]}


def _batch(spark: SparkSession, frames: list[bytes | None], **more: pa.Array) -> DataFrame:
    columns = {"offset": pa.array(range(len(frames))), "value": pa.array(frames, pa.binary()), **more}
    return spark.createDataFrame(pa.table(columns)).coalesce(1)  # Spark would decode local rows in planning


def test_split(spark: SparkSession, registry: RegistryClient, frame: MakeFrame) -> None:
    """Good rows have the value, or null, under the column's name; dead letters keep all the other columns."""
    schema_id = registry.register("split", json.dumps(NUMBER)).schema_id
    good = frame(schema_id, NUMBER, {"n": 7})
    frames = _batch(spark, [good, b"\1", None], **{"kafka.topic": pa.array(["a", "b", "c"])})
    decoded = frames.withColumn(
        "decoded", decode("value", registry=registry.settings, subject="split", path="python")
    ).drop("value")

    values, dead = split_dead_letters(decoded)

    assert [Row(n=7), None] == [row["decoded"] for row in values.collect()]
    assert ["offset", "kafka.topic", "decoded"] == values.columns
    assert ["offset", "kafka.topic", "reason", "schema_id", "frame"] == dead.columns
    assert [(1, "b", "frame too short", None, bytearray(b"\1"))] == [tuple(row) for row in dead.collect()]


def test_split_under_another_name(spark: SparkSession, registry: RegistryClient) -> None:
    """The column may have any name, dots included; another column called `value` is not affected."""
    frames = _batch(spark, [b"\1"])
    decoded = frames.withColumn(
        "the.order", decode("value", registry=registry.settings, reader_schema='"int"', path="python")
    )

    values, dead = split_dead_letters(decoded, "the.order")

    assert [("the.order", "int")] == values.select("`the.order`").dtypes
    assert [bytearray(b"\1")] == [row["value"] for row in dead.collect()]


# name, columns of the data frame as SQL, column to split, message
REFUSED: list[tuple[str, list[str], str, str]] = [
    ("no such column", ["1 AS a"], "decoded", "no column decoded; the data frame has a"),
    ("no dead letters", ["1 AS decoded"], "decoded", "expected the result of decode or encode in mode DEADLETTER"),
    (
        "a struct of something else",
        ["struct(1 AS value, 2 AS error) AS decoded"],
        "decoded",
        "expected the result of decode or encode in mode DEADLETTER",
    ),
]


@pytest.mark.parametrize(
    ("columns", "column", "message"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_split_refuses(spark: SparkSession, columns: list[str], column: str, message: str) -> None:
    """A column that was not decoded in mode DEADLETTER cannot be split."""
    with pytest.raises(ValueError, match=message):
        split_dead_letters(spark.range(1).selectExpr(*columns), column)


def test_split_refuses_taken_names(spark: SparkSession, registry: RegistryClient) -> None:
    """A column with the name of one that dead letters add is refused, not silently duplicated."""
    frames = spark.range(1).selectExpr("X'00' AS value", "1 AS Reason")
    decoded = frames.withColumn("decoded", decode("value", registry=registry.settings, reader_schema='"int"'))

    with pytest.raises(ValueError, match="rename the columns Reason first"):
        split_dead_letters(decoded)


@pytest.mark.parametrize(("path", "call"), [("jvm", "strata_decode"), ("python", "ArrowEvalPython")])
def test_each_record_is_decoded_once(
    spark: SparkSession, registry: RegistryClient, capsys: pytest.CaptureFixture[str], path: Any, call: str
) -> None:
    """A query decodes in one place, whichever filters and columns it uses."""
    frames = _batch(spark, [b"\1"])
    install(spark, registry=registry.settings)
    column = decode("value", registry=registry.settings, reader_schema=json.dumps(NUMBER), path=path)
    decoded = frames.withColumn("decoded", column)
    values, dead = split_dead_letters(decoded)

    for df in (values.where("decoded.n > 1").select("decoded.n", "offset"), dead.select("reason", "frame")):
        df.explain()
        assert 1 == capsys.readouterr().out.count(call)
