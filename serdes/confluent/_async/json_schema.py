"""See `strata.serdes.confluent.json_schema`."""

from strata.serdes.confluent.json_schema import (
    AsyncJSONDeserializer,
    AsyncJSONDeserializerBuilder,
    AsyncJSONSerializer,
    AsyncJSONSerializerBuilder,
)

__all__ = ["AsyncJSONDeserializer", "AsyncJSONDeserializerBuilder", "AsyncJSONSerializer", "AsyncJSONSerializerBuilder"]
