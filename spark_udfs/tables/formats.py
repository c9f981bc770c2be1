"""The table formats: what each can change, and how its tables are made, altered, written and asked.

A write carries a mark in the metadata of its commit: the query, the batch and the reader schema. A batch that Spark
repeats after a kill finds its own mark and is not written twice.

Rules of this file: SQL and table metadata; it decides nothing about changes.
"""

import json
import re
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    ShortType,
    StructType,
    TimestampNTZType,
)

from strata.spark_udfs.tables.changes import AddColumn, Change, Path, RenameColumn, Step, TableRules, WidenColumn
from strata.spark_udfs.tables.notes import Notes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["DELETED", "FORMATS", "Delta", "Iceberg", "Mark", "TableFormat", "identifier", "marked", "merge"]
__all__ += ["sql_text", "sql_type", "statement"]

DELETED: Final = "__strata_deleted"
"""The column of a view for `merge` that says whether a row is to be deleted."""
_MARK: Final = "strata-follow"
_DELTA_PROPERTIES: Final = (("delta.enableTypeWidening", "true"),)
_INTEGERS: Final[tuple[type[DataType], ...]] = (ByteType, ShortType, IntegerType, LongType)


@dataclass(frozen=True, slots=True)
class Mark:
    """What the commit of a batch says.

    Attributes:
        query: the id of the streaming query, which stays with its checkpoint.
        batch: the number of the batch.
        version: the version of the subject that the batch was read with.
    """

    query: str
    batch: int
    version: int

    def __str__(self) -> str:
        """Return the mark as JSON, as it stands in the metadata of a commit."""
        return json.dumps({_MARK: [self.query, self.batch, self.version]})

    @classmethod
    def read(cls, text: str | None) -> "Mark | None":
        """Return the mark that a text holds, None if it holds none."""
        try:
            query, batch, version = json.loads(text or "")[_MARK]
        except (ValueError, KeyError, TypeError):
            return None
        return cls(str(query), int(batch), int(version))


class TableFormat(Protocol):
    """A table format."""

    def rules(self, spark: SparkSession, table: str | None) -> TableRules:
        """Return what a table can do; None means a new one."""
        ...

    def create(self, spark: SparkSession, table: str, type_: StructType, docs: "Mapping[Path, str]") -> None:
        """Make a table unless it exists."""
        ...

    def change(self, spark: SparkSession, table: str, change: Change, notes: Notes) -> None:
        """Change a table."""
        ...

    def append(self, rows: DataFrame, table: str, mark: Mark) -> None:
        """Append rows with a mark, in one commit."""
        ...

    def last_mark(self, spark: SparkSession, table: str, query: str) -> Mark | None:
        """Return the newest mark of a query in the history of a table."""
        ...

    def refresh(self, spark: SparkSession, table: str) -> None:
        """Let a session see a table as it is now."""
        ...

    @property
    def mark_setting(self) -> str:
        """The setting of the session that gives the commit of a MERGE its mark."""
        ...


class _ChangedBySql:
    """Tables that SQL changes."""

    def change(self, spark: SparkSession, table: str, change: Change, notes: Notes) -> None:
        """Change a table."""
        spark.sql(statement(table, change, notes.docs))


class Iceberg(_ChangedBySql):
    """Tables of Apache Iceberg."""

    mark_setting = f"spark.sql.iceberg.snapshot-property.{_MARK}"

    def rules(self, spark: SparkSession, table: str | None) -> TableRules:  # noqa: ARG002
        """Return what tables of Iceberg can do."""
        return TableRules("Iceberg", _iceberg_widens, refuses_type=_iceberg_refuses)

    def create(self, spark: SparkSession, table: str, type_: StructType, docs: "Mapping[Path, str]") -> None:
        """Make a table unless it exists."""
        spark.sql(f"CREATE TABLE IF NOT EXISTS {identifier(table)} ({_columns(type_, docs)}) USING iceberg")

    def change(self, spark: SparkSession, table: str, change: Change, notes: Notes) -> None:
        """Change a table; a new column of format version 3 has the field's default in older rows."""
        if not (isinstance(change, AddColumn) and _add_with_default(spark, table, change, notes)):
            super().change(spark, table, change, notes)

    def append(self, rows: DataFrame, table: str, mark: Mark) -> None:
        """Append rows with a mark, in one commit."""
        writer = rows.writeTo(identifier(table)).option(f"snapshot-property.{_MARK}", str(mark))
        writer.option("check-nullability", "false").append()

    def last_mark(self, spark: SparkSession, table: str, query: str) -> Mark | None:
        """Return the newest mark of a query among the snapshots that the table has kept."""
        history = spark.table(f"{identifier(table)}.snapshots").orderBy("committed_at", ascending=False)
        return _newest([row["summary"].get(_MARK) for row in history.select("summary").collect()], query)

    def refresh(self, spark: SparkSession, table: str) -> None:
        """Let a session see a table as it is now: its catalog remembers tables."""
        spark.catalog.refreshTable(identifier(table))


