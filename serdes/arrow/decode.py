"""The batch decoder: registry frames to Arrow.

    batch = decode_batch(frames, reader_schema, writer_schemas=client)

The frames may have any writer schemas of the registry, in any order, and name them by id, by GUID (in a header too) or
as AWS Glue does. A frame that is damaged, or cannot be read with the reader schema, becomes a row of nulls with its
reason in the column `error`; other rows are not affected.

Rules of this file: it passes frames, programs and memory to the decoding VM, and reports the results.
"""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
import pyarrow as pa

from strata.serdes.arrow import operations as op
from strata.serdes.arrow import vm_state as vm
from strata.serdes.arrow.columns import Columns
from strata.serdes.arrow.entry_points import run
from strata.serdes.arrow.layout import ERROR_TYPE, Style, layout, sparse
from strata.serdes.arrow.names import Names, has_other_names
from strata.serdes.arrow.program_cache import UNKNOWN, Programs, Snapshot, WriterSchemas, finder
from strata.serdes.arrow.source import Frames, Source, binary, source_of
from strata.serdes.avro.decoder import DEFAULT_LIMITS, DecoderOptions, Limits, compile_decoder
from strata.serdes.avro.encoder import compile_encoder
from strata.serdes.avro.projection import project, write
from strata.serdes.avro.schema import Node, Record, parse
from strata.serdes.errors import DecodeError, DecodeReason, FrameError, SchemaError
from strata.serdes.framing import HEADER_SIZE, SchemaName, join, kind_of, open_frame, split

__all__ = ["BatchDecoder", "Decoded", "Frames", "Limits", "Refusal", "decode_batch"]

_MAX_NAMES = 100_000
# The statuses of the VM that refuse a payload have the names of the reasons.
_REASONS = {getattr(op, reason.name): reason for reason in DecodeReason if hasattr(op, reason.name)}


@dataclass(frozen=True, slots=True)
class Refusal:
    """The reason why a frame has no value.

    Attributes:
        reason: a short reason. There are few distinct ones, so they can be counted; a schema resolution failure also
            names the types.
        schema: the name of the schema in the frame; None if it cannot be read.
        position: the byte offset in the payload near which reading stopped; None if the bytes are not at fault.
    """

    reason: str
    schema: SchemaName | None = None
    position: int | None = None

    @property
    def schema_id(self) -> int | None:
        """Return the schema id; None if the frame has none or cannot be read."""
        return self.schema if isinstance(self.schema, int) else None


@dataclass(frozen=True, slots=True)
class Decoded:
    """A decoded batch: the columns, from which arrays are made, and the refusals by row."""

    columns: Columns
    refusals: dict[int, Refusal]


class _ByName:
    """Programs by the numbers of names, for batches in which schemas are not named by id only."""

    def __init__(
        self, programs: Callable[[Callable[[int], object]], Programs], find: Callable[[SchemaName], object]
    ) -> None:
        self.names = Names()
        self.programs = programs(lambda number: find(self.names.name(number)))


