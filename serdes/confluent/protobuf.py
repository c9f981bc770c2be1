"""`ProtobufSerializer` and `ProtobufDeserializer` with confluent-kafka's constructors.

    from strata.serdes.confluent.protobuf import ProtobufSerializer

    serialize = ProtobufSerializer(Flight, client)
    frame = serialize(Flight(carrier="UA"), SerializationContext("flights", MessageField.VALUE))

Rules of this file: arguments in, an engine out.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from google.protobuf.message import Message

from strata.serdes.confluent.base import (
    AsyncBaseDeserializer,
    AsyncBaseSerializer,
    BaseDeserializer,
    BaseSerializer,
    engine_conf,
)
from strata.serdes.confluent.borrowed import engine_client
from strata.serdes.confluent.builders import AsyncBuilder, DeserializerBuilder, Init, SerializerBuilder
from strata.serdes.confluent.error import translating
from strata.serdes.confluent.offline import OneSchema
from strata.serdes.confluent.rule_registry import RuleRegistry
from strata.serdes.confluent.schema_registry_client import AsyncSchemaRegistryClient, SchemaRegistryClient
from strata.serdes.deserializer import Decode
from strata.serdes.errors import wrong_argument
from strata.serdes.framing import MessagePath
from strata.serdes.model import PROTOBUF, Schema
from strata.serdes.protobuf import serializer as engine
from strata.serdes.protobuf.files import text_of

__all__ = [
    "AsyncProtobufDeserializer",
    "AsyncProtobufDeserializerBuilder",
    "AsyncProtobufSerializer",
    "AsyncProtobufSerializerBuilder",
    "ProtobufDeserializer",
    "ProtobufDeserializerBuilder",
    "ProtobufSerializer",
    "ProtobufSerializerBuilder",
]


class ProtobufSerializer(BaseSerializer):
    """A serializer of messages of one type, which registers or looks up their file and its imports.

    Args:
        msg_type: the class of the messages.
        schema_registry_client: the registry.
        conf: settings, see `docs/guides/porting.md`.
        rule_conf: settings of rule executors, such as the secret of a KMS.
        rule_registry: your executors and actions; without it the global ones.

    Raises:
        ValueError: If a setting is unknown or not allowed.
        TypeError: If an argument has the wrong type.
    """

    def __init__(
        self,
        msg_type: type[Message],
        schema_registry_client: SchemaRegistryClient,
        conf: Mapping[str, object] | None = None,
        rule_conf: Mapping[str, object] | None = None,
        rule_registry: RuleRegistry | None = None,
    ) -> None:
        settings = engine_conf(conf, schema_registry_client, PROTOBUF, rule_conf, rule_registry, writes=True)
        client = engine_client(schema_registry_client)
        with translating():
            made = engine.ProtobufSerializer(client, msg_type, settings)
        self._made(made, schema_registry_client, conf, rule_registry)


class _Offline(engine.ProtobufDeserializer):
    """A deserializer that trusts that each frame has a message of its class, since no registry says more."""

    _type: type[Message]

    def _reader(self, schema: Schema, indexes: MessagePath, subject: str | None) -> Decode:  # noqa: ARG002
        return engine.decoder_of(self._type, as_dict=False)


class ProtobufDeserializer(BaseDeserializer):
    """A deserializer of Protobuf frames.

    Args:
        message_type: the class of the messages wanted.
        conf: settings, see `docs/guides/porting.md`.
        schema_registry_client: the registry; without it nothing is asked, and no rules run.
        rule_conf: settings of rule executors, such as the secret of a KMS.
        rule_registry: your executors and actions; without it the global ones.

    Raises:
        ValueError: If a setting is unknown or not allowed.
        TypeError: If an argument has the wrong type.
    """

    def __init__(
        self,
        message_type: type[Message],
        conf: Mapping[str, object] | None = None,
        schema_registry_client: SchemaRegistryClient | None = None,
        rule_conf: Mapping[str, object] | None = None,
        rule_registry: RuleRegistry | None = None,
    ) -> None:
        settings = engine_conf(conf, schema_registry_client, PROTOBUF, rule_conf, rule_registry, writes=False)
        if not hasattr(message_type, "DESCRIPTOR"):
            raise wrong_argument("message_type", "a message class made by protoc", message_type)
        with translating():
            if schema_registry_client is None:
                described: Any = message_type.DESCRIPTOR  # types-protobuf declares two types
                client: Any = OneSchema(Schema(text_of(described.file), PROTOBUF))
                made: engine.ProtobufDeserializer = _Offline(client, message_type, None, settings)
            else:
                made = engine.ProtobufDeserializer(engine_client(schema_registry_client), message_type, None, settings)
        self._made(made, schema_registry_client, conf, rule_registry)


class AsyncProtobufSerializer(AsyncBaseSerializer):
    """An awaitable form of `ProtobufSerializer` with the same arguments."""

    _kind = ProtobufSerializer

    def __init__(
        self,
        msg_type: type[Message],
        schema_registry_client: AsyncSchemaRegistryClient,
        conf: Mapping[str, object] | None = None,
        rule_conf: Mapping[str, object] | None = None,
        rule_registry: RuleRegistry | None = None,
    ) -> None:
        super().__init__(
            msg_type,
            schema_registry_client,
            conf,
            rule_conf,
            rule_registry,
        )


class AsyncProtobufDeserializer(AsyncBaseDeserializer):
    """An awaitable form of `ProtobufDeserializer` with the same arguments."""

    _kind = ProtobufDeserializer

    def __init__(
        self,
        message_type: type[Message],
        conf: Mapping[str, object] | None = None,
        schema_registry_client: AsyncSchemaRegistryClient | None = None,
        rule_conf: Mapping[str, object] | None = None,
        rule_registry: RuleRegistry | None = None,
    ) -> None:
        super().__init__(
            message_type,
            conf,
            schema_registry_client,
            rule_conf,
            rule_registry,
        )


@dataclass
class ProtobufSerializerBuilder(SerializerBuilder):
    """A builder of `ProtobufSerializer`; its fields are the arguments of that."""

    schema_registry_config: Mapping[str, object] | None = None
    schema_registry_client: object = None
    message_type: object = None
    serializer_config: Mapping[str, object] | None = None
    rule_config: Mapping[str, object] | None = None
    rule_registry: RuleRegistry | None = None
    serializer_init: Init | None = None
    _kind: ClassVar[type] = ProtobufSerializer

    def set_message_type(self, msg_type: object) -> Self:
        """Set the class of the messages."""
        self.message_type = msg_type
        return self

    def _construct(self, client: object) -> object:
        return self._kind(
            self.message_type,
            client,
            self.serializer_config,
            rule_conf=self.rule_config,
            rule_registry=self.rule_registry,
        )


class AsyncProtobufSerializerBuilder(AsyncBuilder, ProtobufSerializerBuilder):
    """A builder of `AsyncProtobufSerializer`; its fields are the arguments of that."""

    _kind = AsyncProtobufSerializer


@dataclass
class ProtobufDeserializerBuilder(DeserializerBuilder):
    """A builder of `ProtobufDeserializer`; its fields are the arguments of that."""

    schema_registry_config: Mapping[str, object] | None = None
    schema_registry_client: object = None
    message_type: object = None
    deserializer_config: Mapping[str, object] | None = None
    rule_config: Mapping[str, object] | None = None
    rule_registry: RuleRegistry | None = None
    deserializer_init: Init | None = None
    _kind: ClassVar[type] = ProtobufDeserializer

    def set_message_type(self, msg_type: object) -> Self:
        """Set the class of the messages."""
        self.message_type = msg_type
        return self

    def _construct(self, client: object) -> object:
        return self._kind(
            self.message_type,
            self.deserializer_config,
            client,
            rule_conf=self.rule_config,
            rule_registry=self.rule_registry,
        )


class AsyncProtobufDeserializerBuilder(AsyncBuilder, ProtobufDeserializerBuilder):
    """A builder of `AsyncProtobufDeserializer`; its fields are the arguments of that."""

    _kind = AsyncProtobufDeserializer
