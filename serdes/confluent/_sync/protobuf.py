"""See `strata.serdes.confluent.protobuf`."""

from strata.serdes.confluent.protobuf import (
    ProtobufDeserializer,
    ProtobufDeserializerBuilder,
    ProtobufSerializer,
    ProtobufSerializerBuilder,
)

__all__ = ["ProtobufDeserializer", "ProtobufDeserializerBuilder", "ProtobufSerializer", "ProtobufSerializerBuilder"]
