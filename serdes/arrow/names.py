"""Frames that name their schema by GUID, in a record header or as AWS Glue does, rewritten as frames with numbers.

The decoding VM knows schemas by number only. In a batch with other names, each one gets a number, including plain
schema ids; `name` returns the name of a number. Compressed frames are inflated on the way, a bounded part of the batch
at a time, because a small batch may hold much.

Rules of this file: Arrow in, Arrow out; each name is parsed once per batch, however many records have it; no registry.
"""

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from strata.frames import (
    GLUE_HEADER_SIZE,
    GUID_HEADER_SIZE,
    HEADER_SIZE,
    MAGIC_BYTE_GLUE,
    MAGIC_BYTE_GUID,
    MAX_INFLATED,
    SchemaName,
)
from strata.serdes.errors import FrameError
from strata.serdes.framing import inflated, join, open_frame

__all__ = ["Names", "Renamed", "has_other_names"]

_compute: Any = pc  # pyarrow creates these functions at run time, so they have no types
_OTHERS = ((MAGIC_BYTE_GUID, GUID_HEADER_SIZE), (MAGIC_BYTE_GLUE, GLUE_HEADER_SIZE))
_END = 2**31 - 1
"""Stands for the end of a value: pyarrow 26 fails on slices of arrays if the stop is left out."""
_IN_HEADER = b"h"
_PART_BYTES = 4 * MAX_INFLATED
"""How many inflated bytes a part of a batch may have."""


@dataclass(frozen=True, slots=True)
class Renamed:
    """A part of a batch with numbers; rows whose name or payload cannot be read are null, with the reason by row.

    Attributes:
        start: the row of the batch with which the part begins.
        frames: the frames.
        refused: reasons by row of the batch.
    """

    start: int
    frames: pa.Array
    refused: dict[int, str]


class Names:
    """The numbers of names, for as long as the decoder keeps it; threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._names: list[SchemaName] = []
        self._numbers: dict[SchemaName, int] = {}

    def __len__(self) -> int:
        return len(self._names)

    def name(self, number: int) -> SchemaName:
        """Return the name of a number."""
        return self._names[number]

    def number(self, name: SchemaName) -> int | None:
        """Return the number of a name; None if no frame had it."""
        return self._numbers.get(name)

    def rename(self, value: pa.Array, header: pa.Array | None) -> Iterator[Renamed]:
        """Yield parts of a batch with numbers, from record values and their headers, if there are headers.

        Args:
            value: the bytes of the records, binary or large_binary.
            header: the header that names the schema of each record, null where there is no such header.
        """
        for start, part, refused in _inflated_parts(value, header):
            headers = None if header is None else header.slice(start, len(part)).cast(part.type)
            frames, faults = self._renamed(part, headers)
            yield Renamed(start, frames, refused | {start + row: reason for row, reason in faults.items()})

    def _renamed(self, value: pa.Array, header: pa.Array | None) -> tuple[pa.Array, dict[int, str]]:
        text_type = value.type
        in_header = pa.repeat(False, len(value)) if header is None else header.is_valid()
        name, payload = _cut(value)
        if header is not None:
            name = _compute.if_else(in_header, header, name)
            payload = _compute.if_else(in_header, value, payload)
        place = _compute.if_else(in_header, pa.scalar(_IN_HEADER, text_type), pa.scalar(b"p", text_type))
        names = _compute.binary_join_element_wise(place, name, pa.scalar(b"", text_type)).dictionary_encode()
        prefixes = pa.array([self._prefix(name) for name in names.dictionary.to_pylist()], text_type).take(
            names.indices
        )
        frames = _compute.binary_join_element_wise(prefixes, payload, pa.scalar(b"", text_type))
        return frames, _refused(value, header, prefixes)

    def _prefix(self, placed: bytes) -> bytes | None:
        place, name = placed[:1], placed[1:]
        try:
            frame = open_frame(b"", name) if place == _IN_HEADER else open_frame(name)
        except FrameError:
            return None
        return join(self._numbered(frame.schema), b"")

    def _numbered(self, name: SchemaName) -> int:
        with self._lock:
            if name not in self._numbers:
                self._names.append(name)
                self._numbers[name] = len(self._names) - 1
            return self._numbers[name]


def has_other_names(value: pa.Array, header: pa.Array | None) -> bool:
    """Return whether any record names its schema in a header, by GUID or as AWS Glue does."""
    if header is not None and header.null_count < len(header):
        return True
    first = _first_bytes(value)
    if not first.any():  # frames with an id begin with 0
        return False
    beginnings = [pa.scalar(bytes([magic]), value.type) for magic, _ in _OTHERS if (first == magic).any()]
    return any(_compute.any(_begins(value, beginning), min_count=0).as_py() for beginning in beginnings)


def _first_bytes(value: pa.Array) -> NDArray[np.uint8]:
    """Return the byte at the beginning of each value; for one that is null or empty, any byte of another."""
    _, offsets, data = value.buffers()
    if not len(value) or data is None or not data.size:
        return np.zeros(0, np.uint8)
    width = np.int32 if pa.types.is_binary(value.type) else np.int64
    starts: NDArray[np.integer] = np.frombuffer(offsets, width, len(value), value.offset * width().itemsize)
    return np.frombuffer(data, np.uint8).take(starts, mode="clip")


def _begins(value: pa.Array, beginning: pa.Scalar) -> pa.Array:
    return _compute.equal(_compute.binary_slice(value, 0, len(beginning.as_py())), beginning)


def _cut(value: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Split frames into names and payloads."""
    cut, first = _compute.binary_slice, _first_bytes(value)
    name, payload = cut(value, 0, HEADER_SIZE), cut(value, HEADER_SIZE, _END)
    for magic, size in _OTHERS:
        if (first == magic).any():
            is_one = _begins(value, pa.scalar(bytes([magic]), value.type))
            name = _compute.if_else(is_one, cut(value, 0, size), name)
            payload = _compute.if_else(is_one, cut(value, size, _END), payload)
    return name, payload


