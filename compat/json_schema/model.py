"""The JSON Schema model: the kinds of schema that the reference distinguishes.

A JSON object with keywords of several kinds becomes a synthetic `allOf`, one with several types a synthetic `anyOf`.
Nodes compare by identity: a schema that is reached twice through `$ref` is one node.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import TypeAlias

from strata.compat.json_schema.documents import Documents
from strata.compat.json_schema.json_text import Json
from strata.compat.schema import ParsedSchema

__all__ = [
    "ArrayNode",
    "BooleanNode",
    "BoundedNode",
    "CombinedNode",
    "ConditionalNode",
    "ConstNode",
    "ContentNode",
    "Criterion",
    "EmptyNode",
    "EnumNode",
    "FalseNode",
    "JsonSchema",
    "Node",
    "NotNode",
    "NullNode",
    "Number",
    "NumberNode",
    "ObjectNode",
    "ReferenceNode",
    "Rest",
    "StringNode",
    "follow",
]

Number: TypeAlias = int | Decimal


@dataclass(eq=False, slots=True, kw_only=True)
class Node:
    """The attributes of every kind of schema."""

    id: str | None = None
    title: str | None = None
    description: str | None = None
    default: str | None = None  # as canonical text
    connect_type: Json = None
    key: str = ""  # for a branch: equal for branches with equal content
    written: Mapping[str, Json] = field(default_factory=dict)  # the object, unless this is a part of what it means
    implied: bool = False  # whether keywords, and no `type`, say which kind of schema this is


@dataclass(eq=False, slots=True, kw_only=True)
class EmptyNode(Node):
    """A schema that accepts everything."""


@dataclass(eq=False, slots=True, kw_only=True)
class FalseNode(Node):
    """A schema that accepts nothing."""


@dataclass(eq=False, slots=True, kw_only=True)
class BooleanNode(Node):
    """`true` and `false`."""


@dataclass(eq=False, slots=True, kw_only=True)
class NullNode(Node):
    """`null`."""


@dataclass(eq=False, slots=True, kw_only=True)
class ConditionalNode(Node):
    """`if`, `then` and `else`, whose contents are never compared."""


@dataclass(eq=False, slots=True, kw_only=True)
class BoundedNode(Node):
    """The attributes of schemas whose values or sizes have limits."""

    bounds: dict[str, Number] = field(default_factory=dict)  # by keyword


@dataclass(eq=False, slots=True, kw_only=True)
class StringNode(BoundedNode):
    """Strings, or only keywords for strings."""

    pattern: str | None = None


@dataclass(eq=False, slots=True, kw_only=True)
class NumberNode(BoundedNode):
    """Numbers, or only keywords for numbers."""

    integer: bool = False
    multiple_of: Number | None = None


Rest: TypeAlias = bool | Node  # which other properties or items a schema allows


@dataclass(eq=False, slots=True, kw_only=True)
class ContentNode(BoundedNode):
    """The attributes of objects and arrays: what they allow beyond the named properties or items."""

    additional: Rest = True
    patterns: dict[str, Node] = field(default_factory=dict)  # for names of properties
    unevaluated: Rest = True


@dataclass(eq=False, slots=True, kw_only=True)
class ObjectNode(ContentNode):
    """Objects, or only keywords for objects."""

    properties: dict[str, Node] = field(default_factory=dict)
    required: frozenset[str] = frozenset()
    property_dependencies: dict[str, frozenset[str]] = field(default_factory=dict)
    schema_dependencies: dict[str, Node] = field(default_factory=dict)


@dataclass(eq=False, slots=True, kw_only=True)
class ArrayNode(ContentNode):
    """Arrays, or only keywords for arrays."""

    unique: bool = False
    items: Node | None = None  # the schema of every item
    tuple_items: list[Node] | None = None


@dataclass(eq=False, slots=True, kw_only=True)
class EnumNode(Node):
    """A set of values, as canonical texts."""

    values: frozenset[str]


@dataclass(eq=False, slots=True, kw_only=True)
class ConstNode(Node):
    """One value, as canonical text."""

    value: str


@dataclass(eq=False, slots=True, kw_only=True)
class NotNode(Node):
    """The values that another schema refuses."""

    inner: Node


class Criterion(StrEnum):
    """How many branches must accept a value."""

    ALL = "allOf"
    ANY = "anyOf"
    ONE = "oneOf"


@dataclass(eq=False, slots=True, kw_only=True)
class CombinedNode(Node):
    """Branches under a criterion."""

    criterion: Criterion
    branches: list[Node]


@dataclass(eq=False, slots=True, kw_only=True)
class ReferenceNode(Node):
    """A `$ref`; its target is set once everything is loaded."""

    target: Node | None = None
    reference: str = ""  # as written


def follow(node: Node) -> Node:
    """Return the schema at the end of a chain of references, or one that accepts everything if there is no end."""
    seen: set[int] = set()
    while isinstance(node, ReferenceNode):
        if node.target is None or id(node) in seen:
            return EmptyNode()
        seen.add(id(node))
        node = node.target
    return node


@dataclass(frozen=True)
class JsonSchema(ParsedSchema):
    """A parsed JSON Schema."""

    json: Json
    root: Node
    documents: Documents = field(compare=False, repr=False)
    definitions: tuple[Node, ...] = field(default=(), compare=False, repr=False)  # of the root, in the newer dialects
