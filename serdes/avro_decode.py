"""Compiling decoders for the payloads of registry frames.

    decode = compile_decoder(writer, reader)
    value = decode(payload)

A decoder is made once for a pair of schemas and then only runs; it is safe to share between threads. Every payload
gives either a value of the reader schema or a `DecodeError`: nothing in the bytes makes it crash, hang or take memory
out of proportion.

Rules of this file: it joins plan, source and runtime, and holds the limits.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from serdes.avro_plan import plan
from serdes.avro_runtime import NAMES, locate
from serdes.avro_schema import Node, node_of
from serdes.avro_source import write_decoder
from serdes.avro_text import Part, compile_listing
from serdes.avro_values import Shape
from serdes.errors import SchemaError

__all__ = ["DEFAULT_LIMITS", "Decoder", "Limits", "compile_decoder"]

Decoder = Callable[[bytes], Any]


@dataclass(frozen=True, slots=True)
class Limits:
    """What a payload may ask for beyond what its own length bounds.

    Attributes:
        max_depth: how many records of a recursive type may stand inside each other.
        max_weightless: how many values that take no bytes, such as items of an array of nulls, one payload may hold.
    """

    max_depth: int = 200
    max_weightless: int = 10_000


DEFAULT_LIMITS = Limits()


def compile_decoder(
    writer: str | Node,
    reader: str | Node | None = None,
    *,
    limits: Limits = DEFAULT_LIMITS,
    numeric_times: bool = False,
    tagged_unions: bool = False,
) -> Decoder:
    """A function from the payload of a frame to a value.

    Args:
        writer: the schema with which the payload was written, as text or as `parse` read it, which one with references
            must be.
        reader: the schema of the value wanted, in either form; without it the value has the writer's shape.
        limits: bounds for hostile payloads.
        numeric_times: leave dates, times and timestamps numbers, in the reader's unit.
        tagged_unions: hand out the values of unions of several types besides null as `Branch(position, value)`.

    A top-level `bytes` is taken without a length, as every registry client writes it.

    Raises:
        SchemaError: a schema text cannot be used. Schemas that do not fit each other are no such case: the decoder then
            raises `DecodeError` with the reason `resolution` for the payloads concerned.
    """
    try:
        shape = Shape(numeric_times=numeric_times, tagged_unions=tagged_unions)
        resolved = plan(node_of(writer), None if reader is None or reader == writer else node_of(reader), shape)
        listing = write_decoder(resolved)
    except RecursionError:
        raise SchemaError("the types of the schema are nested too deeply") from None
    return _guarded(compile_listing(listing, "avro decoder", NAMES), listing.paths, limits)


def _guarded(namespace: dict[str, Any], paths: dict[int, tuple[Part, ...]], limits: Limits) -> Decoder:
    read, depth, weightless = namespace["decode"], limits.max_depth, limits.max_weightless

    def decode(payload: bytes) -> Any:
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
                located = None  # an error that holds its own frame would keep the payload until the collector comes

    return decode
