"""The compiler of Avro decoders for the payloads of registry frames.

    decode = compile_decoder(writer, reader)
    value = decode(payload)

A decoder is compiled once for a pair of schemas; threads may share it. Every payload gives either a value of the reader
schema or a `DecodeError`: no payload makes it crash, hang or take memory out of proportion.

Rules of this file: it joins plan, source and runtime, and holds the limits.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypedDict

from strata.serdes.avro.decoder_source import write_decoder
from strata.serdes.avro.logical_types import Shape
from strata.serdes.avro.resolution import plan
from strata.serdes.avro.runtime import NAMES, locate
from strata.serdes.avro.schema import Node, node_of
from strata.serdes.avro.source_lines import Part, compile_listing
from strata.serdes.errors import SchemaError

__all__ = ["DEFAULT_LIMITS", "Decoder", "DecoderOptions", "Limits", "compile_decoder"]

Decoder = Callable[[bytes], object]


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds for what the length of a payload does not bound.

    Attributes:
        max_depth: how deep records of a recursive type may nest.
        max_weightless: how many values that take no bytes, such as nulls in an array, a payload may hold.
    """

    max_depth: int = 200
    max_weightless: int = 10_000


DEFAULT_LIMITS = Limits()


class DecoderOptions(TypedDict, total=False):
    """The options of `compile_decoder`."""

    limits: Limits
    numeric_times: bool
    tagged_unions: bool
    named_records: bool


def compile_decoder(
    writer: str | Node,
    reader: str | Node | None = None,
    *,
    limits: Limits = DEFAULT_LIMITS,
    numeric_times: bool = False,
    tagged_unions: bool = False,
    named_records: bool = False,
) -> Decoder:
    """Return a function from the payload of a frame to a value; it raises `DecodeError`.

    Writer and reader schema are resolved by the rules of "Schema Resolution" in the Avro specification. A top-level
    `bytes` is read without a length, as every registry client writes it.

    Args:
        writer: the schema with which the payload was written, as text or parsed; one with references must be parsed.
        reader: the schema of the value wanted, in either form; without it the value has the writer's shape.
        limits: bounds for hostile payloads.
        numeric_times: leave dates, times and timestamps numbers, in the reader's unit.
        tagged_unions: return the values of unions of several types besides null as `Branch(position, value)`.
        named_records: return the records of unions as pairs of full name and value.

    Raises:
        SchemaError: If a schema text cannot be used. Schemas that do not match are not an error here: the decoder
            raises `DecodeError` with the reason `resolution` for the payloads concerned.
        TypeError: If a schema is neither a text nor a node.
    """
    try:
        shape = Shape(numeric_times=numeric_times, tagged_unions=tagged_unions, named_records=named_records)
        resolved = plan(node_of(writer), None if reader is None or reader == writer else node_of(reader), shape)
        listing = write_decoder(resolved)
    except RecursionError:
        raise SchemaError("the types of the schema are nested too deeply") from None
    return _guarded(compile_listing(listing, "avro decoder", NAMES), listing.paths, limits)


def _guarded(namespace: dict[str, Any], paths: dict[int, tuple[Part, ...]], limits: Limits) -> Decoder:
    read, depth, weightless = namespace["decode"], limits.max_depth, limits.max_weightless

    def decode(payload: bytes) -> object:
        if type(payload) is not bytes:
            payload = bytes(memoryview(payload))
        try:
            return read(payload, depth, [weightless])
        except Exception as error:
            located = locate(error, namespace, paths)
            if located is None:
                raise
            try:
                raise located from None
            finally:
                located = None  # break the cycle of error and frame, which would keep the payload until a collection

    return decode
