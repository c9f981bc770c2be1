"""Can a reader schema read all that a writer schema writes? The rules of Avro Java's SchemaCompatibility.

Every incompatibility is collected, not only the first. Three habits of the original are kept on purpose, since the
messages, and in rare recursive schemas the verdict, depend on them:

- A pair of types is judged once. Meeting it again gives the first answer with the first place; meeting it while it
  is being judged counts as compatible.
- The branches of two unions, and the branches of a reader's union, are judged as if they stood at the root; what is
  reported is that a branch is missing, at the place of the union.
- Names of types are compared without their namespace, the reader's aliases with it.

The judging runs on a stack of its own (generators that hand over the pairs they want judged), so neither a long chain
of types nor two cycles of coprime length overflow Python's, and both the number of pairs and of findings is bounded.
All memory is local to one check: another check never sees a half-finished answer.
"""

from collections.abc import Generator, Sequence
from typing import Final, NamedTuple, TypeAlias

from compat.avro.json_text import in_java_order
from compat.avro.model import (
    ArrayType,
    AvroSchema,
    EnumType,
    Field,
    FixedType,
    MapType,
    Missing,
    Name,
    NamedType,
    Names,
    Node,
    PrimitiveType,
    RecordType,
    UnionType,
    resolve,
)
from compat.avro.printer import print_schema
from compat.avro.promotions import PROMOTED_FROM
from compat.avro.wording import Kind, describe
from compat.limits import DEFAULT_LIMITS, Limits
from compat.result import Incompatibility
from compat.schema import SchemaFormat

__all__ = ["check"]


class _Place(NamedTuple):
    """Where the check stands: a step down from another place. A step without a token starts a new path."""

    above: "_Place | None"
    token: str | None
    label: str


class _Pair(NamedTuple):
    """A question: can this reader type read this writer type?"""

    reader: Node
    writer: Node
    place: _Place


_Findings: TypeAlias = tuple[Incompatibility, ...]
_Judging: TypeAlias = Generator[_Pair, _Findings, _Findings]
_NONE: Final[_Findings] = ()


class _GaveUp(Exception):
    def __init__(self, finding: Incompatibility):
        super().__init__(finding.message)
        self.finding = finding


def check(reader: AvroSchema, writer: AvroSchema, *, limits: Limits = DEFAULT_LIMITS) -> Sequence[Incompatibility]:
    """Every reason why the reader schema cannot read what the writer schema writes."""
    try:
        return _Check(reader.names, writer.names, limits).run(reader.root, writer.root)
    except _GaveUp as gave_up:
        return (gave_up.finding,)


class _Check:
    def __init__(self, reader_names: Names, writer_names: Names, limits: Limits):
        self._reader_names = reader_names
        self._writer_names = writer_names
        self._limits = limits
        self._judged: dict[tuple[int, int], _Findings | None] = {}  # None while a pair is being judged
        self._fields: dict[int, dict[str, Field]] = {}

    def run(self, reader: Node, writer: Node) -> _Findings:
        """Judge a pair, and on the way every pair that its judging asks for."""
        stack: list[tuple[tuple[int, int], _Judging]] = []
        answer = self._ask(_Pair(reader, writer, _root(None)), stack)
        while stack:
            key, judging = stack[-1]
            try:
                wanted = judging.send(answer) if answer is not None else next(judging)
            except StopIteration as done:
                stack.pop()
                answer = self._judged[key] = done.value[: self._limits.incompatibilities]
            else:
                answer = self._ask(wanted, stack)
        return answer if answer is not None else _NONE

    def _ask(self, pair: _Pair, stack: list[tuple[tuple[int, int], _Judging]]) -> _Findings | None:
        """Answer at once what is simple or known already; else put the judging on the stack."""
        reader = resolve(pair.reader, self._reader_names)
        writer = resolve(pair.writer, self._writer_names)
        if isinstance(reader, PrimitiveType) and isinstance(writer, PrimitiveType):
            return _primitives(reader, writer, pair.place)
        key = (id(reader), id(writer))
        if key in self._judged:
            return self._judged[key] or _NONE
        if len(self._judged) >= self._limits.comparisons:
            limit = f"more than {self._limits.comparisons} pairs of types to compare"
            raise _GaveUp(_finding(Kind.TOO_COMPLEX, pair.place, limit, reader, writer))
        self._judged[key] = None
        stack.append((key, self._judge(reader, writer, pair.place)))
        return None

    def _judge(self, reader: Node, writer: Node, place: _Place) -> _Judging:
        """One case for each combination of kinds."""
        if isinstance(writer, UnionType):
            return self._branches(reader, writer, place)
        if isinstance(reader, UnionType):
            return self._any_branch(reader, writer, place)
        if isinstance(reader, ArrayType) and isinstance(writer, ArrayType):
            return _inside(reader.items, writer.items, _Place(place, "items", "[]"))
        if isinstance(reader, MapType) and isinstance(writer, MapType):
            return _inside(reader.values, writer.values, _Place(place, "values", "{}"))
        if isinstance(reader, FixedType) and isinstance(writer, FixedType):
            return _finished(_names(reader, writer, place) + _sizes(reader, writer, place))
        if isinstance(reader, EnumType) and isinstance(writer, EnumType):
            return _finished(_names(reader, writer, place) + _symbols(reader, writer, place))
        if isinstance(reader, RecordType) and isinstance(writer, RecordType):
            return self._records(reader, writer, place)
        return _finished(_mismatch(reader, writer, place))

    def _branches(self, reader: Node, writer: UnionType, place: _Place) -> _Judging:
        """The reader must read every branch that the writer may write."""
        findings: list[Incompatibility] = []
        for position, branch in enumerate(writer.branches):
            step = _Place(place, str(position), "")
            if not isinstance(reader, UnionType):
                findings += yield _Pair(reader, branch, step)
            elif (yield _Pair(reader, branch, _root(step))):
                findings.append(self._lacking(reader, resolve(branch, self._writer_names), step))
        return tuple(findings)

    def _any_branch(self, reader: UnionType, writer: Node, place: _Place) -> _Judging:
        """One branch of the reader that reads the writer's type is enough."""
        for branch in reader.branches:
            if not (yield _Pair(branch, writer, _root(place))):
                return _NONE
        return (self._lacking(reader, writer, place),)

    def _lacking(self, reader: Node, writer: Node, place: _Place) -> Incompatibility:
        detail = f"reader union lacking writer type: {writer.kind.upper()}"
        return _finding(Kind.MISSING_UNION_BRANCH, place, detail, reader, writer)

    def _records(self, reader: RecordType, writer: RecordType, place: _Place) -> _Judging:
        """Every field of the reader must come from the writer, under its name or an alias, or have a default."""
        findings = list(_names(reader, writer, place))
        for position, field in enumerate(reader.fields):
            step = _Place(_Place(place, "fields", ""), str(position), f".{field.name}")
            source = self._source(field, writer, position, step)
            node = resolve(field.type, self._reader_names)
            if source is not None:
                findings += yield _Pair(field.type, source.type, _Place(step, "type", ""))
            elif not isinstance(field.default, Missing):
                continue
            elif isinstance(node, EnumType) and node.default is not None:
                findings += yield _Pair(field.type, writer, _Place(step, "type", ""))
            else:
                findings.append(_finding(Kind.READER_FIELD_MISSING_DEFAULT_VALUE, step, field.name, reader, writer))
        return tuple(findings)

    def _source(self, field: Field, writer: RecordType, position: int, place: _Place) -> Field | None:
        """The writer's field that fills the reader's field."""
        fields = self._fields.get(id(writer))
        if fields is None:
            fields = self._fields[id(writer)] = {candidate.name: candidate for candidate in writer.fields}
        found = [fields[name] for name in (field.name, *field.aliases) if name in fields]
        if len(found) <= 1:
            return found[0] if found else None
        node = resolve(field.type, self._reader_names)
        text = print_schema(writer, self._writer_names, self._limits)
        detail = (
            f"Reader record field {field.name} type:{node.kind.upper()} pos:{position} "
            f"matches multiple fields in writer record schema {text}"
        )
        raise _GaveUp(_finding(Kind.AMBIGUOUS_FIELD, place, detail, node, writer))


