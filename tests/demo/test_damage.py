"""Twenty-five damaged records, each damaged as its kind says."""

import csv
from collections import Counter

import pytest

from demo.damage import DAMAGES, Kind
from demo.flights import READER_SCHEMA, ROWS, VERSIONS
from strata.serdes.avro import compile_decoder, compile_encoder
from strata.serdes.errors import DecodeError, FrameError
from strata.serdes.framing import join, open_frame

(LINE,) = csv.reader(["2013,1,1,517,515,2,830,819,11,UA,1545,N14228,EWR,IAH,227,1400,5,15,2013-01-01T10:00:00Z"])


def reason(frame, version):
    """Return why a reader that knows only this version cannot decode a frame."""
    try:
        taken = open_frame(frame)
        if taken.schema != version.number:
            return Kind.UNKNOWN_ID if isinstance(taken.schema, int) else f"none, it has the GUID {taken.schema}"
        return f"none, it is {compile_decoder(version.schema, READER_SCHEMA)(taken.payload)}"
    except (FrameError, DecodeError) as error:
        return str(error.reason)


@pytest.mark.parametrize("version", VERSIONS, ids=lambda version: f"version {version.number}")
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: f"{damage.kind}-{damage.variant}")
def test_damage_is_what_its_kind_says(damage, version):
    """The frame fails for the reason of its kind, with every version."""
    (row,) = version.parse([LINE])
    encode = compile_encoder(version.schema, drop_unknown=True)

    frame = damage.frame(row, lambda value: join(version.number, encode(value)))

    assert reason(frame, version).startswith(damage.kind)


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: f"{damage.kind}-{damage.variant}")
def test_schema_id_is_the_frames(damage):
    """The expected schema id is the one in the frame, or None if the frame has none."""
    version = VERSIONS[0]
    (row,) = version.parse([LINE])
    encode = compile_encoder(version.schema, drop_unknown=True)
    frame = damage.frame(row, lambda value: join(7, encode(value)))

    try:
        found = open_frame(frame).schema
    except FrameError:
        found = None

    assert damage.schema_id(7) == found


def test_five_of_each_kind():
    """There are five kinds with five different damages each."""
    assert dict.fromkeys(Kind, 5) == Counter(damage.kind for damage in DAMAGES)
    assert len(DAMAGES) == len({(damage.kind, damage.variant) for damage in DAMAGES})


def test_spread_over_the_whole_run():
    """The damages are sorted by row, and each kind occurs in every version."""
    rows = [damage.row for damage in DAMAGES]
    by_kind = {
        kind: {
            version.number
            for version in VERSIONS
            for damage in DAMAGES
            if damage.kind is kind and version.first_row <= damage.row < version.end_row
        }
        for kind in Kind
    }

    assert sorted(set(rows)) == rows
    assert 0 <= rows[0] < ROWS // 25
    assert ROWS - ROWS // 25 <= rows[-1] < ROWS
    assert {kind: {1, 2, 3} for kind in Kind} == by_kind


def test_marker_must_be_found_once():
    """If the text to damage occurs more than once, the encoder raises an error instead of a frame that may be valid."""
    damage = next(one for one in DAMAGES if one.kind is Kind.INVALID_UTF8)

    with pytest.raises(ValueError, match="once"):
        damage.frame({}, lambda row: row["tailnum"].encode() * 2)
