"""The search for a value that fulfils a goal, or the proof that there is none.

A goal is solved type by type: `expansion` breaks it up into leaves, and the module of the type builds a value or shows
that there is none. What a value contains has goals of its own.

A smallest value for a goal never contains another value for the same goal, so a goal inside itself counts as one
without a value. An answer that rests on this is kept only for as long as the outer goal has none (`_provisional`).
"""

from collections.abc import Iterable, Iterator, Mapping
from random import Random
from typing import Final

from strata.compat.json_schema.containment import rules as r
from strata.compat.json_schema.containment.arrays import array
from strata.compat.json_schema.containment.evaluation import allows, allows_rule, fails
from strata.compat.json_schema.containment.expansion import ways
from strata.compat.json_schema.containment.goals import Answer, Found, Goal, Leaves, Literal, Nothing, Work
from strata.compat.json_schema.containment.languages import Languages
from strata.compat.json_schema.containment.numbers import number
from strata.compat.json_schema.containment.objects import object_
from strata.compat.json_schema.containment.schemas import Schemas
from strata.compat.json_schema.containment.strings import string
from strata.compat.json_schema.containment.values import Document, Key, type_of

__all__ = ["Solver"]

_DEEPEST: Final = 60  # values inside values; a witness seldom needs more
_INFINITE: Final = 1 << 30


