"""Batches of Protobuf and JSON frames in a Python worker: what the two formats share.

A format parses a payload into an object, a message or a value of JSON, and makes columns of many objects at a time.
Here frames are taken apart, writer schemas looked up, once for each, and every frame that has no value gets its reason.

A frame that is damaged, or whose id the registry does not know, is a matter of that one record. A registry that does
not answer is none: the task fails, and runs again from its checkpoint.

Rules of this file: no session and no pandas; it knows no format.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NoReturn, Protocol
from uuid import UUID

import pyarrow as pa

from serdes.client import RegistryClient, Schema
from serdes.errors import DecodeError, DecodeReason, FrameError, RegistryError, SchemaError, SerdeError
from serdes.framing import open_frame
from serdes.settings import ClientSettings
from spark_udfs.executor import FrameRefused, RegistryNotUsable
from spark_udfs.formats import reader_of
from spark_udfs.plan import Mode, Plan
from spark_udfs.shapes import Shape

__all__ = ["Parse", "PayloadDecoder", "Reader", "Refused", "Writer", "payload_decoder"]

Parse = Callable[[bytes], Any]
"""A payload becomes an object; DecodeError where it is damaged."""
Writer = Callable[[tuple[int, ...]], Parse]
"""The path to a message becomes what parses it; SchemaError where it leads nowhere, `Refused` to what is not read."""

_ERROR_TYPE = pa.struct([("reason", pa.string()), ("schema_id", pa.int32()), ("frame", pa.binary())])
_MAX_KNOWN = 1000
_PART = 256
"""How many records stand as objects at once."""
_UNKNOWN_SCHEMA = 40403
_NOT_FOUND = 404


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


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why one frame has no value: short for counting, and in full."""

    reason: str
    schema_id: int | None
    message: str


class Refused(Exception):
    """No frame of a writer schema, or of one message of it, can be decoded; `reason` says why in short."""

    def __init__(self, reason: str, message: str = "") -> None:
        super().__init__(message or reason)
        self.reason = reason


@lru_cache(maxsize=32)
def payload_decoder(plan: Plan) -> "PayloadDecoder":
    """This process's decoder for a plan."""
    return PayloadDecoder(plan, _reader(plan), _client(plan.registry))


def _reader(plan: Plan) -> Reader:
    if plan.payload is None:
        raise TypeError("the plan is for Avro")
    return reader_of(plan.payload)


@lru_cache(maxsize=8)
def _client(settings: ClientSettings) -> RegistryClient:
    return RegistryClient.from_settings(settings)


class PayloadDecoder:
    """Decodes batches by one plan."""

    def __init__(self, plan: Plan, reader: Reader, client: RegistryClient) -> None:
        self._plan = plan
        self._shape = reader.shape
        self._heads = _Heads(reader, client)

    def decode(self, frames: pa.Array, origin: Sequence[pa.Array] = ()) -> pa.Array:
        """One value for each frame: as the plan's mode has it, the value itself or a struct of value and error."""
        if not (pa.types.is_binary(frames.type) or pa.types.is_large_binary(frames.type)):
            raise TypeError(f"frames are binary; the column to decode is {frames.type}")
        parts: list[pa.Array] = []
        refusals: dict[int, Refusal] = {}
        for start in range(0, len(frames), _PART):
            values, refused = self._part(frames.slice(start, _PART).to_pylist())
            parts.append(values)
            refusals.update((start + index, refusal) for index, refusal in refused.items())
        if refusals and self._plan.mode is Mode.FAILFAST:
            self._fail(refusals, origin)
        decoded = pa.concat_arrays(parts or [self._shape.build([])])
        if self._plan.mode is not Mode.DEADLETTER:
            return decoded
        return pa.StructArray.from_arrays([decoded, _errors(frames, refusals)], names=["value", "error"])

    def _part(self, frames: list[bytes | None]) -> tuple[pa.Array, dict[int, Refusal]]:
        objects, refusals = self._objects(frames)
        build = self._shape.build
        try:
            return build(objects), refusals
        except DecodeError:
            unfit = {index: error for index, one in enumerate(objects) if (error := _misfit(build, one)) is not None}
        for index, error in unfit.items():
            refusals[index] = _refusal(frames[index] or b"", error, place=f" at {error.path}" if error.path else "")
            objects[index] = None
        return build(objects), refusals

    def _objects(self, frames: list[bytes | None]) -> tuple[list[Any], dict[int, Refusal]]:
        objects: list[Any] = []
        refusals: dict[int, Refusal] = {}
        append, parser = objects.append, self._heads.parser
        for frame in frames:
            if frame is None:
                append(None)
                continue
            try:
                parse, size = parser(frame)
                append(parse(frame[size:]))
            except (DecodeError, FrameError, Refused) as error:
                refusals[len(objects)] = _refusal(frame, error)
                append(None)
        return objects, refusals

    def _fail(self, refusals: dict[int, Refusal], origin: Sequence[pa.Array]) -> NoReturn:
        index = min(refusals)
        refusal = refusals[index]
        named = zip(
            ("schema id", *self._plan.origin), (refusal.schema_id, *(one[index].as_py() for one in origin)), strict=True
        )
        place = ", ".join(f"{name} {value}" for name, value in named)
        raise FrameRefused(f"a frame cannot be decoded ({place}): {refusal.message}")


