"""Records that name their schema in a header: the columns of Kafka's source, brought together for the decode.

Rules of this file: columns only; what a header's bytes mean is read where frames are decoded.
"""

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import Column, SparkSession, functions

from serdes.framing import header_name

__all__ = ["HEADER", "VALUE", "active_session", "column_of", "with_header"]

VALUE = "value"
HEADER = "header"


def active_session() -> SparkSession | None:
    """The session of this thread, or the process's: a thread of its own has none."""
    try:
        return SparkSession.active()
    except PySparkRuntimeError:
        return None


def column_of(column: Column | str) -> Column:
    """A column, or the one of a name.

    Raises:
        RuntimeError: there is no session yet.
    """
    if not isinstance(column, str):
        return column
    if active_session() is None:
        raise RuntimeError("there is no Spark session yet: start one before columns are made")
    return functions.col(column)


def with_header(value: Column, headers: Column, *, key: bool) -> Column:
    """A record as the decode takes it: its bytes, and the header that names their schema, null where there is none.

    Args:
        value: the binary column.
        headers: `array<struct<key: string, value: binary>>`, as Kafka's source gives them with `includeHeaders`. Of
            several headers with the name the first one counts.
        key: whether the bytes are the record's key.
    """
    wanted = functions.lit(header_name("key" if key else "value"))
    named = functions.filter(headers, lambda one: one["key"] == wanted)
    return functions.struct(value.alias(VALUE), functions.get(named, functions.lit(0))["value"].alias(HEADER))
