"""Run the batch decoder and encoder in memory between guard pages; an access outside of it ends the process.

    python guard_pages.py '[["SIDE", SEEDS, "MISTAKE"], …]'

Every buffer that the VMs get by address (frames, columns, programs, constants, stack, state, output) starts or ends
(SIDE) exactly at a page that may not be accessed. The schemas, values and damage are those of `arrow_examples`, so
values are compared too. MISTAKE plants a wrong bound, to show that this program can fail.
"""

import ctypes
import dataclasses
import json
import mmap
import os
import sys
import traceback
from typing import Any

import numpy as np
import pyarrow as pa

from harness import arrow_examples
from strata.serdes.arrow import (
    BatchDecoder,
    UnsupportedSchema,
    columns,
    decode,
    encode,
    encoding_vm,
    output,
    program_cache,
    vm_state,
)
from strata.serdes.arrow import feed as feeds
from strata.serdes.arrow import source as sources
from strata.serdes.arrow.layout import Storage
from strata.serdes.avro import compile_encoder
from strata.serdes.errors import SchemaError

PAGE = mmap.PAGESIZE
OPEN, PRIVATE = mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
FRESH = 0xA5
"""What new memory is filled with: code that reads what it did not write gives wrong values."""

_C = ctypes.CDLL(None, use_errno=True)
_C.mmap.restype = ctypes.c_void_p
_C.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
_C.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_C.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


