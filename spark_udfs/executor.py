"""What runs in a Python worker: an Arrow array of frames in, an Arrow array of values out.

A worker keeps what it has learned for as long as it lives: one registry client for each registry, one program for each
writer schema. A writer schema that it meets for the first time it looks up itself, so that a version registered while
a query runs is decoded by that query.

A frame that is damaged, or whose id the registry does not know, is a matter of that one record: the plan's mode says
what becomes of it. A registry that does not answer is none: the task fails, and runs again from its checkpoint.

Rules of this file: no pyspark session, no pandas; the values are the business of `serdes.arrow`.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NoReturn

import pyarrow as pa

from serdes import arrow
from serdes.arrow import ColumnTooLarge, Refusal, Style, read_schema
from serdes.avro_schema import Node
from serdes.client import RegistryClient, Schema
from serdes.errors import RegistryError, SchemaError, SerdeError
from serdes.settings import ClientSettings
from spark_udfs.plan import Mode, Plan

__all__ = ["BatchDecoder", "FrameRefused", "RegistryNotUsable", "batch_decoder"]

_ERROR_TYPE = pa.struct([("reason", pa.string()), ("schema_id", pa.int32()), ("frame", pa.binary())])
_UNKNOWN_SCHEMA = 40403


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


class BatchDecoder:
    """Decodes batches by one plan."""

    def __init__(self, plan: Plan, client: RegistryClient) -> None:
        self._plan = plan
        self._decoder = arrow.BatchDecoder(plan.reader_schema, _writers(client), style=Style.SPARK)

    def decode(self, frames: pa.Array, origin: Sequence[pa.Array] = ()) -> pa.Array:
        """One value for each frame: as the plan's mode has it, the value itself or a struct of value and error."""
        try:
            rows = self._decoder.rows(frames)
        except ColumnTooLarge as error:
            raise ColumnTooLarge(f"{error}: lower spark.sql.execution.arrow.maxRecordsPerBatch") from None
        if rows.refusals and self._plan.mode is Mode.FAILFAST:
            self._fail(frames, rows.refusals, origin)
        values = self._decoder.array(rows)
        if self._plan.mode is not Mode.DEADLETTER:
            return values
        return pa.StructArray.from_arrays([values, _errors(frames, rows.refusals)], names=["value", "error"])

    def _fail(self, frames: pa.Array, refusals: Mapping[int, Refusal], origin: Sequence[pa.Array]) -> NoReturn:
        index = min(refusals)
        refusal = refusals[index]
        named = zip(
            ("schema id", *self._plan.origin), (refusal.schema_id, *(one[index].as_py() for one in origin)), strict=True
        )
        place = ", ".join(f"{name} {value}" for name, value in named)
        why = self._decoder.explain(frames[index].as_py()) or refusal.reason
        raise FrameRefused(f"a frame cannot be decoded ({place}): {why}")


def _writers(client: RegistryClient) -> Callable[[int], Schema | Node]:
    """Writer schemas by id, with all that they refer to; what is no record's fault is told as such."""

    def find(schema_id: int) -> Schema | Node:
        try:
            return read_schema(client, client.get_schema(schema_id))
        except SchemaError:
            raise
        except SerdeError as error:
            if isinstance(error, RegistryError) and error.error_code == _UNKNOWN_SCHEMA:
                raise
            raise RegistryNotUsable(f"schema id {schema_id} could not be looked up: {error}") from None

    return find


def _errors(frames: pa.Array, refusals: Mapping[int, Refusal]) -> pa.Array:
    if not refusals:
        return pa.nulls(len(frames), _ERROR_TYPE)
    errors: list[dict[str, Any] | None] = [None] * len(frames)
    for index, refusal in refusals.items():
        frame = frames[index].as_py()
        errors[index] = {"reason": refusal.reason, "schema_id": refusal.schema_id, "frame": frame}
    return pa.array(errors, _ERROR_TYPE)
