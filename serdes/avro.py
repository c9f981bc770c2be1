"""Avro through the registry: compiled decoders and encoders, and the serializers built on them."""

from serdes.avro_decode import Decoder, Limits, compile_decoder
from serdes.avro_values import Branch

__all__ = ["Branch", "Decoder", "Limits", "compile_decoder"]
