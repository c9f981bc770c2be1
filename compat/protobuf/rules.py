"""The Protobuf compatibility rules: the reference's differences, compatible ones included.

- Top-level and nested types are matched by name, fields by tag over the whole message.
- If both schemas define the message type of a field themselves, only its name is compared, since the definitions are
  compared anyway. If one of the types comes from a reference (and not both from the same version), the two messages are
  compared as well, and an incompatible difference in them makes the field incompatible too.
- Groups, services, options, reserved tags, default values and imports are not compared.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, NamedTuple, TypeAlias, TypeVar

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

_KeyT = TypeVar("_KeyT", str, int)
_KindT = TypeVar("_KindT", Message, Enum)

_Pair: TypeAlias = tuple[str, str]  # the full names of reader and writer, of which one at least is from a reference


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
    refused = (finding for finding in comparison.run(reader, writer) if not finding.difference.compatible)
    kept = islice(refused, limits.incompatibilities)
    return [_report(finding, comparison.field_names.get(finding.path)) for finding in kept]


def differences(reader: ProtobufSchema, writer: ProtobufSchema, *, limits: Limits = DEFAULT_LIMITS) -> list[Found]:
    """Return every difference between two schemas, compatible ones included; see `check` for the arguments.

    Raises:
        OutOfTime: The time of `limits` ran out.
    """
    return _Comparison(reader.names, writer.names, limits).run(reader, writer)


def _report(finding: Found, field_name: str | None) -> Incompatibility:
    steps = finding.path.removeprefix("#/").split("/")
    if field_name is not None:
        steps[-1] = f"{field_name} (tag {steps[-1]})"
    message = describe(finding.difference, finding.path)
    difference = str(finding.difference)
    return Incompatibility(
        SchemaFormat.PROTOBUF,
        difference,
        finding.path,
        message,
        where=".".join(steps),
        reader_value=finding.reader,
        writer_value=finding.writer,
    )


@dataclass(slots=True)
class _Judged:
    """The differences of one pair itself, and the fields that use other pairs."""

    findings: list[Found] = field(default_factory=list)
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
        self._here.findings.append(Found(difference, path, reader, writer))

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
        messages, their_messages = _by_name(reader, Message), _by_name(writer, Message)
        for name, at in self._shared(messages, their_messages, path, "MESSAGE"):
            (index, own_at), (other_index, other) = messages[name], their_messages[name]
            if index != other_index:
                self._note(Difference.MESSAGE_MOVED, at)
            self._messages(own_at, other, at, (inside(scopes[0], name), inside(scopes[1], name)))
        enums, their_enums = _by_name(reader, Enum), _by_name(writer, Enum)
        for name, at in self._shared(enums, their_enums, path, "ENUM"):
            ours, theirs = (
                {constant.tag: constant.name for constant in enum[name][1].constants} for enum in (enums, their_enums)
            )
            for tag, place in self._shared(ours, theirs, f"{at}/", "ENUM_CONST"):
                if ours[tag] != theirs[tag]:
                    self._note(Difference.ENUM_CONST_CHANGED, place)

    def _shared(
        self, reader: Mapping[_KeyT, object], writer: Mapping[_KeyT, object], path: str, thing: str
    ) -> Iterator[tuple[_KeyT, str]]:
        """Yield what both schemas have, with its path; note what only one of them has."""
        for key in writer.keys() | reader.keys():
            self._spend()
            at = f"{path}{key}"
            if key not in reader:
                self._note(Difference(f"{thing}_REMOVED"), at, None, f"{thing.lower()} {key}")
            elif key not in writer:
                self._note(Difference(f"{thing}_ADDED"), at)
            else:
                yield key, at

    def _messages(self, reader: Message, writer: Message, path: str, scopes: tuple[str, str]) -> None:
        self._types(reader.types, writer.types, f"{path}/", scopes)
        ours, theirs = _members(reader), _members(writer)
        gone = self._oneofs(reader, writer, ours, theirs, path)
        for tag in theirs.keys() | ours.keys():
            self._spend()
            if tag not in ours:
                if theirs[tag].oneof not in gone:  # a member may be removed together with the whole oneof
                    self._one_sided(theirs[tag], path, "REMOVED")
            elif tag not in theirs:
                self._one_sided(ours[tag], path, "ADDED")
            else:
                self._fields(ours[tag], theirs[tag], path, scopes)

    def _one_sided(self, member: _Member, path: str, change: str) -> None:
        """Note a field that only one schema has; the change is ADDED or REMOVED."""
        field, required = member.field, member.field.label == "required"
        member_kind = "ONEOF_FIELD" if member.oneof is not None else "REQUIRED_FIELD" if required else "FIELD"
        at = f"{path}/{field.tag}" if member.oneof is None else f"{path}/{member.oneof}/{field.tag}"
        self.field_names[at] = field.name
        shown = f"required {field.type}" if required else field.type
        reader, writer = (shown, None) if change == "ADDED" else (None, shown)
        self._note(Difference(f"{member_kind}_{change}"), at, reader, writer)

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
        elif ours.kind == "scalar":
            self._scalars(ours.name, theirs.name, reader, writer, path)
        elif ours.kind == "message":
            self._named(ours, theirs, path)
        else:
            for part, other in zip(ours.parts, theirs.parts, strict=True):
                self._type_names(part, other, path)

    def _scalars(self, ours: str, theirs: str, reader: "_Use", writer: "_Use", path: str) -> None:
        if _WIRE_GROUPS[ours] != _WIRE_GROUPS[theirs]:
            self._note(Difference.FIELD_SCALAR_KIND_CHANGED, path, reader.name, writer.name)
        if reader.label and writer.label and reader.label != writer.label:
            group = "STRING_OR_BYTES" if ours in _TEXTS else "NUMERIC"
            self._note(Difference(f"FIELD_{group}_LABEL_CHANGED"), path, reader.label, writer.label)

    def _named(self, reader: "_Resolved", writer: "_Resolved", path: str) -> None:
        ours, theirs = reader.known, writer.known
        if reader.name != writer.name:
            self._note(Difference.FIELD_NAMED_TYPE_CHANGED, path, reader.name, writer.name)
            return
        if ours is None or theirs is None or ours.identity == theirs.identity:
            return
        pair = ours.full, theirs.full
        self._here.uses.append((pair, path))
        if pair not in self._judged:
            self._judged[pair] = _Judged()
            self._waiting.append((pair, ours, theirs))


class _Resolved(NamedTuple):
    """The type that a name means."""

    kind: str  # scalar, message or map
    name: str = ""  # of a scalar; of a message, without the package
    known: Known | None = None  # the message
    parts: tuple["_Use", ...] = ()  # the key and the value of a map


class _Use(NamedTuple):
    """A type name, and the scope in which it is used."""

    name: str
    scope: str
    names: Names
    label: str | None = None

    def resolved(self) -> _Resolved:
        if self.name in SCALARS:
            return _Resolved("scalar", self.name)
        types = map_types(self.name)
        if types is not None:
            return self._map(types, self.scope)
        known = self.names.type_of(self.name, self.scope)
        if known is None:
            return _Resolved("message", self.name.lstrip("."))
        if known.is_enum:
            return _Resolved("scalar", "enum")
        entry = known.definition
        if self.label == "repeated" and isinstance(entry, Message) and is_map_entry(entry):
            parts = {field.tag: field.type for field in entry.fields}
            if parts.keys() >= {1, 2}:
                return self._map((parts[1], parts[2]), known.full)
        return _Resolved("message", known.relative, known)

    def _map(self, types: tuple[str, str], scope: str) -> _Resolved:
        return _Resolved("map", parts=(_Use(types[0], scope, self.names), _Use(types[1], scope, self.names)))


def _by_name(types: tuple[TypeDefinition, ...], type_: type[_KindT]) -> dict[str, tuple[int, _KindT]]:
    definitions = [definition for definition in types if isinstance(definition, type_)]
    return {
        definition.name: (index, definition)
        for index, definition in enumerate(definitions)
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
    whole = _Total(list(root.findings))
    stack: list[tuple[_Pair | None, list[tuple[_Pair, str]], _Total]] = [(None, root.uses[::-1], whole)]
    while stack:
        pair, uses, total = stack[-1]
        while uses:
            used, path = uses[-1]
            if used in totals:
                total.add(totals[used], Found(Difference.FIELD_NAMED_TYPE_CHANGED, path, *used), most)
            elif used not in open_pairs:
                open_pairs.add(used)
                stack.append((used, judged[used].uses[::-1], _Total(list(judged[used].findings))))
                break
            uses.pop()
        else:
            stack.pop()
            if pair is not None:
                open_pairs.discard(pair)
                totals[pair] = total
    return whole.findings


class _Total:
    """The differences of a pair and of the pairs that it uses."""

    def __init__(self, findings: list[Found]):
        self.findings = findings
        self._incompatible = any(not finding.difference.compatible for finding in findings)
        self._uses = 0

    def add(self, other: "_Total", use: Found, most: int) -> None:
        if len(self.findings) <= most:
            self.findings += other._for_another_use()
        if other._incompatible:
            self._incompatible = True
            self.findings.append(use)

    def _for_another_use(self) -> list[Found]:
        self._uses += 1
        if self._uses == 2:
            self.findings = [finding for finding in self.findings if not finding.difference.compatible]
        return self.findings
