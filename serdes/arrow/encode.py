"""The batch encoder: Arrow to registry frames, the inverse of `decode.py`.

    frames = encode_batch(batch, writer_schema, schema_id=7)

The columns have the types that `layout.py` gives to the writer schema; other types are cast if nothing is lost. A value
that does not fit raises `EncodeError` with row and field; values are never changed to fit.

Rules of this file: it compiles writer schemas to bytecode for the encoding VM (`encoding_vm.py`), and passes it columns
and memory.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from strata.serdes.arrow import encoding_vm as op
from strata.serdes.arrow.entry_points import run_writer
from strata.serdes.arrow.feed import Feed
from strata.serdes.arrow.layout import ERROR_TYPE, Column, is_null, layout
from strata.serdes.avro.schema import Array, Enum, Fixed, Kind, Map, Node, Primitive, Record, Union, parse
from strata.serdes.errors import EncodeError
from strata.serdes.framing import join

__all__ = ["BatchEncoder", "encode_batch"]

_FIRST_BYTES = 64
_BOUNDS = {Kind.INT: (-(2**31), 2**31 - 1), Kind.LONG: (-(2**63), 2**63 - 1)}
_WHY = {
    op.IS_NULL: "expected a value, got null",
    op.NOT_NULL: "expected null, got a value",
    op.OUT_OF_RANGE: "a value is out of range",
    op.BAD_SIZE: "expected bytes of another size",
    op.NO_SYMBOL: "expected a symbol of the enum",
    op.NO_MEMBER: "expected one member of the union, got none",
    op.MANY_MEMBERS: "expected one member of the union, got several",
}


class BatchEncoder:
    """An encoder of batches with one writer schema; threads may share it.

    Args:
        writer_schema: the schema text to write with, as the registry has it.
        prefix: the bytes before each payload.
        drop_unknown: whether to ignore columns and struct fields that the schema lacks, instead of raising an error.

    Raises:
        SchemaError: If the writer schema is not a valid Avro schema.
        UnsupportedSchema: If Arrow has no type for a part of the schema.
    """

    def __init__(self, writer_schema: str, *, prefix: bytes = b"", drop_unknown: bool = False) -> None:
        self._node = parse(writer_schema)
        self._root = layout(self._node)
        self._prefix = prefix
        self._drop_unknown = drop_unknown
        self._program = _Program()
        self._program.write(self._node, self._root)

    @property
    def columns(self) -> Column:
        """Return the columns to encode: the writer schema in Arrow's types."""
        return self._root

    def encode(self, batch: pa.RecordBatch | pa.Table | pa.Array) -> pa.Array:
        """Return one frame for each row, as a large_binary array.

        Args:
            batch: a record batch or table whose columns are the fields of a record, found by name; or an array of
                values.

        Raises:
            EncodeError: If a column or value does not fit; the error has the field as `path` and, for a value, the row.
        """
        array = _rows(batch, self._node)
        return _run(self._program, Feed(self._root, array, drop_unknown=self._drop_unknown), len(array), self._prefix)


def encode_batch(
    batch: pa.RecordBatch | pa.Table | pa.Array,
    writer_schema: str,
    *,
    schema_id: int | None,
    drop_unknown: bool = False,
) -> pa.Array:
    """Encode one batch as registry frames; for several batches use a `BatchEncoder`.

    Args:
        batch: a record batch or table whose columns are the fields of a record, found by name; or an array of values.
        writer_schema: the schema text to write with, as the registry has it.
        schema_id: the schema id of `writer_schema`. None writes payloads alone, for records whose header
            `__value_schema_id` names the schema.
        drop_unknown: whether to ignore columns and struct fields that the schema lacks, instead of raising an error.

    Returns:
        A large_binary array with one frame for each row.

    Raises:
        EncodeError: If a column or value does not fit; the error has the field as `path` and, for a value, the row.
        SchemaError: If the writer schema is not a valid Avro schema.
        UnsupportedSchema: If Arrow has no type for a part of the writer schema.
    """
    prefix = b"" if schema_id is None else join(schema_id, b"")
    return BatchEncoder(writer_schema, prefix=prefix, drop_unknown=drop_unknown).encode(batch)


