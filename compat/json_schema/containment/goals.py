"""Goals of a search: what a value has to fulfil, and what the search answers.

A goal is a set of literals: schemas that must, or must not, allow one value. It breaks up into leaves: single rules
that must, or must not, hold. A focus restricts where a schema has to fail: it is the rest of a finding's path.
"""

import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, NamedTuple, Protocol, TypeAlias

from strata.compat.json_schema.containment import rules as r
from strata.compat.json_schema.containment.values import Document, Key
from strata.compat.limits import Limits

__all__ = [
    "Alternative",
    "Answer",
    "Focus",
    "Found",
    "Goal",
    "Leaf",
    "Leaves",
    "Literal",
    "Nothing",
    "OutOfWorkError",
    "Search",
    "Work",
]

Focus: TypeAlias = tuple[str, ...]


class Literal(NamedTuple):
    """A schema that must, or must not, allow the value."""

    schema: r.Schema
    is_positive: bool
    focus: Focus = ()


class Leaf(NamedTuple):
    """A rule that must, or must not, hold."""

    rule: r.Rule
    is_positive: bool
    focus: Focus = ()


Goal: TypeAlias = frozenset[Literal]
Leaves: TypeAlias = frozenset[Leaf]
Alternative: TypeAlias = tuple[Literal | Leaf, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """A value that fulfils a goal, as far as the rules say."""

    value: Document


class Nothing(Enum):
    """Why there is no value."""

    PROVED = auto()  # no value fulfils the goal
    UNSURE = auto()  # the search does not know
    TOO_LARGE = auto()  # what would fulfil the goal is larger than a witness may be


Answer: TypeAlias = Found | Nothing

_STRIDE: Final = 32


class OutOfWorkError(Exception):
    """The search has used up its work or its time."""


class Work:
    """The work that a search may do.

    Args:
        limits: The bounds of the request; their deadline ends it.
        seconds: The CPU time of this search.
        steps: Its steps.
    """

    def __init__(self, limits: Limits, seconds: float, steps: int = 200_000) -> None:
        self._limits = limits
        self._ends = time.thread_time() + seconds
        self.left: float = steps if seconds else math.inf

    def charge(self, amount: int = 1) -> None:
        """Count work.

        Raises:
            OutOfWorkError: It is used up.
            OutOfTime: The time of the request is used up.
        """
        self.left -= amount
        if self.left < 0:
            raise OutOfWorkError
        if self.left % _STRIDE < amount:
            self._limits.look_at_clock()
            if time.thread_time() > self._ends:
                raise OutOfWorkError


class Search(Protocol):
    """What the builders of objects and arrays need of the search for what is inside them."""

    work: Work
    longest: int

    def solve(self, goal: Goal) -> Answer:
        """Return the first value that fulfils a goal."""

    def schema(self, *rules: r.Rule) -> r.Schema:
        """Return the schema of some rules."""

    def name(self, literals: Iterable[Literal], excluded: frozenset[str]) -> Answer:
        """Return a property name that fulfils some literals and is not among some names."""

    def without(self, goal: Goal, values: Mapping[Key, Document]) -> Goal:
        """Return a goal that some values do not fulfil."""

    def fulfils(self, value: Document, goal: Goal) -> bool | None:
        """Return whether a value fulfils a goal; None if the rules do not say."""
