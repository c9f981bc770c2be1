"""The bytecode compiler of the batch decoder: plans become programs of the decoding VM.

All programs of a decoder are stored one after the other in the same code, so that every row of a batch may have another
writer schema. Addresses are final once written. Programs also share the data that they refer to (bytes of symbols and
defaults, messages of refusals).

A record that the plan reaches in several ways becomes a subroutine, so a program is never larger than its plan times
the columns it is read into.

Rules of this file: instructions from plans; no bytes of payloads.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from strata.serdes.arrow import operations as op
from strata.serdes.arrow.code import Code, Emitter
from strata.serdes.arrow.layout import ANY_SPAN, Column, Storage, is_null
from strata.serdes.avro import resolution as plans
from strata.serdes.avro.logical_types import Branch, rescaling
from strata.serdes.avro.raw_values import lowering
from strata.serdes.avro.schema import Array, Fixed, Kind, Logical, Map, Node, Primitive, Record, Union

__all__ = ["Compiler"]

MAX_DIGITS = 150
"""The limit for a decimal while its scale changes."""

_INT_MIN, _INT_MAX = -(2**63), 2**63 - 1


class Compiler(Emitter):
    """A compiler that writes one program at the end of the code."""

    def __init__(self, code: Code) -> None:
        super().__init__(code)
        self._routines: dict[tuple[int, int], int] = {}
        self._calls: list[tuple[list[int], tuple[int, int]]] = []
        self._pending: list[tuple[tuple[int, int], plans.Fields, Record | None, Column | None]] = []

    def compile(self, plan: plans.Plan, reader: Node, root: Column) -> int:
        """Return the start of a program that reads payloads into columns.

        Args:
            plan: the schema resolution of writer and reader schema.
            reader: the reader schema.
            root: the columns of the reader schema.

        Raises:
            SchemaError: If the program would be too large.
        """
        start = len(self._rows)
        self._read(plan, reader, root)
        self._emit(op.END)
        while self._pending:
            self._routine(*self._pending.pop())
        for row, key in self._calls:
            row[2] = self._routines[key]
        return start

    def _routine(self, key: tuple[int, int], plan: plans.Fields, reader: Record | None, column: Column | None) -> None:
        self._routines[key] = len(self._rows)
        self._depth = 0
        if column is None or reader is None:
            self._skip_fields(plan)
        else:
            self._read_fields(plan, reader, column)
        self._emit(op.RETURN, None, 0, int(plan.recursive))

    def _call(self, plan: plans.Fields, reader: Record | None, column: Column | None) -> None:
        key = (id(plan), -1 if column is None else column.number)
        if key not in self._routines:
            self._routines[key] = -1
            self._pending.append((key, plan, reader, column))
        self._calls.append((self._emit(op.CALL, None, 0, int(plan.recursive)), key))

    # Reading

    def _read(self, plan: plans.Plan, node: Node, column: Column, *, is_marked: bool = False) -> None:
        """Write the instructions for a value; `is_marked` if an instruction has already marked it as not null."""
        match plan, node:
            case plans.Fail(), _:
                self._emit(op.FAIL, column, self._code.say(plan.message))
            case plans.Branches(plans=[first, other]), _ if column.nullable and _is_null(first) != _is_null(other):
                self._read_option(plan, node, column)
            case plans.Branches(), _:
                self._choose(plan, lambda branch: self._read(branch, node, column, is_marked=is_marked))
            case plans.Tag(), Union() if column.members is not None:
                self._mark(column, is_marked=is_marked)
                member = column.members[plan.position]
                self._emit(op.MEMBER, column, member.number - column.number)
                self._read(plan.value, node.branches[plan.position], member)
            case plans.Tag(), Union():
                self._read(plan.value, node.branches[plan.position], column, is_marked=is_marked)
            case plans.Scalar(kind=Kind.NULL), _:
                self._emit(op.NULL, column)
            case _, Union():
                branch = next(branch for branch in node.branches if not is_null(branch))
                self._read(plan, branch, column, is_marked=is_marked)
            case _:
                self._mark(column, is_marked=is_marked)
                self._read_value(plan, node, column)

    def _mark(self, column: Column, *, is_marked: bool = False) -> None:
        if column.nullable and not is_marked:
            self._emit(op.MARK, column)

    def _read_option(self, plan: plans.Branches, node: Node, column: Column) -> None:
        """Write a union of null and another type, in which a null skips the instructions of the value."""
        place = 0 if _is_null(plan.plans[0]) else 1
        first = len(self._rows)
        option = self._emit(op.OPTION, column, 0, 2 * place)
        self._read(plan.plans[1 - place], node, column, is_marked=True)
        option[2] = self._distance(first, len(self._rows))

    def _read_value(self, plan: plans.Plan, node: Node, column: Column) -> None:
        match plan, node:
            case plans.Fields(), Record():
                if plan.uses > 1 or plan.recursive:
                    self._call(plan, node, column)
                else:
                    self._read_fields(plan, node, column)
            case plans.Items(), Array():
                item = column.children[0]
                self._loop(column, plan.weightless, 0, lambda: self._read(plan.item, node.items, item))
            case plans.Entries(), Map():
                self._loop(column, 0, 1, lambda: self._read_entry(plan, node, column))
            case plans.Symbols(), _:
                self._emit(op.ENUM, column, 2 * len(plan.written), self._symbols(plan))
            case ((plans.Scalar() | plans.Bytes() | plans.Rest()), (Primitive() | Fixed())):
                self._read_scalar(plan, node, column)
            case _:
                raise AssertionError(plan, node)

    def _read_entry(self, plan: plans.Entries, node: Map, column: Column) -> None:
        key, value = column.children
        self._emit(op.STRING, key)
        self._read(plan.value, node.values, value)

    def _read_fields(self, plan: plans.Fields, reader: Record, column: Column) -> None:
        children = {child.name: child for child in column.children}
        types = {field.name: field.type for field in reader.fields}
        for name, default in plan.defaults.items():
            self._put(default, types[name], children[name])
        self._steps(plan, lambda name, value: self._read(value, types[name], children[name]))

    def _steps(self, plan: plans.Fields, read: Callable[[str, plans.Plan], None]) -> None:
        shared = {number for number, step in enumerate(plan.steps[1:]) if step.again}
        for number, step in enumerate(plan.steps):
            if step.again:
                self._emit(op.REWIND)
            elif number in shared:
                self._push(1)
                self._emit(op.KEEP)
            if step.target is None:
                self._skip(step.value)
            else:
                read(step.target, step.value)
            if step.again and number not in shared:
                self._push(-1)
                self._emit(op.DROP)

    def _choose(self, plan: plans.Branches, each: Callable[[plans.Plan], None]) -> None:
        table = len(self._code.table)
        self._code.table += [0] * len(plan.plans)
        self._emit(op.BRANCH, None, 2 * len(plan.plans), table)
        jumps = []
        for number, branch in enumerate(plan.plans):
            self._code.table[table + number] = len(self._rows)
            each(branch)
            if number + 1 < len(plan.plans):
                jumps.append((len(self._rows), self._emit(op.JUMP)))
        for first, jump in jumps:
            jump[2] = self._distance(first, len(self._rows))

    def _loop(self, column: Column | None, weightless: int, is_map: int, each: Callable[[], None]) -> None:
        first = len(self._rows)
        loop = self._emit(op.LOOP, column)
        self._push(2)
        each()
        self._push(-2)
        following = len(self._rows)
        loop[2] = self._distance(first, following)
        self._emit(op.NEXT, column, self._distance(following, first + 1), weightless, is_map)

    def _symbols(self, plan: plans.Symbols) -> int:
        table = len(self._code.table)
        for written, read in zip(plan.written, plan.read, strict=True):
            if read is None:
                message = f"the reader's enum has no symbol {written} and no default"
                self._code.table += [-1, self._code.say(message)]
            else:
                raw = _utf8(read)
                self._code.table += [self._code.keep(raw), len(raw)]
        return table

    def _read_scalar(
        self, plan: plans.Scalar | plans.Bytes | plans.Rest, node: Primitive | Fixed, column: Column
    ) -> None:
        logical = node.logical
        if logical is not None and logical.name == "decimal":
            self._read_decimal(_size(plan), plan.written, logical, column)
            return
        match plan:
            case plans.Scalar(kind=Kind.STRING):
                self._emit(op.STRING, column)
            case plans.Bytes() | plans.Rest() | plans.Scalar(kind=Kind.BYTES):
                is_text = isinstance(node, Primitive) and node.kind is Kind.STRING
                self._emit(op.BINARY, column, _size(plan), int(is_text))
            case plans.Scalar(kind=Kind.BOOLEAN):
                self._emit(op.BOOL, column)
            case plans.Scalar(kind=Kind.FLOAT) if column.width == 8:
                self._emit(op.WIDEN, column)
            case plans.Scalar(kind=Kind.FLOAT | Kind.DOUBLE):
                self._emit(op.COPY_8 if column.width == 8 else op.COPY_4, column)
            case plans.Scalar():
                self._read_integer(plan, node, column)

    def _read_integer(self, plan: plans.Scalar, node: Primitive | Fixed, column: Column) -> None:
        bits = 32 if plan.kind is Kind.INT else 64
        up, down = rescaling(plan.written, node.logical)
        # A column that joins two integer types has no unit, but each type read into it has one.
        span = ANY_SPAN if column.span is None and (up, down) != (1, 1) else column.span
        if isinstance(node, Primitive) and node.kind in (Kind.FLOAT, Kind.DOUBLE):
            self._emit(op.REAL, column, bits, int(node.kind is Kind.FLOAT))
        elif span is not None:
            low = max(span.low, -(-_INT_MIN // span.factor))
            high = min(span.high, _INT_MAX // span.factor)
            low, high = max(-(-low // up) * down, _INT_MIN), min(high // up * down + down - 1, _INT_MAX)
            self._emit(op.SPAN, column, bits, low, high, down, up * span.factor)
        elif bits == 64:
            self._emit(op.INT64, column)
        else:
            self._emit(op.INT32 if column.width == 4 else op.INT_LONG, column)

    def _read_decimal(self, size: int, written: Logical | None, logical: Logical, column: Column) -> None:
        scale = written.scale if written is not None and written.name == "decimal" else logical.scale
        up, down = max(logical.scale - scale, 0), max(scale - logical.scale, 0)
        if logical.precision + down > MAX_DIGITS:
            message = f"a decimal cannot be rescaled from {scale} to {logical.scale}: too many digits"
            self._emit(op.FAIL, column, self._code.say(message))
            return
        bits = (10 ** (logical.precision + down)).bit_length()
        bound = self._code.keep((10**logical.precision).to_bytes(32, "little"))
        self._emit(op.DECIMAL, column, size, logical.precision, bits, up, down, bound)

    # Defaults

    def _put(self, value: object, node: Node, column: Column) -> None:
        """Write a default, given as a value of the deserializer."""
        match value, node:
            case None, _:
                self._emit(op.NULL, column)
            case Branch(), Union() if column.members is not None:
                self._mark(column)
                member = column.members[value.position]
                self._emit(op.MEMBER, column, member.number - column.number)
                self._put(value.value, node.branches[value.position], member)
            case Branch(), Union():
                self._put(value.value, node.branches[value.position], column)
            case _, Union():
                self._put(value, next(branch for branch in node.branches if not is_null(branch)), column)
            case _:
                self._mark(column)
                self._put_value(value, node, column)

    def _put_value(self, value: object, node: Node, column: Column) -> None:
        match value, node:
            case dict(), Record():
                for field, child in zip(node.fields, column.children, strict=True):
                    self._put(value[field.name], field.type, child)
            case dict(), Map():
                key, inner = column.children
                self._begin(column)
                for name, field in value.items():
                    self._emit(op.ITEM, column)
                    self._put_bytes(_utf8(name), key)
                    self._put(field, node.values, inner)
                self._end(column)
            case list(), Array():
                self._begin(column)
                for field in value:
                    self._emit(op.ITEM, column)
                    self._put(field, node.items, column.children[0])
                self._end(column)
            case _:
                self._put_scalar(value, node, column)

    def _begin(self, column: Column) -> None:
        self._emit(op.OPEN, column)
        self._push(1)

    def _end(self, column: Column) -> None:
        self._emit(op.CLOSE, column)
        self._push(-1)

    def _put_scalar(self, value: object, node: Node, column: Column) -> None:
        logical, size = None, None
        if isinstance(node, Primitive | Fixed):
            logical, size = node.logical, node.size if isinstance(node, Fixed) else None
        lower = lowering(logical, size)
        raw: Any = value if lower is None else lower(value)
        if column.storage == Storage.BINARY:
            self._put_bytes(_utf8(raw) if isinstance(raw, str) else raw, column)
        elif logical is not None and logical.name == "decimal":
            number = int.from_bytes(raw, "big", signed=True)
            self._emit(op.CONST, column, self._code.keep(number.to_bytes(column.width, "little", signed=True)))
        elif isinstance(raw, float):
            kind: type[np.float32] | type[np.float64] = np.float32 if column.width == 4 else np.float64
            with np.errstate(over="ignore"):
                self._emit(op.CONST, column, self._code.keep(kind(raw).tobytes()))
        else:
            self._put_integer(int(raw), column)

    def _put_integer(self, number: int, column: Column) -> None:
        number *= column.span.factor if column.span is not None else 1
        try:
            self._emit(op.CONST, column, self._code.keep(number.to_bytes(column.width, "little", signed=True)))
        except OverflowError:
            self._emit(op.FAIL, column, self._code.say("a default of the reader schema is out of range"))

    def _put_bytes(self, raw: bytes, column: Column) -> None:
        self._emit(op.TEXT, column, self._code.keep(raw), len(raw))

    # Skipping

    def _skip(self, plan: plans.Plan) -> None:
        match plan:
            case plans.Scalar():
                self._skip_scalar(plan.kind)
            case plans.Bytes():
                self._emit(op.SKIP_SIZE, None, plan.size)
            case plans.Symbols():
                self._emit(op.SKIP_INDEX, None, 2 * len(plan.written))
            case plans.Items():
                self._loop(None, plan.weightless, 0, lambda: self._skip(plan.item))
            case plans.Entries():
                self._loop(None, 0, 0, lambda: self._skip_entry(plan))
            case plans.Branches():
                self._choose(plan, self._skip)
            case plans.Fields() if plan.uses > 1 or plan.recursive:
                self._call(plan, None, None)
            case plans.Fields():
                self._skip_fields(plan)
            case plans.Tag():
                self._skip(plan.value)

    def _skip_fields(self, plan: plans.Fields) -> None:
        for step in plan.steps:
            self._skip(step.value)

    def _skip_entry(self, plan: plans.Entries) -> None:
        self._emit(op.SKIP_BYTES)
        self._skip(plan.value)

    def _skip_scalar(self, kind: Kind) -> None:
        match kind:
            case Kind.INT:
                self._emit(op.SKIP_INT)
            case Kind.LONG:
                self._emit(op.SKIP_LONG)
            case Kind.BYTES | Kind.STRING:
                self._emit(op.SKIP_BYTES)
            case Kind.BOOLEAN | Kind.FLOAT | Kind.DOUBLE:
                self._emit(op.SKIP_SIZE, None, {Kind.BOOLEAN: 1, Kind.FLOAT: 4, Kind.DOUBLE: 8}[kind])


def _is_null(plan: plans.Plan) -> bool:
    return isinstance(plan, plans.Scalar) and plan.kind is Kind.NULL


def _size(plan: plans.Scalar | plans.Bytes | plans.Rest) -> int:
    match plan:
        case plans.Bytes():
            return plan.size
        case plans.Rest():
            return -2
    return -1


def _utf8(text: str) -> bytes:
    return text.encode(errors="replace")
