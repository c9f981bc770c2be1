"""Decoding JSON frames in Spark: in the JVM and in Python workers, beside Spark's `from_json` of the same records.

`from_json` gets the text without the frame's head, knows one schema, and checks less. The floor is the scan of the
frames.
"""

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import col, from_json

from bench.flat_orders import FEW, FIELDS, PYTHON_ROWS, ROWS, cached, measured, records
from bench.spark_session import Job, session
from harness.registry import RegistryNode
from strata.serdes.client import RegistryClient, Schema
from strata.serdes.framing import join
from strata.spark_udfs import decode, install

__all__ = ["run"]

_SCAN = "the frames alone"
_JSON = "`from_json` of the same records, without frames"
_JSON_FEW = "`from_json`, five columns"
_TYPES = {"string": "string", "bool": "boolean", "double": "number", "float": "number"}


def run() -> str:
    """Measure each way, and return the table."""
    with tempfile.TemporaryDirectory() as folder, RegistryNode("memory:") as node, RegistryClient(node.url) as client:
        client.set_config("NONE")
        ids = [client.register("orders-value", Schema(_text(version), "JSON")).schema_id for version in range(3)]
        spark = session(Path(folder), [])
        try:
            install(spark, registry=node.url)
            return measured(
                _jobs(node.url, ids, spark, folder), {"to from_json": _JSON, "to the same, five columns": _JSON_FEW}
            )
        finally:
            spark.stop()


def _text(version: int) -> str:
    """Return a version of the schema: the second has another property, the third describes one."""
    properties: dict[str, Any] = {name: _type(kind) for name, (kind, _) in FIELDS.items()}
    if version == 1:
        properties["gift"] = {"type": "string"}
    return json.dumps({"title": f"Order {version}", "type": "object", "properties": properties})


def _type(kind: str) -> dict[str, Any]:
    if kind.startswith("repeated "):
        return {"type": "array", "items": _type(kind.removeprefix("repeated "))}
    return {"type": _TYPES.get(kind, "integer")}


def _jobs(url: str, ids: Sequence[int], spark: SparkSession, folder: str) -> dict[str, Job]:
    texts = [json.dumps(each).encode() for each in records()]
    framed = [join(ids[0], text) for text in texts]
    mixed = [join(ids[place % 3], text) for place, text in enumerate(texts)]
    bare, one, three, small = (
        cached(spark, folder, name, values, count)
        for name, values, count in (
            ("bare", texts, ROWS),
            ("one", framed, ROWS),
            ("three", mixed, ROWS),
            ("small", framed, PYTHON_ROWS),
        )
    )

    def ours(path: Any, **options: Any) -> Column:
        return decode("value", registry=url, schema_id=ids[0], path=path, **options)

    def made(frames: DataFrame, count: int, column: Column) -> Job:
        return Job(frames.select(column.alias("order")), count)

    def theirs(columns: Sequence[str] | None) -> Column:
        kind = ours("python", mode="PERMISSIVE", columns=columns)
        ddl = one.select(kind.alias("order")).schema["order"].dataType.simpleString()
        return from_json(col("value").cast("string"), ddl)

    return {
        _SCAN: made(one, ROWS, col("value")),
        _JSON: made(bare, ROWS, theirs(None)),
        _JSON_FEW: made(bare, ROWS, theirs(FEW)),
        "`decode` in the JVM, one schema": made(one, ROWS, ours("jvm")),
        "`decode` in the JVM, 3 writer schemas": made(three, ROWS, ours("jvm")),
        "`decode` in the JVM, 3 writer schemas, five columns": made(three, ROWS, ours("jvm", columns=FEW)),
        "`decode` in Python, one schema": made(small, PYTHON_ROWS, ours("python")),
    }
