"""The client package: the wire format, the registry client, serializers and deserializers.

The names below are imported on first use, so that a program loads only the formats that it uses.
"""

from typing import TYPE_CHECKING

from strata.imports import lazy

if TYPE_CHECKING:
    from strata.serdes.aio import AsyncDeserializer as AsyncDeserializer
    from strata.serdes.aio import AsyncSerializer as AsyncSerializer
    from strata.serdes.avro.serializer import AvroDeserializer as AvroDeserializer
    from strata.serdes.avro.serializer import AvroSerializer as AvroSerializer
    from strata.serdes.client import RegistryClient as RegistryClient
    from strata.serdes.errors import DecodeError as DecodeError
    from strata.serdes.errors import DecodeReason as DecodeReason
    from strata.serdes.errors import EncodeError as EncodeError
    from strata.serdes.errors import FrameError as FrameError
    from strata.serdes.errors import RegistryError as RegistryError
    from strata.serdes.errors import RegistryUnavailable as RegistryUnavailable
    from strata.serdes.errors import RuleError as RuleError
    from strata.serdes.errors import SchemaError as SchemaError
    from strata.serdes.errors import SerdeError as SerdeError
    from strata.serdes.json_schema.serializer import JsonDeserializer as JsonDeserializer
    from strata.serdes.json_schema.serializer import JsonSerializer as JsonSerializer
    from strata.serdes.model import Metadata as Metadata
    from strata.serdes.model import Reference as Reference
    from strata.serdes.model import RegisteredSchema as RegisteredSchema
    from strata.serdes.model import Rule as Rule
    from strata.serdes.model import RuleSet as RuleSet
    from strata.serdes.model import Schema as Schema
    from strata.serdes.protobuf.serializer import ProtobufDeserializer as ProtobufDeserializer
    from strata.serdes.protobuf.serializer import ProtobufSerializer as ProtobufSerializer
    from strata.serdes.settings import ClientSettings as ClientSettings
    from strata.serdes.subject_name_strategies import Context as Context

_MODULES = {
    "aio": ("AsyncDeserializer", "AsyncSerializer"),
    "avro.serializer": ("AvroDeserializer", "AvroSerializer"),
    "client": ("RegistryClient",),
    "errors": (
        "DecodeError",
        "DecodeReason",
        "EncodeError",
        "FrameError",
        "RegistryError",
        "RegistryUnavailable",
        "RuleError",
        "SchemaError",
        "SerdeError",
    ),
    "json_schema.serializer": ("JsonDeserializer", "JsonSerializer"),
    "model": ("Metadata", "Reference", "RegisteredSchema", "Rule", "RuleSet", "Schema"),
    "protobuf.serializer": ("ProtobufDeserializer", "ProtobufSerializer"),
    "settings": ("ClientSettings",),
    "subject_name_strategies": ("Context",),
}
__getattr__ = lazy(__name__, _MODULES)
