"""Builders of serializers and deserializers, which confluent-kafka's producers and consumers call.

    SerializingProducer({
        "bootstrap.servers": brokers,
        "value.serializer.builder": AvroSerializerBuilder({"url": url}, schema=schema_str),
    })

Rules of this file: what builders of all formats share; a format adds its fields and `_construct`.
"""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

from strata.serdes.confluent.base import BaseSerde
from strata.serdes.confluent.rule_registry import RuleRegistry
from strata.serdes.confluent.schema_registry_client import AsyncSchemaRegistryClient, SchemaRegistryClient

__all__ = ["AsyncBuilder", "Builder", "DeserializerBuilder", "Init", "SchemaBuilder", "SerializerBuilder"]

Init = Callable[[Any], Any]
"""What is called with a new serializer or deserializer; an asynchronous builder awaits what it returns."""


class Builder:
    """What all builders have: each value has a setter, which returns the builder."""

    schema_registry_config: Mapping[str, object] | None
    schema_registry_client: object
    rule_config: Mapping[str, object] | None
    rule_registry: RuleRegistry | None
    _client_kind: ClassVar[type] = SchemaRegistryClient

    def set_schema_registry_config(self, schema_registry_conf: Mapping[str, object]) -> Self:
        """Set the settings of the registry client that the builder makes."""
        self.schema_registry_config = schema_registry_conf
        return self

    def set_schema_registry_client(self, schema_registry_client: object) -> Self:
        """Set the registry client, which the serializer does not close."""
        self.schema_registry_client = schema_registry_client
        return self

    def set_rule_config(self, rule_conf: Mapping[str, object]) -> Self:
        """Set the settings of rule executors."""
        self.rule_config = rule_conf
        return self

    def set_rule_registry(self, rule_registry: RuleRegistry) -> Self:
        """Set the executors and actions of the program."""
        self.rule_registry = rule_registry
        return self

    def _construct(self, client: object) -> Any:
        raise NotImplementedError

    def _init(self) -> Init | None:
        raise NotImplementedError

    def _client(self) -> tuple[object, bool]:
        """Return the client and whether the builder makes it."""
        if self.schema_registry_client is not None or self.schema_registry_config is None:
            return self.schema_registry_client, False
        return self._client_kind(self.schema_registry_config), True

    def build(self, conf: dict[str, Any], is_key: bool) -> Any:  # noqa: ARG002 - confluent-kafka's interface
        """Return the serializer or deserializer, and the settings of the Kafka client that are left.

        Args:
            conf: the settings of the Kafka client, of which none is used.
            is_key: whether it is for keys.

        Raises:
            ValueError: If a setting is unknown or not allowed.
        """
        client, is_made = self._client()
        serde: BaseSerde = self._construct(client)
        if is_made:
            serde.own_schema_registry_client()
        if (init := self._init()) is not None:
            init(serde)
        return serde, conf


class AsyncBuilder(Builder):
    """A builder whose `build` and initialization are awaited."""

    _client_kind = AsyncSchemaRegistryClient

    async def build(self, conf: dict[str, Any], is_key: bool) -> Any:  # noqa: ARG002 - confluent-kafka's interface
        """Return the serializer or deserializer, and the settings of the Kafka client that are left; see `Builder`."""
        client, is_made = self._client()
        serde = await self._construct(client)
        if is_made:
            serde.own_schema_registry_client()
        if (init := self._init()) is not None:
            await init(serde)
        return serde, conf


class SerializerBuilder(Builder):
    """What the builders of serializers have."""

    serializer_config: Mapping[str, object] | None
    serializer_init: Init | None

    def set_serializer_config(self, serializer_conf: Mapping[str, object]) -> Self:
        """Set the settings of the serializer."""
        self.serializer_config = serializer_conf
        return self

    def set_serializer_init(self, serializer_init: Init) -> Self:
        """Set what is called with the new serializer."""
        self.serializer_init = serializer_init
        return self

    def _init(self) -> Init | None:
        return self.serializer_init


class DeserializerBuilder(Builder):
    """What the builders of deserializers have."""

    deserializer_config: Mapping[str, object] | None
    deserializer_init: Init | None

    def set_deserializer_config(self, deserializer_conf: Mapping[str, object]) -> Self:
        """Set the settings of the deserializer."""
        self.deserializer_config = deserializer_conf
        return self

    def set_deserializer_init(self, deserializer_init: Init) -> Self:
        """Set what is called with the new deserializer."""
        self.deserializer_init = deserializer_init
        return self

    def _init(self) -> Init | None:
        return self.deserializer_init


class SchemaBuilder:
    """What builders with a schema text have."""

    schema: object

    def set_schema(self, schema_str: object) -> Self:
        """Set the schema, a text or a `Schema`."""
        self.schema = schema_str
        return self
