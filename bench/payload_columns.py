"""Protobuf and JSON frames to Arrow columns, as Spark's Python workers do it, without Spark.

The records have 22 fields. The result is CPU time, since the machine is shared; the plain way through dicts is compared
with that of `spark_udfs`.
"""

import json
import time
from collections.abc import Callable, Sequence
from typing import Any

import orjson
import pyarrow as pa
from google.protobuf.json_format import MessageToDict
from google.protobuf.message_factory import GetMessageClass

from bench.report import table
from harness.registry import RegistryNode
from strata.serdes.client import RegistryClient, Schema
from strata.serdes.framing import join
from strata.serdes.protobuf.files import find_message, link
from strata.spark_udfs.arguments import Mode
from strata.spark_udfs.decoding.payload_decoder import payload_decoder
from strata.spark_udfs.decoding.plan import ReaderSource, plan_decode

__all__ = ["run"]

RECORDS = 10_000
ROUNDS = 7
_FEW = ("i0", "s0", "d0")
_PROTO = f"""syntax = "proto3"; message Order {{
  {" ".join(f"int64 i{n} = {n + 1};" for n in range(8))}
  {" ".join(f"string s{n} = {n + 11}; optional double d{n} = {n + 21};" for n in range(5))}
  map<string, int64> counts = 31; repeated string tags = 32; repeated Line lines = 33; Line first = 34;
  message Line {{ string sku = 1; double price = 2; }} }}"""
_LINE = {"type": "object", "properties": {"sku": {"type": "string"}, "price": {"type": "number"}}}
_JSON = {
    "type": "object",
    "properties": {
        **{f"i{n}": {"type": "integer"} for n in range(8)},
        **{f"s{n}": {"type": "string"} for n in range(5)},
        **{f"d{n}": {"type": ["number", "null"]} for n in range(5)},
        "counts": {"type": "object", "additionalProperties": {"type": "integer"}},
        "tags": {"type": "array", "items": {"type": "string"}},
        "lines": {"type": "array", "items": _LINE},
        "first": _LINE,
    },
}
_VALUE: dict[str, Any] = {
    **{f"i{n}": n * 1000 for n in range(8)},
    **{f"s{n}": f"customer {n}" for n in range(5)},
    **{f"d{n}": n + 0.5 for n in range(5)},
    "counts": {"a": 1, "b": 2},
    "tags": ["new", "paid"],
    "lines": [{"sku": "a", "price": 1.0}, {"sku": "b", "price": 2.5}],
    "first": {"sku": "a", "price": 1.0},
}


def run() -> str:
    """Measure each way, and return the table."""
    message = GetMessageClass(find_message(link(Schema(_PROTO, "PROTOBUF"), {}), (0,)))
    with RegistryNode("memory:") as node, RegistryClient(node.url) as client:
        rows = [
            _row(
                client,
                "Protobuf",
                Schema(_PROTO, "PROTOBUF"),
                b"\0" + message(**_VALUE).SerializeToString(),
                _dicts(message),
            ),
            _row(client, "JSON", Schema(json.dumps(_JSON), "JSON"), orjson.dumps(_VALUE), orjson.loads),
        ]
    head = ["µs a record", "bytes", "dicts, then Arrow", "all columns", "three columns", "validated"]
    return f"{RECORDS} records, best of {ROUNDS} rounds, CPU time of one core.\n\n{table(head, rows)}"


def _dicts(message: Any) -> Callable[[bytes], Any]:
    return lambda payload: MessageToDict(message.FromString(payload[1:]), preserving_proto_field_name=True)


def _row(
    client: RegistryClient, name: str, schema: Schema, payload: bytes, as_dict: Callable[[bytes], Any]
) -> Sequence[str]:
    frame = join(client.register(f"columns-{name}", schema).schema_id, payload)
    frames = pa.array([frame] * RECORDS, pa.binary())
    payloads = [payload] * RECORDS

    def decoded(**options: Any) -> str:
        decided = plan_decode(client.settings, ReaderSource(schema), mode=Mode.DEADLETTER, **options)
        decoder = payload_decoder(decided)
        if decoder.decode(frames).field("error").null_count != RECORDS:
            raise AssertionError(decided)
        return _measured(lambda: decoder.decode(frames))

    dicts = _measured(lambda: pa.array([as_dict(one) for one in payloads]))
    validated = decoded(validate=True) if name == "JSON" else ""
    return [name, str(len(frame)), dicts, decoded(), decoded(columns=_FEW), validated]


def _measured(work: Callable[[], Any]) -> str:
    best = float("inf")
    for _ in range(ROUNDS):
        started = time.process_time()
        work()
        best = min(best, time.process_time() - started)
    return f"{best / RECORDS * 1e6:.1f}"
