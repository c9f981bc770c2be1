"""The proofs of Protobuf findings: messages that Google's library writes with one schema and reads with the other.

A Protobuf reader refuses little: it skips what it cannot place. So most proofs show a value that becomes another one or
is lost. Candidates for the value of one field are written and read, field by field, from the finding's message down to
the messages inside it, the smallest first. Values are compared by tag, as readers place them.
"""

import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, NamedTuple, TypeAlias

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, EncodeError, Message
from google.protobuf.message_factory import GetMessageClass

from strata.compat.difference.edits import cut
from strata.compat.difference.outcomes import Cause, Outcome
from strata.compat.proofs import Altered, Budget, NoWitness, Proof, Refused, RuleOnly, Witness
from strata.compat.protobuf.schema import ProtobufSchema
from strata.compat.protobuf.wording import Difference
from strata.compat.result import Incompatibility
from strata.compat.witness.protobuf_types import message_types
from strata.compat.witness.protobuf_values import (
    Write,
    candidates,
    is_kept,
    is_set,
    new,
    put,
    shown,
    type_text,
    value_of,
)

__all__ = ["alters", "breaks"]

_Types: TypeAlias = Mapping[str, Descriptor]

_RULE_ONLY: Final[Mapping[str, str]] = {
    Difference.PACKAGE_CHANGED: "The bytes of a message do not hold the package, so readers read each one as before.",
    Difference.REQUIRED_FIELD_REMOVED: (
        "A reader skips a field that it does not know, so it reads each message, without this field."
    ),
    Difference.FIELD_NAMED_TYPE_CHANGED: (
        "The bytes do not hold the name of a message type, and the fields of both types agree, so readers read them."
    ),
}
_SAME_VALUES: Final = "Readers read each value of the field as it was written: both declarations have the same bytes."
_DEEPEST: Final = 100  # fields on the way


def breaks(
    reader: ProtobufSchema, writer: ProtobufSchema, findings: Sequence[Incompatibility], budget: Budget
) -> Iterator[Proof]:
    """Yield a proof for each finding of `strata.compat.protobuf.rules.check`.

    Args:
        reader: The reader's schema.
        writer: The writer's schema.
        findings: The findings of the check of these two.
        budget: Bounds on time and size.

    Raises:
        OutOfTime: The time ran out; the proofs that were yielded count.
    """
    search = _Search.of(reader, writer, budget)
    for finding in findings:
        yield search.finding(finding) if search else NoWitness("undecided")


def alters(
    reader: ProtobufSchema, writer: ProtobufSchema, outcomes: Sequence[Outcome], budget: Budget
) -> Iterator[Proof]:
    """Yield a proof for each outcome of `strata.compat.difference.protobuf_reading.outcomes`; see `breaks`.

    Raises:
        OutOfTime: The time ran out; the proofs that were yielded count.
    """
    search = _Search.of(reader, writer, budget)
    for outcome in outcomes:
        yield search.outcome(outcome) if search else NoWitness("undecided")


class _Spot(NamedTuple):
    """A pair of messages, and the way to it: the fields that hold it, in the writer's message at the root."""

    reader: Descriptor
    writer: Descriptor
    way: tuple[FieldDescriptor, ...] = ()


