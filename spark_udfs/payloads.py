"""Batches of Protobuf and JSON frames in a Python worker: what the two formats share.

A format parses a payload into an object, a message or a value of JSON, and makes columns of many objects at a time.
Here frames are taken apart, writer schemas looked up, once for each, and every frame that has no value gets its reason.

A frame that is damaged, or whose id the registry does not know, is a matter of that one record. A registry that does
not answer is none: the task fails, and runs again from its checkpoint.

Rules of this file: no session and no pandas; it knows no format.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NoReturn, Protocol
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

from serdes.client import RegistryClient, Schema
from serdes.errors import DecodeError, DecodeReason, FrameError, SchemaError, SerdeError
from serdes.framing import open_frame
from spark_udfs.formats import reader_of
from spark_udfs.names import Name, records
from spark_udfs.outcomes import (
    UNKNOWN_GUID,
    Refusal,
    client_of,
    finished,
    is_unknown,
    not_usable,
    reading_references,
    schema_named,
)
from spark_udfs.plan import Plan
from spark_udfs.shapes import Shape

__all__ = ["Parse", "PayloadDecoder", "Reader", "Refused", "Writer", "payload_decoder"]

Parse = Callable[[bytes], Any]
"""A payload becomes an object; DecodeError where it is damaged."""
Writer = Callable[[tuple[int, ...]], Parse]
"""The path to a message becomes what parses it; SchemaError where it leads nowhere, `Refused` to what is not read."""

_compute: Any = pc  # its functions are made at run time, and have no types
_MAX_KNOWN = 1000
_PART = 256
"""How many records stand as objects at once."""
_PART_BYTES = 1024 * 1024
"""How many bytes they may have, for a byte of a hostile payload may become a hundred."""


class Reader(Protocol):
    """A format's way of reading payloads into the columns of one reader schema."""

    format: str
    indexed: bool
    shape: Shape

    def writer(self, client: RegistryClient, schema: Schema) -> Writer:
        """What a writer schema's payloads are parsed with.

        Raises:
            SchemaError: the schema cannot be used.
            SerdeError: the registry did not say what the schema refers to.
        """


class Refused(Exception):
    """No frame of a writer schema, or of one message of it, can be decoded; `reason` says why in short."""

    def __init__(self, reason: str, message: str = "") -> None:
        super().__init__(message or reason)
        self.reason = reason


@lru_cache(maxsize=32)
def payload_decoder(plan: Plan) -> "PayloadDecoder":
    """This process's decoder for a plan."""
    return PayloadDecoder(plan, _reader(plan), client_of(plan.registry))


def _reader(plan: Plan) -> Reader:
    if plan.payload is None:
        raise TypeError("the plan is for Avro")
    return reader_of(plan.payload)


class PayloadDecoder:
    """Decodes batches by one plan."""

    def __init__(self, plan: Plan, reader: Reader, client: RegistryClient) -> None:
        self._plan = plan
        self._shape = reader.shape
        self._heads = _Heads(reader, client)

    def decode(self, frames: pa.Array, origin: Sequence[pa.Array] = ()) -> pa.Array:
        """One value for each frame: as the plan's mode has it, the value itself or a struct of value and error.

        Frames may be structs of the bytes and of what a header of the record says of their schema.
        """
        sent, header = records(frames)
        parts: list[pa.Array] = []
        refusals: dict[int, Refusal] = {}
        messages: dict[int, str] = {}
        for start, size in _extents(sent):
            headers = None if header is None else header.slice(start, size).to_pylist()
            values, faults = self._part(sent.slice(start, size).to_pylist(), headers)
            parts.append(values)
            for index, fault in faults.items():
                refusals[start + index] = Refusal(fault.reason, fault.schema)
                messages[start + index] = fault.message

        def joined() -> pa.Array:
            return pa.concat_arrays(parts or [self._shape.build([])])

        return finished(self._plan, joined, sent, refusals, origin, messages.__getitem__)

    def _part(
        self, frames: list[bytes | None], headers: list[bytes | None] | None
    ) -> tuple[pa.Array, dict[int, "_Fault"]]:
        objects, faults = self._objects(frames, headers or [None] * len(frames))
        unfit: dict[int, DecodeError] = {}
        values = pa.concat_arrays(list(self._built(objects, 0, len(objects), unfit)))
        for index, error in unfit.items():
            header = headers[index] if headers else None
            faults[index] = _fault(frames[index] or b"", header, error, f" at {error.path}" if error.path else "")
        return values, faults

    def _built(self, objects: list[Any], start: int, end: int, unfit: dict[int, DecodeError]) -> Iterator[pa.Array]:
        """Arrays of some objects; where one of them does not fit, halves are tried until it is found."""
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
        self, frames: list[bytes | None], headers: list[bytes | None]
    ) -> tuple[list[Any], dict[int, "_Fault"]]:
        objects: list[Any] = []
        faults: dict[int, _Fault] = {}
        append, in_frame, in_header = objects.append, self._heads.in_frame, self._heads.in_header
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
            except (DecodeError, FrameError, Refused) as error:
                faults[len(objects)] = _fault(frame, header, error)
                append(None)
        return objects, faults