class Delta(_ChangedBySql):
    """Tables of Delta Lake."""

    mark_setting = "spark.databricks.delta.commitInfo.userMetadata"

    def rules(self, spark: SparkSession, table: str | None) -> TableRules:
        """Return what a table of Delta can do, which its properties say."""
        properties = dict(_DELTA_PROPERTIES)
        if table is not None:
            shown = spark.sql(f"SHOW TBLPROPERTIES {identifier(table)}").collect()
            properties = {row["key"]: row["value"] for row in shown}
        is_mapped = properties.get("delta.columnMapping.mode", "none") != "none"
        return TableRules(
            "Delta",
            _delta_widens,
            is_widening=properties.get("delta.enableTypeWidening") == "true",
            turn_on=f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')",
            tracks_ids=is_mapped,
            refuses_type=_delta_refuses,
            refuses_name=(lambda _name: None) if is_mapped else _delta_refuses_name,
        )

    def create(self, spark: SparkSession, table: str, type_: StructType, docs: "Mapping[Path, str]") -> None:
        """Make a table unless it exists, with type widening on."""
        spark.sql(
            f"CREATE TABLE IF NOT EXISTS {identifier(table)} ({_columns(type_, docs)}) USING delta"
            f" TBLPROPERTIES ({', '.join(f'{sql_text(key)} = {sql_text(value)}' for key, value in _DELTA_PROPERTIES)})"
        )

    def append(self, rows: DataFrame, table: str, mark: Mark) -> None:
        """Append rows with a mark, in one commit."""
        rows.write.format("delta").mode("append").option("userMetadata", str(mark)).saveAsTable(identifier(table))

    def last_mark(self, spark: SparkSession, table: str, query: str) -> Mark | None:
        """Return the newest mark of a query in the history that the table has kept."""
        history = spark.sql(f"DESCRIBE HISTORY {identifier(table)}").select("version", "userMetadata")
        return _newest([row[1] for row in history.orderBy("version", ascending=False).collect()], query)

    def refresh(self, spark: SparkSession, table: str) -> None:
        """Do nothing: Delta reads the log of a table at each use, and Spark cannot refresh a table that is a path."""


FORMATS: Final[dict[str, TableFormat]] = {"iceberg": Iceberg(), "delta": Delta()}


def _newest(texts: Sequence[str | None], query: str) -> Mark | None:
    marks = (Mark.read(text) for text in texts)
    return next((mark for mark in marks if mark is not None and mark.query == query), None)


@contextmanager
def marked(spark: SparkSession, table_format: TableFormat, mark: Mark) -> "Iterator[None]":
    """Give the commits of a block, which SQL makes, a mark."""
    spark.conf.set(table_format.mark_setting, str(mark))
    try:
        yield
    finally:
        spark.conf.unset(table_format.mark_setting)


def statement(table: str, change: Change, docs: "Mapping[Path, str]") -> str:
    """Return the statement that makes a change to a table.

    Args:
        table: the name of the table.
        change: the change.
        docs: the documentation of fields, which becomes comments of new columns.
    """
    return f"ALTER TABLE {identifier(table)} {_clause(change, docs)}"


_ICEBERG_TYPES: Final = {
    "boolean": "BooleanType",
    "int": "IntegerType",
    "bigint": "LongType",
    "float": "FloatType",
    "double": "DoubleType",
    "string": "StringType",
}
_HAS_DEFAULTS: Final = 3
"""The version of Iceberg's format from which columns have defaults."""


def _add_with_default(spark: SparkSession, table: str, change: AddColumn, notes: Notes) -> bool:
    """Add a column with its default, and return whether it has one that was possible.

    Iceberg's SQL has no defaults (1.11), so this calls its library in the driver, which Spark Connect does not reach.
    """
    default = notes.defaults.get(change.path)
    jvm, type_name = getattr(spark, "_jvm", None), _ICEBERG_TYPES.get(change.type.simpleString())
    if default is None or jvm is None or type_name is None:
        return False
    shown = spark.sql(f"SHOW TBLPROPERTIES {identifier(table)}").collect()
    version = next((row["value"] for row in shown if row["key"] == "format-version"), "1")
    if not version.isdecimal() or int(version) < _HAS_DEFAULTS:
        return False
    loaded = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, identifier(table))
    data_type = getattr(jvm.org.apache.iceberg.types.Types, type_name).get()
    literal = jvm.org.apache.iceberg.expressions.Expressions.lit(default)
    *parent, name = change.path
    where = [".".join(parent)] if parent else []
    doc = notes.docs.get(change.path)
    loaded.updateSchema().addColumn(*where, name, data_type, doc, literal).commit()
    spark.catalog.refreshTable(identifier(table))
    return True


