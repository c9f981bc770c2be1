r"""The fields of a rule, selected by tags: those in the schema, and those that the metadata adds by wildcards.

    *   any characters of one name      **  any characters, also across the dots between names
    ?   one character of a name         \*  the character itself

Rules of this file: names and tags; no values.
"""

import functools
import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from strata.serdes.functions import Encode
from strata.serdes.model import Metadata, Rule
from strata.serdes.rules.executors import Convert, FieldContext, FieldTransform

__all__ = ["Encode", "Fields", "Place", "Values", "Visit", "matches"]

_TOKEN = re.compile(r"\*\*(?:\.\*)?|\*|\?|\\.|.", re.DOTALL)
_STARS = ("*", "**")

Visit = Callable[[FieldTransform, object], object]
"""Calls a transform with each selected field of a value and returns the new value; the old one does not change."""


class Values(ABC):
    """The values of one schema as rules see them; a format overrides the conversions that it needs."""

    @abstractmethod
    def visitor(self, rule: Rule, *, loosely: bool = False) -> Visit:
        """Return the visitor of the fields that a rule selects.

        Args:
            rule: the rule; without tags it selects all fields.
            loosely: whether to visit branches of unions that do not fit the value, too.
        """

    def direct(self, rule: Rule, converter: Callable[[str], Convert]) -> Encode | None:  # noqa: ARG002 - an interface
        """Return an encoder that converts the selected fields on the way, for formats in which that costs less.

        It raises any error for a value that it cannot convert or encode.

        Args:
            rule: the rule; it is the only one.
            converter: returns the function for fields of type STRING or BYTES.

        Returns:
            The encoder, or None if it cannot convert some selected field.
        """
        return None

    def plain(self, value: object) -> object:
        """Return a value as the first rule gets it, whatever its classes."""
        return value

    def lower(self, value: object) -> object:
        """Return a value as JSON; JSON does not change."""
        return value

    def lift(self, value: object) -> object:
        """Convert the result of a rule to a value of the schema; such a value does not change.

        Raises:
            RuleError: If the result is not a value of the schema, in formats that check it here.
        """
        return value


@dataclass(frozen=True, slots=True)
class Place:
    """A field of a schema: its names, its tags, and whether a rule selects it."""

    full_name: str
    name: str
    tags: frozenset[str]
    selected: bool

    def context(self, type_name: str, message: object) -> FieldContext:
        """Return the field's context for a value."""
        return tuple.__new__(FieldContext, (self.full_name, self.name, type_name, self.tags, message))


class Fields:
    """The fields of a schema, with their tags and whether a rule selects them."""

    def __init__(self, metadata: Metadata | None, rule: Rule) -> None:
        self._given = () if metadata is None else tuple(metadata.tags.items())
        self._wanted = rule.tags
        self._places: dict[str, Place] = {}

    def place(self, full_name: str, name: str, inline: frozenset[str]) -> Place:
        """Return a field by its full name; `inline` are its tags in the schema."""
        place = self._places.get(full_name)
        if place is None:
            tags = inline.union(*(tags for pattern, tags in self._given if matches(pattern, full_name)))
            place = Place(full_name, name, tags, not self._wanted or not self._wanted.isdisjoint(tags))
            self._places[full_name] = place
        return place


def matches(pattern: str, full_name: str) -> bool:
    """Return whether a path of the metadata's tags matches a field.

    The time is proportional to the lengths of the two: the pattern runs as an automaton on bits.
    """
    size, literal, any_one, within, across = _compiled(pattern)
    inside = 1  # bit n: the first n tokens of the pattern match the name so far
    inside |= (inside & (within | across)) << 1
    for character in full_name:
        in_name = character != "."
        stays = inside & (across | (within if in_name else 0))
        moves = inside & (literal.get(character, 0) | (any_one if in_name else 0))
        inside = stays | moves << 1
        inside |= (inside & (within | across)) << 1
    return bool(inside >> size & 1)


@functools.lru_cache(maxsize=1000)
def _compiled(pattern: str) -> tuple[int, dict[str, int], int, int, int]:
    """Return the number of tokens and, as bits, the positions of each character, of `?`, `*` and `**`."""
    tokens: list[str] = []
    for part in _TOKEN.findall(pattern):
        step = "**" if part == "**.*" else part
        if step in _STARS and tokens and tokens[-1] in _STARS:
            tokens[-1] = max(tokens[-1], step)  # two in a row mean the wider one
        else:
            tokens.append(step)
    literal: dict[str, int] = {}
    kinds = dict.fromkeys(("?", "*", "**"), 0)
    for number, token in enumerate(tokens):
        if token in kinds:
            kinds[token] |= 1 << number
        else:
            literal[token[-1]] = literal.get(token[-1], 0) | 1 << number
    return len(tokens), literal, kinds["?"], kinds["*"], kinds["**"]
