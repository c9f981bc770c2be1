"""Reader schemas of Protobuf and JSON: the value that the driver fixes, and the reader that a worker makes of it.

Rules of this file: the module of a format is imported when it is needed, because each needs its extra of the package.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING

from strata.serdes.client import RegistryClient, Schema
from strata.serdes.model import JSON, PROTOBUF
from strata.serdes.references import resolve
from strata.serdes.settings import ClientSettings

if TYPE_CHECKING:
    from strata.spark_udfs.decoding.payload_worker import Reader

__all__ = ["PayloadSchema", "payload_schema", "reader_of"]

_MODULES = {
    PROTOBUF: ("strata.spark_udfs.decoding.protobuf_reader", "ProtobufReader", "protobuf"),
    JSON: ("strata.spark_udfs.decoding.json_reader", "JsonReader", "json"),
}


@dataclass(frozen=True, slots=True)
class PayloadSchema:
    """A reader schema with all its references, which is all that an executor needs of it.

    Attributes:
        schema: its text and format.
        references: the schemas it refers to, by name; each comes after those it refers to itself.
        columns: the fields to read, in this order; None means all.
        message: the full name of the Protobuf message; None means the first.
        validate: whether to validate payloads against the JSON Schema they were written with.
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
    """Return a reader schema with its references, which the registry is asked for.

    Args:
        registry: the settings of the registry.
        schema: the reader schema.
        subject: the subject of the schema; references without a context belong to its context.
        columns: the fields to read, in this order; None means all.
        message: the full name of the Protobuf message; None means the first.
        validate: whether to validate JSON payloads against their writer schema.

    Raises:
        RegistryError: If the registry does not have a reference.
        RegistryUnavailable: If the registry does not answer.
        TypeError: If `columns` is not a list of names.
        ValueError: If the format is unknown, or an option belongs to another format.
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
    """Return the schema without its data contract, which does not matter for columns."""
    return Schema(schema.text, schema.format)


@lru_cache(maxsize=32)
def reader_of(schema: PayloadSchema) -> "Reader":
    """Return the reader that reads payloads into a reader schema.

    Raises:
        UnsupportedSchema: If the reader schema has no Spark type.
        SchemaError: If the reader schema is invalid.
        ValueError: If it has no such message or columns.
        ModuleNotFoundError: If the extra of the format is not installed.
    """
    module, name, extra = _MODULES[schema.schema.format]
    try:
        kind = getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"{error}; install strata-registry[spark,{extra}]", name=error.name) from error
    reader: Reader = kind(schema)
    return reader
