"""The Avro schema model: names, and frozen nodes in a tree.

A use of a named type is a `Reference`, so the tree has no cycles even if the schema is recursive. The table of named
types (`AvroSchema.names`) maps a reference to its definition.

A new schema must use the characters of the specification in its names (ASCII); a stored schema may use any name. As in
Avro Java, only the last part of a type's alias is checked, and the aliases of fields are not checked at all.

Nodes compare by identity. A field that means the same by itself may be shared by several records and schemas
(`known_records.py`); any other occurrence of a type in the text is a separate node.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Final, NamedTuple, TypeAlias, TypeVar, dataclass_transform

from strata.compat.schema import ParsedSchema, SchemaFormat

__all__ = [
    "BARE",
    "MISSING",
    "NO_PROPERTIES",
    "PAIRS",
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
    "is_full_name",
    "make_name",
    "name_fault",
    "printed_name",
    "qualify",
    "resolve",
]

Json: TypeAlias = Any  # None, bool, int, float, str, list or dict, as json.loads returns them
Properties: TypeAlias = Mapping[str, Json]  # custom attributes, which Avro itself does not define, in input order

PRIMITIVES: Final = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FULL_NAME: Final = re.compile(rf"{_NAME.pattern}(?:\.{_NAME.pattern})*")
_TYPE_WORDS: Final = PRIMITIVES | {"record", "enum", "array", "map", "union", "fixed"}


# --- names


class Name(NamedTuple):
    """A name and its namespace; an empty string is the null namespace."""

    simple: str
    namespace: str

    @property
    def full(self) -> str:
        """The full name, by which references and aliases are matched."""
        return f"{self.namespace}.{self.simple}" if self.namespace else self.simple


def make_name(text: str, namespace: str) -> Name:
    """Return the Name for a text; the namespace applies only to a text without dots."""
    space, dot, simple = text.rpartition(".")
    return Name(simple, space) if dot else Name(text, namespace)


def qualify(text: str, namespace: str) -> str:
    """Return the full name that a reference means inside a namespace."""
    return f"{namespace}.{text}" if namespace and "." not in text else text


def printed_name(name: Name, namespace: str) -> str:
    """Return a reference to this name inside a namespace, as short as in Avro Java.

    A name that is also a kind of type is printed in full, because its short form would be read as that kind.
    """
    if not name.namespace:
        return name.simple
    return name.simple if name.namespace == namespace and name.simple not in _TYPE_WORDS else name.full


def is_full_name(text: str) -> bool:
    """Return whether each part of a full name obeys the specification."""
    return _FULL_NAME.fullmatch(text) is not None


def name_fault(text: str) -> str | None:
    """Return why a name violates the specification, or None if it is valid."""
    if _NAME.fullmatch(text):
        return None
    if not text:
        return "it is empty"
    return "it must start with a letter (A-Z, a-z) or _ and go on with letters, digits and _"


# --- types


_T = TypeVar("_T")


@dataclass_transform(eq_default=False, frozen_default=True, field_specifiers=(field,))
def _node(cls: type[_T]) -> type[_T]:
    """Make a class a dataclass that type checkers see as frozen; to make a frozen object takes thrice as long."""
    return dataclass(slots=True, eq=False, weakref_slot=True)(cls)


class Missing:
    """The type of `MISSING`, which marks a field without a default; a default may be null."""


MISSING: Final = Missing()


@_node
class PrimitiveType:
    """One of the eight primitive types."""

    kind: str
    properties: Properties


@_node
class ArrayType:
    """An array of items."""

    kind: ClassVar[str] = "array"
    items: "Node"
    properties: Properties


@_node
class MapType:
    """A map from strings to values."""

    kind: ClassVar[str] = "map"
    values: "Node"
    properties: Properties


@_node
class UnionType:
    """A union of several types; in Avro a union has no attributes."""

    kind: ClassVar[str] = "union"
    branches: tuple["Node", ...]


@_node
class EnumType:
    """A named list of symbols; `default` replaces a symbol that the reader does not know."""

    kind: ClassVar[str] = "enum"
    name: Name
    doc: str | None
    aliases: tuple[Name, ...]
    symbols: tuple[str, ...]
    default: str | None
    properties: Properties


@_node
class FixedType:
    """A named number of bytes."""

    kind: ClassVar[str] = "fixed"
    name: Name
    doc: str | None
    aliases: tuple[Name, ...]
    size: int
    properties: Properties


NO_PROPERTIES: Final[Properties] = {}
BARE: Final = {kind: PrimitiveType(kind, NO_PROPERTIES) for kind in PRIMITIVES}
"""The primitive types without custom attributes, by name."""
PAIRS: Final = {(a, b): UnionType((BARE[a], BARE[b])) for a in PRIMITIVES for b in PRIMITIVES if a != b}
"""The unions of two of them: most unions make one such type optional."""


@_node
class Field:
    """A field of a record; its aliases are simple names.

    A field that uses no names besides those that it defines is *settled*: `text` is its canonical text, and `types` are
    the types that it defines. It means the same wherever its JSON is read, if it defines types in a record of the same
    namespace only.
    """

    name: str
    type: "Node"
    doc: str | None
    default: Json | Missing
    order: str
    aliases: tuple[str, ...]
    properties: Properties
    text: str | None = None
    types: tuple["NamedType", ...] = ()

    def settle(self, text: str, types: tuple["NamedType", ...]) -> None:
        """Note what a new field means by itself; the parser does so before anything else sees the field."""
        self.text, self.types = text, types  # type: ignore[misc]


@_node
class RecordType:
    """A named list of fields; an error is a record with `is_error`.

    Its fields are indexed when an index is first asked for: a check asks the writer only.
    """

    kind: ClassVar[str] = "record"
    name: Name
    doc: str | None
    aliases: tuple[Name, ...]
    fields: tuple[Field, ...]
    is_error: bool
    properties: Properties
    _by_name: Mapping[str, Field] | None = field(default=None, init=False)
    _plain: frozenset[str] | None = field(default=None, init=False)
    _settled: frozenset[str] | None = field(default=None, init=False)

    @property
    def by_name(self) -> Mapping[str, Field]:
        """The fields by name."""
        index = self._by_name
        if index is None:
            index = {field.name: field for field in self.fields}
            self._by_name = index  # type: ignore[misc]
        return index

    @property
    def plain(self) -> frozenset[str]:
        """The texts of the settled fields without names in their type and without aliases."""
        texts = self._plain
        if texts is None:
            texts = frozenset([f.text for f in self.fields if f.text is not None and not f.types and not f.aliases])
            self._plain = texts  # type: ignore[misc]
        return texts

    @property
    def settled(self) -> frozenset[str]:
        """The same, and the texts of those with names in their type if no field in their types has an alias."""
        texts = self._settled
        if texts is None:
            named = [field for field in self.fields if field.types and not field.aliases]
            more = [field.text for field in named if not any(map(_has_field_aliases, field.types))]
            texts = self.plain.union(filter(None, more)) if more else self.plain
            self._settled = texts  # type: ignore[misc]
        return texts


def _has_field_aliases(node: "NamedType") -> bool:
    return isinstance(node, RecordType) and any(field.aliases for field in node.fields)


@_node
class Reference:
    """A use of a named type."""

    kind: ClassVar[str] = "reference"
    full: str


NamedType: TypeAlias = EnumType | FixedType | RecordType
Node: TypeAlias = PrimitiveType | ArrayType | MapType | UnionType | EnumType | FixedType | RecordType | Reference
Names: TypeAlias = Mapping[str, NamedType]


@dataclass(frozen=True, eq=False, init=False)
class AvroSchema(ParsedSchema):
    """A parsed Avro schema: its tree, and the named types to which references lead."""

    root: Node = field(repr=False)
    names: Names = field(repr=False)
    external: frozenset[str]  # types whose definitions are referenced schemas; printed as names

    def __init__(
        self,
        format: SchemaFormat,  # noqa: A002 - the field of each `ParsedSchema`
        canonical: str,
        root: Node,
        names: Names,
        external: frozenset[str] = frozenset(),
    ) -> None:
        # What `dataclass` writes for a frozen class takes thrice as long.
        own = self.__dict__
        own["format"], own["canonical"], own["root"], own["names"] = format, canonical, root, names
        own["external"] = external

    @property
    def is_read_alike(self) -> bool:
        """Whether all fields of the record at the root are settled, so that its text defines types where it did."""
        root = self.root
        return isinstance(root, RecordType) and None not in [field.text for field in root.fields]

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
