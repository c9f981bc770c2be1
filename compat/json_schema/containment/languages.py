"""Sets of strings as terms that can be intersected and complemented, and their shortest members.

A term is a regular expression with the set operations. Its derivative by a character (Brzozowski, 1964) is the term of
what may follow that character, so a search over derivatives finds a shortest member, or shows that there is none.
Characters that no part of a term distinguishes are tried once. Terms are interned: equal terms are one object.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import reduce
from typing import Final

__all__ = ["ANY_CHARACTER", "Languages", "Ranges", "Term", "TooManyStatesError", "complement", "united"]

Ranges = tuple[tuple[int, int], ...]  # of code points, sorted, disjoint, both ends included

_LAST: Final = 0x10FFFF
_SURROGATES: Final = (0xD800, 0xDFFF)  # no characters of JSON text in UTF-8
_MOST_STATES: Final = 1_500
_MOST_TERMS: Final = 60_000
_LONGEST: Final = 10_000  # characters of a member
_NICEST: Final = "abcdefghijklmnopqrstuvwxyz" + "ABCDEFGHIJKLMNOPQRSTUVWXYZ" + "0123456789" + "-_ .:/@#+,;!?=*()"
_NICE: Final = {ord(character): place for place, character in enumerate(_NICEST)}


def complement(ranges: Ranges) -> Ranges:
    """Return all other characters, without halves of surrogate pairs."""
    made: list[tuple[int, int]] = []
    start = 0
    for low, high in united((*ranges, _SURROGATES)):
        if start < low:
            made.append((start, low - 1))
        start = high + 1
    return (*made, (start, _LAST)) if start <= _LAST else tuple(made)


def united(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Return ranges sorted and disjoint."""
    made: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if made and low <= made[-1][1] + 1:
            made[-1] = (made[-1][0], max(made[-1][1], high))
        else:
            made.append((low, high))
    return tuple(made)


ANY_CHARACTER: Final = complement(())


class TooManyStatesError(Exception):
    """The search in a set of strings would take too many states."""


class _Form(Enum):
    NOTHING = auto()  # no string
    BLANK = auto()  # the empty string only
    CHARACTER = auto()
    SEQUENCE = auto()
    UNION = auto()
    INTERSECTION = auto()
    COMPLEMENT = auto()
    REPETITION = auto()


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """A set of strings."""

    form: _Form
    blank: bool  # whether the empty string is a member
    parts: tuple["Term", ...] = ()
    ranges: Ranges = ()
    low: int = 0
    high: int | None = None  # None: without a limit


