"""The Protobuf compatibility rules: the reference's differences, compatible ones included.

- Top-level and nested types are matched by name, fields by tag over the whole message.
- If both schemas define the message type of a field themselves, only its name is compared, since the definitions are
  compared anyway. If one of the types comes from a reference (and not both from the same version), the two messages are
  compared as well, and an incompatible difference in them makes the field incompatible too.
- Groups, services, options, reserved tags, default values and imports are not compared.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, TypeVar

from strata.compat.limits import DEFAULT_LIMITS, Limits
from strata.compat.protobuf.model import SCALARS, Enum, Field, Message, TypeDefinition, is_map_entry, map_types
from strata.compat.protobuf.names import Known, Names, inside
from strata.compat.protobuf.schema import ProtobufSchema
from strata.compat.protobuf.wording import Difference, describe
from strata.compat.result import Incompatibility, Value
from strata.compat.schema import SchemaFormat

__all__ = ["Found", "check", "differences"]

_WIRE_GROUPS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("int32", "int64", "uint32", "uint64", "bool", "enum"), "varint"),
    **dict.fromkeys(("sint32", "sint64"), "zigzag"),
    **dict.fromkeys(("string", "bytes"), "bytes"),
    **dict.fromkeys(("fixed32", "sfixed32"), "fixed32"),
    **dict.fromkeys(("fixed64", "sfixed64"), "fixed64"),
    "float": "float",
    "double": "double",
}
_TEXTS: Final = frozenset({"string", "bytes"})


@dataclass(frozen=True, slots=True)
class Found:
    """One difference, its path, and what the two schemas have there."""

    difference: Difference
    path: str
    reader: Value = field(default=None, compare=False)
    writer: Value = field(default=None, compare=False)


class _GaveUp(Exception):
    """The comparison takes too much work."""


@dataclass(frozen=True, slots=True)
class _Member:
    """A field, and its oneof, if it is in one."""

    field: Field
    oneof: str | None


def check(reader: ProtobufSchema, writer: ProtobufSchema, *, limits: Limits = DEFAULT_LIMITS) -> list[Incompatibility]:
    """Return every reason why the reader schema cannot read data of the writer schema.

    A check that exceeds the comparisons of `limits` returns the single finding TOO_COMPLEX.

    Args:
        reader: The reader schema.
        writer: The writer schema.
        limits: Bounds on work, findings and time.

    Raises:
        OutOfTime: The time of `limits` ran out.
    """
    comparison = _Comparison(reader.names, writer.names, limits)
    found = (one for one in comparison.run(reader, writer) if not one.difference.compatible)
    kept = islice(found, limits.incompatibilities)
    return [_report(one, comparison.field_names.get(one.path)) for one in kept]


def differences(reader: ProtobufSchema, writer: ProtobufSchema, *, limits: Limits = DEFAULT_LIMITS) -> list[Found]:
    """Return every difference between two schemas, compatible ones included; see `check` for the arguments.

    Raises:
        OutOfTime: The time of `limits` ran out.
    """
    return _Comparison(reader.names, writer.names, limits).run(reader, writer)


def _report(found: Found, field_name: str | None) -> Incompatibility:
    steps = found.path.removeprefix("#/").split("/")
    if field_name is not None:
        steps[-1] = f"{field_name} (tag {steps[-1]})"
    message = describe(found.difference, found.path)
    kind = str(found.difference)
    return Incompatibility(
        SchemaFormat.PROTOBUF,
        kind,
        found.path,
        message,
        where=".".join(steps),
        reader_value=found.reader,
        writer_value=found.writer,
    )


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two messages to compare, at least one of them from a reference."""

    reader: str  # full names
    writer: str


@dataclass(slots=True)
class _Judged:
    """The differences of one pair itself, and the fields that use other pairs."""

    found: list[Found] = field(default_factory=list)
    uses: list[tuple[_Pair, str]] = field(default_factory=list)


