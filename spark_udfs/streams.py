"""Decoded columns apart: what could be decoded, and the dead letters.

Rules of this file: two plans over one data frame, batch or stream; nothing runs here.
"""

from pyspark.sql import Column, DataFrame, functions
from pyspark.sql.types import DataType, StructType

from spark_udfs.paths import ERROR_TYPE

__all__ = ["split_dead_letters"]


def split_dead_letters(df: DataFrame, column: str = "decoded") -> tuple[DataFrame, DataFrame]:
    """Make two data frames of one that was decoded in mode DEADLETTER.

    Args:
        df: a data frame, batch or stream, with the result of `decode` as one of its columns.
        column: the name of that column.

    Returns:
        The good rows, in which the column is the value itself; and the dead letters, with every other column of the
        row, such as topic, partition and offset, then `reason`, `schema_id` and `frame`, the bytes as they came.

    Each is a query of its own that decodes by itself when it is started; in `foreachBatch`, persist the batch first.
    """
    _check(df, column)
    others = [_col(name) for name in df.columns if name != column]
    error = _col(column)["error"]
    parts = [error[name].alias(name) for name in ERROR_TYPE.names]
    good = df.where(error.isNull()).withColumn(column, _col(column)["value"])
    return good, df.where(error.isNotNull()).select(*others, *parts)


def _check(df: DataFrame, column: str) -> None:
    if column not in df.columns:
        raise ValueError(f"there is no column {column}; there are {', '.join(df.columns)}")
    if not _is_dead_letter(df.schema[column].dataType):
        raise ValueError(f"the column {column} is not the result of decode(…, mode='DEADLETTER')")
    taken = [name for name in df.columns if name != column and name.lower() in ERROR_TYPE.names]
    if taken:
        raise ValueError(f"rename {', '.join(taken)} first: dead letters have columns of that name")


def _is_dead_letter(kind: DataType) -> bool:
    return isinstance(kind, StructType) and kind.names == ["value", "error"] and kind["error"].dataType == ERROR_TYPE


def _col(name: str) -> Column:
    """A column by its literal name, dots and backticks included."""
    return functions.col(f"`{name.replace('`', '``')}`")
