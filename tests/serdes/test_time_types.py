"""A date, a time, an instant and a local timestamp stay what they are, in each unit, wherever they are read.

A confusion of two of them leaves the number as it is, so tests that compare numbers, or write and read with the same
mistake, do not see it.
"""

import json
from datetime import UTC, date, datetime, time

import pyarrow as pa
import pytest

from strata.serdes.arrow import BatchDecoder, Style
from strata.serdes.avro import compile_decoder, compile_encoder

NUMBER, PLAIN = 1_500, b"\xb8\x17"  # and its zigzag encoding, the same for int and long


def instant(micros):
    """Return the instant some microseconds after the epoch."""
    return datetime(1970, 1, 1, 0, 0, micros // 10**6, micros % 10**6, UTC)


def local(micros):
    """Return the same time without a zone."""
    return instant(micros).replace(tzinfo=None)


# logical type, underlying type, the number 1500 in Python, its type in Arrow, and in an Arrow batch for Spark
TIMES = [
    ("date", "int", date(1974, 2, 9), pa.date32(), pa.date32()),
    ("time-millis", "int", time(0, 0, 1, 500_000), pa.time32("ms"), pa.int32()),
    ("time-micros", "long", time(0, 0, 0, 1_500), pa.time64("us"), pa.int64()),
    ("timestamp-millis", "long", instant(1_500_000), pa.timestamp("ms", "UTC"), pa.timestamp("us", "UTC")),
    ("timestamp-micros", "long", instant(1_500), pa.timestamp("us", "UTC"), pa.timestamp("us", "UTC")),
    ("timestamp-nanos", "long", 1_500, pa.timestamp("ns", "UTC"), pa.int64()),
    ("local-timestamp-millis", "long", local(1_500_000), pa.timestamp("ms"), pa.timestamp("us")),
    ("local-timestamp-micros", "long", local(1_500), pa.timestamp("us"), pa.timestamp("us")),
    ("local-timestamp-nanos", "long", 1_500, pa.timestamp("ns"), pa.int64()),
]
NAMES = [row[0] for row in TIMES]


def schema(name, kind):
    """Return the text of a logical type."""
    return json.dumps({"type": kind, "logicalType": name})


def column(writer, reader, style):
    """Return the decoded column of one frame."""
    return BatchDecoder(reader, {1: writer}, style=style).decode([b"\0\0\0\0\1" + PLAIN]).column("value")


@pytest.mark.parametrize(("name", "kind", "value", "_arrow", "_spark"), TIMES, ids=NAMES)
def test_a_value_in_python(name, kind, value, _arrow, _spark):
    """An instant has the zone UTC, a local timestamp has none; encoding gives the number back."""
    read = compile_decoder(schema(name, kind))(PLAIN)

    assert (type(value), value) == (type(read), read)
    assert getattr(value, "tzinfo", None) == getattr(read, "tzinfo", None)
    assert compile_encoder(schema(name, kind))(value) == PLAIN


@pytest.mark.parametrize(("name", "kind", "value", "arrow", "spark"), TIMES, ids=NAMES)
def test_a_column(name, kind, value, arrow, spark):
    """A column has the type of its logical type, with a zone exactly for instants, and the number written."""
    for style, expected in ((Style.ARROW, arrow), (Style.SPARK, spark)):
        read = column(schema(name, kind), schema(name, kind), style)
        assert expected == read.type
        if pa.types.is_timestamp(expected) and expected.unit != "ns":
            assert [value] == read.to_pylist()


INSTANTS = [row for row in TIMES if "timestamp" in row[0]]
PAIRS = [(written, read) for written in INSTANTS for read in INSTANTS if written[0][:5] != read[0][:5]]


@pytest.mark.parametrize(("written", "read"), PAIRS, ids=[f"{written[0]} as {read[0]}" for written, read in PAIRS])
def test_the_logical_type_of_the_reader_counts(written, read):
    """Between instants and local timestamps nothing is converted: the reader's type says what the number means."""
    writer, reader = schema(*written[:2]), schema(*read[:2])

    assert read[2] == compile_decoder(writer, reader)(PLAIN)
    for style, expected in ((Style.ARROW, read[3]), (Style.SPARK, read[4])):
        found = column(writer, reader, style)
        assert expected == found.type
        assert column(reader, reader, style) == found


UNITS = {"millis": 1_000, "micros": 1_000_000, "nanos": 1_000_000_000}
SCALED = [
    (f"{kind}-{unit}", f"{kind}-{other}")
    for kind in ("timestamp", "local-timestamp")
    for unit in UNITS
    for other in UNITS
    if unit != other
]


@pytest.mark.parametrize(("written", "read"), SCALED)
def test_units_of_one_kind_are_converted(written, read):
    """Between units of one kind the number is scaled, rounded down."""
    have, want = UNITS[written.rpartition("-")[2]], UNITS[read.rpartition("-")[2]]

    number = compile_decoder(schema(written, "long"), schema(read, "long"), numeric_times=True)(PLAIN)

    assert NUMBER * want // have == number
