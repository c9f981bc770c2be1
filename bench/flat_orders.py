"""The benchmarks of Protobuf, JSON and encoding in Spark: orders of twenty fields, varied, without nesting."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from bench.report import table
from bench.spark_session import Job, compared, in_turn

__all__ = ["DISTINCT", "FEW", "FIELDS", "PYTHON_ROWS", "ROWS", "cached", "measured", "records"]

ROWS = 500_000
PYTHON_ROWS = 100_000
DISTINCT = 5_000
"""The number of different records; each is repeated."""
_ROUNDS = 5
FEW = ["id", "customer", "price", "status", "total"]
# name -> Protobuf type, Avro type
FIELDS = {
    "id": ("int64", "long"),
    "customer": ("string", "string"),
    **{f"count{n}": ("int32", "int") for n in range(4)},
    **{f"mark{n}": ("sint64", "long") for n in range(3)},
    "price": ("double", "double"),
    "total": ("double", "double"),
    "ratio": ("float", "float"),
    "is_paid": ("bool", "boolean"),
    "status": ("string", "string"),
    "country": ("string", "string"),
    "note": ("string", "string"),
    "at": ("int64", "long"),
    "sent": ("fixed64", "long"),
    "tags": ("repeated string", {"type": "array", "items": "string"}),
    "lines": ("repeated int32", {"type": "array", "items": "int"}),
}


def records() -> list[dict[str, Any]]:
    """Return the different records."""
    chance = Random(19)
    return [{name: _value(kind, chance) for name, (kind, _) in FIELDS.items()} for _ in range(DISTINCT)]


def _value(kind: str, chance: Random) -> Any:
    if kind.startswith("repeated "):
        return [_value(kind.removeprefix("repeated "), chance) for _ in range(chance.randint(0, 4))]
    if kind == "string":
        return "x" * chance.randint(1, 12) + str(chance.getrandbits(16))
    if kind == "bool":
        return chance.random() < 0.5
    if kind == "float":
        return chance.randint(0, 1000) / 4
    return chance.random() * 1000 if kind == "double" else chance.getrandbits(chance.randint(1, 30))


def cached(spark: SparkSession, folder: str, name: str, values: Sequence[bytes], count: int) -> DataFrame:
    """Return a cached column `value` of so many values, which are repeated in turn."""
    file = Path(folder) / f"{name}.parquet"
    repeated = [values[place % len(values)] for place in range(count)]
    pq.write_table(pa.table({"value": pa.array(repeated, pa.binary())}), file)
    spark.conf.set("spark.sql.execution.sortBeforeRepartition", "false")
    rows = spark.read.parquet(str(file)).repartition(2).cache()
    if rows.count() != count:
        raise RuntimeError(f"{file} holds {rows.count()} rows, not {count}")
    return rows


def measured(jobs: dict[str, Job], others: Mapping[str, str], *, what: str = "records", parts: str = "fields") -> str:
    """Run jobs in turn, and return the scale and the table of their rates.

    Args:
        jobs: the jobs, by the names of their ways.
        others: the ways to compare with, by the headings of their columns.
        what: the name of the rows.
        parts: the name of their fields.
    """
    rates = in_turn(jobs, 1, _ROUNDS)
    rows = [compared(name, rates, others.values()) for name in rates]
    scale = (
        f"{ROWS:,} {what} of {len(FIELDS)} {parts}, {DISTINCT:,} different ({PYTHON_ROWS:,} through Python), cached, "
        f"local[2], {_ROUNDS} rounds in turn after one to warm up: the best of each, and the median of its ratio to "
        "another way in the same round"
    )
    return f"{scale}.\n\n{table(['way', 'rows/s', 'CPU µs a row', *others], rows)}"
