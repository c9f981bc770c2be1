r"""Patterns of JSON Schema (ECMA-262) as sets of strings: those in which a pattern matches somewhere.

What regular expressions cannot say (look-around, back-references) and what dialects read differently (nested classes,
`\p{…}`, `\b`) has no term: the caller learns that the pattern is not understood.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from strata.compat.json_schema.containment.languages import Languages, Ranges, Term, complement, united

__all__ = ["language_of"]

_LONGEST: Final = 400  # characters of a pattern
_MOST_SEQUENCES: Final = 64  # alternatives with an anchor
_LARGEST_COUNT: Final = 5_000
_DEEPEST: Final = 30
_DIGITS: Final[Ranges] = ((0x30, 0x39),)
_WORDS: Final[Ranges] = united(((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)))
_SPACES: Final[Ranges] = united(
    [(ord(character), ord(character)) for character in "\t\n\x0b\x0c\r \xa0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff"]
    + [(0x2000, 0x200A)]
)
_CLASSES: Final[dict[str, Ranges]] = {"d": _DIGITS, "w": _WORDS, "s": _SPACES}
_CONTROLS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "v": "\v"}
_DOT: Final = complement(
    ((ord("\n"), ord("\n")),)
)  # as validators have it; ECMA-262 leaves out other ends of lines too
_COUNT: Final = re.compile(r"\{(\d{1,6})(,?)(\d{0,6})\}")
_HEX: Final = re.compile(r"x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})")


class _NotUnderstoodError(Exception):
    """The pattern has a part without a term."""


@dataclass(frozen=True, slots=True)
class _Anchor:
    start: bool


@dataclass(frozen=True, slots=True)
class _Characters:
    ranges: Ranges


@dataclass(frozen=True, slots=True)
class _Repeated:
    node: "_Node"
    low: int
    high: int | None


@dataclass(frozen=True, slots=True)
class _Alternatives:
    sequences: tuple[tuple["_Node", ...], ...]


_Node: TypeAlias = _Anchor | _Characters | _Repeated | _Alternatives


def language_of(pattern: str, languages: Languages) -> Term | None:
    """Return the strings in which a pattern matches somewhere, or None if the pattern is not understood."""
    if len(pattern) > _LONGEST:
        return None
    try:
        parsed = _Parser(pattern).parse()
        sequences = _spread((parsed,))
        return languages.union([_anchored(sequence, languages) for sequence in sequences])
    except _NotUnderstoodError:
        return None


def _has_anchor(node: _Node) -> bool:
    if isinstance(node, _Repeated):
        return _has_anchor(node.node)
    if isinstance(node, _Alternatives):
        return any(_has_anchor(part) for sequence in node.sequences for part in sequence)
    return isinstance(node, _Anchor)


def _spread(sequence: Sequence[_Node]) -> list[tuple[_Node, ...]]:
    """Return the sequences that a sequence stands for, so that anchors are in none of its groups."""
    made: list[tuple[_Node, ...]] = [()]
    for node in sequence:
        if isinstance(node, _Alternatives) and _has_anchor(node):
            inner = [part for alternative in node.sequences for part in _spread(alternative)]
            made = [before + part for before in made for part in inner]
        else:
            made = [(*before, node) for before in made]
        if len(made) > _MOST_SEQUENCES:
            raise _NotUnderstoodError
    return made


def _anchored(sequence: tuple[_Node, ...], languages: Languages) -> Term:
    start, end = 0, len(sequence)
    while start < end and sequence[start] == _Anchor(start=True):
        start += 1
    while end > start and sequence[end - 1] == _Anchor(start=False):
        end -= 1
    inner = [_term(node, languages) for node in sequence[start:end]]
    before = [] if start else [languages.everything]
    after = [] if end < len(sequence) else [languages.everything]
    return languages.sequence([*before, *inner, *after])


def _term(node: _Node, languages: Languages) -> Term:
    match node:
        case _Anchor():
            raise _NotUnderstoodError  # in the middle
        case _Characters(ranges):
            return languages.character(ranges)
        case _Repeated(inner, low, high):
            return languages.repetition(_term(inner, languages), low, high)
        case _Alternatives(sequences):
            return languages.union(
                [languages.sequence([_term(part, languages) for part in sequence]) for sequence in sequences]
            )


class _Parser:
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._depth = 0

    def parse(self) -> _Alternatives:
        parsed = self._alternatives()
        if self._at < len(self._pattern):
            raise _NotUnderstoodError
        return parsed

    def _next(self) -> str:
        return self._pattern[self._at] if self._at < len(self._pattern) else ""

    def _take(self) -> str:
        character = self._next()
        if not character:
            raise _NotUnderstoodError
        self._at += 1
        return character

    def _alternatives(self) -> _Alternatives:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _NotUnderstoodError
        sequences = [self._sequence()]
        while self._next() == "|":
            self._at += 1
            sequences.append(self._sequence())
        self._depth -= 1
        return _Alternatives(tuple(sequences))

    def _sequence(self) -> tuple[_Node, ...]:
        made: list[_Node] = []
        while self._next() and self._next() not in "|)":
            made.append(self._quantified(self._atom()))
        return tuple(made)

    def _quantified(self, node: _Node) -> _Node:
        character = self._next()
        count = _COUNT.match(self._pattern, self._at) if character == "{" else None
        if not character or (character not in "*+?" and count is None):
            return node
        if _has_anchor(node) or (isinstance(node, _Alternatives) and not any(node.sequences)):
            raise _NotUnderstoodError
        if count is None:
            self._at += 1
            low, high = {"*": (0, None), "+": (1, None), "?": (0, 1)}[character]
        else:
            self._at = count.end()
            low = int(count[1])
            high = low if not count[2] else int(count[3]) if count[3] else None
            if max(low, high or 0) > _LARGEST_COUNT or (high is not None and high < low):
                raise _NotUnderstoodError
        if self._next() == "?":  # which match is taken does not matter
            self._at += 1
        if self._next() and self._next() in "*+?{":
            raise _NotUnderstoodError
        return _Repeated(node, low, high)

    def _atom(self) -> _Node:
        character = self._take()
        match character:
            case "^" | "$":
                return _Anchor(start=character == "^")
            case ".":
                return _Characters(_DOT)
            case "(":
                return self._group()
            case "[":
                return _Characters(self._class())
            case "\\":
                return _Characters(self._escape())
            case "*" | "+" | "?" | "{" | "}" | "]":
                raise _NotUnderstoodError
        return _Characters(((ord(character), ord(character)),))

    def _group(self) -> _Node:
        if self._next() == "?":
            if not self._pattern.startswith("?:", self._at):
                raise _NotUnderstoodError
            self._at += 2
        inner = self._alternatives()
        if self._take() != ")":
            raise _NotUnderstoodError
        return inner

    def _escape(self) -> Ranges:
        character = self._take()
        if character.lower() in _CLASSES:
            ranges = _CLASSES[character.lower()]
            return ranges if character.islower() else complement(ranges)
        code = _HEX.match(self._pattern, self._at - 1)
        if code is not None:
            self._at = code.end()
            character = chr(int(code[1] or code[2], 16))
            if "\ud800" <= character <= "\udfff":
                raise _NotUnderstoodError
        elif character in _CONTROLS:
            character = _CONTROLS[character]
        elif character.isalnum() or not character.isascii():
            raise _NotUnderstoodError
        return ((ord(character), ord(character)),)

    def _class(self) -> Ranges:
        is_negated = self._next() == "^"
        self._at += is_negated
        ranges: list[tuple[int, int]] = []
        if self._next() == "]":
            raise _NotUnderstoodError
        while self._next() != "]":
            first = self._member()
            if self._next() == "-" and self._pattern[self._at + 1 : self._at + 2] != "]":
                self._at += 1
                last = self._member()
                if len(first) != 1 or len(last) != 1 or first[0][0] != first[0][1] or last[0][0] != last[0][1]:
                    raise _NotUnderstoodError
                if last[0][0] < first[0][0]:
                    raise _NotUnderstoodError
                first = ((first[0][0], last[0][0]),)
            ranges += first
        self._at += 1
        made = united(ranges)
        return complement(made) if is_negated else _without_surrogates(made)

    def _member(self) -> Ranges:
        character = self._take()
        if character == "[" or self._pattern.startswith(("&&", "--", "~~", "||"), self._at - 1):
            raise _NotUnderstoodError
        return self._escape() if character == "\\" else ((ord(character), ord(character)),)


def _without_surrogates(ranges: Ranges) -> Ranges:
    return complement(complement(ranges))
