"""The JSON Schema model: the kinds of schema that the reference distinguishes.

A JSON object with keywords of several kinds becomes a synthetic `allOf`, one with several types a synthetic `anyOf`.
Nodes compare by identity: a schema that is reached twice through `$ref` is one node.
"""

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
    "CombinedNode",
    "ConditionalNode",
    "ConstNode",
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
class StringNode(Node):
    """Strings, or only keywords for strings."""

    min_length: Number | None = None
    max_length: Number | None = None
    pattern: str | None = None


@dataclass(eq=False, slots=True, kw_only=True)
class NumberNode(Node):
    """Numbers, or only keywords for numbers."""

    integer: bool = False
    minimum: Number | None = None
    maximum: Number | None = None
    exclusive_minimum: Number | None = None
    exclusive_maximum: Number | None = None
    multiple_of: Number | None = None


@dataclass(eq=False, slots=True, kw_only=True)
class ObjectNode(Node):
    """Objects, or only keywords for objects."""

    properties: dict[str, Node] = field(default_factory=dict)
    required: frozenset[str] = frozenset()
    min_properties: Number | None = None
    max_properties: Number | None = None
    permits_additional: bool = True
    additional: Node | None = None
    patterns: dict[str, Node] = field(default_factory=dict)
    permits_unevaluated: bool = True
    unevaluated: Node | None = None
    property_dependencies: dict[str, frozenset[str]] = field(default_factory=dict)
    schema_dependencies: dict[str, Node] = field(default_factory=dict)


@dataclass(eq=False, slots=True, kw_only=True)
class ArrayNode(Node):
    """Arrays, or only keywords for arrays."""

    min_items: Number | None = None
    max_items: Number | None = None
    unique: bool = False
    items: Node | None = None  # the schema of every item
    tuple_items: list[Node] | None = None
    permits_additional: bool = True
    additional: Node | None = None
    permits_unevaluated: bool = True
    unevaluated: Node | None = None
    min_contains: Number | None = None
    max_contains: Number | None = None


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
