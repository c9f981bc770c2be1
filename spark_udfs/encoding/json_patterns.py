r"""Regular expressions of JSON Schemas as tables of a finite automaton, which the JVM follows byte by byte.

Only expressions that mean the same to every engine: characters of ASCII, classes of them, `\d` and `\w`, groups,
alternatives and repeats, `^` at the start and `$` at the end. An automaton needs no backtracking, so no text is slow.

Rules of this file: an expression in, a table out; characters beyond ASCII are one symbol, `OTHER`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, TypeAlias

__all__ = ["OTHER", "Automaton", "UnknownPattern", "automaton"]

OTHER: Final = 128
"""The symbol of all characters beyond ASCII."""
_ALL: Final = (1 << OTHER + 1) - 1
_LONGEST = 500
_MOST_REPEATS = 1000
_MOST_STATES = 500
_MOST_STEPS = 5000
_MOST_WORK = 1_000_000
"""How many steps are looked at to make a table."""
_PLAIN: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _-!\"#%&',/:;<=>@`~")
_ESCAPED: Final = frozenset("^$\\.*+?()[]{}|/")
_IN_CLASS: Final = _PLAIN - {"-", "&", "~"} | frozenset(".*+?(){}|$")
"""Without the operators of sets that some engines have."""

_OPTIONAL: Final = "?"

Part: TypeAlias = Callable[["_Steps", int], int]
"""Adds a part of the expression after a state, and returns the state after the part."""


class UnknownPattern(ValueError):
    """An expression that is left to the validator of the Python path."""


@dataclass(frozen=True, slots=True)
class Automaton:
    """A deterministic automaton.

    Attributes:
        classes: the column of the table for each symbol, of ASCII and then `OTHER`.
        table: for each state its next states by column, -1 for none; the first state is the start.
        accepting: the states in which the text so far matches, if it ends there.
        is_open: whether it matches whatever follows.
    """

    classes: tuple[int, ...]
    table: tuple[tuple[int, ...], ...]
    accepting: frozenset[int]
    is_open: bool

    def matches(self, text: str) -> bool:
        """Return whether the expression is found in a text."""
        state = 0
        for character in text:
            if self.is_open and state in self.accepting:
                return True
            state = self.table[state][self.classes[min(ord(character), OTHER)]]
            if state < 0:
                return False
        return state in self.accepting


def automaton(pattern: str) -> Automaton:
    """Return the automaton of a regular expression.

    Raises:
        UnknownPattern: If the expression has other parts, or needs too many states.
    """
    if len(pattern) > _LONGEST:
        raise UnknownPattern(pattern)
    body = pattern.removeprefix("^")
    is_open = not body.endswith("$") or body.endswith("\\$")
    parser = _Parser(body if is_open else body[:-1])
    part = parser.alternatives()
    anchored = body != pattern or not is_open
    if not parser.is_at_end() or (anchored and parser.has_alternatives) or parser.is_misread():
        raise UnknownPattern(pattern)
    steps = _Steps()
    if body == pattern:
        steps.step(0, _ALL, 0)
    end = part(steps, steps.new(0))
    return _determined(steps, end, is_open=is_open)


class _Parser:
    """Reads one expression; `has_alternatives` tells of `|` outside groups."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._repeats: list[str] = []
        self.has_alternatives = False

    def is_at_end(self) -> bool:
        return self._at == len(self._text)

    def is_misread(self) -> bool:
        """Return whether the same part is repeated by `+` twice, with something optional between.

        jsonschema-rs 0.60 reads `[a-z]+-?[a-z]+` as if the second repeat were optional too.
        """
        seen: set[str] = set()
        before_optional: set[str] = set()
        for one in self._repeats:
            if one in before_optional:
                return True
            if one == _OPTIONAL:
                before_optional |= seen
            else:
                seen.add(one)
        return False

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _take(self) -> str:
        taken = self._peek()
        self._at += 1
        return taken

    def alternatives(self, *, inside: bool = False) -> Part:
        branches = [self._sequence()]
        while self._peek() == "|":
            self._take()
            branches.append(self._sequence())
        self.has_alternatives |= not inside and len(branches) > 1

        def add(steps: "_Steps", start: int) -> int:
            end = steps.new()
            for branch in branches:
                steps.step(branch(steps, steps.new(start)), 0, end)
            return end

        return add

    def _sequence(self) -> Part:
        parts: list[Part] = []
        while self._peek() not in ("", "|", ")"):
            at, repeats = self._at, len(self._repeats)
            part = self._atom()
            parts.append(self._repeated(part, self._text[at : self._at], repeats))

        def add(steps: "_Steps", start: int) -> int:
            for part in parts:
                start = part(steps, start)
            return start

        return add

    def _atom(self) -> Part:
        character = self._take()
        if character == "(":
            if self._text.startswith("?:", self._at):
                self._at += 2
            part = self.alternatives(inside=True)
            if self._take() != ")":
                raise UnknownPattern(self._text)
            return part
        mask = self._class() if character == "[" else self._one(character, _PLAIN)

        def add(steps: "_Steps", start: int) -> int:
            end = steps.new()
            steps.step(start, mask, end)
            return end

        return add

    def _one(self, character: str, plain: frozenset[str]) -> int:
        """Return the symbols of a character, or of an escape."""
        if character == "\\":
            escaped = self._take()
            if escaped in ("d", "w"):
                return _DIGITS if escaped == "d" else _WORD
            if escaped == "-" and plain is _IN_CLASS:
                return _mask("-")
            character = escaped if escaped in _ESCAPED else ""
        elif character not in plain:
            character = ""
        if not character:
            raise UnknownPattern(self._text)
        return _mask(character)

    def _class(self) -> int:
        is_negated = self._peek() == "^"
        self._at += is_negated
        mask = 0
        while self._peek() not in ("", "]"):
            character = self._take()
            if character == "-" and (mask == 0 or self._peek() == "]"):
                mask |= _mask("-")
                continue
            low = self._one(character, _IN_CLASS)
            if self._peek() == "-" and self._text[self._at + 1 : self._at + 2] not in ("]", ""):
                self._take()
                low = _range(low, self._one(self._take(), _IN_CLASS))
            mask |= low
        if self._take() != "]" or not mask:
            raise UnknownPattern(self._text)
        return _ALL & ~mask if is_negated else mask

    def _repeated(self, part: Part, text: str, before: int) -> Part:
        """Return a part with its repeats.

        Args:
            part: the part.
            text: its text.
            before: how many repeats were noted before it.
        """
        low, high = self._bounds()
        self._note(text, low, high, before)
        if (low, high) == (1, 1):
            return part
        if self._peek() in ("?", "*", "+", "{") or max(low, high or 0) > _MOST_REPEATS:
            raise UnknownPattern(self._text)

        def add(steps: "_Steps", start: int) -> int:
            for _ in range(low):
                start = part(steps, start)
            end = steps.new(start)
            if high is None:
                again = steps.new(start)
                steps.step(part(steps, again), 0, again)
                steps.step(again, 0, end)
                return end
            for _ in range(high - low):
                start = part(steps, steps.new(start))
                steps.step(start, 0, end)
            return end

        return add

    def _note(self, text: str, low: int, high: int | None, before: int) -> None:
        inside = self._repeats[before:] if high != 1 else []
        one = [_OPTIONAL] if low == 0 else [text] if high is None else []
        self._repeats += [*inside, *one]
        if len(self._repeats) > _MOST_REPEATS:
            raise UnknownPattern(self._text)

    def _bounds(self) -> tuple[int, int | None]:
        simple: dict[str, tuple[int, int | None]] = {"?": (0, 1), "*": (0, None), "+": (1, None)}
        if self._peek() in simple:
            return simple[self._take()]
        if self._peek() != "{":
            return 1, 1
        inside, closing, _ = self._text[self._at + 1 :].partition("}")
        low, comma, high = inside.partition(",")
        if not closing or not low.isdecimal() or not (high.isdecimal() or not high) or not inside.isascii():
            raise UnknownPattern(self._text)
        self._at += len(inside) + 2
        if high and int(high) < int(low):
            raise UnknownPattern(self._text)
        return int(low), (int(high) if high else None) if comma else int(low)


