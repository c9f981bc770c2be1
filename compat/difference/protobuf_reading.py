"""What a Protobuf reader makes of a writer's bytes: where the values differ from those that were written.

The bytes hold tags and wire types, no names. A reader skips a tag that it does not know, and one whose wire type does
not fit its field, so almost nothing breaks; values are lost or become others instead. Names count here too: people read
fields and symbols by name, so a name at another tag is another value.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from strata.compat.difference.edits import below
from strata.compat.difference.outcomes import Cause, Outcome
from strata.compat.limits import Limits
from strata.compat.protobuf.model import SCALARS, Enum, Field, Message, Scalar, is_map_entry, map_types
from strata.compat.protobuf.names import LOCAL, Known, Names
from strata.compat.protobuf.schema import ProtobufSchema

__all__ = ["outcomes"]

_VARINT, _FIXED64, _SIZED, _GROUP, _FIXED32 = range(5)
_WIRE: Final = {
    **dict.fromkeys(("int32", "int64", "uint32", "uint64", "sint32", "sint64", "bool", "enum"), _VARINT),
    **dict.fromkeys(("fixed64", "sfixed64", "double"), _FIXED64),
    **dict.fromkeys(("fixed32", "sfixed32", "float"), _FIXED32),
    **dict.fromkeys(("string", "bytes", "message"), _SIZED),
    "group": _GROUP,
}
_UNCHANGED: Final = frozenset(  # (writer, reader): each value of the writer's type is the same in the reader's
    {
        *(("int32", "int64"), ("uint32", "uint64"), ("uint32", "int64"), ("sint32", "sint64"), ("string", "bytes")),
        *(("bool", number) for number in ("int32", "int64", "uint32", "uint64")),
        *(("enum", number) for number in ("int32", "int64")),
        ("int32", "enum"),  # of an open enum; a closed one is handled apart
    }
)
_ZEROS: Final = {"bool": "false", "string": "", "bytes": ""}
_ENTRY: Final = "map entry"  # not the name of a message
_MOST_SHOWN: Final = 5


def outcomes(reader: ProtobufSchema, writer: ProtobufSchema, limits: Limits, *, is_new: bool) -> Iterator[Outcome]:
    """Yield the parts that the reader does not read as they were written.

    Args:
        reader: The reader's schema.
        writer: The writer's schema.
        limits: Bounds on work and time.
        is_new: Whether the reader's schema is the new one.

    Raises:
        OutOfTime: The time of `limits` ran out.
    """
    return _Walk(reader, writer, limits, is_new=is_new).run()


class _Type(NamedTuple):
    """The type of a field: `message`, `group`, `enum`, `map` or a scalar, and its definition."""

    kind: str
    known: Known | None = None
    parts: tuple[str, str] = ("", "")  # of a map

    @property
    def wire(self) -> int:
        return _WIRE.get(self.kind, _SIZED)

    @property
    def text(self) -> str:
        if self.kind == "map":
            return f"map<{self.parts[0]}, {self.parts[1]}>"
        return self.kind if self.known is None else self.known.relative


class _Member(NamedTuple):
    """A field with what surrounds it."""

    field: Field
    type: _Type
    oneof: str
    is_proto3: bool
    body: Message | None = None  # of a group; of a map, its entry
    scope: str = ""  # in which the body's names of types are looked up

    @property
    def is_repeated(self) -> bool:
        return self.field.label == "repeated" or self.type.kind == "map"

    @property
    def has_presence(self) -> bool:
        """Whether a reader can tell a field that was not set from one with the default."""
        is_labelled = bool(self.oneof) or self.field.label in ("optional", "required")
        return not self.is_repeated and (is_labelled or not self.is_proto3 or self.type.kind in ("message", "group"))

    @property
    def is_packed(self) -> bool:
        if not self.is_repeated or self.type.wire in (_SIZED, _GROUP):
            return False
        said = [
            option.value.text
            for option in self.field.options
            if option.name == "packed" and isinstance(option.value, Scalar)
        ]
        return said[-1] == "true" if said else self.is_proto3

    @property
    def default(self) -> str:
        """The value of a field that is not set."""
        if self.field.default is not None:
            return self.field.default
        if self.type.kind == "enum" and self.type.known is not None and isinstance(self.type.known.definition, Enum):
            constants = self.type.known.definition.constants
            return constants[0].name if constants else "0"
        return _ZEROS.get(self.type.kind, "0")


class _Step(NamedTuple):
    """Two messages to compare; where outcomes are, if the messages are not at their own place."""

    reader: Message
    writer: Message
    names: tuple[str, str]  # the full names, in which names of types are looked up
    are_proto3: tuple[bool, bool]
    at: str
    is_within: bool  # whether `at` is that of a field above


class _Walk:
    def __init__(self, reader: ProtobufSchema, writer: ProtobufSchema, limits: Limits, *, is_new: bool):
        self._reader, self._writer, self._limits = reader, writer, limits
        self._is_new = is_new
        self._seen: set[tuple[str, str, str]] = set()
        self._stack: list[_Step] = []

    def run(self) -> Iterator[Outcome]:
        ours, theirs = (_messages(schema) for schema in (self._reader, self._writer))
        for name, reader in ours.items():
            if name in theirs:
                yield from self._all_below(reader, theirs[name])

    def _all_below(self, reader: Known, writer: Known) -> Iterator[Outcome]:
        self._push(reader, writer, "")
        while self._stack:
            self._limits.look_at_clock()
            yield from self._compare(self._stack.pop())

    def _push(self, reader: Known, writer: Known, within: str) -> None:
        ours, theirs = reader.definition, writer.definition
        key = reader.full, writer.full, within
        if key in self._seen or not isinstance(ours, Message) or not isinstance(theirs, Message):
            return
        if len(self._seen) > self._limits.comparisons:
            return
        self._seen.add(key)
        if ours is theirs and reader.identity == writer.identity != LOCAL:
            return
        at = within or f"#/{reader.relative.replace('.', '/')}"
        names = reader.full, writer.full
        self._stack.append(_Step(ours, theirs, names, (reader.is_proto3, writer.is_proto3), at, bool(within)))

    def _compare(self, step: _Step) -> Iterator[Outcome]:
        ours = _members(step.reader, step.names[0], self._reader.names, is_proto3=step.are_proto3[0])
        theirs = _members(step.writer, step.names[1], self._writer.names, is_proto3=step.are_proto3[1])
        tags = tuple({member.field.name: tag for tag, member in members.items()} for members in (ours, theirs))
        yield from self._oneofs(step, ours, theirs)
        for tag, reader in ours.items():
            self._limits.look_at_clock()
            at = _addresses(step, reader, tag)
            name, writer = reader.field.name, theirs.get(tag)
            if writer is None:
                yield from self._missing(reader, tags[1].get(name), at)
            elif name != writer.field.name and (name in tags[1] or writer.field.name in tags[0]):
                yield Outcome(Cause.MOVED, at, repr(writer.field.name), repr(name))
            else:
                yield from self._members(reader, writer, at)

    def _missing(self, reader: _Member, written_at: int | None, at: tuple[str, ...]) -> Iterator[Outcome]:
        """Judge a field whose tag the writer lacks."""
        if reader.field.label == "required":
            yield Outcome(Cause.REQUIRED_MISSING, at)
        elif written_at is not None:
            yield Outcome(Cause.MOVED, at, f"tag {written_at}", f"tag {reader.field.tag}")
        elif not self._is_new and not reader.has_presence:
            yield Outcome(Cause.REMOVED_DEFAULT, at, "", "[]" if reader.is_repeated else repr(reader.default))

    def _oneofs(self, step: _Step, ours: dict[int, _Member], theirs: dict[int, _Member]) -> Iterator[Outcome]:
        """Find the oneofs of the reader whose members the writer can set together."""
        held: dict[str, list[tuple[str, str]]] = {}
        for tag, member in ours.items():
            if member.oneof and tag in theirs:
                held.setdefault(member.oneof, []).append((theirs[tag].oneof or f"/{tag}", member.field.name))
        for oneof, members in held.items():
            if len({came_from for came_from, _ in members}) > 1:
                names = ", ".join(name for _, name in members[:_MOST_SHOWN])
                yield Outcome(Cause.ONEOF_CLEARED, (step.at if step.is_within else below(step.at, f"/{oneof}"),), names)

    def _members(self, reader: _Member, writer: _Member, at: tuple[str, ...]) -> Iterator[Outcome]:
        if reader.field.label == "required" and writer.field.label != "required":
            yield Outcome(Cause.REQUIRED_MISSING, at)
        cause = _transfer(reader, writer)
        if cause is not None:
            yield Outcome(cause, at, _shown(writer), _shown(reader))
            return
        yield from _presence(reader, writer, at)
        known, other = reader.type.known, writer.type.known
        if reader.type.kind == writer.type.kind == "enum" and known is not None and other is not None:
            yield from _enums(known, other, at)
        elif reader.type.kind == writer.type.kind == "message" and known is not None and other is not None:
            self._push(known, other, "" if known.relative == other.relative else at[0])
        else:
            ours, theirs = _body(reader), _body(writer)
            if ours is not None and theirs is not None:
                # Entries of maps are written whole, so their fields are as those of proto3.
                are_proto3 = (reader.is_proto3 or ours.name == _ENTRY, writer.is_proto3 or theirs.name == _ENTRY)
                self._stack.append(_Step(ours, theirs, (reader.scope, writer.scope), are_proto3, at[0], is_within=True))


def _body(member: _Member) -> Message | None:
    """Return the message whose fields a field holds."""
    if member.body is not None or member.type.known is None:
        return member.body
    definition = member.type.known.definition
    return definition if isinstance(definition, Message) else None


def _transfer(reader: _Member, writer: _Member) -> Cause | None:
    """Return what is wrong with every value of a field, or None if the values pass."""
    kinds = writer.type.kind, reader.type.kind
    takes_packed = reader.is_repeated and reader.type.wire not in (_SIZED, _GROUP)
    cause: Cause | None = None
    if writer.is_packed and takes_packed:
        cause = _packed(reader, writer)
    elif writer.is_packed or writer.type.wire == _SIZED:
        cause = _sized(kinds) if reader.type.wire == _SIZED or takes_packed else Cause.WIRE_TYPE
    elif reader.type.wire != writer.type.wire:
        cause = Cause.WIRE_TYPE
    elif not _keeps(reader, writer):
        cause = Cause.NUMBER_CUT
    if cause is None and kinds == ("message", "map"):
        return Cause.ONE_OF_MANY
    return Cause.ONE_OF_MANY if cause is None and writer.is_repeated and not reader.is_repeated else cause


def _packed(reader: _Member, writer: _Member) -> Cause | None:
    """Return what becomes of packed numbers that the reader takes as packed numbers of its own type."""
    wires = writer.type.wire, reader.type.wire
    if wires[0] != wires[1]:
        return Cause.REINTERPRETED if wires == (_FIXED64, _FIXED32) else Cause.MISPARSED
    return None if _keeps(reader, writer) else Cause.NUMBER_CUT


def _sized(kinds: tuple[str, str]) -> Cause | None:
    """Return what becomes of bytes with a length that the reader takes as another type."""
    if kinds[0] == kinds[1] or kinds in _UNCHANGED or set(kinds) == {"map", "message"}:
        return None
    if kinds[1] == "string":
        return Cause.BYTES_NOT_TEXT
    return Cause.REINTERPRETED if kinds[1] == "bytes" else Cause.MISPARSED


def _keeps(reader: _Member, writer: _Member) -> bool:
    pair = writer.type.kind, reader.type.kind
    if pair[0] == pair[1]:
        return True
    is_closed = reader.type.known is not None and not reader.type.known.is_proto3
    return pair in _UNCHANGED and not (pair[1] == "enum" and is_closed)


def _presence(reader: _Member, writer: _Member, at: tuple[str, ...]) -> Iterator[Outcome]:
    """Judge what a reader sees of a field that was not set, or was set to its default."""
    if writer.is_repeated or writer.field.label == "required" or reader.type.kind in ("message", "group"):
        return
    if reader.is_repeated:
        if not writer.has_presence:
            yield Outcome(Cause.PRESENCE_LOST, at, "an empty list", "")
    elif writer.has_presence and not reader.has_presence:
        yield Outcome(Cause.PRESENCE_LOST, at, repr(reader.default), "")
    elif _default(reader) != _default(writer):
        yield Outcome(Cause.DEFAULT_DIFFERS, at, repr(writer.default), repr(reader.default))


def _default(member: _Member) -> object:
    """Return the value of a field that is not set, in a form in which equal values are equal."""
    known, text = member.type.known, member.default
    if member.type.kind == "enum" and known is not None and isinstance(known.definition, Enum):
        return next((constant.tag for constant in known.definition.constants if constant.name == text), 0)
    return 0 if text in ("0", "false", "") else text


def _enums(reader: Known, writer: Known, at: tuple[str, ...]) -> Iterator[Outcome]:
    if not isinstance(reader.definition, Enum) or not isinstance(writer.definition, Enum):
        return
    ours, theirs = _symbols(reader.definition), _symbols(writer.definition)
    our_names, their_names = (
        {name for names in names_by_number.values() for name in names} for names_by_number in (ours, theirs)
    )
    is_own = reader.relative == writer.relative
    lacking: list[str] = []
    for number, names in theirs.items():
        known = ours.get(number)
        place = (f"#/{reader.relative.replace('.', '/')}/{number}", *at) if is_own else at
        if known is None:
            lacking.append(names[0])
            yield Outcome(Cause.ENUM_UNKNOWN, place, names[0])
        elif set(names).isdisjoint(known) and not (our_names.isdisjoint(names) and their_names.isdisjoint(known)):
            yield Outcome(Cause.ENUM_MOVED, place, names[0], known[0])


def _symbols(enum: Enum) -> dict[int, list[str]]:
    symbols: dict[int, list[str]] = {}
    for constant in enum.constants:
        symbols.setdefault(constant.tag, []).append(constant.name)
    return symbols


def _messages(schema: ProtobufSchema) -> dict[str, Known]:
    """Return the messages that a schema defines itself, by name without the package."""
    package = schema.file.package or ""
    waiting = [(f"{package}.{inner.name}" if package else inner.name, inner) for inner in schema.file.messages]
    messages: dict[str, Known] = {}
    while waiting:
        full, message = waiting.pop()
        known = schema.names.type_of(f".{full}", "")
        if known is not None and known.definition is message:
            messages[known.relative] = known
        waiting += [(f"{full}.{inner.name}", inner) for inner in message.messages if not is_map_entry(inner)]
    return messages


def _members(message: Message, scope: str, names: Names, *, is_proto3: bool) -> dict[int, _Member]:
    members = {own.tag: _member(own, "", scope, names, is_proto3=is_proto3) for own in message.fields}
    for oneof in message.oneofs:
        members |= {own.tag: _member(own, oneof.name, scope, names, is_proto3=is_proto3) for own in oneof.fields}
    for group in message.groups:
        field = Field(group.label, "group", group.name, group.tag)
        members[group.tag] = _Member(field, _Type("group"), "", is_proto3, Message(group.name, group.fields), scope)
    return members


def _member(field: Field, oneof: str, scope: str, names: Names, *, is_proto3: bool) -> _Member:
    type_ = _type(field.type, scope, names)
    if type_.kind != "map":
        inside = type_.known.full if type_.known is not None else scope
        return _Member(field, type_, oneof, is_proto3, scope=inside)
    key, value = (
        Field(None, part, name, tag) for tag, name, part in zip((1, 2), ("key", "value"), type_.parts, strict=True)
    )
    return _Member(field, type_, oneof, is_proto3, Message(_ENTRY, (key, value)), scope)


def _type(name: str, scope: str, names: Names) -> _Type:
    if name in SCALARS:
        return _Type(name)
    parts = map_types(name)
    if parts is not None:
        return _Type("map", parts=parts)
    known = names.type_of(name, scope)
    return _Type("enum" if known is not None and known.is_enum else "message", known)


def _addresses(step: _Step, reader: _Member, tag: int) -> tuple[str, ...]:
    if step.is_within:
        return (step.at,)
    inside = f"{step.at}/{reader.oneof}/{tag}" if reader.oneof else f"{step.at}/{tag}"
    return f"{step.at}/{tag}", inside


def _shown(member: _Member) -> str:
    return f"{'repeated ' * (member.field.label == 'repeated')}{member.type.text}"
