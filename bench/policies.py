"""What the policy LOGICAL costs: registrations of new versions under LOGICAL beside the same ones under STRICT."""

import json
import sys
import time
from collections.abc import Callable, Mapping
from statistics import median
from typing import Final

from bench.node_costs import cpu_seconds
from bench.report import table
from harness.registry import RegistryNode

__all__ = ["run"]

_FIELDS: Final = 30
_VERSIONS: Final = 50  # of each subject
_ROUNDS: Final = 7
_POLICIES: Final = ("STRICT", "LOGICAL")


def run() -> str:
    """Return the table."""
    costs: dict[tuple[str, str], list[tuple[float, float]]] = {}
    with RegistryNode("memory:") as node:
        for number in range(_ROUNDS + 1):  # the first round is not counted
            for name in _TEXTS:
                for policy in _POLICIES if number % 2 else _POLICIES[::-1]:
                    cost = _registrations(node, name, policy, f"{name}-{policy}-{number}")
                    if number:
                        costs.setdefault((name, policy), []).append(cost)
    rows = []
    for name in _TEXTS:
        strict, logical = ([median(part) for part in zip(*costs[name, policy], strict=True)] for policy in _POLICIES)
        ratios = (f"{ours / theirs:.2f}" for ours, theirs in zip(logical, strict, strict=True))
        times = (f"{value:.2f}" for pair in zip(strict, logical, strict=True) for value in pair)
        rows.append([name, *times, *ratios])
    head = ("format", "STRICT", "LOGICAL", "CPU, STRICT", "CPU, LOGICAL", "LOGICAL ÷ STRICT", "CPU, LOGICAL ÷ STRICT")
    return (
        f"One client registers versions 2 to {_VERSIONS} of a subject of {_FIELDS} fields and more under BACKWARD, "
        "each with one more field; all schemas are new. The log is in memory, so that nothing else weighs. ms of a "
        f"registration and of CPU time of the node, medians of {_ROUNDS} rounds that alternate.\n\n{table(head, rows)}"
    )


def _registrations(node: RegistryNode, name: str, policy: str, subject: str) -> tuple[float, float]:
    """Register the versions of a subject; return the ms of a registration, and of the node's CPU time."""
    connection = node.connect(timeout=30)

    def call(method: str, path: str, body: Mapping[str, object]) -> None:
        connection.request(method, path, json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        content = answer.read()
        if answer.status != 200:
            sys.exit(f"{method} {path} answered {answer.status}: {content.decode()}")

    def register(fields: int) -> None:
        body = {"schemaType": name, "schema": _TEXTS[name](subject, fields)}
        call("POST", f"/subjects/{subject}/versions", body)

    call("PUT", f"/config/{subject}", {"compatibility": "BACKWARD", "compatibilityPolicy": policy})
    register(_FIELDS)
    cpu, begun = cpu_seconds([node.pid]), time.perf_counter()
    for version in range(1, _VERSIONS):
        register(_FIELDS + version)
    spent = time.perf_counter() - begun, cpu_seconds([node.pid]) - cpu
    connection.close()
    return spent[0] * 1000 / (_VERSIONS - 1), spent[1] * 1000 / (_VERSIONS - 1)


def _avro(subject: str, count: int) -> str:
    fields = [{"name": f"field_{i}", "type": ["null", "string"], "default": None} for i in range(count)]
    return json.dumps({"type": "record", "name": f"R_{subject.replace('-', '_')}", "fields": fields})


def _json(subject: str, count: int) -> str:
    fields = {f"field_{i}": {"type": "string"} for i in range(count)}
    return json.dumps({"title": subject, "type": "object", "properties": fields, "additionalProperties": False})


def _protobuf(subject: str, count: int) -> str:
    fields = " ".join(f"optional string field_{i} = {i + 1};" for i in range(count))
    return f'syntax = "proto3"; message R_{subject.replace("-", "_")} {{ {fields} }}'


_TEXTS: Final[Mapping[str, Callable[[str, int], str]]] = {"AVRO": _avro, "JSON": _json, "PROTOBUF": _protobuf}


if __name__ == "__main__":
    sys.stdout.write(run() + "\n")
