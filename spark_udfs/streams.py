"""Decoded or encoded columns apart: what could be, and the dead letters.

Rules of this file: two plans over one data frame, batch or stream; nothing runs here.
"""

from pyspark.sql import Column, DataFrame, functions
from pyspark.sql.types import DataType, StructType

from spark_udfs.encode import ENCODE_ERROR_TYPE
from spark_udfs.paths import ERROR_TYPE

__all__ = ["split_dead_letters"]

_ERRORS = {"value": ERROR_TYPE, "frame": ENCODE_ERROR_TYPE}
"""What is beside the error, of a decode and of an encode."""


def split_dead_letters(df: DataFrame, column: str = "decoded") -> tuple[DataFrame, DataFrame]:
    """Make two data frames of one that was decoded, or encoded, in mode DEADLETTER.

    Args:
        df: a data frame, batch or stream, with the result of `decode` or `encode` as one of its columns.
        column: the name of that column.

    Returns:
        The good rows, in which the column is the value, or the frame, itself; and the dead letters, with every other
        column of the row, such as topic, partition and offset, then of a decode `reason`, `schema_id` and `frame`, the
        bytes as they came, of an encode `reason` and `path`.

    Each is a query of its own that decodes by itself when it is started; in `foreachBatch`, persist the batch first.
    """
    good_part, names = _checked(df, column)
    others = [_col(name) for name in df.columns if name != column]
    error = _col(column)["error"]
    parts = [error[name].alias(name) for name in names]
    good = df.where(error.isNull()).withColumn(column, _col(column)[good_part])
    return good, df.where(error.isNotNull()).select(*others, *parts)


def _checked(df: DataFrame, column: str) -> tuple[str, list[str]]:
    """The name of what is beside the error, and the names of its parts."""
    if column not in df.columns:
        raise ValueError(f"there is no column {column}; there are {', '.join(df.columns)}")
    good_part = _good_part(df.schema[column].dataType)
    if good_part is None:
        raise ValueError(f"the column {column} is not the result of decode(…, mode='DEADLETTER'), nor of encode")
    names = _ERRORS[good_part].names
    taken = [name for name in df.columns if name != column and name.lower() in names]
    if taken:
        raise ValueError(f"rename {', '.join(taken)} first: dead letters have columns of that name")
    return good_part, names


def _good_part(kind: DataType) -> str | None:
    if not isinstance(kind, StructType) or len(kind) != 2 or kind.names[1] != "error":
        return None
    good_part = kind.names[0]
    return good_part if _ERRORS.get(good_part) == kind["error"].dataType else None


def _col(name: str) -> Column:
    """A column by its literal name, dots and backticks included."""
    return functions.col(f"`{name.replace('`', '``')}`")