class _Comparison:
    """A comparison of each pair once; afterwards the differences are combined where the messages are used."""

    def __init__(self, reader: Names, writer: Names, limits: Limits):
        self._reader = reader
        self._writer = writer
        self._limits = limits
        self._compared = 0
        self.field_names: dict[str, str] = {}  # by path
        self._here = _Judged()
        self._judged: dict[_Pair, _Judged] = {}
        self._waiting: list[tuple[_Pair, Known, Known]] = []

    def run(self, reader: ProtobufSchema, writer: ProtobufSchema) -> list[Found]:
        ours, theirs = reader.file, writer.file
        root = self._here
        try:
            if (ours.package or "") != (theirs.package or ""):
                self._note(Difference.PACKAGE_CHANGED, "#/", ours.package, theirs.package)
            self._types(ours.types, theirs.types, "#/", (ours.package or "", theirs.package or ""))
            while self._waiting:
                self._referenced(*self._waiting.pop())
        except _GaveUp:
            return [Found(Difference.TOO_COMPLEX, "#/")]
        return _put_together(root, self._judged, self._limits.incompatibilities)

    def _referenced(self, pair: _Pair, reader: Known, writer: Known) -> None:
        if not isinstance(reader.definition, Message) or not isinstance(writer.definition, Message):
            return
        self._here = self._judged[pair]
        path = f"#/{reader.relative.replace('.', '/')}"
        self._messages(reader.definition, writer.definition, path, (reader.full, writer.full))

    def _note(self, difference: Difference, path: str, reader: Value = None, writer: Value = None) -> None:
        self._here.found.append(Found(difference, path, reader, writer))

    def _note_of(
        self, field: Field, difference: Difference, path: str, *, reader: Value = None, writer: Value = None
    ) -> None:
        self.field_names[path] = field.name
        self._note(difference, path, reader, writer)

    def _spend(self) -> None:
        self._compared += 1
        self._limits.look_at_clock()
        if self._compared > self._limits.comparisons:
            raise _GaveUp

    def _types(
        self,
        reader: tuple[TypeDefinition, ...],
        writer: tuple[TypeDefinition, ...],
        path: str,
        scopes: tuple[str, str],
    ) -> None:
        """Compare the messages and enums of one scope by name."""
        ours, theirs = _by_name(reader, Message), _by_name(writer, Message)
        for name in theirs.keys() | ours.keys():
            self._spend()
            at = f"{path}{name}"
            if name not in ours:
                self._note(Difference.MESSAGE_REMOVED, at, None, f"message {name}")
            elif name not in theirs:
                self._note(Difference.MESSAGE_ADDED, at)
            else:
                (index, one), (other_index, other) = ours[name], theirs[name]
                if index != other_index:
                    self._note(Difference.MESSAGE_MOVED, at)
                self._messages(one, other, at, (inside(scopes[0], name), inside(scopes[1], name)))
        enums, their_enums = _by_name(reader, Enum), _by_name(writer, Enum)
        for name in their_enums.keys() | enums.keys():
            self._spend()
            at = f"{path}{name}"
            if name not in enums:
                self._note(Difference.ENUM_REMOVED, at)
            elif name not in their_enums:
                self._note(Difference.ENUM_ADDED, at)
            else:
                self._enums(enums[name][1], their_enums[name][1], at)

    def _enums(self, reader: Enum, writer: Enum, path: str) -> None:
        ours = {constant.tag: constant.name for constant in reader.constants}
        theirs = {constant.tag: constant.name for constant in writer.constants}
        for tag in theirs.keys() | ours.keys():
            self._spend()
            if tag not in ours:
                self._note(Difference.ENUM_CONST_REMOVED, f"{path}/{tag}")
            elif tag not in theirs:
                self._note(Difference.ENUM_CONST_ADDED, f"{path}/{tag}")
            elif ours[tag] != theirs[tag]:
                self._note(Difference.ENUM_CONST_CHANGED, f"{path}/{tag}")

    def _messages(self, reader: Message, writer: Message, path: str, scopes: tuple[str, str]) -> None:
        self._types(reader.types, writer.types, f"{path}/", scopes)
        ours, theirs = _members(reader), _members(writer)
        gone = self._oneofs(reader, writer, ours, theirs, path)
        for tag in theirs.keys() | ours.keys():
            self._spend()
            if tag not in ours:
                self._removed(theirs[tag], gone, path)
            elif tag not in theirs:
                self._added(ours[tag], path)
            else:
                self._fields(ours[tag], theirs[tag], path, scopes)

    def _removed(self, member: _Member, gone: frozenset[str], path: str) -> None:
        """Note a removed field; a member of a oneof may be removed together with the whole oneof."""
        if member.oneof is not None:
            if member.oneof not in gone:
                at = f"{path}/{member.oneof}/{member.field.tag}"
                self._note_of(member.field, Difference.ONEOF_FIELD_REMOVED, at, writer=member.field.type)
        elif member.field.label == "required":
            at, was = f"{path}/{member.field.tag}", f"required {member.field.type}"
            self._note_of(member.field, Difference.REQUIRED_FIELD_REMOVED, at, writer=was)
        else:
            self._note(Difference.FIELD_REMOVED, f"{path}/{member.field.tag}")

    def _added(self, member: _Member, path: str) -> None:
        if member.oneof is not None:
            self._note(Difference.ONEOF_FIELD_ADDED, f"{path}/{member.oneof}/{member.field.tag}")
        elif member.field.label == "required":
            at, added = f"{path}/{member.field.tag}", f"required {member.field.type}"
            self._note_of(member.field, Difference.REQUIRED_FIELD_ADDED, at, reader=added)
        else:
            self._note(Difference.FIELD_ADDED, f"{path}/{member.field.tag}")

    def _oneofs(
        self,
        reader: Message,
        writer: Message,
        ours: Mapping[int, _Member],
        theirs: Mapping[int, _Member],
        path: str,
    ) -> frozenset[str]:
        """Compare the oneofs; return those that were removed with all their members."""
        names = {oneof.name for oneof in reader.oneofs}
        old_names = {oneof.name for oneof in writer.oneofs}
        for name in old_names - names:
            self._note(Difference.ONEOF_REMOVED, f"{path}/{name}")
        for name in names - old_names:
            self._note(Difference.ONEOF_ADDED, f"{path}/{name}")
        origins: dict[str, list[_Member]] = {}
        held: dict[str, list[str]] = {}
        for tag, member in ours.items():
            if member.oneof is not None and tag in theirs:
                origins.setdefault(member.oneof, []).append(theirs[tag])
                held.setdefault(member.oneof, []).append(member.field.name)
        for name, came_from in origins.items():
            self._spend()
            loose = [member.field.name for member in came_from if member.oneof is None]
            if len(loose) > 1:
                self._note(Difference.MULTIPLE_FIELDS_MOVED_TO_ONEOF, f"{path}/{name}", held[name], loose)
            elif len(loose) + len({member.oneof for member in came_from} - {None}) > 1:
                self._note(Difference.FIELD_MOVED_TO_EXISTING_ONEOF, f"{path}/{name}", held[name], loose)
        left_behind = {member.oneof for tag, member in theirs.items() if tag in ours}
        return frozenset(old_names - names - left_behind)

    def _fields(self, reader: _Member, writer: _Member, path: str, scopes: tuple[str, str]) -> None:
        tag = reader.field.tag
        at = f"{path}/{tag}" if reader.oneof is None else f"{path}/{reader.oneof}/{tag}"
        if reader.oneof is None and writer.oneof is not None:
            self._note(Difference.ONEOF_FIELD_MOVED_TO_TOP_LEVEL, f"{path}/{tag}")
        ours, theirs = reader.field, writer.field
        self.field_names[at] = ours.name
        if ours.name != theirs.name:
            self._note(Difference.FIELD_NAME_CHANGED, at)
        self._type_names(
            _Use(ours.type, scopes[0], self._reader, ours.label),
            _Use(theirs.type, scopes[1], self._writer, theirs.label),
            at,
        )

    def _type_names(self, reader: "_Use", writer: "_Use", path: str) -> None:
        ours, theirs = reader.resolved(), writer.resolved()
        if ours.kind != theirs.kind:
            self._note(Difference.FIELD_KIND_CHANGED, path, reader.name, writer.name)
        elif isinstance(ours, _ScalarUse) and isinstance(theirs, _ScalarUse):
            self._scalars(ours, theirs, path, (reader.name, writer.name))
        elif isinstance(ours, _MapUse) and isinstance(theirs, _MapUse):
            self._type_names(ours.key, theirs.key, path)
            self._type_names(ours.value, theirs.value, path)
        elif isinstance(ours, _MessageUse) and isinstance(theirs, _MessageUse):
            self._named(ours, theirs, path)

    def _scalars(self, reader: "_ScalarUse", writer: "_ScalarUse", path: str, names: tuple[str, str]) -> None:
        if _WIRE_GROUPS[reader.name] != _WIRE_GROUPS[writer.name]:
            self._note(Difference.FIELD_SCALAR_KIND_CHANGED, path, *names)
        if reader.label and writer.label and reader.label != writer.label:
            is_text = reader.name in _TEXTS
            self._note(
                Difference.FIELD_STRING_OR_BYTES_LABEL_CHANGED if is_text else Difference.FIELD_NUMERIC_LABEL_CHANGED,
                path,
                reader.label,
                writer.label,
            )

    def _named(self, reader: "_MessageUse", writer: "_MessageUse", path: str) -> None:
        ours, theirs = reader.known, writer.known
        if reader.relative != writer.relative:
            self._note(Difference.FIELD_NAMED_TYPE_CHANGED, path, reader.relative, writer.relative)
            return
        if ours is None or theirs is None or ours.identity == theirs.identity:
            return
        pair = _Pair(ours.full, theirs.full)
        self._here.uses.append((pair, path))
        if pair not in self._judged:
            self._judged[pair] = _Judged()
            self._waiting.append((pair, ours, theirs))


