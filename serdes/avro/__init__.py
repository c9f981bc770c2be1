"""Avro: serializers and deserializers, and the compilers of encoders and decoders behind them."""

from typing import TYPE_CHECKING

from strata.imports import lazy

if TYPE_CHECKING:
    from strata.serdes.avro.decoder import Decoder as Decoder
    from strata.serdes.avro.decoder import Limits as Limits
    from strata.serdes.avro.decoder import compile_decoder as compile_decoder
    from strata.serdes.avro.encoder import Encoder as Encoder
    from strata.serdes.avro.encoder import compile_encoder as compile_encoder
    from strata.serdes.avro.logical_types import Branch as Branch
    from strata.serdes.avro.serializer import AvroDeserializer as AvroDeserializer
    from strata.serdes.avro.serializer import AvroSerializer as AvroSerializer

_MODULES = {
    "logical_types": ("Branch",),
    "decoder": ("Decoder", "Limits", "compile_decoder"),
    "encoder": ("Encoder", "compile_encoder"),
    "serializer": ("AvroDeserializer", "AvroSerializer"),
}
__getattr__ = lazy(__name__, _MODULES)
