"""Decoding Protobuf frames in Spark: in the JVM and in Python workers, beside Spark's own ways with the same values.

`spark-protobuf` is on no package registry that this project can reach, so Spark's `from_json` and `from_avro` over the
same records are the comparison. The floor is the scan of the frames.
"""

import io
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fastavro
from google.protobuf.message_factory import GetMessageClass
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.functions import col, from_json

from bench.flat_orders import DISTINCT, FEW, FIELDS, PYTHON_ROWS, ROWS, cached, measured, records
from bench.spark_session import Job, session
from harness.jars import spark_avro_jars
from harness.registry import RegistryNode
from strata.serdes.client import RegistryClient, Schema
from strata.serdes.framing import join
from strata.serdes.protobuf.files import find_message, link
from strata.spark_udfs import decode, install

__all__ = ["run"]

_SCAN = "the frames alone"
_JSON = "`from_json` of the same records as JSON"
_AVRO = "`from_avro` of the same records as Avro"
_COMPARED = {"to from_json": _JSON, "to from_avro": _AVRO}


def run() -> str:
    """Measure each way, and return the table."""
    with tempfile.TemporaryDirectory() as folder, RegistryNode("memory:") as node, RegistryClient(node.url) as client:
        client.set_config("NONE")
        schemas = [Schema(_text(version), "PROTOBUF") for version in range(3)]
        ids = [client.register("orders-value", one).schema_id for one in schemas]
        spark = session(Path(folder), spark_avro_jars())
        try:
            install(spark, registry=node.url)
            return measured(_jobs(node.url, schemas, ids, spark, folder), _COMPARED)
        finally:
            spark.stop()


def _text(version: int) -> str:
    """Return a version of the schema: the second has another field, the third lacks one that is not a column."""
    fields = [f"{kind} {name} = {number};" for number, (name, (kind, _)) in enumerate(FIELDS.items(), 1)]
    more = ["string gift = 40;"] if version == 1 else []
    return f'syntax = "proto3"; package shop; message Order {{ {" ".join([*fields, *more])} }}'


def _jobs(url: str, schemas: Sequence[Schema], ids: Sequence[int], spark: SparkSession, folder: str) -> dict[str, Job]:
    orders = records()
    kinds = [GetMessageClass(find_message(link(one, {}), (0,))) for one in schemas]
    framed = [
        [join(schema_id, b"\0" + kind(**one).SerializeToString()) for one in orders]
        for schema_id, kind in zip(ids, kinds, strict=True)
    ]
    mixed = [framed[place % 3][place] for place in range(DISTINCT)]
    avro = {"type": "record", "name": "Order", "fields": [{"name": n, "type": t} for n, (_, t) in FIELDS.items()]}
    one, three, small = (
        cached(spark, folder, name, values, count)
        for name, values, count in (
            ("one", framed[0], ROWS),
            ("three", mixed, ROWS),
            ("small", framed[0], PYTHON_ROWS),
        )
    )
    texts = cached(spark, folder, "texts", [json.dumps(each).encode() for each in orders], ROWS)
    binary = cached(spark, folder, "avro", [_as_avro(avro, each) for each in orders], ROWS)

    def ours(path: Any, **options: Any) -> Column:
        return decode("value", registry=url, schema_id=ids[0], path=path, **options)

    def made(frames: DataFrame, count: int, column: Column) -> Job:
        return Job(frames.select(column.alias("order")), count)

    kind = decode("value", registry=url, schema_id=ids[0], mode="PERMISSIVE")
    ddl = one.select(kind.alias("order")).schema["order"].dataType.simpleString()
    return {
        _SCAN: made(one, ROWS, col("value")),
        _JSON: made(texts, ROWS, from_json(col("value").cast("string"), ddl)),
        _AVRO: made(binary, ROWS, from_avro("value", json.dumps(avro))),
        "`decode` in the JVM, one schema": made(one, ROWS, ours("jvm")),
        "`decode` in the JVM, 3 writer schemas": made(three, ROWS, ours("jvm")),
        "`decode` in the JVM, 3 writer schemas, five columns": made(three, ROWS, ours("jvm", columns=FEW)),
        "`decode` in Python, one schema": made(small, PYTHON_ROWS, ours("python")),
    }


def _as_avro(schema: Any, value: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()