def _mask(characters: str) -> int:
    return sum(1 << ord(one) for one in set(characters))


def _range(low: int, high: int) -> int:
    """Return the symbols from one to another."""
    if low.bit_count() != 1 or high.bit_count() != 1 or low > high:
        raise UnknownPattern("a range")
    return (high << 1) - low


_DIGITS: Final = _mask("0123456789")
_WORD: Final = _mask("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")


@dataclass(slots=True)
class _Steps:
    """The steps of an automaton that may be in several states: by symbols, or without one if their mask is 0."""

    steps: list[list[tuple[int, int]]] = field(default_factory=lambda: [[]])

    def new(self, before: int | None = None) -> int:
        if len(self.steps) >= _MOST_STEPS:
            raise UnknownPattern("too many states")
        self.steps.append([])
        if before is not None:
            self.step(before, 0, len(self.steps) - 1)
        return len(self.steps) - 1

    def step(self, start: int, mask: int, end: int) -> None:
        self.steps[start].append((mask, end))

    def closed(self, states: set[int]) -> frozenset[int]:
        """Return the states that are reached without a symbol."""
        rest = list(states)
        while rest:
            for mask, end in self.steps[rest.pop()]:
                if mask == 0 and end not in states:
                    states.add(end)
                    rest.append(end)
        return frozenset(states)


def _determined(steps: _Steps, end: int, *, is_open: bool) -> Automaton:
    masks = {mask for one in steps.steps for mask, _ in one if mask}
    classes, columns = _columns(masks)
    numbers: dict[frozenset[int], int] = {steps.closed({0}): 0}
    order = list(numbers)
    table: list[tuple[int, ...]] = []
    work = 0
    for state in order:
        row = []
        work += len(state) * len(columns)
        for symbol in columns:
            reached = {to for one in state for mask, to in steps.steps[one] if mask >> symbol & 1}
            following = steps.closed(reached)
            if following and following not in numbers:
                numbers[following] = len(numbers)
                order.append(following)
                if len(numbers) > _MOST_STATES or work > _MOST_WORK:
                    raise UnknownPattern("too many states")
            row.append(numbers[following] if following else -1)
        table.append(tuple(row))
    accepting = frozenset(number for state, number in numbers.items() if end in state)
    return Automaton(tuple(classes), tuple(table), accepting, is_open)


def _columns(masks: set[int]) -> tuple[list[int], list[int]]:
    """Return the column of each symbol, and a symbol of each column: equal symbols share a column."""
    kinds: dict[tuple[bool, ...], int] = {}
    symbols: list[int] = []
    classes: list[int] = []
    for symbol, kind in _kinds(masks):
        if kind not in kinds:
            kinds[kind] = len(kinds)
            symbols.append(symbol)
        classes.append(kinds[kind])
    return classes, symbols


def _kinds(masks: set[int]) -> Iterator[tuple[int, tuple[bool, ...]]]:
    ordered = sorted(masks)
    for symbol in range(OTHER + 1):
        yield symbol, tuple(bool(mask >> symbol & 1) for mask in ordered)
