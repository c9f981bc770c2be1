"""The edits between two Protobuf schemas.

Types are matched by name and fields by tag, as in the checker, so another name at the same tag is a renaming. Types of
references are walked from the fields that use them. Addresses are the paths of the checker's findings.
"""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from strata.compat.difference.edits import EditKind, Edits, below, changed
from strata.compat.limits import Limits
from strata.compat.protobuf.model import (
    Enum,
    Field,
    File,
    Kind,
    ListValue,
    Message,
    Option,
    Scalar,
    TypeDefinition,
    Value,
    is_map_entry,
    map_types,
)
from strata.compat.protobuf.names import LOCAL, Names, inside
from strata.compat.protobuf.printer import quoted
from strata.compat.protobuf.schema import ProtobufSchema
from strata.compat.result import Incompatibility

__all__ = ["addresses", "edits"]

_ROOT: Final = "#/"


class _Type(NamedTuple):
    """A type, and where its names are looked up."""

    definition: TypeDefinition
    full: str
    position: int  # among the types of its scope; -1 for a type of a reference


class _Member(NamedTuple):
    """A field, and its oneof, if it is in one."""

    field: Field
    oneof: str


def edits(previous: ProtobufSchema, new: ProtobufSchema, limits: Limits) -> Edits:
    """Return the edits from one schema to another.

    Raises:
        OutOfTime: The time of `limits` ran out.
    """
    return _Walk(previous, new, limits).run()


def addresses(finding: Incompatibility) -> tuple[str, ...]:
    """Return where a finding is, in the form of the edits' addresses; a member of a oneof has two."""
    above, _, tag = finding.path.rpartition("/")
    return finding.path, f"{above.rpartition('/')[0]}/{tag}"


