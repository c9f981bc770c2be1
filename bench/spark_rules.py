"""Rules of data contracts in Spark's Python workers: decoding and encoding with them, beside the same without.

Each way reads cached orders of twenty fields and discards the rows. One field is encrypted (CSFLE); the migration, in
JSONATA, renames one field.
"""

import json
import tempfile
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import struct

from bench.flat_orders import DISTINCT, FIELDS, cached, records
from bench.report import table
from bench.spark_session import Job, compared, in_turn, session
from harness.registry import RegistryNode
from strata.serdes.avro import AvroSerializer
from strata.serdes.client import RegistryClient, Schema
from strata.serdes.model import Metadata, Rule, RuleSet
from strata.spark_udfs import decode, encode

__all__ = ["run"]

ROWS = 50_000
ROUNDS = 5
_DECODE = "`decode` without rules"
_ENCODE = "`encode` without rules"
_COMPARED = {"to decode": _DECODE, "to encode": _ENCODE}
_SECRET = {"rule.executors._default_.param.secret": "of the benchmark"}
_HIDE = Rule(
    name="hide",
    type="ENCRYPT",
    mode="WRITEREAD",
    tags=frozenset({"PII"}),
    params={"encrypt.kek.name": "bench", "encrypt.kms.type": "local-kms", "encrypt.kms.key.id": "main"},
)
_RENAME = Rule(
    name="rename",
    type="JSONATA",
    mode="UPGRADE",
    expr="$merge([$sift($, function($v, $k) {$k != 'note'}), {'remark': note}])",
)


def run() -> str:
    """Measure each way, and return the table."""
    with tempfile.TemporaryDirectory() as folder, RegistryNode("memory:") as node, RegistryClient(node.url) as client:
        spark = session(Path(folder), [])
        try:
            rates = in_turn(_jobs(client, spark, folder), 1, ROUNDS)
        finally:
            spark.stop()
    rows = [compared(name, rates, _COMPARED.values()) for name in rates]
    scale = (
        f"{ROWS:,} orders of {len(FIELDS)} fields, {DISTINCT:,} different, Avro, cached, in Python workers, local[2], "
        f"{ROUNDS} rounds in turn after one to warm up: the best of each, and the median of its ratio to another way "
        "in the same round"
    )
    return f"{scale}.\n\n{table(['way', 'rows/s', 'CPU µs a row', *_COMPARED], rows)}"


def _jobs(client: RegistryClient, spark: SparkSession, folder: str) -> dict[str, Job]:
    frames = {name: _frames(client, spark, folder, name) for name in ("plain", "moved", "hidden")}
    client.register("moved-value", _schema("2", {"note": "remark"}, migrations=(_RENAME,)))
    orders = frames["plain"].select(_read(client, "plain", mode="PERMISSIVE").alias("order")).select("order.*").cache()
    if orders.count() != ROWS:
        raise RuntimeError(f"decoded {orders.count()} rows, not {ROWS}")

    def decoded(name: str, **options: Any) -> Job:
        return _job(frames[name], _read(client, name, mode="FAILFAST", **options))

    def encoded(name: str, **options: Any) -> Job:
        column = encode(
            struct(*FIELDS),
            registry=client.settings,
            subject=f"{name}-value",
            version="latest",
            path="python",
            **options,
        )
        return _job(orders, column)

    return {
        _DECODE: decoded("plain"),
        "`decode` with `rules=True`, a schema without rules": decoded("plain", rules=True),
        "`decode` with a migration in JSONATA": decoded("moved", rules=True),
        "`decode` with one encrypted field": decoded("hidden", rules=_SECRET),
        _ENCODE: encoded("plain"),
        "`encode` with one encrypted field": encoded("hidden", rules=_SECRET),
    }


def _job(rows: DataFrame, column: Column) -> Job:
    return Job(rows.select(column.alias("made")), ROWS)


def _read(client: RegistryClient, name: str, **options: Any) -> Column:
    return decode("value", registry=client.settings, subject=f"{name}-value", path="python", **options)


def _frames(client: RegistryClient, spark: SparkSession, folder: str, name: str) -> DataFrame:
    """Register the first version of a subject, and return frames of it."""
    client.set_config(subject=f"{name}-value", compatibilityGroup="major")
    schema = _schema("1", {}, rules=(_HIDE,) if name == "hidden" else ())
    client.register(f"{name}-value", schema)
    conf: Any = {"auto.register.schemas": False, "use.latest.version": True, **_SECRET}
    serializer = AvroSerializer(client, schema, None, conf)
    return cached(spark, folder, name, [bytes(serializer(one, topic=name) or b"") for one in records()], ROWS)


def _schema(
    major: str, renamed: dict[str, str], *, rules: tuple[Rule, ...] = (), migrations: tuple[Rule, ...] = ()
) -> Schema:
    fields: list[dict[str, Any]] = [
        {"name": renamed.get(name, name), "type": kind} for name, (_, kind) in FIELDS.items()
    ]
    fields[1]["confluent:tags"] = ["PII"]
    text = json.dumps({"type": "record", "name": "Order", "fields": fields})
    rule_set = RuleSet(domain_rules=rules, migration_rules=migrations) if rules or migrations else None
    return Schema(text, metadata=Metadata(properties={"major": major}), rule_set=rule_set)