class Solver:
    """One search; it remembers the answers for the goals inside.

    Args:
        schemas: The schemas of the comparison.
        work: The work that it may do.
        longest: The most characters of a string, and the most items of an array.
        chance: Shuffles the order of the search; without it, the order is that of the schemas.
    """

    def __init__(self, schemas: Schemas, work: Work, longest: int, chance: Random | None = None) -> None:
        self._schemas = schemas
        self.work = work
        self.longest = longest
        self.languages = Languages(self._charge)
        self.is_too_large = False
        self._chance = chance
        self._known: dict[Goal, Answer] = {}
        self._provisional: dict[Goal, int] = {}
        self._open: dict[Goal, int] = {}
        self._lowest = _INFINITE

    def _charge(self, amount: int) -> None:
        self.work.charge(amount)  # of the current search

    def start(self, work: Work) -> None:
        """Begin another search, which remembers what this one knows."""
        self.work = work
        self.is_too_large = False
        self._open, self._provisional, self._lowest = {}, {}, _INFINITE

    def solutions(self, goal: Goal) -> Iterator[Answer]:
        """Yield an answer for each way to fulfil a goal, but only values and doubts; if there are none, it is proved.

        Raises:
            OutOfWorkError: The work is used up.
        """
        self._open = {goal: 0}
        for type_name in self._types(goal):
            for leaves in ways(goal, type_name, self._schemas, self.work):
                answer = self._built(type_name, leaves, goal)
                if answer is not Nothing.PROVED:
                    yield answer

    def solve(self, goal: Goal) -> Answer:
        """Return the first value that fulfils a goal inside another.

        Raises:
            OutOfWorkError: The work is used up.
        """
        self.work.charge()
        if goal in self._open:
            self._lowest = min(self._lowest, self._open[goal])
            return Nothing.PROVED
        known = self._known.get(goal)
        if known is not None:
            return known
        if goal in self._provisional:
            self._lowest = min(self._lowest, self._provisional[goal])
            return Nothing.PROVED
        depth = len(self._open)
        if depth > _DEEPEST:
            return Nothing.UNSURE
        before, self._lowest = self._lowest, _INFINITE
        self._open[goal] = depth
        provisional = len(self._provisional)
        answer = self._answer(goal)
        del self._open[goal]
        self._keep(goal, answer, depth, provisional)
        self._lowest = min(before, self._lowest)
        return answer

    def _keep(self, goal: Goal, answer: Answer, depth: int, provisional: int) -> None:
        """Remember an answer, and settle those inside that rested on it."""
        inner = list(self._provisional)[provisional:]
        if answer is not Nothing.PROVED:
            self._known[goal] = answer
            for inner_goal in inner:
                del self._provisional[inner_goal]
            self._lowest = _INFINITE  # the answer stands by itself
        elif self._lowest >= depth:
            self._known[goal] = answer
            for inner_goal in inner:
                del self._provisional[inner_goal]
                self._known[inner_goal] = Nothing.PROVED
            self._lowest = _INFINITE
        else:
            self._provisional[goal] = self._lowest

    def _answer(self, goal: Goal) -> Answer:
        answer: Answer = Nothing.PROVED
        for type_name in self._types(goal):
            for leaves in ways(goal, type_name, self._schemas, self.work):
                made = self._built(type_name, leaves, goal)
                if isinstance(made, Found):
                    return made
                if made is not Nothing.PROVED:
                    answer = made
        return answer

    def _types(self, goal: Goal) -> list[str]:
        names = list(r.ALL_TYPES)
        for schema, is_positive, _ in goal:
            for rule in schema.rules if is_positive else ():
                if isinstance(rule, r.Types):
                    names = [
                        name for name in names if name in rule.names or (name == "number" and "integer" in rule.names)
                    ]
        if self._chance is not None:
            self._chance.shuffle(names)
        return names

    def _built(self, type_name: str, leaves: Leaves, goal: Goal) -> Answer:
        finite = [rule for rule, is_positive, _ in leaves if is_positive and isinstance(rule, r.Values)]
        if finite:
            values = min((rule.values for rule in finite), key=len)
            return self._among([value for value in values if type_of(value) == type_name], goal, leaves)
        match type_name:
            case "null":
                return self._among([None], goal, leaves)
            case "boolean":
                return self._among([False, True], goal, leaves)
            case "number":
                return number(leaves, self.work)
            case "string":
                return self._noted(string(leaves, self.languages, self.work, self.longest))
            case "array":
                return self._noted(array(leaves, self))
        return self._noted(object_(leaves, self))

    def _noted(self, answer: Answer) -> Answer:
        self.is_too_large = self.is_too_large or answer is Nothing.TOO_LARGE
        return answer

    def _among(self, values: list[Document], goal: Goal, leaves: Leaves) -> Answer:
        """Return the first value that fulfils a goal; each that can fulfil it is among the values."""
        perhaps: Answer = Nothing.PROVED
        for value in values:
            self.work.charge()
            fulfils = self.fulfils(value, goal)
            if fulfils is True and all(
                allows_rule(rule, value) is not (not is_positive) for rule, is_positive, _ in leaves
            ):
                return Found(value)
            if fulfils is None:
                perhaps = Found(value)
        return perhaps

    def fulfils(self, value: Document, goal: Goal) -> bool | None:
        """Return whether a value fulfils a goal; None if the rules do not say."""
        verdict: bool | None = True
        for schema, is_positive, focus in goal:
            fulfilled = allows(schema, value) if is_positive else fails(schema, value, focus)
            if fulfilled is False:
                return False
            verdict = None if fulfilled is None else verdict
        return verdict

    def schema(self, *rules: r.Rule) -> r.Schema:
        """Return the schema of some rules."""
        return self._schemas.schema(rules)

    def name(self, literals: Iterable[Literal], excluded: frozenset[str]) -> Answer:
        """Return a property name that fulfils some literals and is not among some names."""
        goal = {Literal(self.schema(r.Types(frozenset({"string"}))), True), *literals}
        if excluded:
            goal.add(Literal(self.schema(r.Values(excluded, tuple(sorted(excluded)))), False))
        # Not the empty name, if there is another: validators differ about it, and people overlook it.
        answer = self.solve(frozenset({*goal, Literal(self.schema(r.Size("string", low=1)), True)}))
        return self.solve(frozenset(goal)) if answer is Nothing.PROVED else answer

    def without(self, goal: Goal, values: Mapping[Key, Document]) -> Goal:
        """Return a goal that some values do not fulfil."""
        if not values:
            return goal
        return goal | {Literal(self.schema(r.Values(frozenset(values), tuple(values.values()))), False)}
