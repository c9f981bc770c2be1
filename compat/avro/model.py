"""The Avro schema model: frozen nodes in a tree.

A use of a named type is a `Reference`, so the tree has no cycles however recursive the schema is; the table of named
types beside it (`AvroSchema.names`) leads from a reference to its definition.

Nodes compare by identity, and each occurrence in the text is a node of its own: the rules remember pairs of nodes,
and what they remember includes the place where a pair was first met.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, NamedTuple, TypeAlias

from compat.schema import ParsedSchema

__all__ = [
    "MISSING",
    "PRIMITIVES",
    "ArrayType",
    "AvroSchema",
    "EnumType",
    "Field",
    "FixedType",
    "Json",
    "MapType",
    "Missing",
    "Name",
    "NamedType",
    "Names",
    "Node",
    "PrimitiveType",
    "Properties",
    "RecordType",
    "Reference",
    "UnionType",
    "resolve",
]

Json: TypeAlias = Any  # None, bool, int, float, str, list or dict, as json.loads gives them
Properties: TypeAlias = Mapping[str, Json]  # attributes that Avro itself gives no meaning to, in input order

PRIMITIVES: Final = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})


class Missing:
    """The type of `MISSING`: a field without a default, which is not a field whose default is null."""


MISSING: Final = Missing()


class Name(NamedTuple):
    """A name and its namespace; the empty namespace is the null namespace."""

    simple: str
    namespace: str

    @property
    def full(self) -> str:
        """The name that references and aliases are matched by."""
        return f"{self.namespace}.{self.simple}" if self.namespace else self.simple


@dataclass(frozen=True, slots=True, eq=False)
class PrimitiveType:
    """One of the eight primitive types."""

    kind: str
    properties: Properties


@dataclass(frozen=True, slots=True, eq=False)
class ArrayType:
    """An array of items."""

    kind: ClassVar[str] = "array"
    items: "Node"
    properties: Properties


@dataclass(frozen=True, slots=True, eq=False)
class MapType:
    """A map from strings to values."""

    kind: ClassVar[str] = "map"
    values: "Node"
    properties: Properties


@dataclass(frozen=True, slots=True, eq=False)
class UnionType:
    """One of several types; Avro gives a union no attributes."""

    kind: ClassVar[str] = "union"
    branches: tuple["Node", ...]


@dataclass(frozen=True, slots=True, eq=False)
class EnumType:
    """A named list of symbols; `default` is the symbol that stands in for one the reader does not know."""

    kind: ClassVar[str] = "enum"
    name: Name
    doc: str | None
    aliases: tuple[Name, ...]
    symbols: tuple[str, ...]
    default: str | None
    properties: Properties


@dataclass(frozen=True, slots=True, eq=False)
class FixedType:
    """A named number of bytes."""

    kind: ClassVar[str] = "fixed"
    name: Name
    doc: str | None
    aliases: tuple[Name, ...]
    size: int
    properties: Properties


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """A field of a record; its aliases are bare names."""

    name: str
    type: "Node"
    doc: str | None
    default: Json | Missing
    order: str
    aliases: tuple[str, ...]
    properties: Properties


@dataclass(frozen=True, slots=True, eq=False)
class RecordType:
    """A named list of fields; an error is a record that says so."""

    kind: ClassVar[str] = "record"
    name: Name
    doc: str | None
    aliases: tuple[Name, ...]
    fields: tuple[Field, ...]
    is_error: bool
    properties: Properties


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """A use of a named type."""

    kind: ClassVar[str] = "reference"
    full: str


NamedType: TypeAlias = EnumType | FixedType | RecordType
Node: TypeAlias = PrimitiveType | ArrayType | MapType | UnionType | EnumType | FixedType | RecordType | Reference
Names: TypeAlias = Mapping[str, NamedType]


@dataclass(frozen=True, eq=False)
class AvroSchema(ParsedSchema):
    """A parsed Avro schema: its tree, and the named types that references lead to; equal by its canonical text."""

    root: Node = field(repr=False)
    names: Names = field(repr=False)
    external: frozenset[str] = frozenset()  # what references are schemas of: printed as names, defined elsewhere


def resolve(node: Node, names: Names) -> Node:
    """Follow a reference to its definition; every other node is its own."""
    return names[node.full] if isinstance(node, Reference) else node
