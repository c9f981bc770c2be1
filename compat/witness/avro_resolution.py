"""What a reader does with a value of a writer's schema, as Avro's Java library does it.

The rules of the checker are stricter and looser than readers in a few places, so that a proof follows the readers:

- A record's name is compared only to choose the branch of a union, and there a record of another name whose fields fit
  is taken too. Other readers, such as fastavro, compare it everywhere.
- Whether a value can be read depends on the value: a branch that was not taken, a symbol that was not used and the
  items of an empty array break nothing.

Source: the Avro 1.12 specification, "Schema Resolution"; tests compare with Avro's Java library and fastavro.
"""

import struct
import uuid
from collections.abc import Iterator
from typing import Final, TypeAlias

from strata.compat.avro.model import (
    ArrayType,
    AvroSchema,
    EnumType,
    Field,
    FixedType,
    MapType,
    Missing,
    NamedType,
    Node,
    PrimitiveType,
    RecordType,
    UnionType,
    resolve,
)
from strata.compat.avro.promotions import PROMOTED_TO
from strata.compat.difference.avro_reading import logical_type, sources
from strata.compat.difference.edits import cut
from strata.compat.limits import Limits
from strata.compat.witness.avro_values import Taken, Value, default_value

__all__ = ["Resolution", "Unreadable", "missing", "unknown"]

_MOST_SHOWN: Final = 10  # branches of a union
_Ids: TypeAlias = tuple[int, int]


class Unreadable(Exception):
    """A reader refuses a value; the message says why."""


class Resolution:
    """The resolution of a writer's schema to a reader's."""

    def __init__(self, reader: AvroSchema, writer: AvroSchema, limits: Limits) -> None:
        self._reader = reader.names
        self._writer = writer.names
        self._limits = limits
        self._fitting: dict[_Ids, bool] = {}
        self._faults: dict[_Ids, str | None] = {}
        self._reads: dict[tuple[int, int, int], tuple[Value, Value | Unreadable]] = {}

    def reader(self, node: Node) -> Node:
        """Return the definition of a type of the reader."""
        return resolve(node, self._reader)

    def pair(self, reader: Node, writer: Node) -> tuple[Node, Node]:
        """Return the definitions of two types; of a reader's union the branch that reads the writer's type, if any."""
        reader, writer = resolve(reader, self._reader), resolve(writer, self._writer)
        if isinstance(reader, UnionType) and not isinstance(writer, UnionType):
            return self._branch(reader, writer) or reader, writer
        return reader, writer

    def _branch(self, reader: UnionType, writer: Node) -> Node | None:
        """Return the branch that reads a type: by name, then by kind or structure, then by promotion."""
        branches = [resolve(branch, self._reader) for branch in reader.branches]
        same = [branch for branch in branches if branch.kind == writer.kind]
        if isinstance(writer, NamedType):
            named = [branch for branch in same if isinstance(branch, NamedType) and _is_called(branch, writer)]
            exact = [branch for branch in named if branch.name == writer.name or writer.name in branch.aliases]
            same = [*(exact or named)]
            if not same and isinstance(writer, RecordType):
                records = (branch for branch in branches if isinstance(branch, RecordType))
                same = [branch for branch in records if self._fits(branch, writer)]
        promoted = [branch for branch in branches if branch.kind in PROMOTED_TO.get(writer.kind, ())]
        return next(iter([*same, *promoted]), None)

    def _fits(self, reader: RecordType, writer: RecordType) -> bool:
        """Return whether a record of another name is read anyway: no field refuses every value."""
        key = id(reader), id(writer)
        if key not in self._fitting:
            self._limits.look_at_clock()
            self._fitting[key] = True  # while it is judged
            self._fitting[key] = self.fault(reader, writer) is None and not any(
                self._refuses_all(field.type, source.type)
                for field, source in self.sources(reader, writer)
                if source is not None
            )
        return self._fitting[key]

    def _refuses_all(self, reader: Node, writer: Node) -> bool:
        reader, writer = self.pair(reader, writer)
        return not isinstance(writer, UnionType) and self.fault(reader, writer) is not None

    def sources(self, reader: RecordType, writer: RecordType) -> Iterator[tuple[Field, Field | None]]:
        """Yield each field of the reader with the writer's field that it reads, or None."""
        self._limits.look_at_clock()
        return sources(reader, writer)

    def fault(self, reader: Node, writer: Node) -> str | None:
        """Return why the reader refuses every value of a type that is not a union; None if it reads some.

        Args:
            reader: The reader's type, from `pair`.
            writer: The writer's type, from `pair`.
        """
        if isinstance(reader, UnionType):
            return f"The reader's union {_title(reader)} has no branch for {_title(writer)}."
        if isinstance(reader, RecordType) and isinstance(writer, RecordType):
            key = id(reader), id(writer)
            if key not in self._faults:
                self._faults[key] = self._record_fault(reader, writer)
            return self._faults[key]
        if isinstance(reader, FixedType | EnumType) and reader.kind == writer.kind:
            return _leaf_fault(reader, writer)
        if reader.kind == writer.kind or reader.kind in PROMOTED_TO.get(writer.kind, ()):
            return None
        return f"The reader expects {_title(reader)}, but {_title(writer)} is written."

    def _record_fault(self, reader: RecordType, writer: RecordType) -> str | None:
        for field, source in self.sources(reader, writer):
            if source is None and isinstance(field.default, Missing):
                return missing(field)
            several = [name for name in dict.fromkeys((field.name, *field.aliases)) if name in writer.by_name]
            if len(several) > 1 and not self._are_renamed(several, reader):
                return f"The reader's field {cut(field.name)!r} stands for several fields: {cut(', '.join(several))}."
        return None

    @staticmethod
    def _are_renamed(several: list[str], reader: RecordType) -> bool:
        """Return whether all but one of some fields of the writer have another name for the reader."""
        known_as = {alias: field.name for field in reader.fields for alias in field.aliases}
        return len({known_as.get(name, name) for name in several}) == len(several)

    def lacking(self, reader: Node, writer: Node) -> list[str]:
        """Return the symbols of a writer's enum that the reader's does not have."""
        if not isinstance(reader, EnumType) or not isinstance(writer, EnumType):
            return []
        known = frozenset(reader.symbols)
        return [symbol for symbol in writer.symbols if symbol not in known]

    def read(self, reader: Node, writer: Node, value: Value) -> Value:
        """Return what the reader makes of a value.

        Raises:
            Unreadable: the reader refuses it.
        """
        key = id(reader), id(writer), id(value)
        known = self._reads.get(key)
        if known is None or known[0] is not value:
            try:
                known = value, self._resolved(reader, writer, value)
            except Unreadable as error:
                known = value, error
            self._reads[key] = known
        if isinstance(known[1], Unreadable):
            raise known[1]
        return known[1]

    def _resolved(self, reader: Node, writer: Node, value: Value) -> Value:
        writer = resolve(writer, self._writer)
        if isinstance(writer, UnionType) and isinstance(value, Taken):
            return self.read(reader, writer.branches[value.branch], value.value)
        whole = resolve(reader, self._reader)
        reader, writer = self.pair(reader, writer)
        if (fault := self.fault(reader, writer)) is not None:
            raise Unreadable(fault)
        read = self._read(reader, writer, value)
        if isinstance(whole, UnionType):
            branches = [resolve(branch, self._reader) for branch in whole.branches]
            return Taken(next(at for at, branch in enumerate(branches) if branch is reader), read)
        return read

    def _read(self, reader: Node, writer: Node, value: Value) -> Value:
        if isinstance(reader, RecordType) and isinstance(writer, RecordType) and isinstance(value, dict):
            return {
                field.name: default_value(field.type, field.default, self._reader)
                if source is None
                else self.read(field.type, source.type, value[source.name])
                for field, source in self.sources(reader, writer)
            }
        if isinstance(reader, ArrayType) and isinstance(writer, ArrayType) and isinstance(value, list):
            return [self.read(reader.items, writer.items, item) for item in value]
        if isinstance(reader, MapType) and isinstance(writer, MapType) and isinstance(value, dict):
            return {key: self.read(reader.values, writer.values, item) for key, item in value.items()}
        if isinstance(reader, EnumType) and isinstance(value, str):
            if value in reader.symbols:
                return value
            if reader.default is None:
                raise Unreadable(unknown(reader, value))
            return reader.default
        return _promoted(reader, value) if isinstance(reader, PrimitiveType) else value


