"""Reader schemas of the formats beside Avro: what the driver fixes of one, and what reads payloads with it.

Rules of this file: a format's own module is loaded when it is asked for, since each needs its extra of the package.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING

from serdes.client import RegistryClient, Schema
from serdes.model import JSON, PROTOBUF
from serdes.references import resolve
from serdes.settings import ClientSettings

if TYPE_CHECKING:
    from spark_udfs.payloads import Reader

__all__ = ["PayloadSchema", "payload_schema", "reader_of"]

_MODULES = {
    PROTOBUF: ("spark_udfs.protobuf_reader", "ProtobufReader", "protobuf"),
    JSON: ("spark_udfs.json_reader", "JsonReader", "json"),
}


@dataclass(frozen=True, slots=True)
class PayloadSchema:
    """A reader schema with all that it refers to, which is all that an executor needs of it.

    Attributes:
        schema: its text and format.
        references: what it refers to, by name, what is referred to first.
        columns: the fields wanted, in this order; None means all.
        message: the full name of the Protobuf message; None means the first.
        validate: whether payloads are held against the JSON Schema that they were written with.
    """

    schema: Schema
    references: tuple[tuple[str, Schema], ...] = ()
    columns: tuple[str, ...] | None = None
    message: str | None = None
    validate: bool = False


def payload_schema(
    registry: ClientSettings,
    schema: Schema,
    *,
    subject: str | None = None,
    columns: Sequence[str] | None = None,
    message: str | None = None,
    validate: bool = False,
) -> PayloadSchema:
    """Fix a reader schema; the registry is asked for what it refers to.

    Raises:
        ValueError: an option is not one of its format.
    """
    if message is not None and schema.format != PROTOBUF:
        raise ValueError(f"message names a Protobuf message, and the reader schema is {schema.format}")
    if validate and schema.format != JSON:
        raise ValueError(f"validate is for JSON, and the reader schema is {schema.format}")
    if schema.format not in _MODULES:
        raise ValueError(f"a schema of the format {schema.format!r} cannot be read; AVRO, PROTOBUF and JSON can")
    if isinstance(columns, str) or not all(isinstance(name, str) for name in columns or ()):
        raise TypeError(f"columns is a list of field names, not {columns!r}")
    found: dict[str, Schema] = {}
    if schema.references:
        with RegistryClient.from_settings(registry) as client:
            found = resolve(client, schema, subject)
    wanted = None if columns is None else tuple(columns)
    references = tuple((name, _bare(one)) for name, one in found.items())
    return PayloadSchema(_bare(schema), references, wanted, message, validate)


def _bare(schema: Schema) -> Schema:
    """The text alone, without the data contract, which means nothing to columns."""
    return Schema(schema.text, schema.format)


@lru_cache(maxsize=32)
def reader_of(schema: PayloadSchema) -> "Reader":
    """What reads payloads into a reader schema.

    Raises:
        UnsupportedSchema: the reader schema has no Spark type.
        SchemaError: it cannot be used.
        ValueError: it has no such message or columns.
        ModuleNotFoundError: the extra of the format is not installed.
    """
    module, name, extra = _MODULES[schema.schema.format]
    try:
        kind = getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"{error}; install strata-registry[spark,{extra}]", name=error.name) from error
    reader: Reader = kind(schema)
    return reader
