"""How to decode a payload of the writer schema as a value of the reader schema (Avro schema resolution).

A plan is made once per pair of schemas and is a tree shaped like the writer schema: each node says what to read from
the bytes and how to convert it. All of schema resolution happens here: fields by name and alias, skipped fields,
defaults, promotions, union branches, enum symbols. Types that cannot be resolved become a `Fail` at their place, since
the data may never reach it: a union branch that the reader lacks is an error only in a record that uses it.

Where the Avro specification leaves freedom, data that the registry calls compatible must decode: record, enum and fixed
match by name without namespace, or by the reader's aliases; outside a union, names of records do not matter.

Rules of this file: pure data from pure data. A plan has a cycle where the schema has one.
"""

from dataclasses import dataclass, field

from strata.compat.avro.promotions import PROMOTED_TO
from strata.serdes.avro import schema as nodes
from strata.serdes.avro.logical_types import Convert, Shape, converter, default_value, is_tagged, promotion
from strata.serdes.errors import SchemaError

__all__ = [
    "Branches",
    "Bytes",
    "Entries",
    "Fail",
    "Fields",
    "Items",
    "Plan",
    "Rest",
    "Scalar",
    "Step",
    "Symbols",
    "Tag",
    "plan",
]

MAX_PLAN_NODES = 200_000
MAX_WEIGHTLESS_VALUES = 1000
"""The most values in a type that takes no bytes: nested records of nulls multiply."""


@dataclass(eq=False, slots=True)
class Scalar:
    """A primitive of the writer's kind and its conversion; `written` is the writer's logical type."""

    kind: nodes.Kind
    convert: Convert | None = None
    written: nodes.Logical | None = None


@dataclass(eq=False, slots=True)
class Bytes:
    """A fixed number of bytes and their conversion."""

    size: int
    convert: Convert | None = None
    written: nodes.Logical | None = None


@dataclass(eq=False, slots=True)
class Rest:
    """All bytes that are left and their conversion: a top-level `bytes` is framed without a length."""

    convert: Convert | None = None
    written: nodes.Logical | None = None


@dataclass(eq=False, slots=True)
class Symbols:
    """An enum: the writer's symbols, and the reader's symbol for each, None where it has none."""

    written: tuple[str, ...]
    read: tuple[str | None, ...]


@dataclass(eq=False, slots=True)
class Items:
    """An array.

    `weightless` is the number of values in an item that takes no bytes, where the bytes left do not bound the number of
    items; it is 0 for items that take bytes.
    """

    item: "Plan"
    weightless: int


@dataclass(eq=False, slots=True)
class Entries:
    """A map."""

    value: "Plan"


@dataclass(eq=False, slots=True)
class Branches:
    """A union of the writer, with one plan for each branch."""

    plans: tuple["Plan", ...]


@dataclass(eq=False, slots=True)
class Tag:
    """A value of a reader's union, returned with the position of its branch, or with the name of its record."""

    position: int
    value: "Plan"
    name: str | None = None


@dataclass(eq=False, slots=True)
class Fail:
    """A type that cannot be resolved; `message` says why."""

    message: str


@dataclass(eq=False, slots=True)
class Step:
    """A field in the writer's order.

    `target` is the reader's field, None for a skipped one; `again` reads the bytes of the previous step a second time,
    for another field of the reader with the writer's field as alias.
    """

    name: str
    value: "Plan"
    target: str | None
    again: bool = False


@dataclass(eq=False, slots=True)
class Fields:
    """A record: steps in the writer's order, targets and defaults in the reader's."""

    steps: list[Step] = field(default_factory=list)
    targets: tuple[str, ...] = ()
    defaults: dict[str, object] = field(default_factory=dict)
    uses: int = 1
    recursive: bool = False


Plan = Scalar | Bytes | Rest | Symbols | Items | Entries | Branches | Tag | Fail | Fields

_READ_AS_TEXT = {
    (nodes.Kind.BYTES, nodes.Kind.STRING): nodes.Kind.STRING,
    (nodes.Kind.STRING, nodes.Kind.BYTES): nodes.Kind.BYTES,
}
"""Bytes and strings are the same on the wire, so they are read as the reader's kind."""


def plan(writer: nodes.Node, reader: nodes.Node | None, shape: Shape) -> Plan:
    """Return the plan for the payload of a frame.

    The rules are those of "Schema Resolution" in the Avro specification; the module says where they are wider.

    Args:
        writer: the schema with which the payload was written.
        reader: the schema of the value wanted; None is the writer's.
        shape: the caller's choices.

    Raises:
        SchemaError: If the schemas are too large to resolve, or a type takes no bytes and holds too many values.
    """
    whole = _Resolver(shape).resolve(writer, writer if reader is None else reader)
    if isinstance(writer, nodes.Primitive) and writer.kind is nodes.Kind.BYTES:
        return _raw(whole)
    return whole


