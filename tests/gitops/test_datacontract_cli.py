"""The contracts that are exported are ones that another tool for the standard takes: datacontract-cli."""

import json
import subprocess

import pytest
import yaml

from harness.environments import fresh_environment
from strata.compat.formats import FORMATS
from strata.compat.schema import SchemaFormat
from strata.gitops.contracts.envelope import from_contract, to_contract
from strata.gitops.versions import Held
from strata.strict_yaml import read_text

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
    python = fresh_environment(
        tmp_path_factory.mktemp("datacontract") / "env", "datacontract-cli[avro,duckdb,protobuf]==1.2.8"
    )

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


# format of the schema, a record, another one that the contract refuses
RECORDS = [
    ("AVRO",
     {"id": 1, "note": None, "state": "NEW", "day": "2026-01-02", "lines": [{"sku": "a", "price": 1.5}], "counts": {}},
     {"state": "GONE"}),
    ("JSON", {"id": 1, "lines": [{"sku": "a"}], "payment": {"iban": "x"}}, {"id": 0}),
    ("PROTOBUF",
     {"id": 1, "note": "n", "lines": [{"sku": "a"}], "counts": {"a": 1}, "state": "NEW", "card": "c", "iban": None},
     {"state": "GONE"}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "record", "change"), RECORDS)
def test_an_export_tests_data(tool, tmp_path, kind, record, change):
    """`datacontract test` takes data that fits the exported contract, and refuses what a check of it refuses."""
    made, _ = to_contract(Held("orders-value", 1, kind, TEXTS[kind], metadata=METADATA))
    made["schema"][0]["physicalName"] = made["schema"][0]["name"]  # the tool's name for a file; else it is the topic
    server = {"server": "here", "type": "local", "format": "json", "delimiter": "new_line"}
    results = []
    for name, row in (("good", record), ("bad", record | change)):
        data, file = tmp_path / f"{name}.json", tmp_path / f"{name}.yaml"
        data.write_text(json.dumps(row) + "\n")
        file.write_text(yaml.safe_dump(made | {"servers": [server | {"path": str(data)}]}, sort_keys=False))
        results.append(tool("test", str(file)))

    assert 0 == results[0].returncode, results[0].stdout
    assert 0 != results[1].returncode, results[1].stdout


# the tool's word for a format, ours, the ending of a file
FORMS = [("avro", "AVRO", "avsc"), ("jsonschema", "JSON", "json"), ("protobuf", "PROTOBUF", "proto")]


@pytest.mark.parametrize(("form", "kind", "ending"), FORMS)
def test_its_contracts_are_imported(tool, tmp_path, form, kind, ending):
    """A contract that the tool makes of a schema is imported as a schema with the same fields."""
    source, file = tmp_path / f"order.{ending}", tmp_path / "odcs.yaml"
    text = TEXTS[kind]
    if kind == "JSON":
        text = json.dumps({"$schema": "http://json-schema.org/draft-07/schema#", **JSON_ORDER})
    source.write_text(text)
    done = tool("import", form, "--source", str(source), "--output", str(file))
    assert 0 == done.returncode, done.stdout + done.stderr

    made = from_contract(read_text(file.read_text()), kind)

    FORMATS[SchemaFormat(kind)].parse(made[0].text, strict=True)
    names = [one["name"] for one in yaml.safe_load(file.read_text())["schema"][0]["properties"]]
    assert names
    assert [] == [name for name in names if f"{name}" not in made[0].text]


@pytest.mark.parametrize("kind", ["AVRO", "PROTOBUF"])
def test_an_export_is_converted(tool, tmp_path, kind):
    """The tool makes an Avro and a Protobuf schema of an exported contract, which our parsers take."""
    made, _ = to_contract(Held("orders-value", 1, kind, TEXTS[kind], metadata=METADATA))
    file = tmp_path / "odcs.yaml"
    file.write_text(yaml.safe_dump(made, sort_keys=False))
    done = tool("export", kind.lower(), str(file))

    assert 0 == done.returncode, done.stderr
    FORMATS[SchemaFormat(kind)].parse(done.stdout, strict=False)


def test_its_lint_finds_faults(tool, tmp_path):
    """The lint judges: a contract with a text in the place of a truth value fails."""
    made, _ = to_contract(Held("orders-value", 1, "AVRO", TEXTS["AVRO"]))
    made["schema"][0]["properties"][0]["required"] = "yes"
    file = tmp_path / "odcs.yaml"
    file.write_text(yaml.safe_dump(made, sort_keys=False))

    assert 0 != tool("lint", str(file)).returncode
