"""Records that name their schema in a header: joins value and header columns of Kafka's source for the decode.

Rules of this file: columns only; the decoders read the bytes of a header.
"""

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import Column, SparkSession, functions

from strata.serdes.framing import header_name

__all__ = ["HEADER", "VALUE", "active_session", "column_of", "with_header"]

VALUE = "value"
HEADER = "header"


def active_session() -> SparkSession | None:
    """Return the active session of this thread, or else of the process, or else None."""
    try:
        return SparkSession.active()
    except PySparkRuntimeError:
        return None


def column_of(column: Column | str) -> Column:
    """Return a column, given itself or its name.

    Raises:
        RuntimeError: If a name is given, and there is no Spark session yet.
    """
    if not isinstance(column, str):
        return column
    if active_session() is None:
        raise RuntimeError("there is no Spark session yet: start one before columns are made")
    return functions.col(column)


def with_header(value: Column, headers: Column, *, key: bool) -> Column:
    """Return a struct of a record's bytes and the header that names their schema, null if it has no such header.

    Args:
        value: the binary column.
        headers: `array<struct<key: string, value: binary>>`, from Kafka's source with `includeHeaders`. If several
            headers have the name, the first one counts.
        key: whether the bytes are the record's key.
    """
    wanted = functions.lit(header_name("key" if key else "value"))
    named = functions.filter(headers, lambda one: one["key"] == wanted)
    return functions.struct(value.alias(VALUE), functions.get(named, functions.lit(0))["value"].alias(HEADER))
