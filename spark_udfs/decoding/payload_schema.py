"""A reader schema of Protobuf or JSON with its references, which the driver fixes and sends to the workers.

Rules of this file: it asks the registry for references; nothing is parsed here.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from strata.serdes.client import Schema
from strata.serdes.model import JSON, PROTOBUF
from strata.serdes.references import resolve
from strata.serdes.settings import ClientSettings
from strata.spark_udfs.arguments import names_of
from strata.spark_udfs.waits import open_client

__all__ = ["PayloadSchema", "payload_schema"]


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
        raise ValueError(f"message needs a Protobuf schema, and the reader schema is {schema.format}")
    if validate and schema.format != JSON:
        raise ValueError(f"validate needs a JSON Schema, and the reader schema is {schema.format}")
    if schema.format not in (JSON, PROTOBUF):
        raise ValueError(f"expected a reader schema of AVRO, PROTOBUF or JSON, got {schema.format!r}")
    names = None if columns is None else names_of("columns", columns, of="field")
    schemas: dict[str, Schema] = {}
    if schema.references:
        with open_client(registry) as client:
            schemas = resolve(client, schema, subject)
    references = tuple((name, schema.bare) for name, schema in schemas.items())
    return PayloadSchema(schema.bare, references, names, message, validate)
