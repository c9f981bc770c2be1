"""The Python worker's part of a Protobuf or JSON decode: what the two formats share.

A format parses a payload into an object (a message or a JSON value) and builds columns from many objects at a time.
This module splits frames, looks each writer schema up once, and gives every frame without a value its reason.

If a frame is damaged, or the registry does not know its id, only that record is affected. If the registry does not
answer, the task fails and runs again from its checkpoint.

Rules of this file: no session and no pandas; it knows no format.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc

from strata.serdes.client import RegistryClient
from strata.serdes.errors import DecodeError, DecodeReason, FrameError, RegistryError, SchemaError
from strata.serdes.framing import MessagePath, SchemaName, inflated, kind_of, read_path, split_name
from strata.spark_udfs.decoding.headers import records
from strata.spark_udfs.decoding.payload_formats import reader_of
from strata.spark_udfs.decoding.payload_reader import Parse, PayloadReader, Undecodable, Writer
from strata.spark_udfs.decoding.plan import DecodePlan
from strata.spark_udfs.decoding.refusals import Refusal, finish
from strata.spark_udfs.decoding.writer_schemas import client_of, find_schema, reading_references

__all__ = ["PayloadDecoder", "payload_decoder"]

_compute: Any = pc  # pyarrow creates these functions at run time, so they have no types
_MAX_KNOWN = 1000
_PART = 256
"""How many records are objects at the same time."""
_PART_BYTES = 1024 * 1024
"""How many payload bytes they may have: one byte of a hostile payload may become a hundred in memory."""


@lru_cache(maxsize=32)
def payload_decoder(plan: DecodePlan) -> "PayloadDecoder":
    """Return this process's decoder for a plan."""
    if plan.payload is None:
        raise TypeError("the plan is for Avro")
    return PayloadDecoder(plan, reader_of(plan.payload), client_of(plan.registry))


class PayloadDecoder:
    """A decoder of batches of Protobuf or JSON frames, by one plan."""

    def __init__(self, plan: DecodePlan, reader: PayloadReader, client: RegistryClient) -> None:
        self._plan = plan
        self._shape = reader.shape
        self._parsers = _Parsers(reader, client)

    def decode(self, frames: pa.Array, origin: Sequence[pa.Array] = ()) -> pa.Array:
        """Return one value for each frame.

        Args:
            frames: a binary array, or structs of the bytes and the header that names their schema.
            origin: one array for each column of the plan's `origin`, for the error of FAILFAST.

        Returns:
            The values; in mode DEADLETTER, structs of value and error.

        Raises:
            FrameUndecodable: If a frame cannot be decoded, in mode FAILFAST.
            RegistryNotUsable: If a schema could not be looked up.
            TypeError: If the column holds no frames.
        """
        sent, header = records(frames)
        parts: list[pa.Array] = []
        refusals: dict[int, Refusal] = {}
        for start, size in _extents(sent):
            headers = [None] * size if header is None else header.slice(start, size).to_pylist()
            frames, done = sent.slice(start, size).to_pylist(), 0
            while done < size:
                values, refused = self._part(frames[done:], headers[done:])
                parts.append(values)
                refusals |= {start + done + index: refusal for index, refusal in refused.items()}
                done += len(values)

        def joined() -> pa.Array:
            return pa.concat_arrays(parts or [self._shape.build([])])

        return finish(self._plan, joined, sent, refusals, origin, lambda row: refusals[row].message)

    def _part(self, frames: list[bytes | None], headers: Sequence[bytes | None]) -> tuple[pa.Array, dict[int, Refusal]]:
        """Return the values of the first frames, which may be fewer if they are compressed, and the refusals."""
        objects, refusals = self._objects(frames, headers)
        unfit: dict[int, DecodeError] = {}
        values = pa.concat_arrays(list(self._built(objects, 0, len(objects), unfit)))
        for index, error in unfit.items():
            place = f" at {error.path}" if error.path else ""
            refusals[index] = _refusal(frames[index] or b"", headers[index], error, place)
        return values, refusals

    def _built(self, objects: list[object], start: int, end: int, unfit: dict[int, DecodeError]) -> Iterator[pa.Array]:
        """Yield arrays of some objects; bisect to find those that do not fit."""
        try:
            yield self._shape.build(objects[start:end])
        except DecodeError as error:
            if end - start == 1:
                unfit[start] = error
                yield self._shape.build([None])
                return
            middle = (start + end) // 2
            yield from self._built(objects, start, middle, unfit)
            yield from self._built(objects, middle, end, unfit)

    def _objects(
        self, frames: list[bytes | None], headers: Sequence[bytes | None]
    ) -> tuple[list[object], dict[int, Refusal]]:
        objects: list[object] = []
        refusals: dict[int, Refusal] = {}
        more = 0  # bytes by which payloads grew
        append, in_frame, in_header = objects.append, self._parsers.in_frame, self._parsers.in_header
        for frame, header in zip(frames, headers, strict=True):
            if frame is None:
                append(None)
                continue
            try:
                if header is None:
                    parse, payload = in_frame(frame)
                    more += len(payload) - len(frame) if len(payload) > len(frame) else 0
                    append(parse(payload))
                else:
                    append(in_header(header)(frame))
            except (DecodeError, FrameError, Undecodable) as error:
                refusals[len(objects)] = _refusal(frame, header, error)
                append(None)
            if more > _PART_BYTES:
                break
        return objects, refusals


