"""See `strata.serdes.confluent.json_schema`."""

from strata.serdes.confluent.json_schema import (
    JSONDeserializer,
    JSONDeserializerBuilder,
    JSONSerializer,
    JSONSerializerBuilder,
)

__all__ = ["JSONDeserializer", "JSONDeserializerBuilder", "JSONSerializer", "JSONSerializerBuilder"]
