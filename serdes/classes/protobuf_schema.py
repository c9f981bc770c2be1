"""The Protobuf schema of a class, as source text.

    message Seat {
      int32 row = 1;
      Cabin cabin = 2;
      optional string note = 3;
    }

A field that the class does not number follows the field before it, so new fields go to the end of a class, or have a
number (`Field(number=7)`). proto3 does not tell a field that is not there from its zero value, so a field is `optional`
if it may be None or has a default other than zero.

Rules of this file: shapes in, texts and layouts out; neither messages nor the library of Protobuf.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from strata.serdes.classes.markers import Field
from strata.serdes.classes.shapes import MISSING, Choice, Items, Member, Object, Scalar, Shape, Symbols, Values
from strata.serdes.errors import SchemaError

__all__ = ["Branch", "Layout", "Slot", "layout_of", "protobuf_text", "value_names"]

_SCALARS: Final[Mapping[str, str]] = {
    "bool": "bool",
    "int": "int64",
    "int32": "int32",
    "float": "double",
    "float32": "float",
    "str": "string",
    "bytes": "bytes",
    "fixed": "bytes",
    "local": "string",
    "local-millis": "string",
    "uuid": "string",
    "datetime": "google.protobuf.Timestamp",
    "datetime-millis": "google.protobuf.Timestamp",
    "date": "google.type.Date",
    "time": "google.type.TimeOfDay",
    "time-millis": "google.type.TimeOfDay",
    "decimal": "confluent.type.Decimal",
}
_FILES: Final[Mapping[str, str]] = {
    "google.protobuf.Timestamp": "google/protobuf/timestamp.proto",
    "google.type.Date": "google/type/date.proto",
    "google.type.TimeOfDay": "google/type/timeofday.proto",
    "confluent.type.Decimal": "confluent/type/decimal.proto",
}
_WIRES: Final = {
    "int": ("int32", "uint32", "sint32", "fixed32", "sfixed32", "int64", "uint64", "sint64", "fixed64", "sfixed64"),
    "float": ("float", "double"),
}
_NUMBERS: Final = range(1, 2**29)
_RESERVED: Final = range(19_000, 20_000)
_UNSPECIFIED: Final = "UNSPECIFIED"


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch of a union, or the only type of a field.

    Attributes:
        name: the field's name.
        number: its number.
        shape: its type, without None.
        doc: its documentation.
    """

    name: str
    number: int
    shape: Shape
    doc: str = ""


@dataclass(frozen=True, slots=True)
class Slot:
    """A member of a class as fields of a message: one, or the branches of a `oneof`.

    Attributes:
        member: the member.
        branches: the fields.
        is_union: whether they are a `oneof` of the member's name.
        is_nullable: whether None is a value of it.
        is_optional: whether the field says if it is there.
    """

    member: Member
    branches: tuple[Branch, ...]
    is_union: bool = False
    is_nullable: bool = False
    is_optional: bool = False


Layout = tuple[Slot, ...]


def protobuf_text(shape: Shape) -> str:
    """Return the schema of a shape; the message of the shape comes first.

    Raises:
        SchemaError: If Protobuf has no type for a part.
    """
    if not isinstance(shape, Object):
        raise SchemaError("a Protobuf schema needs a class with fields")
    return _File(shape).text()


def layout_of(shape: Object) -> Layout:
    """Return the fields of a class's message.

    Raises:
        SchemaError: If two fields share a name or number, or Protobuf has no type for one.
    """
    slots, next_number = [], 1
    for member in shape.members:
        slot = _slot(shape, member, member.number or next_number)
        next_number = max(branch.number for branch in slot.branches) + 1
        slots.append(slot)
    _check_unique(shape, [branch for slot in slots for branch in slot.branches])
    return tuple(slots)