class Memory:
    """A block of memory between two guard pages, flush with one of them; it stands in for a pyarrow buffer."""

    side = "end"
    blocks: list["Memory"] = []  # noqa: RUF012 - all that are mapped

    def __init__(self, size: int) -> None:
        self.blocks.append(self)
        self._map(size)

    def _map(self, size: int) -> None:
        inner = -(-max(size, 1) // PAGE) * PAGE
        self._mapped = inner + 2 * PAGE
        self._start = _C.mmap(None, self._mapped, 0, PRIVATE, -1, 0)
        if self._start in (None, ctypes.c_void_p(-1).value) or _C.mprotect(self._start + PAGE, inner, OPEN):
            raise OSError(ctypes.get_errno(), "cannot map guarded memory")
        self.size = size
        self.address = self._start + PAGE + (inner - size if self.side == "end" else 0)
        ctypes.memset(self.address, FRESH, size)

    def resize(self, size: int) -> None:
        """Move to a block of another size; the old one may not be accessed any more."""
        start, mapped, content = self._start, self._mapped, self.content()
        self._map(size)
        ctypes.memmove(self.address, content, min(len(content), size))
        _C.munmap(start, mapped)

    def free(self) -> None:
        """Unmap the block."""
        _C.munmap(self._start, self._mapped)

    def content(self) -> bytes:
        """Return a copy of the bytes."""
        return ctypes.string_at(self.address, self.size)

    def slice(self, start: int, size: int) -> pa.Buffer:
        """Return a part as an Arrow buffer."""
        return pa.foreign_buffer(self.address + start, size, self)

    def array(self, kind: Any, count: int = -1, start: int = 0) -> Any:
        """Return the bytes as a NumPy array."""
        content = (ctypes.c_char * self.size).from_address(self.address)
        return (
            np.ndarray(self.size // np.dtype(kind).itemsize, kind, content)
            if count < 0
            else np.frombuffer(content, kind, count, start)
        )


def placed(content: bytes) -> Memory:
    """Return guarded memory with this content."""
    memory = Memory(len(content))
    ctypes.memmove(memory.address, content, len(content))
    return memory


def guarded(array: Any) -> Any:
    """Return a copy of a NumPy array in guarded memory."""
    return placed(array.tobytes()).array(array.dtype).reshape(array.shape)


class GuardedNumpy:
    """NumPy whose new arrays are in guarded memory."""

    def __getattr__(self, name: str) -> Any:
        made = getattr(np, name)
        if name not in ("array", "asarray", "concatenate", "empty", "full", "zeros"):
            return made
        return lambda *given: guarded(made(*given))

    def frombuffer(self, source: Any, kind: Any, *extent: int) -> Any:
        """Return a view of guarded memory, or a guarded copy of bytes."""
        if isinstance(source, Memory):
            return source.array(kind, *extent)
        found = np.frombuffer(source, kind, *extent)
        return guarded(found) if isinstance(source, bytes) else found


class GuardedArrow:
    """pyarrow whose new buffers are in guarded memory."""

    def __getattr__(self, name: str) -> Any:
        return getattr(pa, name)

    def allocate_buffer(self, size: int, *, resizable: bool) -> Memory:
        """Return a guarded buffer."""
        assert resizable
        return Memory(size)


def guarded_source(array: pa.Array) -> Any:
    """Return frames in guarded memory, for the decoder."""
    source = _SOURCE(array)
    frames = placed(ctypes.string_at(source.address, source.size))
    present = None if source.present is None else guarded(source.present)
    return dataclasses.replace(source, address=frames.address, offsets=guarded(source.offsets), present=present)


class GuardedFeed(feeds.Feed):
    """The columns to encode, in guarded memory of the sizes that the encoder may assume."""

    def __init__(self, root: Any, array: pa.Array, **options: Any) -> None:
        super().__init__(root, array, **options)
        self.table = guarded(self.table)
        self._guard(root, len(array))

    def _guard(self, column: Any, count: int) -> None:
        row = self.table[column.number]
        self._move(row, encoding_vm.VALID, count)
        if column.storage == Storage.LIST or (column.storage == Storage.BINARY and column.symbols is None):
            self._move(row, encoding_vm.VALUES, 4 * (count + 1))
            address = int(row[encoding_vm.VALUES])
            count = ctypes.c_int32.from_address(address + 4 * count).value if address else 0
            self._move(row, encoding_vm.DATA, count)
        elif column.storage not in (Storage.STRUCT, Storage.NULLS):
            self._move(row, encoding_vm.VALUES, int(row[encoding_vm.WIDTH]) * count)
        for child in column.children:
            self._guard(child, count)

    def _move(self, row: Any, entry: int, size: int) -> None:
        if row[entry]:
            row[entry] = placed(ctypes.string_at(int(row[entry]), size)).address


_SOURCE, _EXTENT, _DECODE, _ENCODE = decode.source_of, encode._extent, decode.run, encode.run_writer
DECODE_ADDRESSES = (
    vm_state.FRAMES, vm_state.OFFSETS, vm_state.PRESENT, vm_state.CODE, vm_state.TABLE, vm_state.POOL, vm_state.IDS,
    vm_state.STARTS, vm_state.COLUMNS, vm_state.STACK, vm_state.LIMBS, vm_state.REASONS,
)  # fmt: skip
ENCODE_ADDRESSES = (
    encoding_vm.CODE, encoding_vm.COLUMNS, encoding_vm.TABLE, encoding_vm.OUT, encoding_vm.OFFSETS, encoding_vm.STACK,
    encoding_vm.HEADER,
)  # fmt: skip


def numbers_at(address: int, count: int) -> Any:
    """Return numbers of 64 bits in memory."""
    return np.frombuffer((ctypes.c_int64 * count).from_address(address), np.int64)


def assert_guarded(*addresses: Any) -> None:
    """Assert that addresses are in guarded memory; 0 stands for a buffer that is not there."""
    for address in map(int, addresses):
        inside = any(one.address <= address <= one.address + one.size for one in reversed(Memory.blocks))
        assert inside or address == 0, f"the address {address:x} is not guarded"


def checked_decode(state: int) -> int:
    """Run the decoding VM, after a check that it gets guarded memory only."""
    entries = numbers_at(state, vm_state.ENTRIES)
    assert_guarded(state, *(entries[one] for one in DECODE_ADDRESSES))
    table = next(one for one in Memory.blocks if one.address == entries[vm_state.COLUMNS])
    for row in table.array(np.int64).reshape(-1, output.ENTRIES):
        assert_guarded(row[output.VALUES], row[output.VALID], row[output.DATA])
    return _DECODE(state)


def checked_encode(state: int) -> int:
    """Run the encoding VM, after a check that it gets guarded memory only."""
    entries = numbers_at(state, encoding_vm.ENTRIES)
    assert_guarded(state, *(entries[one] for one in ENCODE_ADDRESSES))
    table = next(one for one in Memory.blocks if one.address == entries[encoding_vm.COLUMNS])
    assert_guarded(*table.array(np.int64).reshape(-1, encoding_vm.ENTRIES_OF_COLUMN)[:, : encoding_vm.WIDTH].flat)
    return _ENCODE(state)


def guard() -> None:
    """Give the VMs guarded memory only."""
    for module in (decode, sources, encode, columns, program_cache, feeds):
        module.np = GuardedNumpy()
    columns.pa = GuardedArrow()
    decode.source_of = guarded_source
    encode.Feed = GuardedFeed
    decode.run, encode.run_writer = checked_decode, checked_encode
    columns._FIRST_BYTES = encode._FIRST_BYTES = 1  # memory is often full, and has to grow


def _readable_too_far() -> None:
    def source(array: pa.Array) -> Any:
        found = guarded_source(array)
        return dataclasses.replace(found, size=found.size + 1)

    decode.source_of = source


def _output_too_long() -> None:
    encode._extent = lambda out, used: (*_EXTENT(out, used)[:2], out.ctypes.data + len(out) + 17)


MISTAKES = {
    "padding of columns": lambda: setattr(columns, "PADDING", 0),
    "padding of constants": lambda: setattr(program_cache, "PADDING", 0),
    "end of the frames": _readable_too_far,
    "end of the output": _output_too_long,
}


def check_truncated(seed: int) -> None:
    """Decode a payload cut off at each of its bytes, with nothing behind it."""
    make = arrow_examples.Schemas(seed)
    writer = make.schema()
    texts = json.dumps(writer), json.dumps(make.reader(writer))
    payload = compile_encoder(texts[0])(make.value(writer))
    try:
        decoder = BatchDecoder(texts[1], {5: texts[0]})
    except (UnsupportedSchema, SchemaError):
        return
    whole = b"\0\0\0\0\x05" + payload
    for size in range(min(len(whole), 60)):
        batch = decoder.decode([whole, None, whole[: len(whole) - size]])
        batch.validate(full=True)


def check(side: str, seeds: int, mistake: str = "") -> None:
    """Check random schemas.

    Raises:
        AssertionError: If too little was decoded.
    """
    Memory.side = side
    guard()
    if mistake:
        MISTAKES[mistake]()
    decoded = 0
    for seed in range(seeds):
        decoded += arrow_examples.check(seed)
        check_truncated(seed)
        while Memory.blocks:
            Memory.blocks.pop().free()
    assert decoded > 2 * seeds, decoded


class WithoutPandas:
    """A finder that does not find pandas, which pyarrow would import in each process, for the first list."""

    @staticmethod
    def find_spec(name: str, *_more: Any) -> None:
        """Raise an error for pandas alone."""
        if name == "pandas":
            raise ModuleNotFoundError(name)


def main(runs: list[Any]) -> dict[str, Any]:
    """Check in a forked process for each run, since imports and compiled code take longer.

    Returns:
        How the runs ended, and whether the compiled code of the decoder was there.
    """
    _DECODE(0), _ENCODE(0)  # compiles, or loads what was compiled
    sys.meta_path.insert(0, WithoutPandas)
    codes = []
    for run in runs:
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                check(*run)
                code = 0
            except BaseException:  # noqa: BLE001 - nothing may return into the code of the first process
                traceback.print_exc()
            os._exit(code)  # to leave the interpreter in order takes three times as long as the check
        codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    return {"ends": codes, "was compiled": bool(sum(_DECODE.stats.cache_hits.values()))}


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))), flush=True)  # noqa: T201
    os._exit(0)