def _rows(batch: pa.RecordBatch | pa.Table | pa.Array, node: Node) -> pa.Array:
    """Return the batch as one array of the schema's values."""
    if isinstance(batch, pa.Array | pa.ChunkedArray):
        return batch.combine_chunks() if isinstance(batch, pa.ChunkedArray) else batch
    if isinstance(batch, pa.Table):
        columns = {name: batch.column(name).combine_chunks() for name in batch.column_names}
    else:
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    if not isinstance(node, Record):
        if "value" not in columns:
            raise EncodeError("expected a column `value`, since the writer schema is not a record")
        return columns["value"]
    if (
        "error" in columns
        and columns["error"].type == ERROR_TYPE
        and "error" not in [field.name for field in node.fields]
    ):
        del columns["error"]
    if not columns:
        return pa.Array.from_buffers(pa.struct([]), batch.num_rows, [None], children=[])
    return pa.StructArray.from_arrays(list(columns.values()), names=list(columns))


def _run(program: "_Program", feed: Feed, rows: int, header: bytes) -> pa.Array:
    state = np.zeros(op.ENTRIES, np.int64)
    code = np.array(program.rows, np.int64).reshape(-1, op.WORDS)
    table, head = np.array(program.table or [0], np.int64), np.frombuffer(header or b"\0", np.uint8)
    offsets, stack = np.zeros(rows + 1, np.int64), np.zeros(2 * (program.deepest + 1), np.int64)
    out = np.empty(_FIRST_BYTES * (rows + 1), np.uint8)
    entries = {
        op.CODE: code.ctypes.data, op.COLUMNS: feed.table.ctypes.data, op.TABLE: table.ctypes.data,
        op.OFFSETS: offsets.ctypes.data, op.STACK: stack.ctypes.data, op.HEADER: head.ctypes.data,
        op.HEADER_SIZE: len(header), op.LAST: rows,
    }  # fmt: skip
    for entry, number in entries.items():
        state[entry] = number
    while True:
        used = int(offsets[state[op.ROW]])
        state[op.OUT_START], state[op.OUT], state[op.OUT_END] = _extent(out, used)
        stop = run_writer(state.ctypes.data)
        if stop == op.DONE:
            break
        row = int(state[op.ROW])
        if stop == op.FAILED:
            instruction, why = divmod(int(state[op.PLACE]), 16)
            raise EncodeError(_WHY[why], path=program.paths[instruction], row=row)
        out = np.concatenate([out, np.empty(len(out), np.uint8)])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(out[: int(offsets[rows])])]
    return pa.Array.from_buffers(pa.large_binary(), rows, buffers)


def _extent(out: NDArray[np.uint8], used: int) -> tuple[int, int, int]:
    start = out.ctypes.data
    return start, start + used, start + len(out)


