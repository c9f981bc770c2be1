"""What runs in a Python worker: an Arrow array of frames in, an Arrow array of values out.

A worker keeps what it has learned for as long as it lives: one registry client for each registry, one program for each
writer schema. A writer schema that it meets for the first time it looks up itself, so that a version registered while
a query runs is decoded by that query.

A frame that is damaged, or whose id the registry does not know, is a matter of that one record: the plan's mode says
what becomes of it. A registry that does not answer is none: the task fails, and runs again from its checkpoint.

Rules of this file: no pyspark session, no pandas; the values are the business of `serdes.arrow`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NoReturn
from uuid import UUID

import pyarrow as pa

from serdes import arrow
from serdes.arrow import ColumnTooLarge, Refusal, Style, read_schema
from serdes.arrow.programs import UNKNOWN
from serdes.avro_schema import Node
from serdes.client import RegistryClient, Schema
from serdes.errors import RegistryError, SchemaError, SerdeError
from serdes.settings import ClientSettings
from spark_udfs.names import Name, Names, has_guids, is_binary
from spark_udfs.plan import Mode, Plan

__all__ = ["BatchDecoder", "FrameRefused", "RegistryNotUsable", "batch_decoder"]

_ERROR_TYPE = pa.struct([("reason", pa.string()), ("schema_id", pa.int32()), ("frame", pa.binary())])
_UNKNOWN_SCHEMA = 40403
_UNKNOWN_GUID = "unknown schema guid"
_MAX_NAMES = 100_000


class FrameRefused(ValueError):
    """In mode FAILFAST: a frame that cannot be decoded."""


class RegistryNotUsable(RuntimeError):
    """The registry did not answer, or not as a registry: no record is to blame, the task may run again."""


@lru_cache(maxsize=32)
def batch_decoder(plan: Plan) -> "BatchDecoder":
    """This process's decoder for a plan."""
    return BatchDecoder(plan, _client(plan.registry))


@lru_cache(maxsize=8)
def _client(settings: ClientSettings) -> RegistryClient:
    return RegistryClient.from_settings(settings)


@dataclass(frozen=True, slots=True)
class _Batch:
    """Frames as the decoder takes them; with names their ids are numbers of names.

    Attributes:
        decoder: what decodes them.
        sent: the bytes as they came.
        frames: what becomes of them, null where `refused` says why.
        refused: reasons by row.
        names: what numbers stand for.
    """

    decoder: arrow.BatchDecoder
    sent: pa.Array
    frames: pa.Array
    refused: Mapping[int, str]
    names: Names | None

    def refusals(self, found: Mapping[int, Refusal]) -> dict[int, "_Refusal"]:
        """Why rows have no value."""
        refusals = {row: _Refusal(reason, None) for row, reason in self.refused.items()}
        for row, one in found.items():
            name: Name | None = one.schema_id
            if self.names is not None and one.schema_id is not None:
                name = self.names.name(one.schema_id)
            is_unknown = isinstance(name, UUID) and one.reason == UNKNOWN[0]
            refusals[row] = _Refusal(_UNKNOWN_GUID if is_unknown else one.reason, name)
        return refusals

    def explain(self, row: int, refusal: "_Refusal") -> str:
        """The refusal of a row in full."""
        frame = self.frames[row].as_py()
        known = frame is not None and refusal.reason != _UNKNOWN_GUID
        return str((self.decoder.explain(frame) if known else None) or refusal.reason)


@dataclass(frozen=True, slots=True)
class _Refusal:
    """Why a frame has no value, and the schema that it names, where that can be read."""

    reason: str
    schema: Name | None

    @property
    def schema_id(self) -> int | None:
        return self.schema if isinstance(self.schema, int) else None


class BatchDecoder:
    """Decodes batches by one plan."""

    def __init__(self, plan: Plan, client: RegistryClient) -> None:
        self._plan = plan
        self._client = client
        self._decoder = self._decoder_by(lambda schema_id: schema_id)
        self._names = Names()
        self._by_name = self._decoder_by(self._names.name)

    def decode(self, frames: pa.Array, origin: Sequence[pa.Array] = ()) -> pa.Array:
        """One value for each frame: as the plan's mode has it, the value itself or a struct of value and error.

        Frames may be structs of the bytes and of what a header of the record says of their schema.
        """
        batch = self._batch(frames)
        try:
            rows = batch.decoder.rows(batch.frames)
        except ColumnTooLarge as error:
            raise ColumnTooLarge(f"{error}: lower spark.sql.execution.arrow.maxRecordsPerBatch") from None
        refusals = batch.refusals(rows.refusals)
        if refusals and self._plan.mode is Mode.FAILFAST:
            self._fail(batch, refusals, origin)
        values = batch.decoder.array(rows)
        if self._plan.mode is not Mode.DEADLETTER:
            return values
        return pa.StructArray.from_arrays([values, _errors(batch.sent, refusals)], names=["value", "error"])

    def _batch(self, frames: pa.Array) -> _Batch:
        value, header = frames.flatten() if pa.types.is_struct(frames.type) else (frames, None)
        if (header is None or header.null_count == len(header)) and not (is_binary(value) and has_guids(value)):
            return _Batch(self._decoder, value, value, {}, None)
        if len(self._names) >= _MAX_NAMES:
            self._names = Names()
            self._by_name = self._decoder_by(self._names.name)
        renamed = self._names.rename(value, header)
        return _Batch(self._by_name, value, renamed.frames, renamed.refused, self._names)

    def _decoder_by(self, name: Callable[[int], Name]) -> arrow.BatchDecoder:
        """A decoder of frames whose ids are what `name` makes schemas of."""
        find = _writers(self._client)
        return arrow.BatchDecoder(self._plan.reader_schema, lambda number: find(name(number)), style=Style.SPARK)

    def _fail(self, batch: _Batch, refusals: Mapping[int, _Refusal], origin: Sequence[pa.Array]) -> NoReturn:
        row = min(refusals)
        refusal = refusals[row]
        named = zip(self._plan.origin, (one[row].as_py() for one in origin), strict=True)
        place = ", ".join([_told(refusal.schema), *(f"{name} {value}" for name, value in named)])
        raise FrameRefused(f"a frame cannot be decoded ({place}): {batch.explain(row, refusal)}")


def _told(name: Name | None) -> str:
    return f"schema guid {name}" if isinstance(name, UUID) else f"schema id {name}"


def _writers(client: RegistryClient) -> Callable[[Name], Schema | Node]:
    """Writer schemas by name, with all that they refer to; what is no record's fault is told as such."""

    def find(name: Name) -> Schema | Node:
        try:
            found = client.get_schema_by_guid(name) if isinstance(name, UUID) else client.get_schema(name)
            return read_schema(client, found)
        except SchemaError:
            raise
        except SerdeError as error:
            if isinstance(error, RegistryError) and error.error_code == _UNKNOWN_SCHEMA:
                raise
            raise RegistryNotUsable(f"{_told(name)} could not be looked up: {error}") from None

    return find


def _errors(frames: pa.Array, refusals: Mapping[int, _Refusal]) -> pa.Array:
    if not refusals:
        return pa.nulls(len(frames), _ERROR_TYPE)
    errors: list[dict[str, Any] | None] = [None] * len(frames)
    for row, refusal in refusals.items():
        errors[row] = {"reason": refusal.reason, "schema_id": refusal.schema_id, "frame": frames[row].as_py()}
    return pa.array(errors, _ERROR_TYPE)
