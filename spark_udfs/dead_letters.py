"""Splits a decoded or encoded column into good rows and dead letters.

Rules of this file: two plans over one data frame, batch or stream; nothing runs here.
"""

from pyspark.sql import Column, DataFrame, functions
from pyspark.sql.types import DataType, StructType

from strata.spark_udfs.decoding.paths import ERROR_TYPE
from strata.spark_udfs.encoding.columns import ENCODE_ERROR_TYPE

__all__ = ["column_named", "good_part_of", "split_dead_letters"]

_ERRORS = {"value": ERROR_TYPE, "frame": ENCODE_ERROR_TYPE}
"""The field next to the error, for a decode and for an encode."""


def split_dead_letters(df: DataFrame, column: str = "decoded") -> tuple[DataFrame, DataFrame]:
    """Split a data frame that was decoded or encoded in mode DEADLETTER into good rows and dead letters.

    Each result is a separate query that decodes by itself when it starts; in `foreachBatch`, persist the batch first.

    Args:
        df: a data frame, batch or stream, with the result of `decode` or `encode` as one of its columns.
        column: the name of that column.

    Returns:
        The good rows, in which the column is the value (or the frame); and the dead letters, with every other column of
        the row, such as topic, partition and offset, followed by `reason`, `schema_id` and `frame` (the bytes as sent)
        for a decode, or `reason` and `path` for an encode.

    Raises:
        ValueError: If there is no such column, it is not the result of mode DEADLETTER, or another column has the name
            of a dead letter's field.
    """
    good_part, names = _checked(df, column)
    others = [column_named(name) for name in df.columns if name != column]
    error = column_named(column)["error"]
    parts = [error[name].alias(name) for name in names]
    good = df.where(error.isNull()).withColumn(column, column_named(column)[good_part])
    return good, df.where(error.isNotNull()).select(*others, *parts)


def good_part_of(df: DataFrame, column: str) -> str:
    """Return the name of the field next to the error: `value` for a decode, `frame` for an encode.

    Args:
        df: the data frame.
        column: the name of the decoded or encoded column.

    Raises:
        ValueError: If there is no such column, or it is not the result of mode DEADLETTER.
    """
    if column not in df.columns:
        raise ValueError(f"no column {column}; the data frame has {', '.join(df.columns)}")
    good_part = _good_part(df.schema[column].dataType)
    if good_part is None:
        raise ValueError(f"expected the result of decode or encode in mode DEADLETTER in the column {column}")
    return good_part


def _checked(df: DataFrame, column: str) -> tuple[str, list[str]]:
    """Return the name of the field next to the error, and the names of the error's fields."""
    good_part = good_part_of(df, column)
    names = _ERRORS[good_part].names
    taken = [name for name in df.columns if name != column and name.lower() in names]
    if taken:
        raise ValueError(f"rename the columns {', '.join(taken)} first: dead letters have columns with these names")
    return good_part, names


def _good_part(data_type: DataType) -> str | None:
    if not isinstance(data_type, StructType) or len(data_type) != 2 or data_type.names[1] != "error":
        return None
    good_part = data_type.names[0]
    return good_part if _ERRORS.get(good_part) == data_type["error"].dataType else None


def column_named(name: str) -> Column:
    """Return a column by its literal name, even with dots or backticks."""
    return functions.col(f"`{name.replace('`', '``')}`")
