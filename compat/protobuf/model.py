"""A .proto file as a tree of values.

The tree holds what the text says, in the order in which it says it, and nothing that would have to be looked up: type
names stand as written. Comments are gone, and so are file-level `reserved` statements, which no form of output shows.
"""

from collections.abc import Iterator
from dataclasses import dataclass
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
    """What a value of an option looks like."""

    STRING = "string"
    NUMBER = "number"
    BOOLEAN = "boolean"
    ENUM = "enum"


@dataclass(frozen=True, slots=True)
class Scalar:
    """A value of an option that has no parts; a string without its quotes and escapes."""

    kind: Kind
    text: str


@dataclass(frozen=True, slots=True)
class MapValue:
    """A value of an option in braces."""

    entries: "tuple[tuple[str, Value], ...]"


@dataclass(frozen=True, slots=True)
class ListValue:
    """A value of an option in brackets."""

    items: "tuple[Value, ...]"


Value: TypeAlias = Scalar | MapValue | ListValue
Range: TypeAlias = tuple[int, int]  # both ends belong to it


@dataclass(frozen=True, slots=True)
class Option:
    """`(name).path = value`; the name without parentheses."""

    name: str
    value: Value
    custom: bool = False  # in parentheses
    path: tuple[str, ...] = ()


Options: TypeAlias = tuple[Option, ...]


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a message, a oneof, a group or an extension."""

    label: str | None
    type: str  # as written; of a map `map<key, value>`
    name: str
    tag: int
    options: Options = ()
    default: str | None = None
    json_name: str | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """A field and its message in one, in the way of proto2."""

    label: str | None
    name: str
    tag: int
    fields: tuple[Field, ...] = ()


@dataclass(frozen=True, slots=True)
class OneOf:
    """Fields of which at most one is set."""

    name: str
    fields: tuple[Field, ...] = ()
    groups: tuple[Group, ...] = ()
    options: Options = ()


@dataclass(frozen=True, slots=True)
class Reserved:
    """One `reserved` statement: tags, ranges of tags and names."""

    values: tuple[int | Range | str, ...]


@dataclass(frozen=True, slots=True)
class Extensions:
    """One `extensions` statement: tags and ranges of tags."""

    values: tuple[int | Range, ...]
    options: Options = ()


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant of an enum."""

    name: str
    tag: int
    options: Options = ()


@dataclass(frozen=True, slots=True)
class Enum:
    """An enum."""

    name: str
    constants: tuple[Constant, ...] = ()
    options: Options = ()
    reserved: tuple[Reserved, ...] = ()


@dataclass(frozen=True, slots=True)
class Extend:
    """An `extend` block; groups in it are read and forgotten, as by the reference."""

    name: str
    fields: tuple[Field, ...] = ()


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


@dataclass(frozen=True, slots=True)
class Service:
    """A service."""

    name: str
    rpcs: tuple[Rpc, ...] = ()
    options: Options = ()


@dataclass(frozen=True, slots=True)
class File:
    """A whole .proto file."""

    package: str | None = None
    syntax: str | None = None  # proto2, proto3, or None when the file does not say
    imports: tuple[str, ...] = ()
    public_imports: tuple[str, ...] = ()
    weak_imports: tuple[str, ...] = ()
    types: tuple[TypeDefinition, ...] = ()
    services: tuple[Service, ...] = ()
    extends: tuple[Extend, ...] = ()
    options: Options = ()

    @property
    def messages(self) -> Iterator[Message]:
        """The messages at the top of the file."""
        return (defined for defined in self.types if isinstance(defined, Message))

    @property
    def enums(self) -> Iterator[Enum]:
        """The enums at the top of the file."""
        return (defined for defined in self.types if isinstance(defined, Enum))


def map_types(type_name: str) -> tuple[str, str] | None:
    """The types of key and value of a map; None for what is no map."""
    if not type_name.startswith("map<"):
        return None
    key, _, value = type_name[4:-1].partition(", ")
    return key, value


def is_map_entry(message: Message) -> bool:
    """Whether a message is the written-out entry of a map."""
    return any(
        option.name == "map_entry" and isinstance(option.value, Scalar) and option.value.text == "true"
        for option in message.options
    )
