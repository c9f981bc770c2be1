"""Tables of Iceberg and Delta as readers that are not Spark and not Strata see them: pyiceberg and delta-rs."""

from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder
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
    reader = QueryBuilder().register("t", DeltaTable(str(folder)))
    return pa.table(reader.execute("SELECT * FROM t").read_all())


def columns_of(format_: str, folder: Path) -> dict[str, str]:
    """Return the columns of a table with their comments, an empty text where there is none."""
    if format_ == "iceberg":
        return {field.name: field.doc or "" for field in _iceberg(folder).schema().fields}
    fields = DeltaTable(str(folder)).schema().fields
    return {field.name: str(field.metadata.get("comment", "")) for field in fields}


def _iceberg(folder: Path) -> StaticTable:
    """Return the newest state of a table that a catalog of folders keeps."""
    number = (folder / "metadata" / "version-hint.text").read_text().strip()
    return StaticTable.from_metadata(str(folder / "metadata" / f"v{number}.metadata.json"))