def _slot(shape: Object, member: Member, number: int) -> Slot:
    where = f"{_simple(shape.name)}.{member.name}"
    inner = member.shape
    pairs = list(zip(inner.branches, inner.fields, strict=True)) if isinstance(inner, Choice) else [(inner, Field())]
    pairs = [pair for pair in pairs if not _is_null(pair[0])] or pairs
    branches = [branch for branch, _ in pairs]
    is_nullable = isinstance(inner, Choice) and len(branches) < len(inner.branches)
    may_lack = shape.is_dict and member.attribute not in shape.required
    for branch in branches:
        _check_branch(branch, where, is_alone=len(branches) == 1 and not is_nullable and not may_lack)
    if len(branches) == 1:
        is_optional = is_nullable or may_lack or not _is_zero(branches[0], member.default)
        own = Branch(member.name, number, branches[0], member.doc)
        return Slot(member, (own,), is_nullable=is_nullable, is_optional=is_optional)
    fields = []
    for branch, field in pairs:
        number = field.number or number
        fields.append(Branch(field.name or f"{member.name}_{_suffix(branch)}", number, branch, field.doc))
        number += 1
    return Slot(member, tuple(fields), is_union=True, is_nullable=is_nullable or may_lack, is_optional=True)


def _check_branch(shape: Shape, where: str, *, is_alone: bool) -> None:
    if isinstance(shape, Items | Values):
        if not is_alone:
            raise SchemaError(f"{where}: Protobuf cannot tell an empty list or map from None; use a class that has it")
        inner = shape.item if isinstance(shape, Items) else shape.value
        if not isinstance(inner, Symbols | Object) and not (isinstance(inner, Scalar) and inner.kind != "null"):
            raise SchemaError(f"{where}: expected plain types or classes as items of lists and maps; use a class")
        _check_branch(inner, where, is_alone=True)
    if isinstance(shape, Scalar):
        if shape.kind == "null":
            raise SchemaError(f"{where}: None has no type in Protobuf")
        if shape.wire and shape.wire not in _WIRES.get(shape.kind, ()):
            raise SchemaError(f"{where}: {shape.wire} is not a type for {shape.kind}")


def _check_unique(shape: Object, branches: Sequence[Branch]) -> None:
    names: dict[str, int] = {}
    numbers: dict[int, str] = {}
    for branch in branches:
        where = f"{_simple(shape.name)}.{branch.name}"
        if branch.number not in _NUMBERS or branch.number in _RESERVED:
            raise SchemaError(f"{where}: {branch.number} is not a field number")
        if branch.number in numbers:
            raise SchemaError(f"{where}: the number {branch.number} is that of {numbers[branch.number]}")
        if branch.name in names:
            raise SchemaError(f"{where}: two fields have this name")
        if re.fullmatch(r"[A-Za-z_]\w*", branch.name, re.ASCII) is None:
            raise SchemaError(f"{where}: not a name of Protobuf; give another by Field(name=…)")
        names[branch.name], numbers[branch.number] = branch.number, branch.name


def _is_null(shape: Shape) -> bool:
    return isinstance(shape, Scalar) and shape.kind == "null"


def _is_zero(shape: Shape, default: object) -> bool:
    """Return whether a default is what Protobuf reads where a field is not there; so it is for no default."""
    match shape:
        case _ if default is MISSING:
            return True
        case Items() | Values():
            return True  # a repeated field has no other
        case Symbols():
            return (0, _symbol(shape, default)) in value_names(shape).values()
        case Scalar():
            return not default and type(default) in (bool, int, float, str, bytes) and str(default) != "-0.0"
    return False


def _symbol(shape: Symbols, value: object) -> str:
    if isinstance(value, Enum):
        return str(value.value if shape.by_value else value.name)
    return str(value)


def _suffix(shape: Shape) -> str:
    if isinstance(shape, Object | Symbols):
        return _snake(_simple(shape.name))
    return shape.kind.replace("-", "_") if isinstance(shape, Scalar) else "list"


def _simple(name: str) -> str:
    return name.rpartition(".")[2]


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def value_names(shape: Symbols) -> dict[str, tuple[int, str]]:
    """Return the number of each value of an enum's Protobuf type, and the symbol, by the value's name.

    The first one has the number 0, as proto3 requires; where no symbol has it, its symbol is empty.
    """
    prefix = f"{_snake(_simple(shape.name)).upper()}_" if shape.prefix is None else shape.prefix
    numbers: Sequence[int] = shape.numbers
    if not numbers:
        first = 0 if shape.symbols[0] == _UNSPECIFIED else 1
        numbers = range(first, first + len(shape.symbols))
    pairs = sorted(zip(numbers, shape.symbols, strict=True), key=lambda pair: pair[0] != 0)
    named = {f"{prefix}{symbol}": (number, symbol) for number, symbol in pairs}
    return named if 0 in numbers else {f"{prefix}{_UNSPECIFIED}": (0, ""), **named}


