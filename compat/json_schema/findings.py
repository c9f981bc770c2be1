"""Differences as the rules note them: a kind, and the steps that lead to it from the schema being compared."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol, TypeAlias

from compat.json_schema.model import (
    ArrayNode,
    BooleanNode,
    CombinedNode,
    ConditionalNode,
    ConstNode,
    EmptyNode,
    EnumNode,
    FalseNode,
    Node,
    NotNode,
    NullNode,
    NumberNode,
    ObjectNode,
    StringNode,
    follow,
)
from compat.result import Value

__all__ = ["Comparer", "Difference", "Findings", "Shown", "TooComplexError", "described", "value_of"]

# What a schema has at a place; values of enums and constants are their canonical texts.
Shown: TypeAlias = Value | ConstNode | frozenset[str]

_KINDS: Final[Mapping[type[Node], str]] = {
    ArrayNode: "array",
    BooleanNode: "boolean",
    ConditionalNode: "if/then/else",
    ConstNode: "const",
    EmptyNode: "anything",
    EnumNode: "enum",
    FalseNode: "nothing",
    NotNode: "not",
    NullNode: "null",
    ObjectNode: "object",
    StringNode: "string",
}


class TooComplexError(Exception):
    """Comparing takes more work than is allowed."""


class Difference(NamedTuple):
    """One difference, compatible or not, and what the two schemas have there."""

    kind: str
    steps: tuple[str, ...] = ()
    reader: Shown = None  # what the reader schema has there, for a person
    writer: Shown = None


@dataclass(slots=True)
class Findings:
    """What was found of a pair, and whether the reader accepts all that the writer writes."""

    found: list[Difference] = field(default_factory=list)
    compatible: bool = True


class Comparer(Protocol):
    """What the rules of one kind of schema need of the whole."""

    def note(self, into: Findings, kind: str, *steps: str, reader: Shown = None, writer: Shown = None) -> None:
        """Note a difference, and what the two schemas have there."""

    def compare(self, reader: Node | None, writer: Node | None) -> Findings:
        """Compare two schemas."""

    def descend(self, into: Findings, reader: Node | None, writer: Node | None, *steps: str) -> bool:
        """Compare two schemas further down, and keep what is found; true if they are compatible."""

    def take(self, into: Findings, findings: Findings, *steps: str) -> None:
        """Keep what was found further down."""

    def charge(self, amount: int = 1) -> None:
        """Count work, and give up when it is too much."""

    def matches(self, pattern: str, name: str) -> bool:
        """Whether a pattern is found in a property name."""


def described(node: Node | None) -> str | None:
    """Return what kind of schema a node is, in a word or two; None where there is no schema."""
    if node is None:
        return None
    node = follow(node)
    if isinstance(node, CombinedNode):
        return f"{node.criterion.value} of {len(node.branches)}"
    if isinstance(node, NumberNode):
        return "integer" if node.integer else "number"
    return _KINDS[type(node)]


def value_of(shown: Shown) -> Value:
    """Return what a schema has at a place as a JSON value; texts of values are read only now, for what is reported."""
    if isinstance(shown, ConstNode):
        return _read(shown.value)
    return [_read(text) for text in sorted(shown)] if isinstance(shown, frozenset) else shown


def _read(text: str) -> Value:
    try:
        value: Value = json.loads(text)
    except ValueError:  # an integer of thousands of digits
        return text
    return value