class _Walk:
    def __init__(self, previous: ProtobufSchema, new: ProtobufSchema, limits: Limits):
        self._previous = previous
        self._new = new
        self._limits = limits
        self._edits = Edits()

    def run(self) -> Edits:
        self._files(self._previous.file, self._new.file)
        ours, theirs = (_types(schema, self._limits) for schema in (self._previous, self._new))
        for name in dict.fromkeys((*theirs, *ours)):
            self._limits.look_at_clock()
            before, after = ours.get(name), theirs.get(name)
            at = below(_ROOT, name.replace(".", "/"))
            if before is None or after is None:
                self._one_sided_type(before, after, name, at)
            elif before.definition != after.definition or before.full != after.full or before.position < 0:
                self._types(before, after, at)
            if before and after and before.position != after.position and min(before.position, after.position) >= 0:
                positions = str(before.position + 1), str(after.position + 1)
                self._edits.add(EditKind.ORDER_CHANGED, at, at, "position", *positions)
        return self._edits

    def _files(self, before: File, after: File) -> None:
        if (before.package or "") != (after.package or ""):
            names = before.package or "", after.package or ""
            self._edits.add(EditKind.NAMESPACE_CHANGED, _ROOT, _ROOT, "package", *names)
        self._edits.attributes(_file_attributes(before), _file_attributes(after), _ROOT, _ROOT)

    def _one_sided_type(self, before: _Type | None, after: _Type | None, name: str, at: str) -> None:
        if after is not None:
            self._edits.add(EditKind.TYPE_ADDED, at, at, name, after=_kind(after.definition))
        elif before is not None:
            self._edits.add(EditKind.TYPE_REMOVED, at, at, name, before=_kind(before.definition))

    def _types(self, before: _Type, after: _Type, at: str) -> None:
        ours, theirs = before.definition, after.definition
        if isinstance(ours, Message) and isinstance(theirs, Message):
            self._messages(before, ours, after, theirs, at)
        elif isinstance(ours, Enum) and isinstance(theirs, Enum):
            self._enums(ours, theirs, at)
        else:
            self._edits.add(EditKind.TYPE_CHANGED, at, at, before=_kind(ours), after=_kind(theirs))

    def _messages(self, before: _Type, ours: Message, after: _Type, theirs: Message, at: str) -> None:
        self._edits.attributes(_message_attributes(ours), _message_attributes(theirs), at, at)
        self._oneofs(ours, theirs, at)
        members, their_members = _members(ours), _members(theirs)
        self._order(members, their_members, at)
        for tag in dict.fromkeys((*their_members, *members)):
            self._limits.look_at_clock()
            old, new = members.get(tag), their_members.get(tag)
            place = f"{at}/{tag}"
            if new is None:
                if old is not None:
                    self._edits.add(EditKind.FIELD_REMOVED, place, place, old.field.name, before=_described(old))
            elif old is None:
                self._edits.add(EditKind.FIELD_ADDED, place, place, new.field.name, after=_described(new))
            else:
                texts = _type_text(old.field, before.full, self._previous), _type_text(new.field, after.full, self._new)
                if texts[0] != texts[1]:
                    self._edits.add(EditKind.TYPE_CHANGED, place, place, new.field.name, *texts)
                self._fields(old, new, place)

    def _order(self, before: dict[int, _Member], after: dict[int, _Member], at: str) -> None:
        ours, theirs = [tag for tag in before if tag in after], [tag for tag in after if tag in before]
        if ours != theirs:
            names = (_held(holder[tag].field for tag in tags) for holder, tags in ((before, ours), (after, theirs)))
            self._edits.add(EditKind.ORDER_CHANGED, at, at, "fields", *names)

    def _fields(self, before: _Member, after: _Member, at: str) -> None:
        ours, theirs = before.field, after.field
        if ours.name != theirs.name:
            self._edits.add(EditKind.FIELD_RENAMED, at, at, theirs.name, ours.name, theirs.name)
        if (ours.label or "") != (theirs.label or ""):
            labels = ours.label or "no label", theirs.label or "no label"
            self._edits.add(EditKind.REQUIRED_CHANGED, at, at, theirs.name, *labels)
        if before.oneof != after.oneof:
            oneofs = before.oneof or "no oneof", after.oneof or "no oneof"
            self._edits.add(EditKind.CONSTRAINT_CHANGED, at, at, "oneof", *oneofs)
        self._edits.default(ours.default, theirs.default, at, at)
        self._edits.attributes(_field_attributes(ours), _field_attributes(theirs), at, at)

    def _oneofs(self, before: Message, after: Message, at: str) -> None:
        ours, theirs = ({oneof.name: _held(oneof.fields) for oneof in message.oneofs} for message in (before, after))
        for name, was, becomes in changed(ours, theirs):
            place = below(at, f"/{name}")
            self._edits.add(EditKind.CONSTRAINT_CHANGED, place, place, f"oneof {name}", was, becomes)

    def _enums(self, before: Enum, after: Enum, at: str) -> None:
        self._edits.attributes(_options(before.options), _options(after.options), at, at)
        ours, theirs = _constants(before), _constants(after)
        for tag, was, becomes in changed(ours, theirs):
            place = f"{at}/{tag}"
            if was is None:
                self._edits.add(EditKind.SYMBOL_ADDED, place, place, becomes or "", after=becomes)
            elif becomes is None:
                self._edits.add(EditKind.SYMBOL_REMOVED, place, place, was, before=was)
            else:
                self._edits.add(EditKind.SYMBOL_RENAMED, place, place, becomes, was, becomes)


def _types(schema: ProtobufSchema, limits: Limits) -> dict[str, _Type]:
    """Return the types of a schema, and those of its references that fields use, by name without the package."""
    package = schema.file.package or ""
    types = {
        name: _Type(definition, inside(package, name), place)
        for name, definition, place in _nested(schema.file.types, "")
    }
    waiting = list(types.values())
    seen = {used_type.full for used_type in waiting}
    while waiting:
        limits.look_at_clock()
        used_type = waiting.pop()
        for field in used_type.definition.all_fields if isinstance(used_type.definition, Message) else ():
            for used in map_types(field.type) or (field.type,):
                known = schema.names.type_of(used, used_type.full)
                if known is not None and known.identity != LOCAL and known.full not in seen:
                    seen.add(known.full)
                    waiting.append(_Type(known.definition, known.full, -1))
                    types.setdefault(known.relative, waiting[-1])
    return types


