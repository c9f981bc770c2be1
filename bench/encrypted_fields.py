"""One encrypted field among twenty (CSFLE), against the same record without rules, in each format.

The data key is unwrapped beforehand and all schemas are cached; one thread, thread CPU time.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from google.protobuf.message_factory import GetMessageClass

from bench.report import table
from harness.registry import RegistryNode
from strata.serdes.avro import AvroDeserializer, AvroSerializer
from strata.serdes.client import RegistryClient, Rule, RuleSet, Schema
from strata.serdes.json_schema import JsonDeserializer, JsonSerializer
from strata.serdes.protobuf import ProtobufDeserializer, ProtobufSerializer
from strata.serdes.protobuf.files import find_message, link

__all__ = ["best_of", "run"]

RECORDS = 3_000
ROUNDS = 9
_NAMES = [f"field_{number}" for number in range(20)]
_TYPES: Mapping[str, list[str]] = {
    "AVRO": ["string", "long", "double", "boolean"],
    "JSON": ["string", "integer", "number", "boolean"],
    "PROTOBUF": ["string", "int64", "double", "bool"],
}
_VALUES: list[Any] = ["customer 12 of Basel", 12_345, 9.75, True]
_RULE = Rule(
    name="hide",
    type="ENCRYPT",
    tags=frozenset({"PII"}),
    params={"encrypt.kek.name": "bench", "encrypt.kms.type": "local-kms", "encrypt.kms.key.id": "main"},
)
_CONF: Any = {
    "rule.executors._default_.param.secret": "of the bench",
    "auto.register.schemas": False,
    "use.latest.version": True,
}


def run() -> str:
    """Measure each format, and return the table."""
    with RegistryNode("memory:") as node, RegistryClient(node.url) as client:
        rows = [[name, *_measure(client, name)] for name in _TYPES]
    head = ["µs a record", "write", "encrypted", "ratio", "read", "decrypted", "ratio"]
    what = f"{RECORDS:,} records of 20 fields, one of them a string that is encrypted with AES-256-GCM"
    return f"{what}, one thread, best of {ROUNDS} runs in turn.\n\n{table(head, rows)}"


def _measure(client: RegistryClient, name: str) -> list[str]:
    value: Any = {field: _VALUES[number % 4] for number, field in enumerate(_NAMES)}
    sides = []
    for topic, rules in ((f"plain-{name}", None), (f"hidden-{name}", RuleSet(domain_rules=(_RULE,)))):
        schema = Schema(_text(name, tagged=rules is not None), name, rule_set=rules)
        client.register(f"{topic}-value", schema)
        write, read, made = _serdes(client, name, schema, value)
        frame = write(made, topic=topic)
        read(frame, topic=topic)
        sides += [
            lambda write=write, made=made, topic=topic: write(made, topic=topic),
            lambda read=read, frame=frame, topic=topic: read(frame, topic=topic),
        ]
    write_plain, read_plain, write_hidden, read_hidden = best_of(sides, RECORDS, ROUNDS)
    return [
        *(f"{one:.2f}" for one in (write_plain, write_hidden)),
        f"{write_hidden / write_plain:.2f}",
        *(f"{one:.2f}" for one in (read_plain, read_hidden)),
        f"{read_hidden / read_plain:.2f}",
    ]


def _text(name: str, *, tagged: bool) -> str:
    kinds = [_TYPES[name][number % 4] for number in range(len(_NAMES))]
    tags = {"confluent:tags": ["PII"]} if tagged else {}
    if name == "PROTOBUF":
        option = ' [(confluent.field_meta).tags = "PII"]' if tagged else ""
        fields = [
            f"{kind} {field} = {number + 1}{option if number == 0 else ''};"
            for number, (field, kind) in enumerate(zip(_NAMES, kinds, strict=True))
        ]
        message = "Hidden" if tagged else "Plain"
        return f'syntax = "proto3"; import "confluent/meta.proto"; message {message} {{ {" ".join(fields)} }}'
    described = {field: {"type": kind} for field, kind in zip(_NAMES, kinds, strict=True)}
    described[_NAMES[0]] |= tags  # type: ignore[arg-type]
    if name == "JSON":
        return json.dumps({"title": "Flat", "type": "object", "properties": described})
    return json.dumps({"type": "record", "name": "Flat", "fields": [{"name": n, **d} for n, d in described.items()]})


def _serdes(client: RegistryClient, name: str, schema: Schema, value: Any) -> tuple[Any, Any, Any]:
    if name == "AVRO":
        return AvroSerializer(client, conf=_CONF), AvroDeserializer(client, conf=_reading()), value
    if name == "JSON":
        return JsonSerializer(client, conf=_CONF), JsonDeserializer(client, conf=_reading()), value
    kind = GetMessageClass(find_message(link(schema, {}), (0,)))
    return (
        ProtobufSerializer(client, kind, conf=_CONF),
        ProtobufDeserializer(client, kind, conf=_reading()),
        kind(**value),
    )


def _reading() -> Any:
    return {name: value for name, value in _CONF.items() if name.startswith("rule.")}


def best_of(ways: Sequence[Callable[[], object]], records: int, rounds: int) -> list[float]:
    """Return the microseconds of each way, measured in turn: the best mean of some rounds."""
    best = [float("inf")] * len(ways)
    for _ in range(rounds):
        for number, way in enumerate(ways):
            started = time.thread_time()
            for _ in range(records):
                way()
            best[number] = min(best[number], (time.thread_time() - started) / records * 1e6)
    return best
