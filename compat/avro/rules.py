"""The compatibility rules of Avro Java's SchemaCompatibility: whether a reader schema reads a writer schema's data.

The check collects every incompatibility, not only the first. It keeps three properties of the original on purpose,
because the messages, and in rare recursive schemas the verdict, depend on them:

- A pair of types is judged once. If the check meets the pair again, it reuses the answer with the first path; a pair
  that is still being judged counts as compatible.
- The branches of two unions, and the branches of a reader's union, are judged as if they were at the root. The finding
  is a missing branch, at the path of the union.
- Names of types are compared without their namespace, the reader's aliases with it.

Judging uses an explicit stack (of generators that yield the pairs they need judged). So neither a long chain of types
nor two cycles of coprime length overflow Python's stack, and the numbers of pairs and findings are bounded. All memory
is local to one check: another check never sees a half-finished answer.

Most fields of two versions are equal or differ in types without names only. Such a pair is compared without a note of
its place, and judged as above only if that fails. If this settles all fields of two records at the root, there is
nothing to judge.
"""

from collections.abc import Generator, Hashable, Sequence
from typing import Final, NamedTuple, TypeAlias

from strata.compat.avro.findings import ROOT, Findings, Note, Place, report, start
from strata.compat.avro.model import (
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
from strata.compat.avro.printer import print_schema
from strata.compat.avro.promotions import PROMOTED_FROM
from strata.compat.avro.wording import Kind
from strata.compat.limits import DEFAULT_LIMITS, Limits
from strata.compat.result import Incompatibility
from strata.compat.schema import SchemaParseError

__all__ = ["check"]


_Spot: TypeAlias = Hashable
"""Where a type stands in its schema, since fields share their types: a place in a named type, or that type itself."""


class _Pair(NamedTuple):
    """A pair of types to judge: can the reader type read the writer type?"""

    reader: Node
    writer: Node
    place: Place
    spots: tuple[_Spot, _Spot]


_Judging: TypeAlias = Generator[_Pair, Findings, Findings]
_Key: TypeAlias = tuple[_Spot, _Spot]
_NONE: Final[Findings] = ()


class _GaveUp(Exception):
    """The check cannot continue; its note replaces all others."""

    def __init__(self, note: Note):
        super().__init__(note.word)
        self.note = note


def check(reader: AvroSchema, writer: AvroSchema, *, limits: Limits = DEFAULT_LIMITS) -> Sequence[Incompatibility]:
    """Return every reason why the reader schema cannot read data of the writer schema.

    A check that exceeds the comparisons of `limits` returns the single finding TOO_COMPLEX.

    Args:
        reader: The reader schema.
        writer: The writer schema.
        limits: Bounds on work, findings and time.

    Raises:
        OutOfTime: The time of `limits` ran out.
    """
    if limits.comparisons and _is_plain(reader, writer, limits):
        return ()
    try:
        notes = _Check(reader.names, writer.names, limits).run(reader.root, writer.root)
    except _GaveUp as gave_up:
        notes = (gave_up.note,)
    reports: dict[int, Incompatibility] = {}  # share the report of a pair that occurs often: its text may be long
    for note in notes:
        limits.look_at_clock()
        reports[id(note)] = reports.get(id(note)) or report(note)
    return tuple(reports[id(note)] for note in notes)


class _Check:
    def __init__(self, reader_names: Names, writer_names: Names, limits: Limits):
        self._reader_names = reader_names
        self._writer_names = writer_names
        self._limits = limits
        self._judged: dict[_Key, Findings | None] = {}  # None while a pair is being judged

    def run(self, reader: Node, writer: Node) -> Findings:
        """Judge a pair and every pair that it depends on."""
        stack: list[tuple[_Key, _Judging]] = []
        answer = self._ask(_Pair(reader, writer, ROOT, (None, None)), stack)
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

    def _ask(self, pair: _Pair, stack: list[tuple[_Key, _Judging]]) -> Findings | None:
        """Return an answer that is simple or already known; otherwise put the judging on the stack and return None."""
        reader = resolve(pair.reader, self._reader_names)
        writer = resolve(pair.writer, self._writer_names)
        if isinstance(reader, PrimitiveType) and isinstance(writer, PrimitiveType):
            return _primitives(reader, writer, pair.place)
        key = _spot(reader, pair.spots[0]), _spot(writer, pair.spots[1])
        if key in self._judged:
            return self._judged[key] or _NONE
        if len(self._judged) >= self._limits.comparisons:
            word = f"more than {self._limits.comparisons} pairs of types to compare"
            raise _GaveUp(Note(Kind.TOO_COMPLEX, pair.place, reader, writer, word))
        self._limits.look_at_clock()
        judging = self._judging(reader, writer, pair.place, key)
        if judging is None:
            answer = self._judged[key] = _leaves(reader, writer, pair.place)
            return answer
        self._judged[key] = None
        stack.append((key, judging))
        return None

    def _judging(self, reader: Node, writer: Node, place: Place, spots: _Key) -> _Judging | None:
        """Return the judging of a pair of types that contain other types, or None if there are no others."""
        if isinstance(writer, UnionType):
            return self._branches(reader, writer, place, spots)
        if isinstance(reader, UnionType):
            return self._any_branch(reader, writer, place, spots)
        if isinstance(reader, RecordType) and isinstance(writer, RecordType):
            return self._records(reader, writer, place)
        if isinstance(reader, ArrayType) and isinstance(writer, ArrayType):
            return _inside(reader.items, writer.items, Place(place, "items", "[]"), spots)
        if isinstance(reader, MapType) and isinstance(writer, MapType):
            return _inside(reader.values, writer.values, Place(place, "values", "{}"), spots)
        return None

    def _branches(self, reader: Node, writer: UnionType, place: Place, spots: _Key) -> _Judging:
        """Check that the reader reads every branch of the writer."""
        notes: list[Note] = []
        for position, branch in enumerate(writer.branches):
            step = Place(place, str(position), "")
            inner = spots[0], (spots[1], position)
            if not isinstance(reader, UnionType):
                notes += yield _Pair(reader, branch, step, inner)
            elif (yield _Pair(reader, branch, start(step), inner)):
                lacking = resolve(branch, self._writer_names)
                notes.append(Note(Kind.MISSING_UNION_BRANCH, step, reader, lacking))
        return tuple(notes)

    def _any_branch(self, reader: UnionType, writer: Node, place: Place, spots: _Key) -> _Judging:
        """Find one branch of the reader that reads the writer's type."""
        step = start(place)
        for position, branch in enumerate(reader.branches):
            if not (yield _Pair(branch, writer, step, ((spots[0], position), spots[1]))):
                return _NONE
        return (Note(Kind.MISSING_UNION_BRANCH, place, reader, writer),)

    def _records(self, reader: RecordType, writer: RecordType, place: Place) -> _Judging:
        """Check that each field of the reader is in the writer, under its name or an alias, or has a default."""
        notes = list(_names(reader, writer, place))
        fields = Place(place, "fields", "")
        same, sources = _texts_of_same(reader, writer), writer.by_name
        for position, field in enumerate(reader.fields):
            if field.text in same:
                continue
            self._limits.look_at_clock()
            if not field.aliases and _is_fine(field, sources.get(field.name)):
                continue
            step = Place(fields, str(position), f".{field.name}")
            source = self._source(field, writer, position, step)
            node = resolve(field.type, self._reader_names)
            spot = id(reader), position
            if source is not None:
                notes += yield _Pair(node, source.type, Place(step, "type", ""), (spot, (id(writer), source.name)))
            elif not isinstance(field.default, Missing):
                continue
            elif isinstance(node, EnumType) and node.default is not None:
                # Avro Java compares the enum with the writer's record, which no enum can read.
                notes += yield _Pair(node, writer, Place(step, "type", ""), (spot, None))
            else:
                notes.append(Note(Kind.READER_FIELD_MISSING_DEFAULT_VALUE, step, reader, writer, field.name))
        return tuple(notes)

    def _source(self, field: Field, writer: RecordType, position: int, place: Place) -> Field | None:
        """Return the writer's field that the reader's field reads, or None."""
        fields = writer.by_name
        sources = [fields[name] for name in (field.name, *field.aliases) if name in fields]
        if len(sources) <= 1:
            return sources[0] if sources else None
        node = resolve(field.type, self._reader_names)
        try:
            text = print_schema(writer, self._writer_names, self._limits)
        except SchemaParseError:  # nested too deeply when printed alone
            text = f'"{writer.name.full}"'
        word = (
            f"Reader record field {field.name} type:{node.kind.upper()} pos:{position} "
            f"matches multiple fields in writer record schema {text}"
        )
        raise _GaveUp(Note(Kind.AMBIGUOUS_FIELD, place, node, writer, word))


def _spot(node: Node, spot: _Spot) -> _Spot:
    return id(node) if isinstance(node, RecordType | EnumType | FixedType) else spot


def _is_plain(reader: AvroSchema, writer: AvroSchema, limits: Limits) -> bool:
    """Return whether it is plain that a record reads another one, without a look at types with names that differ."""
    ours, theirs = resolve(reader.root, reader.names), resolve(writer.root, writer.names)
    if not isinstance(ours, RecordType) or not isinstance(theirs, RecordType) or _names(ours, theirs, ROOT):
        return False
    same, sources = _texts_of_same(ours, theirs), theirs.by_name
    for field in _unshared(ours, theirs):
        if field.text not in same:
            limits.look_at_clock()
            if field.aliases or not _is_fine(field, sources.get(field.name)):
                return False
    return True


def _unshared(reader: RecordType, writer: RecordType) -> Sequence[Field]:
    """Return the reader's fields, without those that it shares with the writer if that is plain at a glance."""
    count = min(len(reader.fields), len(writer.fields))
    if len(writer.plain) == len(writer.fields) and reader.fields[:count] == writer.fields[:count]:
        return reader.fields[count:]
    return reader.fields


def _texts_of_same(reader: RecordType, writer: RecordType) -> frozenset[str]:
    """Return the texts of the writer's fields that mean the same in the reader."""
    # In another namespace, a text with names means other types.
    return writer.settled if reader.name.namespace == writer.name.namespace else writer.plain


def _is_fine(field: Field, source: Field | None) -> bool:
    """Return whether it is plain that a reader's field reads the writer's field, or that its default replaces it."""
    if source is None:
        return not isinstance(field.default, Missing)
    if field.text is None or field.types or source.text is None or source.types:
        return False
    return _reads(field.type, source.type)


def _reads(reader: Node, writer: Node) -> bool:
    """Return whether a type without names reads another one."""
    if isinstance(writer, UnionType):
        return all(_reads(reader, branch) for branch in writer.branches)
    if isinstance(reader, UnionType):
        return any(_reads(branch, writer) for branch in reader.branches)
    if isinstance(reader, PrimitiveType) and isinstance(writer, PrimitiveType):
        return _promotes(reader, writer)
    if isinstance(reader, ArrayType) and isinstance(writer, ArrayType):
        return _reads(reader.items, writer.items)
    if isinstance(reader, MapType) and isinstance(writer, MapType):
        return _reads(reader.values, writer.values)
    return False


def _inside(reader: Node, writer: Node, place: Place, spots: _Key) -> _Judging:
    return (yield _Pair(reader, writer, place, ((spots[0], place.token), (spots[1], place.token))))


def _leaves(reader: Node, writer: Node, place: Place) -> Findings:
    if isinstance(reader, EnumType) and isinstance(writer, EnumType):
        return _names(reader, writer, place) + _symbols(reader, writer, place)
    if isinstance(reader, FixedType) and isinstance(writer, FixedType):
        return _names(reader, writer, place) + _sizes(reader, writer, place)
    return (Note(Kind.TYPE_MISMATCH, place, reader, writer),)


def _primitives(reader: PrimitiveType, writer: PrimitiveType, place: Place) -> Findings:
    return _NONE if _promotes(reader, writer) else (Note(Kind.TYPE_MISMATCH, place, reader, writer),)


def _promotes(reader: PrimitiveType, writer: PrimitiveType) -> bool:
    return reader.kind == writer.kind or writer.kind in PROMOTED_FROM.get(reader.kind, ())


def _names(reader: NamedType, writer: NamedType, place: Place) -> Findings:
    if reader.name.simple == writer.name.simple or any(_is_called(alias, reader, writer) for alias in reader.aliases):
        return _NONE
    return (Note(Kind.NAME_MISMATCH, Place(place, "name", ""), reader, writer),)


def _is_called(alias: Name, reader: NamedType, writer: NamedType) -> bool:
    """Return whether an alias is the writer's name; an alias without a namespace is ignored in a reader with one."""
    return alias.full == writer.name.full and bool(alias.namespace or not reader.name.namespace)


def _sizes(reader: FixedType, writer: FixedType, place: Place) -> Findings:
    if reader.size == writer.size:
        return _NONE
    return (Note(Kind.FIXED_SIZE_MISMATCH, Place(place, "size", ""), reader, writer),)


def _symbols(reader: EnumType, writer: EnumType, place: Place) -> Findings:
    if reader.default is not None or set(writer.symbols).issubset(reader.symbols):
        return _NONE
    return (Note(Kind.MISSING_ENUM_SYMBOLS, Place(place, "symbols", ""), reader, writer),)