class BatchDecoder:
    """A decoder of batches into one reader schema. It caches programs; threads may share it.

    Args:
        reader_schema: the text of the reader schema.
        writer_schemas: the source of writer schemas: a client, a mapping by schema id, or a function that raises
            LookupError for an unknown id; see `WriterSchemas` for frames that name schemas otherwise.
        columns: the fields of the reader schema to decode, in this order; the others are skipped. None means all.
        limits: bounds for hostile payloads.
        style: whether columns have Arrow's or Spark's types.
        members_by_type: whether the members of a union are named by their types, instead of `member0`, `member1`, ….

    Raises:
        SchemaError: If the reader schema is not a valid Avro schema.
        UnsupportedSchema: If Arrow has no type for a part of the schema; the error names the field.
        ValueError: If `columns` are not fields of the schema.
    """

    def __init__(
        self,
        reader_schema: str,
        writer_schemas: WriterSchemas,
        *,
        columns: Sequence[str] | None = None,
        limits: Limits = DEFAULT_LIMITS,
        style: Style = Style.ARROW,
        members_by_type: bool = False,
    ) -> None:
        schema = parse(reader_schema)
        self._reader_schema = write(schema if columns is None else project(schema, columns))
        reader = parse(self._reader_schema)
        self._is_record = isinstance(reader, Record)
        self._root = layout(reader, style, members_by_type=members_by_type)
        self._make = partial(Programs, reader, self._root, style)
        self._find = finder(writer_schemas)
        self._programs = self._make(self._find)
        self._by_name = _ByName(self._make, self._find)
        self._limits = limits
        self._met: tuple[int, dict[int, int]] | None = None
        self._last: tuple[Node, Callable[[bytes], object]] | None = None

    def decode(self, frames: Frames, headers: Frames | None = None) -> pa.RecordBatch:
        """Return a record batch with one row for each frame.

        Args:
            frames: the frames, in the registry's wire format.
            headers: for each frame, the record header that names its schema, or null.

        Returns:
            A column for each field of a record, or else the column `value`; and the column `error`, a struct<reason:
            string, schema_id: int32, position: int32> that is null if the frame was decoded.

        Raises:
            SerdeError: If the registry did not answer; no frame is at fault.
            ColumnTooLarge: If a column exceeds what Arrow counts in 32 bits.
            TypeError: If the frames are an Arrow column that is not binary.
            ValueError: If a field of the reader schema is called `error`.
        """
        decoded = self.rows(frames, headers)
        root = self._root
        if self._is_record:
            arrays = {child.name: decoded.columns.array(child) for child in root.children}
        else:
            arrays = {"value": decoded.columns.array(root)}
        if "error" in arrays:
            raise ValueError("the reader schema has a field `error`: choose other columns")
        arrays["error"] = _errors(decoded)
        return pa.RecordBatch.from_arrays(list(arrays.values()), names=list(arrays))

    def rows(self, frames: Frames, headers: Frames | None = None) -> Decoded:
        """Return the decoded rows, before they become a record batch.

        Args:
            frames: the frames, in the registry's wire format.
            headers: for each frame, the record header that names its schema, or null.

        Raises:
            SerdeError: If the registry did not answer; no frame is at fault.
            ColumnTooLarge: If a column exceeds what Arrow counts in 32 bits.
            TypeError: If the frames are an Arrow column that is not binary.
        """
        array, header = binary(frames), None if headers is None else binary(headers)
        source = source_of(array)
        columns = Columns(self._root, len(array), self._expected(source))
        if has_other_names(array, header):
            refusals = self._decode_named(array, header, columns)
        else:
            job = _Job(self, self._programs, columns)
            job.decode(source, 0)
            refusals = job.refusals(array)
        if source.last:
            self._met = (source.last, columns.sizes())
        return Decoded(columns, refusals)

    def _decode_named(self, array: pa.Array, header: pa.Array | None, columns: Columns) -> dict[int, Refusal]:
        if len(self._by_name.names) >= _MAX_NAMES:
            self._by_name = _ByName(self._make, self._find)
        names = self._by_name.names
        job = _Job(self, self._by_name.programs, columns)
        refusals: dict[int, Refusal] = {}
        for part in names.rename(array, header):
            job.decode(source_of(part.frames, part.start), part.start)
            refusals |= {row: Refusal(reason) for row, reason in part.refused.items()}
        for row, refusal in job.refusals(array).items():
            name = None if refusal.schema_id is None else names.name(refusal.schema_id)
            reason = f"unknown {kind_of(name)}" if refusal.reason == UNKNOWN[0] else refusal.reason
            refusals[row] = replace(refusal, reason=reason, schema=name)
        return refusals

    def _expected(self, source: Source) -> dict[int, int]:
        """Estimate the room for columns from the last batch, at most the bytes of the frames."""
        if self._met is None:
            return {}
        rows, sizes = self._met
        size = source.size
        return {number: min(taken * source.last // rows * 9 // 8 + 64, size) for number, taken in sizes.items()}

    def array(self, decoded: Decoded) -> pa.Array:
        """Return decoded rows as one array, of structs if the reader schema is a record."""
        return decoded.columns.array(self._root)

    def explain(self, frame: bytes, header: bytes | None = None) -> DecodeError | FrameError | SchemaError | None:
        """Return the full error of the Avro deserializer for a frame; None if it decodes the frame.

        A DecodeError has the path of the field. A frame of the same schema must have been decoded before.
        """
        try:
            opened = open_frame(frame, header)
            number = self._by_name.names.number(opened.schema)
            if number is not None:
                self._value(self._by_name.programs.writer(number), opened.payload)
            elif isinstance(opened.schema, int):
                self._value(self._programs.writer(opened.schema), opened.payload)
        except (DecodeError, FrameError, SchemaError) as error:
            return error
        return None

    def _value(self, writer: Node, payload: bytes) -> object:
        last = self._last
        if last is None or last[0] is not writer:
            options: DecoderOptions = {"limits": self._limits, "numeric_times": True, "tagged_unions": True}
            last = self._last = writer, compile_decoder(writer, self._reader_schema, **options)
        return last[1](payload)

    @cached_property
    def _encode(self) -> Callable[[object], bytes]:
        return compile_encoder(self._reader_schema)


class _Job:
    """The decoding of one batch."""

    def __init__(self, decoder: BatchDecoder, programs: Programs, columns: Columns) -> None:
        self.columns = columns
        self._decoder = decoder
        self._programs = programs
        self._reasons = np.empty((columns.rows, vm.NOTE), np.int64)
        self._others: dict[int, Refusal] = {}
        self._limbs = np.zeros(vm.LIMB_COUNT, np.int64)
        self._state = np.zeros(vm.ENTRIES, np.int64)
        self._set(
            {
                vm.COLUMNS: columns.table.ctypes.data,
                vm.REASONS: self._reasons.ctypes.data,
                vm.LIMBS: self._limbs.ctypes.data,
                vm.SEED: secrets.randbits(62),
                vm.MAX_DEPTH: decoder._limits.max_depth,
                vm.MAX_IDLE: decoder._limits.max_weightless,
            }
        )

    def _set(self, entries: dict[int, int]) -> None:
        for entry, number in entries.items():
            self._state[entry] = number

    def decode(self, source: Source, first: int, own: tuple[Snapshot, int] | None = None) -> None:
        """Decode rows from `first` to the source's last; with `own`, use that program for all schema ids."""
        state = self._state
        snapshot = self._programs.begin() if own is None else own[0]
        row = first
        while True:
            state[vm.ROW] = row
            stop = self._run(snapshot, source, None if own is None else own[1])
            row = int(state[vm.ROW])
            if stop == op.DONE:
                return
            if stop == op.NEEDS_ROOM:
                in_bytes = bool(state[vm.NEEDS_BYTES])
                self.columns.grow(int(state[vm.WHO]), int(state[vm.NEED]), in_bytes=in_bytes)
            elif stop == op.NEEDS_PROGRAM:
                snapshot = self._programs.learn(int(state[vm.WHO]))
            else:
                self._rewrite(source, row)
                row += 1

    def _run(self, snapshot: Snapshot, source: Source, start: int | None) -> int:
        ids, starts = snapshot.ids, snapshot.starts
        if start is not None:
            ids, starts = np.zeros(1, np.int64), np.array([start], np.int64)
        stack = np.empty(snapshot.stack_size * (self._decoder._limits.max_depth + 2), np.int64)
        self._set(
            {
                vm.CODE: snapshot.code.ctypes.data,
                vm.TABLE: snapshot.table.ctypes.data,
                vm.POOL: snapshot.pool.ctypes.data,
                vm.IDS: ids.ctypes.data,
                vm.STARTS: starts.ctypes.data,
                vm.MASK: len(ids) - 1,
                vm.STACK: stack.ctypes.data,
                vm.STACK_SIZE: stack.nbytes,
                vm.FRAMES: source.address,
                vm.READABLE: source.address + source.size,
                vm.OFFSETS: source.offsets.ctypes.data,
                vm.PRESENT: 0 if source.present is None else source.present.ctypes.data,
                vm.BASE: source.base,
                vm.LAST: source.last,
            }
        )
        answer: int = run(self._state.ctypes.data)
        return answer

    def _rewrite(self, source: Source, row: int) -> None:
        """Decode a row that has a map with duplicate keys, of which the last value counts, through the deserializer."""
        frame: bytes = source.keep[row - source.base].as_py()
        schema_id, payload = split(frame)
        try:
            value = self._decoder._value(self._programs.writer(schema_id), payload)
        except DecodeError as error:
            reason = f"{error.reason}: {error.detail}" if error.reason == DecodeReason.RESOLUTION else str(error.reason)
            self._others[row] = Refusal(reason, schema_id, error.offset)
            nothing = Source(0, 0, np.zeros(2, np.int64), np.zeros(1, np.uint8), row, row + 1, None)
            self.decode(nothing, row, self._programs.learn_own())
            return
        raw = np.frombuffer(join(0, self._decoder._encode(value)), np.uint8)
        offsets = np.array([0, len(raw)], np.int64)
        encoded = Source(raw.ctypes.data, len(raw), offsets, None, row, row + 1, raw)
        self.decode(encoded, row, self._programs.learn_own())
        refused = int(self._state[vm.REFUSALS])
        if refused and self._reasons[refused - 1, 0] == row:
            self._reasons[refused - 1, 2] = schema_id

    def refusals(self, frames: pa.Array) -> dict[int, Refusal]:
        """Return the rows without a value, and why."""
        notes = self._reasons[: self._state[vm.REFUSALS]].tolist()
        refusals = {note[0]: self._refusal(frames, *note) for note in notes}
        return {**refusals, **self._others}

    def _refusal(self, frames: pa.Array, row: int, status: int, schema_id: int, position: int, detail: int) -> Refusal:
        match status:
            case op.FRAME_SHORT | op.FRAME_MAGIC | op.FRAME_ID:
                return Refusal(_frame_fault(frames[row].as_py()))
            case op.REFUSED:
                return Refusal(self._programs.refusal(detail)[0], schema_id)
            case op.RESOLUTION:
                reason = f"{DecodeReason.RESOLUTION}: {self._programs.messages[detail]}"
                return Refusal(reason, schema_id, position)
        return Refusal(str(_REASONS[status]), schema_id, position)


def _frame_fault(frame: bytes) -> str:
    """Return what is wrong with a frame's header, with the reason of `strata.serdes.framing`."""
    try:
        split(frame)
    except FrameError as error:
        return error.reason
    raise AssertionError(frame[:HEADER_SIZE])


def decode_batch(
    frames: Frames,
    reader_schema: str,
    *,
    writer_schemas: WriterSchemas,
    columns: Sequence[str] | None = None,
    limits: Limits = DEFAULT_LIMITS,
    headers: Frames | None = None,
) -> pa.RecordBatch:
    """Decode one batch of registry frames; for several batches use a `BatchDecoder`, which caches what it learns.

    Args:
        frames: the frames, in the registry's wire format; None is a null frame.
        reader_schema: the text of the reader schema.
        writer_schemas: the source of writer schemas: a client, a mapping by schema id, or a function that raises
            LookupError for an unknown id; see `WriterSchemas` for frames that name schemas otherwise.
        columns: the fields of the reader schema to decode, in this order; the others are skipped. None means all.
        limits: bounds for hostile payloads.
        headers: for each frame, the record header that names its schema, or null.

    Returns:
        One row for each frame: a column for each field of a record, or else the column `value`; and the column `error`,
        a struct<reason: string, schema_id: int32, position: int32> that is null if the frame was decoded.

    Raises:
        SchemaError: If the reader schema is not a valid Avro schema.
        UnsupportedSchema: If Arrow has no type for a part of the schema; the error names the field.
        SerdeError: If the registry did not answer; no frame is at fault.
        ColumnTooLarge: If a column exceeds what Arrow counts in 32 bits.
        TypeError: If the frames are an Arrow column that is not binary.
        ValueError: If `columns` are not fields of the schema, or one of its fields is called `error`.
    """
    return BatchDecoder(reader_schema, writer_schemas, columns=columns, limits=limits).decode(frames, headers)


def _errors(decoded: Decoded) -> pa.Array:
    errors = {
        row: {"reason": refusal.reason, "schema_id": refusal.schema_id, "position": refusal.position}
        for row, refusal in decoded.refusals.items()
    }
    return sparse(decoded.columns.rows, errors, ERROR_TYPE)
