"""What an Avro reader makes of data that it can read: where the values differ from those that were written.

Resolution as in Avro's specification: aliases count in the reader's schema only, a union's branch is taken by name or
kind before promotion. What a reader cannot resolve at all is left out: the checker has findings for it.
"""

import math
from collections.abc import Iterator
from typing import Final

from strata.compat.avro.json_text import write_json
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
from strata.compat.difference.edits import EditKind, below
from strata.compat.difference.outcomes import Cause, Outcome
from strata.compat.limits import Limits

__all__ = ["logical_type", "outcomes", "sources"]

_LARGEST_EXACT: Final = {("int", "float"): "2^24", ("long", "float"): "2^24", ("long", "double"): "2^53"}
_TIMES: Final = ("millis", "micros", "nanos")
_LOGICAL_TYPES: Final = {
    "int": frozenset({"date", "time-millis"}),
    "long": frozenset(
        {"time-micros", *(f"{name}-{unit}" for name in ("timestamp", "local-timestamp") for unit in _TIMES)}
    ),
    "string": frozenset({"uuid"}),
    "bytes": frozenset({"big-decimal"}),
    "fixed": frozenset({"duration", "uuid"}),
}
_FIXED_SIZES: Final = {"duration": 12, "uuid": 16}
_TYPES: Final = frozenset({EditKind.TYPE_CHANGED, EditKind.LOGICAL_TYPE_CHANGED, EditKind.BRANCH_ADDED})
_DEFAULTS: Final = frozenset({EditKind.FIELD_REMOVED, EditKind.FIELD_RENAMED})
_SYMBOLS: Final = frozenset({EditKind.SYMBOL_ADDED, EditKind.SYMBOL_REMOVED})
_MOST_SHOWN: Final = 5  # symbols


def outcomes(reader: AvroSchema, writer: AvroSchema, limits: Limits, *, is_new: bool) -> Iterator[Outcome]:
    """Yield the parts that the reader does not read as they were written.

    Args:
        reader: The reader's schema.
        writer: The writer's schema.
        limits: Bounds on time.
        is_new: Whether the reader's schema is the new one.

    Raises:
        OutOfTime: The time of `limits` ran out.
    """
    return _Walk(reader, writer, limits, is_new=is_new).run()


def logical_type(node: Node) -> str | None:
    """Return the logical type that readers apply to a type, for people; None if they apply none.

    A logical type that does not fit its type has no effect. The precision of a decimal is left out, since it changes no
    value.
    """
    properties = getattr(node, "properties", {})
    name = properties.get("logicalType")
    if name == "decimal" and node.kind in ("bytes", "fixed"):
        precision, scale = (_number(properties.get(part, 0)) for part in ("precision", "scale"))
        fits = not isinstance(node, FixedType) or precision <= math.floor(math.log10(2) * (8 * node.size - 1))
        return f"decimal of scale {scale}" if fits and precision > 0 and 0 <= scale <= precision else None
    if not isinstance(name, str) or name not in _LOGICAL_TYPES.get(node.kind, ()):
        return None
    return name if not isinstance(node, FixedType) or node.size == _FIXED_SIZES[name] else None