class _File:
    """Writes the types of a class: a type whose name continues that of a message is nested in it."""

    def __init__(self, root: Object) -> None:
        self._package = root.name.rpartition(".")[0]
        self._types: dict[str, Object | Symbols] = {}
        self._layouts: dict[str, Layout] = {}
        self._imports: set[str] = set()
        self._collect(root)

    def text(self) -> str:
        body = [self._type(path, "") for path in self._types if "." not in path]
        package = [f"package {self._package};"] if self._package else []
        imports = ["\n".join(f'import "{name}";' for name in sorted(self._imports))] if self._imports else []
        return "\n\n".join(['syntax = "proto3";', *package, *imports, *body]) + "\n"

    def _collect(self, shape: Shape) -> None:
        match shape:
            case Scalar():
                self._imports |= {_FILES[name] for name in [_SCALARS[shape.kind]] if name in _FILES}
            case Items():
                self._collect(shape.item)
            case Values():
                self._collect(shape.value)
            case Symbols() if self._is_new(shape):
                pass
            case Object() if self._is_new(shape):
                path = self._path(shape.name)
                self._layouts[path] = layout_of(shape)
                for slot in self._layouts[path]:
                    for branch in slot.branches:
                        self._collect(branch.shape)

    def _is_new(self, shape: Object | Symbols) -> bool:
        path = self._path(shape.name)
        known = self._types.setdefault(path, shape)
        is_literal = isinstance(known, Symbols) and isinstance(shape, Symbols) and known.cls is shape.cls is None
        if known is not shape and not is_literal:
            raise SchemaError(f"two types have the name {path}; give one another by @named")
        return known is shape and path not in self._layouts

    def _path(self, name: str) -> str:
        """Return the place of a type in the file: its simple name, after that of the message that it is nested in."""
        own = name.removeprefix(f"{self._package}.") if self._package else name
        outer, _, simple = own.rpartition(".")
        return own if isinstance(self._types.get(outer), Object) else simple

    def _type(self, path: str, indent: str) -> str:
        shape = self._types[path]
        nested = [name for name in self._types if name.rpartition(".")[0] == path]
        inner = f"{indent}  "
        parts = [self._type(name, inner) for name in nested]
        if isinstance(shape, Symbols):
            kind, lines = "enum", [f"{inner}{name} = {number};" for name, (number, _) in value_names(shape).items()]
        else:
            kind, lines = "message", [line for slot in self._layouts[path] for line in self._slot(slot, inner)]
        body = "\n".join([*parts, *lines])
        head = f"{indent}{kind} {_simple(path)} {{"
        return "\n".join([*_comment(shape.doc, indent), f"{head}\n{body}\n{indent}}}" if body else f"{head}}}"])

    def _slot(self, slot: Slot, indent: str) -> Iterator[str]:
        if not slot.is_union:
            yield from self._field(slot.branches[0], indent, is_optional=slot.is_optional)
            return
        yield from _comment(slot.member.doc, indent)
        yield f"{indent}oneof {slot.member.name} {{"
        for branch in slot.branches:
            yield from self._field(branch, f"{indent}  ", is_optional=False)
        yield f"{indent}}}"

    def _field(self, branch: Branch, indent: str, *, is_optional: bool) -> Iterator[str]:
        yield from _comment(branch.doc, indent)
        type_ = self._name(branch.shape)
        is_message = isinstance(branch.shape, Object) or type_ in _FILES
        label = "optional " if is_optional and not is_message and not isinstance(branch.shape, Items | Values) else ""
        yield f"{indent}{label}{type_} {branch.name} = {branch.number};"

    def _name(self, shape: Shape) -> str:
        match shape:
            case Scalar():
                return shape.wire or _SCALARS[shape.kind]
            case Items():
                return f"repeated {self._name(shape.item)}"
            case Values():
                return f"map<string, {self._name(shape.value)}>"
            case Symbols() | Object():
                path = self._path(shape.name)
                if not any("." in type_ for type_ in self._types):
                    return path
                return f".{self._package}.{path}" if self._package else f".{path}"
        raise AssertionError(shape)


def _comment(doc: str, indent: str) -> list[str]:
    return [f"{indent}// {line}".rstrip() for line in doc.splitlines()]
