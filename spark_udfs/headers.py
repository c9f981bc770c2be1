"""Records that name their schema in a header: the columns of Kafka's source, brought together for the decode.

Rules of this file: columns only; what a header's bytes mean is read where frames are decoded.
"""

from pyspark.sql import Column, functions

from serdes.framing import header_name

__all__ = ["HEADER", "VALUE", "column_of", "with_header"]

VALUE = "value"
HEADER = "header"


def column_of(column: Column | str) -> Column:
    """A column, or the one of a name."""
    return functions.col(column) if isinstance(column, str) else column


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
