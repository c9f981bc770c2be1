"""Differences as the rules note them: a kind, and the steps that lead to it from the compared schema."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol, TypeAlias

from strata.compat.json_schema.model import (
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
from strata.compat.result import Value

__all__ = ["Comparer", "Difference", "Findings", "Shown", "TooComplexError", "described", "value_of"]

# The value of a schema at a path; values of enums and constants are canonical texts.
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
    """The comparison takes more work than is allowed."""


class Difference(NamedTuple):
    """One difference, compatible or not, and what the two schemas have there."""

    kind: str
    steps: tuple[str, ...] = ()
    reader: Shown = None  # what the reader schema has there, for a message
    writer: Shown = None


@dataclass(slots=True)
class Findings:
    """The differences of a pair, and whether the reader accepts everything that the writer allows."""

    found: list[Difference] = field(default_factory=list)
    compatible: bool = True


class Comparer(Protocol):
    """The parts of the comparison that the rules for one kind of schema use."""

    def note(self, into: Findings, kind: str, *steps: str, reader: Shown = None, writer: Shown = None) -> None:
        """Add a difference to the findings of a pair.

        Args:
            into: The findings.
            kind: The kind of difference.
            *steps: The path from the pair to the difference.
            reader: What the reader schema has there.
            writer: What the writer schema has there.
        """

    def compare(self, reader: Node | None, writer: Node | None) -> Findings:
        """Return the findings of comparing two schemas."""

    def descend(self, into: Findings, reader: Node | None, writer: Node | None, *steps: str) -> bool:
        """Compare two schemas below a pair and add their findings; return whether they are compatible."""

    def take(self, into: Findings, findings: Findings, *steps: str) -> None:
        """Add the findings of schemas below a pair, under some steps."""

    def charge(self, amount: int = 1) -> None:
        """Count work.

        Raises:
            TooComplexError: The comparison takes too much work.
            OutOfTime: The time of the limits ran out.
        """

    def matches(self, pattern: str, name: str) -> bool:
        """Return whether a pattern matches somewhere in a property name."""


def described(node: Node | None) -> str | None:
    """Return the kind of a schema in a word or two, or None if there is no schema."""
    if node is None:
        return None
    node = follow(node)
    if isinstance(node, CombinedNode):
        return f"{node.criterion.value} of {len(node.branches)}"
    if isinstance(node, NumberNode):
        return "integer" if node.integer else "number"
    return _KINDS[type(node)]


def value_of(shown: Shown) -> Value:
    """Return what a schema has at a path as a JSON value; canonical texts are parsed only here, for reports."""
    if isinstance(shown, ConstNode):
        return _read(shown.value)
    return [_read(text) for text in sorted(shown)] if isinstance(shown, frozenset) else shown


def _read(text: str) -> Value:
    try:
        value: Value = json.loads(text)
    except ValueError:  # an integer of thousands of digits
        return text
    return value
