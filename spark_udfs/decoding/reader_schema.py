"""The reader schema of a decode, written out for the executors in the JVM."""

import json
from typing import Any

from strata.serdes.avro.encoder import compile_encoder
from strata.serdes.avro.logical_types import Shape, default_value
from strata.serdes.avro.projection import SchemaWriter, write
from strata.serdes.avro.schema import MISSING, Field, Record, parse

__all__ = ["write_with_defaults"]


def write_with_defaults(text: str) -> str:
    """Return the schema text with each default replaced by its Avro encoding in hexadecimal.

    Executors then need not interpret defaults in JSON. An invalid default is replaced by its error message.
    """
    return json.dumps(_EncodingWriter().tree(parse(text)))


class _EncodingWriter(SchemaWriter):
    """A schema writer that writes the bytes of a default in its place."""

    def _field(self, one: Field) -> dict[str, Any]:
        written = super()._field(one)
        if one.default is not MISSING:
            del written["default"]
            written |= _encoded(one)
        return written


def _encoded(one: Field) -> dict[str, str]:
    # Wrapped in a record, because a top-level `bytes` is written without its length.
    schema = write(Record("default", (), [Field("value", one.type)]))
    try:
        value = default_value(one.type, one.default, Shape(numeric_times=True, tagged_unions=True))
        return {"strata-default": compile_encoder(schema)({"value": value}).hex()}
    except (ValueError, OverflowError, RecursionError) as error:
        return {"strata-bad-default": str(error)}
