"""Real tables of Delta and Iceberg: rows are written, the columns change, rows of the new types follow, all are read.

`python -m harness.table_files` does it in a session of its own, as `follow` would: a column becomes the new type if the
engine can do that, and otherwise stays as it is and must take the new values.
"""

import json
import struct
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from decimal import Decimal
from pathlib import Path
from typing import Final

from harness.table_driver import ROOT, conf, environment

__all__ = ["Changed", "differences"]

_TIMEOUT_S: Final = 500
_INTEGERS: Final = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}


@dataclass(frozen=True, slots=True)
class Changed:
    """A column, by its name and its types before and after."""

    name: str
    before: str
    after: str


def differences(columns: Sequence[Changed], dialect: str, folder: Path) -> list[str]:
    """Return the columns in which something is not read as it was written.

    Args:
        columns: the columns of the table.
        dialect: delta or iceberg.
        folder: a folder for the table.
    """
    question = {
        "conf": conf(folder),
        "dialect": dialect,
        "columns": [asdict(column) for column in columns],
    }
    done = subprocess.run(
        [sys.executable, "-m", "harness.table_files", json.dumps(question)],
        env=environment(), cwd=ROOT, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False,
    )  # fmt: skip
    lines = [line for line in done.stdout.splitlines() if line.startswith("answer ")]
    if not lines:
        raise RuntimeError(done.stderr[-3000:])
    rows: list[list[str]] = json.loads(lines[-1].removeprefix("answer "))
    wrong = []
    for column, values in zip(columns, zip(*rows, strict=True), strict=True):
        written = [_number(text, word) for word in (column.before, column.after) for text in _extremes(word)]
        read = [_number(value, "") for value in values]
        if sorted(written) != sorted(read):
            wrong.append(f"{column.before} to {column.after}: wrote {written}, read {read}")
    return wrong


def _extremes(word: str) -> tuple[str, str]:
    """Return two values of a type, as texts that Spark casts to it."""
    if word in _INTEGERS:
        most = 2 ** (_INTEGERS[word] - 1) - 1
        return str(most), str(-most - 1)
    if word.startswith("DECIMAL"):
        precision, scale = map(int, word[8:-1].split(","))
        digits = "9" * precision
        text = f"{digits[: precision - scale] or '0'}.{digits[precision - scale :]}".rstrip(".")
        return text, f"-{text}"
    special = {"DATE": ("9999-12-31", "0001-01-01"), "TIMESTAMP_NTZ": ("9999-12-31 23:59:59.999999", "0001-01-01")}
    return special.get(word, ("0.1", "-2.5"))


def _number(text: str, word: str) -> str:
    """Return a value in one form, whatever its type."""
    if word == "FLOAT":
        text = repr(struct.unpack("f", struct.pack("f", float(text)))[0])
    if "-" in text[1:] and "e" not in text.lower():
        return f"{text} 00:00:00"[:19] if len(text) == len("9999-12-31") else text
    number = Decimal(text)
    return format(number.normalize(), "f")


def main(arguments: Sequence[str]) -> int:
    """Write and read a table, and print the rows and what failed."""
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    question = json.loads(arguments[0])
    builder = SparkSession.builder
    for name, value in question["conf"].items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    columns = [Changed(**column) for column in question["columns"]]
    delta = question["dialect"] == "delta"
    table = "widened" if delta else "lake.db.widened"
    form = "USING delta TBLPROPERTIES ('delta.enableTypeWidening' = 'true')" if delta else "USING iceberg"
    spark.sql(f"CREATE TABLE {table} ({', '.join(f'{column.name} {column.before}' for column in columns)}) {form}")

    def insert(words: Sequence[str]) -> None:
        for row in zip(*map(_extremes, words), strict=True):
            values = ", ".join(f"CAST('{text}' AS {word})" for text, word in zip(row, words, strict=True))
            spark.sql(f"INSERT INTO {table} SELECT {values}")

    insert([column.before for column in columns])
    for column in columns:
        with suppress(PySparkException):  # the column stays as it is, and the values show whether it can
            spark.sql(f"ALTER TABLE {table} ALTER COLUMN {column.name} TYPE {column.after}")
    insert([column.after for column in columns])
    rows = [[str(value) for value in row] for row in spark.table(table).collect()]
    sys.stdout.write(f"answer {json.dumps(rows)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
