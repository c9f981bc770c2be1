"""Frames as the decoding VM takes them: an Arrow array whose buffers are checked, and the addresses of its parts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

__all__ = ["Frames", "Source", "binary", "source_of"]

Frames: TypeAlias = pa.Array | pa.ChunkedArray | Sequence[bytes | None]
"""Frames as an Arrow column of binary values, which is not copied, or one by one; None is a null frame."""


@dataclass(frozen=True, slots=True)
class Source:
    """Frames as the VM takes them, see `vm_state.py`; `keep` holds the memory that the addresses point into."""

    address: int
    size: int
    offsets: NDArray[np.integer]
    present: NDArray[np.uint8] | None
    base: int
    last: int
    keep: Any


def binary(frames: Frames) -> pa.Array:
    """Return frames as one Arrow array of binary values.

    Raises:
        TypeError: If they are an Arrow column that is not binary.
    """
    if isinstance(frames, pa.ChunkedArray):
        frames = frames.combine_chunks()
    if not isinstance(frames, pa.Array):
        return pa.array(frames, pa.large_binary())
    if not (pa.types.is_binary(frames.type) or pa.types.is_large_binary(frames.type)):
        raise TypeError(f"expected a binary column of frames, got {frames.type}")
    return frames


def source_of(array: pa.Array, base: int = 0) -> Source:
    """Return where the values of an array are in memory; they are the rows from `base` on.

    Raises:
        ValueError: If the offsets of the array do not fit its bytes.
    """
    _, offsets, data = array.buffers()
    width = np.int32 if pa.types.is_binary(array.type) else np.int64
    counts = np.zeros(1, np.int64)
    if len(array):
        counts = np.frombuffer(offsets, width, len(array) + 1, array.offset * width().itemsize).astype(np.int64)
    size = 0 if data is None else data.size
    if counts[0] < 0 or counts[-1] > size or (np.diff(counts) < 0).any():
        raise ValueError("the offsets of the frames do not fit their bytes")
    present = np.asarray(array.is_valid()).astype(np.uint8) if array.null_count else None
    return Source(0 if data is None else data.address, size, counts, present, base, base + len(array), array)
