"""`JSONSerializer` and `JSONDeserializer` with confluent-kafka's constructors.

    from strata.serdes.confluent.json_schema import JSONSerializer

    serialize = JSONSerializer(schema_str, client, to_dict)
    frame = serialize(flight, SerializationContext("flights", MessageField.VALUE))

Rules of this file: arguments in, an engine out.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

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
from strata.serdes.confluent.offline import OneSchema
from strata.serdes.confluent.rule_registry import RuleRegistry
from strata.serdes.confluent.schema_registry_client import AsyncSchemaRegistryClient, SchemaRegistryClient
from strata.serdes.json_schema import serializer as engine

__all__ = [
    "AsyncJSONDeserializer",
    "AsyncJSONDeserializerBuilder",
    "AsyncJSONSerializer",
    "AsyncJSONSerializerBuilder",
    "JSONDeserializer",
    "JSONDeserializerBuilder",
    "JSONSerializer",
    "JSONSerializerBuilder",
]

_JSON = "JSON"


class JSONSerializer(BaseSerializer):
    """A serializer of JSON values, which registers or looks up their JSON Schema.

    Args:
        schema_str: the JSON Schema of the values, a `Schema` if it has references; None if a setting such as
            `use.latest.version` chooses one of the registry.
        schema_registry_client: the registry.
        to_dict: a function from your object and the context to a JSON value; its errors pass through.
        conf: settings, see `docs/guides/porting.md`.
        rule_conf: settings of rule executors, such as the secret of a KMS.
        rule_registry: your executors and actions; without it the global ones.
        json_encode: writes a value as JSON, instead of ours.

    Raises:
        ValueError: If a setting is unknown or not allowed, or nothing chooses a schema.
        TypeError: If an argument has the wrong type.
        SchemaParseException: If the schema is not JSON.
    """

    def __init__(
        self,
        schema_str: str | Schema | None,
        schema_registry_client: SchemaRegistryClient,
        to_dict: ObjectFunction | None = None,
        conf: Mapping[str, object] | None = None,
        rule_conf: Mapping[str, object] | None = None,
        rule_registry: RuleRegistry | None = None,
        json_encode: Callable[[Any], str | bytes] | None = None,
    ) -> None:
        settings = engine_conf(conf, schema_registry_client, _JSON, rule_conf, rule_registry, writes=True)
        client, schema = engine_client(schema_registry_client), engine_schema(schema_str, _JSON)
        with translating():
            made = engine.JsonSerializer(client, schema, to_dict, settings, encode=json_encode)
        self._made(made, schema_registry_client, conf, rule_registry)


class JSONDeserializer(BaseDeserializer):
    """A deserializer of JSON frames, which validates the values.

    Args:
        schema_str: the JSON Schema that values must satisfy; without it the schema that they were written with.
        from_dict: a function from the value and the context to your object; its errors pass through.
        schema_registry_client: the registry; without it `schema_str` must be given, and no registry is asked.
        conf: settings, see `docs/guides/porting.md`.
        rule_conf: settings of rule executors, such as the secret of a KMS.
        rule_registry: your executors and actions; without it the global ones.
        json_decode: parses a payload, instead of ours.

    Raises:
        ValueError: If a setting is unknown or not allowed, or there is neither a schema nor a client.
        TypeError: If an argument has the wrong type.
        SchemaParseException: If the schema cannot be used.
        SchemaRegistryError: If the registry does not know a reference of the schema.
    """

    def __init__(
        self,
        schema_str: str | Schema | None,
        from_dict: ObjectFunction | None = None,
        schema_registry_client: SchemaRegistryClient | None = None,
        conf: Mapping[str, object] | None = None,
        rule_conf: Mapping[str, object] | None = None,
        rule_registry: RuleRegistry | None = None,
        json_decode: Callable[[bytes], object] | None = None,
    ) -> None:
        settings = engine_conf(conf, schema_registry_client, _JSON, rule_conf, rule_registry, writes=False)
        schema = engine_schema(schema_str, _JSON)
        client: Any
        if schema_registry_client is not None:
            client = engine_client(schema_registry_client)
        elif schema is not None:
            client = OneSchema(schema)
        else:
            raise ValueError('schema_registry_client must be provided if "schema_str" is not provided')
        with translating():
            made = engine.JsonDeserializer(client, schema, from_dict, settings, decode=json_decode)
        self._made(made, schema_registry_client, conf, rule_registry)


class AsyncJSONSerializer(AsyncBaseSerializer):
    """An awaitable form of `JSONSerializer` with the same arguments."""

    _kind = JSONSerializer

    def __init__(
        self,
        schema_str: str | Schema | None,
        schema_registry_client: AsyncSchemaRegistryClient,
        to_dict: ObjectFunction | None = None,
        conf: Mapping[str, object] | None = None,
        rule_conf: Mapping[str, object] | None = None,
        rule_registry: RuleRegistry | None = None,
        json_encode: Callable[[Any], str | bytes] | None = None,
    ) -> None:
        super().__init__(
            schema_str,
            schema_registry_client,
            to_dict,
            conf,
            rule_conf,
            rule_registry,
            json_encode,
        )


class AsyncJSONDeserializer(AsyncBaseDeserializer):
    """An awaitable form of `JSONDeserializer` with the same arguments."""

    _kind = JSONDeserializer

    def __init__(
        self,
        schema_str: str | Schema | None,
        from_dict: ObjectFunction | None = None,
        schema_registry_client: AsyncSchemaRegistryClient | None = None,
        conf: Mapping[str, object] | None = None,
        rule_conf: Mapping[str, object] | None = None,
        rule_registry: RuleRegistry | None = None,
        json_decode: Callable[[bytes], object] | None = None,
    ) -> None:
        super().__init__(
            schema_str,
            from_dict,
            schema_registry_client,
            conf,
            rule_conf,
            rule_registry,
            json_decode,
        )


@dataclass
class JSONSerializerBuilder(SchemaBuilder, SerializerBuilder):
    """A builder of `JSONSerializer`; its fields are the arguments of that."""

    schema_registry_config: Mapping[str, object] | None = None
    schema_registry_client: object = None
    schema: str | Schema | None = None
    to_dict: ObjectFunction | None = None
    serializer_config: Mapping[str, object] | None = None
    rule_config: Mapping[str, object] | None = None
    rule_registry: RuleRegistry | None = None
    json_encode: Callable[[Any], str | bytes] | None = None
    serializer_init: Init | None = None
    _kind: ClassVar[type] = JSONSerializer

    def set_to_dict(self, to_dict: ObjectFunction) -> Self:
        """Set the function from objects to values."""
        self.to_dict = to_dict
        return self

    def set_json_encode(self, json_encode: Callable[[Any], str | bytes]) -> Self:
        """Set what writes values as JSON."""
        self.json_encode = json_encode
        return self

    def _construct(self, client: object) -> object:
        return self._kind(
            self.schema,
            client,
            self.to_dict,
            self.serializer_config,
            rule_conf=self.rule_config,
            rule_registry=self.rule_registry,
            json_encode=self.json_encode,
        )


class AsyncJSONSerializerBuilder(AsyncBuilder, JSONSerializerBuilder):
    """A builder of `AsyncJSONSerializer`; its fields are the arguments of that."""

    _kind = AsyncJSONSerializer


@dataclass
class JSONDeserializerBuilder(SchemaBuilder, DeserializerBuilder):
    """A builder of `JSONDeserializer`; its fields are the arguments of that."""

    schema_registry_config: Mapping[str, object] | None = None
    schema_registry_client: object = None
    schema: str | Schema | None = None
    from_dict: ObjectFunction | None = None
    deserializer_config: Mapping[str, object] | None = None
    rule_config: Mapping[str, object] | None = None
    rule_registry: RuleRegistry | None = None
    json_decode: Callable[[bytes], Any] | None = None
    deserializer_init: Init | None = None
    _kind: ClassVar[type] = JSONDeserializer

    def set_from_dict(self, from_dict: ObjectFunction) -> Self:
        """Set the function from values to objects."""
        self.from_dict = from_dict
        return self

    def set_json_decode(self, json_decode: Callable[[bytes], object]) -> Self:
        """Set what parses JSON."""
        self.json_decode = json_decode
        return self

    def _construct(self, client: object) -> object:
        return self._kind(
            self.schema,
            self.from_dict,
            client,
            self.deserializer_config,
            rule_conf=self.rule_config,
            rule_registry=self.rule_registry,
            json_decode=self.json_decode,
        )


class AsyncJSONDeserializerBuilder(AsyncBuilder, JSONDeserializerBuilder):
    """A builder of `AsyncJSONDeserializer`; its fields are the arguments of that."""

    _kind = AsyncJSONDeserializer
