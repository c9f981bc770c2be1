"""What runs in a Python worker: an Arrow array of frames in, an Arrow array of values out.

A worker keeps what it has learned for as long as it lives: one registry client for each registry, one decoder for each
writer schema. A writer schema that it meets for the first time it looks up itself, so that a version registered while
a query runs is decoded by that query.

A frame that is damaged, or whose id the registry does not know, is a matter of that one record: the plan's mode says
what becomes of it. A registry that does not answer is none: the task fails, and runs again from its checkpoint.

Rules of this file: no pyspark session, no pandas; nothing here looks at a type of the schema while records pass.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NoReturn

import pyarrow as pa

from serdes.avro import Decoder, compile_decoder
from serdes.client import RegistryClient
from serdes.errors import DecodeError, DecodeReason, FrameError, RegistryError, SchemaError, SerdeError
from serdes.framing import HEADER_SIZE, split
from serdes.settings import ClientSettings
from spark_udfs.arrays import UNFIT
from spark_udfs.plan import Mode, Plan, reader_type

__all__ = ["BatchDecoder", "FrameRefused", "RegistryNotUsable", "batch_decoder"]

_ERROR_TYPE = pa.struct([("reason", pa.string()), ("schema_id", pa.int32()), ("frame", pa.binary())])

_AVRO = "AVRO"
_MAX_DECODERS = 1000
_PART = 256
"""How many records stand as Python objects at once: few enough to be in the processor's cache when columns are made."""
_UNKNOWN_SCHEMA = 40403
_OUT_OF_RANGE = str(DecodeReason.OUT_OF_RANGE)


class FrameRefused(ValueError):
    """In mode FAILFAST: a frame that cannot be decoded."""


class RegistryNotUsable(RuntimeError):
    """The registry did not answer, or not as a registry: no record is to blame, the task may run again."""


@dataclass(frozen=True, slots=True)
class _Refusal:
    """Why one frame has no value: short for counting, and in full."""

    reason: str
    schema_id: int | None
    message: str


class _Refused(Exception):
    """Carries a refusal out of a look-up."""

    def __init__(self, reason: str, message: str = "") -> None:
        super().__init__(message or reason)
        self.reason = reason


@lru_cache(maxsize=32)
def batch_decoder(plan: Plan) -> "BatchDecoder":
    """This process's decoder for a plan."""
    return BatchDecoder(plan, _client(plan.registry))


@lru_cache(maxsize=8)
def _client(settings: ClientSettings) -> RegistryClient:
    return RegistryClient.from_settings(settings)