def _number(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else -1


class _Walk:
    def __init__(self, reader: AvroSchema, writer: AvroSchema, limits: Limits, *, is_new: bool):
        self._reader, self._writer, self._limits = reader, writer, limits
        self._is_new = is_new
        self._seen: set[tuple[int, int]] = set()
        self._stack: list[tuple[Node, Node, str]] = []

    def run(self) -> Iterator[Outcome]:
        self._stack = [(self._reader.root, self._writer.root, "")]
        while self._stack:
            self._limits.look_at_clock()
            reader, writer, at = self._stack.pop()
            yield from self._types(resolve(reader, self._reader.names), resolve(writer, self._writer.names), at)

    def _types(self, reader: Node, writer: Node, at: str) -> Iterator[Outcome]:
        if isinstance(writer, UnionType):
            self._stack += [(reader, branch, at) for branch in reversed(writer.branches)]
        elif isinstance(reader, UnionType):
            branch = self._branch(reader, writer)
            if branch is not None:
                self._stack.append((branch, writer, at))
        elif isinstance(reader, PrimitiveType) and isinstance(writer, PrimitiveType):
            yield from self._primitives(reader, writer, at)
        elif isinstance(reader, ArrayType) and isinstance(writer, ArrayType):
            self._stack.append((reader.items, writer.items, below(at, "[]")))
        elif isinstance(reader, MapType) and isinstance(writer, MapType):
            self._stack.append((reader.values, writer.values, below(at, "{}")))
        elif isinstance(reader, NamedType) and isinstance(writer, NamedType):
            yield from self._named(reader, writer, at)

    def _branch(self, reader: UnionType, writer: Node) -> Node | None:
        """Return the branch that reads a type: by name, then by kind, then by promotion."""
        branches = [resolve(branch, self._reader.names) for branch in reader.branches]
        same = [branch for branch in branches if branch.kind == writer.kind]
        named = [branch for branch in same if isinstance(branch, NamedType) and _is_called(branch, writer)]
        promoted = [branch for branch in branches if branch.kind in PROMOTED_TO.get(writer.kind, ())]
        return next(iter([*named, *same, *promoted]), None)

    def _primitives(self, reader: PrimitiveType, writer: PrimitiveType, at: str) -> Iterator[Outcome]:
        pair = writer.kind, reader.kind
        if reader.kind != writer.kind and reader.kind not in PROMOTED_TO.get(writer.kind, ()):
            return
        if pair == ("bytes", "string"):
            yield Outcome(Cause.BYTES_NOT_TEXT, (at,), *pair, kinds=_TYPES)
        elif pair in _LARGEST_EXACT:
            yield Outcome(Cause.NUMBER_ROUNDED, (at,), *pair, name=_LARGEST_EXACT[pair], kinds=_TYPES)
        yield from self._logical(reader, writer, at)

    def _logical(self, reader: Node, writer: Node, at: str) -> Iterator[Outcome]:
        after, before = logical_type(reader), logical_type(writer)
        if after == before:
            return
        if after == "uuid" and reader.kind == "string":
            yield Outcome(Cause.NOT_A_UUID, (at,), kinds=_TYPES)
        else:
            yield Outcome(Cause.REINTERPRETED, (at,), before or writer.kind, after or reader.kind, kinds=_TYPES)

    def _named(self, reader: NamedType, writer: NamedType, at: str) -> Iterator[Outcome]:
        pair = id(reader), id(writer)
        if pair in self._seen:
            return
        self._seen.add(pair)
        if isinstance(reader, RecordType) and isinstance(writer, RecordType):
            yield from self._records(reader, writer, at)
        elif isinstance(reader, FixedType) and isinstance(writer, FixedType):
            yield from self._logical(reader, writer, at)
        elif isinstance(reader, EnumType) and isinstance(writer, EnumType) and reader.default is not None:
            known = frozenset(reader.symbols)
            lacking = [symbol for symbol in writer.symbols if symbol not in known]
            if lacking:
                shown = ", ".join([*lacking[:_MOST_SHOWN], *["…"] * (len(lacking) > _MOST_SHOWN)])
                yield Outcome(Cause.ENUM_DEFAULT, (at,), shown, reader.default, kinds=_SYMBOLS)

    def _records(self, reader: RecordType, writer: RecordType, at: str) -> Iterator[Outcome]:
        steps: list[tuple[Node, Node, str]] = []
        known_as = {alias: field.name for field in writer.fields for alias in field.aliases}
        self._limits.look_at_clock()
        for field, source in sources(reader, writer):
            place = below(at, f".{field.name}").removeprefix(".")
            if source is None:
                hidden = next((name for name in (field.name, *field.aliases) if name in writer.by_name), None)
                yield from self._default(field, hidden or known_as.get(field.name), place, is_hidden=bool(hidden))
            elif source.text is None or source.text != field.text:
                steps.append((field.type, source.type, place))
        self._stack += reversed(steps)

    def _default(self, field: Field, written_as: str | None, at: str, *, is_hidden: bool) -> Iterator[Outcome]:
        """Judge a field that the reader does not find in the writer's record."""
        if isinstance(field.default, Missing):
            if is_hidden:  # from readers, not from the checker
                yield Outcome(Cause.ALIAS_HIDDEN, (at,), repr(written_as), kinds=_DEFAULTS)
            return
        default = write_json(field.default)
        if written_as is not None:
            yield Outcome(Cause.RENAMED_DEFAULT, (at,), repr(written_as), default, kinds=_DEFAULTS)
        elif not self._is_new and field.default is not None:
            yield Outcome(Cause.REMOVED_DEFAULT, (at,), "", default, kinds=_DEFAULTS)


def sources(reader: RecordType, writer: RecordType) -> Iterator[tuple[Field, Field | None]]:
    """Yield each field of the reader with the writer's field that Avro's Java library reads for it, or None.

    The library's reader differs from its check of compatibility here: aliases rename the writer's fields, also one
    whose own name the reader has, but only in a record whose full name is the reader's or an alias of it.
    """
    held = writer.by_name
    if reader.name == writer.name or any(alias.full == writer.name.full for alias in reader.aliases):
        known_as = {alias: field.name for field in reader.fields for alias in field.aliases}
        if not known_as.keys().isdisjoint(held):
            held = {known_as.get(name, name): field for name, field in held.items()}
    for field in reader.fields:
        yield field, held.get(field.name)


def _is_called(reader: NamedType, writer: Node) -> bool:
    if not isinstance(writer, NamedType):
        return False
    return reader.name.simple == writer.name.simple or writer.name in reader.aliases
