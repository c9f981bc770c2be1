"""The driver registers or finds the schemas of an encode, and refuses options that do not fit."""

import json
from typing import Any

import pytest
from pyspark.sql.types import IntegerType

from strata.serdes.client import RegistryClient, Schema
from strata.serdes.errors import RegistryError, SchemaError
from strata.serdes.model import Rule, RuleSet
from strata.spark_udfs import encoder

pytestmark = pytest.mark.spark


def _avro(name: str, *fields: tuple[Any, ...]) -> str:
    """Return a record of fields (name, type) or (name, type, default)."""
    made = [dict(zip(("name", "type", "default"), one, strict=False)) for one in fields]
    return json.dumps({"type": "record", "name": name, "fields": made})


NUMBER = _avro("Number", ("n", "int"), ("label", ["null", "string"], None))
PROTO_NUMBER = 'syntax = "proto3"; message Number { optional int32 n = 1; optional string label = 2; }'


def test_registration(registry: RegistryClient) -> None:
    """A schema is registered, or found, when the column is made; if the registry refuses it, the call fails."""
    wider = _avro("Number", ("n", "long"), ("label", ["null", "string"], None))
    settings = registry.settings

    with pytest.raises(RegistryError, match=r"(?i)subject .* not found"):
        encoder(registry=settings, subject="registration", schema=NUMBER, register=False)
    first = encoder(registry=settings, subject="registration", schema=NUMBER)
    again = encoder(registry=settings, subject="registration", schema=NUMBER, register=False)
    with pytest.raises(RegistryError, match="incompatible"):
        encoder(registry=settings, subject="registration", schema=_avro("Number", ("other", "int")))
    second = encoder(registry=settings, subject="registration", schema=wider)
    latest = encoder(registry=settings, subject="registration", version="latest")
    fixed = encoder(registry=settings, schema_id=first.schema_id)

    assert [1, 2] == registry.get_versions("registration")
    assert first.schema_id == again.schema_id == fixed.schema_id != second.schema_id == latest.schema_id
    assert "long" == json.loads(latest.schema)["fields"][0]["type"]


def test_rules_are_not_passed_over(registry: RegistryClient) -> None:
    """A schema whose contract has rules for writing is refused; rules for readers do not matter."""
    for mode, disabled, is_refused in (("WRITE", False, True), ("READ", False, False), ("WRITEREAD", True, False)):
        rule = Rule(name="no-ssn", type="CEL", kind="CONDITION", mode=mode, expr="true", disabled=disabled)
        schema = Schema(NUMBER, rule_set=RuleSet(domain_rules=(rule,)))
        schema_id = registry.register(f"rules {mode}", schema).schema_id

        if not is_refused:
            assert schema_id == encoder(registry=registry.settings, schema_id=schema_id).schema_id
            continue
        with pytest.raises(
            SchemaError, match=rf"schema id {schema_id} has rules for writing \(no-ssn\): pass rules=True to run them"
        ):
            encoder(registry=registry.settings, schema_id=schema_id)


# options, error, message
NODE = _avro("Node", ("next", ["null", "Node"], None))
REFUSED: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"subject": "node", "schema": NODE}, SchemaError, "schema id .*: at next a record contains itself; write with"),
    ({"subject": "s"}, ValueError, "expected exactly one of schema"),
    ({"subject": "s", "schema": NUMBER, "version": 1}, ValueError, "expected exactly one of schema"),
    ({"schema": NUMBER}, ValueError, "schema needs subject"),
    ({"version": "latest"}, ValueError, "version needs subject"),
    ({"subject": "s", "schema": NUMBER, "format": "XML"}, ValueError, "allowed are AVRO, JSON, PROTOBUF"),
    ({"subject": "s", "schema": NUMBER, "mode": "IGNORE"}, ValueError, "mode is 'IGNORE'; allowed are DEADLETTER"),
    ({"subject": "s", "schema": NUMBER, "framing": "none"}, ValueError, "framing is 'none'; allowed are prefix, guid"),
    (
        {"subject": "s", "schema": 7},
        TypeError,
        "schema is a text, a strata.serdes.client.Schema or a Spark type, not int",
    ),
    ({"subject": "s", "schema": IntegerType(), "format": "PROTOBUF"}, ValueError, "cannot derive a PROTOBUF schema"),
    (
        {"subject": "s", "schema": Schema(NUMBER), "format": "JSON"},
        ValueError,
        "expected a schema of format JSON, got AVRO",
    ),
    ({"subject": "refused", "version": 1, "format": "JSON"}, ValueError, "expected a schema of format JSON, got AVRO"),
    ({"subject": "refused", "version": 1, "message": "M"}, ValueError, "message needs a Protobuf schema, and the"),
    (
        {"subject": "refused proto", "schema": PROTO_NUMBER, "format": "PROTOBUF", "message": "M"},
        SchemaError,
        "the schema has no message M; the first is Number",
    ),
    ({"subject": "none such", "version": 1}, RegistryError, "not found"),
    ({"schema_id": "1"}, TypeError, "schema_id is a number, not '1'"),
    ({"subject": "s", "shema": NUMBER}, TypeError, "unknown option shema; expected registry, subject, schema,"),
    ({"registry": None, "schema_id": 1}, TypeError, "registry is a URL, .* not NoneType"),
]


@pytest.mark.parametrize(("options", "error", "message"), REFUSED)
def test_options_that_do_not_fit(
    registry: RegistryClient, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    """Wrong options are refused when the column is made, with the allowed ones."""
    registry.register("refused", NUMBER)

    with pytest.raises(error, match=message):
        encoder(**{"registry": registry.settings, **options})
