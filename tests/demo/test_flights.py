"""The table's lines as values of the schema's versions."""

import csv
import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from demo.flights import COLUMNS, INCOMPATIBLE_SCHEMA, READER_SCHEMA, ROWS, VERSIONS, read_table
from strata.serdes.avro import compile_decoder, compile_encoder

KNOWN, CANCELLED = csv.reader(
    [
        "2013,1,1,517,515,2,830,819,11,UA,1545,N14228,EWR,IAH,227,1400,5,15,2013-01-01T10:00:00Z",
        "2013,1,1,NA,1630,NA,NA,1815,NA,EV,4308,NA,EWR,RDU,NA,416,16,30,2013-01-01T21:00:00Z",
    ]
)
EMPTY = ["" if text == "NA" else text for text in CANCELLED]

FIRST, SECOND, THIRD = VERSIONS


def value(line, version, *, schema=READER_SCHEMA):
    """Return the line in the reader schema, encoded and decoded with a version."""
    (row,) = version.parse([line])
    return compile_decoder(version.schema, schema)(compile_encoder(version.schema, drop_unknown=True)(row))


def test_table_is_the_one_the_versions_share_out():
    """The installed table begins with the expected columns and flight."""
    assert KNOWN == next(read_table())
    assert [0, FIRST.end_row, SECOND.end_row] == [version.first_row for version in VERSIONS]
    assert ROWS == sum(version.rows for version in VERSIONS)


def test_known_flight():
    """A flight with all values keeps them all."""
    expected = {
        **dict(zip(COLUMNS, KNOWN, strict=True)),
        **{name: int(text) for name, text in zip(COLUMNS, KNOWN, strict=True) if text.isdigit()},
        "time_hour": datetime(2013, 1, 1, 10, tzinfo=UTC),
        "gained": -9,
    }

    assert expected == value(KNOWN, SECOND)
    assert expected | {"gained": None} == value(KNOWN, FIRST)
    assert expected | {"hour": None} == value(KNOWN, THIRD)


@pytest.mark.parametrize("version", VERSIONS, ids=lambda version: f"version {version.number}")
@pytest.mark.parametrize("line", [CANCELLED, EMPTY], ids=["NA", "empty"])
def test_cancelled_flight(version, line):
    """A missing value is null, whichever way the table spells it."""
    found = value(line, version)
    nulls = {name for name, one in found.items() if one is None}

    missing = {"dep_time", "dep_delay", "arr_time", "arr_delay", "tailnum", "air_time", "gained"}
    assert missing | ({"hour"} if version is THIRD else set()) == nulls


@pytest.mark.parametrize(
    ("column", "text"),
    [("carrier", "NA"), ("distance", "NA"), ("distance", ""), ("time_hour", "2013-01-01"), ("dep_delay", "2.5")],
)
def test_line_that_does_not_fit(column, text):
    """A value that its column cannot hold raises an error that shows the line."""
    line = list(KNOWN)
    line[COLUMNS.index(column)] = text

    with pytest.raises(ValueError, match="in line '2013,1,1,"):
        list(FIRST.parse([line]))


def test_line_that_is_too_short():
    """A line with too few values is an error."""
    with pytest.raises(ValueError, match="in line"):
        list(FIRST.parse([KNOWN[:-1]]))


def test_versions_differ_as_told():
    """The second version adds a field and widens an int, the third removes a field; the refused does both wrongly."""
    first, second, third, refused = (
        {field["name"]: field["type"] for field in json.loads(text)["fields"]}
        for text in (*(version.schema for version in VERSIONS), INCOMPATIBLE_SCHEMA)
    )

    assert {**first, "distance": "long", "gained": ["null", "int"]} == second
    assert {name: kind for name, kind in second.items() if name != "hour"} == third
    assert {**second, "distance": "int", "gate": "string"} == refused


def test_removed_hour_is_not_even_read():
    """A version without a field does not read its column."""
    line = list(KNOWN)
    line[COLUMNS.index("hour")] = "no number"

    (row,) = replace(SECOND, hour=False).parse([line])

    assert row["hour"] is None
