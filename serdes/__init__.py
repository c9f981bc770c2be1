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
    from strata.serdes.branch import Branch as Branch
    from strata.serdes.client import RegistryClient as RegistryClient
    from strata.serdes.conf_types import AvroDeserializerConf as AvroDeserializerConf
    from strata.serdes.conf_types import AvroSerializerConf as AvroSerializerConf
    from strata.serdes.conf_types import ClientConf as ClientConf
    from strata.serdes.conf_types import ClientOptions as ClientOptions
    from strata.serdes.conf_types import CompatibilityLevel as CompatibilityLevel
    from strata.serdes.conf_types import JsonDeserializerConf as JsonDeserializerConf
    from strata.serdes.conf_types import JsonSerializerConf as JsonSerializerConf
    from strata.serdes.conf_types import Mode as Mode
    from strata.serdes.conf_types import ProtobufDeserializerConf as ProtobufDeserializerConf
    from strata.serdes.conf_types import ProtobufSerializerConf as ProtobufSerializerConf
    from strata.serdes.errors import DecodeError as DecodeError
    from strata.serdes.errors import DecodeReason as DecodeReason
    from strata.serdes.errors import EncodeError as EncodeError
    from strata.serdes.errors import ErrorCode as ErrorCode
    from strata.serdes.errors import FrameError as FrameError
    from strata.serdes.errors import NoMessage as NoMessage
    from strata.serdes.errors import NoSubject as NoSubject
    from strata.serdes.errors import RegistryError as RegistryError
    from strata.serdes.errors import RegistryUnavailable as RegistryUnavailable
    from strata.serdes.errors import RuleError as RuleError
    from strata.serdes.errors import SchemaError as SchemaError
    from strata.serdes.errors import SerdeError as SerdeError
    from strata.serdes.errors import TokenError as TokenError
    from strata.serdes.json_schema.serializer import JsonDeserializer as JsonDeserializer
    from strata.serdes.json_schema.serializer import JsonSerializer as JsonSerializer
    from strata.serdes.model import CompatibilityResult as CompatibilityResult
    from strata.serdes.model import Metadata as Metadata
    from strata.serdes.model import Reference as Reference
    from strata.serdes.model import RegisteredSchema as RegisteredSchema
    from strata.serdes.model import Rule as Rule
    from strata.serdes.model import RuleSet as RuleSet
    from strata.serdes.model import Schema as Schema
    from strata.serdes.protobuf.serializer import ProtobufDeserializer as ProtobufDeserializer
    from strata.serdes.protobuf.serializer import ProtobufSerializer as ProtobufSerializer
    from strata.serdes.registry_protocol import Registry as Registry
    from strata.serdes.serializer import BentValueWarning as BentValueWarning
    from strata.serdes.settings import ClientSettings as ClientSettings
    from strata.serdes.subject_name_strategies import Context as Context
    from strata.serdes.subject_name_strategies import RecordContext as RecordContext
    from strata.serdes.subject_name_strategies import SubjectNameStrategy as SubjectNameStrategy

_MODULES = {
    "aio": ("AsyncDeserializer", "AsyncSerializer"),
    "avro.serializer": ("AvroDeserializer", "AvroSerializer"),
    "client": ("RegistryClient",),
    "errors": (
        "DecodeError",
        "DecodeReason",
        "EncodeError",
        "ErrorCode",
        "FrameError",
        "NoMessage",
        "NoSubject",
        "RegistryError",
        "RegistryUnavailable",
        "RuleError",
        "SchemaError",
        "SerdeError",
        "TokenError",
    ),
    "json_schema.serializer": ("JsonDeserializer", "JsonSerializer"),
    "branch": ("Branch",),
    "conf_types": (
        "AvroDeserializerConf",
        "AvroSerializerConf",
        "ClientConf",
        "ClientOptions",
        "CompatibilityLevel",
        "JsonDeserializerConf",
        "JsonSerializerConf",
        "Mode",
        "ProtobufDeserializerConf",
        "ProtobufSerializerConf",
    ),
    "model": ("CompatibilityResult", "Metadata", "Reference", "RegisteredSchema", "Rule", "RuleSet", "Schema"),
    "protobuf.serializer": ("ProtobufDeserializer", "ProtobufSerializer"),
    "registry_protocol": ("Registry",),
    "serializer": ("BentValueWarning",),
    "settings": ("ClientSettings",),
    "subject_name_strategies": ("Context", "RecordContext", "SubjectNameStrategy"),
}
__getattr__ = lazy(__name__, _MODULES)
