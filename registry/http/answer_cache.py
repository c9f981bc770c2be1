"""A cache of whole answers, which are valid as long as what they were made from is in force."""

from collections.abc import Callable, Hashable
from typing import Any, Generic, NamedTuple, TypeVar

from strata.registry.cache import Cache
from strata.registry.http.asgi import Answer, header_lines

__all__ = ["AnswerCache", "KeptAnswer"]

_BYTES_AROUND = 1000  # memory per answer in addition to its bytes
_SHARE = 16  # an answer larger than this part of the cache would displace too many others

_KeyT = TypeVar("_KeyT", bound=Hashable)


class KeptAnswer(NamedTuple):
    """An answer, its headers as lines, and what was noted with it."""

    answer: Answer
    head: bytes
    note: Any


class AnswerCache(Generic[_KeyT]):
    """Answers by request, all made from the same basis.

    A new basis invalidates all answers at once, and costs nothing: newer answers displace the invalid ones over time.

    Args:
        basis: returns the object that answers are now made from; only the very same object counts as the same.
        most_bytes: the most bytes that all answers may have together.
    """

    def __init__(self, basis: Callable[[], object], most_bytes: int) -> None:
        self.basis = basis
        self.hits = self.misses = 0
        self._largest = most_bytes // _SHARE
        self._answers: Cache[_KeyT, tuple[KeptAnswer, int]] = Cache(most_bytes)
        self._made_from: object = None
        self._generation = 0  # an answer keeps this number, since a State in its place would stay in memory

    @property
    def size(self) -> int:
        """The bytes of all answers, invalid ones included."""
        return self._answers.size

    @property
    def entries(self) -> int:
        """The number of answers, invalid ones included."""
        return self._answers.entries

    @property
    def evictions(self) -> int:
        """How many answers gave way to others."""
        return self._answers.evictions

    def get(self, key: _KeyT) -> Answer | None:
        """Return a valid answer; None on a cache miss."""
        found = self.find(key)
        return found.answer if found else None

    def holds(self, key: _KeyT) -> bool:
        """Return whether there is a valid answer; if not, this is a cache miss."""
        found = self._answers.get(key)
        is_valid = found is not None and found[1] == self._current()
        self.misses += not is_valid
        return is_valid

    def find(self, key: _KeyT) -> KeptAnswer | None:
        """Return a valid answer with its note; None on a cache miss."""
        found = self._answers.get(key)
        if found is None or found[1] != self._current():
            self.misses += 1
            return None
        self.hits += 1
        return found[0]

    def put(self, key: _KeyT, answer: Answer, basis: object, *, key_bytes: int, note: Any = None) -> None:
        """Keep an answer, unless it was made from another basis than the one in force.

        Args:
            key: the request.
            answer: the answer.
            basis: what the answer was made from.
            key_bytes: the size of the key.
            note: what to keep with the answer, of a few bytes.
        """
        size = len(answer[2]) + key_bytes + _BYTES_AROUND
        if basis is self.basis() and size <= self._largest:
            status, headers, body = answer
            # A body from orjson keeps the buffer that it was written to, some 4 KiB; a copy does not.
            answer = status, headers, bytes(memoryview(body))
            self._answers.put(key, (KeptAnswer(answer, header_lines(answer[1]), note), self._current()), size)

    def _current(self) -> int:
        basis = self.basis()
        if basis is not self._made_from:
            self._made_from, self._generation = basis, self._generation + 1
        return self._generation