class Languages:
    """The terms of one search.

    Args:
        charge: Counts the states that the search visits, and may end it by an exception.
    """

    def __init__(self, charge: Callable[[int], None] = lambda _: None) -> None:
        self._charge = charge
        self._terms: dict[tuple[object, ...], Term] = {}
        self._derivatives: dict[tuple[int, int], Term] = {}
        self._cuts: dict[int, frozenset[int]] = {}
        self.nothing = self._term(_Form.NOTHING, blank=False)
        self.blank = self._term(_Form.BLANK, blank=True)
        self.everything = self.repetition(self.character(ANY_CHARACTER), 0, None)

    def _term(
        self,
        form: _Form,
        *,
        blank: bool,
        parts: tuple[Term, ...] = (),
        ranges: Ranges = (),
        low: int = 0,
        high: int | None = None,
    ) -> Term:
        key = (form, *map(id, parts), ranges, low, high)
        term = self._terms.get(key)
        if term is None:
            if len(self._terms) > _MOST_TERMS:
                raise TooManyStatesError
            term = self._terms[key] = Term(form, blank, parts, ranges, low, high)
        return term

    def character(self, ranges: Ranges) -> Term:
        """Return the strings of one character out of some ranges."""
        return self._term(_Form.CHARACTER, blank=False, ranges=ranges) if ranges else self.nothing

    def literal(self, text: str) -> Term:
        """Return the set of one string."""
        return self.sequence([self.character(((ord(character), ord(character)),)) for character in text])

    def sequence(self, parts: Sequence[Term]) -> Term:
        """Return the strings that consist of a member of each part."""
        return reduce(lambda rest, part: self._pair(part, rest), reversed(parts), self.blank)

    def _pair(self, first: Term, rest: Term) -> Term:
        if first is self.nothing or rest is self.nothing:
            return self.nothing
        if first is self.blank:
            return rest
        if rest is self.blank:
            return first
        if first.form is _Form.SEQUENCE:
            return self._pair(first.parts[0], self._pair(first.parts[1], rest))
        return self._term(_Form.SEQUENCE, blank=first.blank and rest.blank, parts=(first, rest))

    def union(self, parts: Iterable[Term]) -> Term:
        """Return the strings that are in any of the parts."""
        flat = self._flat(parts, _Form.UNION)
        flat.pop(id(self.nothing), None)
        if id(self.everything) in flat:
            return self.everything
        if len(flat) < 2:
            return next(iter(flat.values()), self.nothing)
        sorted_parts = tuple(flat[key] for key in sorted(flat))
        return self._term(_Form.UNION, blank=any(part.blank for part in sorted_parts), parts=sorted_parts)

    def intersection(self, parts: Iterable[Term]) -> Term:
        """Return the strings that are in all parts."""
        flat = self._flat(parts, _Form.INTERSECTION)
        flat.pop(id(self.everything), None)
        if id(self.nothing) in flat:
            return self.nothing
        if len(flat) < 2:
            return next(iter(flat.values()), self.everything)
        sorted_parts = tuple(flat[key] for key in sorted(flat))
        if any(part.form is _Form.COMPLEMENT and id(part.parts[0]) in flat for part in sorted_parts):
            return self.nothing
        return self._term(_Form.INTERSECTION, blank=all(part.blank for part in sorted_parts), parts=sorted_parts)

    @staticmethod
    def _flat(parts: Iterable[Term], form: _Form) -> dict[int, Term]:
        flat: dict[int, Term] = {}
        for part in parts:
            for inner in part.parts if part.form is form else (part,):
                flat[id(inner)] = inner
        return flat

    def complement(self, term: Term) -> Term:
        """Return the strings that are not in a set."""
        if term.form is _Form.COMPLEMENT:
            return term.parts[0]
        if term is self.nothing:
            return self.everything
        if term is self.everything:
            return self.nothing
        return self._term(_Form.COMPLEMENT, blank=not term.blank, parts=(term,))

    def repetition(self, term: Term, low: int, high: int | None) -> Term:
        """Return the strings that consist of so many members of a set."""
        if high == 0 or term is self.blank:
            return self.blank
        if term is self.nothing:
            return self.blank if low == 0 else self.nothing
        if low == high == 1:
            return term
        if term.blank:
            low = 0  # the empty string stands in for the members that are missing
        return self._term(_Form.REPETITION, blank=low == 0, parts=(term,), low=low, high=high)

    def _derivative(self, term: Term, character: int) -> Term:
        key = (id(term), character)
        made = self._derivatives.get(key)
        if made is None:
            made = self._derivatives[key] = self._derived(term, character)
        return made

    def _derived(self, term: Term, character: int) -> Term:
        match term.form:
            case _Form.NOTHING | _Form.BLANK:
                return self.nothing
            case _Form.CHARACTER:
                place = bisect_right(term.ranges, (character, _LAST)) - 1
                is_in = place >= 0 and term.ranges[place][1] >= character
                return self.blank if is_in else self.nothing
            case _Form.SEQUENCE:
                first, rest = term.parts
                made = self._pair(self._derivative(first, character), rest)
                return self.union((made, self._derivative(rest, character))) if first.blank else made
            case _Form.UNION:
                return self.union([self._derivative(part, character) for part in term.parts])
            case _Form.INTERSECTION:
                return self.intersection([self._derivative(part, character) for part in term.parts])
            case _Form.COMPLEMENT:
                return self.complement(self._derivative(term.parts[0], character))
            case _Form.REPETITION:
                high = None if term.high is None else term.high - 1
                rest = self.repetition(term.parts[0], max(term.low - 1, 0), high)
                return self._pair(self._derivative(term.parts[0], character), rest)

    def _boundaries(self, term: Term) -> frozenset[int]:
        """Return where ranges begin that the derivatives of a term distinguish."""
        made = self._cuts.get(id(term))
        if made is None:
            if term.form is _Form.CHARACTER:
                made = frozenset(cut for low, high in term.ranges for cut in (low, high + 1))
            else:
                parts = term.parts[:1] if term.form is _Form.SEQUENCE and not term.parts[0].blank else term.parts
                made = frozenset().union(*map(self._boundaries, parts))
            self._cuts[id(term)] = made
        return made

    def _characters(self, term: Term) -> list[int]:
        """Return a character of each range that the derivatives of a term distinguish, the nicest first."""
        cuts = sorted({0, _SURROGATES[0], _SURROGATES[1] + 1} | self._boundaries(term))
        chosen: dict[int, int] = {}
        for character in _NICE:
            chosen.setdefault(bisect_right(cuts, character) - 1, character)
        for place, low in enumerate(cuts):
            if low <= _LAST and not _SURROGATES[0] <= low <= _SURROGATES[1]:
                # The last character of a range is less often special than the first, which may be a control character.
                high = (cuts[place + 1] if place + 1 < len(cuts) else _LAST + 1) - 1
                chosen.setdefault(place, min(high, max(low, 0xE9)))
        return sorted(
            chosen.values(), key=lambda chosen_character: (_NICE.get(chosen_character, len(_NICE)), chosen_character)
        )

    def shortest(self, term: Term, low: int = 0, high: int | None = None) -> str | None:
        """Return a shortest member with a length between two bounds, or None if there is none.

        Raises:
            TooManyStatesError: The search would take too long.
        """
        edges = self._automaton(term)
        live = _live(edges)
        if term not in live:
            return None
        levels: list[dict[Term, tuple[Term, int]]] = [{term: (term, 0)}]
        # What is longer than this repeats a state and could be shorter: with no member up to here, there is none.
        longest = low + len(edges) if high is None else min(high, low + len(edges))
        if longest > _LONGEST:
            raise TooManyStatesError
        for length in range(longest + 1):
            if length >= low:
                for state in levels[-1]:
                    if state.blank:
                        return _spelled(levels, state)
            self._charge(len(levels[-1]))
            levels.append(_level_after(levels[-1], edges, live))
        return None

    def _automaton(self, term: Term) -> dict[Term, list[tuple[int, Term]]]:
        edges: dict[Term, list[tuple[int, Term]]] = {}
        stack = [term]
        while stack:
            state = stack.pop()
            if state in edges:
                continue
            if len(edges) > _MOST_STATES:
                raise TooManyStatesError
            self._charge(1)
            edges[state] = [(character, self._derivative(state, character)) for character in self._characters(state)]
            stack += [target for _, target in edges[state] if target is not self.nothing]
        edges.setdefault(self.nothing, [])
        return edges

    def contains(self, term: Term, text: str) -> bool:
        """Return whether a string is a member."""
        return reduce(self._derivative, map(ord, text), term).blank


def _level_after(
    level: dict[Term, tuple[Term, int]], edges: dict[Term, list[tuple[int, Term]]], live: set[Term]
) -> dict[Term, tuple[Term, int]]:
    """Return the states that follow those of a level, each with a state before it and the character between."""
    after: dict[Term, tuple[Term, int]] = {}
    for state in level:
        for character, target in edges[state]:
            if target in live:
                after.setdefault(target, (state, character))
    return after


def _live(edges: dict[Term, list[tuple[int, Term]]]) -> set[Term]:
    """Return the states from which a member can be completed."""
    sources: dict[Term, list[Term]] = {}
    for state, targets in edges.items():
        for _, target in targets:
            sources.setdefault(target, []).append(state)
    live = {state for state in edges if state.blank}
    stack = list(live)
    while stack:
        for source in sources.get(stack.pop(), ()):
            if source not in live:
                live.add(source)
                stack.append(source)
    return live


def _spelled(levels: list[dict[Term, tuple[Term, int]]], state: Term) -> str:
    characters: list[str] = []
    for level in reversed(levels[1:]):
        state, character = level[state]
        characters.append(chr(character))
    return "".join(reversed(characters))
