"""See `strata.serdes.confluent.protobuf`."""

from strata.serdes.confluent.protobuf import (
    AsyncProtobufDeserializer,
    AsyncProtobufDeserializerBuilder,
    AsyncProtobufSerializer,
    AsyncProtobufSerializerBuilder,
)

__all__ = [
    "AsyncProtobufDeserializer",
    "AsyncProtobufDeserializerBuilder",
    "AsyncProtobufSerializer",
    "AsyncProtobufSerializerBuilder",
]
