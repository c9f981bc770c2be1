"""Loads and stores at addresses, for compiled code that does its own bounds checks.

Rules of this file: nothing is checked here, so nothing outside this package may use it. Little-endian machines only,
like Arrow's own buffers.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import numba
from llvmlite import ir
from numba import types
from numba.core.typing.context import BaseContext as TypingContext
from numba.core.typing.templates import Signature
from numba.extending import intrinsic

__all__ = [
    "PADDING",
    "call_2",
    "call_4",
    "compiled",
    "copy",
    "copy_short",
    "get",
    "inlined",
    "load_8",
    "load_64",
    "load_f32",
    "load_i32",
    "put",
    "store_8",
    "store_64",
    "store_f32",
    "store_f64",
    "store_i32",
    "swapped",
    "trailing_zeros",
]

F = TypeVar("F", bound=Callable[..., object])

# Numba's annotations describe Python objects; here only the types in compiled code matter.
_njit: Any = numba.njit
_intrinsic: Callable[[Callable[..., object]], Any] = intrinsic


class _Context(Protocol):
    """The methods of Numba's target context that are used here; Numba declares no types for them."""

    def get_value_type(self, numba_type: types.Type) -> ir.Type: ...
    def get_dummy_value(self) -> ir.Value: ...


_Generate = Callable[[_Context, ir.IRBuilder, Signature, Sequence[ir.Value]], ir.Value]
"""Writes the instructions of a call; returns its value."""


def compiled(function: F) -> F:
    """Compile a helper of the VMs; it becomes part of its callers."""
    made: F = _njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)(function)
    return made


def inlined(function: F) -> F:
    """Compile a helper inline: for code that every value runs, where a call would cost as much as the value."""
    made: F = _njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True, forceinline=True)(function)
    return made


def _loader(ir_type: ir.Type, wide: types.Type, widen: str) -> Any:
    @_intrinsic
    def load(typing_context: TypingContext, address: types.Type) -> tuple[Signature, _Generate]:
        def generate(
            context: _Context, builder: ir.IRBuilder, signature: Signature, arguments: Sequence[ir.Value]
        ) -> ir.Value:
            pointer = builder.inttoptr(arguments[0], ir_type.as_pointer())
            value = builder.load(pointer, align=1)
            return getattr(builder, widen)(value, context.get_value_type(wide)) if widen else value

        return wide(types.int64), generate

    return load


def _storer(ir_type: ir.Type, stored: types.Type, narrow: str) -> Any:
    @_intrinsic
    def store(typing_context: TypingContext, address: types.Type, value: types.Type) -> tuple[Signature, _Generate]:
        def generate(
            context: _Context, builder: ir.IRBuilder, signature: Signature, arguments: Sequence[ir.Value]
        ) -> ir.Value:
            pointer = builder.inttoptr(arguments[0], ir_type.as_pointer())
            value = getattr(builder, narrow)(arguments[1], ir_type) if narrow else arguments[1]
            builder.store(value, pointer, align=1)
            return context.get_dummy_value()

        return types.void(types.int64, stored), generate

    return store


_I8, _I32, _I64, _F32, _F64 = ir.IntType(8), ir.IntType(32), ir.IntType(64), ir.FloatType(), ir.DoubleType()

load_8: Callable[[int], int] = _loader(_I8, types.int64, "zext")
load_i32: Callable[[int], int] = _loader(_I32, types.int64, "sext")
load_64: Callable[[int], int] = _loader(_I64, types.int64, "")
load_f32: Callable[[int], float] = _loader(_F32, types.float64, "fpext")
store_8: Callable[[int, int], None] = _storer(_I8, types.int64, "trunc")
store_i32: Callable[[int, int], None] = _storer(_I32, types.int64, "trunc")
store_64: Callable[[int, int], None] = _storer(_I64, types.int64, "")
store_f32: Callable[[int, float], None] = _storer(_F32, types.float64, "fptrunc")
store_f64: Callable[[int, float], None] = _storer(_F64, types.float64, "")


@_intrinsic
def _get(typing_context: TypingContext, address: types.Type, entry: types.Type) -> tuple[Signature, _Generate]:
    """Load an entry of a table of numbers."""

    def generate(
        context: _Context, builder: ir.IRBuilder, signature: Signature, arguments: Sequence[ir.Value]
    ) -> ir.Value:
        return builder.load(_entry(builder, *arguments), align=8)

    return types.int64(types.int64, types.int64), generate


