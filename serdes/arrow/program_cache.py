"""The bytecode programs of one batch decoder: one for each schema id, compiled when the id is first met.

Rules of this file: it looks schemas up and compiles them; no frames. A batch uses a `Snapshot`, which never changes;
learning a schema makes a new one, so any number of threads can decode at once.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strata.serdes.arrow import operations
from strata.serdes.arrow.code import Code
from strata.serdes.arrow.compiler import Compiler
from strata.serdes.arrow.layout import Column, Style
from strata.serdes.arrow.memory import PADDING
from strata.serdes.arrow.vm_state import HASH
from strata.serdes.avro.logical_types import Shape
from strata.serdes.avro.resolution import plan
from strata.serdes.avro.schema import Node, parse
from strata.serdes.client import RegistryClient, Schema, schema_named
from strata.serdes.errors import ErrorCode, RegistryError, SchemaError
from strata.serdes.framing import SchemaName, kind_of
from strata.serdes.model import AVRO
from strata.serdes.references import resolve

__all__ = ["UNKNOWN", "Programs", "Snapshot", "WriterSchemas", "finder", "read_schema"]

Writer = str | Schema | Node
"""A writer schema; one with references is a node that `parse` returned."""
WriterSchemas = RegistryClient | Mapping[SchemaName, Writer] | Mapping[int, Writer] | Callable[[Any], Writer]
"""The source of writer schemas: the registry, a mapping, or a function that raises LookupError for an unknown name.

Names are schema ids, and where frames have them, GUIDs and versions of AWS Glue; see `strata.serdes.framing`.
"""

UNKNOWN = (f"unknown {kind_of(0)}", "")

_MAX_PROGRAMS = 1000


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What the VM needs of all programs known at one time; a negative start is a refusal, see `vm_state.py`."""

    code: NDArray[np.int64]
    table: NDArray[np.int64]
    pool: NDArray[np.uint8]
    ids: NDArray[np.int64]
    starts: NDArray[np.int64]
    stack_size: int