def missing(field: Field) -> str:
    """Return why a reader refuses a record without a field."""
    return f"The record has no field {cut(field.name)!r}, and the reader has no default for it."


def unknown(reader: EnumType, symbol: str) -> str:
    """Return why a reader refuses a symbol."""
    return f"The reader's enum {cut(reader.name.full)} has neither the symbol {cut(symbol)!r} nor a default."


def _promoted(reader: PrimitiveType, value: Value) -> Value:
    if reader.kind == "float" and isinstance(value, int | float):
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    if reader.kind == "double" and isinstance(value, int | float):
        return float(value)
    if reader.kind == "bytes" and isinstance(value, str):
        return value.encode()
    if reader.kind == "string" and isinstance(value, bytes):
        try:
            value = value.decode()
        except UnicodeDecodeError:
            raise Unreadable("The bytes are not UTF-8, so that they cannot be read as text.") from None
    if isinstance(value, str) and logical_type(reader) == "uuid":
        try:
            uuid.UUID(value)
        except ValueError:
            raise Unreadable(f"The text {cut(value)!r} is not a UUID.") from None
    return value


def _leaf_fault(reader: FixedType | EnumType, writer: Node) -> str | None:
    if not isinstance(writer, NamedType):
        return None
    if not _is_called(reader, writer):
        return f"The reader expects {_title(reader)}, but {_title(writer)} is written."
    if isinstance(reader, FixedType) and isinstance(writer, FixedType) and reader.size != writer.size:
        return f"The reader expects {reader.size} bytes in {_title(reader)}, but {writer.size} are written."
    return None


def _is_called(reader: NamedType, writer: NamedType) -> bool:
    return reader.name.simple == writer.name.simple or any(alias.full == writer.name.full for alias in reader.aliases)


def _title(node: Node) -> str:
    """Return a type for people; of a union, its branches."""
    if isinstance(node, UnionType):
        branches = [_title(branch) for branch in node.branches[:_MOST_SHOWN]]
        return cut(f"[{', '.join([*branches, *['…'] * (len(node.branches) > _MOST_SHOWN)])}]")
    if isinstance(node, NamedType):
        return f"{node.kind} {cut(node.name.full)}"
    return cut(getattr(node, "full", node.kind))