@dataclass(frozen=True, slots=True)
class _Search:
    readers: _Types
    writers: _Types
    own_readers: _Types  # without those of imported files
    budget: Budget

    @classmethod
    def of(cls, reader: ProtobufSchema, writer: ProtobufSchema, budget: Budget) -> "_Search | None":
        """Return the search in two schemas; None if Google's library refuses one of them."""
        ours, theirs = (message_types(schema, budget.limits) for schema in (reader, writer))
        return None if ours is None or theirs is None else cls(ours[1], theirs[1], ours[0], budget)

    def finding(self, finding: Incompatibility) -> Proof:
        """Return the proof of a finding."""
        difference = Difference(finding.kind)
        if difference in (Difference.PACKAGE_CHANGED, Difference.REQUIRED_FIELD_REMOVED):
            return RuleOnly(_RULE_ONLY[difference])
        if difference is Difference.MESSAGE_REMOVED:
            return self._removed(finding.path)
        place = self._place(finding.path)
        if place is None:
            return NoWitness("undecided")
        spot, tag = place
        if difference in (Difference.MULTIPLE_FIELDS_MOVED_TO_ONEOF, Difference.FIELD_MOVED_TO_EXISTING_ONEOF):
            return self._cleared(spot, finding.path.rpartition("/")[2])
        if difference is Difference.ONEOF_FIELD_REMOVED:
            return self._lost(spot, tag)
        if difference is Difference.REQUIRED_FIELD_ADDED:
            return self._tried(spot, None, [_nothing]) or NoWitness("undecided")
        proof = self._below(spot, tag)
        return RuleOnly(_RULE_ONLY.get(difference, _SAME_VALUES)) if proof is None else proof

    def outcome(self, outcome: Outcome) -> Proof:
        """Return the proof of an outcome."""
        for path in reversed(outcome.at):
            place = self._place(path)
            if place is None:
                continue
            spot, tag = place
            if outcome.cause is Cause.ONEOF_CLEARED and tag == 0:
                return self._cleared(spot, path.rpartition("/")[2])
            if outcome.cause is Cause.MOVED:
                return self._moved(spot, tag)
            if outcome.cause is Cause.REMOVED_DEFAULT:
                return self._defaulted(spot, tag)
            if outcome.cause is Cause.REQUIRED_MISSING:
                return self._tried(spot, None, [_nothing]) or NoWitness("undecided")
            if (proof := self._below(spot, tag)) is not None:
                return proof
        return NoWitness("undecided")

    def _place(self, path: str) -> tuple[_Spot, int] | None:
        """Return the messages and the tag that a path names; a tag of 0 stands for the whole message or a oneof."""
        steps = path.removeprefix("#/").split("/")
        tag = int(steps.pop()) if steps[-1].isdecimal() else 0
        for end in (len(steps), len(steps) - 1):
            name = ".".join(steps[:end])
            if name in self.readers and name in self.writers:
                return _Spot(self.readers[name], self.writers[name]), tag
        return None

    def _removed(self, path: str) -> Proof:
        """Prove that the reader lacks a message type."""
        name = path.removeprefix("#/").replace("/", ".")
        if name not in self.writers:
            return NoWitness("undecided")
        if self.writers[name].GetOptions().map_entry:
            return RuleOnly("The type is that of the entries of a map, and no record is an entry.")
        if name in self.own_readers:
            return RuleOnly("The reader has the type as the body of a group, so it reads each message of it.")
        message = new(self.writers[name])
        if message is None:
            return RuleOnly("No message has this type: it always holds another of itself.")
        return self._witness(message, Refused(f"The reader has no message type {cut(name)!r} to read it with."))

    def _lost(self, spot: _Spot, tag: int) -> Proof:
        """Prove that the reader does not see a member of a oneof."""
        field = spot.writer.fields_by_number.get(tag)
        if field is None:
            return NoWitness("undecided")
        message = new(spot.writer)
        for write in candidates(field):
            if message is None:
                break
            write(message)
            read = GetMessageClass(spot.reader)()
            read.ParseFromString(message.SerializePartialToString())
            return self._witness(message, Altered(shown(message), shown(read)))
        return NoWitness("undecided")

    def _cleared(self, spot: _Spot, oneof: str) -> Proof:
        """Prove that the reader keeps only one of several fields that the writer can set together."""
        held = spot.reader.oneofs_by_name.get(oneof)
        if held is None:
            return NoWitness("undecided")
        tags = [field.number for field in held.fields]
        members: dict[str, FieldDescriptor] = {}
        for tag in tags:
            field = spot.writer.fields_by_number.get(tag)
            if field is not None:
                group = field.containing_oneof.name if field.containing_oneof is not None else f"/{tag}"
                members.setdefault(group, field)

        def write(message: object) -> None:
            for field in members.values():
                next(candidates(field))(message)

        return self._tried(spot, None, [write], tags=tags) or NoWitness("undecided")

    def _moved(self, spot: _Spot, tag: int) -> Proof:
        """Prove that what was written under one name is read under another."""
        field = spot.writer.fields_by_number.get(tag)
        target = spot.reader.fields_by_number.get(tag)
        if field is None and target is not None:
            field = spot.writer.fields_by_name.get(target.name)
        if field is None:
            return NoWitness("undecided")
        for write in candidates(field):
            message = new(spot.writer)
            if message is None:
                break
            write(message)
            read = GetMessageClass(spot.reader)()
            try:
                read.ParseFromString(message.SerializePartialToString())
            except DecodeError:
                return self._witness(message, Refused(_unparsed(field, spot.reader.fields_by_number.get(field.number))))
            before, after = shown(message), shown(read)
            if before != after:
                return self._witness(message, Altered(before, after))
        return NoWitness("undecided")

    def _defaulted(self, spot: _Spot, tag: int) -> Proof:
        """Prove that the reader sees a value for a field that the writer does not know."""
        field, message = spot.reader.fields_by_number.get(tag), new(spot.writer)
        if field is None or message is None:
            return NoWitness("undecided")
        read = GetMessageClass(spot.reader)()
        read.ParseFromString(message.SerializePartialToString())
        return self._witness(message, Altered({}, {field.name: value_of(read, field)}))

    def _below(self, spot: _Spot, tag: int) -> Proof | None:
        """Return the proof about one field, or about the nearest field inside it; None if each value is kept."""
        seen: set[tuple[str, str]] = set()
        hidden: Proof | None = None  # a difference that JSON does not show
        waiting = deque([(spot, tag)])
        while waiting:
            here, tag = waiting.popleft()
            for number in [tag] if tag else list(here.writer.fields_by_number):
                self.budget.limits.look_at_clock()
                field, target = here.writer.fields_by_number.get(number), here.reader.fields_by_number.get(number)
                if field is None or target is None:
                    continue
                proof = self._tried(here, field, chain(candidates(field, target), [_nothing]))
                if proof is not None and not _is_hidden(proof):
                    return proof
                hidden = hidden or proof
                inner, other = field.message_type, target.message_type
                if inner is not None and other is not None and (key := (inner.full_name, other.full_name)) not in seen:
                    seen.add(key)
                    if len(here.way) < _DEEPEST:
                        waiting.append((_Spot(other, inner, (*here.way, field)), 0))
        return hidden

    def _tried(
        self, spot: _Spot, field: FieldDescriptor | None, writes: Iterable[Write], tags: Sequence[int] = ()
    ) -> Proof | None:
        """Return the proof of the first message that the reader refuses or reads as another one, or None."""
        for write in writes:
            self.budget.limits.look_at_clock()
            inner = new(spot.writer)
            if inner is None:
                return RuleOnly("No message has this type: it always holds another of itself.")
            write(inner)
            read: Any = GetMessageClass(spot.reader)()
            try:
                read.ParseFromString(inner.SerializePartialToString())
                after = shown(read)
            except (DecodeError, UnicodeDecodeError, ValueError):
                target = None if field is None else spot.reader.fields_by_number.get(field.number)
                return self._within(spot, inner, Refused(_unparsed(field, target)))
            if not read.IsInitialized():
                missing = ", ".join(read.FindInitializationErrors())
                return self._within(
                    spot, inner, Refused(f"The reader requires what the message lacks: {cut(missing)}.")
                )
            numbers = tags or ([] if field is None else [field.number])
            if all(is_kept(inner, read, number) for number in numbers):
                continue
            if field is None:
                return self._within(spot, inner, Altered(shown(inner), after))
            target = spot.reader.fields_by_number[field.number]
            written = {field.name: value_of(inner, field)} if is_set(inner, field) else {}
            seen = {target.name: value_of(read, target)} if is_set(read, target) else {}
            return self._within(spot, inner, Altered(written, seen))
        return None

    def _within(self, spot: _Spot, inner: Message, outcome: Refused | Altered) -> Proof:
        """Return the witness with a message at its place inside the message at the root."""
        message: Message = inner
        for field in reversed(spot.way):
            outer = None if field.containing_type is None else new(field.containing_type)
            if outer is None:
                return NoWitness("undecided")
            put(outer, field, message)
            message = outer
        return self._witness(message, outcome)

    def _witness(self, message: Message, outcome: Refused | Altered) -> Proof:
        try:
            record, payload = shown(message), message.SerializePartialToString()
        except (ValueError, EncodeError):
            return NoWitness("undecided")
        if max(len(payload), len(json.dumps(record, ensure_ascii=False).encode(errors="replace"))) > self.budget.size:
            return NoWitness("size")
        return Witness(record, payload, outcome)


def _is_hidden(proof: Proof) -> bool:
    outcome = proof.outcome if isinstance(proof, Witness) else None
    return isinstance(outcome, Altered) and outcome.written_as == outcome.read_as


def _nothing(_message: object) -> None:
    pass


def _unparsed(field: FieldDescriptor | None, target: FieldDescriptor | None) -> str:
    if field is None or target is None:
        return "The reader cannot parse the message."
    return (
        f"The bytes of field {field.number} are written as {type_text(field)}; the reader cannot parse them as "
        f"{type_text(target)}."
    )
