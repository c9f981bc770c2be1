"""Encoding rows in Spark: in the JVM and in Python workers, beside Spark's own functions with a header put before.

`spark-protobuf` is on no package registry that this project can reach, so Protobuf is compared with `to_avro` and
`to_json` of the same rows. The floor is the scan of the columns, and their struct.
"""

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.avro.functions import to_avro
from pyspark.sql.functions import col, concat, encode, lit, struct, to_json

from bench.flat_orders import DISTINCT, FIELDS, PYTHON_ROWS, ROWS, measured, records
from bench.spark_session import Job, session
from harness.jars import spark_avro_jars
from harness.registry import RegistryNode
from strata import spark_udfs
from strata.serdes.client import RegistryClient, Schema
from strata.serdes.framing import join

__all__ = ["run"]

_FLOOR = "the struct alone"
_AVRO = "`to_avro` after a header"
_JSON = "`to_json` after a header"
_COMPARED = {"to to_avro": _AVRO, "to to_json": _JSON}
_JSON_TYPES = {"int": "integer", "long": "integer", "float": "number", "double": "number"}
_TYPES = {"int": pa.int32(), "long": pa.int64(), "float": pa.float32(), "double": pa.float64(), "boolean": pa.bool_()}


def run() -> str:
    """Measure each way, and return the table."""
    with tempfile.TemporaryDirectory() as folder, RegistryNode("memory:") as node, RegistryClient(node.url) as client:
        spark = session(Path(folder), spark_avro_jars())
        try:
            spark_udfs.install(spark, registry=node.url)
            return measured(_jobs(client, spark, folder), _COMPARED, what="rows", parts="columns")
        finally:
            spark.stop()


def _jobs(client: RegistryClient, spark: SparkSession, folder: str) -> dict[str, Job]:
    avro = json.dumps(
        {"type": "record", "name": "Order", "fields": [{"name": n, "type": t} for n, (_, t) in FIELDS.items()]}
    )
    proto = " ".join(f"{kind} {name} = {number};" for number, (name, (kind, _)) in enumerate(FIELDS.items(), 1))
    schemas = {
        "Avro": Schema(avro),
        "Protobuf": Schema(f'syntax = "proto3"; message Order {{ {proto} }}', "PROTOBUF"),
        "JSON": Schema('{"type": "object"}', "JSON"),
    }
    ids = {name: client.register(name, one).schema_id for name, one in schemas.items()}
    strict = client.register("strict", Schema(json.dumps(_strict()), "JSON")).schema_id
    many, few = (_cached(spark, folder, name, count) for name, count in (("many", ROWS), ("few", PYTHON_ROWS)))
    row = struct(*FIELDS)
    header = lit(join(1, b""))

    def ours(name: str, path: Any) -> Column:
        return spark_udfs.encode(row, registry=client.settings, schema_id=ids[name], path=path, validate=False)

    def validated(path: Any) -> Column:
        return spark_udfs.encode(row, registry=client.settings, schema_id=strict, path=path)

    def made(rows: DataFrame, count: int, column: Column) -> Job:
        return Job(rows.select(column.alias("order")), count)

    return {
        _FLOOR: made(many, ROWS, row),
        _AVRO: made(many, ROWS, concat(header, to_avro(row, avro))),
        _JSON: made(many, ROWS, concat(header, encode(to_json(row), "UTF-8"))),
        **{f"`encode` in the JVM, {name}": made(many, ROWS, ours(name, "jvm")) for name in ids},
        "`encode` in the JVM, JSON, validated": made(many, ROWS, validated("jvm")),
        **{f"`encode` in Python, {name}": made(few, PYTHON_ROWS, ours(name, "python")) for name in ids},
        "`encode` in Python, JSON, validated": made(few, PYTHON_ROWS, validated("python")),
    }


def _strict() -> dict[str, Any]:
    """Return a closed JSON Schema that requires every field, bounds some and lets one be null."""
    properties = {name: _json_type(kind) for name, (_, kind) in FIELDS.items()}
    properties["price"]["minimum"] = 0
    properties["status"] |= {"minLength": 1, "maxLength": 40}
    properties["tags"]["maxItems"] = 10
    properties["note"] = {"oneOf": [{"type": "null"}, properties["note"]]}
    return {"type": "object", "properties": properties, "required": list(FIELDS), "additionalProperties": False}


def _json_type(kind: Any) -> dict[str, Any]:
    if isinstance(kind, dict):
        return {"type": "array", "items": _json_type(kind["items"])}
    return {"type": _JSON_TYPES.get(kind, kind)}


def _cached(spark: SparkSession, folder: str, name: str, count: int) -> DataFrame:
    file = Path(folder) / f"{name}.parquet"
    made = records()
    values = [made[place % DISTINCT] for place in range(count)]
    pq.write_table(
        pa.table({name: _column(kind, [one[name] for one in values]) for name, (_, kind) in FIELDS.items()}), file
    )
    spark.conf.set("spark.sql.execution.sortBeforeRepartition", "false")
    rows = spark.read.parquet(str(file)).repartition(2).cache()
    if rows.count() != count:
        raise RuntimeError(f"{file} holds {rows.count()} rows, not {count}")
    return rows.select(*(col(one) for one in FIELDS))


def _column(kind: Any, values: Sequence[Any]) -> pa.Array:
    if isinstance(kind, dict):
        return pa.array(values, pa.list_(_TYPES.get(kind["items"], pa.string())))
    return pa.array(values, _TYPES.get(kind, pa.string()))
