"""What the driver decides about one decode, as one picklable value.

The reader schema is fixed here, because the type of the column depends on it. Executors look writer schemas up when
they meet their ids.

Rules of this file: it asks the registry only for the reader schema and its references; no Spark session, no data.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from strata.serdes.avro.projection import project, write
from strata.serdes.avro.schema import Node, parse
from strata.serdes.client import RegistryClient, Schema
from strata.serdes.model import AVRO
from strata.serdes.references import resolve
from strata.serdes.settings import ClientSettings
from strata.spark_udfs.arguments import Mode, check_id
from strata.spark_udfs.decoding.arrow_columns import Shape
from strata.spark_udfs.decoding.avro_types import Type, type_of
from strata.spark_udfs.decoding.payload_formats import reader_of
from strata.spark_udfs.decoding.payload_schema import PayloadSchema, payload_schema

__all__ = ["DecodePlan", "ReaderSource", "plan_decode", "reader_type"]

_WRITE = "WRITE"

_log = logging.getLogger("strata.spark_udfs")


@dataclass(frozen=True, slots=True)
class DecodePlan:
    """Everything that an executor needs; equal plans share decoders.

    Attributes:
        registry: the settings for looking up writer schemas.
        reader_schema: the schema text of the decoded values.
        mode: what a frame that cannot be decoded becomes.
        origin: names of the further columns passed to the executor, for its errors.
        payload: the reader schema with its references, if its format is not Avro.
    """

    registry: ClientSettings
    reader_schema: str
    mode: Mode
    origin: tuple[str, ...] = ()
    payload: PayloadSchema | None = None


@dataclass(frozen=True, slots=True)
class ReaderSource:
    """The three ways of naming a reader schema, of which exactly one is used.

    A text is Avro unless `format` says otherwise; with references it is a `Schema`. For a schema in the registry,
    `format` is the format that it must have.
    """

    reader_schema: str | Schema | None = None
    subject: str | None = None
    version: int | Literal["latest"] = "latest"
    schema_id: int | None = None
    format: str | None = None

    def __post_init__(self) -> None:
        given = [one for one in (self.reader_schema, self.subject, self.schema_id) if one is not None]
        if len(given) != 1:
            raise ValueError(
                "expected exactly one of reader_schema (a text), subject (with a version) and schema_id, "
                f"got {len(given)} of them"
            )
        if self.version != "latest" and self.subject is None:
            raise ValueError("version needs subject")
        if not isinstance(self.reader_schema, str | Schema | None):
            raise TypeError(
                f"reader_schema is a text or a strata.serdes.client.Schema, not {type(self.reader_schema).__name__}"
            )
        check_id(self.schema_id)

    def read(self, registry: ClientSettings) -> Schema:
        """Return the schema, from the registry unless it was given.

        Raises:
            ValueError: If the schema has another format.
            SerdeError: If the registry does not have the schema, or does not answer.
        """
        if isinstance(self.reader_schema, str):
            return Schema(self.reader_schema, self.format or AVRO)
        found = self.reader_schema or self._ask(registry)
        if self.format not in (None, found.format):
            raise ValueError(f"expected a reader schema of format {self.format}, got {found.format}")
        return found

    def _ask(self, registry: ClientSettings) -> Schema:
        with RegistryClient.from_settings(registry) as client:
            if self.subject is not None:
                return client.get_version(self.subject, self.version).schema
            if self.schema_id is not None:
                return client.get_schema(self.schema_id)
        raise AssertionError(self)


def plan_decode(
    registry: ClientSettings,
    source: ReaderSource,
    *,
    mode: Mode,
    columns: Sequence[str] | None = None,
    origin: Sequence[str] = (),
    message: str | None = None,
    validate: bool = False,
) -> DecodePlan:
    """Return the plan of a decode, with its reader schema fixed.

    Args:
        registry: the settings of the registry.
        source: the options that name the reader schema.
        mode: what a frame that cannot be decoded becomes.
        columns: the fields to decode, in this order; None means all.
        origin: names of the columns that a FAILFAST error shows.
        message: the full name of the Protobuf message.
        validate: whether to validate JSON payloads against their writer schema.

    Raises:
        SchemaError: If the reader schema is invalid.
        SerdeError: If the registry does not have the schema or a reference, or does not answer.
        ValueError: If the options contradict each other, or `columns` names an unknown field.
    """
    schema = source.read(registry)
    _warn_of_rules(schema)
    if schema.format == AVRO and message is None and not validate:
        parsed = _avro(registry, schema, source.subject)
        wanted = parsed if columns is None else project(parsed, columns)
        return DecodePlan(registry, write(wanted), mode, tuple(origin))
    payload = payload_schema(
        registry, schema, subject=source.subject, columns=columns, message=message, validate=validate
    )
    return DecodePlan(registry, schema.text, mode, tuple(origin), payload)


def reader_type(plan: DecodePlan) -> Type | Shape:
    """Return the type of the decoded values, which is the same on driver and executors.

    Raises:
        UnsupportedSchema: If the reader schema has no Spark type.
    """
    if plan.payload is not None:
        return reader_of(plan.payload).shape
    return type_of(parse(plan.reader_schema))


def _warn_of_rules(schema: Schema) -> None:
    """Warn that `decode` does not run the rules for reading, such as CSFLE decryption."""
    names = [one.name for one in schema.client_rules if one.mode != _WRITE]
    if names:
        _log.warning(
            "decode does not run the reader schema's rules for reading (%s): encrypted fields stay encrypted",
            ", ".join(names),
        )


def _avro(registry: ClientSettings, schema: Schema, subject: str | None) -> Node:
    """Return the parsed schema with its references."""
    if not schema.references:
        return parse(schema.text)
    with RegistryClient.from_settings(registry) as client:
        return parse(schema.text, [one.text for one in resolve(client, schema, subject).values()])