def _refused(value: pa.Array, header: pa.Array | None, prefixes: pa.Array) -> dict[int, str]:
    """Return by row why names cannot be read, with the reasons of `strata.serdes.framing`."""
    rows = _compute.indices_nonzero(_compute.and_(value.is_valid(), prefixes.is_null())).to_pylist()
    refused = {}
    for row in rows:
        try:
            open_frame(value[row].as_py(), None if header is None else header[row].as_py())
        except FrameError as error:
            refused[row] = error.reason
    return refused


def _inflated_parts(value: pa.Array, header: pa.Array | None) -> Iterator[tuple[int, pa.Array, dict[int, str]]]:
    """Yield parts of a batch without compression: the first row, the values, and the reasons why some are null."""
    packed = _compressed_rows(value, header)
    if not packed:
        yield 0, value, {}
        return
    start, taken = 0, 0
    rows: dict[int, bytes | None] = {}
    refused: dict[int, str] = {}
    for row in packed:
        try:
            rows[row] = data = inflated(value[row].as_py())
            taken += len(data)
        except FrameError as error:
            rows[row], refused[row] = None, error.reason
        if taken > _PART_BYTES:
            yield start, _replaced(value, start, row + 1, rows), refused
            start, taken, rows, refused = row + 1, 0, {}, {}
    if start < len(value):
        yield start, _replaced(value, start, len(value), rows), refused


def _compressed_rows(value: pa.Array, header: pa.Array | None) -> list[int]:
    if not (_first_bytes(value) == MAGIC_BYTE_GLUE).any():
        return []
    packed = _begins(value, pa.scalar(b"\3\5", value.type)).fill_null(False)
    if header is not None:
        packed = _compute.and_(packed, header.is_null())
    rows: list[int] = _compute.indices_nonzero(packed).to_pylist()
    return rows


def _replaced(value: pa.Array, start: int, end: int, rows: dict[int, bytes | None]) -> pa.Array:
    """Return the values from one row to another, some of them replaced; they may be larger than 32 bits count."""
    part = value.slice(start, end - start).cast(pa.large_binary())
    mask = np.zeros(len(part), np.bool_)
    mask[[row - start for row in rows]] = True
    return _compute.replace_with_mask(part, mask, pa.array(list(rows.values()), pa.large_binary()))