def _raw(whole: Plan) -> Plan:
    match whole:
        case Tag():
            return Tag(whole.position, _raw(whole.value), whole.name)
        case Scalar(kind=nodes.Kind.STRING, convert=convert):
            return Rest(bytes.decode if convert is None else lambda raw: convert(raw.decode()), whole.written)
        case Scalar():
            return Rest(whole.convert, whole.written)
    return whole


class _Resolver:
    """The resolution of one pair of schemas; it resolves each pair of records once."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._known: dict[tuple[int, int], Fields | Fail] = {}
        self._open: set[tuple[int, int]] = set()
        self._weightless: dict[int, int] = {}
        self._left = MAX_PLAN_NODES

    def resolve(self, writer: nodes.Node, reader: nodes.Node) -> Plan:
        self._left -= 1
        if self._left < 0:
            raise SchemaError("the schemas are too large to resolve against each other")
        if isinstance(writer, nodes.Union):
            return Branches(self._branches(writer, reader))
        if isinstance(reader, nodes.Union):
            index = self._choose(writer, reader)
            return _mismatch(writer, reader) if index is None else self._in_union(writer, reader, index)
        match writer, reader:
            case nodes.Primitive(), nodes.Primitive():
                return self._primitive(writer, reader)
            case nodes.Fixed(), nodes.Fixed() if writer.size == reader.size and _same_name(writer, reader):
                return Bytes(writer.size, converter(writer.logical, reader.logical, self._shape), writer.logical)
            case nodes.Enum(), nodes.Enum() if _same_name(writer, reader):
                read = tuple(symbol if symbol in reader.symbols else reader.default for symbol in writer.symbols)
                return Symbols(writer.symbols, read)
            case nodes.Array(), nodes.Array():
                return Items(self.resolve(writer.items, reader.items), self._weight(writer.items))
            case nodes.Map(), nodes.Map():
                return Entries(self.resolve(writer.values, reader.values))
            case nodes.Record(), nodes.Record():
                return self._record(writer, reader)
        return _mismatch(writer, reader)

    def _primitive(self, writer: nodes.Primitive, reader: nodes.Primitive) -> Plan:
        if writer.kind is not reader.kind and reader.kind not in PROMOTED_TO.get(writer.kind, ()):
            return _mismatch(writer, reader)
        promote = promotion(writer.kind, reader.kind)
        convert = converter(writer.logical, reader.logical, self._shape)
        kind = _READ_AS_TEXT.get((writer.kind, reader.kind), writer.kind)
        return Scalar(kind, promote or convert, writer.logical)

    def _branches(self, writer: nodes.Union, reader: nodes.Node) -> tuple[Plan, ...]:
        if writer is reader:
            return tuple(self._in_union(branch, writer, index) for index, branch in enumerate(writer.branches))
        return tuple(self.resolve(branch, reader) for branch in writer.branches)

    def _in_union(self, writer: nodes.Node, reader: nodes.Union, index: int) -> Plan:
        branch = reader.branches[index]
        value = self.resolve(writer, branch)
        if self._shape.named_records and isinstance(branch, nodes.Record):
            return Tag(index, value, branch.name)
        is_null = isinstance(writer, nodes.Primitive) and writer.kind is nodes.Kind.NULL
        return value if is_null or not is_tagged(reader, self._shape) else Tag(index, value)

    def _choose(self, writer: nodes.Node, reader: nodes.Union) -> int | None:
        """Return the reader's branch for a writer's type: the same type first, then a promotion."""
        same = [index for index, branch in enumerate(reader.branches) if _same_type(writer, branch)]
        if isinstance(writer, nodes.Record | nodes.Enum | nodes.Fixed):
            return self._choose_named(writer, reader, same)
        if same:
            return same[0]
        promoted = PROMOTED_TO.get(writer.kind, ()) if isinstance(writer, nodes.Primitive) else ()
        for index, branch in enumerate(reader.branches):
            if isinstance(branch, nodes.Primitive) and branch.kind in promoted:
                return index
        return None

    def _choose_named(
        self, writer: nodes.Record | nodes.Enum | nodes.Fixed, reader: nodes.Union, same: list[int]
    ) -> int | None:
        def named(index: int) -> nodes.Record | nodes.Enum | nodes.Fixed:
            branch = reader.branches[index]
            if not isinstance(branch, nodes.Record | nodes.Enum | nodes.Fixed):
                raise TypeError(index)
            return branch

        exact = [index for index in same if writer.name in (named(index).name, *named(index).aliases)]
        if exact:
            return exact[0]
        alike = [index for index in same if _same_name(writer, named(index))]
        if not isinstance(writer, nodes.Record):
            return alike[0] if alike else None
        fitting = [index for index in same if not _fails(self.resolve(writer, named(index)), set())]
        ranked = [index for index in alike if index in fitting] + fitting + alike
        return ranked[0] if ranked else None

    def _record(self, writer: nodes.Record, reader: nodes.Record) -> Plan:
        key = (id(writer), id(reader))
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._match(writer, reader)
            if isinstance(known, Fields):
                self._open.add(key)
                self._fill(known, writer, reader)
                self._open.discard(key)
        elif isinstance(known, Fields):
            known.uses += 1
            known.recursive |= key in self._open
        return known

    def _match(self, writer: nodes.Record, reader: nodes.Record) -> Fields | Fail:
        """Match the fields by name before their types are resolved, so that a record may contain itself."""
        self._weight(writer)
        sources = _sources(writer, reader)
        plan = Fields(targets=tuple(field_.name for field_ in reader.fields))
        for field_ in reader.fields:
            if field_.name in sources:
                continue
            if field_.default is nodes.MISSING:
                return Fail(
                    f"the reader's field {field_.name} of {reader.name} is not in the writer schema and has no default"
                )
            try:
                plan.defaults[field_.name] = default_value(field_.type, field_.default, self._shape)
            except (ValueError, OverflowError, RecursionError) as error:
                return Fail(f"the default of the reader's field {field_.name} of {reader.name} is not valid: {error}")
        return plan

    def _fill(self, plan: Fields, writer: nodes.Record, reader: nodes.Record) -> None:
        targets: dict[str, list[nodes.Field]] = {}
        sources = _sources(writer, reader)
        for field_ in reader.fields:
            if field_.name in sources:
                targets.setdefault(sources[field_.name], []).append(field_)
        for field_ in writer.fields:
            if field_.name not in targets:
                plan.steps.append(Step(field_.name, self.resolve(field_.type, field_.type), None))
            for target in targets.get(field_.name, ()):
                again = target is not targets[field_.name][0]
                plan.steps.append(Step(field_.name, self.resolve(field_.type, target.type), target.name, again))

    def _weight(self, node: nodes.Node) -> int:
        """Return the number of values in a type that takes no bytes; 0 if it takes some, or contains itself."""
        match node:
            case nodes.Primitive(kind=nodes.Kind.NULL) | nodes.Fixed(size=0):
                return 1
            case nodes.Record():
                if id(node) not in self._weightless:
                    self._weightless[id(node)] = 0
                    inner = [self._weight(field_.type) for field_ in node.fields]
                    self._weightless[id(node)] = 1 + sum(inner) if all(inner) else 0
                if self._weightless[id(node)] > MAX_WEIGHTLESS_VALUES:
                    raise SchemaError(f"the type {node.name} takes no bytes and holds too many values")
                return self._weightless[id(node)]
        return 0


def _sources(writer: nodes.Record, reader: nodes.Record) -> dict[str, str]:
    """Return the writer's field for each field of the reader: by name, else by alias.

    A field whose only matching alias is taken keeps its default; without a default it shares the writer's field.
    """
    written = {field_.name for field_ in writer.fields}
    sources = {field_.name: field_.name for field_ in reader.fields if field_.name in written}
    for field_ in reader.fields:
        if field_.name not in written:
            known = [alias for alias in field_.aliases if alias in written]
            free = [alias for alias in known if alias not in sources.values()]
            if free or (known and field_.default is nodes.MISSING):
                sources[field_.name] = (free or known)[0]
    return sources


def _same_type(writer: nodes.Node, reader: nodes.Node) -> bool:
    if isinstance(writer, nodes.Primitive) and isinstance(reader, nodes.Primitive):
        return writer.kind is reader.kind
    return type(writer) is type(reader)


def _same_name(
    writer: nodes.Record | nodes.Enum | nodes.Fixed, reader: nodes.Record | nodes.Enum | nodes.Fixed
) -> bool:
    """Return whether names agree without namespaces; the reader's aliases count too."""
    names = {reader.simple_name, *(alias.rpartition(".")[2] for alias in reader.aliases)}
    return writer.simple_name in names


def _mismatch(writer: nodes.Node, reader: nodes.Node) -> Fail:
    return Fail(f"the reader schema has {nodes.describe(reader)} where the writer schema has {nodes.describe(writer)}")


def _fails(candidate: Plan, seen: set[int]) -> bool:
    """Return whether a plan cannot give any value."""
    if id(candidate) in seen:
        return False
    seen.add(id(candidate))
    match candidate:
        case Fail():
            return True
        case Fields():
            return any(step.target is not None and _fails(step.value, seen) for step in candidate.steps)
        case Items(item=inner) | Entries(value=inner) | Tag(value=inner):
            return _fails(inner, seen)
        case Branches():
            return bool(candidate.plans) and all(_fails(plan, seen) for plan in candidate.plans)
    return False