def _inside(reader: Node, writer: Node, place: _Place) -> _Judging:
    return (yield _Pair(reader, writer, place))


def _finished(findings: _Findings) -> _Judging:
    return findings
    yield  # makes this a generator like the others


def _primitives(reader: PrimitiveType, writer: PrimitiveType, place: _Place) -> _Findings:
    if reader.kind == writer.kind or writer.kind in PROMOTED_FROM.get(reader.kind, ()):
        return _NONE
    return _mismatch(reader, writer, place)


def _mismatch(reader: Node, writer: Node, place: _Place) -> _Findings:
    detail = f"reader type: {reader.kind.upper()} not compatible with writer type: {writer.kind.upper()}"
    return (_finding(Kind.TYPE_MISMATCH, place, detail, reader, writer),)


def _names(reader: NamedType, writer: NamedType, place: _Place) -> _Findings:
    full = writer.name.full
    if reader.name.simple == writer.name.simple or any(alias.full == full for alias in reader.aliases):
        return _NONE
    return (_finding(Kind.NAME_MISMATCH, _Place(place, "name", ""), f"expected: {full}", reader, writer),)


def _sizes(reader: FixedType, writer: FixedType, place: _Place) -> _Findings:
    if reader.size == writer.size:
        return _NONE
    detail = f"expected: {writer.size}, found: {reader.size}"
    return (_finding(Kind.FIXED_SIZE_MISMATCH, _Place(place, "size", ""), detail, reader, writer),)


def _symbols(reader: EnumType, writer: EnumType, place: _Place) -> _Findings:
    missing = set(writer.symbols).difference(reader.symbols)
    if not missing or reader.default is not None:
        return _NONE
    detail = f"[{', '.join(in_java_order(missing))}]"
    return (_finding(Kind.MISSING_ENUM_SYMBOLS, _Place(place, "symbols", ""), detail, reader, writer),)


def _root(above: _Place | None) -> _Place:
    return _Place(above, None, "")


def _finding(kind: Kind, place: _Place, detail: str, reader: Node, writer: Node) -> Incompatibility:
    path, where = _told(place)
    return Incompatibility(
        format=SchemaFormat.AVRO,
        kind=kind,
        path=path,
        message=describe(kind, path, detail),
        detail=detail,
        where=where,
        reader=_type_name(reader),
        writer=_type_name(writer),
    )


def _told(place: _Place) -> tuple[str, str]:
    """The pointer that the wire carries, and the same place by field names, across unions too."""
    tokens: list[str] = []
    labels: list[str] = []
    pointing = True
    here: _Place | None = place
    while here is not None:
        labels.append(here.label)
        if here.token is None:
            pointing = False
        elif pointing:
            tokens.append(here.token)
        here = here.above
    return "/" + "/".join(reversed(tokens)), "".join(reversed(labels)).removeprefix(".")


def _type_name(node: Node) -> str:
    name: Name | None = getattr(node, "name", None)
    return f"{node.kind} {name.full}" if name is not None else node.kind
