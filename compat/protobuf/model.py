"""A .proto file as a tree of values.

The tree has the content of the text in the order of the text. Nothing is resolved: type names are as written. It has no
comments and no file-level `reserved` statements, which appear in no output. `at` is the place of a name or statement in
the text, in characters, or -1 if the file came as a descriptor; it does not count in comparisons.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, TypeAlias

__all__ = [
    "LARGEST_CONSTANT",
    "LARGEST_TAG",
    "SCALARS",
    "Constant",
    "Enum",
    "Extend",
    "Extensions",
    "Field",
    "File",
    "Group",
    "Kind",
    "ListValue",
    "MapValue",
    "Message",
    "OneOf",
    "Option",
    "Range",
    "Reserved",
    "Rpc",
    "Scalar",
    "Service",
    "TypeDefinition",
    "Value",
    "bounds",
    "in_maps",
    "is_map_entry",
    "map_types",
]

LARGEST_TAG: Final = 2**29 - 1
LARGEST_CONSTANT: Final = 2**31 - 1  # of an enum
SCALARS: Final = frozenset(
    {
        *("bool", "bytes", "double", "fixed32", "fixed64", "float", "int32", "int64"),
        *("sfixed32", "sfixed64", "sint32", "sint64", "string", "uint32", "uint64"),
    }
)


class Kind(StrEnum):
    """The kind of a scalar option value."""

    STRING = "string"
    NUMBER = "number"
    BOOLEAN = "boolean"
    ENUM = "enum"


@dataclass(frozen=True, slots=True)
class Scalar:
    """An option value without parts; a string without its quotes and escapes."""

    kind: Kind
    text: str


@dataclass(frozen=True, slots=True)
class MapValue:
    """An option value in braces."""

    entries: "tuple[tuple[str, Value], ...]"


@dataclass(frozen=True, slots=True)
class ListValue:
    """An option value in brackets."""

    items: "tuple[Value, ...]"


Value: TypeAlias = Scalar | MapValue | ListValue
Range: TypeAlias = tuple[int, int]  # both ends inclusive


@dataclass(frozen=True, slots=True)
class Option:
    """`(name).path = value`; the name without parentheses."""

    name: str
    value: Value
    custom: bool = False  # whether the name is in parentheses
    path: tuple[str, ...] = ()
    at: int = field(default=-1, compare=False, repr=False)


Options: TypeAlias = tuple[Option, ...]


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a message, a oneof, a group or an extension."""

    label: str | None
    type: str  # as written; `map<key, value>` for a map
    name: str
    tag: int
    options: Options = ()
    default: str | None = None
    json_name: str | None = None
    at: int = field(default=-1, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Group:
    """A proto2 group: a field together with its message."""

    label: str | None
    name: str
    tag: int
    fields: tuple[Field, ...] = ()
    at: int = field(default=-1, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class OneOf:
    """A oneof: fields of which at most one is set."""

    name: str
    fields: tuple[Field, ...] = ()
    groups: tuple[Group, ...] = ()
    options: Options = ()
    at: int = field(default=-1, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Reserved:
    """One `reserved` statement: tags, ranges of tags and names."""

    values: tuple[int | Range | str, ...]
    at: int = field(default=-1, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Extensions:
    """One `extensions` statement: tags and ranges of tags."""

    values: tuple[int | Range, ...]
    options: Options = ()
    at: int = field(default=-1, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant of an enum."""

    name: str
    tag: int
    options: Options = ()
    at: int = field(default=-1, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Enum:
    """An enum."""

    name: str
    constants: tuple[Constant, ...] = ()
    options: Options = ()
    reserved: tuple[Reserved, ...] = ()
    at: int = field(default=-1, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Extend:
    """An `extend` block; as in the reference, groups in it are read and dropped."""

    name: str
    fields: tuple[Field, ...] = ()
    at: int = field(default=-1, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Message:
    """A message."""

    name: str
    fields: tuple[Field, ...] = ()
    oneofs: tuple[OneOf, ...] = ()
    groups: tuple[Group, ...] = ()
    types: "tuple[TypeDefinition, ...]" = ()
    options: Options = ()
    reserved: tuple[Reserved, ...] = ()
    extensions: tuple[Extensions, ...] = ()
    extends: tuple[Extend, ...] = ()
    at: int = field(default=-1, compare=False, repr=False)

    @property
    def all_fields(self) -> Iterator[Field]:
        """The fields of the message and of its oneofs, without those of groups."""
        yield from self.fields
        for oneof in self.oneofs:
            yield from oneof.fields

    @property
    def messages(self) -> "Iterator[Message]":
        """The messages defined inside this one."""
        return (nested for nested in self.types if isinstance(nested, Message))

    @property
    def enums(self) -> Iterator[Enum]:
        """The enums defined inside this one."""
        return (nested for nested in self.types if isinstance(nested, Enum))


TypeDefinition: TypeAlias = Message | Enum


@dataclass(frozen=True, slots=True)
class Rpc:
    """A method of a service."""

    name: str
    request: str
    response: str
    request_streams: bool = False
    response_streams: bool = False
    options: Options = ()
    at: int = field(default=-1, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Service:
    """A service."""

    name: str
    rpcs: tuple[Rpc, ...] = ()
    options: Options = ()
    at: int = field(default=-1, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class File:
    """A whole .proto file."""

    package: str | None = None
    syntax: str | None = None  # proto2, proto3, or None if the file does not say
    imports: tuple[str, ...] = ()
    public_imports: tuple[str, ...] = ()
    weak_imports: tuple[str, ...] = ()
    types: tuple[TypeDefinition, ...] = ()
    services: tuple[Service, ...] = ()
    extends: tuple[Extend, ...] = ()
    options: Options = ()
    imported_at: tuple[int, ...] = field(default=(), compare=False, repr=False)  # imports, then public ones
    second_package_at: int = field(default=-1, compare=False, repr=False)

    @property
    def messages(self) -> Iterator[Message]:
        """The messages at the top of the file."""
        return (defined for defined in self.types if isinstance(defined, Message))

    @property
    def enums(self) -> Iterator[Enum]:
        """The enums at the top of the file."""
        return (defined for defined in self.types if isinstance(defined, Enum))


def bounds(tags: int | Range) -> Range:
    """Return the first and the last tag of a range or of a single tag."""
    return (tags, tags) if isinstance(tags, int) else tags


def in_maps(path: Sequence[str], value: Value) -> Value:
    """Return a value inside a map for each part of a path."""
    for part in reversed(path):
        value = MapValue(((part, value),))
    return value


def map_types(type_name: str) -> tuple[str, str] | None:
    """Return the key type and value type of a map type, or None for another type."""
    if not type_name.startswith("map<"):
        return None
    key, _, value = type_name[4:-1].partition(", ")
    return key, value


def is_map_entry(message: Message) -> bool:
    """Return whether a message is the entry of a map (`option map_entry = true`)."""
    return any(
        option.name == "map_entry" and isinstance(option.value, Scalar) and option.value.text == "true"
        for option in message.options
    )
