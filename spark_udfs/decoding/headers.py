"""Records that name their schema in a header: joins value and header columns of Kafka's source for the decode.

Rules of this file: columns only; the decoders read the bytes of a header.
"""

from pyspark.sql import Column, functions

from strata.serdes.framing import header_name

__all__ = ["HEADER", "VALUE", "with_header"]

VALUE = "value"
HEADER = "header"


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
