"""JSON Schema: serializers and deserializers, and validation of values."""

from typing import TYPE_CHECKING

from strata.imports import lazy, require

require("json", "strata.serdes.json_schema", "jsonschema_rs", "orjson")

if TYPE_CHECKING:
    from strata.serdes.json_schema.serializer import JsonDeserializer as JsonDeserializer
    from strata.serdes.json_schema.serializer import JsonSerializer as JsonSerializer

__getattr__ = lazy(__name__, {"serializer": ("JsonDeserializer", "JsonSerializer")})