def _nested(types: tuple[TypeDefinition, ...], scope: str) -> Iterator[tuple[str, TypeDefinition, int]]:
    """Yield types with their names and positions among the messages or enums of their scope."""
    counts = {Message: 0, Enum: 0}
    for type_ in types:
        if isinstance(type_, Message) and is_map_entry(type_):
            continue
        name = inside(scope, type_.name)
        yield name, type_, counts[type(type_)]
        counts[type(type_)] += 1
        if isinstance(type_, Message):
            yield from _nested(type_.types, name)


def _members(message: Message) -> dict[int, _Member]:
    members = {field.tag: _Member(field, "") for field in message.fields}
    members.update(
        (group.tag, _Member(Field(group.label, "group", group.name, group.tag), "")) for group in message.groups
    )
    for oneof in message.oneofs:
        members.update((field.tag, _Member(field, oneof.name)) for field in oneof.fields)
    return members


def _type_text(field: Field, scope: str, schema: ProtobufSchema) -> str:
    """Return the type of a field; a named type without its package, as the checker compares it."""
    names: Names = schema.names
    parts = map_types(field.type)
    if parts is None:
        return _name(field.type, scope, names)
    return f"map<{', '.join(_name(part, scope, names) for part in parts)}>"


def _name(used: str, scope: str, names: Names) -> str:
    known = names.type_of(used, scope)
    if known is None:
        return used.lstrip(".")
    return f"{known.relative} (enum)" if known.is_enum else known.relative


def _described(member: _Member) -> str:
    field = member.field
    words = [field.label or "", field.type, f"= {field.tag}", f"in oneof {member.oneof}" if member.oneof else ""]
    return " ".join(word for word in words if word)


def _held(fields: Iterable[Field]) -> str:
    return ", ".join(field.name for field in fields)


def _constants(enum: Enum) -> dict[str, str]:
    names: dict[str, list[str]] = {}
    for constant in enum.constants:
        names.setdefault(str(constant.tag), []).append(constant.name)
    return {tag: ", ".join(held) for tag, held in names.items()}


def _kind(definition: TypeDefinition) -> str:
    return "message" if isinstance(definition, Message) else "enum"


def _file_attributes(file: File) -> dict[str, str]:
    imports = sorted({*file.imports, *file.public_imports, *file.weak_imports})
    services = {
        f"service {service.name}": ", ".join(f"{rpc.name}({rpc.request}) → {rpc.response}" for rpc in service.rpcs)
        for service in file.services
    }
    return {
        "syntax": file.syntax or "proto2",
        **({"imports": ", ".join(imports)} if imports else {}),
        **services,
        **_extends(file),
        **_options(file.options),
    }


def _message_attributes(message: Message) -> dict[str, str]:
    reserved = ", ".join(str(value) for ranges in message.reserved for value in ranges.values)
    extensions = ", ".join(str(value) for ranges in message.extensions for value in ranges.values)
    texts = {"reserved": reserved, "extensions": extensions}
    return {name: text for name, text in texts.items() if text} | _extends(message) | _options(message.options)


def _extends(holder: File | Message) -> dict[str, str]:
    return {
        f"extension {field.name}": f"{extend.name}: {field.type} = {field.tag}"
        for extend in holder.extends
        for field in extend.fields
    }


def _field_attributes(field: Field) -> dict[str, str]:
    names = {} if field.json_name is None else {"json_name": field.json_name}
    return names | _options(field.options)


def _options(options: tuple[Option, ...]) -> dict[str, str]:
    texts: dict[str, str] = {}
    for option in options:
        name = ".".join((f"({option.name})" if option.custom else option.name, *option.path))
        text = _value(option.value)
        texts[name] = f"{texts[name]}, {text}" if name in texts else text
    return texts


def _value(value: Value) -> str:
    if isinstance(value, Scalar):
        return quoted(value.text) if value.kind is Kind.STRING else value.text
    if isinstance(value, ListValue):
        return f"[{', '.join(map(_value, value.items))}]"
    return "{" + ", ".join(f"{name}: {_value(inner)}" for name, inner in value.entries) + "}"
