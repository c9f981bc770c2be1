"""What the driver decides about one decode, as one picklable value.

The reader schema is fixed here, because the type of the column depends on it. Executors look writer schemas up when
they meet their ids.

Rules of this file: it asks the registry only for the reader schema and its references; no Spark session, no data.
"""

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import quote

from pyspark.sql.types import DataType

from strata.serdes.avro.projection import project, write
from strata.serdes.avro.schema import Node, parse
from strata.serdes.client import Schema
from strata.serdes.model import AVRO, RegisteredSchema
from strata.serdes.references import resolve
from strata.serdes.settings import ClientSettings
from strata.spark_udfs.arguments import Mode, check_id
from strata.spark_udfs.decoding.arrow_columns import spark_type
from strata.spark_udfs.decoding.avro_types import type_of
from strata.spark_udfs.decoding.payload_formats import reader_of
from strata.spark_udfs.decoding.payload_schema import PayloadSchema, payload_schema
from strata.spark_udfs.rules import DecodeRules, token_of
from strata.spark_udfs.waits import open_client

__all__ = ["DecodePlan", "ReaderSource", "escaped", "plan_decode", "reader_type"]

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
        label: what people see of the reader schema in the plan of a query, such as `orders-value?version=3`.
        rules: the rules for reading, if they run.
        members_by_type: whether the members of an Avro union are named by their types.
    """

    registry: ClientSettings
    reader_schema: str
    mode: Mode
    origin: tuple[str, ...] = ()
    payload: PayloadSchema | None = None
    label: str = field(default="", compare=False)
    rules: DecodeRules | None = None
    members_by_type: bool = False


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
        sources = [source for source in (self.reader_schema, self.subject, self.schema_id) if source is not None]
        if len(sources) != 1:
            raise ValueError(
                "expected exactly one of reader_schema (a text), subject (with a version) and schema_id, "
                f"got {len(sources)} of them"
            )
        if self.version != "latest" and self.subject is None:
            raise ValueError("version needs subject")
        if not isinstance(self.reader_schema, str | Schema | None):
            raise TypeError(
                f"reader_schema is a text or a strata.serdes.client.Schema, not {type(self.reader_schema).__name__}"
            )
        check_id(self.schema_id)

    def read(self, registry: ClientSettings) -> tuple[Schema, str, RegisteredSchema | None]:
        """Return the schema, from the registry unless it was given, a label for it, and its version if it has one.

        Raises:
            ValueError: If the schema has another format.
            SerdeError: If the registry does not have the schema, or does not answer.
        """
        if isinstance(self.reader_schema, str):
            return Schema(self.reader_schema, self.format or AVRO), "", None
        known = None if self.reader_schema is None else (self.reader_schema, "", None)
        schema, label, version = known or self._ask(registry)
        if self.format not in (None, schema.format):
            raise ValueError(f"expected a reader schema of format {self.format}, got {schema.format}")
        return schema, label, version

    def _ask(self, registry: ClientSettings) -> tuple[Schema, str, RegisteredSchema | None]:
        with open_client(registry) as client:
            if self.subject is not None:
                version = client.get_version(self.subject, self.version)
                return version.schema, f"{escaped(self.subject)}?version={version.version}", version
            if self.schema_id is not None:
                return client.get_schema(self.schema_id), f"?id={self.schema_id}", None
        raise AssertionError(self)


_SPECIAL = re.compile(r"[%?&=+`\s]")
"""What a name of `strata.spark.plan.FunctionName` must not contain."""


def escaped(subject: str) -> str:
    """Return a subject as names of functions have it."""
    return _SPECIAL.sub(lambda match: quote(match[0], safe=""), subject)


def plan_decode(
    registry: ClientSettings,
    source: ReaderSource,
    *,
    mode: Mode,
    columns: Sequence[str] | None = None,
    origin: Sequence[str] = (),
    message: str | None = None,
    validate: bool = False,
    rules: Mapping[str, object] | None = None,
    is_key: bool = False,
    members_by_type: bool = False,
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
        rules: the settings of rules; None if they do not run.
        is_key: whether the column holds record keys.
        members_by_type: whether the members of an Avro union are named by their types.

    Raises:
        SchemaError: If the reader schema is invalid.
        SerdeError: If the registry does not have the schema or a reference, or does not answer.
        ValueError: If the options contradict each other, or `columns` names an unknown field.
    """
    schema, label, version = source.read(registry)
    ruled = None
    if rules is None:
        _warn_of_rules(schema)
    elif version is None:
        raise ValueError("rules needs subject (with a version), whose rules convert the records of other versions")
    else:
        ruled = DecodeRules(token_of(rules, repr(version)), version, is_key, rules)
    if schema.format == AVRO and message is None and not validate:
        parsed = _avro(registry, schema, source.subject)
        wanted = parsed if columns is None else project(parsed, columns)
        return DecodePlan(
            registry, write(wanted), mode, tuple(origin), label=label, rules=ruled, members_by_type=members_by_type
        )
    payload = payload_schema(
        registry, schema, subject=source.subject, columns=columns, message=message, validate=validate
    )
    return DecodePlan(registry, schema.text, mode, tuple(origin), payload, label, ruled)


def reader_type(plan: DecodePlan) -> DataType:
    """Return the type of the decoded values, which is the same on driver and executors.

    Raises:
        UnsupportedSchema: If the reader schema has no Spark type.
    """
    if plan.payload is not None:
        return spark_type(reader_of(plan.payload).shape.arrow)
    return type_of(parse(plan.reader_schema), members_by_type=plan.members_by_type)


def _warn_of_rules(schema: Schema) -> None:
    """Warn that `decode` does not run the rules for reading, such as CSFLE decryption."""
    names = [rule.name for rule in schema.client_rules if rule.mode != _WRITE]
    if names:
        _log.warning(
            "the reader schema's rules for reading (%s) need rules=True: without it, encrypted fields stay encrypted",
            ", ".join(names),
        )


def _avro(registry: ClientSettings, schema: Schema, subject: str | None) -> Node:
    """Return the parsed schema with its references."""
    if not schema.references:
        return parse(schema.text)
    with open_client(registry) as client:
        return parse(schema.text, [reference.text for reference in resolve(client, schema, subject).values()])
