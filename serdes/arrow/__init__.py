"""Batch decoder and encoder: registry frames to Arrow and back, for pandas, polars, DuckDB and Spark.

    batch = decode_batch(frames, reader_schema, writer_schemas=client)
    frames = encode_batch(batch, writer_schema, schema_id=7)

Needs pyarrow and Numba: the extra `arrow`. The layout of columns needs pyarrow only, so Spark can
plan with it where Numba is missing.
"""

from typing import TYPE_CHECKING

from strata.imports import lazy, require

require("arrow", "strata.serdes.arrow", "pyarrow")

if TYPE_CHECKING:
    from strata.serdes.arrow.columns import ColumnTooLarge as ColumnTooLarge
    from strata.serdes.arrow.decode import BatchDecoder as BatchDecoder
    from strata.serdes.arrow.decode import Limits as Limits
    from strata.serdes.arrow.decode import Refusal as Refusal
    from strata.serdes.arrow.decode import decode_batch as decode_batch
    from strata.serdes.arrow.encode import BatchEncoder as BatchEncoder
    from strata.serdes.arrow.encode import encode_batch as encode_batch
    from strata.serdes.arrow.layout import Style as Style
    from strata.serdes.arrow.layout import UnsupportedSchema as UnsupportedSchema
    from strata.serdes.arrow.program_cache import read_schema as read_schema

_MODULES = {
    "columns": ("ColumnTooLarge",),
    "decode": ("BatchDecoder", "Limits", "Refusal", "decode_batch"),
    "encode": ("BatchEncoder", "encode_batch"),
    "layout": ("Style", "UnsupportedSchema"),
    "program_cache": ("read_schema",),
}
_NEED_NUMBA = {name for module, names in _MODULES.items() if module != "layout" for name in names}
_attribute = lazy(__name__, _MODULES)


def __getattr__(name: str) -> object:
    """Import a public name on its first use; decoding and encoding need Numba, the layout of columns does not."""
    if name in _NEED_NUMBA:
        require("arrow", "strata.serdes.arrow", "numba")
    return _attribute(name)