class BatchDecoder:
    """Decodes batches by one plan."""

    def __init__(self, plan: Plan, client: RegistryClient) -> None:
        self._plan = plan
        self._client = client
        self._type = reader_type(plan)
        self._decoders: dict[bytes, Decoder] = {}

    def decode(self, frames: pa.Array, origin: Sequence[pa.Array] = ()) -> pa.Array:
        """One value for each frame: as the plan's mode has it, the value itself or a struct of value and error."""
        if not (pa.types.is_binary(frames.type) or pa.types.is_large_binary(frames.type)):
            raise TypeError(f"frames are binary; the column to decode is {frames.type}")
        raw = frames.to_pylist()
        parts: list[pa.Array] = []
        refusals: dict[int, _Refusal] = {}
        for start in range(0, len(raw), _PART):
            part, refused = self._part(raw[start : start + _PART])
            parts.append(part)
            refusals.update((start + index, refusal) for index, refusal in refused.items())
        if refusals and self._plan.mode is Mode.FAILFAST:
            self._fail(refusals, origin)
        values = pa.concat_arrays(parts or [self._type.build([])])
        if self._plan.mode is not Mode.DEADLETTER:
            return values
        return pa.StructArray.from_arrays([values, _errors(raw, refusals)], names=["value", "error"])

    def _part(self, frames: list[bytes | None]) -> tuple[pa.Array, dict[int, _Refusal]]:
        values, refusals = self._values(frames)
        array, unfit = self._array(values)
        for index, message in unfit.items():
            refusals[index] = _Refusal(_OUT_OF_RANGE, _schema_id(frames[index] or b""), message)
        return array, refusals

    def _values(self, frames: list[bytes | None]) -> tuple[list[Any], dict[int, _Refusal]]:
        values: list[Any] = []
        refusals: dict[int, _Refusal] = {}
        append, known = values.append, self._decoders.get
        for frame in frames:
            if frame is None:
                append(None)
                continue
            try:
                decoder = known(frame[:HEADER_SIZE]) or self._learn(frame)
                append(decoder(frame[HEADER_SIZE:]))
            except (DecodeError, FrameError, _Refused) as error:
                refusals[len(values)] = _refusal(frame, error)
                append(None)
        return values, refusals

    def _learn(self, frame: bytes) -> Decoder:
        """The decoder for a header that this process has not met."""
        schema_id, _ = split(frame)
        decoder = self._compile(schema_id)
        if len(self._decoders) >= _MAX_DECODERS:
            self._decoders.clear()
        self._decoders[frame[:HEADER_SIZE]] = decoder
        return decoder

    def _compile(self, schema_id: int) -> Decoder:
        try:
            writer = self._client.get_schema(schema_id)
        except SerdeError as error:
            if isinstance(error, RegistryError) and error.error_code == _UNKNOWN_SCHEMA:
                raise _Refused("unknown schema id") from None
            raise RegistryNotUsable(f"schema id {schema_id} could not be looked up: {error}") from None
        if writer.format != _AVRO:
            return _refusing(f"writer schema is {writer.format}")
        try:
            return compile_decoder(writer.text, self._plan.reader_schema, numeric_times=True, tagged_unions=True)
        except SchemaError as error:
            return _refusing("unusable writer schema", str(error))

    def _array(self, values: list[Any]) -> tuple[pa.Array, dict[int, str]]:
        """The values as one array; when one of them does not fit, each is tried alone to find which."""
        build = self._type.build
        try:
            return build(values), {}
        except UNFIT:
            tried = {index: self._misfit(value) for index, value in enumerate(values)}
        unfit = {index: message for index, message in tried.items() if message is not None}
        return build([None if index in unfit else value for index, value in enumerate(values)]), unfit

    def _misfit(self, value: Any) -> str | None:
        try:
            self._type.build([value])
        except UNFIT as error:
            return str(error)
        return None

    def _fail(self, refusals: dict[int, _Refusal], origin: Sequence[pa.Array]) -> NoReturn:
        index = min(refusals)
        refusal = refusals[index]
        named = zip(
            ("schema id", *self._plan.origin), (refusal.schema_id, *(one[index].as_py() for one in origin)), strict=True
        )
        place = ", ".join(f"{name} {value}" for name, value in named)
        raise FrameRefused(f"a frame cannot be decoded ({place}): {refusal.message}")


def _refusing(reason: str, message: str = "") -> Decoder:
    """A decoder for a writer schema that no frame can be decoded with."""

    def refuse(_: bytes) -> NoReturn:
        raise _Refused(reason, message)

    return refuse


def _refusal(frame: bytes, error: DecodeError | FrameError | _Refused) -> _Refusal:
    reason = str(error.reason)
    # Which types do not fit is the same for all frames of a writer schema: few reasons, worth telling apart.
    if isinstance(error, DecodeError) and reason == DecodeReason.RESOLUTION:
        reason = f"{reason}: {error.detail}"
    return _Refusal(reason, _schema_id(frame), str(error))


def _schema_id(frame: bytes) -> int | None:
    try:
        return split(frame[:HEADER_SIZE])[0]
    except FrameError:
        return None


def _errors(frames: list[bytes | None], refusals: dict[int, _Refusal]) -> pa.Array:
    if not refusals:
        return pa.nulls(len(frames), _ERROR_TYPE)
    errors: list[dict[str, Any] | None] = [None] * len(frames)
    for index, refusal in refusals.items():
        errors[index] = {"reason": refusal.reason, "schema_id": refusal.schema_id, "frame": frames[index]}
    return pa.array(errors, _ERROR_TYPE)
