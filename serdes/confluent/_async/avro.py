"""See `strata.serdes.confluent.avro`."""

from strata.serdes.confluent.avro import (
    AsyncAvroDeserializer,
    AsyncAvroDeserializerBuilder,
    AsyncAvroSerializer,
    AsyncAvroSerializerBuilder,
)

__all__ = ["AsyncAvroDeserializer", "AsyncAvroDeserializerBuilder", "AsyncAvroSerializer", "AsyncAvroSerializerBuilder"]
