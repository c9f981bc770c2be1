"""An array that fulfils some leaves, or the proof that there is none.

A shortest array ends with an item that something needs: `minItems`, an item that must fail, or one that is counted. So
there is a longest length to try. Items beyond the first ones are alike, and are tried in one order only.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Final, NamedTuple

from strata.compat.json_schema.containment import rules as r
from strata.compat.json_schema.containment.goals import Answer, Focus, Found, Goal, Leaves, Literal, Nothing, Search
from strata.compat.json_schema.containment.paths import PATTERN, REST
from strata.compat.json_schema.containment.values import Document, Key, key_of

__all__ = ["array"]

_LONGEST_SEARCH: Final = 60  # items of an array whose items have to be counted, or to differ
_Literals = frozenset[Literal]


class _Need(NamedTuple):
    """One way in which an item fails: its place, or a first place, and what the value must be."""

    literals: _Literals
    place: int
    is_exact: bool


@dataclass(slots=True)
class _Demands:
    rules: list[r.Items] = field(default_factory=list)
    needs: list[list[_Need]] = field(default_factory=list)
    counts: list[r.Count] = field(default_factory=list)
    low: int = 0
    high: int | None = None
    is_unique: bool = False
    has_equal: bool = False
    first: int = 0  # items that have schemas of their own

    def size(self, rule: r.Size, is_positive: bool) -> None:
        low, high = rule.low, rule.high
        if not is_positive:
            low, high = (0, low - 1) if high is None else (high + 1, None)
        self.low = max(self.low, low)
        self.high = high if self.high is None else self.high if high is None else min(high, self.high)


def array(leaves: Leaves, solver: Search) -> Answer:
    """Return an array that fulfils the leaves.

    Raises:
        OutOfWorkError: The work is used up.
    """
    demands = _Demands()
    for rule, is_positive, focus in leaves:
        match rule:
            case r.Size():
                demands.size(rule, is_positive)
            case r.Items():
                demands.first = max(demands.first, len(rule.first))
                if is_positive:
                    demands.rules.append(rule)
                else:
                    demands.needs.append(list(_needs(rule, focus)))
            case r.Count():
                demands.counts.append(rule)
            case r.Unique():
                demands.is_unique = demands.is_unique or is_positive
                demands.has_equal = demands.has_equal or not is_positive
    if demands.is_unique and demands.has_equal:
        return Nothing.PROVED
    return _Builder(demands, solver).run()


def _needs(rule: r.Items, focus: Focus) -> Iterator[_Need]:
    """Yield the ways in which an array can fail a rule, at the place of a path."""
    word, following = (focus[0], focus[1:]) if focus else ("", ())
    first = len(rule.first)
    if word == PATTERN:
        place = int(following[0])
        schema = rule.first[place] if place < first else rule.rest
        if schema is not None:
            yield _Need(frozenset({Literal(schema, False, following[1:])}), place, True)
        return
    if word != REST:
        for place, schema in enumerate(rule.first):
            yield _Need(frozenset({Literal(schema, False)}), place, True)
    if rule.rest is not None:
        yield _Need(frozenset({Literal(rule.rest, False, following)}), first, False)


class _Builder:
    def __init__(self, demands: _Demands, solver: Search) -> None:
        self._demands = demands
        self._solver = solver
        self._is_unsure: Nothing | None = None

    def run(self) -> Answer:
        demands = self._demands
        if demands.low * 2 > self._solver.longest:
            return Nothing.TOO_LARGE
        return self._meet(sorted(demands.needs, key=len), {})

    def _unsure(self, answer: Answer) -> None:
        if isinstance(answer, Nothing) and answer is not Nothing.PROVED:
            self._is_unsure = answer

    def _nothing(self) -> Answer:
        return Nothing.PROVED if self._is_unsure is None else self._is_unsure

    def _fixed(self, place: int) -> _Literals:
        """Return what the item at a place has to fulfil in any case."""
        made: set[Literal] = set()
        for rule in self._demands.rules:
            schema = rule.first[place] if place < len(rule.first) else rule.rest
            if schema is not None:
                made.add(Literal(schema, True))
        return frozenset(made)

    def _meet(self, needs: list[list[_Need]], chosen: dict[int, _Literals]) -> Answer:
        """Fulfil the needs that are left in every way, until a whole array is found."""
        self._solver.work.charge()
        if not needs:
            return self._equal(chosen)
        for need in needs[0]:
            last = max(self._demands.first, need.place) + len(self._demands.needs)
            for place in (need.place,) if need.is_exact else range(need.place, last):
                if self._demands.high is not None and place >= self._demands.high:
                    break
                literals = chosen.get(place, frozenset()) | need.literals
                answer = self._solver.solve(self._fixed(place) | literals)
                self._unsure(answer)
                if not isinstance(answer, Found):
                    continue
                made = self._meet(needs[1:], {**chosen, place: literals})
                if isinstance(made, Found):
                    return made
        return self._nothing()

    def _equal(self, chosen: dict[int, _Literals]) -> Answer:
        """Choose two equal items, if there have to be two."""
        if not self._demands.has_equal:
            return self._complete(chosen, None)
        last = max([self._demands.first, *(place + 1 for place in chosen)]) + 2
        for first in range(last):
            for second in range(first + 1, last):
                literals = chosen.get(first, frozenset()) | chosen.get(second, frozenset())
                literals |= self._fixed(first) | self._fixed(second)
                made = self._complete({**chosen, first: literals, second: literals}, (first, second))
                if isinstance(made, Found):
                    return made
        return self._nothing()

    def _complete(self, chosen: dict[int, _Literals], twins: tuple[int, int] | None) -> Answer:
        """Try the lengths that a shortest array may have."""
        demands = self._demands
        shortest = max([demands.low, *(place + 1 for place in chosen)])
        counted = sum(count.low for count in demands.counts)
        longest = max(shortest, demands.first) + counted
        if demands.high is not None:
            longest = min(longest, demands.high)
        is_searched = bool(demands.counts) or demands.is_unique
        if is_searched and longest > _LONGEST_SEARCH:
            self._is_unsure = Nothing.UNSURE if shortest <= _LONGEST_SEARCH else Nothing.TOO_LARGE
            longest = _LONGEST_SEARCH
        if not is_searched:
            longest = min(longest, shortest)
        for length in range(shortest, longest + 1):
            made = _Items(self._solver, self, demands, length, chosen, twins).run()
            if isinstance(made, Found):
                return made
        return self._nothing()


class _Items:
    """The items of an array of one length, from the first to the last."""

    def __init__(
        self,
        solver: Search,
        builder: _Builder,
        demands: _Demands,
        length: int,
        chosen: dict[int, _Literals],
        twins: tuple[int, int] | None,
    ) -> None:
        self._solver = solver
        self._builder = builder
        self._demands = demands
        self._length = length
        self._twins = twins
        self._chosen = chosen
        self._goals = [builder._fixed(place) | chosen.get(place, frozenset()) for place in range(length)]
        self._values: list[Document] = []

    def run(self) -> Answer:
        if self._place([0] * len(self._demands.counts), -1):
            return Found(list(self._values))
        return Nothing.PROVED

    def _place(self, counts: list[int], last: int) -> bool:
        """Find the next item, and those after it; return whether all were found.

        Args:
            counts: How many items are counted so far, for each count.
            last: The number of the combination of the item before, if it is like this one.
        """
        place = len(self._values)
        self._solver.work.charge()
        left = self._length - place
        if any(demand.low - number > left for demand, number in zip(self._demands.counts, counts, strict=True)):
            return False
        if place == self._length:
            return True
        is_alike = place > self._demands.first and not {place, place - 1} & self._chosen.keys()
        options = list(product((True, False), repeat=len(self._demands.counts)))
        for number, option in enumerate(options):
            if is_alike and number < last:
                continue
            after = [count + is_counted for count, is_counted in zip(counts, option, strict=True)]
            if any(
                demand.high is not None and demand.high < number
                for demand, number in zip(self._demands.counts, after, strict=True)
            ):
                continue
            avoided: dict[Key, Document] = {}
            while self._item(place, option, avoided):
                if self._place(after, number):
                    return True
                value = self._values.pop()
                avoided[key_of(value)] = value
                if not self._demands.is_unique or len(avoided) > self._length - place:
                    break  # another value leaves the others no more choice
        return False

    def _item(self, place: int, option: tuple[bool, ...], avoided: Mapping[Key, Document]) -> bool:
        """Append an item that is counted, or not, by each count; avoid some values."""
        goal: Goal = self._goals[place]
        for count, is_counted in zip(self._demands.counts, option, strict=True):
            if is_counted or count.high is not None:
                goal |= {Literal(count.schema, is_counted)}
        if self._twins is not None and place == self._twins[1]:
            value = self._values[self._twins[0]]
            if self._solver.fulfils(value, goal) is False:
                self._builder._is_unsure = self._builder._is_unsure or (
                    Nothing.UNSURE if self._demands.counts else None
                )
                return False
            self._values.append(value)
            return True
        values: dict[Key, Document] = {key_of(item): item for item in self._values} if self._demands.is_unique else {}
        answer = self._solver.solve(self._solver.without(goal, {**values, **avoided}))
        self._builder._unsure(answer)
        if isinstance(answer, Found):
            self._values.append(answer.value)
        return isinstance(answer, Found)