class _Heads:
    """What parses the payloads behind each head of a frame that was met: schema and path to a message.

    No head is the beginning of another, so a frame can be tried with the sizes of those that are known.
    """

    def __init__(self, reader: Reader, client: RegistryClient) -> None:
        self._reader = reader
        self._client = client
        self._known: dict[bytes, Parse] = {}
        self._sizes: tuple[int, ...] = ()
        self._writers: dict[int | UUID, Writer | Refused] = {}

    def parser(self, frame: bytes) -> tuple[Parse, int]:
        """What parses a frame's payload, and where that begins."""
        for size in self._sizes:
            parse = self._known.get(frame[:size])
            if parse is not None:
                return parse, size
        return self._learn(frame)

    def _learn(self, frame: bytes) -> tuple[Parse, int]:
        named = open_frame(frame).schema
        if named not in self._writers:
            self._writers[named] = self._writer(named)
        writer = self._writers[named]
        # The path to a message is looked for only where the schema is of a format that has one.
        opened = open_frame(frame, indexed=self._reader.indexed and not isinstance(writer, Refused))
        parse = _parse_of(writer, opened.indexes)
        size = len(frame) - len(opened.payload)
        if len(self._known) >= _MAX_KNOWN:
            self._known, self._sizes, self._writers = {}, (), {named: writer}
        self._known[frame[:size]] = parse
        self._sizes = tuple(dict.fromkeys((*self._sizes, size)))
        return parse, size

    def _writer(self, named: int | UUID) -> Writer | Refused:
        """What a schema's payloads are parsed with, or why none can be."""
        schema = self._schema(named)
        if schema.format != self._reader.format:
            return Refused(f"writer schema is {schema.format}")
        try:
            return self._reader.writer(self._client, schema)
        except SchemaError as error:
            return Refused("unusable writer schema", str(error))
        except SerdeError as error:
            if isinstance(error, RegistryError) and error.status == _NOT_FOUND:
                return Refused("unusable writer schema", f"a reference leads nowhere: {error}")
            raise _not_usable(named, error) from None

    def _schema(self, named: int | UUID) -> Schema:
        try:
            if isinstance(named, int):
                return self._client.get_schema(named)
            return self._client.get_schema_by_guid(named)
        except SerdeError as error:
            if isinstance(error, RegistryError) and error.error_code == _UNKNOWN_SCHEMA:
                raise Refused("unknown schema id") from None
            raise _not_usable(named, error) from None


def _not_usable(named: int | UUID, error: SerdeError) -> RegistryNotUsable:
    kind = "id" if isinstance(named, int) else "guid"
    return RegistryNotUsable(f"schema {kind} {named} could not be looked up: {error}")


def _parse_of(writer: Writer | Refused, indexes: tuple[int, ...]) -> Parse:
    if isinstance(writer, Refused):
        return _refusing(writer)
    try:
        return writer(indexes)
    except Refused as error:
        return _refusing(error)
    except SchemaError as error:
        return _refusing(Refused(DecodeReason.INVALID_INDEX, str(error)))


def _refusing(why: Refused) -> Parse:
    """What parses payloads that cannot be."""

    def refuse(_: bytes) -> NoReturn:
        raise Refused(why.reason, str(why))

    return refuse


def _misfit(build: Callable[[Sequence[Any]], pa.Array], one: Any) -> DecodeError | None:
    """Why an object makes no row, tried alone."""
    try:
        build([one])
    except DecodeError as error:
        return error
    return None


def _refusal(frame: bytes, error: DecodeError | FrameError | Refused, place: str = "") -> Refusal:
    """The reason of a dead letter; `place` is a column, never a place in the payload, of which there are too many."""
    reason = str(error.reason)
    if isinstance(error, DecodeError) and error.reason == DecodeReason.INVALID_VALUE:
        reason = f"{reason}: {error.detail}{place}"
    return Refusal(reason, _schema_id(frame), str(error))


def _schema_id(frame: bytes) -> int | None:
    try:
        schema = open_frame(frame).schema
    except FrameError:
        return None
    return schema if isinstance(schema, int) else None


def _errors(frames: pa.Array, refusals: dict[int, Refusal]) -> pa.Array:
    if not refusals:
        return pa.nulls(len(frames), _ERROR_TYPE)
    errors: list[dict[str, Any] | None] = [None] * len(frames)
    for index, refusal in refusals.items():
        errors[index] = {"reason": refusal.reason, "schema_id": refusal.schema_id, "frame": frames[index].as_py()}
    return pa.array(errors, _ERROR_TYPE)
