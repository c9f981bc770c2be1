"""The names of `confluent_kafka.schema_registry` on our engine: change the import, keep the program.

    from strata.serdes.confluent import SchemaRegistryClient
    from strata.serdes.confluent.avro import AvroSerializer

Modules have confluent-kafka's names too. `docs/guides/porting.md` lists what differs. Names are imported on first use.
"""

from typing import TYPE_CHECKING

from strata.imports import lazy

if TYPE_CHECKING:
    from strata.serdes.confluent.avro import AsyncAvroDeserializer as AsyncAvroDeserializer
    from strata.serdes.confluent.avro import AsyncAvroSerializer as AsyncAvroSerializer
    from strata.serdes.confluent.avro import AvroDeserializer as AvroDeserializer
    from strata.serdes.confluent.avro import AvroSerializer as AvroSerializer
    from strata.serdes.confluent.error import OAuthTokenError as OAuthTokenError
    from strata.serdes.confluent.error import SchemaRegistryError as SchemaRegistryError
    from strata.serdes.confluent.error import SchemaRegistryUnavailable as SchemaRegistryUnavailable
    from strata.serdes.confluent.json_schema import AsyncJSONDeserializer as AsyncJSONDeserializer
    from strata.serdes.confluent.json_schema import AsyncJSONSerializer as AsyncJSONSerializer
    from strata.serdes.confluent.json_schema import JSONDeserializer as JSONDeserializer
    from strata.serdes.confluent.json_schema import JSONSerializer as JSONSerializer
    from strata.serdes.confluent.model import Association as Association
    from strata.serdes.confluent.model import AssociationCreateOrUpdateInfo as AssociationCreateOrUpdateInfo
    from strata.serdes.confluent.model import AssociationCreateOrUpdateRequest as AssociationCreateOrUpdateRequest
    from strata.serdes.confluent.model import AssociationInfo as AssociationInfo
    from strata.serdes.confluent.model import AssociationResponse as AssociationResponse
    from strata.serdes.confluent.model import ConfigCompatibilityLevel as ConfigCompatibilityLevel
    from strata.serdes.confluent.model import Metadata as Metadata
    from strata.serdes.confluent.model import MetadataProperties as MetadataProperties
    from strata.serdes.confluent.model import MetadataTags as MetadataTags
    from strata.serdes.confluent.model import RegisteredSchema as RegisteredSchema
    from strata.serdes.confluent.model import Rule as Rule
    from strata.serdes.confluent.model import RuleKind as RuleKind
    from strata.serdes.confluent.model import RuleMode as RuleMode
    from strata.serdes.confluent.model import RuleParams as RuleParams
    from strata.serdes.confluent.model import RuleSet as RuleSet
    from strata.serdes.confluent.model import Schema as Schema
    from strata.serdes.confluent.model import SchemaReference as SchemaReference
    from strata.serdes.confluent.model import SchemaVersion as SchemaVersion
    from strata.serdes.confluent.model import ServerConfig as ServerConfig
    from strata.serdes.confluent.protobuf import AsyncProtobufDeserializer as AsyncProtobufDeserializer
    from strata.serdes.confluent.protobuf import AsyncProtobufSerializer as AsyncProtobufSerializer
    from strata.serdes.confluent.protobuf import ProtobufDeserializer as ProtobufDeserializer
    from strata.serdes.confluent.protobuf import ProtobufSerializer as ProtobufSerializer
    from strata.serdes.confluent.schema_ids import dual_schema_id_deserializer as dual_schema_id_deserializer
    from strata.serdes.confluent.schema_ids import header_schema_id_serializer as header_schema_id_serializer
    from strata.serdes.confluent.schema_ids import prefix_schema_id_deserializer as prefix_schema_id_deserializer
    from strata.serdes.confluent.schema_ids import prefix_schema_id_serializer as prefix_schema_id_serializer
    from strata.serdes.confluent.schema_registry_client import AsyncSchemaRegistryClient as AsyncSchemaRegistryClient
    from strata.serdes.confluent.schema_registry_client import SchemaRegistryClient as SchemaRegistryClient
    from strata.serdes.confluent.serialization import MessageField as MessageField
    from strata.serdes.confluent.serialization import SerializationContext as SerializationContext
    from strata.serdes.confluent.serialization import SerializationError as SerializationError
    from strata.serdes.confluent.strategies import record_subject_name_strategy as record_subject_name_strategy
    from strata.serdes.confluent.strategies import reference_subject_name_strategy as reference_subject_name_strategy
    from strata.serdes.confluent.strategies import (
        topic_record_subject_name_strategy as topic_record_subject_name_strategy,
    )
    from strata.serdes.confluent.strategies import topic_subject_name_strategy as topic_subject_name_strategy
    from strata.serdes.serializer import BentValueWarning as BentValueWarning

_FORMATS = {"avro": "Avro", "json_schema": "JSON", "protobuf": "Protobuf"}
_MODULES = {
    **{
        module: tuple(f"{front}{name}{kind}" for front in ("Async", "") for kind in ("Deserializer", "Serializer"))
        for module, name in _FORMATS.items()
    },
    "error": ("OAuthTokenError", "SchemaRegistryError", "SchemaRegistryUnavailable"),
    "model": (
        "Association",
        "AssociationCreateOrUpdateInfo",
        "AssociationCreateOrUpdateRequest",
        "AssociationInfo",
        "AssociationResponse",
        "ConfigCompatibilityLevel",
        "Metadata",
        "MetadataProperties",
        "MetadataTags",
        "RegisteredSchema",
        "Rule",
        "RuleKind",
        "RuleMode",
        "RuleParams",
        "RuleSet",
        "Schema",
        "SchemaReference",
        "SchemaVersion",
        "ServerConfig",
    ),
    "schema_ids": (
        "dual_schema_id_deserializer",
        "header_schema_id_serializer",
        "prefix_schema_id_deserializer",
        "prefix_schema_id_serializer",
    ),
    "schema_registry_client": ("AsyncSchemaRegistryClient", "SchemaRegistryClient"),
    "serialization": ("MessageField", "SerializationContext", "SerializationError"),
    "strategies": (
        "record_subject_name_strategy",
        "reference_subject_name_strategy",
        "topic_record_subject_name_strategy",
        "topic_subject_name_strategy",
    ),
    "warnings": ("BentValueWarning",),
}
__getattr__ = lazy(__name__, _MODULES)
