"""Strings of JSON become the columns that their format means, on both paths; jsonschema judges what is one."""

import json
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import jsonschema_rs
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from harness.payload_columns import json_frame, json_schema
from strata.serdes.client import RegistryClient
from strata.spark_udfs import decode

pytestmark = [
    pytest.mark.spark,
    pytest.mark.usefixtures("installed"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves them to the collector
]

FORMATS = {"date-time": "timestamp", "date": "date", "time": "bigint", "uuid": "string"}
# Python would give moments in the time zone of the machine.
SELECTED = ["unix_micros(d.value.`date-time`) as `date-time`", "d.value.date", "d.value.time", "d.value.uuid"]
UUID = "123e4567-e89b-12d3-a456-426614174000"
# format, text, whether a column holds it although the format's definition refuses it, or not although it does not
CASES = [
    ("date-time", "2026-11-26T14:00:00Z", None),
    ("date-time", "2026-11-26t14:00:00.5z", None),
    ("date-time", "2026-11-26T14:00:00.123456+01:00", None),
    ("date-time", "2026-11-26T14:00:00.1234560000-11:30", None),
    ("date-time", "2024-02-29T23:59:59Z", None),
    ("date-time", "0001-01-01T00:00:00Z", None),
    ("date-time", "9999-12-31T23:59:59.999999Z", None),
    ("date-time", "2026-11-26T14:00:00.1234567Z", False),  # a digit too many for a timestamp
    ("date-time", "2026-12-31T23:59:60Z", False),  # a leap second
    ("date-time", "2026-11-26 14:00:00Z", True),  # RFC 3339 allows a space
    ("date-time", "2026-11-26T14:00:00", None),  # no offset
    ("date-time", "2025-02-29T00:00:00Z", None),
    ("date-time", "2026-11-26", None),
    ("date-time", "2026-11-26T24:00:00Z", None),
    ("date-time", "2026-11-26T14:00Z", None),
    ("date-time", "2026-11-26T14:00:00Z ", None),
    ("date-time", "2026-11-26T14:00:00Z\n", None),
    ("date-time", "now", None),
    ("date-time", "", None),
    ("date", "2026-11-26", None),
    ("date", "2024-02-29", None),
    ("date", "2025-02-29", None),
    ("date", "2026-1-2", None),
    ("date", "2026-11-26T14:00:00Z", None),
    ("date", "٢٠٢٦-11-26", None),
    ("time", "14:00:00Z", None),
    ("time", "14:00:00.25+00:00", None),
    ("time", "14:00:00", True),  # no offset, so none is lost
    ("time", "14:00:00+01:00", False),  # the offset would be lost
    ("time", "25:00:00Z", None),
    ("time", "14:00", None),
    ("uuid", UUID, None),
    ("uuid", UUID.upper(), None),
    ("uuid", UUID.replace("-", ""), None),
    ("uuid", f"{{{UUID}}}", None),
]
VALIDATORS = {
    name: jsonschema_rs.validator_for(
        {"$schema": "https://json-schema.org/draft/2020-12/schema", "format": name}, validate_formats=True
    )
    for name in FORMATS
}
SCHEMA = {
    "type": "object",
    "properties": {name: {"type": "string", "format": name} for name in FORMATS}
    | {
        "days": {"type": "array", "items": {"type": ["string", "null"], "format": "date"}},
        "by": {"type": "object", "additionalProperties": {"properties": {"at": {"format": "date-time"}}}},
        "text": {"type": "string", "format": "email"},
        "either": {"oneOf": [{"type": "string", "format": "date"}, {"type": "string", "format": "time"}]},
    },
}


def _value(format_: str, text: str) -> Any:
    """Return what Python makes of a text."""
    match format_:
        case "date-time":
            moment = datetime.fromisoformat(text.upper().replace("0000-11:30", "-11:30"))
            return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
        case "date":
            return date.fromisoformat(text)
        case "time":
            clock = time.fromisoformat(text)
            return ((clock.hour * 60 + clock.minute) * 60 + clock.second) * 1_000_000 + clock.microsecond
    return text


@pytest.mark.parametrize("path", ["jvm", "python"])
def test_formats(path: Any, spark: SparkSession, client: RegistryClient) -> None:
    """A value of a format becomes a value of its type, and another one makes its record a dead letter."""
    nested = {
        "days": ["2026-11-26", None],
        "by": {"k": {"at": "2026-11-26T14:00:00Z"}},
        "text": "x",
        "either": "14:00:00Z",
    }
    wrong = [{"days": ["2026-11-26", "x"]}, {"by": {"a": {}, "b": {"at": "x"}}}]
    frames = [json_frame(client, value) for value in [*({name: text} for name, text, _ in CASES), nested, {}, *wrong]]
    rows = spark.createDataFrame(list(enumerate([*frames, None])), "n int, frame binary").coalesce(1)

    decoded = rows.select(
        "n",
        decode(
            "frame",
            registry=client.settings,
            reader_schema=json_schema(SCHEMA),
            typed_formats=True,
            path=path,
        ).alias("d"),
    ).orderBy("n")

    types = {field.name: field.dataType.simpleString() for field in decoded.select("d.value.*").schema}
    assert FORMATS == {name: types[name] for name in FORMATS}
    assert ("array<date>", "map<string,struct<at:timestamp>>") == (types["days"], types["by"])
    assert ("string", "string") == (types["text"], types["either"])
    results = decoded.selectExpr("d.error", "to_json(d.value) as json", *SELECTED).collect()
    for (name, text, is_held), result in zip(CASES, results, strict=False):
        if VALIDATORS[name].is_valid(text) if is_held is None else is_held:
            assert (None, _value(name, text)) == (result.error, result[name]), text
        else:
            assert (None, f"invalid {name}") == (result.json, result.error.reason), text
            assert json.loads(bytes(result.error.frame)[5:]) == {name: text}
            assert int.from_bytes(result.error.frame[1:5]) == result.error.schema_id
    *_, whole, empty, first, second, null = results
    expected = {"days": ["2026-11-26", None], "by": {"k": {"at": "2026-11-26T14:00:00.000Z"}}}
    assert expected | {"text": "x", "either": "14:00:00Z"} == json.loads(whole.json)
    assert ("{}", None) == (empty.json, empty.error)
    assert ["invalid date", "invalid date-time"] == [first.error.reason, second.error.reason]
    assert (None, None) == (null.json, null.error)


def test_modes(spark: SparkSession, client: RegistryClient) -> None:
    """PERMISSIVE makes null of a record with another value, and FAILFAST fails and names the record."""
    frame = json_frame(client, {"date": "x"})
    rows = spark.createDataFrame([(7, frame)], "n int, frame binary").coalesce(1)
    options: Any = {"registry": client.settings, "reader_schema": json_schema(SCHEMA), "typed_formats": True}

    null = rows.select(decode("frame", mode="PERMISSIVE", **options).alias("d")).first()
    with pytest.raises(PySparkException, match=r"a frame cannot be decoded \(invalid date, n 7\)"):
        rows.select(decode("frame", mode="FAILFAST", origin=["n"], **options)).collect()
    with pytest.raises(ValueError, match="typed_formats needs a JSON Schema"):
        decode("frame", registry=client.settings, reader_schema='"string"', typed_formats=True)

    assert null is not None
    assert null.d is None