@dataclass(frozen=True, slots=True)
class _ScalarUse:
    name: str
    label: str | None
    kind: str = "scalar"


@dataclass(frozen=True, slots=True)
class _MessageUse:
    relative: str
    known: Known | None
    kind: str = "message"


@dataclass(frozen=True, slots=True)
class _MapUse:
    key: "_Use"
    value: "_Use"
    kind: str = "map"


@dataclass(frozen=True, slots=True)
class _Use:
    """A type name, and the scope in which it is used."""

    name: str
    scope: str
    names: Names
    label: str | None = None

    def resolved(self) -> _ScalarUse | _MessageUse | _MapUse:
        if self.name in SCALARS:
            return _ScalarUse(self.name, self.label)
        types = map_types(self.name)
        if types is not None:
            return _MapUse(_Use(types[0], self.scope, self.names), _Use(types[1], self.scope, self.names))
        known = self.names.type_of(self.name, self.scope)
        if known is None:
            return _MessageUse(self.name.lstrip("."), None)
        if known.is_enum:
            return _ScalarUse("enum", self.label)
        entry = known.definition
        if self.label == "repeated" and isinstance(entry, Message) and is_map_entry(entry):
            parts = {field.tag: field.type for field in entry.fields}
            if parts.keys() >= {1, 2}:
                return _MapUse(_Use(parts[1], known.full, self.names), _Use(parts[2], known.full, self.names))
        return _MessageUse(known.relative, known)