def _extents(frames: pa.Array) -> Iterator[tuple[int, int]]:
    """Yield the first row and the number of rows of each part of a batch."""
    start = taken = 0
    for row, length in enumerate(_compute.binary_length(frames).to_pylist()):
        taken += length or 0
        if row > start and (row - start >= _PART or taken > _PART_BYTES):
            yield start, row - start
            start, taken = row, length or 0
    if start < len(frames):
        yield start, len(frames) - start


class _Parsers:
    """The payload parsers by head of a frame: the bytes that name the schema and the message.

    No head is a prefix of another, so a frame is looked up by trying the sizes of the known heads. A compressed frame
    has none until it is inflated.
    """

    def __init__(self, reader: PayloadReader, client: RegistryClient) -> None:
        self._reader = reader
        self._client = client
        self._known: dict[bytes, Parse] = {}
        self._sizes: tuple[int, ...] = ()
        self.in_header = lru_cache(_MAX_KNOWN)(self._in_header)
        self._writer = lru_cache(_MAX_KNOWN)(self._find_writer)

    def in_frame(self, frame: bytes) -> tuple[Parse, bytes]:
        """Return the parser of a frame's payload, and the payload."""
        for size in self._sizes:
            parse = self._known.get(frame[:size])
            if parse is not None:
                return parse, frame[size:]
        plain = inflated(frame)
        if plain is not frame:
            return self.in_frame(plain)
        parse, size = self._learn(frame, *split_name(frame))
        if len(self._known) >= _MAX_KNOWN:
            self._known.clear()
        self._known[frame[:size]] = parse
        self._sizes = tuple(dict.fromkeys((*self._sizes, size)))
        return parse, frame[size:]

    def _in_header(self, header: bytes) -> Parse:
        """Return the parser of payloads whose schema a record header names."""
        name, rest = split_name(b"", header)
        parse, size = self._learn(header, name, rest)
        if size != len(header) and not isinstance(self._writer(name), Undecodable):
            raise FrameError("trailing bytes in the header of the schema")
        return parse

    def _learn(self, head: bytes, name: SchemaName, rest: bytes) -> tuple[Parse, int]:
        """Return the parser of the payloads after a head, and its length; `head` may have more bytes."""
        writer = self._writer(name)
        # Only formats with indexes have them between the schema's name and the payload.
        indexed = self._reader.indexed and not isinstance(writer, Undecodable)
        indexes, size = read_path(name, rest) if indexed else ((), 0)
        return _parse_of(writer, indexes), len(head) - len(rest) + size

    def _find_writer(self, named: SchemaName) -> Writer | Undecodable:
        """Return the parsers for a schema, or why its payloads cannot be parsed."""
        try:
            schema = find_schema(self._client, named)
        except RegistryError:
            raise Undecodable(f"unknown {kind_of(named)}") from None
        if schema.format != self._reader.format:
            return Undecodable(f"writer schema is {schema.format}")
        try:
            with reading_references(named):
                return self._reader.writer(self._client, schema)
        except SchemaError as error:
            return Undecodable("unusable writer schema", str(error))


def _parse_of(writer: Writer | Undecodable, indexes: MessagePath) -> Parse:
    if isinstance(writer, Undecodable):
        return _refusing(writer)
    try:
        return writer(indexes)
    except Undecodable as error:
        return _refusing(error)
    except SchemaError as error:  # not cached: a damaged frame may have any indexes
        raise Undecodable(DecodeReason.INVALID_INDEX, str(error)) from None


def _refusing(why: Undecodable) -> Parse:
    """Return a parser that always raises the refusal."""

    def refuse(_: bytes) -> NoReturn:
        raise Undecodable(why.reason, str(why))

    return refuse


def _refusal(
    frame: bytes, header: bytes | None, error: DecodeError | FrameError | Undecodable, place: str = ""
) -> Refusal:
    """Return why a frame has no value; `place` is a column, because places in payloads are too many to count by."""
    reason = str(error.reason)
    if isinstance(error, DecodeError) and error.reason == DecodeReason.INVALID_VALUE:
        reason = f"{reason}: {error.detail}{place}"
    try:
        schema, _ = split_name(frame, header)
    except FrameError:
        schema = None
    return Refusal(reason, schema, str(error))
