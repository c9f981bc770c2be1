"""The Python worker's part of an encode: an Arrow array of values in, an Arrow array of frames out.

A null value is a null frame (a tombstone). If a row does not fit the schema, only that row is affected: the plan's mode
says what it becomes. If the column does not fit, because its type is wrong or a field is missing, the task fails.

Rules of this file: no pyspark session; a format is a function from rows to payloads.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache, partial
from typing import Any, NoReturn, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from strata.serdes import arrow
from strata.serdes.arrow.layout import sparse
from strata.serdes.errors import EncodeError
from strata.serdes.functions import Encode
from strata.serdes.model import AVRO, JSON
from strata.spark_udfs.arguments import Mode, shown_origin
from strata.spark_udfs.encoding.arrow_values import values_of
from strata.spark_udfs.encoding.plan import EncodePlan

__all__ = ["RowEncoder", "RowRefused", "row_encoder"]

_compute: Any = pc  # pyarrow creates these functions at run time, so they have no types
_ERROR_TYPE = pa.struct([("reason", pa.string()), ("path", pa.string())])
_PART = 256
"""How many rows become Python objects at a time, which then stay in the processor's cache; and how many are encoded
together after some row of the batch did not fit."""

Written: TypeAlias = tuple[pa.Array, dict[int, EncodeError]]
"""Frames, null for rows that do not fit, and the errors by row."""


class RowRefused(ValueError):
    """A row that cannot be encoded, in mode FAILFAST."""


@lru_cache(maxsize=32)
def row_encoder(plan: EncodePlan) -> "RowEncoder":
    """Return this process's encoder for a plan."""
    return RowEncoder(plan)


class RowEncoder:
    """An encoder of batches, by one plan."""

    def __init__(self, plan: EncodePlan) -> None:
        self._plan = plan
        self._writer = cache(partial(_writer, plan))

    def encode(self, values: pa.Array, origin: Sequence[pa.Array] = ()) -> pa.Array:
        """Return one frame for each value.

        Args:
            values: the rows to encode.
            origin: one array for each column of the plan's `origin`, for the error of FAILFAST.

        Returns:
            A binary array; in mode DEADLETTER, structs of frame and error.

        Raises:
            EncodeError: If the column does not fit the schema.
            RowRefused: If a row does not fit the schema, in mode FAILFAST.
        """
        kept = _compute.indices_nonzero(values.is_valid())
        written, refused = self._writer(values.type)(values.take(kept) if values.null_count else values)
        refusals = {kept[row].as_py(): error for row, error in refused.items()}
        if refusals and self._plan.mode is Mode.FAILFAST:
            self._fail(refusals, origin)
        frames = _placed(written, values).cast(pa.binary())
        if self._plan.mode is not Mode.DEADLETTER:
            return frames
        return pa.StructArray.from_arrays([frames, _errors(len(values), refusals)], names=["frame", "error"])

    def _fail(self, refusals: Mapping[int, EncodeError], origin: Sequence[pa.Array]) -> NoReturn:
        row = min(refusals)
        place = ", ".join(shown_origin(self._plan.origin, origin, row))
        error = EncodeError(refusals[row].detail, path=refusals[row].path)
        raise RowRefused(f"a row cannot be encoded{f' ({place})' if place else ''}: {error}")


def _writer(plan: EncodePlan, arrow_type: pa.DataType) -> Callable[[pa.Array], Written]:
    """Return the function that writes frames from columns of a type."""
    if plan.rules is not None:
        return _with_rules(plan, arrow_type)
    if plan.target.schema.format == AVRO:
        return _avro(plan)
    if plan.target.schema.format == JSON:
        from strata.spark_udfs.encoding.json_payloads import json_writer

        return _row_by_row(plan, json_writer(plan, arrow_type))
    from strata.spark_udfs.encoding.protobuf_payloads import protobuf_writer

    return _row_by_row(plan, protobuf_writer(plan, arrow_type))


def _with_rules(plan: EncodePlan, arrow_type: pa.DataType) -> Callable[[pa.Array], Written]:
    from strata.spark_udfs.encoding.ruled_rows import ruled_payloads

    plain = _writer(replace(plan, rules=None, prefix=b"", validate=False), arrow_type)  # rules may make a value valid
    ruled, prefix = ruled_payloads(plan), plan.prefix

    def write(rows: pa.Array) -> Written:
        payloads, refused = plain(rows)
        frames: list[bytes | None] = payloads.to_pylist()
        for row, payload in enumerate(frames):
            if payload is None:
                continue
            try:
                frames[row] = prefix + ruled(payload)
            except EncodeError as error:
                frames[row] = None
                refused[row] = error
        return pa.array(frames, pa.large_binary()), refused

    return write


def _avro(plan: EncodePlan) -> Callable[[pa.Array], Written]:
    encoder = arrow.BatchEncoder(plan.target.schema.text, prefix=plan.prefix)

    def write(rows: pa.Array) -> Written:
        try:
            return encoder.encode(rows), {}
        except EncodeError as error:
            if error.row is None:
                raise
        frames: list[pa.Array] = []
        refused: dict[int, EncodeError] = {}
        for start in range(0, len(rows), _PART):
            _write_some(encoder, rows.slice(start, _PART), start, frames, refused)
        return pa.concat_arrays(frames), refused

    return write


def _write_some(
    encoder: arrow.BatchEncoder, rows: pa.Array, start: int, frames: list[pa.Array], refused: dict[int, EncodeError]
) -> None:
    """Encode rows, skipping those that do not fit."""
    try:
        frames.append(encoder.encode(rows))
    except EncodeError as error:
        if error.row is None:
            raise
        _write_some(encoder, rows.slice(0, error.row), start, frames, refused)
        frames.append(pa.nulls(1, pa.large_binary()))
        refused[start + error.row] = error
        after = error.row + 1
        _write_some(encoder, rows.slice(after), start + after, frames, refused)


def _row_by_row(plan: EncodePlan, payload: Encode) -> Callable[[pa.Array], Written]:
    prefix = plan.prefix

    def write(rows: pa.Array) -> Written:
        frames: list[bytes | None] = []
        refused: dict[int, EncodeError] = {}
        for start in range(0, len(rows), _PART):
            for row, value in enumerate(values_of(rows.slice(start, _PART)), start):
                try:
                    frames.append(prefix + payload(value))
                except EncodeError as error:
                    frames.append(None)
                    refused[row] = error
        return pa.array(frames, pa.large_binary()), refused

    return write


def _placed(frames: pa.Array, values: pa.Array) -> pa.Array:
    """Return the frames of the non-null values, with nulls in the other places."""
    if not values.null_count:
        return frames
    there = values.is_valid()
    numbers = _compute.subtract(_compute.cumulative_sum(there.cast(pa.int64())), 1)
    return frames.take(_compute.if_else(there, numbers, None))


def _errors(count: int, refusals: Mapping[int, EncodeError]) -> pa.Array:
    return sparse(
        count, {row: {"reason": refusal.detail, "path": refusal.path} for row, refusal in refusals.items()}, _ERROR_TYPE
    )
