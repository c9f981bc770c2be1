"""See `strata.serdes.confluent.avro`."""

from strata.serdes.confluent.avro import (
    AvroDeserializer,
    AvroDeserializerBuilder,
    AvroSerializer,
    AvroSerializerBuilder,
)

__all__ = ["AvroDeserializer", "AvroDeserializerBuilder", "AvroSerializer", "AvroSerializerBuilder"]
