"""The published formats: the JSON Schema of the manifest, and SARIF as GitHub wants it; and policies."""

import json
from pathlib import Path

import jsonschema_rs
import pytest
import yaml

from strata.gitops import manifest

SCHEMA = json.loads((Path(manifest.__file__).parent / "strata.schema.json").read_text())


@pytest.mark.parametrize(
    ("text", "accepted"),
    [
        ("compatibility: ${LEVEL:-FULL}", True),
        ("normalize: ${NORMALIZE}", True),
        ("mode: READONLY${MODE}", True),
        ("subjects: [{name: a, file: a, type: '${TYPE}', references: [{subject: b, version: '${VERSION}'}]}]", True),
        ("rights: [{principal: 'User:a', allow: ['${OPERATION}']}]", True),
        ("config: {validateRules: 'false', compatibilityPolicy: LENIENT}", True),
        ("compatibility: HIGH", False),
        ("normalize: maybe", False),
        ("subjects: [{name: a, file: a, files: b}]", False),
        ("subjects: [{name: a, file: a, schema: b}]", False),
        ("subjects: [{name: a, files: a, alias: b}]", False),
        ("subjects: [{name: a, file: a, references: [{subject: b, version: 0}]}]", False),
        ("rights: [{principal: 'User:a'}]", False),
        ("contexts: {a: {rights: [{principal: 'User:a'}]}}", False),
    ],
)
def test_the_json_schema_knows_variables_and_contradictions(files, monkeypatch, text, accepted):
    """An editor accepts a variable wherever the reader does, and marks what the reader would refuse."""
    for name, value in (("NORMALIZE", "true"), ("TYPE", "avro"), ("VERSION", "1"), ("OPERATION", "READ"), ("MODE", "")):
        monkeypatch.setenv(name, value)
    assert accepted == jsonschema_rs.is_valid(SCHEMA, yaml.safe_load(text))
    files.put("strata.yaml", text)
    files.put("a", '"long"')
    output = files.run("check", code=2 if "subjects" not in text or not accepted else None)
    assert ("no schema files found" in output or "it refers to b" in output) == accepted


def test_rules_of_a_sarif_report_have_texts(files, record):
    """GitHub asks for a short and a full description and a help text of each rule."""
    files.write(a__avsc=record("a"), b__avsc="{")
    files.commit()
    files.write(a__avsc=record("b"), c__avsc='{"type": "record", "name": "C", "fields": []}')
    report = json.loads(files.run("check", "--against", "HEAD", "--output", "sarif", code=1))
    rules = report["runs"][0]["tool"]["driver"]["rules"]
    assert ["INVALID_SCHEMA", "READER_FIELD_MISSING_DEFAULT_VALUE"] == [rule["id"] for rule in rules]
    assert "Invalid schema." == rules[0]["shortDescription"]["text"]
    assert all(rule["fullDescription"]["text"] and rule["help"]["text"] for rule in rules)


def test_an_environment_needs_a_manifest(files, record):
    """A check does not pass because the manifest that --env is about was not found."""
    files.write(a__avsc=record("a"))
    assert "--env needs a manifest" in files.run("check", "--env", "production", code=2)


OPEN = '{"type": "object", "properties": {"a": {"type": "string"}}}'
CLOSER = '{"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}'


@pytest.mark.parametrize("source", ["manifest", "registry", "export"])
def test_the_policy_of_a_subject_counts(files, service, exported, source):
    """Without --policy a check has the compatibilityPolicy of the manifest, the registry or the export."""
    service.ask("PUT", "/config/o", {"compatibility": "BACKWARD"})
    service.register("o", OPEN, schemaType="JSON")
    files.put("o.schema.json", CLOSER)
    config = "{compatibilityPolicy: LENIENT}" if source == "manifest" else "{}"
    files.put("strata.yaml", f"subjects: [{{name: o, file: o.schema.json, config: {config}}}]")
    strict = files.run("check", "--against", service.url, code=None if source == "manifest" else 1)
    assert (source == "manifest") == ("no errors" in strict)
    if source != "manifest":
        service.ask("PUT", "/config/o", {"compatibility": "BACKWARD", "compatibilityPolicy": "LENIENT"})
    files.put("export.jsonl", exported(service))
    against = "export.jsonl" if source == "export" else service.url
    assert "no errors" in files.run("check", "--against", against, code=0)
    assert "1 error" in files.run("check", "--against", against, "--policy", "strict", code=1)
