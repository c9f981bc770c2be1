"""The proofs of Avro findings: the record is built along the way to the finding's place.

The search walks both schemas as a reader resolves them, towards the place that the finding names by fields. There it
looks for the nearest part that the reader refuses. Everything beside the way has the smallest value of its type. Each
record is read by the rules of resolution before it counts as a proof.
"""

import json
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple, TypeAlias

from strata.compat.avro.model import (
    ArrayType,
    AvroSchema,
    EnumType,
    Field,
    MapType,
    NamedType,
    Node,
    RecordType,
    UnionType,
)
from strata.compat.avro.wording import Kind
from strata.compat.difference.avro_reading import logical_type
from strata.compat.difference.edits import cut
from strata.compat.difference.outcomes import Cause, Outcome
from strata.compat.proofs import Altered, Budget, NoWitness, Proof, Refused, RuleOnly, Witness
from strata.compat.result import Incompatibility
from strata.compat.witness.avro_resolution import Resolution, Unreadable, missing, unknown
from strata.compat.witness.avro_values import NoValue, TooLarge, Value, Values, default_value, one_more, shown
from strata.strict_json import Json

__all__ = ["alters", "breaks"]

_Step: TypeAlias = int | str | None
_End: TypeAlias = Callable[[Node], Value]  # the value at the place, given its type

_UNNAMED: Final = (
    "Avro's Java library reads a record of any name whose fields fit, so it reads each record of {writer!r} as "
    "{reader!r}. Readers that compare names, such as fastavro, refuse them."
)
_EMPTY: Final = (
    "The writer's schema has no value that reaches this place: a type on the way always holds another of itself."
)
_ROUNDED: Final = {("int", "float"): 2**24 + 1, ("long", "float"): 2**24 + 1, ("long", "double"): 2**53 + 1}


def breaks(
    reader: AvroSchema, writer: AvroSchema, findings: Sequence[Incompatibility], budget: Budget
) -> Iterator[Proof]:
    """Yield a proof for each finding of `strata.compat.avro.rules.check`.

    Args:
        reader: The reader's schema.
        writer: The writer's schema.
        findings: The findings of the check of these two.
        budget: Bounds on time and size.

    Raises:
        OutOfTime: The time ran out; the proofs that were yielded count.
    """
    search = _Search(reader, writer, budget)
    for finding in findings:
        yield _bounded(search.finding, finding)


def alters(reader: AvroSchema, writer: AvroSchema, outcomes: Sequence[Outcome], budget: Budget) -> Iterator[Proof]:
    """Yield a proof for each outcome of `strata.compat.difference.avro_reading.outcomes`; see `breaks`.

    Raises:
        OutOfTime: The time ran out; the proofs that were yielded count.
    """
    search = _Search(reader, writer, budget)
    for outcome in outcomes:
        yield _bounded(search.outcome, outcome)


def _bounded(prove: Callable[[Incompatibility], Proof] | Callable[[Outcome], Proof], subject: object) -> Proof:
    try:
        return prove(subject)  # type: ignore[arg-type]
    except NoValue:
        return RuleOnly(_EMPTY)
    except (TooLarge, RecursionError):
        return NoWitness("size")


class _Spot(NamedTuple):
    """A pair of types at a place, and the way to it in the writer's schema."""

    reader: Node
    writer: Node
    at: str
    steps: tuple[_Step, ...]
    field: Field | None = None  # the reader's field at the place, if the writer's record lacks it


