"""The Avro schema model: frozen nodes in a tree.

A use of a named type is a `Reference`, so the tree has no cycles even if the schema is recursive. The table of named
types (`AvroSchema.names`) maps a reference to its definition.

Nodes compare by identity. A field whose type has no names may be shared by several records and schemas
(`known_fields.py`); any other occurrence of a type in the text is a separate node.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Final, TypeAlias

from strata.compat.avro.names import PRIMITIVES, Name
from strata.compat.schema import ParsedSchema

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

Json: TypeAlias = Any  # None, bool, int, float, str, list or dict, as json.loads returns them
Properties: TypeAlias = Mapping[str, Json]  # custom attributes, which Avro itself does not define, in input order


class Missing:
    """The type of `MISSING`, which marks a field without a default; a default may be null."""


MISSING: Final = Missing()


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
    """A union of several types; in Avro a union has no attributes."""

    kind: ClassVar[str] = "union"
    branches: tuple["Node", ...]


@dataclass(frozen=True, slots=True, eq=False)
class EnumType:
    """A named list of symbols; `default` replaces a symbol that the reader does not know."""

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
    """A field of a record; its aliases are simple names.

    `text` is the canonical text of a field whose type has no names, and so means the same in every schema.
    """

    name: str
    type: "Node"
    doc: str | None
    default: Json | Missing
    order: str
    aliases: tuple[str, ...]
    properties: Properties
    text: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class RecordType:
    """A named list of fields; an error is a record with `is_error`.

    `plain` holds the texts of the fields that have no names in their type and no aliases.
    """

    kind: ClassVar[str] = "record"
    name: Name
    doc: str | None
    aliases: tuple[Name, ...]
    fields: tuple[Field, ...]
    is_error: bool
    properties: Properties
    by_name: Mapping[str, Field] = field(init=False)
    plain: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        """Index the fields."""
        plain = frozenset([field.text for field in self.fields if field.text is not None and not field.aliases])
        object.__setattr__(self, "by_name", {field.name: field for field in self.fields})
        object.__setattr__(self, "plain", plain)


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
    """A parsed Avro schema: its tree, and the named types to which references lead."""

    root: Node = field(repr=False)
    names: Names = field(repr=False)
    external: frozenset[str] = frozenset()  # types whose definitions are referenced schemas; printed as names

    @cached_property
    def outline(self) -> int:
        """A number made of the names at the root."""
        root = resolve(self.root, self.names)
        return hash((root.name.full, *root.by_name)) if isinstance(root, RecordType) else 0


def resolve(node: Node, names: Names) -> Node:
    """Return the definition to which a reference leads; return any other node unchanged.

    Raises:
        KeyError: The reference's name is not in `names`.
    """
    return names[node.full] if isinstance(node, Reference) else node