_KindT = TypeVar("_KindT", Message, Enum)


def _by_name(types: tuple[TypeDefinition, ...], kind: type[_KindT]) -> dict[str, tuple[int, _KindT]]:
    found = [definition for definition in types if isinstance(definition, kind)]
    return {
        definition.name: (index, definition)
        for index, definition in enumerate(found)
        if not (isinstance(definition, Message) and is_map_entry(definition))
    }


def _members(message: Message) -> dict[int, _Member]:
    members = {field.tag: _Member(field, None) for field in message.fields}
    for oneof in message.oneofs:
        members.update((field.tag, _Member(field, oneof.name)) for field in oneof.fields)
    return members


def _put_together(root: _Judged, judged: Mapping[_Pair, _Judged], most: int) -> list[Found]:
    """Combine the differences: those of a pair count where it is used, and can make the using field incompatible.

    A pair that uses itself adds nothing to itself. Compatible differences count at the first use only.
    """
    totals: dict[_Pair, _Total] = {}
    open_pairs: set[_Pair] = set()
    whole = _Total(list(root.found))
    stack = [_Frame(None, root.uses, whole)]
    while stack:
        frame = stack[-1]
        if frame.next == len(frame.uses):
            stack.pop()
            if frame.pair is not None:
                open_pairs.discard(frame.pair)
                totals[frame.pair] = frame.total
            continue
        used, path = frame.uses[frame.next]
        if used in totals:
            frame.total.add(
                totals[used], Found(Difference.FIELD_NAMED_TYPE_CHANGED, path, used.reader, used.writer), most
            )
            frame.next += 1
        elif used in open_pairs:
            frame.next += 1
        else:
            open_pairs.add(used)
            stack.append(_Frame(used, judged[used].uses, _Total(list(judged[used].found))))
    return whole.found


class _Total:
    """The differences of a pair and of the pairs that it uses."""

    def __init__(self, found: list[Found]):
        self.found = found
        self._incompatible = any(not one.difference.compatible for one in found)
        self._uses = 0

    def add(self, other: "_Total", use: Found, most: int) -> None:
        if len(self.found) <= most:
            self.found += other._for_another_use()
        if other._incompatible:
            self._incompatible = True
            self.found.append(use)

    def _for_another_use(self) -> list[Found]:
        self._uses += 1
        if self._uses == 2:
            self.found = [one for one in self.found if not one.difference.compatible]
        return self.found


@dataclass(slots=True)
class _Frame:
    """A pair on the stack, and which of its uses is next."""

    pair: _Pair | None
    uses: list[tuple[_Pair, str]]
    total: _Total
    next: int = 0
