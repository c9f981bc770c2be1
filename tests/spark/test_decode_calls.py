"""What a call of `decode` does on the driver: it refuses wrong arguments, warns of rules, and logs the path."""

import json
import logging
from typing import Any

import pytest
from pyspark.sql import functions

from strata.serdes.client import RegistryClient, Schema
from strata.serdes.errors import RegistryError, SchemaError
from strata.serdes.model import Rule, RuleSet
from strata.spark_udfs import decode

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves them to the collector
]

PATH = "arrow" if hasattr(functions, "arrow_udf") else "pandas"
"""The path that this Spark chooses."""

FLIGHT = {
    "type": "record",
    "name": "Flight",
    "fields": [{"name": "carrier", "type": "string"}, {"name": "delay", "type": "int"}],
}


# name, arguments, the error, its message
REFUSED: list[tuple[str, dict[str, Any], type[Exception], str]] = [
    ("no reader schema", {}, ValueError, "expected exactly one of reader_schema"),
    (
        "unknown mode",
        {"reader_schema": '"int"', "mode": "DROPMALFORMED"},
        ValueError,
        "allowed are DEADLETTER, PERMISSIVE, FAILFAST",
    ),
    ("damaged schema", {"reader_schema": "{"}, SchemaError, "not JSON"),
    ("unknown subject", {"subject": "nobody"}, RegistryError, "Subject 'nobody' not found"),
    ("unknown id", {"schema_id": 10**6}, RegistryError, "Schema 1000000 not found"),
    ("unknown column", {"reader_schema": json.dumps(FLIGHT), "columns": ["gat"]}, ValueError, "no column gat"),
    (
        "origin as a text",
        {"reader_schema": '"int"', "mode": "FAILFAST", "origin": "offset"},
        TypeError,
        "a list of column names",
    ),
    (
        "schema that is not text",
        {"reader_schema": FLIGHT},
        TypeError,
        r"reader_schema is a text or a strata\.serdes\.client\.Schema, not dict",
    ),
    ("id that is not a number", {"schema_id": "1"}, TypeError, "schema_id is a number, not '1'"),
    ("no registry", {"registry": None}, TypeError, r"registry is a URL, .*ClientSettings, not NoneType"),
    ("registry of numbers", {"registry": [8081]}, TypeError, r"registry is a URL, .*ClientSettings, not list"),
    (
        "unknown names of members",
        {"reader_schema": '"int"', "union_names": "x"},
        ValueError,
        "union_names is 'x'; allowed are member, type",
    ),
    ("another format", {"reader_schema": '"int"', "format": "avro"}, ValueError, "AVRO, PROTOBUF or JSON, got 'avro'"),
]


@pytest.mark.parametrize(
    ("arguments", "error", "message"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_refused_at_plan_time(
    registry: RegistryClient, arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    """Wrong arguments are refused by the call itself."""
    with pytest.raises(error, match=message):
        decode("value", **{"registry": registry.settings, **arguments})


def test_another_format_than_the_schema_has(registry: RegistryClient) -> None:
    """The requested format must be that of the schema in the registry."""
    schema_id = registry.register("format", '"int"').schema_id

    with pytest.raises(ValueError, match="expected a reader schema of format JSON, got AVRO"):
        decode("value", registry=registry.settings, schema_id=schema_id, format="JSON")


# mode, whether it is disabled, whether decode warns that it does not run it
RULES = [("READ", False, True), ("WRITEREAD", False, True), ("WRITE", False, False), ("READ", True, False)]


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(("mode", "disabled", "warns"), RULES)
def test_rules_give_a_warning(
    registry: RegistryClient, caplog: pytest.LogCaptureFixture, mode: str, disabled: bool, warns: bool
) -> None:
    """A reader schema whose contract has rules for readers is used without them, and a warning says so."""
    rule = Rule(name="hide", type="CEL", kind="CONDITION", mode=mode, expr="true", disabled=disabled)
    schema = Schema(json.dumps(FLIGHT), rule_set=RuleSet(domain_rules=(rule,)))
    subject = f"rules for readers {mode} {disabled}"
    schema_id = registry.register(subject, schema).schema_id

    with caplog.at_level(logging.WARNING, logger="strata.spark_udfs"):
        decode("value", registry=registry.settings, subject=subject, path="python")
        decode("value", registry=registry.settings, schema_id=schema_id, path="python")

    assert 2 * [warns] * warns == ["rules for reading (hide)" in one for one in caplog.messages]


@pytest.mark.usefixtures("spark")
def test_path_is_logged_once(registry: RegistryClient, caplog: pytest.LogCaptureFixture) -> None:
    """A process logs once which path its decodes take."""
    from strata.spark_udfs.decoding.path_choice import _log_once

    _log_once.cache_clear()
    with caplog.at_level(logging.INFO, logger="strata.spark_udfs"):
        for _ in range(2):
            decode("value", registry=registry.settings, reader_schema='"int"', path="python")

    assert [f"decoding in Python workers by {PATH}_udf: path='python'"] == caplog.messages
