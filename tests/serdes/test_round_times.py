"""Times that are finer than the unit of the schema are rejected, or rounded down with the setting `round.times`."""

import json
from datetime import UTC, datetime, time, timedelta, timezone

import pytest

from strata.serdes.avro import compile_encoder
from strata.serdes.errors import EncodeError


def schema(name, kind="long"):
    """Return a logical type."""
    return {"type": kind, "logicalType": name}


CLOCK, MILLIS, LOCAL = schema("time-millis", "int"), schema("timestamp-millis"), schema("local-timestamp-millis")
MICROS = schema("timestamp-micros")
FINE = datetime(1970, 1, 1, 0, 0, 1, 1999, UTC)
BEFORE = datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC)
RECORD = {"type": "record", "name": "R", "fields": [{"name": "at", "type": MILLIS}]}

# schema, a value that is too fine, the value that is written instead
TOO_FINE = [
    ("time of day", CLOCK, time(0, 0, 1, 1_999), 1_001),
    ("end of a day", CLOCK, time(23, 59, 59, 999_999), 86_399_999),
    ("text of a time of day", CLOCK, "00:00:01.001999", 1_001),
    ("timestamp", MILLIS, FINE, 1_001),
    ("timestamp before 1970", MILLIS, BEFORE, -1),
    ("timestamp of another zone", MILLIS, FINE.astimezone(timezone(timedelta(hours=5))), 1_001),
    ("text of a timestamp", MILLIS, "1970-01-01T00:00:01.001999Z", 1_001),
    ("timestamp of pandas", MILLIS, lambda pandas: pandas.Timestamp(1_001_999_999, tz="UTC"), 1_001),
    ("microseconds of pandas", MICROS, lambda pandas: pandas.Timestamp(1_999, tz="UTC"), 1),
    ("local timestamp", LOCAL, FINE.replace(tzinfo=None), 1_001),
    ("local timestamp before 1970", LOCAL, BEFORE.replace(tzinfo=None), -1),
    ("nullable", ["null", MILLIS], FINE, 1_001),
    ("in a union", ["null", "boolean", MILLIS], FINE, 1_001),
    ("text in a union", ["null", "boolean", MILLIS], "1970-01-01T00:00:01.001999Z", 1_001),
    ("in a record", RECORD, {"at": FINE}, {"at": 1_001}),
    ("text in a record in a union", ["null", "int", RECORD], {"at": "1970-01-01T00:00:01.001999Z"}, {"at": 1_001}),
]


@pytest.mark.parametrize(("kind", "value", "rounded"), [row[1:] for row in TOO_FINE], ids=[row[0] for row in TOO_FINE])
def test_a_time_that_is_too_fine(kind, value, rounded):
    """Without the setting it is an error that names the setting; with it, it is rounded down, also before 1970."""
    text = json.dumps(kind)
    value = value(pytest.importorskip("pandas")) if callable(value) else value
    stored = ("R", rounded) if isinstance(rounded, dict) and isinstance(kind, list) else rounded
    if kind == ["null", "boolean", MILLIS]:
        stored = ("long", rounded)

    with pytest.raises(EncodeError, match=r"got a finer one; round it first, or set round\.times"):
        compile_encoder(text)(value)
    assert compile_encoder(text)(stored) == compile_encoder(text, round_times=True)(value)


EXACT = [
    ("milliseconds", MILLIS, datetime(2024, 3, 1, 12, 0, 0, 5000, UTC)),
    ("a time of day", CLOCK, time(12, 0, 0, 5000)),
    ("the stored number", MILLIS, 7),
    ("a text where strings fit", ["string", MILLIS], "1970-01-01T00:00:01.001999Z"),
]


@pytest.mark.parametrize(("kind", "value"), [row[1:] for row in EXACT], ids=[row[0] for row in EXACT])
def test_what_fits_stays(kind, value):
    """The setting changes nothing for values that fit, in a union with a type that holds all of them too."""
    text = json.dumps(kind)
    assert compile_encoder(text)(value) == compile_encoder(text, round_times=True)(value)


@pytest.mark.parametrize("value", [time(0, 0, 1, 1_999), "00:00:01.001999"], ids=["time", "text"])
def test_a_union_with_a_finer_unit(value):
    """A branch that holds the time exactly is chosen before one that rounds it."""
    text = json.dumps([CLOCK, schema("time-micros")])
    assert compile_encoder(text)(("long", 1_001_999)) == compile_encoder(text, round_times=True)(value)


@pytest.mark.parametrize(
    ("kind", "value", "says"),
    [
        (MILLIS, FINE.replace(tzinfo=None), "expected a datetime with a time zone"),
        (LOCAL, FINE, "expected a datetime without a time zone"),
        (CLOCK, "00:00:01.0019999", "expected an ISO 8601 time of day"),
        (MILLIS, 1.5, "with a time zone"),
    ],
    ids=["no zone", "a zone", "seven digits", "a float"],
)
def test_other_errors_stay(kind, value, says):
    """The setting rounds; it guesses no time zone and takes no other type."""
    with pytest.raises(EncodeError, match=says):
        compile_encoder(json.dumps(kind), round_times=True)(value)
