"""The index behind the search: words of the latest live version of each subject.

It is built from the first search on, and follows the State: a thread of its own compares the subjects of the State
with those that it holds, by identity, and reads the schemas of those that differ. It works for a millisecond at a time
and rests for longer, so that the event loop never waits for more. A search waits for it for a moment, and says in its
answer if it is not complete yet.

A word of a query finds the words that begin with it. Words are kept by their first letter, and only sorted where a
query looks: to sort all of them would stop the process. Postings are arrays of numbers that only grow; a subject that
is read again gets a new number, and its old one is dead. The index starts again once half of the numbers are dead. The
words of one schema are bounded: a larger one is found by its first words, and answers name it. Words and postings of
all are bounded as well: beyond that, subjects are found by their names only, and no answer is complete.
"""

import re
import threading
import time
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from strata.registry.features.search.places import Kind, Place, places
from strata.storage.records import Subject, Version
from strata.storage.state import SchemaVersion, State

__all__ = ["Found", "Hit", "SearchIndex"]

_PATIENCE_S, _LOOK_S = 2.0, 0.05
_SLICE_S, _PAUSE_S = 0.001, 0.002  # of work, and of rest, in which other threads run
_MOST_WORDS_EACH, _LONGEST_WORD = 2_000, 64
_MOST_POSTINGS, _MOST_WORDS = 20_000_000, 1_000_000
_MOST_READ = 150_000  # postings that one word of a query reads
_MOST_SORTED = 10_000
_LONGEST_TEXT = 10_000
_MOST_NAMED = 20  # subjects that an answer names as partial
_MOST_TERMS, _MOST_MATCHES, _LONGEST_SHOWN = 10, 5, 200

_PIECE = re.compile(r"[^\W_]+")
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_LETTERS = {Kind.NAME: "n", Kind.FIELD: "f", Kind.DOC: "d", Kind.TAG: "t", Kind.METADATA: "m"}
_KINDS = {str(kind): kind for kind in Kind}

_Term = tuple[tuple[Kind, ...], str]


class Hit(NamedTuple):
    """A version that fits a query, and the first places that fit."""

    entry: SchemaVersion
    matches: tuple[Place, ...]


class Found(NamedTuple):
    """The hits of one page; whether there are more; whether every schema was searched.

    Of the subjects in `partial` only the first words were searched; if there are many, some of them are named.
    """

    hits: tuple[Hit, ...]
    more: bool
    complete: bool
    partial: tuple[Subject, ...] = ()


