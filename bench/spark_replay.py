"""`replay` in Spark beside `decode`: what a candidate makes of frames, counted with the first and the last place."""

import json
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from google.protobuf.message_factory import GetMessageClass
from pyspark.sql import DataFrame, SparkSession, functions

from bench.flat_orders import FIELDS, records
from bench.orders import VERSIONS, frames, schema_text
from bench.report import table
from bench.spark_session import Job, compared, in_turn, session
from harness.registry import RegistryNode
from strata.serdes.client import RegistryClient
from strata.serdes.framing import join
from strata.serdes.model import PROTOBUF, Schema
from strata.serdes.protobuf.files import find_message, link
from strata.spark_udfs import decode, install, replay

__all__ = ["run"]

ROWS = 1_000_000
ROUNDS = 7
_PLACES = ("topic", "partition", "offset")
_READER = 2
_DECODE = "`decode` in the JVM"
_WITH_PLACES = "`decode` in the JVM, with topic, partition and offset"
_DECODE_MESSAGES = "`decode` of Protobuf in the JVM"


def run() -> str:
    """Measure each way, and return the table."""
    with tempfile.TemporaryDirectory() as folder, RegistryNode("memory:") as node, RegistryClient(node.url) as client:
        client.set_config("NONE", subject="orders-value")
        ids = {n: client.register("orders-value", Schema(schema_text(n))).schema_id for n in (1, 2, 3)}
        spark = session(Path(folder), [])
        try:
            install(spark, registry=node.url)
            rows = _cached(spark, folder, "avro", list(frames(ids, ROWS)))
            messages = _cached(spark, folder, "messages", _messages(client))
            rates = in_turn(_jobs(node.url, rows) | _message_jobs(node.url, messages), 2, ROUNDS)
        finally:
            spark.stop()
    ways = [compared(name, rates, [_DECODE_MESSAGES if PROTOBUF.title() in name else _DECODE]) for name in rates]
    scale = (
        f"{ROWS:,} orders of 20 fields with topic, partition and offset, those of Avro in 3 writer schemas, cached, "
        f"local[2], {ROUNDS} rounds in turn after two to warm up: the best of each, and the median of its ratio to "
        "`decode` of the same format"
    )
    return f"{scale}.\n\n{table(['way', 'rows/s', 'CPU µs a row', 'to `decode`'], ways)}"


def _jobs(url: str, rows: DataFrame) -> dict[str, Job]:
    candidate = schema_text(_READER)
    return {
        _DECODE: Job(rows.select(decode("value", registry=url, reader_schema=candidate, path="jvm")), ROWS),
        _WITH_PLACES: Job(
            rows.select(*_PLACES, decode("value", registry=url, reader_schema=candidate, path="jvm")), ROWS
        ),
        "`replay`": Job(replay(rows, candidate, registry=url, path="jvm"), ROWS),
        "`replay` without places": Job(replay(rows.select("value"), candidate, registry=url, path="jvm"), ROWS),
        "`replay`, where values of every record may change": Job(
            replay(rows, _changing(), registry=url, path="jvm"), ROWS
        ),
    }


def _changing() -> str:
    """Return a candidate that reads a long of each writer as a double."""
    fields = [{**field, "type": "double"} if field["name"] == "id" else field for field in VERSIONS[_READER]]
    return json.dumps({"type": "record", "name": "Order", "namespace": "shop", "fields": fields})


def _messages_text(of_count: str = "int32") -> str:
    """Return the schema of orders in Protobuf, with a type for one of the fields that are counts."""
    types = {name: kind for name, (kind, _) in FIELDS.items()} | {"count0": of_count}
    fields = [f"{kind} {name} = {number};" for number, (name, kind) in enumerate(types.items(), 1)]
    return f'syntax = "proto3"; package shop; message Order {{ {" ".join(fields)} }}'


def _messages(client: RegistryClient) -> list[bytes]:
    """Return frames of orders in Protobuf, which repeat."""
    schema = Schema(_messages_text(), PROTOBUF)
    schema_id = client.register("messages-value", schema).schema_id
    order = GetMessageClass(find_message(link(schema, {}), (0,)))
    framed = [join(schema_id, b"\0" + order(**record).SerializeToString()) for record in records()]
    return [framed[number % len(framed)] for number in range(ROWS)]


def _message_jobs(url: str, rows: DataFrame) -> dict[str, Job]:
    same, wider, other = (Schema(_messages_text(count), PROTOBUF) for count in ("int32", "uint32", "bool"))
    return {
        _DECODE_MESSAGES: Job(rows.select(decode("value", registry=url, reader_schema=same, path="jvm")), ROWS),
        "`replay` of Protobuf": Job(replay(rows, same, registry=url, path="jvm"), ROWS),
        "`replay` of Protobuf, int32 as uint32": Job(replay(rows, wider, registry=url, path="jvm"), ROWS),
        "`replay` of Protobuf, int32 as bool": Job(replay(rows, other, registry=url, path="jvm"), ROWS),
    }


def _cached(spark: SparkSession, folder: str, name: str, values: list[bytes]) -> DataFrame:
    file = Path(folder) / f"{name}.parquet"
    pq.write_table(
        pa.table({"value": pa.array(values, pa.binary()), "offset": pa.array(range(ROWS), pa.int64())}), file
    )
    rows = (
        spark.read.parquet(str(file))
        .withColumns({"topic": functions.lit("orders"), "partition": functions.lit(0)})
        .repartition(2)
        .cache()
    )
    rows.count()
    return rows
