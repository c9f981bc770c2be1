"""What the driver decides about one encode, as one picklable value: the schema and the prefix of each payload.

Rules of this file: only the driver runs it, and only here does it ask the registry; no Spark session, no data.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal
from uuid import UUID

from pyspark.sql.types import DataType

from strata.serdes.avro.projection import write
from strata.serdes.avro.schema import Node, parse
from strata.serdes.client import RegistryClient, Schema
from strata.serdes.errors import SchemaError
from strata.serdes.framing import SchemaId
from strata.serdes.model import AVRO, JSON, PROTOBUF
from strata.serdes.references import resolve
from strata.serdes.settings import ClientSettings
from strata.spark_udfs.arguments import Mode, check_id
from strata.spark_udfs.decoding.avro_types import type_of
from strata.spark_udfs.decoding.type_limits import RecursiveSchema, UnsupportedSchema
from strata.spark_udfs.encoding.derived_schemas import avro_schema, json_schema
from strata.spark_udfs.rules import EncodeRules

__all__ = ["EncodePlan", "Target", "WriterSource", "target_of"]

FORMATS = (AVRO, JSON, PROTOBUF)

_WRITING = ("WRITE", "WRITEREAD")

_DERIVED: dict[str, Callable[[DataType, str], str]] = {AVRO: avro_schema, JSON: json_schema}


@dataclass(frozen=True, slots=True)
class WriterSource:
    """The ways of naming the schema to write with, of which exactly one is used."""

    format: str | None = None
    subject: str | None = None
    schema: str | Schema | DataType | None = None
    version: int | Literal["latest"] | None = None
    schema_id: int | None = None
    register: bool = True
    normalize: bool = False

    def __post_init__(self) -> None:
        sources = [source for source in (self.schema, self.version, self.schema_id) if source is not None]
        if len(sources) != 1:
            raise ValueError(
                f"expected exactly one of schema, version (of the subject) and schema_id, got {len(sources)} of them"
            )
        if self.schema_id is None and self.subject is None:
            raise ValueError(f"{'schema' if self.schema else 'version'} needs subject")
        check_id(self.schema_id)
        if self.format is not None and self.format not in FORMATS:
            raise ValueError(f"format is {self.format!r}; allowed are {', '.join(FORMATS)}")


@dataclass(frozen=True, slots=True)
class Target:
    """A schema as the registry has it.

    Attributes:
        schema: the schema.
        references: the schemas it refers to, by name; each comes after those it refers to itself.
        identity: its id, its GUID if the registry sent one, and for Protobuf the indexes of the message.
    """

    schema: Schema
    references: tuple[tuple[str, Schema], ...]
    identity: SchemaId


@dataclass(frozen=True, slots=True)
class EncodePlan:
    """Everything that an executor needs; equal plans share an encoder.

    Attributes:
        registry: asked only for the references of a JSON Schema.
        target: the schema to write with.
        subject: its subject, if given.
        prefix: the bytes before each payload.
        mode: what a row that cannot be encoded becomes.
        validate: whether to validate JSON against its schema.
        origin: names of the further columns passed to the executor, for its errors.
        rules: the rules for writing, if they run.
    """

    registry: ClientSettings
    target: Target
    subject: str | None
    prefix: bytes
    mode: Mode
    validate: bool = True
    origin: tuple[str, ...] = ()
    rules: EncodeRules | None = None


def target_of(
    client: RegistryClient,
    source: WriterSource,
    *,
    message: str | None = None,
    with_guid: bool = False,
    runs_rules: bool = False,
) -> Target:
    """Return the schema to write with, registering it if the source says so.

    Args:
        client: the client of the registry.
        source: the options that name the schema.
        message: the full name of the Protobuf message, by default the first.
        with_guid: whether the schema's GUID is needed, which may take a further request.
        runs_rules: whether the rules for writing will run; else the schema must have none.

    Raises:
        RegistryError: If the registry has no such schema, or refuses to register it.
        SchemaError: If the schema cannot be used, has no such message, or has rules for writing that do not run.
        UnsupportedType: If the Spark type of the column has no schema.
        ValueError: If the arguments contradict each other.
    """
    schema_id, guid = _found(client, source, with_guid=with_guid)
    schema = client.get_schema(schema_id, subject=source.subject)
    if source.format not in (None, schema.format):
        raise ValueError(f"expected a schema of format {source.format}, got {schema.format} (schema id {schema_id})")
    if message is not None and schema.format != PROTOBUF:
        raise ValueError(f"message needs a Protobuf schema, and the schema is {schema.format}")
    if not runs_rules:
        _check_rules(schema, schema_id)
    references = {name: schema.bare for name, schema in resolve(client, schema, source.subject).items()}
    identity = SchemaId(schema_id, None if guid is None else UUID(guid))
    target = Target(schema.bare, tuple(references.items()), identity)
    if schema.format == PROTOBUF:
        return _with_message(target, message)
    if schema.format == AVRO:
        parsed = parse(schema.text, [reference.text for reference in references.values()])
        _check_end(parsed, schema_id)
        return replace(target, schema=Schema(write(parsed)), references=())
    return target


def _check_end(schema: Node, schema_id: int) -> None:
    """Raise SchemaError for a recursive record: no column can hold one."""
    try:
        type_of(schema)
    except RecursiveSchema as error:
        raise SchemaError(
            f"no column can hold values of schema id {schema_id}: at {error.path} a record contains itself; "
            "write with a schema without that field"
        ) from None
    except (UnsupportedSchema, RecursionError):  # a schema that cannot be read into columns may still be written
        return


def _check_rules(schema: Schema, schema_id: int) -> None:
    """Raise SchemaError if the data contract has rules for writing: fields for CSFLE would be written in plain text."""
    names = [rule.name for rule in schema.client_rules if rule.mode in _WRITING]
    if names:
        raise SchemaError(
            f"schema id {schema_id} has rules for writing ({', '.join(names)}): pass rules=True to run them"
        )


def _found(client: RegistryClient, source: WriterSource, *, with_guid: bool) -> tuple[int, str | None]:
    """Return the id, and the GUID if it is wanted and known."""
    subject = source.subject or ""
    if source.schema_id is not None:
        versions = client.get_schema_versions(source.schema_id) if with_guid else []
        return source.schema_id, client.get_version(*versions[0], deleted=True).guid if versions else None
    if source.version is not None:
        version = client.get_version(subject, source.version)
        return version.schema_id, version.guid
    schema = _given(source)
    version = (client.register if source.register else client.lookup)(subject, schema, normalize=source.normalize)
    if version.guid is None and with_guid:
        version = client.lookup(subject, schema, normalize=source.normalize)
    return version.schema_id, version.guid


def _given(source: WriterSource) -> Schema:
    format_, schema = source.format or AVRO, source.schema
    if isinstance(schema, Schema):
        if source.format not in (None, schema.format):
            raise ValueError(f"expected a schema of format {source.format}, got {schema.format}")
        return schema
    if isinstance(schema, str):
        return Schema(schema, format_)
    if not isinstance(schema, DataType):
        raise TypeError(f"schema is a text, a strata.serdes.client.Schema or a Spark type, not {type(schema).__name__}")
    if format_ not in _DERIVED:
        raise ValueError(f"cannot derive a {format_} schema from a Spark type, which has no field numbers: pass a text")
    return Schema(_DERIVED[format_](schema, _record_name(source.subject or "")), format_)


def _record_name(subject: str) -> str:
    """Return the record name for a subject: `flights-value` gives `flights`."""
    plain = re.sub(r"-(key|value)$", "", subject.rpartition(":")[2])
    parts = [re.sub(r"\W", "_", part, flags=re.ASCII) for part in plain.split(".")]
    return ".".join(part if part[:1].isalpha() or part[:1] == "_" else f"_{part}" for part in parts)


def _with_message(target: Target, name: str | None) -> Target:
    """Return the target with the indexes of the Protobuf message with a full name, or else of the first."""
    from strata.serdes.protobuf.files import find_message, indexes_of, link, message_named

    file = link(target.schema, dict(target.references))
    first = find_message(file, [0])
    message = first if name is None else message_named(file, name)
    if message is None or message.file.name != file.name:
        raise SchemaError(f"the schema has no message {name}; the first is {first.full_name}")
    return replace(target, identity=replace(target.identity, message_indexes=indexes_of(message)))