@_intrinsic
def _put(
    typing_context: TypingContext, address: types.Type, entry: types.Type, number: types.Type
) -> tuple[Signature, _Generate]:
    """Store an entry of a table of numbers."""

    def generate(
        context: _Context, builder: ir.IRBuilder, signature: Signature, arguments: Sequence[ir.Value]
    ) -> ir.Value:
        builder.store(arguments[2], _entry(builder, *arguments[:2]), align=8)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


def _entry(builder: ir.IRBuilder, address: ir.Value, entry: ir.Value, *_: ir.Value) -> ir.Value:
    return builder.gep(builder.inttoptr(address, _I64.as_pointer()), [entry])


get: Callable[[int, int], int] = _get
put: Callable[[int, int, int], None] = _put


def _call(context: _Context, builder: ir.IRBuilder, signature: Signature, arguments: Sequence[ir.Value]) -> ir.Value:
    function, *given = arguments
    kind = ir.FunctionType(_I32, [_I64] * len(given))
    return builder.sext(builder.call(builder.inttoptr(function, kind.as_pointer()), given), _I64)


@_intrinsic
def _call_2(
    typing_context: TypingContext, function: types.Type, first: types.Type, second: types.Type
) -> tuple[Signature, _Generate]:
    """Call a C function of pointers; what it returns is an int, or of no meaning if it is void."""
    return types.int64(types.int64, types.int64, types.int64), _call


@_intrinsic
def _call_4(
    typing_context: TypingContext,
    function: types.Type,
    first: types.Type,
    second: types.Type,
    third: types.Type,
    fourth: types.Type,
) -> tuple[Signature, _Generate]:
    """Call a C function of four pointers; see `_call_2`."""
    return types.int64(types.int64, types.int64, types.int64, types.int64, types.int64), _call


call_2: Callable[[int, int, int], int] = _call_2
call_4: Callable[[int, int, int, int, int], int] = _call_4


def _unary(make: Callable[[ir.IRBuilder, ir.Value], ir.Value]) -> Any:
    @_intrinsic
    def call(typing_context: TypingContext, number: types.Type) -> tuple[Signature, _Generate]:
        def generate(
            context: _Context, builder: ir.IRBuilder, signature: Signature, arguments: Sequence[ir.Value]
        ) -> ir.Value:
            return make(builder, arguments[0])

        return types.int64(types.int64), generate

    return call


trailing_zeros: Callable[[int], int] = _unary(lambda builder, word: builder.cttz(word, ir.Constant(ir.IntType(1), 0)))
"""Count the lowest bits that are 0; 64 for the number 0."""
swapped: Callable[[int], int] = _unary(lambda builder, word: builder.bswap(word))
"""Reverse the eight bytes."""

HIGH_BITS = -9187201950435737472  # 0x80 in each of eight bytes

PADDING = 16
"""How many bytes `copy_short` reads and writes, whatever size it is given."""


@inlined
def copy_short(source: int, target: int, size: int) -> int:
    """Copy up to 16 bytes; return whether any of them is above 127. All 16 bytes must be readable and writable."""
    low, high = load_64(source), load_64(source + 8)
    store_64(target, low)
    store_64(target + 8, high)
    seen = low & (HIGH_BITS if size >= 8 else (1 << (size << 3)) - 1)
    if size > 8:
        seen |= high & (HIGH_BITS if size == 16 else (1 << ((size - 8) << 3)) - 1)
    return seen & HIGH_BITS


@compiled
def copy(source: int, target: int, size: int) -> int:
    """Copy bytes; return whether any of them is above 127."""
    seen = 0
    at = 0
    if size >= 8:
        while at + 8 <= size:
            word = load_64(source + at)
            store_64(target + at, word)
            seen |= word
            at += 8
        word = load_64(source + size - 8)  # the rest, overlapping bytes that are already copied
        store_64(target + size - 8, word)
        return (seen | word) & HIGH_BITS
    while at < size:
        byte = load_8(source + at)
        store_8(target + at, byte)
        seen |= byte
        at += 1
    return seen & 128
