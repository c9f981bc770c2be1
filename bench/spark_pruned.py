"""What it costs to check the fields that a Spark query does not read: built, checked or skipped.

All ways read the same cached column of frames, in the JVM, and discard the rows.
"""

import tempfile
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from bench.orders import schema_text
from bench.report import table
from bench.spark_decode import FEW, ROUNDS, ROWS, cached
from bench.spark_session import Job, compared, in_turn, session
from harness.registry import RegistryNode
from strata.serdes.client import RegistryClient
from strata.serdes.model import Schema
from strata.spark_udfs import decode, install

__all__ = ["run"]

_WHOLE = "all 20 fields"
_SKIPPED = "five fields by `columns=`, the others skipped"
_COMPARED = {"to all fields": _WHOLE, "to skipped": _SKIPPED}


def run() -> str:
    """Measure each way, and return the table."""
    with tempfile.TemporaryDirectory() as folder, RegistryNode("memory:") as node, RegistryClient(node.url) as client:
        client.set_config("NONE", subject="orders-value")
        ids = {n: client.register("orders-value", Schema(schema_text(n))).schema_id for n in (1, 2, 3)}
        spark = session(Path(folder), ())
        try:
            install(spark, registry=node.url)
            rates = in_turn(_jobs(node.url, ids, spark, folder), 1, ROUNDS)
        finally:
            spark.stop()
    rows = [compared(name, rates, _COMPARED.values()) for name in rates]
    scale = (
        f"{ROWS:,} orders of 20 fields in 3 writer schemas, cached, in the JVM, local[2], {ROUNDS} rounds in turn "
        "after one to warm up: the best of each, and the median of its ratio to another way in the same round"
    )
    return f"{scale}.\n\n{table(['what a query reads', 'rows/s', 'CPU µs a row', *_COMPARED], rows)}"


def _jobs(url: str, ids: dict[int, int], spark: SparkSession, folder: str) -> dict[str, Job]:
    frames = cached(spark, folder, "three", ids, ROWS)

    def read(*columns: str, **options: Any) -> Job:
        order = decode("value", registry=url, schema_id=ids[2], path="jvm", **options)
        return Job(frames.select(order.alias("d")).select(*columns), ROWS)

    few = [f"d.value.{name}" for name in FEW]
    return {
        _WHOLE: read("d.value.*"),
        "five fields, the others checked": read(*few),
        _SKIPPED: read("d.value.*", columns=FEW),
        "one field, the others checked": read("d.value.id"),
        "one field by `columns=`, the others skipped": read("d.value.id", columns=["id"]),
        "the error alone, all fields checked": read("d.error.reason"),
    }