class _Search:
    def __init__(self, reader: AvroSchema, writer: AvroSchema, budget: Budget) -> None:
        self._reader, self._writer, self._budget = reader, writer, budget
        self._resolution = Resolution(reader, writer, budget.limits)
        self._values = Values(writer.names, budget.limits, budget.size)
        self._names = Values(reader.names, budget.limits, budget.size)

    def finding(self, finding: Incompatibility) -> Proof:
        """Return the proof of a finding."""
        for spot in self._spots(finding.where):
            if finding.kind == Kind.AMBIGUOUS_FIELD:
                return self._ambiguous(spot)
            if spot.field is None and (_type_name(spot.reader), _type_name(spot.writer)) != (
                finding.reader,
                finding.writer,
            ):
                continue
            is_name = finding.kind == Kind.NAME_MISMATCH and isinstance(spot.writer, RecordType)
            nearest = None if is_name else self._nearest(spot)
            return self._renamed(spot) if nearest is None else self._refused(*nearest)
        # A reader does not get there if it refuses something above: Avro's Java library ignores the aliases of fields
        # in a record of another name.
        nearest = self._nearest(_Spot(self._reader.root, self._writer.root, "", ()))
        return NoWitness("undecided") if nearest is None else self._refused(*nearest)

    def _ambiguous(self, spot: _Spot) -> Proof:
        """Prove that a field stands for several: the reader refuses the record, or takes one field for another."""
        proof = self._refused(spot.steps, self._values.telling)
        if not isinstance(proof, NoWitness):
            return proof
        value, payload, record = self._written(spot.steps, self._values.telling)
        root = self._reader.root
        read = self._names.as_json(root, self._resolution.read(root, self._writer.root, value))
        return NoWitness("undecided") if read == record else self._witness(record, payload, Altered(record, read))

    def outcome(self, outcome: Outcome) -> Proof:
        """Return the proof of an outcome."""
        for spot in self._spots(outcome.at[0]):
            if outcome.cause is Cause.ALIAS_HIDDEN:
                return self._refused(spot.steps, self._values.smallest)
            if spot.field is not None:
                return self._missing(spot, spot.field, is_renamed=outcome.cause is Cause.RENAMED_DEFAULT)
            for value in self._values_of(outcome.cause, spot):
                return self._altered(spot, value)
        return NoWitness("undecided")

    def _renamed(self, spot: _Spot) -> Proof:
        """Prove that a record of another name is read: nothing is lost, unless its fields are known by aliases."""
        reader, writer = self._resolution.pair(spot.reader, spot.writer)
        if isinstance(reader, RecordType) and isinstance(writer, RecordType):
            if self._resolution.fault(reader, writer) is not None:
                return self._refused(spot.steps, self._values.smallest)
            for field, source in self._resolution.sources(reader, writer):
                known = next((writer.by_name[alias] for alias in field.aliases if alias in writer.by_name), None)
                if source is None and known is not None:
                    return self._defaulted(spot.steps, field, known)
        return RuleOnly(_UNNAMED.format(reader=_full_name(reader), writer=_full_name(writer)))

    def _missing(self, spot: _Spot, field: Field, *, is_renamed: bool) -> Proof:
        """Prove that a reader takes a default for a field that the writer's record lacks."""
        if not isinstance(spot.writer, RecordType):
            return NoWitness("undecided")
        hidden = next((name for name in (field.name, *field.aliases) if name in spot.writer.by_name), None)
        source = next(
            (
                candidate
                for candidate in spot.writer.fields
                if candidate.name == hidden or (hidden is None and field.name in candidate.aliases)
            ),
            None,
        )
        return self._defaulted(spot.steps, field, source if is_renamed else None)

    def _defaulted(self, steps: tuple[_Step, ...], field: Field, source: Field | None) -> Proof:
        """Prove that a reader takes the default of a field, although its value is written under another name."""
        value, payload, record = self._written(steps, self._values.smallest)
        written: dict[str, Json] = {}
        if source is not None:
            inner: dict[str, Value] = {}
            value, payload, record = self._written((*steps, source.name), lambda node: self._telling(node, inner))
            written[source.name] = self._values.as_json(source.type, inner[""])
        default = default_value(field.type, field.default, self._reader.names)
        read: Json = {field.name: self._names.as_json(field.type, default)}
        if not self._is_read(value):
            return NoWitness("undecided")
        return self._witness(record, payload, Altered(written, read))

    def _telling(self, node: Node, into: dict[str, Value]) -> Value:
        """Return a small value of a type, not zero if it has no parts; keep it under the empty name."""
        into[""] = self._values.telling(node)
        return into[""]

    def _values_of(self, cause: Cause, spot: _Spot) -> Iterator[Value]:
        """Yield a value of the writer's type that shows a cause, if one does."""
        reader, writer = spot.reader, spot.writer
        pair = writer.kind, reader.kind
        if cause is Cause.NUMBER_ROUNDED and pair in _ROUNDED:
            yield _ROUNDED[pair]
        elif cause is Cause.BYTES_NOT_TEXT and pair == ("bytes", "string"):
            yield b"\xff"
        elif cause is Cause.NOT_A_UUID and logical_type(reader) == "uuid" != logical_type(writer):
            yield b"" if writer.kind == "bytes" else ""
        elif cause is Cause.ENUM_DEFAULT:
            yield from self._resolution.lacking(reader, writer)[:1]
        elif cause is Cause.REINTERPRETED and logical_type(reader) != logical_type(writer):
            yield one_more(writer)

    def _altered(self, spot: _Spot, value: Value) -> Proof:
        written, payload, record = self._written(spot.steps, partial(_always, value))
        try:
            read = self._resolution.read(spot.reader, spot.writer, value)
        except Unreadable as error:
            return self._witness(record, payload, Refused(str(error)))
        if not self._is_read(written):  # because of another part, which has its own finding
            return NoWitness("undecided")
        before, after = shown(spot.writer, value), shown(spot.reader, read)
        if before == after and type(before) is type(after):
            before, after = (
                f"{logical_type(node) or node.kind} {text}"
                for node, text in ((spot.writer, before), (spot.reader, after))
            )
        return self._witness(record, payload, Altered(before, after))

    def _refused(self, steps: tuple[_Step, ...], end: _End, why: str = "") -> Proof:
        """Return the witness with a value at a place, for which the reader refuses the record."""
        value, payload, record = self._written(steps, end)
        try:
            self._resolution.read(self._reader.root, self._writer.root, value)
        except Unreadable as error:
            return self._witness(record, payload, Refused(why or str(error)))
        return NoWitness("undecided")

    def _is_read(self, value: Value) -> bool:
        try:
            self._resolution.read(self._reader.root, self._writer.root, value)
        except Unreadable:
            return False
        return True

    def _written(self, steps: tuple[_Step, ...], end: _End) -> tuple[Value, bytes, Json]:
        root = self._writer.root
        value = self._values.along(root, steps, end)
        return value, self._values.as_bytes(root, value), self._values.as_json(root, value)

    def _witness(self, record: Json, payload: bytes, outcome: Refused | Altered) -> Proof:
        size = self._budget.size
        if len(payload) > size or len(json.dumps(record, ensure_ascii=False).encode(errors="replace")) > size:
            return NoWitness("size")
        return Witness(record, payload, outcome)

    def _spots(self, goal: str) -> Iterator[_Spot]:
        """Yield the pairs of types at a place, the nearest to the root first; of a reader's union also its branch."""
        seen: set[tuple[int, int, str]] = set()
        waiting = deque([_Spot(self._reader.root, self._writer.root, "", ())])
        while waiting:
            self._budget.limits.look_at_clock()
            spot = waiting.popleft()
            reader, writer = self._resolution.pair(spot.reader, spot.writer)
            key = id(reader), id(writer), spot.at
            if isinstance(writer, UnionType):
                waiting.extendleft(reversed([*self._branches(spot, writer)]))
            elif spot.field is not None:
                yield spot
            else:
                whole = self._resolution.reader(spot.reader)
                if spot.at == goal and whole is not reader:
                    yield spot._replace(reader=whole, writer=writer)
                if spot.at == goal:
                    yield spot._replace(reader=reader, writer=writer)
                if key not in seen:
                    seen.add(key)
                    parts = self._parts(spot._replace(reader=reader, writer=writer))
                    waiting += [part for part in parts if _leads(part, goal)]

    def _nearest(self, spot: _Spot) -> tuple[tuple[_Step, ...], _End, str] | None:
        """Return the way to the nearest part, at a spot or below it, that the reader refuses, its value, and why."""
        if spot.field is not None:
            return spot.steps, self._values.smallest, missing(spot.field)
        seen: set[tuple[int, int]] = set()
        waiting = deque([spot])
        while waiting:
            self._budget.limits.look_at_clock()
            here = waiting.popleft()
            reader, writer = self._resolution.pair(here.reader, here.writer)
            if isinstance(writer, UnionType):
                waiting.extendleft(reversed([*self._branches(here, writer)]))
                continue
            if (fault := self._resolution.fault(reader, writer)) is not None:
                return here.steps, self._values.smallest, fault
            lacking = self._resolution.lacking(reader, writer)
            if lacking and isinstance(reader, EnumType) and reader.default is None:
                return here.steps, partial(_always, lacking[0]), unknown(reader, lacking[0])
            if (key := (id(reader), id(writer))) not in seen:
                seen.add(key)
                parts = self._parts(here._replace(reader=reader, writer=writer))
                waiting += [part for part in parts if part.field is None]
        return None

    @staticmethod
    def _branches(spot: _Spot, writer: UnionType) -> Iterator[_Spot]:
        for at, branch in enumerate(writer.branches):
            yield spot._replace(writer=branch, steps=(*spot.steps, at))

    def _parts(self, spot: _Spot) -> Iterator[_Spot]:
        """Yield the spots one step below one; a field that the writer's record lacks has the record as its writer."""
        reader, writer, at, steps = spot.reader, spot.writer, spot.at, spot.steps
        if isinstance(reader, RecordType) and isinstance(writer, RecordType):
            for field, source in self._resolution.sources(reader, writer):
                place = f"{at}.{field.name}".removeprefix(".")
                if source is None:
                    yield _Spot(field.type, writer, place, steps, field)
                else:
                    yield _Spot(field.type, source.type, place, (*steps, source.name))
        elif isinstance(reader, ArrayType) and isinstance(writer, ArrayType):
            yield _Spot(reader.items, writer.items, f"{at}[]", (*steps, None))
        elif isinstance(reader, MapType) and isinstance(writer, MapType):
            yield _Spot(reader.values, writer.values, f"{at}{{}}", (*steps, None))


def _always(value: Value, _node: Node) -> Value:
    return value


def _leads(spot: _Spot, goal: str) -> bool:
    return goal == spot.at if spot.field is not None else goal.startswith(spot.at)


def _type_name(node: Node) -> str:
    return f"{node.kind} {node.name.full}" if isinstance(node, NamedType) else node.kind


def _full_name(node: Node) -> str:
    return cut(node.name.full if isinstance(node, NamedType) else node.kind)