@dataclass(slots=True)
class _Program:
    """The bytecode for one writer schema, and the path of the field that each instruction is about."""

    rows: list[list[int]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    table: list[int] = field(default_factory=list)
    deepest: int = 0
    _depth: int = 0
    _path: str = ""

    def write(self, node: Node, root: Column) -> None:
        """Write the whole program; a top-level `bytes` has no length."""
        if isinstance(node, Primitive) and node.kind is Kind.BYTES:
            self._bytes(node, root, bare=1)
        else:
            self._write(node, root)
        self._emit(op.END)

    def _emit(self, operation: int, column: Column | None = None, *operands: int) -> list[int]:
        row = [operation, 0 if column is None else column.number, *operands]
        row += [0] * (op.WORDS - len(row))
        self.rows.append(row)
        self.paths.append(self._path)
        return row

    def _inside(self, part: str, write: Callable[[], None]) -> None:
        outer, self._path = self._path, f"{self._path}{part}".lstrip(".")
        write()
        self._path = outer

    def _write(self, node: Node, column: Column) -> None:
        match node:
            case Union():
                self._union(node, column)
            case Record():
                self._emit(op.STRUCT, column)
                for field, child in zip(node.fields, column.children, strict=True):
                    self._inside(f".{field.name}", lambda field=field, child=child: self._write(field.type, child))  # type: ignore[misc]
            case Array():
                self._list(column, "[]", lambda: self._write(node.items, column.children[0]))
            case Map():
                self._list(column, "{}", lambda: self._entry(node, column))
            case Enum():
                self._emit(op.SYMBOL, column, 0, len(node.symbols) - 1)
            case Fixed():
                decimal = node.logical is not None and node.logical.name == "decimal"
                self._emit(op.DECIMAL if decimal else op.FIXED, column, node.size)
            case Primitive():
                self._primitive(node, column)

    def _entry(self, node: Map, column: Column) -> None:
        key, value = column.children
        self._emit(op.BYTES, key)
        self._write(node.values, value)

    def _list(self, column: Column, part: str, each: Callable[[], None]) -> None:
        start = self._emit(op.LIST, column)
        body = len(self.rows)
        self._depth += 1
        self.deepest = max(self.deepest, self._depth)
        self._inside(part, each)
        self._depth -= 1
        self._emit(op.NEXT, column, body)
        start[2] = len(self.rows)

    def _primitive(self, node: Primitive, column: Column) -> None:
        match node.kind:
            case Kind.NULL:
                self._emit(op.NULL, column)
            case Kind.BOOLEAN:
                self._emit(op.BOOLEAN, column)
            case Kind.FLOAT | Kind.DOUBLE:
                self._emit(op.COPY, column)
            case Kind.BYTES | Kind.STRING:
                self._bytes(node, column, bare=0)
            case Kind.INT | Kind.LONG:
                low, high = _BOUNDS[node.kind]
                if column.span is not None:
                    low, high = max(low, column.span.low), min(high, column.span.high)
                self._emit(op.NUMBER, column, low, high)

    def _bytes(self, node: Primitive, column: Column, *, bare: int) -> None:
        if node.logical is not None and node.logical.name == "decimal":
            self._emit(op.DECIMAL, column, -1, bare)
        else:
            self._emit(op.BYTES, column, bare)

    def _union(self, node: Union, column: Column) -> None:
        nulls = [index for index, branch in enumerate(node.branches) if is_null(branch)]
        others = [index for index, branch in enumerate(node.branches) if not is_null(branch)]
        if column.members is not None:
            self._members(node, column, column.members, nulls)
            return
        if not others:
            self._emit(op.INDEX, column, nulls[0])
            self._emit(op.NULL, column)
            return
        widest = max(others, key=lambda index: _rank(node.branches[index]))
        jump = self._emit(op.NULLABLE, column, nulls[0], widest) if nulls else self._emit(op.INDEX, column, widest)
        self._write(node.branches[widest], column)
        if nulls:
            jump[4] = len(self.rows)

    def _members(self, node: Union, column: Column, members: dict[int, Column], nulls: list[int]) -> None:
        table = len(self.table)
        self.table += [0] * 3 * (len(members) + 1)
        self._emit(op.MEMBERS, column, len(members), table, int(bool(nulls)))
        exits = []
        for number, (index, member) in enumerate(members.items()):
            self.table[table + 3 * number : table + 3 * number + 3] = [member.number, index, len(self.rows)]
            self._inside(f"|{number}", lambda index=index, member=member: self._write(node.branches[index], member))  # type: ignore[misc]
            exits.append(self._emit(op.JUMP))
        for row in exits:
            row[2] = len(self.rows)
        self.table[table + 3 * len(members) : table + 3 * len(members) + 3] = [
            0,
            nulls[0] if nulls else 0,
            len(self.rows),
        ]


def _rank(node: Node) -> int:
    """Rank two number types that share a column, so that the type that holds both comes last."""
    return int(isinstance(node, Primitive) and node.kind in (Kind.LONG, Kind.DOUBLE))