def merge(table: str, view: str, columns: Sequence[str], keys: Sequence[str]) -> str:
    """Return the statement that replaces, adds and deletes rows by their keys.

    Args:
        table: the name of the table.
        view: the name of a view with the table's columns and `DELETED`, with one row of a key at most.
        columns: the names of the columns.
        keys: the names of those that identify a row.
    """
    names = [_quoted(name) for name in columns]
    on = " AND ".join(f"t.{_quoted(key)} = s.{_quoted(key)}" for key in keys)
    return (
        f"MERGE INTO {identifier(table)} t USING {view} s ON {on}"  # noqa: S608 - all names are quoted
        f" WHEN MATCHED AND s.{DELETED} THEN DELETE"
        f" WHEN MATCHED THEN UPDATE SET {', '.join(f't.{name} = s.{name}' for name in names)}"
        f" WHEN NOT MATCHED AND NOT s.{DELETED}"
        f" THEN INSERT ({', '.join(names)}) VALUES ({', '.join(f's.{name}' for name in names)})"
    )


def _clause(change: Change, docs: "Mapping[Path, str]") -> str:
    path = ".".join(map(_quoted, change.path))
    match change:
        case AddColumn(type=data_type):
            doc = docs.get(change.path)
            comment = f" COMMENT {sql_text(doc)}" if doc else ""
            return f"ADD COLUMNS ({path} {sql_type(data_type, change.path, docs)}{comment})"
        case WidenColumn(new=data_type):
            return f"ALTER COLUMN {path} TYPE {sql_type(data_type)}"
        case RenameColumn(name=name):
            return f"RENAME COLUMN {path} TO {_quoted(name)}"


def identifier(table: str) -> str:
    """Return the name of a table as SQL has it; a name that is quoted already stays as it is."""
    return table if "`" in table else ".".join(map(_quoted, table.split(".")))


def _quoted(name: str) -> str:
    return name if isinstance(name, Step) else f"`{name.replace('`', '``')}`"


def sql_text(text: str) -> str:
    """Return a text as a literal of SQL."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\r", "\\r")
    return f"'{escaped}'"


def sql_type(data_type: DataType, path: Path = (), docs: "Mapping[Path, str] | None" = None) -> str:
    """Return a type as SQL has it, with every name quoted, and the documentation of nested fields as comments."""
    if isinstance(data_type, StructType):
        return f"struct<{_fields(data_type, path, docs or {}, ': ')}>"
    if isinstance(data_type, ArrayType):
        return f"array<{sql_type(data_type.elementType, (*path, 'element'), docs)}>"
    if isinstance(data_type, MapType):
        value = sql_type(data_type.valueType, (*path, "value"), docs)
        return f"map<{sql_type(data_type.keyType)}, {value}>"
    return data_type.simpleString()


def _columns(data_type: StructType, docs: "Mapping[Path, str]") -> str:
    return _fields(data_type, (), docs, " ")


def _fields(data_type: StructType, path: Path, docs: "Mapping[Path, str]", between: str) -> str:
    written = []
    for field in data_type:
        inner = (*path, field.name)
        comment = f" COMMENT {sql_text(docs[inner])}" if inner in docs else ""
        written.append(f"{_quoted(field.name)}{between}{sql_type(field.dataType, inner, docs)}{comment}")
    return ", ".join(written)


_DELTA_DIGITS: Final["Mapping[type[DataType], int]"] = {ByteType: 10, ShortType: 10, IntegerType: 10, LongType: 20}


def _iceberg_widens(old: DataType, new: DataType) -> bool:
    """Return whether Iceberg promotes a type (specification, Schema Evolution)."""
    if isinstance(old, DecimalType) and isinstance(new, DecimalType):
        return new.precision > old.precision and new.scale == old.scale
    return (type(old), type(new)) in {(IntegerType, LongType), (FloatType, DoubleType)}


def _delta_widens(old: DataType, new: DataType) -> bool:
    """Return whether Delta widens a type (its guide, Type widening)."""
    if isinstance(new, DecimalType):
        if isinstance(old, DecimalType):
            grown = new.scale - old.scale
            return grown >= 0 and new.precision - old.precision >= grown
        digits = _DELTA_DIGITS.get(type(old))
        return digits is not None and new.precision - new.scale >= digits
    if type(old) in _INTEGERS and type(new) in _INTEGERS:
        return _INTEGERS.index(type(new)) > _INTEGERS.index(type(old))
    if isinstance(new, DoubleType):
        return type(old) in (FloatType, ByteType, ShortType, IntegerType)
    return isinstance(old, DateType) and isinstance(new, TimestampNTZType)


def _iceberg_refuses(data_type: DataType) -> str | None:
    if isinstance(data_type, NullType) or data_type.typeName() in ("void", "interval"):
        return f"is {data_type.simpleString()}, which Iceberg does not have"
    if isinstance(data_type, StructType) and not data_type.fields:
        return "is a struct without fields, which Iceberg does not have"
    return None


def _delta_refuses(data_type: DataType) -> str | None:
    if isinstance(data_type, StructType) and not data_type.fields:
        return "is a struct without fields, which Parquet does not have"
    return None


_NOT_IN_DELTA: Final = re.compile(r"[ ,;{}()\n\t=]")


def _delta_refuses_name(name: str) -> str | None:
    match = _NOT_IN_DELTA.search(name)
    return f"has {match[0]!r} in its name, which Delta allows only with column mapping" if match else None
