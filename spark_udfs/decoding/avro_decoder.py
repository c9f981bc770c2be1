"""The Python worker's part of an Avro decode: an Arrow array of frames in, an Arrow array of values out.

A worker keeps one registry client per registry and one program per writer schema for its lifetime. It looks a writer
schema up when it first meets its id, so a query decodes versions that are registered while it runs.

If a frame is damaged, or the registry does not know its id, only that record is affected: the plan's mode says what it
becomes. If the registry does not answer, the task fails and runs again from its checkpoint.

Rules of this file: no pyspark session, no pandas; `strata.serdes.arrow` handles the values.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from uuid import UUID

import pyarrow as pa

from strata.serdes import arrow
from strata.serdes.arrow import ColumnTooLarge, Style, read_schema
from strata.serdes.arrow.program_cache import UNKNOWN
from strata.serdes.avro.schema import Node
from strata.serdes.client import RegistryClient, Schema
from strata.spark_udfs.decoding.plan import DecodePlan
from strata.spark_udfs.decoding.refusals import Refusal, finish
from strata.spark_udfs.decoding.schema_names import Name, Names, has_guids, records
from strata.spark_udfs.decoding.writer_schemas import UNKNOWN_GUID, client_of, find_schema, reading_references

__all__ = ["AvroDecoder", "avro_decoder"]

_MAX_NAMES = 100_000


@lru_cache(maxsize=32)
def avro_decoder(plan: DecodePlan) -> "AvroDecoder":
    """Return this process's decoder for a plan."""
    return AvroDecoder(plan, client_of(plan.registry))


@dataclass(frozen=True, slots=True)
class _Batch:
    """Frames in the form that the decoder takes; with `names`, their ids are numbers of names.

    Attributes:
        decoder: the decoder for these frames.
        sent: the bytes as they came.
        frames: the frames to decode, null for the rows in `refused`.
        refused: reasons by row.
        names: what the numbers mean; None if they are schema ids.
    """

    decoder: arrow.BatchDecoder
    sent: pa.Array
    frames: pa.Array
    refused: Mapping[int, str]
    names: Names | None

    def refusals(self, found: Mapping[int, arrow.Refusal]) -> dict[int, Refusal]:
        """Return why rows have no value."""
        refusals = {row: Refusal(reason, None) for row, reason in self.refused.items()}
        for row, one in found.items():
            name: Name | None = one.schema_id
            if self.names is not None and one.schema_id is not None:
                name = self.names.name(one.schema_id)
            has_guid = isinstance(name, UUID) and one.reason == UNKNOWN[0]
            refusals[row] = Refusal(UNKNOWN_GUID if has_guid else one.reason, name)
        return refusals

    def explain(self, row: int, refusal: Refusal) -> str:
        """Return the full reason of a row's refusal."""
        frame = self.frames[row].as_py()
        known = frame is not None and refusal.reason != UNKNOWN_GUID
        return str((self.decoder.explain(frame) if known else None) or refusal.reason)


class AvroDecoder:
    """A decoder of batches of Avro frames, by one plan."""

    def __init__(self, plan: DecodePlan, client: RegistryClient) -> None:
        self._plan = plan
        self._client = client
        self._decoder = self._decoder_by(lambda schema_id: schema_id)
        self._names = Names()
        self._by_name = self._decoder_by(self._names.name)

    def decode(self, frames: pa.Array, origin: Sequence[pa.Array] = ()) -> pa.Array:
        """Return one value for each frame.

        Args:
            frames: a binary array, or structs of the bytes and the header that names their schema.
            origin: one array for each column of the plan's `origin`, for the error of FAILFAST.

        Returns:
            The values; in mode DEADLETTER, structs of value and error.

        Raises:
            ColumnTooLarge: If a column of the batch exceeds what Arrow counts in 32 bits.
            FrameRefused: If a frame cannot be decoded, in mode FAILFAST.
            RegistryNotUsable: If a schema could not be looked up.
            TypeError: If the column holds no frames.
        """
        batch = self._batch(frames)
        try:
            rows = batch.decoder.rows(batch.frames)
        except ColumnTooLarge as error:
            raise ColumnTooLarge(f"{error}: lower spark.sql.execution.arrow.maxRecordsPerBatch") from None
        refusals = batch.refusals(rows.refusals)

        def values() -> pa.Array:
            return batch.decoder.array(rows)

        def explain(row: int) -> str:
            return batch.explain(row, refusals[row])

        return finish(self._plan, values, batch.sent, refusals, origin, explain)

    def _batch(self, frames: pa.Array) -> _Batch:
        value, header = records(frames)
        if (header is None or header.null_count == len(header)) and not has_guids(value):
            return _Batch(self._decoder, value, value, {}, None)
        if len(self._names) >= _MAX_NAMES:
            self._names = Names()
            self._by_name = self._decoder_by(self._names.name)
        renamed = self._names.rename(value, header)
        return _Batch(self._by_name, value, renamed.frames, renamed.refused, self._names)

    def _decoder_by(self, name: Callable[[int], Name]) -> arrow.BatchDecoder:
        """Return a decoder for frames whose ids `name` turns into names."""
        find = _writers(self._client)
        return arrow.BatchDecoder(self._plan.reader_schema, lambda number: find(name(number)), style=Style.SPARK)


def _writers(client: RegistryClient) -> Callable[[Name], Schema | Node]:
    """Return a look-up of writer schemas with references; it raises RegistryNotUsable if no record is at fault."""

    def find(name: Name) -> Schema | Node:
        schema = find_schema(client, name)
        with reading_references(name):
            return read_schema(client, schema)

    return find
