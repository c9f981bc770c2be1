"""Protobuf: serializers and deserializers, and schema texts as descriptors. Needs the extra `protobuf`."""

from typing import TYPE_CHECKING

from strata.imports import lazy, require

require("protobuf", "strata.serdes.protobuf", "google.protobuf", "google.type")

if TYPE_CHECKING:
    from strata.serdes.protobuf.json_mapping import dict_of as dict_of
    from strata.serdes.protobuf.serializer import ProtobufDeserializer as ProtobufDeserializer
    from strata.serdes.protobuf.serializer import ProtobufSerializer as ProtobufSerializer

_MODULES = {"json_mapping": ("dict_of",), "serializer": ("ProtobufDeserializer", "ProtobufSerializer")}
__getattr__ = lazy(__name__, _MODULES)
