"""Records that name their schema in a header: joins value and header columns of Kafka's source for the decode.

Rules of this file: columns and arrays only; the decoders read the bytes of a header.
"""

import pyarrow as pa
from pyspark.sql import Column, functions
from pyspark.sql.pandas.types import from_arrow_type

from strata.serdes.framing import header_name

__all__ = ["HEADER", "VALUE", "records", "with_header"]

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
    named = functions.filter(headers, lambda header: header["key"] == wanted)
    return functions.struct(value.alias(VALUE), functions.get(named, functions.lit(0))["value"].alias(HEADER))


def records(column: pa.Array) -> tuple[pa.Array, pa.Array | None]:
    """Return the bytes of records, and the header that names the schema of each; None for a column without headers.

    Raises:
        TypeError: If the column is neither binary nor a struct of bytes and header; same message as `StrataCatalog`.
    """
    arrow_type = column.type
    has_headers = pa.types.is_struct(arrow_type) and [field.name for field in arrow_type] == [VALUE, HEADER]
    value, header = column.flatten() if has_headers else (column, None)
    if pa.types.is_null(value.type):  # an all-null column without a type
        value = value.cast(pa.binary())
    if not (pa.types.is_binary(value.type) or pa.types.is_large_binary(value.type)):
        raise TypeError(f"expected a binary column of frames, got {from_arrow_type(value.type).simpleString()}")
    return value, header
