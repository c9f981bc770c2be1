"""What is decided on the driver about one decode, as one picklable value.

The reader schema is fixed here, since the type of the column hangs on it; writer schemas are not looked at, the
executors look them up as they meet them.

Rules of this file: it asks the registry for the reader schema at most, once; no Spark session, no data.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, TypeVar

from serdes.avro_schema import Node, parse
from serdes.client import RegistryClient, Schema
from serdes.references import resolve
from serdes.settings import ClientSettings
from spark_udfs.reader_schema import project, write
from spark_udfs.types import Type, type_of

__all__ = ["Mode", "Plan", "ReaderSource", "Registry", "one_of", "plan", "reader_type", "settings_of"]

Registry = str | Sequence[str] | ClientSettings
"""How a caller names the registry."""

_AVRO = "AVRO"
_E = TypeVar("_E", bound=StrEnum)


class Mode(StrEnum):
    """What becomes of a frame that cannot be decoded."""

    DEADLETTER = "DEADLETTER"
    PERMISSIVE = "PERMISSIVE"
    FAILFAST = "FAILFAST"


@dataclass(frozen=True, slots=True)
class Plan:
    """All that an executor needs; equal plans share decoders.

    Attributes:
        registry: where writer schemas are looked up, and how patiently.
        reader_schema: the schema text of the values that come out.
        mode: what becomes of a frame that cannot be decoded.
        origin: names of the further columns handed to the executor, for its errors.
    """

    registry: ClientSettings
    reader_schema: str
    mode: Mode
    origin: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReaderSource:
    """The three ways of naming a reader schema, of which one is taken."""

    text: str | None = None
    subject: str | None = None
    version: int | Literal["latest"] = "latest"
    schema_id: int | None = None

    def __post_init__(self) -> None:
        given = [one for one in (self.text, self.subject, self.schema_id) if one is not None]
        if len(given) != 1:
            raise ValueError(
                "name the reader schema by exactly one of reader_schema (a text), subject (with a version), schema_id"
            )
        if self.version != "latest" and self.subject is None:
            raise ValueError("version counts within a subject: give the subject too")

    def read(self, registry: ClientSettings) -> Node:
        """The schema with all that it refers to, asked of the registry unless it was given."""
        if self.text is not None:
            return parse(self.text)
        with RegistryClient.from_settings(registry) as client:
            if self.subject is not None:
                return _avro(client, client.get_version(self.subject, self.version).schema, self.subject)
            if self.schema_id is not None:
                return _avro(client, client.get_schema(self.schema_id))
        raise AssertionError(self)


def plan(
    registry: ClientSettings,
    source: ReaderSource,
    *,
    mode: Mode,
    columns: Sequence[str] | None = None,
    origin: Sequence[str] = (),
) -> Plan:
    """Fix the reader schema of a decode."""
    schema = source.read(registry)
    wanted = schema if columns is None else project(schema, columns)
    return Plan(registry, write(wanted), mode, tuple(origin))


def reader_type(plan: Plan) -> Type:
    """The type of the values that come out, the same wherever it is asked."""
    return type_of(parse(plan.reader_schema))


def one_of(allowed: type[_E], name: str, given: str) -> _E:
    """The member of an enum by its text; ValueError says what is allowed."""
    try:
        return allowed(given)
    except ValueError:
        raise ValueError(f"{name} is {given!r}; allowed are {', '.join(allowed)}") from None


def settings_of(registry: Registry) -> ClientSettings:
    """The settings behind any way of naming the registry."""
    return registry if isinstance(registry, ClientSettings) else ClientSettings.of(registry)


def _avro(client: RegistryClient, schema: Schema, subject: str | None = None) -> Node:
    if schema.format != _AVRO:
        raise ValueError(f"the reader schema is a {schema.format} schema; this decodes Avro")
    return parse(schema.text, [one.text for one in resolve(client, schema, subject).values()])
