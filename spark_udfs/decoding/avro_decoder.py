"""The Python worker's part of an Avro decode: an Arrow array of frames in, an Arrow array of values out.

A worker keeps one registry client per registry and one program per writer schema for its lifetime. It looks a writer
schema up when it first meets its id, so a query decodes versions that are registered while it runs.

If a frame is damaged, or the registry does not know its id, only that record is affected: the plan's mode says what it
becomes. If the registry does not answer, the task fails and runs again from its checkpoint.

Rules of this file: no pyspark session, no pandas; `strata.serdes.arrow` handles the values.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache

import pyarrow as pa

from strata.serdes import arrow
from strata.serdes.arrow import ColumnTooLarge, Style, read_schema
from strata.serdes.avro.schema import Node
from strata.serdes.client import RegistryClient, Schema
from strata.serdes.framing import SchemaName, kind_of
from strata.spark_udfs.decoding.headers import records
from strata.spark_udfs.decoding.plan import DecodePlan
from strata.spark_udfs.decoding.refusals import Refusal, finish
from strata.spark_udfs.decoding.writer_schemas import client_of, find_schema, reading_references

__all__ = ["AvroDecoder", "avro_decoder"]


@lru_cache(maxsize=32)
def avro_decoder(plan: DecodePlan) -> "AvroDecoder":
    """Return this process's decoder for a plan."""
    return AvroDecoder(plan, client_of(plan.registry))


class AvroDecoder:
    """A decoder of batches of Avro frames, by one plan."""

    def __init__(self, plan: DecodePlan, client: RegistryClient) -> None:
        self._plan = plan
        self._decoder = arrow.BatchDecoder(
            plan.reader_schema, _writers(client), style=Style.SPARK, members_by_type=plan.members_by_type
        )

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
        value, header = records(frames)
        try:
            rows = self._decoder.rows(value, header)
        except ColumnTooLarge as error:
            raise ColumnTooLarge(f"{error}: lower spark.sql.execution.arrow.maxRecordsPerBatch") from None
        refusals = {row: Refusal(refusal.reason, refusal.schema) for row, refusal in rows.refusals.items()}

        def values() -> pa.Array:
            return self._decoder.array(rows)

        def explain(row: int) -> str:
            reason = refusals[row].reason
            if reason == f"unknown {kind_of(refusals[row].schema)}":
                return reason
            headed = None if header is None else header[row].as_py()
            return str(self._decoder.explain(value[row].as_py(), headed) or reason)

        return finish(self._plan, values, value, refusals, origin, explain)


def _writers(client: RegistryClient) -> Callable[[SchemaName], Schema | Node]:
    """Return a look-up of writer schemas with references; it raises RegistryNotUsable if no record is at fault."""

    def find(name: SchemaName) -> Schema | Node:
        schema = find_schema(client, name)
        with reading_references(name):
            return read_schema(client, schema)

    return find
