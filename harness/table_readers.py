"""Tables of Iceberg and Delta as readers see them that are neither Spark nor Strata: pyiceberg, and pyarrow.

delta-rs does not read tables with type widening (1.6), so the log of a table of Delta is read here, and its files by
pyarrow, which raises an error where the type of the table does not hold a value.
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from pyiceberg.table import StaticTable

__all__ = ["columns_of", "rows_of"]


def rows_of(format_: str, folder: Path) -> pa.Table:
    """Return the rows of a table.

    Args:
        format_: `iceberg` or `delta`.
        folder: the folder of the table.
    """
    if format_ == "iceberg":
        return _iceberg(folder).scan().to_arrow()
    files, _ = _delta(folder)
    parts = [_in_utc(pq.read_table(folder / name, coerce_int96_timestamp_unit="us")) for name in sorted(files)]
    return pa.concat_tables(parts, promote_options="permissive") if parts else pa.table({})


def _in_utc(rows: pa.Table) -> pa.Table:
    """Return rows whose moments are in UTC: Spark writes them in a type without a time zone (INT96)."""
    moment = pa.timestamp("us", "UTC")
    fields = [field.with_type(moment) if field.type == pa.timestamp("us") else field for field in rows.schema]
    return rows.cast(pa.schema(fields))


def columns_of(format_: str, folder: Path) -> dict[str, str]:
    """Return the columns of a table with their comments, an empty text where there is none."""
    if format_ == "iceberg":
        return {field.name: field.doc or "" for field in _iceberg(folder).schema().fields}
    _, schema = _delta(folder)
    return {field["name"]: field["metadata"].get("comment", "") for field in schema["fields"]}


def _iceberg(folder: Path) -> "StaticTable":
    """Return the newest state of a table that a catalog of folders keeps."""
    from pyiceberg.table import StaticTable  # here, for its import takes long

    number = (folder / "metadata" / "version-hint.text").read_text().strip()
    return StaticTable.from_metadata(str(folder / "metadata" / f"v{number}.metadata.json"))


def _delta(folder: Path) -> tuple[set[str], dict[str, Any]]:
    """Return the files of a table and its schema, by its whole log."""
    files: set[str] = set()
    schema: dict[str, Any] = {}
    for commit in sorted((folder / "_delta_log").glob("*.json")):
        for line in commit.read_text().splitlines():
            action = json.loads(line)
            if "add" in action:
                assert action["add"].get("deletionVector") is None, "rows are deleted without a new file"
                files.add(unquote(action["add"]["path"]))
            elif "remove" in action:
                files.discard(unquote(action["remove"]["path"]))
            elif "metaData" in action:
                schema = json.loads(action["metaData"]["schemaString"])
    return files, schema
