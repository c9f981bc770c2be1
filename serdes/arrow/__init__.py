"""Batch decoder and encoder: registry frames to Arrow and back, for pandas, polars, DuckDB and Spark.

    batch = decode_batch(frames, reader_schema, writer_schemas=client)
    frames = encode_batch(batch, writer_schema, schema_id=7)

Needs pyarrow and Numba: `pip install strata-registry[arrow]`.
"""

try:
    import numba  # noqa: F401
    import pyarrow  # noqa: F401
except ImportError as error:
    raise ImportError(
        f"serdes.arrow needs pyarrow and numba ({error.name} is missing): pip install 'strata-registry[arrow]'"
    ) from error

from serdes.arrow.columns import ColumnTooLarge
from serdes.arrow.decode import BatchDecoder, Refusal, decode_batch
from serdes.arrow.encode import BatchEncoder, encode_batch
from serdes.arrow.layout import Style, UnsupportedSchema
from serdes.arrow.programs import read_schema
from serdes.avro_decode import Limits

__all__ = [
    "BatchDecoder",
    "BatchEncoder",
    "ColumnTooLarge",
    "Limits",
    "Refusal",
    "Style",
    "UnsupportedSchema",
    "decode_batch",
    "encode_batch",
    "read_schema",
]
