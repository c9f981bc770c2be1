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
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

from strata.serdes.client import RegistryClient
from strata.serdes.errors import DecodeError, DecodeReason, FrameError, RegistryError, SchemaError
from strata.serdes.framing import open_frame
from strata.spark_udfs.decoding.payload_formats import reader_of
from strata.spark_udfs.decoding.payload_reader import Parse, PayloadReader, Undecodable, Writer
from strata.spark_udfs.decoding.plan import DecodePlan
from strata.spark_udfs.decoding.refusals import Refusal, finish
from strata.spark_udfs.decoding.schema_names import Name, records
from strata.spark_udfs.decoding.writer_schemas import (
    UNKNOWN_GUID,
    UNKNOWN_ID,
    client_of,
    find_schema,
    reading_references,
)

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
            values, refused = self._part(sent.slice(start, size).to_pylist(), headers)
            parts.append(values)
            refusals |= {start + index: refusal for index, refusal in refused.items()}

        def joined() -> pa.Array:
            return pa.concat_arrays(parts or [self._shape.build([])])

        return finish(self._plan, joined, sent, refusals, origin, lambda row: refusals[row].message)

    def _part(self, frames: list[bytes | None], headers: Sequence[bytes | None]) -> tuple[pa.Array, dict[int, Refusal]]:
        objects, refusals = self._objects(frames, headers)
        unfit: dict[int, DecodeError] = {}
        values = pa.concat_arrays(list(self._built(objects, 0, len(objects), unfit)))
        for index, error in unfit.items():
            place = f" at {error.path}" if error.path else ""
            refusals[index] = _refusal(frames[index] or b"", headers[index], error, place)
        return values, refusals

    def _built(self, objects: list[Any], start: int, end: int, unfit: dict[int, DecodeError]) -> Iterator[pa.Array]:
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
    ) -> tuple[list[Any], dict[int, Refusal]]:
        objects: list[Any] = []
        refusals: dict[int, Refusal] = {}
        append, in_frame, in_header = objects.append, self._parsers.in_frame, self._parsers.in_header
        for frame, header in zip(frames, headers, strict=True):
            if frame is None:
                append(None)
                continue
            try:
                if header is None:
                    parse, size = in_frame(frame)
                    append(parse(frame[size:]))
                else:
                    append(in_header(header)(frame))
            except (DecodeError, FrameError, Undecodable) as error:
                refusals[len(objects)] = _refusal(frame, header, error)
                append(None)
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

    No head is a prefix of another, so a frame is looked up by trying the sizes of the known heads.
    """

    def __init__(self, reader: PayloadReader, client: RegistryClient) -> None:
        self._reader = reader
        self._client = client
        self._known: dict[bytes, Parse] = {}
        self._sizes: tuple[int, ...] = ()
        self.in_header = lru_cache(_MAX_KNOWN)(self._in_header)
        self._writer = lru_cache(_MAX_KNOWN)(self._find_writer)

    def in_frame(self, frame: bytes) -> tuple[Parse, int]:
        """Return the parser of a frame's payload, and the offset of the payload."""
        for size in self._sizes:
            parse = self._known.get(frame[:size])
            if parse is not None:
                return parse, size
        parse, size = self._learn(frame)
        if len(self._known) >= _MAX_KNOWN:
            self._known.clear()
        self._known[frame[:size]] = parse
        self._sizes = tuple(dict.fromkeys((*self._sizes, size)))
        return parse, size

    def _in_header(self, header: bytes) -> Parse:
        """Return the parser of payloads whose schema a record header names."""
        parse, size = self._learn(header)
        if size != len(header) and not isinstance(self._writer(open_frame(header).schema), Undecodable):
            raise FrameError("trailing bytes in the header of the schema")
        return parse

    def _learn(self, head: bytes) -> tuple[Parse, int]:
        """Return the parser of the payloads after a head, and its length; `head` may have more bytes."""
        writer = self._writer(open_frame(head).schema)
        # Only formats with indexes have them between the schema's name and the payload.
        opened = open_frame(head, indexed=self._reader.indexed and not isinstance(writer, Undecodable))
        return _parse_of(writer, opened.indexes), len(head) - len(opened.payload)

    def _find_writer(self, named: Name) -> Writer | Undecodable:
        """Return the parsers for a schema, or why its payloads cannot be parsed."""
        try:
            schema = find_schema(self._client, named)
        except RegistryError:
            raise Undecodable(UNKNOWN_GUID if isinstance(named, UUID) else UNKNOWN_ID) from None
        if schema.format != self._reader.format:
            return Undecodable(f"writer schema is {schema.format}")
        try:
            with reading_references(named):
                return self._reader.writer(self._client, schema)
        except SchemaError as error:
            return Undecodable("unusable writer schema", str(error))


def _parse_of(writer: Writer | Undecodable, indexes: tuple[int, ...]) -> Parse:
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
        schema = open_frame(frame if header is None else header).schema
    except FrameError:
        schema = None
    return Refusal(reason, schema, str(error))
