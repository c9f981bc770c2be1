"""Frames that name their schema by GUID or in a record header, rewritten as frames with numbers.

The batch decoder of `strata.serdes.arrow` knows schemas by number only. In a batch with other names, each one gets a
number, including plain schema ids; `name` returns the name of a number.

Rules of this file: Arrow in, Arrow out; each name is parsed once per batch, however many records have it; no registry.
"""

from dataclasses import dataclass
from typing import Any, TypeAlias
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import from_arrow_type

from strata.serdes.errors import FrameError
from strata.serdes.framing import HEADER_SIZE, join, open_frame
from strata.spark_udfs.decoding.headers import HEADER, VALUE

__all__ = ["Name", "Names", "Renamed", "has_guids", "label", "records"]

Name: TypeAlias = int | UUID
"""What a frame names its schema by: the id or the GUID."""

_compute: Any = pc  # pyarrow creates these functions at run time, so they have no types
_GUID_SIZE = 17
_END = 2**31 - 1
"""Stands for the end of a value: pyarrow 26 fails on slices of arrays if the stop is left out."""
_IN_HEADER = b"h"


def label(name: Name | None) -> str:
    """Return the words by which errors mention a schema."""
    return f"schema guid {name}" if isinstance(name, UUID) else f"schema id {name}"


@dataclass(frozen=True, slots=True)
class Renamed:
    """Frames with numbers; those whose name cannot be read are null, with the reason by row."""

    frames: pa.Array
    refused: dict[int, str]


class Names:
    """The numbers of names, for as long as the decoder keeps it."""

    def __init__(self) -> None:
        self._names: list[Name] = []
        self._numbers: dict[Name, int] = {}

    def __len__(self) -> int:
        return len(self._names)

    def name(self, number: int) -> Name:
        """Return the name of a number."""
        return self._names[number]

    def rename(self, value: pa.Array, header: pa.Array | None) -> Renamed:
        """Return frames with numbers, from record values and their headers, if there are headers.

        Args:
            value: the bytes of the records, binary or large_binary.
            header: the header that names the schema of each record, null where there is no such header.
        """
        kind = value.type
        in_header = pa.repeat(False, len(value)) if header is None else header.is_valid()
        name, payload = _cut(value)
        if header is not None:
            name = _compute.if_else(in_header, header.cast(kind), name)
            payload = _compute.if_else(in_header, value, payload)
        place = _compute.if_else(in_header, pa.scalar(_IN_HEADER, kind), pa.scalar(b"p", kind))
        found = _compute.binary_join_element_wise(place, name, pa.scalar(b"", kind)).dictionary_encode()
        prefixes = pa.array([self._prefix(one) for one in found.dictionary.to_pylist()], kind).take(found.indices)
        frames = _compute.binary_join_element_wise(prefixes, payload, pa.scalar(b"", kind))
        return Renamed(frames, _refused(value, header, prefixes))

    def _prefix(self, placed: bytes) -> bytes | None:
        place, name = placed[:1], placed[1:]
        try:
            frame = open_frame(b"", name) if place == _IN_HEADER else open_frame(name)
        except FrameError:
            return None
        return join(self._number(frame.schema), b"")

    def _number(self, name: Name) -> int:
        if name not in self._numbers:
            self._numbers[name] = len(self._names)
            self._names.append(name)
        return self._numbers[name]


def records(column: pa.Array) -> tuple[pa.Array, pa.Array | None]:
    """Return the bytes of records, and the header that names the schema of each; None for a column without headers.

    Raises:
        TypeError: If the column is neither binary nor a struct of bytes and header; same message as `StrataCatalog`.
    """
    kind = column.type
    has_headers = pa.types.is_struct(kind) and [one.name for one in kind] == [VALUE, HEADER]
    value, header = column.flatten() if has_headers else (column, None)
    if pa.types.is_null(value.type):  # an all-null column without a type
        value = value.cast(pa.binary())
    if not (pa.types.is_binary(value.type) or pa.types.is_large_binary(value.type)):
        raise TypeError(f"expected a binary column of frames, got {from_arrow_type(value.type).simpleString()}")
    return value, header


def has_guids(value: pa.Array) -> bool:
    """Return whether any frame names its schema by GUID."""
    return _may_begin(value, 1) and bool(_compute.any(_is_by_guid(value), min_count=0).as_py())


def _may_begin(value: pa.Array, byte: int) -> bool:
    """Return whether any value could begin with this byte; False if all values are null or empty."""
    _, offsets, data = value.buffers()
    if not len(value) or data is None or not data.size:
        return False
    width = np.int32 if pa.types.is_binary(value.type) else np.int64
    starts: Any = np.frombuffer(offsets, width, len(value), value.offset * width().itemsize)
    return bool((np.frombuffer(data, np.uint8).take(starts, mode="clip") == byte).any())


def _is_by_guid(value: pa.Array) -> pa.Array:
    return _compute.equal(_compute.binary_slice(value, 0, 1), pa.scalar(b"\1", value.type))


def _cut(value: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Split frames into names and payloads."""
    by_guid, cut = _is_by_guid(value), _compute.binary_slice
    return (
        _compute.if_else(by_guid, cut(value, 0, _GUID_SIZE), cut(value, 0, HEADER_SIZE)),
        _compute.if_else(by_guid, cut(value, _GUID_SIZE, _END), cut(value, HEADER_SIZE, _END)),
    )


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
