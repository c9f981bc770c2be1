"""The contracts that are exported are ones that another tool for the standard takes: datacontract-cli."""

import json
import subprocess

import pytest
import yaml

from harness.environments import fresh_environment
from strata.compat.formats import FORMATS
from strata.compat.schema import SchemaFormat
from strata.gitops.contracts.envelope import to_contract
from strata.gitops.versions import Held

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

DAY = {"type": "int", "logicalType": "date"}
PRICE = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
LINE = {
    "type": "record",
    "name": "Line",
    "fields": [{"name": "sku", "type": "string"}, {"name": "price", "type": PRICE}],
}
ORDER = {
    "type": "record",
    "name": "Order",
    "doc": "what was ordered",
    "fields": [
        {"name": "id", "type": "long", "confluent:tags": ["PII"]},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "PAID"]}},
        {"name": "day", "type": DAY},
        {"name": "lines", "type": {"type": "array", "items": LINE}},
        {"name": "counts", "type": {"type": "map", "values": "int"}},
    ],
}
JSON_ORDER = {
    "title": "Order",
    "type": "object",
    "properties": {
        "id": {"type": "integer", "minimum": 1},
        "lines": {"type": "array", "items": {"type": "object", "properties": {"sku": {"type": "string"}}}},
        "payment": {"oneOf": [{"type": "string"}, {"type": "object", "properties": {"iban": {"type": "string"}}}]},
    },
    "required": ["id"],
}
PROTOBUF_ORDER = """syntax = "proto3"; package shop;
message Order {
  int64 id = 1; optional string note = 2; repeated Line lines = 3; map<string, int64> counts = 4; State state = 5;
  oneof pay { string card = 6; string iban = 7; }
  message Line { string sku = 1; }
  enum State { NEW = 0; PAID = 1; }
}
"""
TEXTS = {"AVRO": json.dumps(ORDER), "JSON": json.dumps(JSON_ORDER), "PROTOBUF": PROTOBUF_ORDER}
METADATA = {"properties": {"owner": "sales"}, "tags": {"**.note": ["PII"]}}


@pytest.fixture(scope="module")
def tool(tmp_path_factory):
    """Install the tool into an environment of its own, and return what runs it."""
    python = fresh_environment(tmp_path_factory.mktemp("datacontract") / "env", "datacontract-cli==1.2.8")

    def run(*arguments):
        command = [python.with_name("datacontract"), *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)

    return run


@pytest.mark.parametrize("kind", TEXTS)
def test_an_export_passes_its_lint(tool, tmp_path, kind):
    """`datacontract lint` finds no fault in the contract of a schema, and the tool makes a JSON Schema of it."""
    made, _ = to_contract(Held("orders-value", 1, kind, TEXTS[kind], metadata=METADATA))
    file = tmp_path / "odcs.yaml"
    file.write_text(yaml.safe_dump(made, sort_keys=False))
    lint = tool("lint", str(file))

    assert (0, True) == (lint.returncode, "Data contract is valid" in lint.stdout), lint.stdout
    exported = tool("export", "jsonschema", str(file))
    assert 0 == exported.returncode, exported.stderr
    FORMATS[SchemaFormat.JSON].parse(exported.stdout, strict=False)


def test_its_lint_finds_faults(tool, tmp_path):
    """The lint judges: a contract with a text in the place of a truth value fails."""
    made, _ = to_contract(Held("orders-value", 1, "AVRO", TEXTS["AVRO"]))
    made["schema"][0]["properties"][0]["required"] = "yes"
    file = tmp_path / "odcs.yaml"
    file.write_text(yaml.safe_dump(made, sort_keys=False))

    assert 0 != tool("lint", str(file)).returncode