class SearchIndex:
    """The words of a registry; every method may be called from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # of what follows
        self._starting = threading.Lock()
        self._following: threading.Thread | None = None
        self._clear()

    def _clear(self) -> None:
        self._seen: State | None = None
        self._held: dict[Subject, tuple[dict[Version, SchemaVersion], int]] = {}
        self._subjects: list[Subject | None] = []  # by number; None for a dead one
        self._postings: dict[str, array[int]] = {}  # by a letter for the kind, and the word
        self._words: dict[str, list[str]] = {}  # the keys of the postings, by their first two letters
        self._unsorted: set[str] = set()
        self._count = 0
        self._partial: set[Subject] = set()  # those with more words than are kept
        self._is_whole = True

    def find(
        self, state: State, query: str, visible: Callable[[Subject], bool], *, offset: int = 0, limit: int = 20
    ) -> Found:
        """Return the versions that have all words of a query.

        Args:
            state: the State to search.
            query: words; `name:`, `field:`, `doc:`, `tag:` or `meta:` before one says where it must be.
            visible: which subjects may be shown.
            offset: how many hits to skip.
            limit: the most hits to return.
        """
        terms = _terms(query)
        if not terms:
            return Found((), False, True)
        is_current = self._followed(state)
        entries = (entry for name in self._matching(terms) if visible(name) and (entry := state.latest(name)))
        page = list(islice(entries, offset, offset + limit + 1))
        hits = tuple(Hit(entry, _matches(entry, terms)) for entry in page[:limit])
        with self._lock:
            partial = sorted(self._partial)
        named = islice(filter(visible, partial), _MOST_NAMED)
        return Found(hits, len(page) > limit, is_current and self._is_whole, tuple(named))

    # --- following the State

    def _followed(self, state: State) -> bool:
        """Wait for the index to reach a State; return whether it has.

        The wait is a number of looks, so that a pause of the machine, in which no index grows, does not use it up.
        """
        left = _PATIENCE_S
        while left > 0:
            began = time.monotonic()
            with self._starting:
                if self._seen is state:
                    return True
                if self._following is None or not self._following.is_alive():
                    self._following = threading.Thread(target=self._follow, args=(state,), daemon=True)
                    self._following.start()
                thread = self._following
            thread.join(_LOOK_S)
            left -= min(time.monotonic() - began, _LOOK_S)
        return self._seen is state

    def _follow(self, state: State) -> None:
        if len(self._subjects) > 2 * len(self._held) + _MOST_SORTED:
            with self._lock:
                self._clear()
        rest = _Rest()
        for name in (name for names in state.listing.chunks() for name in names):
            versions = state.subjects[name]
            if (held := self._held.get(name)) is None or held[0] is not versions:
                with self._lock:
                    self._put(name, versions)
            rest()
        if len(self._held) > len(state.subjects):
            for name in list(self._held):
                if name not in state.subjects:
                    with self._lock:
                        self._subjects[self._held.pop(name)[1]] = None
                        self._partial.discard(name)
                rest()
        self._seen = state

    def _put(self, name: Subject, versions: dict[Version, SchemaVersion]) -> None:
        held = self._held.get(name)
        if held is not None:
            self._subjects[held[1]] = None
            self._partial.discard(name)
        number = len(self._subjects)
        self._subjects.append(name)
        self._held[name] = versions, number
        entry = next((version for version in reversed(versions.values()) if not version.deleted), None)
        if entry is None:
            self._subjects[number] = None
            return
        for key in self._keys(entry):
            postings = self._postings.get(key)
            if postings is None:
                postings = self._postings[key] = array("I")
                self._words.setdefault(key[:2], []).append(key)
                self._unsorted.add(key[:2])
            postings.append(number)
            self._count += 1

    def _keys(self, entry: SchemaVersion) -> set[str]:
        """Return the words of a version, each with the letter of its kind."""
        is_full = self._count > _MOST_POSTINGS or len(self._postings) > _MOST_WORDS
        keys: set[str] = set()
        for place_kind, _, text in places(entry):
            letter = _LETTERS[place_kind]
            keys.update(letter + word for word in _words(text))
            if is_full:
                self._is_whole = False
                break
            if len(keys) > _MOST_WORDS_EACH:
                self._partial.add(entry.subject)
                break
        return keys

    # --- answering

    def _matching(self, terms: Sequence[_Term]) -> Iterator[Subject]:
        """Yield the live subjects that have all words: those with all of them in their names first."""
        with self._lock:
            named = self._common([((Kind.NAME,) if Kind.NAME in kinds else (), word) for kinds, word in terms])
            names = self._named(named)
        yield from names
        with self._lock:
            names = self._named(self._common(terms) - named)
        yield from names

    def _common(self, terms: Sequence[_Term]) -> set[int]:
        numbers = self._numbers(terms[0])
        for term in terms[1:]:
            numbers = numbers and numbers & self._numbers(term)
        return numbers

    def _named(self, numbers: set[int]) -> list[Subject]:
        names = [name for number in numbers if (name := self._subjects[number]) is not None]
        return sorted(names) if len(names) <= _MOST_SORTED else names

    def _numbers(self, term: _Term) -> set[int]:
        kinds, word = term
        numbers: set[int] = set()
        read = 0
        for place_kind in kinds:
            start = _LETTERS[place_kind] + word
            words = self._sorted(start[:2])
            for place in range(bisect_left(words, start), len(words)):
                key = words[place]
                if not key.startswith(start) or read > _MOST_READ:
                    break
                postings = self._postings[key]
                read += len(postings)
                numbers.update(postings)
        return numbers

    def _sorted(self, letters: str) -> Sequence[str]:
        """Return the words that begin with a letter for the kind and another letter, in order."""
        words = self._words.get(letters, [])
        if letters in self._unsorted:
            words.sort()
            self._unsorted.discard(letters)
        return words


class _Rest:
    """A pause after each slice of work."""

    def __init__(self) -> None:
        self._since = time.monotonic()

    def __call__(self) -> None:
        if time.monotonic() - self._since > _SLICE_S:
            time.sleep(_PAUSE_S)
            self._since = time.monotonic()


def _terms(query: str) -> list[_Term]:
    """Return the words of a query, each with the kinds of places that it may be in."""
    terms: list[_Term] = []
    for part in query.split():
        name, colon, rest = part.partition(":")
        place_kind = _KINDS.get(name.casefold()) if colon else None
        kinds = tuple(Kind) if place_kind is None else (place_kind,)
        terms += (
            (kinds, piece.casefold()[:_LONGEST_WORD]) for piece in _PIECE.findall(part if place_kind is None else rest)
        )
    return terms[:_MOST_TERMS]


def _words(text: str) -> Iterator[str]:
    """Yield the words of a text, and the parts of words in camel case."""
    for piece in _PIECE.findall(text[:_LONGEST_TEXT]):
        yield from _forms(piece[:_LONGEST_WORD])


@lru_cache(maxsize=1 << 16)
def _forms(piece: str) -> tuple[str, ...]:
    if not piece.isascii() or (piece.isalpha() and piece.islower()):
        return (piece.casefold(),)
    parts = _PARTS.findall(piece)
    return (piece.casefold(), *(part.casefold() for part in parts if len(parts) > 1))


def _matches(entry: SchemaVersion, terms: Sequence[_Term]) -> tuple[Place, ...]:
    """Return the first places that have a word of the query."""
    matches: list[Place] = []
    for place in places(entry):
        if any(
            place.kind in kinds and any(known_word.startswith(word) for known_word in _words(place.text))
            for kinds, word in terms
        ):
            matches.append(Place(place.kind, place.path[:_LONGEST_SHOWN], place.text[:_LONGEST_SHOWN]))
            if len(matches) == _MOST_MATCHES:
                break
    return tuple(matches)
