"""The expected result, the actual result, and their comparison.

The expectation is counted from the texts of the table, the result from the Parquet files. Neither uses the code in
between, so a row that is lost, duplicated or changed shows as a line that is not ok.

Rules of this file: tables and numbers; Parquet files are read, nothing is written, nothing is printed.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from demo.damage import Kind
from demo.flights import COLUMNS, MISSING, FlightVersion

__all__ = [
    "COUNTED",
    "NULLABLE",
    "SUMMED",
    "Check",
    "DeadLetter",
    "Facts",
    "compare",
    "dead_letters_in",
    "expect",
    "facts_of",
    "load",
]

SUMMED: Final = ("distance", "air_time", "arr_delay")
"""A column whose type changed, one with nulls, and one with nulls and negative numbers."""

NULLABLE: Final = ("dep_time", "dep_delay", "arr_time", "arr_delay", "tailnum", "air_time", "gained", "hour")
"""Every column of the reader schema that may be null."""

COUNTED: Final = tuple(dict.fromkeys(("topic", "partition", "offset", "schema_id", *SUMMED, *NULLABLE)))
"""The columns that are compared."""


@dataclass(frozen=True, slots=True)
class Facts:
    """The compared properties of the flights, all of them sums or counts."""

    rows: Mapping[int, int]
    """By the id of the writer schema."""
    sums: Mapping[str, int]
    nulls: Mapping[str, int]
    doubled: int = 0


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """One record that could not be decoded, either as it was sent or as it is in the dead-letter table."""

    topic: str
    partition: int
    offset: int
    schema_id: int | None
    reason: str
    """For a record that was sent: its kind, with which the reason must begin."""
    frame: bytes = field(repr=False)

    @property
    def place(self) -> tuple[str, int, int]:
        """The position of the record in Kafka."""
        return self.topic, self.partition, self.offset

    def answers(self, sent: "DeadLetter") -> bool:
        """Return whether this is the right dead letter for a damaged record."""
        return (
            self.place == sent.place
            and self.frame == sent.frame
            and self.schema_id == sent.schema_id
            and self.reason.startswith(sent.reason)
        )


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the comparison."""

    name: str
    expected: Any
    found: Any

    @property
    def ok(self) -> bool:
        """Whether the result is as expected."""
        return bool(self.expected == self.found)


def expect(lines: Iterable[Sequence[str]], versions: Sequence[FlightVersion], ids: Mapping[int, int]) -> Facts:
    """Count the expected result in the texts of the table.

    Args:
        lines: the lines of the table.
        versions: the versions of the schema, in the order in which they are published.
        ids: schema ids by the number of the version.

    Raises:
        RuntimeError: the table is shorter or longer than the versions say.
    """
    rows: Counter[int] = Counter()
    sums, nulls = Counter(dict.fromkeys(SUMMED, 0)), Counter(dict.fromkeys(NULLABLE, 0))
    summed = [(name, COLUMNS.index(name)) for name in SUMMED]
    nullable = [(name, COLUMNS.index(name)) for name in NULLABLE if name in COLUMNS and name != "hour"]
    departure, arrival = COLUMNS.index("dep_delay"), COLUMNS.index("arr_delay")
    remaining = iter(lines)
    for version in versions:
        for line in _first(version.rows, remaining):
            rows[ids[version.number]] += 1
            for name, index in summed:
                if line[index] not in MISSING:
                    sums[name] += int(line[index])
            for name, index in nullable:
                nulls[name] += line[index] in MISSING
            nulls["hour"] += not version.hour
            nulls["gained"] += not version.gained or line[departure] in MISSING or line[arrival] in MISSING
    if next(remaining, None) is not None or rows.total() != versions[-1].end_row:
        raise RuntimeError(f"expected {versions[-1].end_row} rows in the flights table")
    return Facts(dict(rows), dict(sums), dict(nulls))


def facts_of(flights: pa.Table) -> Facts:
    """Count the result in the table of decoded flights; a Kafka position that was read twice counts as duplicated."""
    by_id = flights.group_by("schema_id").aggregate([([], "count_all")])
    places = flights.group_by(["topic", "partition", "offset"]).aggregate([])
    return Facts(
        rows=dict(sorted(zip(by_id["schema_id"].to_pylist(), by_id["count_all"].to_pylist(), strict=True))),
        sums={name: pc.sum(flights[name]).as_py() or 0 for name in SUMMED},
        nulls={name: flights[name].null_count for name in NULLABLE},
        doubled=flights.num_rows - places.num_rows,
    )


def dead_letters_in(table: pa.Table) -> list[DeadLetter]:
    """Return the rows of the dead-letter table."""
    names = DeadLetter.__dataclass_fields__
    return [DeadLetter(**row) for row in table.select(list(names)).to_pylist()]


def load(folder: Path, columns: Sequence[str]) -> pa.Table:
    """Read the Parquet files of all batches; unfinished files are in a subfolder and are not read.

    Raises:
        RuntimeError: there are no Parquet files.
    """
    from pyarrow import dataset  # here, because it imports pandas

    files = sorted(map(str, folder.glob("batch=*/*.parquet")))
    if not files:
        raise RuntimeError(f"no Parquet files in {folder}")
    return dataset.dataset(files, format="parquet").to_table(columns=list(columns))


def compare(expected: Facts, found: Facts, sent: Sequence[DeadLetter], dead: Sequence[DeadLetter]) -> list[Check]:
    """Return every line of the comparison."""
    return [*_compare_flights(expected, found), *_compare_dead_letters(sent, dead)]


def _compare_flights(expected: Facts, found: Facts) -> list[Check]:
    ids = sorted(expected.rows.keys() | found.rows.keys())
    return [
        *(
            Check(f"rows written with schema id {one}", expected.rows.get(one, 0), found.rows.get(one, 0))
            for one in ids
        ),
        Check("all rows", sum(expected.rows.values()), sum(found.rows.values())),
        Check("rows doubled", expected.doubled, found.doubled),
        *(Check(f"sum of {name}", expected.sums[name], found.sums[name]) for name in SUMMED),
        *(Check(f"nulls in {name}", expected.nulls[name], found.nulls[name]) for name in NULLABLE),
    ]


def _compare_dead_letters(sent: Sequence[DeadLetter], dead: Sequence[DeadLetter]) -> list[Check]:
    by_place = {one.place: one for one in dead}
    exact = [one for one in sent if one.place in by_place and by_place[one.place].answers(one)]
    return [
        *(Check(f"dead letters: {kind}", _count(sent, kind), _count(dead, kind)) for kind in Kind),
        Check("all dead letters", len(sent), len(dead)),
        Check("dead letters identical to what was sent", len(sent), len(exact)),
    ]


def _count(letters: Sequence[DeadLetter], kind: Kind) -> int:
    return sum(one.reason.startswith(kind) for one in letters)


def _first(count: int, lines: Iterable[Sequence[str]]) -> Iterable[Sequence[str]]:
    """Yield at most that many lines; the rest remains for the next caller."""
    return (line for _, line in zip(range(count), lines, strict=False))