class Programs:
    """Programs that read into the same columns."""

    _rows: NDArray[np.int64]
    _table: NDArray[np.int64]
    _own: int | None

    def __init__(self, reader: Node, root: Column, style: Style, find: Callable[[int], Writer]) -> None:
        self._reader = reader
        self._root = root
        self._shape = Shape(numeric_times=style is Style.SPARK, tagged_unions=True)
        self._find = find
        self._lock = threading.Lock()
        self._code = Code()
        self._refusals: dict[tuple[str, str], int] = {UNKNOWN: 0}
        self._clear()
        self._snapshot = self._take()

    @property
    def messages(self) -> list[str]:
        """Return the messages that instructions refer to by number."""
        return self._code.messages

    def refusal(self, number: int) -> tuple[str, str]:
        """Return reason and message of a refusal."""
        return list(self._refusals)[number]

    def writer(self, schema_id: int) -> Node:
        """Return the writer schema of an id that was learned.

        Raises:
            SchemaError: If the schema cannot be used; the error says why.
        """
        start = self._starts.get(schema_id, -1)
        if start < 0:
            reason, message = self.refusal(-1 - start)
            raise SchemaError(f"{reason}: {message}" if message else reason)
        return self._writers[schema_id]

    def begin(self) -> Snapshot:
        """Return the current snapshot, without ids that the registry did not know, so that they are looked up again."""
        unknown = [schema_id for schema_id, start in self._starts.items() if start == -1]
        if unknown:
            with self._lock:
                for schema_id in unknown:
                    self._starts.pop(schema_id, None)
                self._snapshot = self._take()
        return self._snapshot

    def learn(self, schema_id: int) -> Snapshot:
        """Return a snapshot with one more schema id.

        Raises:
            SerdeError: If the registry did not answer, or failed in another way than not knowing the id.
        """
        writer: Writer | SchemaError | None
        try:
            writer = self._find(schema_id)
        except LookupError:
            writer = None
        except SchemaError as error:
            writer = error
        except RegistryError as error:
            if error.error_code != ErrorCode.SCHEMA_NOT_FOUND:
                raise
            writer = None
        with self._lock:
            if len(self._starts) >= _MAX_PROGRAMS:
                self._clear()
            self._starts[schema_id] = self._start(schema_id, writer)
            self._snapshot = self._take()
            return self._snapshot

    def learn_own(self) -> tuple[Snapshot, int]:
        """Return a snapshot with a program for payloads that have the reader schema, and the program's start."""
        with self._lock:
            if self._own is None:
                self._own = self._compiled(self._reader)
                self._snapshot = self._take()
            return self._snapshot, self._own

    def _start(self, schema_id: int, schema: Writer | SchemaError | None) -> int:
        if schema is None:
            return self._refuse(*UNKNOWN)
        if isinstance(schema, Schema) and schema.format != AVRO:
            return self._refuse(f"writer schema is {schema.format}")
        try:
            writer = self._writers[schema_id] = _node(schema)
            return self._compiled(writer)
        except SchemaError as error:
            return self._refuse("unusable writer schema", str(error))
        except RecursionError:
            return self._refuse("unusable writer schema", "the types of the schema are nested too deeply")

    def _compiled(self, writer: Node) -> int:
        return Compiler(self._code).compile(plan(writer, self._reader, self._shape), self._reader, self._root)

    def _refuse(self, reason: str, message: str = "") -> int:
        return -1 - self._refusals.setdefault((reason, message), len(self._refusals))

    def _take(self) -> Snapshot:
        size = 16
        while size < 2 * len(self._starts):
            size *= 2
        ids, starts = np.full(size, -1, np.int64), np.zeros(size, np.int64)
        for schema_id, start in self._starts.items():
            slot = (schema_id * HASH >> 7) & (size - 1)
            while ids[slot] >= 0:
                slot = (slot + 1) & (size - 1)
            ids[slot], starts[slot] = schema_id, start
        code = self._code
        self._rows = _extended(self._rows, code.rows)
        self._table = _extended(self._table, code.table)
        pool = np.frombuffer(bytes(code.pool) + bytes(PADDING), np.uint8)
        return Snapshot(self._rows, self._table, pool, ids, starts, 2 * code.deepest + 64)

    def _clear(self) -> None:
        """Forget all programs but keep the messages: batches that are being decoded refer to them by number."""
        self._starts: dict[int, int] = {}
        self._own = None
        self._writers: dict[int, Node] = {}
        self._code = Code(messages=self._code.messages)
        self._rows = np.zeros((0, operations.WORDS), np.int64)
        self._table = np.zeros(0, np.int64)


def _extended(array: NDArray[np.int64], rows: Sequence[Sequence[int]] | Sequence[int]) -> NDArray[np.int64]:
    """Return the array with the rows that it lacks; existing rows of a program never change."""
    return np.concatenate([array, np.array(rows[len(array) :], np.int64)]) if len(rows) > len(array) else array


def read_schema(client: RegistryClient, schema: Schema) -> Schema | Node:
    """Return an Avro schema of a registry parsed with all its references, or a schema of another format unchanged.

    Args:
        client: the client to read references with.
        schema: the schema.

    Raises:
        SchemaError: If the schema cannot be used, or has too many references.
        SerdeError: If the registry did not answer.
    """
    if schema.format != AVRO:
        return schema
    return parse(schema.text, [reference.text for reference in resolve(client, schema).values()])


def _node(writer: Writer | SchemaError) -> Node:
    if isinstance(writer, SchemaError):
        raise writer
    if isinstance(writer, Schema):
        return parse(writer.text)
    return parse(writer) if isinstance(writer, str) else writer


def finder(writers: WriterSchemas) -> Callable[[SchemaName], Writer]:
    """Return the function that finds writer schemas by name; it raises LookupError or RegistryError."""
    if isinstance(writers, RegistryClient):
        return lambda name: read_schema(writers, schema_named(writers, name))
    lookup: Any = writers.__getitem__ if isinstance(writers, Mapping) else writers
    find: Callable[[SchemaName], Writer] = lookup
    return find
