"""Differences as the rules note them: a kind, and the steps that lead to it from the compared schema."""

import json
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from strata.compat.json_schema import model
from strata.compat.result import Value

__all__ = ["Difference", "Findings", "Shown", "TooComplexError", "change_of_set", "described", "value_of"]

# The value of a schema at a path; values of enums and constants are canonical texts.
Shown: TypeAlias = Value | model.ConstNode | frozenset[str]

_KINDS: Final[Mapping[type[model.Node], str]] = {
    model.ArrayNode: "array",
    model.BooleanNode: "boolean",
    model.ConditionalNode: "if/then/else",
    model.ConstNode: "const",
    model.EmptyNode: "anything",
    model.EnumNode: "enum",
    model.FalseNode: "nothing",
    model.NotNode: "not",
    model.NullNode: "null",
    model.ObjectNode: "object",
    model.StringNode: "string",
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

    differences: list[Difference] = field(default_factory=list)
    compatible: bool = True


def change_of_set(reader: AbstractSet[str], writer: AbstractSet[str]) -> str:
    """Return how two different sets differ: EXTENDED, NARROWED or CHANGED."""
    if reader > writer:
        return "EXTENDED"
    return "NARROWED" if reader < writer else "CHANGED"


def described(node: model.Node | None) -> str | None:
    """Return the kind of a schema in a word or two, or None if there is no schema."""
    if node is None:
        return None
    node = model.follow(node)
    if isinstance(node, model.CombinedNode):
        return f"{node.criterion.value} of {len(node.branches)}"
    if isinstance(node, model.NumberNode):
        return "integer" if node.integer else "number"
    return _KINDS[type(node)]


def value_of(shown: Shown) -> Value:
    """Return what a schema has at a path as a JSON value; canonical texts are parsed only here, for reports."""
    if isinstance(shown, model.ConstNode):
        return _read(shown.value)
    return [_read(text) for text in sorted(shown)] if isinstance(shown, frozenset) else shown


def _read(text: str) -> Value:
    try:
        value: Value = json.loads(text)
    except ValueError:  # an integer of thousands of digits
        return text
    return value