@dataclass(frozen=True, slots=True)
class _Fault:
    """Why one frame has no value: short for counting, and in full."""

    reason: str
    schema: Name | None
    message: str


def _extents(frames: pa.Array) -> Iterator[tuple[int, int]]:
    """Where parts of a batch begin, and how many frames they have."""
    start = taken = 0
    for row, length in enumerate(_compute.binary_length(frames).to_pylist()):
        taken += length or 0
        if row > start and (row - start >= _PART or taken > _PART_BYTES):
            yield start, row - start
            start, taken = row, length or 0
    if start < len(frames):
        yield start, len(frames) - start


class _Heads:
    """What parses the payloads behind each head of a frame that was met: schema and path to a message.

    No head is the beginning of another, so a frame can be tried with the sizes of those that are known.
    """

    def __init__(self, reader: Reader, client: RegistryClient) -> None:
        self._reader = reader
        self._client = client
        self._known: dict[bytes, Parse] = {}
        self._headers: dict[bytes, Parse] = {}
        self._sizes: tuple[int, ...] = ()
        self._writers: dict[Name, Writer | Refused] = {}

    def in_frame(self, frame: bytes) -> tuple[Parse, int]:
        """What parses a frame's payload, and where that begins."""
        for size in self._sizes:
            parse = self._known.get(frame[:size])
            if parse is not None:
                return parse, size
        parse, size = self._learn(frame)
        _make_room(self._known)
        self._known[frame[:size]] = parse
        self._sizes = tuple(dict.fromkeys((*self._sizes, size)))
        return parse, size

    def in_header(self, header: bytes) -> Parse:
        """What parses payloads whose schema a header names."""
        parse = self._headers.get(header)
        if parse is None:
            parse, size = self._learn(header)
            if size != len(header) and not isinstance(self._writers.get(open_frame(header).schema), Refused):
                raise FrameError("trailing bytes in the header of the schema")
            _make_room(self._headers)
            self._headers[header] = parse
        return parse

    def _learn(self, head: bytes) -> tuple[Parse, int]:
        """What parses the payloads behind a head, whatever follows it, and how long the head is."""
        named = open_frame(head).schema
        writer = self._writers.get(named)
        if writer is None:
            writer = self._writer(named)
            _make_room(self._writers)
            self._writers[named] = writer
        # The path to a message is looked for only where the schema is of a format that has one.
        opened = open_frame(head, indexed=self._reader.indexed and not isinstance(writer, Refused))
        return _parse_of(writer, opened.indexes), len(head) - len(opened.payload)

    def _writer(self, named: Name) -> Writer | Refused:
        """What a schema's payloads are parsed with, or why none can be."""
        schema = self._schema(named)
        if schema.format != self._reader.format:
            return Refused(f"writer schema is {schema.format}")
        try:
            with reading_references(named):
                return self._reader.writer(self._client, schema)
        except SchemaError as error:
            return Refused("unusable writer schema", str(error))

    def _schema(self, named: Name) -> Schema:
        try:
            return schema_named(self._client, named)
        except SerdeError as error:
            if is_unknown(error):
                raise Refused(UNKNOWN_GUID if isinstance(named, UUID) else "unknown schema id") from None
            raise not_usable(named, error) from None


def _make_room(kept: dict[Any, Any]) -> None:
    if len(kept) >= _MAX_KNOWN:
        kept.clear()


def _parse_of(writer: Writer | Refused, indexes: tuple[int, ...]) -> Parse:
    if isinstance(writer, Refused):
        return _refusing(writer)
    try:
        return writer(indexes)
    except Refused as error:
        return _refusing(error)
    except SchemaError as error:  # not kept: a damaged frame may have any path
        raise Refused(DecodeReason.INVALID_INDEX, str(error)) from None


def _refusing(why: Refused) -> Parse:
    """What parses payloads that cannot be."""

    def refuse(_: bytes) -> NoReturn:
        raise Refused(why.reason, str(why))

    return refuse


def _fault(frame: bytes, header: bytes | None, error: DecodeError | FrameError | Refused, place: str = "") -> _Fault:
    """Why a frame has no value; `place` is a column, never a place in the payload, of which there are too many."""
    reason = str(error.reason)
    if isinstance(error, DecodeError) and error.reason == DecodeReason.INVALID_VALUE:
        reason = f"{reason}: {error.detail}{place}"
    try:
        schema = open_frame(frame if header is None else header).schema
    except FrameError:
        return _Fault(reason, None, str(error))
    return _Fault(reason, schema, str(error))
