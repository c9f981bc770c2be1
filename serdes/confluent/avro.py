"""`AvroSerializer` and `AvroDeserializer` with confluent-kafka's constructors.

    from strata.serdes.confluent.avro import AvroSerializer

    serialize = AvroSerializer(client, schema_str, to_dict, conf={"auto.register.schemas": False})
    frame = serialize(flight, SerializationContext("flights", MessageField.VALUE))

Rules of this file: arguments in, an engine out.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

from strata.serdes.avro import serializer as engine
from strata.serdes.confluent.base import (
    AsyncBaseDeserializer,
    AsyncBaseSerializer,
    BaseDeserializer,
    BaseSerializer,
    ObjectFunction,
    engine_conf,
)
from strata.serdes.confluent.borrowed import engine_client
from strata.serdes.confluent.builders import AsyncBuilder, DeserializerBuilder, Init, SchemaBuilder, SerializerBuilder
from strata.serdes.confluent.error import translating
from strata.serdes.confluent.model import Schema, engine_schema
from strata.serdes.confluent.rule_registry import RuleRegistry
from strata.serdes.confluent.schema_registry_client import AsyncSchemaRegistryClient, SchemaRegistryClient

__all__ = [
    "AsyncAvroDeserializer",
    "AsyncAvroDeserializerBuilder",
    "AsyncAvroSerializer",
    "AsyncAvroSerializerBuilder",
    "AvroDeserializer",
    "AvroDeserializerBuilder",
    "AvroSerializer",
    "AvroSerializerBuilder",
]

_AVRO = "AVRO"


class AvroSerializer(BaseSerializer):
    """A serializer of Avro values, which registers or looks up their schema.

    Args:
        schema_registry_client: the registry.
        schema_str: the schema of the values, a `Schema` if it has references; None if a setting such as
            `use.latest.version` chooses one of the registry.
        to_dict: a function from your object and the context to a value of the schema; its errors pass through.
        conf: settings, see `docs/guides/porting.md`.
        rule_conf: settings of rule executors, such as the secret of a KMS.
        rule_registry: your executors and actions; without it the global ones.

    Raises:
        ValueError: If a setting is unknown or not allowed, or nothing chooses a schema.
        TypeError: If an argument has the wrong type.
        SchemaParseException: If the schema cannot be used.
        SchemaRegistryError: If the registry does not know a reference of the schema.
    """

    def __init__(
        self,
        schema_registry_client: SchemaRegistryClient,
        schema_str: str | Schema | None = None,
        to_dict: ObjectFunction | None = None,
        conf: Mapping[str, object] | None = None,
        rule_conf: Mapping[str, object] | None = None,
        rule_registry: RuleRegistry | None = None,
    ) -> None:
        settings = engine_conf(conf, schema_registry_client, _AVRO, rule_conf, rule_registry, writes=True)
        client, schema = engine_client(schema_registry_client), engine_schema(schema_str, _AVRO)
        with translating():
            made = engine.AvroSerializer(client, schema, to_dict, settings)
        self._made(made, schema_registry_client, conf, rule_registry)


class AvroDeserializer(BaseDeserializer):
    """A deserializer of Avro frames, whatever registered schema they were written with.

    Args:
        schema_registry_client: the registry.
        schema_str: the schema of the values wanted; without it each value has the shape of its writer schema.
        from_dict: a function from the value and the context to your object; its errors pass through.
        return_record_name: return the records of unions as pairs of full name and value.
        conf: settings, see `docs/guides/porting.md`.
        rule_conf: settings of rule executors, such as the secret of a KMS.
        rule_registry: your executors and actions; without it the global ones.

    Raises:
        ValueError: If a setting is unknown or not allowed.
        TypeError: If an argument has the wrong type.
        SchemaParseException: If the schema cannot be used.
        SchemaRegistryError: If the registry does not know a reference of the schema.
    """

    def __init__(
        self,
        schema_registry_client: SchemaRegistryClient,
        schema_str: str | Schema | None = None,
        from_dict: ObjectFunction | None = None,
        return_record_name: bool = False,
        conf: Mapping[str, object] | None = None,
        rule_conf: Mapping[str, object] | None = None,
        rule_registry: RuleRegistry | None = None,
    ) -> None:
        if not isinstance(return_record_name, bool):
            raise ValueError("return_record_name must be a boolean value")  # noqa: TRY004 - as confluent-kafka
        settings = engine_conf(conf, schema_registry_client, _AVRO, rule_conf, rule_registry, writes=False)
        client, schema = engine_client(schema_registry_client), engine_schema(schema_str, _AVRO)
        with translating():
            made = engine.AvroDeserializer(client, schema, from_dict, settings, named_records=return_record_name)
        self._made(made, schema_registry_client, conf, rule_registry)


class AsyncAvroSerializer(AsyncBaseSerializer):
    """An awaitable form of `AvroSerializer` with the same arguments."""

    _kind = AvroSerializer

    def __init__(
        self,
        schema_registry_client: AsyncSchemaRegistryClient,
        schema_str: str | Schema | None = None,
        to_dict: ObjectFunction | None = None,
        conf: Mapping[str, object] | None = None,
        rule_conf: Mapping[str, object] | None = None,
        rule_registry: RuleRegistry | None = None,
    ) -> None:
        super().__init__(
            schema_registry_client,
            schema_str,
            to_dict,
            conf,
            rule_conf,
            rule_registry,
        )


class AsyncAvroDeserializer(AsyncBaseDeserializer):
    """An awaitable form of `AvroDeserializer` with the same arguments."""

    _kind = AvroDeserializer

    def __init__(
        self,
        schema_registry_client: AsyncSchemaRegistryClient,
        schema_str: str | Schema | None = None,
        from_dict: ObjectFunction | None = None,
        return_record_name: bool = False,
        conf: Mapping[str, object] | None = None,
        rule_conf: Mapping[str, object] | None = None,
        rule_registry: RuleRegistry | None = None,
    ) -> None:
        super().__init__(
            schema_registry_client,
            schema_str,
            from_dict,
            return_record_name,
            conf,
            rule_conf,
            rule_registry,
        )


@dataclass
class AvroSerializerBuilder(SchemaBuilder, SerializerBuilder):
    """A builder of `AvroSerializer`; its fields are the arguments of that."""

    schema_registry_config: Mapping[str, object] | None = None
    schema_registry_client: object = None
    schema: str | Schema | None = None
    to_dict: ObjectFunction | None = None
    serializer_config: Mapping[str, object] | None = None
    rule_config: Mapping[str, object] | None = None
    rule_registry: RuleRegistry | None = None
    serializer_init: Init | None = None
    _kind: ClassVar[type] = AvroSerializer

    def set_to_dict(self, to_dict: ObjectFunction) -> Self:
        """Set the function from objects to values."""
        self.to_dict = to_dict
        return self

    def _construct(self, client: object) -> object:
        return self._kind(
            client,
            self.schema,
            self.to_dict,
            conf=self.serializer_config,
            rule_conf=self.rule_config,
            rule_registry=self.rule_registry,
        )


class AsyncAvroSerializerBuilder(AsyncBuilder, AvroSerializerBuilder):
    """A builder of `AsyncAvroSerializer`; its fields are the arguments of that."""

    _kind = AsyncAvroSerializer


@dataclass
class AvroDeserializerBuilder(SchemaBuilder, DeserializerBuilder):
    """A builder of `AvroDeserializer`; its fields are the arguments of that."""

    schema_registry_config: Mapping[str, object] | None = None
    schema_registry_client: object = None
    schema: str | Schema | None = None
    from_dict: ObjectFunction | None = None
    return_record_name: bool = False
    deserializer_config: Mapping[str, object] | None = None
    rule_config: Mapping[str, object] | None = None
    rule_registry: RuleRegistry | None = None
    deserializer_init: Init | None = None
    _kind: ClassVar[type] = AvroDeserializer

    def set_from_dict(self, from_dict: ObjectFunction) -> Self:
        """Set the function from values to objects."""
        self.from_dict = from_dict
        return self

    def set_return_record_name(self, return_record_name: bool) -> Self:
        """Set whether the records of unions come with their names."""
        self.return_record_name = return_record_name
        return self

    def _construct(self, client: object) -> object:
        return self._kind(
            client,
            self.schema,
            self.from_dict,
            conf=self.deserializer_config,
            return_record_name=self.return_record_name,
            rule_conf=self.rule_config,
            rule_registry=self.rule_registry,
        )


class AsyncAvroDeserializerBuilder(AsyncBuilder, AvroDeserializerBuilder):
    """A builder of `AsyncAvroDeserializer`; its fields are the arguments of that."""

    _kind = AsyncAvroDeserializer
