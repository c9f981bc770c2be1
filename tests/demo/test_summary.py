"""The comparison at the end finds what is lost, doubled or changed."""

from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from demo.damage import Kind
from demo.flights import READER_SCHEMA, VERSIONS
from demo.summary import DeadLetter, compare, dead_letters_in, expect, facts_of, load
from strata.serdes.avro import compile_decoder, compile_encoder

LINES = [
    line.split(",")
    for line in (
        "2013,1,1,517,515,2,830,819,11,UA,1545,N14228,EWR,IAH,227,1400,5,15,2013-01-01T10:00:00Z",
        "2013,1,1,NA,1630,NA,NA,1815,NA,EV,4308,NA,EWR,RDU,NA,416,16,30,2013-01-01T21:00:00Z",
        "2013,1,1,533,529,4,850,830,20,UA,1714,N24211,LGA,IAH,227,1416,5,29,2013-01-01T10:00:00Z",
        "2013,1,1,2016,1930,46,NA,2220,NA,EV,4204,N14168,EWR,OKC,NA,1325,19,30,2013-01-02T00:00:00Z",
        "2013,1,1,554,600,-6,812,837,-25,DL,461,N668DN,LGA,ATL,116,762,6,0,2013-01-01T11:00:00Z",
        "2013,1,1,555,600,-5,913,854,19,B6,507,N516JB,EWR,FLL,158,1065,6,0,2013-01-01T11:00:00Z",
    )
]
SHARED = tuple(replace(version, first_row=2 * place, end_row=2 * place + 2) for place, version in enumerate(VERSIONS))
IDS = {1: 11, 2: 12, 3: 13}
EXPECTED = expect(LINES, SHARED, IDS)

SENT = [
    DeadLetter("flights", 0, 7, None, Kind.WRONG_MAGIC_BYTE, b"\x01\0\0\0\x0b"),
    DeadLetter("flights", 1, 7, 11, Kind.TRUNCATED, b"\0\0\0\0\x0b"),
]
FOUND = [replace(SENT[0], reason="wrong magic byte 0x01"), SENT[1]]


def decoded():
    """Return the lines as a table of decoded flights, encoded and decoded on the way."""
    rows = []
    for version in SHARED:
        encode, decode = (
            compile_encoder(version.schema, drop_unknown=True),
            compile_decoder(version.schema, READER_SCHEMA),
        )
        for row in version.parse(LINES[version.first_row : version.end_row]):
            place = {"topic": "flights", "partition": len(rows) % 2, "offset": len(rows) // 2}
            rows.append(decode(encode(row)) | place | {"schema_id": IDS[version.number]})
    return rows


def off(rows, sent=SENT, dead=FOUND):
    """Return the names of the lines that are not ok."""
    return {check.name for check in compare(EXPECTED, facts_of(pa.Table.from_pylist(rows)), sent, dead) if not check.ok}


def test_expectation_is_counted():
    """The expectation counts rows by schema id, sums without missing values, and nulls of table and versions."""
    assert {11: 2, 12: 2, 13: 2} == EXPECTED.rows
    assert {"distance": 6384, "air_time": 728, "arr_delay": 25} == EXPECTED.sums
    assert {"arr_delay": 2, "tailnum": 1, "gained": 3, "hour": 2}.items() <= EXPECTED.nulls.items()


def test_all_is_well():
    """If every record arrives, every line is ok."""
    assert set() == off(decoded())


def test_lost_row():
    """A missing row shows in its version, in the total, and in the sums."""
    assert {"rows written with schema id 13", "all rows", "sum of distance"} <= off(decoded()[:-1])


def test_doubled_row():
    """A row that occurs twice shows as doubled."""
    rows = decoded()

    assert {"all rows", "rows doubled"} <= off([*rows, rows[0]])


def test_doubled_row_in_place_of_a_lost_one():
    """A lost row and a doubled row do not cancel each other out."""
    rows = decoded()

    assert {"rows doubled"} <= off([*rows[:-1], rows[-2]])


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"distance": 1}, {"sum of distance"}),
        ({"arr_delay": None}, {"sum of arr_delay", "nulls in arr_delay"}),
        ({"gained": 0}, {"nulls in gained"}),
        ({"hour": None}, {"nulls in hour"}),
        ({"schema_id": 12}, {"rows written with schema id 11", "rows written with schema id 12"}),
        ({"schema_id": 99}, {"rows written with schema id 11", "rows written with schema id 99"}),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_changed_row(change, expected):
    """A changed value shows in its own lines, and in no other."""
    rows = decoded()
    rows[0] |= change

    assert expected == off(rows)


@pytest.mark.parametrize(
    "change",
    [{"frame": b"\x01\0\0\0\x0c"}, {"offset": 8}, {"partition": 1, "offset": 9}, {"schema_id": 11}, {"topic": "other"}],
    ids=lambda change: next(iter(change)),
)
def test_dead_letter_that_is_not_as_sent(change):
    """A dead letter counts only with the bytes, the place and the id of the sent record."""
    assert {"dead letters identical to what was sent"} == off(decoded(), dead=[replace(FOUND[0], **change), FOUND[1]])


def test_dead_letter_for_another_reason():
    """A dead letter with the reason of another kind shows in both kinds."""
    assert {
        f"dead letters: {Kind.WRONG_MAGIC_BYTE}",
        f"dead letters: {Kind.TRAILING_BYTES}",
        "dead letters identical to what was sent",
    } == off(decoded(), dead=[replace(FOUND[0], reason="trailing bytes"), FOUND[1]])


@pytest.mark.parametrize("dead", [FOUND[:1], [*FOUND, FOUND[1]]], ids=["lost", "doubled"])
def test_number_of_dead_letters(dead):
    """A missing or extra dead letter shows."""
    assert {"all dead letters", f"dead letters: {Kind.TRUNCATED}"} <= off(decoded(), dead=dead)


@pytest.mark.parametrize("lines", [LINES[:-1], [*LINES, LINES[0]]], ids=["shorter", "longer"])
def test_table_of_another_length(lines):
    """A table that does not match the versions is refused."""
    with pytest.raises(RuntimeError, match="expected 6 rows"):
        expect(lines, SHARED, IDS)


def test_load_reads_what_is_finished(tmp_path):
    """The reader reads the files of all batches, and no unfinished file."""
    table = pa.table({"offset": [1], "other": [2]})
    for name in ("batch=0/part-0.parquet", "batch=1/part-0.parquet", "batch=1/_temporary/0/part-1.parquet"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, file)

    assert pa.table({"offset": [1, 1]}) == load(tmp_path, ["offset"])


def test_load_of_nothing(tmp_path):
    """A folder without tables is an error, not an empty table."""
    with pytest.raises(RuntimeError, match="no Parquet files"):
        load(tmp_path, ["offset"])


def test_dead_letters_of_a_table():
    """The dead-letter table survives a round trip."""
    rows = [
        {
            "topic": one.topic,
            "partition": one.partition,
            "offset": one.offset,
            "schema_id": one.schema_id,
            "reason": one.reason,
            "frame": one.frame,
            "more": 1,
        }
        for one in FOUND
    ]

    assert FOUND == dead_letters_in(pa.Table.from_pylist(rows))
